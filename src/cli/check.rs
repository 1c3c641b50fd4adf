//! `dynamorph check`: every mistake of a pipeline file at once.

use std::path::Path;

use dynamorph::error::diagnostic::Place;
use dynamorph::error::{Diagnostics, Error, Kind};
use dynamorph::{Plan, check_examples};

use crate::cli::args::{Args, Check, Output};
use crate::cli::{DONE, Failure, Mistake, print};

pub(crate) fn check(args: &Args, command: &Check) -> Result<u8, Failure> {
    let plan = load(&command.pipeline)?;
    let [entities, tables, examples] = [plan.entities().len(), plan.targets().tables.len(), plan.examples().len()];
    match args.output {
        Output::Json => {
            print(&format!("{}\n", serde_json::json!({"ok": true, "entities": entities, "tables": tables, "examples": examples})))?;
        }
        Output::Text => {
            if args.verbose > 0 {
                print(&format!("{}\n", plan.explain()))?;
            }
            let counted = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
            print(&format!(
                "{}: fine; {}, {}, {}\n",
                command.pipeline.display(),
                counted(entities, "entity", "entities"),
                counted(tables, "table", "tables"),
                if examples == 0 {
                    "but no example shows what it does".to_owned()
                } else {
                    counted(examples, "example passes", "examples pass")
                },
            ))?;
        }
    }
    Ok(DONE)
}

/// Reads and binds a pipeline file and runs its examples.
pub(crate) fn load(path: &Path) -> Result<Plan, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::new(Kind::Usage, "cannot read the pipeline file").with("file", path.display()).caused_by(error))?;
    let plan = Plan::from_toml(&text).map_err(|diagnostics| Failure::Pipeline(mistakes(path, &text, &diagnostics)))?;
    let mut diagnostics = Diagnostics::new();
    for failure in check_examples(&plan) {
        diagnostics.error(failure.span, format!("example `{}`: {}", failure.name, failure.message));
    }
    if diagnostics.is_empty() { Ok(plan) } else { Err(Failure::Pipeline(mistakes(path, &text, &diagnostics))) }
}

fn mistakes(path: &Path, text: &str, diagnostics: &Diagnostics) -> Vec<Mistake> {
    let file = path.display().to_string();
    diagnostics
        .sorted()
        .into_iter()
        .map(|diagnostic| {
            let place = Place::of(&diagnostic.span, text);
            Mistake {
                file: file.clone(),
                line: place.line,
                column: place.column,
                message: diagnostic.message.clone(),
                help: diagnostic.help.clone(),
                rendered: diagnostic.render(&file, text),
            }
        })
        .collect()
}
