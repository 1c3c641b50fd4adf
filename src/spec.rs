//! The pipeline file as written: which fields there are and what shape they have, each with its place.
//!
//! Not for what names mean: whether a table, an entity or an attribute exists is decided when the plan is bound.

use crate::document::{Fields, Named, Node, unknown};
use crate::error::{Diagnostics, Span, nearest};
use crate::model::declared::{COLUMN_TYPES, COLUMNS};
use crate::model::{Billing, ColumnType, KeyType, Mixed};

/// The most bytes the name of a key attribute may have (AWS, "Naming rules": 255).
const KEY_NAME_BYTES: usize = 255;

/// A text of the file with its place.
#[derive(Clone, Debug)]
pub(crate) struct Word<'n> {
    pub(crate) text: &'n str,
    pub(crate) span: Span,
}

/// The whole file. Parts that could not be read are left out; a mistake was reported for each.
#[derive(Debug, Default)]
pub(crate) struct PipelineSpec<'n> {
    pub(crate) sources: Vec<SourceSpec<'n>>,
    pub(crate) tables: Vec<TableSpec<'n>>,
    pub(crate) entities: Vec<EntitySpec<'n>>,
    pub(crate) unclassified: Option<UnclassifiedSpec<'n>>,
    pub(crate) examples: Vec<ExampleSpec<'n>>,
    pub(crate) keep_replication: bool,
}

/// `[source]`, or one `[source.NAME]`.
#[derive(Debug)]
pub(crate) struct SourceSpec<'n> {
    pub(crate) name: Option<Word<'n>>,
    pub(crate) key: Option<KeySpec<'n>>,
    pub(crate) type_attribute: Option<Word<'n>>,
    pub(crate) entity: Option<Word<'n>>,
}

/// `key = { partition = "…", sort = "…" }`.
#[derive(Debug)]
pub(crate) struct KeySpec<'n> {
    pub(crate) partition: Word<'n>,
    pub(crate) sort: Option<Word<'n>>,
}

impl<'n> KeySpec<'n> {
    /// The partition key's name, then the sort key's.
    pub(crate) fn words(&self) -> impl Iterator<Item = &Word<'n>> {
        std::iter::once(&self.partition).chain(self.sort.as_ref())
    }

    /// The names alone.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'n str> {
        self.words().map(|word| word.text)
    }
}

/// `[table.NAME]`.
#[derive(Debug)]
pub(crate) struct TableSpec<'n> {
    pub(crate) name: Word<'n>,
    pub(crate) key: Option<KeySpec<'n>>,
    pub(crate) types: Vec<(Word<'n>, KeyType)>,
    pub(crate) type_attribute: Option<Word<'n>>,
    pub(crate) indexes: Vec<IndexSpec<'n>>,
    pub(crate) billing: Billing,
    pub(crate) tags: Vec<(&'n str, &'n str)>,
}

/// `[table.NAME.index.INDEX]`.
#[derive(Debug)]
pub(crate) struct IndexSpec<'n> {
    pub(crate) name: Word<'n>,
    pub(crate) key: Option<KeySpec<'n>>,
    pub(crate) types: Vec<(Word<'n>, KeyType)>,
}

/// `[entity.NAME]`.
#[derive(Debug)]
pub(crate) struct EntitySpec<'n> {
    pub(crate) name: Word<'n>,
    pub(crate) aliases: Vec<Word<'n>>,
    pub(crate) matches: Vec<Named<'n>>,
    pub(crate) classify: Option<Node<'n>>,
    pub(crate) own: OutputSpec<'n>,
    pub(crate) emits: Vec<OutputSpec<'n>>,
    pub(crate) parquet: ParquetSpec<'n>,
}

