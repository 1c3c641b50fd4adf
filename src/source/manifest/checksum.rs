//! The checksums that lie beside the manifests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest, Md5};

use crate::error::{Error, Kind, Result};
use crate::source::manifest::Verify;
use crate::store::Location;

/// Compares the bytes of the manifest `STEM.json` in `folder` with the checksum beside it; gives false where there is none, or where
/// `verify` lets another one pass, which is a warning then.
pub(super) fn check_sibling(folder: &Location, name: &str, bytes: &[u8], verify: Verify, notes: &mut Vec<String>) -> Result<bool> {
    if verify == Verify::Off {
        return Ok(false);
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    for ending in ["md5", "checksum"] {
        let sibling = folder.join(&format!("{stem}.{ending}"));
        let Some(text) = sibling.read_whole()? else { continue };
        let expected = parse_md5(&text).ok_or_else(|| {
            Error::new(Kind::Input, "the checksum file holds no MD5").with("file", &sibling).with("expected", "base64 of 16 bytes")
        })?;
        let found: [u8; 16] = Md5::digest(bytes).into();
        if found == expected {
            return Ok(true);
        }
        if verify == Verify::Data {
            notes.push(format!("{} is not what its checksum says; it was changed or damaged", folder.join(name)));
            return Ok(false);
        }
        return Err(Error::new(Kind::Input, "the file is not what its checksum says; it was changed or damaged")
            .with("file", folder.join(name))
            .with("expected", format_args!("md5 {}", BASE64.encode(expected)))
            .with("found", format_args!("md5 {}", BASE64.encode(found)))
            .with("hint", "copy the export again; where somebody changed the file on purpose, --verify data goes on"));
    }
    Ok(false)
}

/// Reads an MD5 in base64, as the service writes it, or in 32 hexadecimal digits, as one emulator does.
pub(super) fn parse_md5(text: &[u8]) -> Option<[u8; 16]> {
    let text = text.trim_ascii();
    if text.len() == 32 {
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        return Some(bytes);
    }
    BASE64.decode(text).ok()?.try_into().ok()
}
