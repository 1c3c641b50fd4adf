//! Which export is meant by a folder.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Kind, Result};
use crate::source::manifest::{Content, Window};
use crate::source::manifest::{LIST, Options, SUMMARY, Verify, nothing_there, read};
use crate::store::Location;

/// Which of several exports in a folder is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The full export of the latest point in time; where there is no full one, the incremental one whose window ends last.
    Latest,
    /// The one with this id, such as `01768385930622-efd1a093`.
    Id(String),
    /// The full export of the latest point in time that is not after this one; incremental ones have none.
    AsOf(Time),
}

/// A point in time as exports write it: `2026-01-14T10:18:50.622Z`, so that texts are in the order of times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(String);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Time {
    type Err = String;

    /// Reads `2026-01-14T10:18:50.622Z`; what comes after the day may be left out from the right.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        const SHAPE: &[u8] = b"0000-00-00T00:00:00.000";
        let given = text.strip_suffix('Z').unwrap_or(text);
        let lengths = [10, 16, 19, 21, 22, 23];
        let fits = |(byte, shape): (u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == *shape };
        if !lengths.contains(&given.len()) || !given.bytes().zip(SHAPE).all(fits) {
            return Err(format!("`{text}` is no time; expected UTC such as 2026-01-14T10:18:50Z or 2026-01-14"));
        }
        let rest = std::str::from_utf8(&SHAPE[given.len()..]).unwrap_or_default();
        let time = Self(format!("{given}{rest}Z"));
        if time.exists() { Ok(time) } else { Err(format!("`{text}` does not exist: there is no such day, or no such time of day")) }
    }
}

impl Time {
    /// Whether the calendar and the clock have it.
    fn exists(&self) -> bool {
        let number = |from: usize, to: usize| self.0.get(from..to).and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(u32::MAX);
        let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
        let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        (1..=days).contains(&day) && number(11, 13) < 24 && number(14, 16) < 60 && number(17, 19) < 60
    }
}

impl FromStr for Choice {
    type Err = String;

    /// Reads `latest`, `as-of TIME` or an id.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "latest" {
            return Ok(Choice::Latest);
        }
        match text.strip_prefix("as-of") {
            Some(time) => Ok(Choice::AsOf(time.trim_start_matches([' ', '=', ':']).parse()?)),
            None if text.is_empty() || text.contains('/') => {
                Err(format!("`{text}` is no export; expected latest, as-of TIME, or an export's id"))
            }
            None => Ok(Choice::Id(text.to_owned())),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Latest => f.write_str("latest"),
            Choice::Id(id) => f.write_str(id),
            Choice::AsOf(time) => write!(f, "as-of {time}"),
        }
    }
}

/// A folder that may be an export.
struct Candidate {
    folder: Location,
    finished: bool,
}

/// Checks that the export folder `location` is the one that was chosen.
pub(super) fn check_choice(location: &Location, options: &Options) -> Result<()> {
    match &options.choice {
        Some(Choice::Id(id)) if location.name() != Some(id) => {
            Err(Error::new(Kind::Usage, "the folder is another export than the chosen one").with("found", location).with("expected", id))
        }
        _ => Ok(()),
    }
}

/// The export folder below `location`, which is none itself.
pub(super) fn export(location: &Location, options: &Options, notes: &mut Vec<String>) -> Result<Location> {
    let found = candidates(location)?;
    if let Some(choice) = &options.choice {
        return choose(location, &found, choice, notes);
    }
    match found.as_slice() {
        [] if is_unfinished(location)? => Err(unfinished(location)),
        [] => Err(match location.name() {
            Some("data") if location.parent().join(SUMMARY).is_file()? => {
                Error::new(Kind::Input, "this is the data folder of an export, expected the export")
                    .with("folder", location)
                    .with("hint", format_args!("name {}", location.parent()))
            }
            Some("data") if location.parent().name() == Some("AWSDynamoDB") => {
                Error::new(Kind::Input, "this is the data folder that all incremental exports share, expected one of the exports")
                    .with("folder", location)
                    .with("hint", "name an export folder beside it; its manifest says which of the files are its own")
            }
            _ => nothing_there("there is no export in this folder", location),
        }),
        [only] if only.finished => Ok(only.folder.clone()),
        [only] => Err(unfinished(&only.folder)),
        several => Err(Error::new(Kind::Input, "there are several exports in this folder")
            .with("folder", location)
            .with("found", names(several))
            .with("hint", "name one of them, or choose with --export latest, --export ID or --export \"as-of TIME\"")),
    }
}

