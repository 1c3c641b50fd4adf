//! Line-aligned pieces of a data file. Knows line ends and how records lie in a file; knows nothing of items.

use std::io::Read;

use crate::error::{Error, Kind, Result};
use crate::limits::counted;
use crate::model::{FileId, Format, Origin};
use crate::source::frame::{Framer, Miscounted};
use crate::source::inflate::Text;
use crate::source::manifest::DataFile;
use crate::source::sniff::{self, Shape};
use crate::source::turns::Turns;
use crate::source::{Chunk, Lines};

/// The longest line, unless told otherwise. An item of 400 KB takes some 4 MB as JSON, in theory 18 MB; what is longer is no item.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Text in which elements are found is read in pieces of this many bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads one data file from its start to its end and cuts it into [`Chunk`]s of whole lines.
///
/// What the file is, its first bytes say, not its name: gzip or zstd (of one or more members or frames) or plain text, and in the text
///
/// - one record a line, in JSON or Ion; lines count from 1, empty ones too;
/// - or JSON documents one after the other: arrays of records, pages of a scan (`{"Items":[…],…}`), request files
///   (`{"TABLE":[{"PutRequest":…},…]}`), and records that go over several lines. Each element becomes a line, without the blanks between
///   its tokens; those of a page get `{"Item":…}` around them. The number of a line is then that of the element in the file, from 1.
///
/// A byte-order mark at the start is skipped. Memory: 320 KiB of input, one chunk, and the start of the next one, which a long line
/// makes longer; for zstd, the window of a frame besides, 128 MiB at the most.
pub struct ChunkReader {
    id: FileId,
    chunk_bytes: usize,
    max_line_bytes: usize,
    text: Text,
    way: Way,
    /// Whole lines given out.
    lines: u64,
    /// Nothing more will come: the end was reached, or an error was given.
    done: bool,
}

/// How lines come out of the text.
enum Way {
    /// They are there.
    Lines {
        format: Format,
        lines: Lines,
        /// What was read beyond the last cut: the start of a line.
        rest: Vec<u8>,
    },
    /// They are made of the elements of documents.
    Elements {
        framer: Box<Framer>,
        piece: Vec<u8>,
        /// How much of the piece was used.
        used: usize,
    },
}

impl ChunkReader {
    /// Opens `file` and looks at its first bytes. Chunks have about `chunk_bytes`; a longer line makes a longer chunk.
    ///
    /// # Errors
    /// Kind `Input`, with the path, when the file cannot be opened or read, or its first bytes are those of a kind that is not read.
    pub fn open(file: &DataFile, id: FileId, chunk_bytes: usize) -> Result<Self> {
        Self::new(file.location.open(&file.facts)?, file, id, chunk_bytes)
    }

    /// As [`open`](Self::open), of a file that is open.
    fn new(opened: Box<dyn Read + Send>, file: &DataFile, id: FileId, chunk_bytes: usize) -> Result<Self> {
        let DataFile { location, md5, name: _, items: _, facts: _ } = file;
        let mut text = Text::new(opened, location.clone(), *md5)?;
        let is_compressed = text.is_compressed();
        let start = text.look(sniff::LOOK)?;
        let (shape, skip) = sniff::text(start).map_err(|foreign| foreign.into_error(location, is_compressed))?;
        let way = match shape {
            Shape::Lines(format) => Way::Lines { format, lines: sniff::lines(&start[skip..], format), rest: Vec::new() },
            Shape::Documents => {
                let framer = Box::new(Framer::new(MAX_LINE_BYTES));
                Way::Elements { framer, piece: Vec::with_capacity(PIECE_BYTES), used: 0 }
            }
        };
        text.skip(skip);
        Ok(Self { id, chunk_bytes: chunk_bytes.max(1), max_line_bytes: MAX_LINE_BYTES, text, way, lines: 0, done: false })
    }

    /// Takes a line of more than `bytes` for an error, in place of one of more than [`MAX_LINE_BYTES`].
    #[must_use]
    pub fn with_max_line(mut self, bytes: usize) -> Self {
        self.max_line_bytes = bytes;
        if let Way::Elements { framer, .. } = &mut self.way {
            framer.longest = bytes;
        }
        self
    }

    /// Takes turns with others while it decompresses, where there are some.
    #[must_use]
    pub fn with_turns(mut self, turns: Option<Turns>) -> Self {
        self.text.take_turns(turns);
        self
    }

