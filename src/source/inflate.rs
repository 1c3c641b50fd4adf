//! The text of a data file: its bytes as stored, compared with their MD5 and decompressed. Knows gzip and zstd; knows nothing of
//! lines and of what the text says.

use std::io::{self, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::{Decompress, FlushDecompress, Status};
use md5::{Digest, Md5};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};
use zstd::zstd_safe::{get_dict_id_from_frame, get_frame_content_size};

use crate::error::{Error, Kind, Result};
use crate::source::sniff::{GZIP, ZSTD};
use crate::source::turns::Turns;
use crate::store::Location;

/// The file is read in pieces of this many bytes.
const READ_BYTES: usize = 256 * 1024;

/// The header of a zstd frame has so many bytes at the most.
const ZSTD_HEADER: usize = 18;

/// The largest window of a zstd frame, as a power of two: 128 MiB, what `zstd -22 --ultra` takes. It is memory.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Text may be so many times as long as the file. Gzip reaches 1,032.
const GROWTH: u64 = 1_100;

/// So much text may come before its growth is looked at.
const GROWTH_FROM: u64 = 256 << 20;

/// Reads a data file from its start to its end as text.
///
/// Gzip and zstd, of one or more members or frames, and plain text are told apart by the first bytes, not by the name. Memory: 256 KiB of
/// input and what was looked at ahead; zstd takes the window of a frame besides, 128 MiB at the most.
pub(super) struct Text {
    location: Location,
    input: Input,
    form: Form,
    /// The start of the text, where it was looked at before it is read.
    ahead: Vec<u8>,
    /// How much of it was read.
    ahead_read: usize,
    /// Bytes of text that were decompressed.
    written: u64,
    growth_from: u64,
    /// Where others compute too.
    turns: Option<Turns>,
}

/// The bytes of the file as stored.
struct Input {
    file: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    /// The part of the buffer that was not used yet.
    start: usize,
    end: usize,
    /// Bytes of the file before the buffer's start.
    before: u64,
    at_end: bool,
    /// The running MD5, and the one the manifest says.
    md5: Option<(Md5, [u8; 16])>,
}

/// How the text lies in the file.
enum Form {
    /// As it is.
    Plain,
    /// Inside a gzip member.
    Gzip(Box<Decompress>),
    /// After a gzip member: the file ends here, or another member starts.
    BetweenMembers,
    /// In zstd frames. Outside of one, the file ends, or another frame starts.
    Zstd { decoder: Decoder<'static>, inside: bool },
}

impl Text {
    /// Looks at the first bytes of `file`, which lies at `location`. Its MD5 is compared where there is one.
    ///
    /// # Errors
    /// Kind `Input`, with the path, when the file cannot be read, or is empty or nearly so though it should be compressed.
    pub(super) fn new(file: Box<dyn Read + Send>, location: Location, md5: Option<[u8; 16]>) -> Result<Self> {
        let mut input = Input {
            file,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            before: 0,
            at_end: false,
            md5: md5.map(|expected| (Md5::new(), expected)),
        };
        input.fill(ZSTD.len(), None).map_err(|cause| unreadable(&location, cause))?;
        let start = input.unused();
        let is_cut = |magic: &[u8]| !start.is_empty() && start.len() < magic.len() && magic.starts_with(start);
        if let Some(shortest) = start.is_empty().then(|| shortest_file(&location)).flatten() {
            // As plain text it would be a file without lines, which is no mistake.
            return Err(Error::new(Kind::Input, format!("the data file is empty, expected at least {shortest}"))
                .with("file", location)
                .with("hint", "copy the file again"));
        }
        for (name, magic) in [("gzip", &GZIP[..]), ("zstd", &ZSTD)] {
            if is_cut(magic) {
                return Err(cut(&location, name, start.len() as u64));
            }
        }
        let form = if start.starts_with(&GZIP) {
            Form::Gzip(new_member())
        } else if is_zstd(start) {
            Form::Zstd { decoder: new_decoder().map_err(|cause| unreadable(&location, cause))?, inside: false }
        } else {
            Form::Plain
        };
        Ok(Self { location, input, form, ahead: Vec::new(), ahead_read: 0, written: 0, growth_from: GROWTH_FROM, turns: None })
    }

