//! Line-aligned pieces of a data file. Knows gzip and line ends; knows nothing of items.

use std::io::{self, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::{Decompress, FlushDecompress, Status};
use md5::{Digest, Md5};

use crate::error::{Error, Kind, Result};
use crate::model::{FileId, Format, Origin};
use crate::source::Chunk;
use crate::source::manifest::DataFile;
use crate::store::Location;

/// The file is read in pieces of this many bytes.
const READ_BYTES: usize = 256 * 1024;

/// The longest line. An item of 400 KB takes some 4 MB as JSON, in theory 18 MB; what is longer is no item.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Reads one data file from its start to its end and cuts it into [`Chunk`]s of whole lines.
///
/// Gzip (of one or more members) and plain text are told apart by the first bytes, not by the name. Memory: 256 KiB of input, one chunk,
/// and the start of the next one.
pub struct ChunkReader {
    id: FileId,
    location: Location,
    chunk_bytes: usize,
    max_line_bytes: usize,
    input: Input,
    form: Form,
    /// What was read beyond the last cut: the start of a line.
    rest: Vec<u8>,
    /// Whole lines given out.
    lines: u64,
    /// Nothing more will come: the end was reached, or an error was given.
    done: bool,
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
}

impl ChunkReader {
    /// Opens `file` and looks at its first bytes. Chunks have about `chunk_bytes`; a longer line makes a longer chunk.
    ///
    /// # Errors
    /// Kind `Input`, with the path, when the file cannot be opened or read, or is compressed in another way.
    pub fn open(file: &DataFile, id: FileId, chunk_bytes: usize) -> Result<Self> {
        let DataFile { location, md5, name: _, items: _, facts: _ } = file;
        let mut input = Input {
            file: location.open()?,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            before: 0,
            at_end: false,
            md5: md5.map(|expected| (Md5::new(), expected)),
        };
        input.fill(ZSTD_MAGIC.len()).map_err(|cause| unreadable(location, cause))?;
        if input.unused().starts_with(&ZSTD_MAGIC) {
            return Err(Error::new(Kind::Input, "the data file is compressed with zstd, not read yet")
                .with("file", location)
                .with("expected", "gzip or plain text"));
        }
        // As plain text it would be a file without lines; but a gzip file without items has 20 bytes.
        if input.unused().is_empty() && location.name().and_then(|name| name.rsplit_once('.')).is_some_and(|(_, ending)| ending == "gz") {
            return Err(Error::new(Kind::Input, "the data file is empty, expected at least the 20 bytes of an empty gzip file")
                .with("file", location)
                .with("hint", "copy the file again"));
        }
        let form = if input.unused().starts_with(&GZIP_MAGIC) { Form::Gzip(new_member()) } else { Form::Plain };
        Ok(Self {
            id,
            location: location.clone(),
            chunk_bytes: chunk_bytes.max(1),
            max_line_bytes: MAX_LINE_BYTES,
            input,
            form,
            rest: Vec::new(),
            lines: 0,
            done: false,
        })
    }

    /// The next whole lines; `None` after the last. Empty lines are given like all others, so that numbers of lines stay true.
    ///
    /// # Errors
    /// Kind `Input`, with the path: the file cannot be read, is cut or damaged, has another MD5 than the manifest says, or has a line
    /// longer than 64 MiB. After an error there is nothing more.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would go on after an error; this is read with `while let Some(..) = reader.next()?`"
    )]
    pub fn next(&mut self) -> Result<Option<Chunk>> {
        if self.done {
            return Ok(None);
        }
        let chunk = self.read_chunk();
        self.done |= chunk.is_err();
        chunk
    }

    fn read_chunk(&mut self) -> Result<Option<Chunk>> {
        let mut bytes = Vec::with_capacity(self.chunk_bytes + self.rest.len());
        bytes.append(&mut self.rest);
        loop {
            // What is there already has no line end: it was searched in the last round, or is the rest of a cut.
            let searched = bytes.len();
            bytes.reserve(self.chunk_bytes);
            let target = bytes.len() + self.chunk_bytes;
            while bytes.len() < target {
                if !self.read_text(&mut bytes, target)? {
                    self.done = true;
                    self.input.check_md5().map_err(|error| error.with("file", &self.location))?;
                    return Ok((!bytes.is_empty()).then(|| self.cut(bytes)));
                }
            }
            if let Some(last) = memchr::memrchr(b'\n', &bytes[searched..]) {
                self.rest.extend_from_slice(&bytes[searched + last + 1..]);
                bytes.truncate(searched + last + 1);
                return Ok(Some(self.cut(bytes)));
            }
            if bytes.len() > self.max_line_bytes {
                return Err(Error::new(Kind::Input, "a line is too long to be an item")
                    .with("file", &self.location)
                    .with("line", self.lines + 1)
                    .with("expected", format_args!("at most {} bytes", self.max_line_bytes))
                    .with("found", format_args!("{} bytes without a line end", bytes.len())));
            }
        }
    }

    /// Makes a chunk of whole lines.
    fn cut(&mut self, bytes: Vec<u8>) -> Chunk {
        let first = Origin { file: self.id, line: self.lines + 1 };
        let unended = bytes.last().is_some_and(|last| *last != b'\n');
        self.lines += memchr::memchr_iter(b'\n', &bytes).count() as u64 + u64::from(unended);
        Chunk { first, format: Format::Json, bytes }
    }

    /// Appends some text to `out`, not beyond `target` bytes, for which there is room. False: the file is at its end.
    fn read_text(&mut self, out: &mut Vec<u8>, target: usize) -> Result<bool> {
        let ended = self.input.fill(1).map_err(|cause| unreadable(&self.location, cause))?;
        let at = self.input.offset();
        let damaged = |message: &str| Error::new(Kind::Input, format!("{message} at compressed byte {at}")).with("file", &self.location);
        match &mut self.form {
            Form::Plain => {
                let unused = self.input.unused();
                let taken = unused.len().min(target - out.len());
                out.extend_from_slice(&unused[..taken]);
                self.input.consume(taken);
                Ok(taken > 0)
            }
            Form::Gzip(member) => {
                let (read, written) = (member.total_in(), out.len());
                let status = member
                    .decompress_vec(self.input.unused(), out, FlushDecompress::None)
                    .map_err(|cause| damaged("the data file has a damaged gzip stream").caused_by(cause))?;
                let taken = usize::try_from(member.total_in() - read).expect("no more is taken than the buffer holds");
                let stuck = taken == 0 && out.len() == written;
                self.input.consume(taken);
                match status {
                    Status::StreamEnd => self.form = Form::BetweenMembers,
                    Status::Ok | Status::BufError if stuck && ended => {
                        return Err(damaged("the data file ends in the middle of the gzip stream")
                            .with("expected", "a gzip stream with its end, 8 bytes of checksum and size")
                            .with("found", "the end of the file")
                            .with("hint", "copy the file again"));
                    }
                    Status::Ok | Status::BufError if stuck => return Err(damaged("the data file has a damaged gzip stream")),
                    Status::Ok | Status::BufError => {}
                }
                Ok(true)
            }
            Form::BetweenMembers if ended => Ok(false),
            Form::BetweenMembers => {
                self.input.fill(GZIP_MAGIC.len()).map_err(|cause| unreadable(&self.location, cause))?;
                if !self.input.unused().starts_with(&GZIP_MAGIC) {
                    return Err(damaged("the data file goes on after the end of its gzip stream")
                        .with("expected", "the end, or another gzip member"));
                }
                self.form = Form::Gzip(new_member());
                Ok(true)
            }
        }
    }

    /// Lines given out so far, empty ones too; after the last chunk, the lines of the file.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Bytes of the file, as stored, that were read so far; for progress.
    #[must_use]
    pub fn compressed_read(&self) -> u64 {
        self.input.before + self.input.end as u64
    }
}

