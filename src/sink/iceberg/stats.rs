//! What the list of data files says of the columns of a file, so that readers can pass files by: taken from the file's own end.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use parquet::basic::{LogicalType, Type as Physical};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::statistics::Statistics;

use crate::error::{Error, Kind, Result};

/// By field id where it says so; lists and maps, which have other numbers of values than rows, are left out.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Stats {
    /// Compressed bytes.
    pub(super) sizes: Vec<(i32, i64)>,
    /// Values, nulls too.
    pub(super) values: Vec<(i32, i64)>,
    pub(super) nulls: Vec<(i32, i64)>,
    /// No value is less.
    pub(super) lower: Vec<(i32, Vec<u8>)>,
    /// No value is greater.
    pub(super) upper: Vec<(i32, Vec<u8>)>,
    /// Where the row groups begin.
    pub(super) split_offsets: Vec<i64>,
}

/// A column in all row groups so far.
#[derive(Default)]
struct Column {
    size: i64,
    values: i64,
    /// `None`: a row group does not say it.
    nulls: Option<i64>,
    bounds: Option<(Bound, Bound)>,
    /// Whether a row group with values has no bounds.
    unknown: bool,
}

/// A least or greatest value, comparable within its column.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum Bound {
    Bool(bool),
    Long(i64),
    Double(f64),
    /// The digits of a decimal.
    Decimal(i128),
    Text(String),
}

impl Stats {
    /// Reads the end of a file of this machine.
    ///
    /// # Errors
    /// Kind `Output` when it cannot be read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let failed = || Error::new(Kind::Output, "a data file that was written cannot be read").with("file", path.display());
        let file = File::open(path).map_err(|cause| failed().caused_by(cause))?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).map_err(|cause| failed().caused_by(cause))?;
        Ok(Self::of(&metadata))
    }

    fn of(metadata: &ParquetMetaData) -> Self {
        let mut columns: BTreeMap<i32, Column> = BTreeMap::new();
        let mut stats = Self::default();
        for group in metadata.row_groups() {
            for chunk in group.columns() {
                let info = chunk.column_descr().self_type().get_basic_info();
                if !info.has_id() || chunk.column_descr().max_rep_level() > 0 {
                    continue;
                }
                let column = columns.entry(info.id()).or_insert_with(|| Column { nulls: Some(0), ..Column::default() });
                column.add(chunk);
            }
            let first = group.columns().first();
            stats.split_offsets.extend(first.map(|chunk| chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset())));
        }
        for (id, column) in columns {
            stats.sizes.push((id, column.size));
            stats.values.push((id, column.values));
            stats.nulls.extend(column.nulls.map(|nulls| (id, nulls)));
            if let Some((lower, upper)) = column.bounds.filter(|_| !column.unknown) {
                stats.lower.push((id, lower.bytes()));
                stats.upper.push((id, upper.bytes()));
            }
        }
        stats
    }
}

impl Column {
    fn add(&mut self, chunk: &ColumnChunkMetaData) {
        self.size += chunk.compressed_size();
        self.values += chunk.num_values();
        let nulls = chunk.statistics().and_then(Statistics::null_count_opt).and_then(|nulls| i64::try_from(nulls).ok());
        self.nulls = self.nulls.zip(nulls).map(|(all, more)| all + more);
        if nulls == Some(chunk.num_values()) {
            return;
        }
        match (bounds(chunk), self.bounds.take()) {
            (None, _) => self.unknown = true,
            (Some(bounds), None) => self.bounds = Some(bounds),
            (Some((low, high)), Some((lower, upper))) => {
                self.bounds = Some((if low < lower { low } else { lower }, if high > upper { high } else { upper }));
            }
        }
    }
}

/// The least and greatest value of a column in a row group, or what is beyond them.
fn bounds(chunk: &ColumnChunkMetaData) -> Option<(Bound, Bound)> {
    let statistics = chunk.statistics()?;
    let decimal = matches!(chunk.column_descr().logical_type_ref(), Some(LogicalType::Decimal { .. }));
    let text = matches!(chunk.column_descr().logical_type_ref(), Some(LogicalType::String));
    let integer = |number: i64| if decimal { Bound::Decimal(number.into()) } else { Bound::Long(number) };
    let of_text = |bytes: &[u8]| Some(Bound::Text(std::str::from_utf8(bytes).ok()?.to_owned()));
    Some(match statistics {
        Statistics::Boolean(found) => (Bound::Bool(*found.min_opt()?), Bound::Bool(*found.max_opt()?)),
        Statistics::Int64(found) => (integer(*found.min_opt()?), integer(*found.max_opt()?)),
        Statistics::Int32(found) => (integer((*found.min_opt()?).into()), integer((*found.max_opt()?).into())),
        Statistics::Double(found) => (Bound::Double(*found.min_opt()?), Bound::Double(*found.max_opt()?)),
        Statistics::ByteArray(found) if text => (of_text(found.min_opt()?.data())?, of_text(found.max_opt()?.data())?),
        Statistics::FixedLenByteArray(found) if decimal && chunk.column_type() == Physical::FIXED_LEN_BYTE_ARRAY => {
            (Bound::Decimal(big_endian(found.min_opt()?.data())?), Bound::Decimal(big_endian(found.max_opt()?.data())?))
        }
        _ => return None,
    })
}

/// A number in two's complement of at most 16 bytes.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first()? & 0x80 != 0;
    let mut whole = [if negative { 0xff } else { 0 }; 16];
    whole.get_mut(16_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(whole))
}

impl Bound {
    /// In Iceberg's form for single values.
    fn bytes(&self) -> Vec<u8> {
        match self {
            Bound::Bool(truth) => vec![u8::from(*truth)],
            Bound::Long(number) => number.to_le_bytes().to_vec(),
            Bound::Double(number) => number.to_le_bytes().to_vec(),
            Bound::Decimal(digits) => {
                let bytes = digits.to_be_bytes();
                // As few bytes as keep the sign.
                let sign = if *digits < 0 { 0xff } else { 0 };
                let spare = bytes.windows(2).take_while(|pair| pair[0] == sign && (pair[1] ^ sign) & 0x80 == 0).count();
                bytes[spare..].to_vec()
            }
            Bound::Text(text) => text.clone().into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_of_a_decimal_take_as_few_bytes_as_keep_the_sign() {
        let cases: [(i128, &[u8]); 8] =
            [(0, &[0]), (1, &[1]), (127, &[127]), (128, &[0, 128]), (-1, &[255]), (-128, &[128]), (-129, &[255, 127]), (256, &[1, 0])];
        for (digits, bytes) in cases {
            assert_eq!(Bound::Decimal(digits).bytes(), bytes, "{digits}");
            assert_eq!(big_endian(bytes), Some(digits));
        }
    }
}
