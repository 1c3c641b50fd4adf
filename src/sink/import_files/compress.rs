//! Text in, compressed bytes out, piece by piece: an object is one gzip member or one zstd frame from its start to its end.
//!
//! Whether the service reads several members or frames in an object is not documented, so there is never a second one.

use std::io::{self, Write as _};

use flate2::GzBuilder;
use flate2::write::GzEncoder;

use super::Compression;
use crate::error::{Error, Kind, Result};

/// The knee. Measured with flate2 1.1.11 on one core, JSON of four entities with keys, dates, texts and tags:
///
/// | level | MB/s of JSON | times smaller |
/// |---|---|---|
/// | 1 | 328 | 2.81 |
/// | 2 | 193 | 3.52 |
/// | 3 | 157 | 3.70 |
/// | 4 | 106 | 4.02 |
/// | 6 | 78 | 4.15 |
///
/// What level 2 costs a core over level 1, an upload of 100 MB/s gets back.
const GZIP_LEVEL: u32 = 2;

/// The default of zstd.
const ZSTD_LEVEL: i32 = 3;

/// The state of an object's compression. It moves into the pool with each piece of text and comes back.
pub(super) enum Compressor {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    pub(super) fn new(compression: Compression) -> Result<Self> {
        Ok(match compression {
            // A header that says nothing of when and where: no name, no time, no system.
            Compression::Gzip => {
                Self::Gzip(GzBuilder::new().operating_system(0xff).write(Vec::new(), flate2::Compression::new(GZIP_LEVEL)))
            }
            Compression::Zstd => {
                let encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL).and_then(|mut encoder| {
                    encoder.include_checksum(true)?;
                    Ok(encoder)
                });
                Self::Zstd(encoder.map_err(failed)?)
            }
        })
    }

    pub(super) fn write(&mut self, text: &[u8]) -> Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(text),
            Self::Zstd(encoder) => encoder.write_all(text),
        }
        .map_err(failed)
    }

    /// What has come out since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        })
    }

    /// The end of the object.
    pub(super) fn finish(self) -> Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
        .map_err(failed)
    }
}

/// Memory is all that a compressor could lack.
fn failed(cause: io::Error) -> Error {
    Error::new(Kind::Bug, "the compressor of import files failed").caused_by(cause)
}
