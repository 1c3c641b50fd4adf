//! Decimal numbers as text: what `DynamoDB` accepts, one spelling for each value, and comparison by value.
//!
//! No number here ever becomes a float, and parsing allocates nothing.

use std::cmp::Ordering;
use std::fmt;

/// The most significant digits a number may have (AWS, "Supported data types": 38).
pub const DIGITS: usize = 38;

/// A number as it stands in its text.
#[derive(Clone, Copy, Debug)]
pub struct Decimal<'t> {
    negative: bool,
    whole: &'t [u8],
    fraction: &'t [u8],
    /// Zeros before the first significant digit, in `whole` and `fraction` together.
    leading: usize,
    /// Digits from the first to the last that is not zero.
    significant: usize,
    /// The value is 0.d₁d₂… times ten to this power; 0 for zero.
    magnitude: i64,
}

/// Why a text is no number that `DynamoDB` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// It is no decimal number at all.
    NotANumber,
    /// It has this many significant digits, more than [`DIGITS`].
    TooManyDigits(usize),
    /// Its magnitude is above 9.99…E+125.
    Overflow,
    /// Its magnitude is below 1E-130 and it is not zero.
    Underflow,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NumberError::NotANumber => f.write_str("not a decimal number"),
            NumberError::TooManyDigits(found) => write!(f, "{found} significant digits, limit {DIGITS}"),
            NumberError::Overflow => f.write_str("magnitude above 9.99…E+125"),
            NumberError::Underflow => f.write_str("magnitude below 1E-130"),
        }
    }
}

impl<'t> Decimal<'t> {
    /// Parses `[+-]digits[.digits][(e|E)[+-]digits]`; one of the two digit runs may be empty. The limits are not checked.
    #[must_use]
    pub fn parse(text: &'t str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (negative, bytes) = match bytes.first()? {
            b'-' => (true, &bytes[1..]),
            b'+' => (false, &bytes[1..]),
            _ => (false, bytes),
        };
        let (whole, rest) = digits(bytes);
        let (fraction, rest) = match rest.split_first() {
            Some((b'.', rest)) => digits(rest),
            _ => (&rest[..0], rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let exponent = match rest.split_first() {
            None => 0,
            Some((b'e' | b'E', rest)) => exponent(rest)?,
            Some(_) => return None,
        };
        let all = || whole.iter().chain(fraction);
        let leading = all().take_while(|digit| **digit == b'0').count();
        let total = whole.len() + fraction.len();
        if leading == total {
            return Some(Self { negative: false, whole, fraction, leading, significant: 0, magnitude: 0 });
        }
        let trailing = all().rev().take_while(|digit| **digit == b'0').count();
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?;
        Some(Self {
            negative,
            whole,
            fraction,
            leading,
            significant: total - leading - trailing,
            magnitude: point.saturating_add(exponent),
        })
    }

    /// Checks digits and range the way the service does on write.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self) -> Result<(), NumberError> {
        if self.significant > DIGITS {
            Err(NumberError::TooManyDigits(self.significant))
        } else if self.magnitude > 126 {
            Err(NumberError::Overflow)
        } else if self.significant > 0 && self.magnitude < -129 {
            Err(NumberError::Underflow)
        } else {
            Ok(())
        }
    }

    /// Whether the value is below zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Digits from the first to the last that is not zero; 0 for zero.
    #[must_use]
    pub fn significant(&self) -> usize {
        self.significant
    }

    /// Where the point stands: the value is 0.d₁d₂… times ten to this power.
    #[must_use]
    pub fn magnitude(&self) -> i64 {
        self.magnitude
    }

    /// Digits after the point in plain notation, without trailing zeros.
    #[must_use]
    pub fn scale(&self) -> u64 {
        u64::try_from(i64::try_from(self.significant).unwrap_or(i64::MAX).saturating_sub(self.magnitude)).unwrap_or(0)
    }