    /// Takes one of these turns for each piece that it decompresses or takes into the MD5; none while it waits for the bytes of the file.
    pub(super) fn take_turns(&mut self, turns: Option<Turns>) {
        self.turns = turns;
    }

    /// Where the file lies.
    pub(super) fn location(&self) -> &Location {
        &self.location
    }

    /// Whether the bytes of the file are not its text.
    pub(super) fn is_compressed(&self) -> bool {
        !matches!(self.form, Form::Plain)
    }

    /// The first `wanted` bytes of the text, or all where it is shorter, before anything is read. They stay to be read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) fn look(&mut self, wanted: usize) -> Result<&[u8]> {
        let mut ahead = Vec::with_capacity(wanted);
        while ahead.len() < wanted && self.decompress(&mut ahead, wanted)? {}
        self.ahead = ahead;
        Ok(&self.ahead)
    }

    /// Passes over bytes that were looked at.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.ahead_read += bytes;
    }

    /// Appends some text to `out`, about to `target` bytes, for which there is room. False: the text is at its end, and the bytes of the
    /// file are what the manifest says.
    ///
    /// # Errors
    /// Kind `Input`, with the path: the file cannot be read, is cut or damaged, grows too much, or has another MD5.
    pub(super) fn read(&mut self, out: &mut Vec<u8>, target: usize) -> Result<bool> {
        if self.ahead_read < self.ahead.len() {
            let taken = (self.ahead.len() - self.ahead_read).min(target - out.len());
            out.extend_from_slice(&self.ahead[self.ahead_read..self.ahead_read + taken]);
            self.ahead_read += taken;
            return Ok(true);
        }
        self.ahead = Vec::new();
        self.ahead_read = 0;
        let goes_on = self.decompress(out, target)?;
        if !goes_on {
            self.input.check_md5().map_err(|error| error.with("file", &self.location))?;
        }
        Ok(goes_on)
    }

    /// As [`read`](Self::read), but for what was looked at and for the MD5.
    fn decompress(&mut self, out: &mut Vec<u8>, target: usize) -> Result<bool> {
        let ended = self.input.fill(1, self.turns.as_ref()).map_err(|cause| unreadable(&self.location, cause))?;
        let at = self.input.offset();
        let before = out.len();
        let _turn = self.turns.as_ref().map(Turns::take);
        match &mut self.form {
            Form::Plain => {
                let unused = self.input.unused();
                let taken = unused.len().min(target - out.len());
                out.extend_from_slice(&unused[..taken]);
                self.input.consume(taken);
                return Ok(taken > 0);
            }
            Form::Gzip(member) => {
                let read = member.total_in();
                let status = member
                    .decompress_vec(self.input.unused(), out, FlushDecompress::None)
                    .map_err(|cause| damaged(&self.location, "gzip", at).caused_by(cause))?;
                let taken = usize::try_from(member.total_in() - read).expect("no more is taken than the buffer holds");
                self.input.consume(taken);
                match status {
                    Status::StreamEnd => self.form = Form::BetweenMembers,
                    Status::Ok | Status::BufError if taken > 0 || out.len() > before => {}
                    Status::Ok | Status::BufError if ended => return Err(cut(&self.location, "gzip", at)),
                    Status::Ok | Status::BufError => return Err(damaged(&self.location, "gzip", at)),
                }
            }
            Form::Zstd { decoder, inside } if *inside => {
                let mut unused = InBuffer::around(self.input.unused());
                let mut written = OutBuffer::around_pos(&mut *out, before);
                let left = decoder.run(&mut unused, &mut written).map_err(|cause| damaged(&self.location, "zstd", at).caused_by(cause))?;
                let taken = unused.pos();
                self.input.consume(taken);
                if left > 0 && taken == 0 && out.len() == before {
                    return Err(if ended { cut(&self.location, "zstd", at) } else { damaged(&self.location, "zstd", at) });
                }
                *inside = left > 0;
            }
            Form::BetweenMembers | Form::Zstd { .. } if ended => return Ok(false),
            Form::BetweenMembers => {
                self.input.fill(GZIP.len(), None).map_err(|cause| unreadable(&self.location, cause))?;
                if !self.input.unused().starts_with(&GZIP) {
                    return Err(goes_on(&self.location, "gzip", at, "the end, or another gzip member"));
                }
                self.form = Form::Gzip(new_member());
            }
            Form::Zstd { inside, .. } => {
                self.input.fill(ZSTD_HEADER, None).map_err(|cause| unreadable(&self.location, cause))?;
                let header = self.input.unused();
                if !is_zstd(header) {
                    return Err(goes_on(&self.location, "zstd", at, "the end, or another zstd frame"));
                }
                check_frame(header, &self.location)?;
                *inside = true;
            }
        }
        self.written += (out.len() - before) as u64;
        self.check_growth()?;
        Ok(true)
    }

    /// Text that goes on and on out of a few bytes is no export.
    fn check_growth(&self) -> Result<()> {
        if self.written <= self.growth_from || self.written / GROWTH <= self.input.offset() {
            return Ok(());
        }
        Err(Error::new(Kind::Input, "the data file is a decompression bomb: its text is too long for its size")
            .with("file", &self.location)
            .with("expected", format_args!("at most {GROWTH} bytes of text from each compressed byte"))
            .with("found", format_args!("{} bytes of text from the first {} compressed bytes", self.written, self.input.offset()))
            .with("hint", "if it is what it should be, decompress it and name the result"))
    }

    /// Bytes of the file, as stored, that were read so far.
    pub(super) fn compressed_read(&self) -> u64 {
        self.input.before + self.input.end as u64
    }
}