/// `[entity.NAME.parquet]`: what is said of the columns of attributes.
#[derive(Debug, Default)]
pub(crate) struct ParquetSpec<'n> {
    pub(crate) types: Vec<(Word<'n>, ColumnType)>,
    pub(crate) names: Vec<(Word<'n>, Word<'n>)>,
    pub(crate) strict: bool,
    /// Of all attributes of which nothing else is said.
    pub(crate) mixed: Mixed,
    pub(crate) mixed_of: Vec<(Word<'n>, Mixed)>,
    pub(crate) nulls: NullsSpec<'n>,
    pub(crate) columns: Option<usize>,
    pub(crate) rest: Vec<Word<'n>>,
    pub(crate) order: Vec<Word<'n>>,
    pub(crate) sort: Vec<Word<'n>>,
    pub(crate) partition: Vec<Word<'n>>,
}

/// `nulls = true`, or the attributes.
#[derive(Debug)]
pub(crate) enum NullsSpec<'n> {
    All,
    Of(Vec<Word<'n>>),
}

impl Default for NullsSpec<'_> {
    fn default() -> Self {
        Self::Of(Vec::new())
    }
}

/// The way out of an entity, its own or one `[[entity.NAME.emit]]`.
#[derive(Debug)]
pub(crate) struct OutputSpec<'n> {
    pub(crate) entity: Option<Word<'n>>,
    pub(crate) when: Option<Node<'n>>,
    pub(crate) steps: Vec<Node<'n>>,
    pub(crate) to: Option<Word<'n>>,
    pub(crate) key: Option<TemplatesSpec<'n>>,
    pub(crate) indexes: Vec<(Word<'n>, TemplatesSpec<'n>)>,
    pub(crate) type_value: Option<Word<'n>>,
}

/// Templates by attribute name.
#[derive(Debug)]
pub(crate) struct TemplatesSpec<'n> {
    pub(crate) span: Span,
    pub(crate) templates: Vec<Named<'n>>,
}

/// What `[unclassified]` says to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Reject,
    Keep,
    Drop,
    Fail,
}

/// `[unclassified]`.
#[derive(Debug)]
pub(crate) struct UnclassifiedSpec<'n> {
    pub(crate) policy: Policy,
    pub(crate) policy_span: Span,
    pub(crate) to: Option<Word<'n>>,
}

/// `[[example]]`.
#[derive(Debug)]
pub(crate) struct ExampleSpec<'n> {
    pub(crate) span: Span,
    pub(crate) name: Option<Word<'n>>,
    pub(crate) source: Option<Word<'n>>,
    pub(crate) item: Node<'n>,
    pub(crate) outcome: OutcomeSpec<'n>,
}

/// What an example expects.
#[derive(Debug)]
pub(crate) enum OutcomeSpec<'n> {
    Gives(Vec<GivenSpec<'n>>),
    Rejects(&'n str),
    Dropped,
}

/// One item that an example gives.
#[derive(Debug)]
pub(crate) struct GivenSpec<'n> {
    pub(crate) table: Option<Word<'n>>,
    pub(crate) item: Node<'n>,
}

impl<'n> PipelineSpec<'n> {
    /// Reads the file. What cannot be read is reported and left out.
    pub(crate) fn read(root: Node<'n>, diagnostics: &mut Diagnostics) -> Self {
        let mut spec = Self::default();
        let Some(fields) = root.fields("the pipeline file", diagnostics) else {
            return spec;
        };
        if let Some(node) = fields.required("version", diagnostics)
            && let Some(version) = node.integer("`version`", diagnostics)
            && version != 1
        {
            diagnostics.error_with_help(node.span(), format!("unknown version: {version}"), "this program reads version 1");
        }
        if let Some(node) = fields.required("source", diagnostics) {
            spec.sources = read_sources(node, diagnostics);
        }
        spec.tables = read_named(fields.optional("table"), "table", TableSpec::read, diagnostics);
        spec.entities = read_named(fields.optional("entity"), "entity", EntitySpec::read, diagnostics);
        spec.unclassified = fields.optional("unclassified").and_then(|node| UnclassifiedSpec::read(node, diagnostics));
        if let Some(node) = fields.optional("example") {
            let examples = node.array("`example`", diagnostics).unwrap_or_default();
            spec.examples = examples.into_iter().filter_map(|node| ExampleSpec::read(node, diagnostics)).collect();
        }
        if let Some(options) = fields.optional("options").and_then(|node| node.fields("[options]", diagnostics)) {
            spec.keep_replication = options
                .optional("keep_replication_attributes")
                .and_then(|node| node.boolean("`keep_replication_attributes`", diagnostics))
                .unwrap_or(false);
            options.finish(diagnostics);
        }
        fields.finish(diagnostics);
        spec
    }
}