    /// The significant digits, as ASCII.
    pub fn significant_digits(&self) -> impl Iterator<Item = u8> + '_ {
        self.whole.iter().chain(self.fraction).copied().skip(self.leading).take(self.significant)
    }

    /// The value's one spelling, the one the service stores: plain, no exponent, no needless zeros, `0` for zero.
    /// The caller has checked the range, else this text may be long.
    #[must_use]
    pub fn plain(&self) -> String {
        if self.significant == 0 {
            return "0".to_owned();
        }
        let mut out = String::with_capacity(self.significant + 3);
        if self.negative {
            out.push('-');
        }
        if self.magnitude <= 0 {
            out.push_str("0.");
            for _ in self.magnitude..0 {
                out.push('0');
            }
            out.extend(self.significant_digits().map(char::from));
            return out;
        }
        let mut placed = 0;
        for digit in self.significant_digits() {
            if placed == self.magnitude {
                out.push('.');
            }
            out.push(char::from(digit));
            placed += 1;
        }
        for _ in placed..self.magnitude {
            out.push('0');
        }
        out
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal<'_> {}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal<'_> {
    /// By value: `1`, `1.0` and `1E0` are equal.
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |value: &Self| match (value.significant, value.negative) {
            (0, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        };
        let by_sign = sign(self).cmp(&sign(other));
        if by_sign != Ordering::Equal || self.significant == 0 {
            return by_sign;
        }
        let absolute = self.magnitude.cmp(&other.magnitude).then_with(|| self.significant_digits().cmp(other.significant_digits()));
        if self.negative { absolute.reverse() } else { absolute }
    }
}

/// The number times ten to the power `scale`, where that is exactly an integer of at most 38 digits.
#[must_use]
pub fn unscaled(number: &Decimal<'_>, scale: u32) -> Option<i128> {
    if number.significant() == 0 {
        return Some(0);
    }
    let length = number.magnitude().checked_add(i64::from(scale))?;
    let zeros = length.checked_sub(i64::try_from(number.significant()).ok()?)?;
    if zeros < 0 || length > 38 {
        return None;
    }
    let digits = number.significant_digits().fold(0_i128, |value, digit| value * 10 + i128::from(digit - b'0'));
    let value = digits * 10_i128.pow(u32::try_from(zeros).ok()?);
    Some(if number.is_negative() { -value } else { value })
}

/// Whether two texts are the same number; texts that are no numbers are the same when they are equal.
#[must_use]
pub fn same(left: &str, right: &str) -> bool {
    left == right || order(left, right).is_eq()
}

/// The order of two texts by value; texts that are no numbers come behind, by their bytes.
#[must_use]
pub fn order(left: &str, right: &str) -> Ordering {
    match (Decimal::parse(left), Decimal::parse(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.cmp(right),
    }
}

/// Whether `text` is already a value's one spelling; quicker than parsing.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(|fraction| all_digits(fraction) && !fraction.ends_with('0'))
        && text != "-0"
}

/// The digits at the start, and the rest.
fn digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

/// An exponent; one too large for 64 bits saturates, since the range check refuses it anyhow.
fn exponent(bytes: &[u8]) -> Option<i64> {
    let (negative, bytes) = match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, bytes),
    };
    let (run, rest) = digits(bytes);
    if run.is_empty() || !rest.is_empty() {
        return None;
    }
    let value = run.iter().fold(0_i64, |value, digit| value.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        Decimal::parse(text).unwrap().plain()
    }

    #[test]
    fn a_number_has_one_spelling_the_one_the_service_stores() {
        for (text, expected) in [
            ("1.5E2", "150"),
            ("1.0", "1"),
            ("00042", "42"),
            ("-0", "0"),
            ("-0015.789e6", "-15789000"),
            ("+3", "3"),
            (".123", "0.123"),
            ("5.", "5"),
            ("1e-3", "0.001"),
            ("100.50", "100.5"),
            ("0.000", "0"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
            assert!(is_plain(expected), "{expected}");
        }
        assert_eq!(plain("1e125"), format!("1{}", "0".repeat(125)));
        assert_eq!(plain("1e-130"), format!("0.{}1", "0".repeat(129)));
        for text in ["1.0", "01", "-0", "1e1", "", "-", ".5", "5.", "+1"] {
            assert!(!is_plain(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", ".", "abc", "NaN", "Infinity", " 1", "1 ", "1e", "1e+", "0x1", "1.2.3", "--1"] {
            assert!(Decimal::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn digits_and_range_are_checked_by_value() {
        let check = |text: &str| Decimal::parse(text).unwrap().check();
        assert_eq!(check(&"9".repeat(38)), Ok(()));
        assert_eq!(check(&"9".repeat(39)), Err(NumberError::TooManyDigits(39)));
        assert_eq!(check(&format!("1{}", "0".repeat(125))), Ok(()));
        assert_eq!(check("1E125"), Ok(()));
        assert_eq!(check("1E126"), Err(NumberError::Overflow));
        assert_eq!(check("1E99999999999999999999"), Err(NumberError::Overflow));
        assert_eq!(check("-1E-130"), Ok(()));
        assert_eq!(check("1E-131"), Err(NumberError::Underflow));
        assert_eq!(check("0E-999"), Ok(()));
    }

    #[test]
    fn numbers_compare_by_value() {
        let order = ["-100", "-2", "-1.5", "0", "1e-130", "0.5", "1", "1.01", "9", "10", "1e3", "1001"];
        for (i, left) in order.iter().enumerate() {
            for (j, right) in order.iter().enumerate() {
                assert_eq!(Decimal::parse(left).cmp(&Decimal::parse(right)), i.cmp(&j), "{left} {right}");
            }
        }
        assert_eq!(Decimal::parse("1000"), Decimal::parse("1E3"));
        assert_eq!(Decimal::parse("1.0"), Decimal::parse("+01"));
        assert_eq!(Decimal::parse("-0"), Decimal::parse("0"));
    }
}
