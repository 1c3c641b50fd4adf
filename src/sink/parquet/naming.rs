//! Names of columns and of the fields of structs: no two of them one, and as an engine takes them where the run writes for one.
//!
//! What an attribute is called stays in the metadata of its field.

use std::collections::HashSet;

use arrow::datatypes::Fields;

use super::ddl::Dialect;
use super::form::{ATTRIBUTE, Form, StructForm};

/// Names that are taken, in one schema or one struct.
pub(super) struct Names {
    dialect: Option<Dialect>,
    taken: HashSet<String>,
    /// In small letters: what nobody else may have in any case.
    reserved: HashSet<String>,
}

impl Names {
    pub(super) fn new(dialect: Option<Dialect>) -> Self {
        Self { dialect, taken: HashSet::new(), reserved: HashSet::new() }
    }

    /// Takes the name as it is; false where it is no name, or taken.
    pub(super) fn take(&mut self, name: &str) -> bool {
        (self.dialect.is_none() || self.legal(name, 0) == name) && self.insert(name)
    }

    /// Takes the name, made of what the engine takes, with as many `_` as make it different from all others.
    pub(super) fn free(&mut self, name: &str) -> String {
        let mut underscores = 0;
        loop {
            let found = self.legal(name, underscores);
            if self.insert(&found) {
                return found;
            }
            underscores += 1;
        }
    }

    /// The same for a name that no other may differ from in case alone, whatever the engine.
    pub(super) fn reserve(&mut self, name: &str) -> String {
        let found = self.free(name);
        self.reserved.insert(found.to_lowercase());
        found
    }

    fn insert(&mut self, name: &str) -> bool {
        (self.reserved.is_empty() || !self.reserved.contains(&name.to_lowercase())) && self.taken.insert(self.folded(name))
    }

    fn legal(&self, name: &str, underscores: usize) -> String {
        let end = "_".repeat(underscores);
        self.dialect.map_or_else(|| format!("{name}{end}"), |dialect| dialect.fit(&dialect.safe_name(name), &end))
    }

    /// What two names have in common that are one.
    fn folded(&self, name: &str) -> String {
        match self.dialect {
            None | Some(Dialect::ClickHouse) => name.to_owned(),
            Some(_) => name.to_lowercase(),
        }
    }
}

/// The form with the names of all fields, at any depth, as the engine takes them.
pub(super) fn renamed(form: Form, dialect: Dialect) -> Form {
    match form {
        Form::List(element, _) => Form::list_of(renamed(*element, dialect)),
        Form::Map(value, _) => Form::map_of(renamed(*value, dialect)),
        Form::Struct(form) => Form::Struct(of_struct(form, dialect)),
        other => other,
    }
}

fn of_struct(form: StructForm, dialect: Dialect) -> StructForm {
    let mut names = Names::new(Some(dialect));
    // Those that are right as they are come first.
    let as_it_is: Vec<bool> = form.attributes().map(|name| names.take(name)).collect();
    let chosen: Vec<(String, String)> = form
        .attributes()
        .zip(as_it_is)
        .map(|(attribute, taken)| (attribute.to_owned(), if taken { attribute.to_owned() } else { names.free(attribute) }))
        .collect();
    let forms: Vec<Form> = form.forms.into_iter().map(|form| renamed(form, dialect)).collect();
    let fields = chosen.into_iter().zip(&forms).map(|((attribute, name), form)| {
        let mut field = form.field(&name);
        if attribute != name {
            let mut metadata = field.metadata().clone();
            metadata.insert(ATTRIBUTE, attribute);
            field.set_metadata(metadata);
        }
        field
    });
    StructForm { fields: fields.collect::<Fields>(), forms, index: form.index }
}