impl Input {
    /// Makes sure that `wanted` bytes are unused in the buffer, or the file is at its end. True: nothing is left at all. Takes a turn for the
    /// MD5, where there are turns and the caller has none.
    fn fill(&mut self, wanted: usize, turns: Option<&Turns>) -> io::Result<bool> {
        while self.end - self.start < wanted && !self.at_end {
            self.buffer.copy_within(self.start..self.end, 0);
            self.before += self.start as u64;
            self.end -= self.start;
            self.start = 0;
            let read = match self.file.read(&mut self.buffer[self.end..]) {
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if let Some((md5, _)) = &mut self.md5 {
                let _turn = turns.map(Turns::take);
                md5.update(&self.buffer[self.end..self.end + read]);
            }
            self.end += read;
            self.at_end = read == 0;
        }
        Ok(self.start == self.end)
    }

    fn unused(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Where in the file the unused part starts.
    fn offset(&self) -> u64 {
        self.before + self.start as u64
    }

    /// Compares the MD5 of the whole file with the manifest's. Every byte was read by then.
    fn check_md5(&mut self) -> Result<()> {
        let Some((md5, expected)) = self.md5.take() else { return Ok(()) };
        let found: [u8; 16] = md5.finalize().into();
        if found == expected {
            return Ok(());
        }
        Err(Error::new(Kind::Input, "the data file is not what the manifest says; it was changed or damaged")
            .with("expected", format_args!("md5 {}", BASE64.encode(expected)))
            .with("found", format_args!("md5 {}", BASE64.encode(found)))
            .with("hint", "copy the file again"))
    }
}

/// A decoder for one gzip member, header and checksum included.
fn new_member() -> Box<Decompress> {
    Box::new(Decompress::new_gzip(15))
}

/// A decoder for zstd frames, checksums included.
fn new_decoder() -> io::Result<Decoder<'static>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
    Ok(decoder)
}

/// Whether a zstd frame starts here, or one that holds no text and is passed over.
fn is_zstd(bytes: &[u8]) -> bool {
    bytes.starts_with(&ZSTD) || is_skippable(bytes)
}

fn is_skippable(bytes: &[u8]) -> bool {
    matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Refuses a zstd frame that can be read only with much memory or with a dictionary. What else is wrong with it, its decoder says.
fn check_frame(header: &[u8], location: &Location) -> Result<()> {
    const LARGEST: u64 = 1 << ZSTD_WINDOW_LOG;
    if is_skippable(header) {
        return Ok(());
    }
    if let Some(dictionary) = get_dict_id_from_frame(header) {
        return Err(Error::new(Kind::Input, "the data file is compressed with zstd and a dictionary, which is not in it")
            .with("file", location)
            .with("expected", "zstd without a dictionary")
            .with("found", format_args!("a frame that wants dictionary {dictionary}"))
            .with("hint", "decompress it and name the result"));
    }
    match zstd_window(header) {
        Some(window) if window > LARGEST => {
            Err(Error::new(Kind::Input, "the data file is compressed with zstd and a window that takes too much memory")
                .with("file", location)
                .with("expected", format_args!("a window of at most {LARGEST} bytes"))
                .with("found", format_args!("a frame that wants a window of {window} bytes"))
                .with("hint", "compress it again without --long, or decompress it and name the result"))
        }
        _ => Ok(()),
    }
}

/// The window of a zstd frame in bytes, by its header (RFC 8878, 3.1.1.1); `None` where the header is cut.
fn zstd_window(header: &[u8]) -> Option<u64> {
    const SINGLE_SEGMENT: u8 = 0x20;
    match header.get(ZSTD.len()..ZSTD.len() + 2)? {
        [descriptor, window] if descriptor & SINGLE_SEGMENT == 0 => {
            let base = 1_u64 << (10 + (window >> 3));
            Some(base + base / 8 * u64::from(window & 7))
        }
        // The whole text is the window.
        _ => get_frame_content_size(header).ok().flatten(),
    }
}

/// What the shortest whole file of a kind is, where the name says the kind.
fn shortest_file(location: &Location) -> Option<&'static str> {
    match location.name()?.rsplit_once('.')?.1 {
        "gz" => Some("the 20 bytes of an empty gzip file"),
        "zst" => Some("the 9 bytes of an empty zstd file"),
        _ => None,
    }
}

/// The error for a data file whose bytes do not come.
fn unreadable(location: &Location, cause: io::Error) -> Error {
    match cause.downcast::<Error>() {
        // S3 says itself what went wrong.
        Ok(error) => error,
        Err(cause) => Error::new(Kind::Input, "cannot read the data file").with("file", location).caused_by(cause),
    }
}

fn damaged(location: &Location, name: &str, at: u64) -> Error {
    Error::new(Kind::Input, format!("the data file has a damaged {name} stream at compressed byte {at}")).with("file", location)
}

fn goes_on(location: &Location, name: &str, at: u64, expected: &str) -> Error {
    let message = format!("the data file goes on after the end of its {name} stream at compressed byte {at}");
    Error::new(Kind::Input, message).with("file", location).with("expected", expected)
}

fn cut(location: &Location, name: &str, at: u64) -> Error {
    let end = if name == "gzip" { "a gzip stream with its end, 8 bytes of checksum and size" } else { "a zstd stream with its last block" };
    Error::new(Kind::Input, format!("the data file ends in the middle of the {name} stream at compressed byte {at}"))
        .with("file", location)
        .with("expected", end)
        .with("found", "the end of the file")
        .with("hint", "copy the file again")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// A zstd frame with a checksum.
    fn zstd(text: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// A frame with this header and one empty last block.
    fn frame(header: &[u8]) -> Vec<u8> {
        [&ZSTD[..], header, b"\x01\0\0"].concat()
    }

    fn place(name: &str) -> Location {
        Location::Local(name.into())
    }

    fn open(bytes: &[u8]) -> Result<Text> {
        Text::new(Box::new(io::Cursor::new(bytes.to_vec())), place("data/x.json"), None)
    }

    fn read(bytes: &[u8]) -> Result<String> {
        let mut text = open(bytes)?;
        let mut out = Vec::new();
        loop {
            out.reserve(7);
            let target = out.len() + 7;
            if !text.read(&mut out, target)? {
                assert_eq!(text.compressed_read(), bytes.len() as u64);
                return Ok(String::from_utf8(out).unwrap());
            }
        }
    }

    const TEXT: &str = "one\ntwo\nthree, and some more to see that it goes on and on and on\n";

    #[test]
    fn one_stream_or_several_are_one_text() {
        let text = TEXT.as_bytes();
        let several = |pack: fn(&[u8]) -> Vec<u8>| [pack(&text[..10]), pack(b""), pack(&text[10..])].concat();
        for bytes in [text.to_vec(), gzip(text), several(gzip), zstd(text), several(zstd)] {
            assert_eq!(read(&bytes).unwrap(), TEXT);
        }
        for empty in [&b""[..], &gzip(b""), &zstd(b"")] {
            assert_eq!(read(empty).unwrap(), "");
        }
    }

    #[test]
    fn what_was_looked_at_is_read_again_but_for_what_is_skipped() {
        for wanted in [0, 1, 5, 1000] {
            for bytes in [TEXT.as_bytes().to_vec(), gzip(TEXT.as_bytes()), zstd(TEXT.as_bytes())] {
                let mut text = open(&bytes).unwrap();
                assert_eq!(text.look(wanted).unwrap(), &TEXT.as_bytes()[..wanted.min(TEXT.len())]);
                text.skip(wanted.min(3));
                let mut out = Vec::with_capacity(1000);
                while text.read(&mut out, 1000).unwrap() {}
                assert_eq!(out, &TEXT.as_bytes()[wanted.min(3)..]);
            }
        }
    }

    #[test]
    fn zstd_frames_that_hold_no_text_are_passed_over() {
        let note = b"\x57\x2a\x4d\x18\x04\0\0\0note";
        let bytes = [note, &zstd(b"one\n")[..], note, &zstd(b"two\n"), note].concat();
        assert_eq!(read(&bytes).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn bytes_after_the_last_stream_are_an_error_that_says_where() {
        for (good, name) in [(gzip(b"one\n"), "gzip"), (zstd(b"one\n"), "zstd")] {
            for garbage in [&b"\0\0\0\0"[..], b"x", b"\x1f", b"\x28\xb5\x2f"] {
                let error = read(&[&good, garbage].concat()).unwrap_err();
                let place = format!("goes on after the end of its {name} stream at compressed byte {}", good.len());
                assert!(error.message().ends_with(&place), "{error}");
            }
        }
    }

    #[test]
    fn a_cut_stream_is_an_error_wherever_it_is_cut() {
        for (good, name) in [(gzip(TEXT.as_bytes()), "gzip"), (zstd(TEXT.as_bytes()), "zstd")] {
            for length in 1..good.len() {
                let error = read(&good[..length]).unwrap_err();
                let place = format!("ends in the middle of the {name} stream at compressed byte {length}");
                assert!(error.message().ends_with(&place), "{length}: {error}");
                assert!(error.to_string().contains("file: data/x.json"));
            }
        }
    }

    #[test]
    fn a_damaged_stream_is_an_error() {
        for (mut bytes, name, checksum) in [(gzip(TEXT.as_bytes()), "gzip", 8), (zstd(TEXT.as_bytes()), "zstd", 4)] {
            let at = bytes.len() - checksum;
            bytes[at] ^= 1;
            let error = read(&bytes).unwrap_err();
            assert!(error.message().contains(&format!("damaged {name} stream at compressed byte")), "{error}");
        }
    }

    #[test]
    fn a_compressed_file_without_a_single_byte_was_not_copied_whole() {
        for (name, message) in [("x.json.gz", "the 20 bytes of an empty gzip file"), ("x.zst", "the 9 bytes of an empty zstd file")] {
            let error = Text::new(Box::new(io::empty()), place(name), None).err().expect("an error");
            assert!(error.message().ends_with(message), "{error}");
        }
    }

    #[test]
    fn a_window_that_takes_too_much_memory_is_refused() {
        for (header, window) in [(&b"\0\x88"[..], "134217728"), (b"\0\x89", "150994944"), (b"\0\xa8", "2147483648")] {
            let read = read(&frame(header));
            if window == "134217728" {
                assert_eq!(read.unwrap(), "");
                continue;
            }
            let error = read.unwrap_err().to_string();
            assert!(error.contains("expected: a window of at most 134217728 bytes"), "{error}");
            assert!(error.contains(&format!("found: a frame that wants a window of {window} bytes")), "{error}");
        }
        // The size of the text is the window.
        let error = read(&frame(b"\xa0\0\0\0\x09")).unwrap_err().to_string();
        assert!(error.contains("wants a window of 150994944 bytes"), "{error}");
    }

    #[test]
    fn a_dictionary_is_asked_for_by_its_number() {
        let error = read(&frame(b"\x01\x50\x07")).unwrap_err().to_string();
        assert!(error.contains("found: a frame that wants dictionary 7"), "{error}");
    }

    #[test]
    fn text_that_is_far_too_long_for_its_file_is_refused_with_both_numbers() {
        let bytes = zstd(&vec![b'\n'; 4 << 20]);
        let mut text = open(&bytes).unwrap();
        text.growth_from = 1 << 20;
        let mut out = Vec::with_capacity(64 << 10);
        let error = loop {
            out.clear();
            match text.read(&mut out, 64 << 10) {
                Ok(goes_on) => assert!(goes_on, "the text came to its end"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("is a decompression bomb"), "{error}");
        assert!(error.contains("expected: at most 1100 bytes of text from each compressed byte"), "{error}");
        assert!(error.contains("found: 1114112 bytes of text from the first "), "{error}");

        let mut text = open(&bytes).unwrap();
        while {
            out.clear();
            text.read(&mut out, 64 << 10).unwrap()
        } {}
    }

    #[test]
    fn the_md5_of_the_stored_bytes_is_compared_at_the_end() {
        for bytes in [TEXT.as_bytes().to_vec(), gzip(TEXT.as_bytes()), zstd(TEXT.as_bytes())] {
            for right in [true, false] {
                let md5 = if right { Md5::digest(&bytes).into() } else { [0; 16] };
                let mut text = Text::new(Box::new(io::Cursor::new(bytes.clone())), place("x"), Some(md5)).unwrap();
                text.look(1000).unwrap();
                let mut out = Vec::with_capacity(1000);
                assert!(text.read(&mut out, 1000).unwrap());
                match text.read(&mut out, 1000) {
                    Ok(goes_on) => assert!(right && !goes_on),
                    Err(error) => {
                        let error = error.to_string();
                        assert!(!right && error.contains("expected: md5 AAAAAAAAAAAAAAAAAAAAAA=="), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_interrupted_read_is_read_again_and_a_failed_one_is_an_error() {
        struct Tired(u8);
        impl Read for Tired {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                Err(if self.0 < 3 { io::ErrorKind::Interrupted.into() } else { io::Error::other("the disk is gone") })
            }
        }
        let error = Text::new(Box::new(Tired(0)), place("x"), None).err().expect("an error").to_string();
        assert!(error.contains("cannot read the data file") && error.contains("the disk is gone"), "{error}");
    }
}
