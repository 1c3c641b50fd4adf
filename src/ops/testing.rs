//! What the tests of all steps have in common: a step and an item as the pipeline file writes them, and what becomes of the item.

use crate::document::Document;
use crate::error::Diagnostics;
use crate::model::{Arena, Batch, FileId, Item, Origin, Raw, Row};
use crate::ops::bind_steps;
use crate::ops::literal::{Literal, write_object};

/// Applies `step` to `item`, with the capture `ws` = `acme`. `expected` is an item, `dropped`, or the start of a reject's text.
#[track_caller]
pub(super) fn check(step: &str, item: &str, expected: &str) {
    let text = format!("step = {step}\nitem = {item}\n");
    let mut diagnostics = Diagnostics::new();
    let document = Document::parse(&text, &mut diagnostics);
    let fields = document.root().fields("the test", &mut diagnostics).unwrap();
    let captures = ["ws".to_owned()];
    let steps = bind_steps(&[fields.optional("step").unwrap()], &captures, &mut diagnostics);
    let item = Literal::read_attributes(fields.optional("item").unwrap(), "the item", &mut diagnostics).unwrap_or_default();
    assert!(diagnostics.is_empty(), "{}", diagnostics.render("p.toml", &text));

    let arena = Arena::new();
    let values = [Some("acme")];
    let mut batch = Batch::default();
    batch.rows.push(row(&item, &arena, &values));
    for step in &steps {
        step.apply(&mut batch);
    }
    let outcome = match (&batch.rows[..], &batch.dropped[..], &batch.refused[..]) {
        ([row], [], []) => format!("{:?}", row.item.attributes()),
        ([], [_], []) => "dropped".to_owned(),
        ([], [], [(_, reason)]) => reason.to_string(),
        _ => panic!("one item in gave other than one item out: {batch:?}"),
    };
    if expected.starts_with('{') {
        let text = format!("item = {expected}\n");
        let document = Document::parse(&text, &mut diagnostics);
        let fields = document.root().fields("the test", &mut diagnostics).unwrap();
        let expected = Literal::read_attributes(fields.optional("item").unwrap(), "the item", &mut diagnostics).unwrap();
        assert_eq!(outcome, format!("{:?}", row(&expected, &arena, &values).item.attributes()));
    } else {
        assert!(outcome.starts_with(expected), "found: {outcome}\nexpected: {expected}");
    }
}

/// Binds `step` and looks for `expected` in the mistakes as they are shown.
#[track_caller]
pub(super) fn mistakes(step: &str, expected: &str) {
    let text = format!("step = {step}\n");
    let mut diagnostics = Diagnostics::new();
    let document = Document::parse(&text, &mut diagnostics);
    let fields = document.root().fields("the test", &mut diagnostics).unwrap();
    bind_steps(&[fields.optional("step").unwrap()], &[], &mut diagnostics);
    let shown = diagnostics.render("p.toml", &text);
    assert!(!diagnostics.is_empty() && shown.contains(expected), "found: {shown}\nexpected: {expected}");
}

fn row<'a>(item: &[(String, Literal)], arena: &'a Arena, captures: &'a [Option<&'a str>]) -> Row<'a> {
    let mut built = Item::new_in(arena);
    for (name, value) in item {
        built.push(arena.alloc_str(name), value.to_value(arena));
    }
    let mut object = String::new();
    write_object(item, &mut object);
    let source: &'a str = arena.alloc_str(&object);
    Row { origin: Origin { file: FileId(0), line: 1 }, item: built, captures, source: Raw::json(source.as_bytes()), change: None, size: 0 }
}