/// `[source]` or several `[source.NAME]`.
fn read_sources<'n>(node: Node<'n>, diagnostics: &mut Diagnostics) -> Vec<SourceSpec<'n>> {
    let Some(fields) = node.fields("[source]", diagnostics) else {
        return Vec::new();
    };
    let all = fields.all();
    // A plain `[source]` has a field that is no table, or a table that is a key. Everything else is a list of sources.
    let plain = all.is_empty()
        || all.iter().any(|named| !named.value.is_table() || named.value.has("partition"))
        || all.iter().all(|named| nearest(named.name, ["key"]).is_some() && !named.value.has("key"));
    if plain {
        return vec![SourceSpec::read(None, &fields, diagnostics)];
    }
    all.into_iter()
        .filter_map(|named| {
            let fields = named.value.fields(&format!("[source.{}]", named.name), diagnostics)?;
            let name = Word { text: named.name, span: named.name_span };
            Some(SourceSpec::read(Some(name), &fields, diagnostics))
        })
        .collect()
}

impl<'n> SourceSpec<'n> {
    fn read(name: Option<Word<'n>>, fields: &Fields<'n>, diagnostics: &mut Diagnostics) -> Self {
        let key = fields.required("key", diagnostics).and_then(|node| KeySpec::read(node, diagnostics));
        let type_attribute = fields.optional("type").and_then(|node| word(node, "`type`", diagnostics));
        let entity = fields.optional("entity").and_then(|node| word(node, "`entity`", diagnostics));
        fields.report_unknown(diagnostics);
        Self { name, key, type_attribute, entity }
    }
}

impl<'n> KeySpec<'n> {
    fn read(node: Node<'n>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let fields = node.fields("`key`", diagnostics)?;
        let partition = fields.required("partition", diagnostics).and_then(|node| key_name(node, "`partition`", diagnostics));
        let sort = fields.optional("sort").and_then(|node| key_name(node, "`sort`", diagnostics));
        fields.finish(diagnostics);
        let partition = partition?;
        if let Some(sort) = &sort
            && sort.text == partition.text
        {
            diagnostics
                .error(sort.span.clone(), format!("the sort key `{}` is the partition key too; they must be two attributes", sort.text));
        }
        Some(Self { partition, sort })
    }
}

impl<'n> TableSpec<'n> {
    fn read(name: Word<'n>, fields: &Fields<'n>, diagnostics: &mut Diagnostics) -> Self {
        check_table_name("a table", &name, diagnostics);
        let key = fields.required("key", diagnostics).and_then(|node| KeySpec::read(node, diagnostics));
        let types = read_types(fields, diagnostics);
        let type_attribute = fields.optional("type").and_then(|node| word(node, "`type`", diagnostics));
        let indexes = read_named(fields.optional("index"), &format!("table.{}.index", name.text), IndexSpec::read, diagnostics);
        let billing = fields.optional("billing").and_then(|node| read_billing(node, diagnostics)).unwrap_or_default();
        let tags = fields.optional("tags").map(|node| read_tags(node, diagnostics)).unwrap_or_default();
        Self { name, key, types, type_attribute, indexes, billing, tags }
    }
}

impl<'n> IndexSpec<'n> {
    fn read(name: Word<'n>, fields: &Fields<'n>, diagnostics: &mut Diagnostics) -> Self {
        check_table_name("an index", &name, diagnostics);
        let key = fields.required("key", diagnostics).and_then(|node| KeySpec::read(node, diagnostics));
        let types = read_types(fields, diagnostics);
        Self { name, key, types }
    }
}

