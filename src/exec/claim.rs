//! Output folders on this machine say for which run their unfinished files are, so that a run never goes on with those of another one.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::exec::options::{Destination, Options};
use crate::store::{OutputFolder, UNFINISHED, write_atomically};

/// The file that says it, among the unfinished ones.
const CLAIM: &str = ".run";

/// The folders whose files have names that another run may give to its own.
fn folders(options: &Options) -> impl Iterator<Item = &Path> {
    options.destinations.iter().filter_map(|destination| match destination {
        #[cfg(feature = "parquet")]
        Destination::Parquet(OutputFolder::Local(dir)) => Some(dir.as_path()),
        Destination::Import(OutputFolder::Local(dir)) | Destination::Batch(dir) => Some(dir.as_path()),
        #[cfg_attr(
            not(any(feature = "iceberg", feature = "s3", feature = "dynamodb")),
            expect(unreachable_patterns, reason = "there are no others")
        )]
        _ => None,
    })
}

/// Takes the folders for the run of this name: a unit of it is about to be done.
pub(super) fn claim(options: &Options, run: &str) -> Result<()> {
    folders(options).try_for_each(|dir| write_atomically(&dir.join(UNFINISHED).join(CLAIM), run.as_bytes()))
}

/// Checks that the folders are still those of the run that goes on. `publishing`: it may have published its files already.
///
/// # Errors
/// Kind `Usage` when another run has used one since, or it was emptied.
pub(super) fn check(options: &Options, run: &str, publishing: bool) -> Result<()> {
    for dir in folders(options) {
        let claim = dir.join(UNFINISHED).join(CLAIM);
        let (of_others, gone) = match fs::read(&claim) {
            Ok(found) => (found != run.as_bytes(), false),
            Err(error) if error.kind() == ErrorKind::NotFound => (false, !publishing),
            Err(error) => {
                return Err(Error::new(Kind::Output, "cannot look into the output folder").with("file", claim.display()).caused_by(error));
            }
        };
        if of_others || gone {
            return Err(Error::new(Kind::Usage, "the unfinished files of the stopped run are not in the output folder any more")
                .with("folder", dir.display())
                .with(
                    "found",
                    if of_others { "those of another run" } else { "none: another run has published there since, or they were removed" },
                )
                .with("hint", "begin anew with --restart, and name another folder where the other run's files are to stay"));
        }
    }
    Ok(())
}
