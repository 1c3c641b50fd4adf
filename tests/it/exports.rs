//! Writes exports as the service does: data files in gzip, the list, the summary, and their checksums.
//!
//! Written without the library, so that it is an independent witness. Knows nothing of what the lines mean.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use md5::{Digest, Md5};

/// What the service writes for a partition without items.
pub(crate) const EMPTY_GZIP: [u8; 20] = *b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00";

/// What an export holds.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// All items, at this time.
    Items(String),
    /// What changed.
    Changes(Window),
}

/// The window of an incremental export, and its view: `NEW_IMAGE` or `NEW_AND_OLD_IMAGES`.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) view: &'static str,
}

/// An export to be written.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    pub(crate) id: String,
    /// The name of the table.
    pub(crate) table: String,
    pub(crate) table_id: String,
    /// The folder in the bucket that it was exported to. Copied files keep keys with it.
    pub(crate) prefix: Option<String>,
    pub(crate) started: String,
    pub(crate) ended: String,
    pub(crate) content: Content,
    /// `DYNAMODB_JSON` or `ION`.
    pub(crate) format: &'static str,
    pub(crate) data: Vec<Data>,
}

/// One data file, and what the list says of it.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub(crate) name: String,
    pub(crate) stored: Vec<u8>,
    pub(crate) items: usize,
    pub(crate) md5: [u8; 16],
}

impl Data {
    /// A data file of these lines.
    pub(crate) fn of(name: String, lines: &[String]) -> Self {
        Self::stored(name, if lines.is_empty() { EMPTY_GZIP.to_vec() } else { gzip(&text(lines)) }, lines.len())
    }

    /// A data file with these bytes.
    pub(crate) fn stored(name: String, stored: Vec<u8>, items: usize) -> Self {
        let md5 = Md5::digest(&stored).into();
        Self { name, stored, items, md5 }
    }
}

/// Each line with its end.
pub(crate) fn text(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// One gzip member without a time and a file name, as the service writes it.
pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).expect("a buffer takes everything");
    encoder.finish().expect("a buffer takes everything")
}

/// What lies in a `.md5` file beside these bytes.
pub(crate) fn checksum(bytes: &[u8]) -> Vec<u8> {
    BASE64.encode(Md5::digest(bytes)).into_bytes()
}

impl Export {
    /// The export folder, below the folder that the export was copied to.
    pub(crate) fn folder(&self) -> String {
        format!("AWSDynamoDB/{}", self.id)
    }

    /// The folder of the data files; all incremental exports share one.
    pub(crate) fn data_folder(&self) -> String {
        match self.content {
            Content::Items(_) => format!("{}/data", self.folder()),
            Content::Changes(_) => "AWSDynamoDB/data".to_owned(),
        }
    }

    /// The list: a line for each data file, in an order of its own.
    fn list(&self) -> String {
        let prefix = self.key_prefix();
        let line = |file: &Data| {
            format!(
                r#"{{"itemCount":{},"md5Checksum":"{}","etag":"{}-1","dataFileS3Key":"{prefix}{}/{}"}}"#,
                file.items,
                BASE64.encode(file.md5),
                hexadecimal(&Md5::digest(file.md5)),
                self.data_folder(),
                file.name,
            )
        };
        let mut lines: Vec<_> = self.data.iter().map(line).collect();
        if !lines.is_empty() {
            lines.rotate_left(1);
        }
        text(&lines)
    }

    fn summary(&self) -> String {
        let (id, table_id, folder, prefix) = (&self.id, &self.table_id, self.folder(), self.key_prefix());
        let arn = format!("arn:aws:dynamodb:eu-central-1:111122223333:table/{}", self.table);
        let s3_prefix = self.prefix.as_ref().map_or("null".to_owned(), |prefix| format!("\"{prefix}\""));
        let (version, times, billed, end) = match &self.content {
            Content::Items(time) => ("2020-06-30", format!(r#""exportTime":"{time}""#), 0, String::new()),
            Content::Changes(Window { from, to, view }) => (
                "2023-08-01",
                format!(r#""exportFromTime":"{from}","exportToTime":"{to}""#),
                // The service bills ten megabytes at least.
                10_000_000,
                format!(r#","outputView":"{view}","exportType":"INCREMENTAL_EXPORT""#),
            ),
        };
        let items: usize = self.data.iter().map(|file| file.items).sum();
        format!(
            r#"{{"version":"{version}","exportArn":"{arn}/export/{id}","startTime":"{}","endTime":"{}","tableArn":"{arn}","tableId":"{table_id}",{times},"s3Bucket":"example-exports","s3Prefix":{s3_prefix},"s3SseAlgorithm":"AES256","s3SseKmsKeyId":null,"manifestFilesS3Key":"{prefix}{folder}/manifest-files.json","billedSizeBytes":{billed},"itemCount":{items},"outputFormat":"{}"{end}}}"#,
            self.started, self.ended, self.format,
        )
    }

    fn key_prefix(&self) -> String {
        self.prefix.as_ref().map(|prefix| format!("{prefix}/")).unwrap_or_default()
    }

    /// All files but the data files: path below the folder that the export was copied to, and content.
    pub(crate) fn manifests(&self) -> Vec<(String, Vec<u8>)> {
        let folder = self.folder();
        let (list, summary) = (self.list().into_bytes(), self.summary().into_bytes());
        vec![
            (format!("{folder}/_started"), Vec::new()),
            (format!("{folder}/manifest-files.md5"), checksum(&list)),
            (format!("{folder}/manifest-files.json"), list),
            (format!("{folder}/manifest-summary.md5"), checksum(&summary)),
            (format!("{folder}/manifest-summary.json"), summary),
        ]
    }

    /// The data files in the same way.
    pub(crate) fn data_files(&self) -> impl Iterator<Item = (String, &[u8])> {
        self.data.iter().map(|file| (format!("{}/{}", self.data_folder(), file.name), file.stored.as_slice()))
    }

    /// Writes all files below `root`.
    pub(crate) fn write(&self, root: &Path) {
        for (path, bytes) in self.manifests() {
            put(&root.join(path), &bytes);
        }
        for (path, bytes) in self.data_files() {
            put(&root.join(path), bytes);
        }
    }
}

/// Writes a file and the folders above it.
pub(crate) fn put(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder can be made");
    fs::write(path, bytes).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()));
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}
