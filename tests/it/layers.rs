//! The house rules that a compiler does not check: who may name whom, and who may start threads.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::root;

/// A module may name itself and these. `model` and `error` are one layer: a batch holds the reasons of its refused rows.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("model", &["error"]),
    ("error", &["model"]),
    ("document", &["error"]),
    ("aws", &["error"]),
    ("store", &["error", "aws"]),
    ("limits", &["model", "error"]),
    ("codec", &["model", "error"]),
    ("shape", &["model", "error"]),
    ("expr", &["model", "error", "document"]),
    ("ops", &["model", "error", "document", "expr", "limits"]),
    ("source", &["model", "error", "limits", "store"]),
    ("sink", &["model", "error", "limits", "codec", "shape", "store", "aws"]),
    ("spec", &["model", "error", "document"]),
    ("plan", &["model", "error", "document", "limits", "codec", "expr", "ops", "spec"]),
    ("proof", &["model", "error", "limits", "codec", "plan"]),
    ("exec", &["model", "error", "limits", "codec", "shape", "expr", "source", "sink", "plan", "proof", "store", "aws"]),
];

/// Words, and the only places that may hold them.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("rayon", &["exec/"]),
    ("thread::spawn", &["exec/"]),
    ("thread::scope", &["exec/"]),
    ("crossbeam", &["exec/"]),
    ("async ", &["aws.rs", "aws/", "sink/batch_write"]),
    (".await", &["aws.rs", "aws/", "sink/batch_write"]),
    ("block_on", &["aws.rs", "aws/", "sink/batch_write"]),
    ("rustix", &["store/"]),
    ("clap", &["cli/"]),
    ("indicatif", &["cli/"]),
    ("println!", &["cli/"]),
    ("std::env", &["cli/"]),
    ("process::exit", &[]),
];

/// The lines of a source that are code of the program: no comments, nothing from the tests at its end.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source can be read");
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn sources() -> Vec<(String, PathBuf)> {
    let src = root().join("src");
    let mut found = Vec::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the sources can be listed") {
            let path = entry.expect("the sources can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
                let name = path.strip_prefix(&src).expect("it is below src").to_str().expect("paths are UTF-8").to_owned();
                found.push((name, path));
            }
        }
    }
    found.sort();
    assert!(found.len() > 20, "the sources were not found");
    found
}

#[test]
fn a_module_names_only_the_layers_it_may() {
    let mut wrong = Vec::new();
    for (name, path) in sources() {
        let module = name.split(['/', '.']).next().expect("a path has a first part");
        if matches!(module, "lib" | "main" | "cli") {
            continue;
        }
        let Some((_, allowed)) = MAY_NAME.iter().find(|(known, _)| *known == module) else {
            panic!("{name}: module `{module}` has no layer; add it to the table");
        };
        for part in code(&path).split("crate::").skip(1) {
            let named: String = part.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect();
            if named != module && !named.is_empty() && !allowed.contains(&named.as_str()) {
                wrong.push(format!("{name} names {named}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn threads_and_io_of_the_terminal_stay_where_they_belong() {
    let mut wrong = Vec::new();
    for (name, path) in sources() {
        let code = code(&path);
        for (word, places) in ONLY_IN {
            if code.contains(word) && !places.iter().any(|place| name.starts_with(place)) {
                wrong.push(format!("{name} has `{word}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_source_says_at_its_head_what_it_is_for() {
    for (name, path) in sources() {
        let text = fs::read_to_string(path).expect("a source can be read");
        assert!(text.starts_with("//! "), "{name} does not start with //!");
    }
}

#[test]
fn the_top_level_holds_what_was_agreed() {
    let expected = ["Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "pipelines", "sample_exports", "src", "tests"];
    let mut found: Vec<_> = fs::read_dir(root())
        .expect("the repository can be listed")
        .map(|entry| entry.expect("the repository can be listed").file_name().into_string().expect("names are UTF-8"))
        .filter(|name| !name.starts_with('.') && !["target", "out"].contains(&name.as_str()))
        .collect();
    found.sort();
    assert_eq!(found, expected);
}