/// `billing = "on-demand"` or `billing = { read = 5, write = 5 }`.
fn read_billing(node: Node<'_>, diagnostics: &mut Diagnostics) -> Option<Billing> {
    const HELP: &str = "billing = \"on-demand\", or billing = { read = 5, write = 5 } in units a second";
    if let Some(text) = node.text() {
        if text != "on-demand" {
            diagnostics.error_with_help(node.span(), format!("unknown billing: `{text}`"), HELP);
        }
        return None;
    }
    if !node.is_table() {
        diagnostics.error_with_help(node.span(), format!("`billing` is {}", node.kind()), HELP);
        return None;
    }
    let fields = node.fields("`billing`", diagnostics)?;
    let mut units = |name: &'static str| {
        let node = fields.required(name, diagnostics)?;
        let number = node.integer(&format!("`{name}`"), diagnostics)?;
        let units = u32::try_from(number).ok().filter(|units| *units > 0);
        if units.is_none() {
            diagnostics.error_with_help(node.span(), format!("`{name}` is {number}"), "a table has at least 1 unit a second");
        }
        units
    };
    let (read, write) = (units("read"), units("write"));
    fields.finish(diagnostics);
    Some(Billing::Provisioned { read: read?, write: write? })
}

/// `tags = { team = "x" }`, with the limits of the service (AWS, "Tagging restrictions in `DynamoDB`").
fn read_tags<'n>(node: Node<'n>, diagnostics: &mut Diagnostics) -> Vec<(&'n str, &'n str)> {
    const MOST: usize = 50;
    let Some(fields) = node.fields("`tags`", diagnostics) else { return Vec::new() };
    let allowed = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c.is_whitespace() || "+-=._:/@".contains(c));
    let mut tags = Vec::new();
    for named in fields.all() {
        let Some(value) = named.value.string(&format!("the tag `{}`", named.name), diagnostics) else { continue };
        let reserved = named.name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("aws:"));
        if !(1..=128).contains(&named.name.chars().count()) || !allowed(named.name) || reserved {
            let help = "1 to 128 letters, digits, blanks and + - = . _ : / @, not starting with aws:";
            diagnostics.error_with_help(named.name_span.clone(), format!("`{}` cannot be the name of a tag", named.name), help);
        }
        if value.chars().count() > 256 || !allowed(value) {
            let help = "at most 256 letters, digits, blanks and + - = . _ : / @";
            diagnostics.error_with_help(named.value.span(), format!("`{value}` cannot be the value of a tag"), help);
        }
        tags.push((named.name, value));
    }
    if tags.len() > MOST {
        diagnostics.error(node.span(), format!("a table has at most {MOST} tags, these are {}", tags.len()));
    }
    tags
}