    /// The next whole lines; `None` after the last. Empty lines are given like all others, so that numbers of lines stay true.
    ///
    /// # Errors
    /// Kind `Input`, with the path: the file cannot be read, is cut or damaged, has another MD5 than the manifest says, or has a line
    /// that is too long. After an error there is nothing more.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would go on after an error; this is read with `while let Some(..) = reader.next()?`"
    )]
    pub fn next(&mut self) -> Result<Option<Chunk>> {
        if self.done {
            return Ok(None);
        }
        let chunk = match self.way {
            Way::Lines { .. } => self.read_lines(),
            Way::Elements { .. } => self.read_elements(),
        };
        self.done |= chunk.is_err();
        chunk
    }

    fn read_lines(&mut self) -> Result<Option<Chunk>> {
        let Way::Lines { format, lines, rest } = &mut self.way else { return Ok(None) };
        let (format, lines) = (*format, *lines);
        let mut bytes = Vec::with_capacity(self.chunk_bytes + rest.len());
        bytes.append(rest);
        loop {
            // What is there already has no line end: it was searched in the last round, or is the rest of a cut.
            let searched = bytes.len();
            if bytes.capacity() - bytes.len() < self.chunk_bytes {
                // A long line doubles the room again and again, but never beyond what a line may have: decompression fills all of it.
                let allowed = self.max_line_bytes.saturating_sub(bytes.len()).saturating_add(self.chunk_bytes);
                bytes.reserve_exact(bytes.len().clamp(self.chunk_bytes, allowed));
            }
            let target = bytes.len() + self.chunk_bytes;
            while bytes.len() < target {
                if !self.text.read(&mut bytes, target)? {
                    self.done = true;
                    return if bytes.is_empty() { Ok(None) } else { self.cut(format, lines, bytes).map(Some) };
                }
            }
            if let Some(last) = memchr::memrchr(b'\n', &bytes[searched..]) {
                rest.extend_from_slice(&bytes[searched + last + 1..]);
                bytes.truncate(searched + last + 1);
                return self.cut(format, lines, bytes).map(Some);
            }
            if bytes.len() > self.max_line_bytes {
                return Err(self.too_long(self.lines + 1, format_args!("{} bytes without a line end", bytes.len())));
            }
        }
    }

    /// Makes a chunk of whole lines.
    fn cut(&mut self, format: Format, lines: Lines, bytes: Vec<u8>) -> Result<Chunk> {
        let first = Origin { file: self.id, line: self.lines + 1 };
        // Only a chunk that is longer itself can hold a line that is too long, which by default no chunk is.
        if bytes.len() > self.max_line_bytes {
            let mut numbered = (first.line..).zip(bytes.split(|byte| *byte == b'\n'));
            if let Some((number, line)) = numbered.find(|(_, line)| line.len() > self.max_line_bytes) {
                return Err(self.too_long(number, format_args!("{} bytes", line.len())));
            }
        }
        let unended = bytes.last().is_some_and(|last| *last != b'\n');
        self.lines += memchr::memchr_iter(b'\n', &bytes).count() as u64 + u64::from(unended);
        Ok(Chunk { first, format, lines, bytes })
    }

    fn too_long(&self, line: u64, found: std::fmt::Arguments<'_>) -> Error {
        Error::new(Kind::Input, "a line is too long to be an item")
            .with("file", self.text.location())
            .with("line", line)
            .with("expected", format_args!("at most {} bytes", self.max_line_bytes))
            .with("found", found)
            .with("hint", "--max-line SIZE allows longer ones")
    }

    fn read_elements(&mut self) -> Result<Option<Chunk>> {
        let Way::Elements { framer, piece, used } = &mut self.way else { return Ok(None) };
        let mut bytes = Vec::with_capacity(self.chunk_bytes + PIECE_BYTES);
        // A line break is given only at the end of an element.
        while bytes.len() < self.chunk_bytes || bytes.last() != Some(&b'\n') {
            if *used == piece.len() {
                piece.clear();
                *used = 0;
                if !self.text.read(piece, PIECE_BYTES)? {
                    self.done = true;
                    framer.end().map_err(|fault| fault.into_error(self.text.location()))?;
                    break;
                }
            }
            let taken = framer.read(&piece[*used..], &mut bytes, self.chunk_bytes);
            *used += taken.map_err(|fault| fault.into_error(self.text.location()))?;
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let first = Origin { file: self.id, line: self.lines + 1 };
        self.lines += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        Ok(Some(Chunk { first, format: Format::Json, lines: Lines::Elements, bytes }))
    }

    /// What the user should know of the file after its last chunk: it is the output of a scan which stopped before its end, or whose
    /// counts are others.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let Way::Elements { framer, .. } = &self.way else { return Vec::new() };
        let file = self.text.location();
        let more = framer.more().filter(|_| self.done).map(|member| {
            format!(
                "{file} ends before the scan did: its last page has a `{member}`; unless the next page is in another file, items are missing"
            )
        });
        let miscounted = framer.miscounted().map(|Miscounted { count, found, line }| {
            let found = counted(found, "item");
            format!("{file} holds a page with {found}, which ends in line {line}, whose `Count` says {count}; it was changed or cut")
        });
        more.into_iter().chain(miscounted).collect()
    }

    /// Lines given out so far, empty ones too; after the last chunk, the lines of the file.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Bytes of the file, as stored, that were read so far; for progress.
    #[must_use]
    pub fn compressed_read(&self) -> u64 {
        self.text.compressed_read()
    }
}

impl std::fmt::Debug for ChunkReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkReader").field("location", self.text.location()).field("lines", &self.lines).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