impl std::fmt::Debug for ChunkReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkReader").field("location", &self.location).field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl Input {
    /// Makes sure that `wanted` bytes are unused in the buffer, or the file is at its end. True: nothing is left at all.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
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
/// The error for a data file whose bytes do not come.
fn unreadable(location: &Location, cause: io::Error) -> Error {
    Error::new(Kind::Input, "cannot read the data file").with("file", location).caused_by(cause)
}

fn new_member() -> Box<Decompress> {
    Box::new(Decompress::new_gzip(15))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::store::{Facts, Stamp};

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// A file in a folder of its own with these bytes; the name says nothing of its form.
    fn file(bytes: &[u8]) -> (tempfile::TempDir, DataFile) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("x.json");
        std::fs::write(&path, bytes).unwrap();
        let facts = Facts { bytes: bytes.len() as u64, stamp: Stamp::Modified(None) };
        (temp, DataFile { location: Location::Local(path), name: "data/x.json".to_owned(), items: Some(2), md5: None, facts })
    }

    /// The first line and the text of every chunk, and the lines of the file.
    fn chunks(bytes: &[u8], chunk_bytes: usize) -> Result<(Vec<(u64, String)>, u64)> {
        let (_temp, file) = file(bytes);
        let mut reader = ChunkReader::open(&file, FileId(7), chunk_bytes)?;
        let mut found = Vec::new();
        while let Some(chunk) = reader.next()? {
            assert_eq!(chunk.first.file, FileId(7));
            found.push((chunk.first.line, String::from_utf8(chunk.bytes).unwrap()));
        }
        assert_eq!(reader.compressed_read(), file.facts.bytes);
        assert!(reader.next().unwrap().is_none());
        Ok((found, reader.lines()))
    }

    fn owned(chunks: &[(u64, &str)]) -> Vec<(u64, String)> {
        chunks.iter().map(|(line, text)| (*line, (*text).to_owned())).collect()
    }

    #[test]
    fn gzip_and_plain_are_told_apart_by_their_first_bytes() {
        for bytes in [b"one\ntwo\n".to_vec(), gzip(b"one\ntwo\n")] {
            assert_eq!(chunks(&bytes, 1000).unwrap(), (owned(&[(1, "one\ntwo\n")]), 2));
        }
    }

    #[test]
    fn a_chunk_ends_at_a_line_end_and_a_long_line_makes_a_long_chunk() {
        let text = b"aa\nbb\n\ncccccccccccccccc\nd";
        let expected = owned(&[(1, "aa\nbb\n"), (3, "\n"), (4, "cccccccccccccccc\n"), (5, "d")]);
        for bytes in [text.to_vec(), gzip(text)] {
            assert_eq!(chunks(&bytes, 6).unwrap(), (expected.clone(), 5));
        }
    }

    #[test]
    fn all_text_arrives_in_order_whatever_the_size_of_a_chunk() {
        let lines: Vec<String> = (0..20_000_u32).map(|n| format!("{n} {}\n", "x".repeat((n % 97) as usize))).collect();
        let text = lines.concat();
        for chunk_bytes in [1, 100, 4096, 256 * 1024, 10_000_000] {
            for bytes in [text.clone().into_bytes(), gzip(text.as_bytes())] {
                let (found, count) = chunks(&bytes, chunk_bytes).unwrap();
                let mut line = 1;
                for (first, piece) in &found {
                    assert_eq!(*first, line);
                    line += piece.matches('\n').count() as u64;
                    assert!(piece.ends_with('\n'));
                }
                assert_eq!(count, 20_000);
                assert!(found.into_iter().map(|(_, piece)| piece).collect::<String>() == text);
            }
        }
    }

    #[test]
    fn empty_files_give_no_chunk() {
        let real = *b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00";
        for bytes in [&b""[..], &real] {
            assert_eq!(chunks(bytes, 100).unwrap(), (Vec::new(), 0));
        }
    }

    #[test]
    fn a_gzip_file_without_a_single_byte_was_not_copied_whole() {
        let (temp, mut file) = file(b"");
        let path = temp.path().join("x.json.gz");
        std::fs::write(&path, b"").unwrap();
        file.location = Location::Local(path);
        let error = ChunkReader::open(&file, FileId(0), 100).unwrap_err();
        assert!(error.message().contains("the data file is empty"), "{error}");
    }

    #[test]
    fn a_gzip_file_of_several_members_is_one_text() {
        let bytes = [gzip(b"one\ntw"), gzip(b""), gzip(b"o\nthree")].concat();
        assert_eq!(chunks(&bytes, 100).unwrap(), (owned(&[(1, "one\ntwo\nthree")]), 3));
    }

    #[test]
    fn bytes_after_the_last_member_are_an_error_that_says_where() {
        let good = gzip(b"one\n");
        for garbage in [&b"\0\0\0\0"[..], b"x", b"\x1f"] {
            let error = chunks(&[&good, garbage].concat(), 100).unwrap_err();
            let place = format!("goes on after the end of its gzip stream at compressed byte {}", good.len());
            assert!(error.message().ends_with(&place), "{error}");
        }
    }

    #[test]
    fn a_cut_gzip_stream_is_an_error_wherever_it_is_cut() {
        let good = gzip(b"one\ntwo\nthree\n");
        for length in 2..good.len() {
            let error = chunks(&good[..length], 4).unwrap_err();
            let place = format!("ends in the middle of the gzip stream at compressed byte {length}");
            assert!(error.message().ends_with(&place), "{length}: {error}");
            assert!(error.to_string().contains("x.json"));
        }
    }

    #[test]
    fn a_damaged_gzip_stream_is_an_error() {
        let mut bytes = gzip(b"one\ntwo\nthree\n");
        let checksum = bytes.len() - 8;
        bytes[checksum] ^= 1;
        let error = chunks(&bytes, 100).unwrap_err();
        assert!(error.message().contains("damaged gzip stream at compressed byte"), "{error}");
    }

    #[test]
    fn zstd_is_refused_by_name() {
        let error = chunks(b"\x28\xb5\x2f\xfd....", 100).unwrap_err();
        assert!(error.message().contains("zstd"), "{error}");
    }

    #[test]
    fn the_md5_of_the_stored_bytes_is_compared_at_the_end() {
        let bytes = gzip(b"one\ntwo\n");
        let (_temp, mut file) = file(&bytes);
        file.md5 = Some(Md5::digest(&bytes).into());
        let mut reader = ChunkReader::open(&file, FileId(0), 100).unwrap();
        assert!(reader.next().unwrap().is_some() && reader.next().unwrap().is_none());

        file.md5 = Some([0; 16]);
        let mut reader = ChunkReader::open(&file, FileId(0), 100).unwrap();
        let error = reader.next().unwrap_err();
        assert!(error.to_string().contains("expected: md5 AAAAAAAAAAAAAAAAAAAAAA=="), "{error}");
        assert!(reader.next().unwrap().is_none(), "an error is given once");
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let (_temp, file) = file(&[b"ok\n".as_slice(), &[b'x'; 5000]].concat());
        let mut reader = ChunkReader::open(&file, FileId(0), 100).unwrap();
        reader.max_line_bytes = 1000;
        assert_eq!(reader.next().unwrap().unwrap().bytes, b"ok\n");
        let error = reader.next().unwrap_err().to_string();
        assert!(error.contains("line: 2") && error.contains("at most 1000 bytes"), "{error}");
    }

    #[test]
    fn a_reader_can_be_handed_to_a_thread() {
        fn is_send<T: Send>() {}
        is_send::<ChunkReader>();
    }
}