/// `types = { Detail = "N" }`.
fn read_types<'n>(fields: &Fields<'n>, diagnostics: &mut Diagnostics) -> Vec<(Word<'n>, KeyType)> {
    let Some(types) = fields.optional("types").and_then(|node| node.fields("`types`", diagnostics)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for named in types.all() {
        let Some(text) = named.value.string(&format!("the type of `{}`", named.name), diagnostics) else {
            continue;
        };
        let kind = match text {
            "S" => KeyType::S,
            "N" => KeyType::N,
            "B" => KeyType::B,
            _ => {
                let message = format!("`{text}` is no type of a key");
                diagnostics.error_with_help(named.value.span(), message, "a key attribute is \"S\", \"N\" or \"B\"");
                continue;
            }
        };
        found.push((Word { text: named.name, span: named.name_span }, kind));
    }
    found
}

impl<'n> EntitySpec<'n> {
    fn read(name: Word<'n>, fields: &Fields<'n>, diagnostics: &mut Diagnostics) -> Self {
        let aliases = fields.optional("aliases").and_then(|node| node.strings("`aliases`", diagnostics)).unwrap_or_default();
        let aliases = aliases.into_iter().map(|(text, span)| Word { text, span }).collect();
        let matches = fields.optional("match").and_then(|node| TemplatesSpec::read(node, "`match`", diagnostics));
        let classify = fields.optional("classify");
        let own = OutputSpec::read(fields, diagnostics);
        let emits = fields.optional("emit").and_then(|node| node.array("`emit`", diagnostics)).unwrap_or_default();
        let emits = emits
            .into_iter()
            .filter_map(|node| {
                let fields = node.fields(&format!("[[entity.{}.emit]]", name.text), diagnostics)?;
                let entity = fields.optional("entity").and_then(|node| word(node, "`entity`", diagnostics));
                let emit = OutputSpec { entity, ..OutputSpec::read(&fields, diagnostics) };
                fields.finish(diagnostics);
                Some(emit)
            })
            .collect();
        let parquet = fields.optional("parquet").and_then(|node| ParquetSpec::read(&name, node, diagnostics)).unwrap_or_default();
        let matches = matches.map(|matches| matches.templates).unwrap_or_default();
        Self { name, aliases, matches, classify, own, emits, parquet }
    }
}

impl<'n> ParquetSpec<'n> {
    fn read(entity: &Word<'n>, node: Node<'n>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let fields = node.fields(&format!("[entity.{}.parquet]", entity.text), diagnostics)?;
        let mut spec = Self::default();
        for named in fields.optional("types").and_then(|node| node.fields("`types`", diagnostics)).iter().flat_map(Fields::all) {
            let Some(text) = named.value.string(&format!("the type of `{}`", named.name), diagnostics) else { continue };
            match ColumnType::parse(text) {
                Some(column) => spec.types.push((Word { text: named.name, span: named.name_span }, column)),
                None => diagnostics.error_with_help(
                    named.value.span(),
                    format!("`{text}` is no type of a Parquet column"),
                    format!("a column is {COLUMN_TYPES}"),
                ),
            }
        }
        for named in fields.optional("names").and_then(|node| node.fields("`names`", diagnostics)).iter().flat_map(Fields::all) {
            let column = word(named.value, &format!("the column of `{}`", named.name), diagnostics);
            spec.names.extend(column.map(|column| (Word { text: named.name, span: named.name_span }, column)));
        }
        spec.strict = fields.optional("strict").and_then(|node| node.boolean("`strict`", diagnostics)).unwrap_or(false);
        if let Some(node) = fields.optional("mixed") {
            spec.read_mixed(node, diagnostics);
        }
        if let Some(node) = fields.optional("nulls") {
            spec.nulls = match node.truth() {
                Some(true) => NullsSpec::All,
                Some(false) => NullsSpec::default(),
                None => NullsSpec::Of(read_attributes(node, "`nulls`", diagnostics)),
            };
        }
        spec.columns = fields.optional("columns").and_then(|node| read_columns(node, diagnostics));
        spec.rest = fields.optional("rest").map(|node| read_attributes(node, "`rest`", diagnostics)).unwrap_or_default();
        spec.order = fields.optional("order").map(|node| read_attributes(node, "`order`", diagnostics)).unwrap_or_default();
        spec.partition = fields.optional("partition").map(|node| read_attributes(node, "`partition`", diagnostics)).unwrap_or_default();
        spec.sort = fields.optional("sort").map(|node| read_attributes(node, "`sort`", diagnostics)).unwrap_or_default();
        fields.finish(diagnostics);
        Some(spec)
    }

    /// `mixed = "json"`, or `mixed = { "*" = "json", addr = "split" }`.
    fn read_mixed(&mut self, node: Node<'n>, diagnostics: &mut Diagnostics) {
        let policy = |node: Node<'n>, diagnostics: &mut Diagnostics| {
            let Word { text, span } = word(node, "a policy for mixed types", diagnostics)?;
            let found = Mixed::NAMES.into_iter().find(|(name, _)| *name == text);
            if found.is_none() {
                unknown("policy for mixed types", text, &span, Mixed::NAMES.map(|(name, _)| name), diagnostics);
            }
            found.map(|(_, mixed)| mixed)
        };
        if !node.is_table() {
            self.mixed = policy(node, diagnostics).unwrap_or_default();
            return;
        }
        for named in node.fields("`mixed`", diagnostics).iter().flat_map(Fields::all) {
            match policy(named.value, diagnostics) {
                Some(mixed) if named.name == "*" => self.mixed = mixed,
                Some(mixed) => self.mixed_of.push((Word { text: named.name, span: named.name_span }, mixed)),
                None => {}
            }
        }
    }
}

