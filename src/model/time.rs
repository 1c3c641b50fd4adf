//! Points in time as text: epoch numbers and ISO 8601, in whole numbers throughout.
//!
//! Not a calendar library: the years 0000 to 9999 of the proleptic Gregorian calendar, UTC, no leap seconds.

use std::fmt;

/// The unit of an epoch number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
}

impl Unit {
    /// All units, from the largest.
    pub const ALL: [Unit; 3] = [Unit::Seconds, Unit::Millis, Unit::Micros];

    /// `s`, `ms` or `us`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Millis => "ms",
            Unit::Micros => "us",
        }
    }

    /// The unit with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.name() == name)
    }

    fn nanos(self) -> u32 {
        match self {
            Unit::Seconds => 1_000_000_000,
            Unit::Millis => 1_000_000,
            Unit::Micros => 1_000,
        }
    }
}

/// Why a text is no point in time, or has no exact form in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeError {
    /// An epoch number must be an integer.
    NotAnInteger,
    /// It lies outside the years 0000 to 9999.
    OutOfRange,
    /// It is no date and time of the form `2026-11-30T10:00:00Z`; an offset such as `+01:00` may stand for the `Z`.
    NotIso,
    /// It is a date and time without `Z` or offset, so that the moment is not known.
    NoZone,
    /// It has digits below the unit.
    DigitsLost,
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeError::NotAnInteger => "not an integer",
            TimeError::OutOfRange => "outside the years 0000 to 9999; is the unit right?",
            TimeError::NotIso => "not a date and time such as 2026-11-30T10:00:00Z",
            TimeError::NoZone => "a date and time without `Z` or offset",
            TimeError::DigitsLost => "digits below the unit would be lost; use a finer unit",
        })
    }
}

/// A point in time, exact to the last digit that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since 1970-01-01T00:00:00Z, rounded towards the past.
    seconds: i64,
    /// What `seconds` leaves, 0 to 999,999,999.
    nanos: u32,
    /// Whether digits other than zero followed the ninth of the fraction.
    finer: bool,
}

/// 0000-01-01T00:00:00Z.
const FIRST_SECOND: i64 = -62_167_219_200;
/// 9999-12-31T23:59:59Z.
const LAST_SECOND: i64 = 253_402_300_799;
const DAY: i64 = 86_400;

impl Moment {
    /// Reads an epoch number: an optional sign and digits.
    ///
    /// # Errors
    /// [`TimeError::NotAnInteger`], [`TimeError::OutOfRange`].
    pub fn from_epoch(text: &str, unit: Unit) -> Result<Self, TimeError> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(TimeError::NotAnInteger);
        }
        let number: i64 = text.parse().map_err(|_| TimeError::OutOfRange)?;
        let per_second = i64::from(1_000_000_000 / unit.nanos());
        let nanos = u32::try_from(number.rem_euclid(per_second)).map_err(|_| TimeError::OutOfRange)? * unit.nanos();
        Self::checked(number.div_euclid(per_second), nanos, false)
    }

    /// Reads `YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm|±hhmm|±hh)`; a blank may stand for the `T`.
    ///
    /// # Errors
    /// [`TimeError::NotIso`], [`TimeError::NoZone`], [`TimeError::OutOfRange`].
    pub fn from_iso(text: &str) -> Result<Self, TimeError> {
        let bytes = text.as_bytes();
        let date = bytes.get(..10).ok_or(TimeError::NotIso)?;
        let days = days_of_date(date)?;
        let [b'T' | b't' | b' ', clock @ ..] = &bytes[10..] else {
            return Err(TimeError::NotIso);
        };
        let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = clock else {
            return Err(TimeError::NotIso);
        };
        let hour = number(&[*h1, *h2]).filter(|hour| *hour < 24).ok_or(TimeError::NotIso)?;
        let minute = number(&[*m1, *m2]).filter(|minute| *minute < 60).ok_or(TimeError::NotIso)?;
        let second = number(&[*s1, *s2]).filter(|second| *second < 60).ok_or(TimeError::NotIso)?;
        let (nanos, finer, rest) = fraction(rest)?;
        let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset(rest)?;
        Self::checked(seconds, nanos, finer)
    }

    /// The epoch number in `unit`.
    ///
    /// # Errors
    /// [`TimeError::DigitsLost`]: nothing is rounded.
    pub fn epoch(self, unit: Unit) -> Result<i64, TimeError> {
        if self.finer || !self.nanos.is_multiple_of(unit.nanos()) {
            return Err(TimeError::DigitsLost);
        }
        // The range of `seconds` keeps this far from the limits of 64 bits, in microseconds too.
        Ok(self.seconds * i64::from(1_000_000_000 / unit.nanos()) + i64::from(self.nanos / unit.nanos()))
    }

    /// The text `2026-11-30T10:00:00Z`, with three digits after the point for milliseconds and six for
    /// microseconds. What lies below the unit is not shown; a moment read in `unit` has nothing there.
    #[must_use]
    pub fn iso(self, unit: Unit) -> impl fmt::Display {
        Iso { moment: self, unit }
    }

    /// The day in UTC: `2026-11-30`.
    #[must_use]
    pub fn date(self) -> impl fmt::Display {
        Date { days: self.seconds.div_euclid(DAY) }
    }

    fn checked(seconds: i64, nanos: u32, finer: bool) -> Result<Self, TimeError> {
        if (FIRST_SECOND..=LAST_SECOND).contains(&seconds) { Ok(Self { seconds, nanos, finer }) } else { Err(TimeError::OutOfRange) }
    }
}

