//! The examples that a pipeline file carries: an item in, items or a reject out.

use serde_json::{Map, Value};

use crate::document::Node;
use crate::model::SourceId;
use crate::ops::literal::{Literal, write_object};
use crate::plan::bind::Binder;
use crate::plan::{Example, Expected};
use crate::spec::{ExampleSpec, OutcomeSpec};

impl<'n> Binder<'_, 'n> {
    pub(super) fn examples(&mut self) -> Vec<Example> {
        self.spec.examples.iter().enumerate().filter_map(|(at, spec)| self.example(at, spec)).collect()
    }

    fn example(&mut self, at: usize, spec: &ExampleSpec<'n>) -> Option<Example> {
        let source = match &spec.source {
            Some(word) => self.source_of_name(word),
            None if self.spec.sources.len() > 1 => {
                let names: Vec<_> = self.spec.sources.iter().filter_map(|source| source.name.as_ref().map(|name| name.text)).collect();
                let message = "the example does not say which source its item comes from";
                self.diagnostics.error_with_help(
                    spec.span.clone(),
                    message,
                    format!("add `source = \"…\"` with one of: {}", names.join(", ")),
                );
                None
            }
            None => Some(SourceId(0)),
        };
        let input = self.item(spec.item, "`item`").map(|object| format!("{{\"Item\":{object}}}"));
        let expected = match &spec.outcome {
            OutcomeSpec::Rejects(text) => Some(Expected::Reject((*text).to_owned())),
            OutcomeSpec::Dropped => Some(Expected::Items(Vec::new())),
            OutcomeSpec::Gives(given) => {
                let mut items = Vec::with_capacity(given.len());
                for given in given {
                    let used = self.used.clone();
                    let table = given.table.as_ref().map(|word| self.table(word));
                    // An example expects something of a table; it does not write to it.
                    self.used = used;
                    if let (Some(item), None | Some(Some(_))) = (self.item(given.item, "`item`"), table) {
                        items.push((table.flatten(), item));
                    }
                }
                Some(Expected::Items(items))
            }
        };
        let name = spec.name.as_ref().map_or_else(|| format!("example {}", at + 1), |name| name.text.to_owned());
        Some(Example { name, span: spec.span.clone(), source: source?, input: input?, expected: expected? })
    }

    /// An item as `DynamoDB` JSON on one line, from a table of typed values or from a string that holds the JSON.
    fn item(&mut self, node: Node<'n>, what: &str) -> Option<String> {
        if node.is_table() {
            let attributes = Literal::read_attributes(node, what, self.diagnostics)?;
            let mut out = String::new();
            write_object(&attributes, &mut out);
            return Some(out);
        }
        let text = node.string(&format!("{what} (a table of typed values, or DynamoDB JSON)"), self.diagnostics)?;
        match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(object) => Some(unwrapped(&object).map_or_else(
                // A line break in JSON text stands between tokens only.
                || text.replace(['\n', '\r'], " ").trim().to_owned(),
                ToString::to_string,
            )),
            Err(error) => {
                let message = format!("{what} is not an item in DynamoDB JSON: {error}");
                self.diagnostics.error_with_help(node.span(), message, "{ \"PK\": { \"S\": \"WS#acme\" }, … }");
                None
            }
        }
    }
}

/// The item in `{"Item":{…}}`, where the object is that and not an item with an attribute named `Item`.
fn unwrapped(object: &Map<String, Value>) -> Option<&Value> {
    let inner = object.get("Item").filter(|_| object.len() == 1)?;
    inner.as_object()?.values().all(Value::is_object).then_some(inner)
}