/// A list of attributes, each named once.
fn read_attributes<'n>(node: Node<'n>, what: &str, diagnostics: &mut Diagnostics) -> Vec<Word<'n>> {
    let mut found: Vec<Word<'n>> = Vec::new();
    for (text, span) in node.strings(what, diagnostics).unwrap_or_default() {
        if text.is_empty() {
            diagnostics.error(span, format!("a name in {what} is empty"));
        } else if found.iter().any(|known| known.text == text) {
            diagnostics.error_with_help(span, format!("`{text}` is in {what} twice"), "take it out here");
        } else {
            found.push(Word { text, span });
        }
    }
    found
}

/// `columns = 500`.
fn read_columns(node: Node<'_>, diagnostics: &mut Diagnostics) -> Option<usize> {
    let number = node.integer("`columns`", diagnostics)?;
    let columns = usize::try_from(number).ok().filter(|columns| (1..=COLUMNS).contains(columns));
    if columns.is_none() {
        let help = format!("a dataset has 1 to {COLUMNS} columns, each field of a struct counted");
        diagnostics.error_with_help(node.span(), format!("`columns` is {number}"), help);
    }
    columns
}

impl<'n> OutputSpec<'n> {
    /// Reads the fields that an entity and an `emit` have in common; the caller reports the others.
    fn read(fields: &Fields<'n>, diagnostics: &mut Diagnostics) -> Self {
        let mut indexes = Vec::new();
        if let Some(index) = fields.optional("index").and_then(|node| node.fields("`index`", diagnostics)) {
            for named in index.all() {
                let what = format!("`index.{}`", named.name);
                if let Some(templates) = TemplatesSpec::read(named.value, &what, diagnostics) {
                    indexes.push((Word { text: named.name, span: named.name_span }, templates));
                }
            }
        }
        Self {
            entity: None,
            when: fields.optional("when"),
            steps: fields.optional("steps").and_then(|node| node.array("`steps`", diagnostics)).unwrap_or_default(),
            to: fields.optional("to").and_then(|node| word(node, "`to`", diagnostics)),
            key: fields.optional("key").and_then(|node| TemplatesSpec::read(node, "`key`", diagnostics)),
            indexes,
            type_value: fields.optional("type_value").and_then(|node| word(node, "`type_value`", diagnostics)),
        }
    }
}

impl<'n> TemplatesSpec<'n> {
    fn read(node: Node<'n>, what: &str, diagnostics: &mut Diagnostics) -> Option<Self> {
        let fields = node.fields(what, diagnostics)?;
        Some(Self { span: node.span(), templates: fields.all() })
    }
}

impl<'n> UnclassifiedSpec<'n> {
    fn read(node: Node<'n>, diagnostics: &mut Diagnostics) -> Option<Self> {
        const POLICIES: [(&str, Policy); 4] =
            [("reject", Policy::Reject), ("keep", Policy::Keep), ("drop", Policy::Drop), ("fail", Policy::Fail)];
        let fields = node.fields("[unclassified]", diagnostics)?;
        let policy = fields.required("policy", diagnostics).and_then(|node| word(node, "`policy`", diagnostics));
        let to = fields.optional("to").and_then(|node| word(node, "`to`", diagnostics));
        fields.finish(diagnostics);
        let Word { text, span } = policy?;
        let Some((_, policy)) = POLICIES.into_iter().find(|(name, _)| *name == text) else {
            unknown("policy", text, &span, POLICIES.map(|(name, _)| name), diagnostics);
            return None;
        };
        if let (Some(to), false) = (&to, policy == Policy::Keep) {
            diagnostics.error(to.span.clone(), format!("`to` belongs to the policy `keep`; with `{text}` nothing is written"));
        }
        Some(Self { policy, policy_span: span, to })
    }
}