/// The first ten characters of an ISO date, or of a date and time, as they are written: `2026-11-30`.
///
/// # Errors
/// [`TimeError::NotIso`] when `text` is neither.
pub fn date_as_written(text: &str) -> Result<&str, TimeError> {
    let date = text.get(..10).ok_or(TimeError::NotIso)?;
    days_of_date(date.as_bytes())?;
    if text.len() > 10 {
        match Moment::from_iso(text) {
            // The day stands there as written, whatever the zone is.
            Ok(_) | Err(TimeError::NoZone | TimeError::OutOfRange) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(date)
}

struct Iso {
    moment: Moment,
    unit: Unit,
}

impl fmt::Display for Iso {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moment { seconds, nanos, finer: _ } = self.moment;
        let clock = seconds.rem_euclid(DAY);
        Date { days: seconds.div_euclid(DAY) }.fmt(f)?;
        write!(f, "T{:02}:{:02}:{:02}", clock / 3600, clock / 60 % 60, clock % 60)?;
        match self.unit {
            Unit::Seconds => f.write_str("Z"),
            Unit::Millis => write!(f, ".{:03}Z", nanos / 1_000_000),
            Unit::Micros => write!(f, ".{:06}Z", nanos / 1_000),
        }
    }
}

struct Date {
    days: i64,
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_of_days(self.days);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// Days in 400 years; the calendar repeats after them.
const ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const TO_EPOCH: i64 = 719_468;

/// Days since 1970-01-01. Years are counted from March, so that the leap day is the last day of a year.
fn days_of_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    era * ERA + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1 - TO_EPOCH
}

/// Year, month and day of a number of days since 1970-01-01.
fn civil_of_days(days: i64) -> (i64, i64, i64) {
    let days = days + TO_EPOCH;
    let (era, in_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// Days since 1970-01-01 of `YYYY-MM-DD`.
fn days_of_date(date: &[u8]) -> Result<i64, TimeError> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = date else {
        return Err(TimeError::NotIso);
    };
    let year = number(&[*y1, *y2, *y3, *y4]).ok_or(TimeError::NotIso)?;
    let month = number(&[*m1, *m2]).filter(|month| (1..=12).contains(month)).ok_or(TimeError::NotIso)?;
    let day = number(&[*d1, *d2]).ok_or(TimeError::NotIso)?;
    let days = days_of_civil(year, month, day);
    // A day that the month does not have comes back as one of the next month.
    if civil_of_days(days) == (year, month, day) { Ok(days) } else { Err(TimeError::NotIso) }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0_i64, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

/// An optional fraction of a second: nanoseconds, whether there were finer digits, and what follows.
fn fraction(rest: &[u8]) -> Result<(u32, bool, &[u8]), TimeError> {
    let [b'.' | b',', after @ ..] = rest else {
        return Ok((0, false, rest));
    };
    let length = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return Err(TimeError::NotIso);
    }
    let (digits, rest) = after.split_at(length);
    let nanos = (0..9).fold(0, |nanos, place| nanos * 10 + digits.get(place).map_or(0, |digit| u32::from(digit - b'0')));
    let finer = digits.iter().skip(9).any(|digit| *digit != b'0');
    Ok((nanos, finer, rest))
}

/// Seconds east of UTC.
fn offset(zone: &[u8]) -> Result<i64, TimeError> {
    let (sign, hours, minutes) = match zone {
        [] => return Err(TimeError::NoZone),
        [b'Z' | b'z'] => return Ok(0),
        [sign @ (b'+' | b'-'), h1, h2] => (sign, [*h1, *h2], [b'0', b'0']),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] | [sign @ (b'+' | b'-'), h1, h2, m1, m2] => (sign, [*h1, *h2], [*m1, *m2]),
        _ => return Err(TimeError::NotIso),
    };
    let hours = number(&hours).filter(|hours| *hours < 24).ok_or(TimeError::NotIso)?;
    let minutes = number(&minutes).filter(|minutes| *minutes < 60).ok_or(TimeError::NotIso)?;
    let seconds = hours * 3600 + minutes * 60;
    Ok(if *sign == b'-' { -seconds } else { seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoch_and_iso_are_two_spellings_of_one_moment() {
        for (unit, epoch, iso) in [
            (Unit::Seconds, "0", "1970-01-01T00:00:00Z"),
            (Unit::Seconds, "-1", "1969-12-31T23:59:59Z"),
            (Unit::Seconds, "1796032800", "2026-11-30T10:00:00Z"),
            (Unit::Seconds, "951782400", "2000-02-29T00:00:00Z"),
            (Unit::Seconds, "-2203891200", "1900-03-01T00:00:00Z"),
            (Unit::Seconds, "-62167219200", "0000-01-01T00:00:00Z"),
            (Unit::Seconds, "253402300799", "9999-12-31T23:59:59Z"),
            (Unit::Millis, "1796032800007", "2026-11-30T10:00:00.007Z"),
            (Unit::Millis, "-1", "1969-12-31T23:59:59.999Z"),
            (Unit::Micros, "1", "1970-01-01T00:00:00.000001Z"),
        ] {
            let moment = Moment::from_epoch(epoch, unit).unwrap();
            assert_eq!(moment.iso(unit).to_string(), iso, "{epoch}");
            assert_eq!(moment.date().to_string(), iso[..10]);
            assert_eq!(Moment::from_iso(iso).unwrap(), moment, "{iso}");
            assert_eq!(moment.epoch(unit).unwrap().to_string(), epoch);
        }
    }

    #[test]
    fn every_day_of_eight_hundred_years_comes_back() {
        for days in -150_000..150_000 {
            let (year, month, day) = civil_of_days(days);
            assert_eq!(days_of_civil(year, month, day), days);
        }
    }

    #[test]
    fn an_offset_moves_the_moment_and_no_digit_is_rounded_away() {
        let seconds = |text: &str| Moment::from_iso(text).unwrap().epoch(Unit::Seconds);
        assert_eq!(seconds("1970-01-01T01:00:00+01:00"), Ok(0));
        assert_eq!(seconds("1969-12-31 18:30:00-0530"), Ok(0));
        assert_eq!(seconds("1970-01-01t02:00:00.000+02"), Ok(0));
        assert_eq!(seconds("1970-01-01T00:00:00.5Z"), Err(TimeError::DigitsLost));
        let moment = Moment::from_iso("1970-01-01T00:00:00,1234560000000Z").unwrap();
        assert_eq!(moment.epoch(Unit::Micros), Ok(123_456));
        assert_eq!(moment.epoch(Unit::Millis), Err(TimeError::DigitsLost));
        assert_eq!(Moment::from_iso("1970-01-01T00:00:00.0000000001Z").unwrap().epoch(Unit::Micros), Err(TimeError::DigitsLost));
    }

    #[test]
    fn what_is_no_moment_is_refused_with_the_reason() {
        for (text, error) in [
            ("2026-11-30", TimeError::NotIso),
            ("2026-02-29T00:00:00Z", TimeError::NotIso),
            ("2026-13-01T00:00:00Z", TimeError::NotIso),
            ("2026-11-30T24:00:00Z", TimeError::NotIso),
            ("2026-11-30T10:00:60Z", TimeError::NotIso),
            ("2026-11-30T10:00Z", TimeError::NotIso),
            ("2026-11-30T10:00:00.Z", TimeError::NotIso),
            ("2026-11-30T10:00:00+1:00", TimeError::NotIso),
            ("2026-11-30T10:00:00", TimeError::NoZone),
            ("0000-01-01T00:00:00+01:00", TimeError::OutOfRange),
            ("éééééééééé", TimeError::NotIso),
        ] {
            assert_eq!(Moment::from_iso(text), Err(error), "{text}");
        }
        for (text, error) in [
            ("", TimeError::NotAnInteger),
            ("1.5", TimeError::NotAnInteger),
            ("--1", TimeError::NotAnInteger),
            ("1796032800000", TimeError::OutOfRange),
            ("99999999999999999999", TimeError::OutOfRange),
        ] {
            assert_eq!(Moment::from_epoch(text, Unit::Seconds), Err(error), "{text}");
        }
    }

    #[test]
    fn a_date_is_taken_as_written() {
        assert_eq!(date_as_written("2026-11-30"), Ok("2026-11-30"));
        assert_eq!(date_as_written("2026-11-30T23:00:00-05:00"), Ok("2026-11-30"));
        assert_eq!(date_as_written("2026-11-30T23:00:00"), Ok("2026-11-30"));
        assert_eq!(date_as_written("2026-11-31"), Err(TimeError::NotIso));
        assert_eq!(date_as_written("2026-11-30 or so"), Err(TimeError::NotIso));
        assert_eq!(date_as_written("30.11.2026"), Err(TimeError::NotIso));
    }
}
