//! The command line: one file for each command, built on the library's public names only.

mod args;
mod check;
mod iam_policy;
mod inspect;
mod interrupt;
mod load;
mod progress;
mod report;
mod run;
mod schema;
mod service;
mod status;
mod undo;
mod verify;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use dynamorph::error::{Error, Kind};

use args::{Args, Command, Output};

/// Done.
const DONE: u8 = 0;
/// Ended by an error.
const FAILED: u8 = 1;
/// Wrong usage or a wrong pipeline; clap uses the same number.
const USAGE: u8 = 2;
/// Done, with rejects above the limit.
const REJECTS: u8 = 3;
/// A target is not as the pipeline says.
const DIFFERENT: u8 = 4;
/// Stopped; the same command goes on.
const STOPPED: u8 = 5;

/// Parses the command line, runs the command and gives its exit code.
pub(crate) fn main() -> ExitCode {
    let args = Args::parse();
    let output = args.output;
    let result = match &args.command {
        Command::Check(command) => check::check(&args, command),
        Command::Run(command) => run::run(&args, command),
        Command::Inspect(command) => inspect::inspect(&args, command),
        Command::Load(command) => load::load(&args, command),
        Command::IamPolicy(command) => iam_policy::iam_policy(&args, command),
        Command::Status(command) => status::status(&args, command),
        Command::Verify(command) => verify::verify(&args, command),
        Command::Undo(command) => undo::undo(&args, command),
        Command::Schema(command) => schema::schema(&args, command),
    };
    ExitCode::from(result.unwrap_or_else(|error| report_error(&error, output)))
}

/// What keeps a command from an exit code of its own.
enum Failure {
    /// An error of the library.
    Error(Error),
    /// The pipeline file is wrong; the text shows every mistake.
    Pipeline(Vec<Mistake>),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

/// A mistake in the pipeline file with its place.
#[derive(serde::Serialize)]
struct Mistake {
    file: String,
    line: usize,
    column: usize,
    message: String,
    help: Option<String>,
    #[serde(skip)]
    rendered: String,
}

fn report_error(failure: &Failure, output: Output) -> u8 {
    let (code, text, json) = match failure {
        Failure::Error(error) => {
            let context: serde_json::Map<_, _> =
                error.context().iter().map(|(name, value)| ((*name).to_owned(), serde_json::json!(value))).collect();
            let json = serde_json::json!({"ok": false, "error": {"kind": format!("{:?}", error.kind()).to_lowercase(), "message": error.message(), "context": context}});
            (code_of(error.kind()), format!("error: {error}\n"), json)
        }
        Failure::Pipeline(mistakes) => {
            let mut text: String = mistakes.iter().map(|mistake| mistake.rendered.as_str()).collect();
            let plural = if mistakes.len() == 1 { "mistake" } else { "mistakes" };
            text.push_str(&format!("{} {plural} in {}\n", mistakes.len(), mistakes.first().map_or("", |mistake| &mistake.file)));
            (USAGE, text, serde_json::json!({"ok": false, "mistakes": mistakes}))
        }
    };
    if output == Output::Json {
        drop(print(&format!("{json}\n")));
    }
    // Nobody is left to be told when stderr is closed.
    drop(std::io::stderr().write_all(text.as_bytes()));
    code
}

fn code_of(kind: Kind) -> u8 {
    match kind {
        Kind::Usage => USAGE,
        Kind::Interrupted | Kind::Unavailable => STOPPED,
        _ => FAILED,
    }
}

/// Writes to stdout. A reader that has gone, as in `| head`, is no error.
fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new(Kind::Output, "cannot write the result to stdout").caused_by(error))
        }
        _ => Ok(()),
    }
}