impl<'n> ExampleSpec<'n> {
    fn read(node: Node<'n>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let fields = node.fields("[[example]]", diagnostics)?;
        let name = fields.optional("name").and_then(|node| word(node, "`name`", diagnostics));
        let source = fields.optional("source").and_then(|node| word(node, "`source`", diagnostics));
        let item = fields.required("item", diagnostics);
        let gives = fields.optional("gives");
        let rejects = fields.optional("rejects");
        let dropped = fields.optional("dropped");
        let span = fields.span();
        fields.finish(diagnostics);
        let outcome = match (gives, rejects, dropped) {
            (Some(gives), None, None) => {
                let items = gives.array("`gives`", diagnostics)?;
                if items.is_empty() {
                    diagnostics.error_with_help(
                        gives.span(),
                        "`gives` names no item",
                        "an item that is dropped is written `dropped = true`",
                    );
                }
                OutcomeSpec::Gives(items.into_iter().filter_map(|node| GivenSpec::read(node, diagnostics)).collect())
            }
            (None, Some(rejects), None) => OutcomeSpec::Rejects(word(rejects, "`rejects`", diagnostics)?.text),
            (None, None, Some(dropped)) => {
                if !dropped.boolean("`dropped`", diagnostics)? {
                    diagnostics.error(dropped.span(), "`dropped = false` says nothing; write what the item gives");
                }
                OutcomeSpec::Dropped
            }
            _ => {
                let message = "an example needs exactly one of `gives`, `rejects` and `dropped`";
                diagnostics.error_with_help(span, message, "gives = [{ table = \"docs\", item = { PK = { S = \"WS#acme\" } } }]");
                return None;
            }
        };
        Some(Self { span, name, source, item: item?, outcome })
    }
}

impl<'n> GivenSpec<'n> {
    fn read(node: Node<'n>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let fields = node.fields("an element of `gives`", diagnostics)?;
        let table = fields.optional("table").and_then(|node| word(node, "`table`", diagnostics));
        let item = fields.required("item", diagnostics);
        fields.finish(diagnostics);
        Some(Self { table, item: item? })
    }
}

/// The tables below `node` whose names are the user's own, such as all `[table.NAME]`.
fn read_named<'n, T>(
    node: Option<Node<'n>>,
    header: &str,
    read: impl Fn(Word<'n>, &Fields<'n>, &mut Diagnostics) -> T,
    diagnostics: &mut Diagnostics,
) -> Vec<T> {
    let Some(fields) = node.and_then(|node| node.fields(&format!("[{header}]"), diagnostics)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for named in fields.all() {
        if let Some(fields) = named.value.fields(&format!("[{header}.{}]", named.name), diagnostics) {
            let name = Word { text: named.name, span: named.name_span };
            if name.text.is_empty() {
                diagnostics.error(name.span.clone(), format!("a name in [{header}] is empty"));
            }
            found.push(read(name, &fields, diagnostics));
            fields.report_unknown(diagnostics);
        }
    }
    found
}

/// A string that is not empty.
fn word<'n>(node: Node<'n>, what: &str, diagnostics: &mut Diagnostics) -> Option<Word<'n>> {
    let text = node.string(what, diagnostics)?;
    if text.is_empty() {
        diagnostics.error(node.span(), format!("{what} is empty"));
        return None;
    }
    Some(Word { text, span: node.span() })
}

/// The name of a key attribute.
fn key_name<'n>(node: Node<'n>, what: &str, diagnostics: &mut Diagnostics) -> Option<Word<'n>> {
    let word = word(node, what, diagnostics)?;
    if word.text.len() > KEY_NAME_BYTES {
        let message = format!("the name of a key attribute has {} bytes, limit {KEY_NAME_BYTES}", word.text.len());
        diagnostics.error(word.span.clone(), message);
    }
    Some(word)
}

/// A table or an index has a name of 3 to 255 of `[A-Za-z0-9_.-]` (AWS, "Naming rules").
fn check_table_name(what: &str, name: &Word<'_>, diagnostics: &mut Diagnostics) {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if !(3..=255).contains(&name.text.len()) || !name.text.bytes().all(allowed) {
        let message = format!("`{}` cannot be the name of {what}: 3 to 255 of a-z A-Z 0-9 _ . - are allowed", name.text);
        diagnostics.error(name.span.clone(), message);
    }
}