/// The exports in a folder or in its `AWSDynamoDB`.
fn candidates(location: &Location) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    let inner = location.join("AWSDynamoDB");
    for parent in [&inner, location] {
        // Elsewhere a folder with a `data` folder may be anything.
        let holds_exports = parent.name() == Some("AWSDynamoDB");
        for name in parent.folders()? {
            let folder = parent.join(&name);
            let finished = folder.join(SUMMARY).is_file()?;
            if finished || (holds_exports && is_unfinished(&folder)?) {
                found.push(Candidate { folder, finished });
            }
        }
    }
    Ok(found)
}

fn choose(location: &Location, found: &[Candidate], choice: &Choice, notes: &mut Vec<String>) -> Result<Location> {
    let none = |message: &str| {
        Error::new(Kind::Input, message)
            .with("folder", location)
            .with("expected", choice)
            .with("found", if found.is_empty() { "no export at all".to_owned() } else { names(found) })
    };
    if let Choice::Id(id) = choice {
        return match found.iter().find(|candidate| candidate.folder.name() == Some(id)) {
            Some(candidate) if candidate.finished => Ok(candidate.folder.clone()),
            Some(candidate) => Err(unfinished(&candidate.folder)),
            None => Err(none("there is no export of this id")),
        };
    }
    let unfinished = found.iter().filter(|candidate| !candidate.finished);
    notes.extend(unfinished.map(|candidate| format!("{} is unfinished or failed, and passed over", candidate.folder)));
    // By the point in time; the id decides between equal ones, since it grows with the start of the export.
    let mut full = Vec::new();
    let mut incremental = Vec::new();
    for candidate in found.iter().filter(|candidate| candidate.finished) {
        let (summary, _) = read::head(&candidate.folder, Verify::Off)?;
        let time = |text: Option<String>| text.and_then(|text| text.parse::<Time>().ok());
        let id = candidate.folder.name().unwrap_or_default().to_owned();
        match summary.content {
            Content::Items { export_time } => full.push((time(export_time), id, summary.table_arn, &candidate.folder)),
            Content::Changes(Window { to, .. }) => incremental.push((time(to), id, summary.table_arn, &candidate.folder)),
        }
    }
    let mut among = if full.is_empty() && *choice == Choice::Latest { incremental } else { full };
    if let Choice::AsOf(limit) = choice {
        among.retain(|(time, ..)| time.as_ref().is_some_and(|time| time <= limit));
    }
    let mut tables: Vec<_> = among.iter().map(|(_, _, table, _)| table.as_deref().unwrap_or("a table without ARN")).collect();
    tables.sort_unstable();
    tables.dedup();
    if tables.len() > 1 {
        return Err(Error::new(Kind::Input, "the exports in this folder are of several tables")
            .with("folder", location)
            .with("found", names(found))
            .with("hint", "choose with --export ID"));
    }
    let last = among.into_iter().max_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    last.map(|(_, _, _, folder)| folder.clone()).ok_or_else(|| none("there is no such export"))
}

/// What is known of the candidates, for a message.
fn names(candidates: &[Candidate]) -> String {
    let name = |candidate: &Candidate| {
        let name = candidate.folder.name().unwrap_or_default();
        match candidate.finished.then(|| read::head(&candidate.folder, Verify::Off)) {
            None => format!("{name} (unfinished)"),
            // The one that is chosen says what is wrong with it.
            Some(Err(_)) => format!("{name} (its summary cannot be read)"),
            Some(Ok((summary, _))) => format!("{name} ({})", summary.in_words()),
        }
    };
    candidates.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Whether the folder looks like an export but for its summary.
fn is_unfinished(folder: &Location) -> Result<bool> {
    for name in ["_started", LIST, "data"] {
        if folder.join(name).look()?.is_some() {
            return Ok(folder.join(SUMMARY).look()?.is_none());
        }
    }
    Ok(false)
}

fn unfinished(folder: &Location) -> Error {
    Error::new(Kind::Input, format!("unfinished or failed export: no {SUMMARY}"))
        .with("folder", folder)
        .with("hint", "wait until the export is COMPLETED (aws dynamodb describe-export), or copy the whole folder")
}
