//! Mistakes in whole pipeline files, and what a right one is bound to.

use crate::exec::check_examples;
use crate::expr::{Condition, Template};
use crate::model::{Billing, ColumnType, Creation, DatasetId, KeyType, Mixed, SourceId, TableId};
use crate::plan::{Expected, Plan, Unclassified};

const HEAD: &str = "version = 1\n\n[source]\nkey = { partition = \"PK\", sort = \"SK\" }\ntype = \"EntityType\"\n\n[table.docs]\nkey = { partition = \"EntityRef\", sort = \"Detail\" }\ntype = \"EntityType\"\nindex.recent = { key = { partition = \"GSI1PK\", sort = \"GSI1SK\" } }\n\n";

const DOCUMENT: &str = "[entity.Document]\nmatch = { PK = \"WS#{ws}\", SK = \"DOC#{doc}\" }\nto = \"docs\"\nkey = { EntityRef = \"WS#{ws}\", Detail = \"DOC#{doc}\" }\n";

/// The mistakes in `text`, without the quoted lines: `line:column: message (help)`.
fn mistakes(text: &str) -> Vec<String> {
    let Err(diagnostics) = Plan::from_toml(text) else {
        return Vec::new();
    };
    let place = |at: usize| {
        let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
        format!("{}:{}", text[..at].matches('\n').count() + 1, at - start + 1)
    };
    let show = |found: &&crate::error::Diagnostic| match &found.help {
        Some(help) => format!("{}: {} ({help})", place(found.span.start), found.message),
        None => format!("{}: {}", place(found.span.start), found.message),
    };
    diagnostics.sorted().iter().map(show).collect()
}

/// A file of the usual head and `tail` has one mistake, which contains `expected`.
#[track_caller]
fn one(tail: &str, expected: &str) {
    let found = mistakes(&format!("{HEAD}{tail}"));
    assert!(found.len() == 1 && found[0].contains(expected), "expected: {expected}\nfound: {found:#?}");
}

#[test]
fn a_right_file_is_bound() {
    let plan = Plan::from_toml(&format!(
        "{HEAD}{DOCUMENT}aliases = [\"Doc\"]\nindex.recent = {{ GSI1SK = \"{{updatedAt}}\", GSI1PK = \"WS#{{ws}}\" }}\nsteps = [{{ drop = [\"legacy\"] }}]\n\n[[entity.Document.emit]]\nentity = \"Card\"\n\n[unclassified]\npolicy = \"keep\"\n"
    ))
    .unwrap();
    assert_eq!(plan.sources[0].type_attribute.as_deref(), Some("EntityType"));
    assert_eq!(plan.entities[0].captures, ["ws", "doc"]);
    let [own, emit] = &plan.entities[0].outputs[..] else { panic!("two ways out") };
    assert_eq!((own.dataset, own.table, own.type_value.as_str()), (DatasetId(0), Some(TableId(0)), "Document"));
    assert_eq!(own.indexes[0].as_ref().unwrap().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["GSI1PK", "GSI1SK"]);
    assert_eq!((emit.dataset, emit.table, emit.type_value.as_str()), (DatasetId(1), None, "Card"));
    assert_eq!(plan.targets.datasets[0].leading, ["_op", "_written_at", "EntityRef", "Detail", "GSI1PK", "GSI1SK", "EntityType"]);
    assert_eq!(plan.targets.datasets[1].leading, ["_op", "_written_at", "PK", "SK", "EntityType"]);
    // The table's key is not the source's, so unclassified items, kept as they are, fit into Parquet only.
    assert_eq!(plan.unclassified, Unclassified::Keep { dataset: DatasetId(2), table: None });
}

#[test]
fn every_mistake_is_reported_at_once_and_at_its_place() {
    let text = "version = 2\nsuorce = 1\n\n[source]\nkey = { partition = \"PK\", srot = \"SK\" }\n\n[table.docs]\nkey = { partition = \"EntityRef\", sort = \"Detail\" }\n\n[entity.Document]\nmatch = { PKK = \"WS#{ws}\" }\nsteps = [{ renmae = {} }, { drop = [\"a[\"] }]\nto = \"dosc\"\n";
    assert_eq!(
        mistakes(text),
        [
            "1:11: unknown version: 2 (this program reads version 1)",
            "2:1: unknown field in the pipeline file: `suorce` (did you mean `source`?)",
            "5:27: unknown field in `key`: `srot` (did you mean `sort`?)",
            "11:11: unknown key attribute of the source: `PKK` (did you mean `PK`?)",
            "12:12: unknown step: `renmae` (did you mean `rename`?)",
            "12:37: `[` without `]` in path `a[`",
            "13:6: unknown table: `dosc` (did you mean `docs`?)",
        ]
    );
}

#[test]
fn a_syntax_error_is_reported_alone() {
    let found = mistakes("version = 1\n[source\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("2:"), "{found:?}");
}

#[test]
fn a_key_names_exactly_the_keys_of_the_table() {
    let entity = |rest: &str| format!("[entity.Document]\nmatch = {{ PK = \"WS#{{ws}}\", SK = \"DOC#{{doc}}\" }}\n{rest}\n");
    one(
        &entity("to = \"docs\"\nkey = { EntityRef = \"WS#{ws}\" }"),
        "the key of table docs lacks `Detail` (it takes a template for each of EntityRef, Detail)",
    );
    one(
        &entity("to = \"docs\"\nkey = { EntityRef = \"a\", Detial = \"b\" }"),
        "unknown attribute in the key of table docs: `Detial` (did you mean `Detail`?)",
    );
    one(
        &entity("to = \"docs\"\nkey = { EntityRef = \"a\", Detail = \"b\", PK = \"c\" }"),
        "unknown attribute in the key of table docs: `PK`",
    );
    one(&entity("to = \"docs\""), "items keep their key PK, SK, and table docs has the key EntityRef, Detail (add `key = { … }`");
    one(&format!("{DOCUMENT}[entity.Other]\nkey = {{ PK = \"a\" }}\n"), "`key` without a table");
    one(&format!("{DOCUMENT}[entity.Other]\nindex.recent = {{ }}\n"), "`index` without a table");
}

#[test]
fn a_key_without_a_text_is_a_mistake() {
    let key = |key: &str| DOCUMENT.replace("Detail = \"DOC#{doc}\"", key);
    one(&key("Detail = \"\""), "the template of `Detail` is empty (DynamoDB takes no empty text in a key");
    one(&format!("{DOCUMENT}index.recent = {{ GSI1PK = \"a\", GSI1SK = '' }}\n"), "the template of `GSI1SK` is empty");
}

#[test]
fn of_three_thousand_entities_the_two_that_tie_are_named() {
    let entity = |name: &str, template: &str| format!("[entity.{name}]\nmatch = {{ {template} }}\n");
    for template in [
        |at: usize| format!("PK = 'WS#{{ws}}', SK = 'T{at:04}#{{id}}'"),
        |at: usize| format!("PK = 'WS#{{ws}}', SK = '{{id}}#T{at:04}'"),
        |at: usize| format!("PK = '{{team}}#T{at:04}#{{id}}'"),
    ] {
        let entities: Vec<_> = (0..3000).map(|at| entity(&format!("E{at}"), &template(at))).collect();
        let text = format!("version = 1\n[source]\nkey = {{ partition = \"PK\", sort = \"SK\" }}\n{}", entities.concat());
        // Comparing each pair of these took some twenty seconds, which everybody who runs this test would notice.
        assert_eq!(mistakes(&text), [""; 0]);
        let found = mistakes(&format!("{text}{}", entity("Late", &template(1500))));
        assert!(found.len() == 1 && found[0].contains("entities E1500 and Late can match the same key"), "{found:?}");
    }
}

/// Of two entities alone, any place in their keys that tells them apart does so; it must never be wrong.
#[test]
fn the_ties_are_those_that_a_full_comparison_of_the_templates_finds() {
    let texts = [
        "{a}#X{b}#c",
        "{a}#Xc#{b}",
        "{a}#{b}#Xc",
        "X#{a...}",
        "X#{a}",
        "{a}#X{b...}",
        "{a}#Xc{b}",
        "X{{#{a}",
        "X#{{{a}",
        "{a}#X}}",
        "{a}#X{{",
        "{a}:X:{b}",
        "{a}::X{b}",
        "{a}|X:{b}",
        "X::{a...}",
        "#X#{a}",
        "{a | pad(3)}#X#",
        "1#{a}",
        "{a}#1",
        "1:{a...}",
        "{a}",
        "{b...}",
    ];
    let template = |text: &str| Template::parse(text).unwrap();
    let mut ties = 0;
    for (at, right) in texts.iter().enumerate() {
        for left in &texts[..at] {
            let (one, two) = (template(left), template(right));
            let tie = one.literalness() == two.literalness() && one.overlaps(&two);
            let entities = format!("[entity.A]\nmatch = {{ SK = '{left}' }}\n[entity.B]\nmatch = {{ SK = '{right}' }}\n");
            assert_eq!(
                mistakes(&format!("version = 1\n[source]\nkey = {{ partition = \"PK\", sort = \"SK\" }}\n{entities}")).len(),
                usize::from(tie),
                "{left} {right}"
            );
            ties += usize::from(tie);
        }
    }
    assert!(ties >= 10, "{ties}");
}

#[test]
fn an_index_names_exactly_its_own_keys() {
    one(&format!("{DOCUMENT}index.recnet = {{ GSI1PK = \"a\" }}\n"), "unknown index of table docs: `recnet` (did you mean `recent`?)");
    one(&format!("{DOCUMENT}index.recent = {{ GSI1PK = \"a\" }}\n"), "the index recent lacks `GSI1SK`");
    let shared = "[table.notes]\nkey = { partition = \"A\" }\nindex.one = { key = { partition = \"A\", sort = \"B\" } }\nindex.two = { key = { partition = \"B\" } }\n[entity.Note]\nto = \"notes\"\nkey = { A = \"a\" }\n";
    one(&format!("{DOCUMENT}{shared}index.one = {{ A = \"a\", B = \"b\" }}\n"), "`A` has its value from the table's key");
    one(
        &format!("{DOCUMENT}{shared}index.one = {{ B = \"b\" }}\nindex.two = {{ B = \"c\" }}\n"),
        "`B` has another template in an index above",
    );
    assert_eq!(mistakes(&format!("{HEAD}{DOCUMENT}{shared}index.one = {{ B = \"b\" }}\nindex.two = {{ B = \"b\" }}\n")), [""; 0]);
}

#[test]
fn a_mistake_in_a_template_or_a_condition_is_shown_at_its_own_place() {
    let line = DOCUMENT.lines().count() + HEAD.lines().count() + 1;
    let templates = Template::parse("{a | padd(3)}").unwrap_err();
    let found = mistakes(&format!("{HEAD}{DOCUMENT}index.recent = {{ GSI1PK = \"{{a | padd(3)}}\", GSI1SK = 'x' }}\n"));
    let column = "index.recent = { GSI1PK = \"".len() + 1 + templates.at.start;
    assert!(found.len() == 1 && found[0].starts_with(&format!("{line}:{column}: ")), "{found:?}");
    let condition = Condition::parse("size(a) >").unwrap_err();
    let found = mistakes(&format!("{HEAD}{DOCUMENT}when = \"size(a) >\"\n"));
    let column = "when = \"".len() + 1 + condition.at.start;
    assert!(found.len() == 1 && found[0].starts_with(&format!("{line}:{column}: ")), "{found:?}");
}

#[test]
fn entities_cannot_be_taken_for_each_other() {
    let other = "[entity.Draft]\nmatch = { PK = \"WS#{w}\", SK = \"DOC#{d}\" }\n";
    one(&format!("{DOCUMENT}{other}"), "entities Document and Draft can match the same key, and neither is more literal");
    one(&format!("{DOCUMENT}aliases = [\"Doc\"]\n[entity.Other]\naliases = [\"Doc\"]\n"), "`Doc` is an alias of Document and of Other");
    one(&format!("{DOCUMENT}[entity.Other]\naliases = [\"Document\"]\n"), "an alias of Other and the name of another entity");
    one(&format!("{DOCUMENT}aliases = [\"Document\"]\n"), "is the entity's own name");
    one(&format!("{DOCUMENT}aliases = [\"Doc\"]\n[[entity.Document.emit]]\nentity = \"Doc\"\n"), "(write `Document`)");
    one(&format!("{DOCUMENT}[entity.Bad]\nmatch = {{ SK = \"{{a}}{{b}}\" }}\n"), "two names without a text between them");
    let same_end =
        "[entity.Copy]\nmatch = { PK = \"{w}#WS\", SK = \"{d}#x#DOC\" }\n[entity.Other]\nmatch = { PK = \"{w}#WS\", SK = \"{d}#x#DOC\" }\n";
    one(&format!("{DOCUMENT}{same_end}"), "entities Copy and Other can match the same key");
    let braces = "[entity.Copy]\nmatch = { PK = \"a{{}}{w}\", SK = \"b\" }\n[entity.Other]\nmatch = { PK = \"a{{}}{w}\", SK = \"b\" }\n";
    one(&format!("{DOCUMENT}{braces}"), "entities Copy and Other can match the same key");
    let apart = "[entity.Folder]\nmatch = { PK = \"WS#{w}\", SK = \"DIR#{d}\" }\n";
    assert_eq!(mistakes(&format!("{HEAD}{DOCUMENT}{apart}")), [""; 0]);
}

#[test]
fn tables_are_checked() {
    one(
        &format!("{DOCUMENT}[table.x]\nkey = {{ partition = \"A\" }}\n[entity.X]\nto = \"x\"\nkey = {{ A = \"a\" }}\n"),
        "`x` cannot be the name of a table",
    );
    one(&format!("{DOCUMENT}[table.notes]\nkey = {{ partition = \"A\" }}\n"), "no entity writes to table notes");
    let notes = |table: &str| {
        format!("{DOCUMENT}[entity.Note]\nto = \"notes\"\nkey = {{ A = \"a\" }}\n[table.notes]\nkey = {{ partition = \"A\" }}\n{table}\n")
    };
    one(&notes("index.i = { key = { partition = \"B\" } }"), "`i` cannot be the name of an index");
    one(&notes("types = { A = \"X\" }"), "`X` is no type of a key");
    one(&notes("types = { B = \"N\" }"), "unknown key attribute: `B`");
    one(&notes("type = \"A\""), "the type attribute `A` is a key attribute of the table too");
    one(
        &notes(
            "index.one = { key = { partition = \"B\" }, types = { B = \"N\" } }\nindex.two = { key = { partition = \"B\" }, types = { B = \"S\" } }",
        ),
        "`B` is S here and N above",
    );
    one(&notes("index.one = { key = { partition = \"B\", sort = \"B\" } }"), "the sort key `B` is the partition key too");
    let plan = Plan::from_toml(&format!("{HEAD}{}", notes("types = { A = \"N\" }"))).unwrap();
    assert_eq!(plan.targets.tables[1].key.partition.kind, KeyType::N);
    one(
        &format!("{DOCUMENT}[entity.X]\ntype_value = \"Y\"\n")
            .replace("[entity.X]", "[table.notes]\nkey = { partition = \"A\" }\n[entity.X]\nto = \"notes\"\nkey = { A = \"a\" }"),
        "`type_value` would be written nowhere",
    );
}

#[test]
fn several_sources_have_their_own_keys() {
    let head = "version = 1\n[source.users]\nkey = { partition = \"id\" }\nentity = \"User\"\n[source.orders]\nkey = { partition = \"id\", sort = \"at\" }\n";
    let tail = "[entity.User]\nmatch = { id = \"U-{user}\" }\n[entity.Order]\n";
    let plan =
        Plan::from_toml(&format!("{head}{tail}[[example]]\nsource = \"orders\"\nitem = {{ id = {{ S = \"1\" }} }}\nrejects = \"x\"\n"))
            .unwrap();
    assert_eq!(plan.sources[0].name.as_deref(), Some("users"));
    assert_eq!(plan.sources[0].entity.unwrap().index(), 0);
    assert_eq!(plan.examples[0].source, SourceId(1));
    assert_eq!(plan.targets.datasets[1].leading, ["_op", "_written_at", "id", "at"]);
    let found = mistakes(&format!("{}{tail}", head.replace("\"User\"", "\"Usre\"")));
    assert_eq!(found, ["4:10: unknown entity: `Usre` (did you mean `User`?)"]);
    let found = mistakes(&format!("{head}{tail}[[example]]\nitem = {{ }}\ndropped = true\n"));
    assert!(found.len() == 1 && found[0].contains("(add `source = \"…\"` with one of: users, orders)"), "{found:?}");
    let found = mistakes(&format!("{head}{}", tail.replace("match", "to = \"t\"\nmatch")));
    assert!(found.len() == 1 && found[0].contains("unknown table: `t`"), "{found:?}");
}

#[test]
fn a_misspelt_key_of_a_plain_source_is_no_name_of_a_source() {
    let text = |source: &str| format!("version = 1\n[source]\n{source}\n[entity.A]\n");
    assert_eq!(
        mistakes(&text("kye = { partition = \"PK\" }")),
        ["2:1: [source] lacks `key`", "3:1: unknown field in [source]: `kye` (did you mean `key`?)"]
    );
    assert_eq!(mistakes(&text("key = { partitoin = \"PK\" }")).len(), 2);
}

#[test]
fn examples_become_dynamodb_json() {
    let example = |text: &str| format!("{HEAD}{DOCUMENT}[[example]]\n{text}\n");
    let plan = Plan::from_toml(&example(
        "name = \"x\"\nitem = { PK = { S = \"WS#a\" }, n = { N = \"1.0\" } }\ngives = [{ table = \"docs\", item = '{\"A\": {\"S\": \"1\"}}' }]",
    ))
    .unwrap();
    assert_eq!(plan.examples[0].name, "x");
    assert_eq!(plan.examples[0].input, r#"{"Item":{"PK":{"S":"WS#a"},"n":{"N":"1.0"}}}"#);
    assert_eq!(plan.examples[0].expected, Expected::Items(vec![(Some(TableId(0)), r#"{"A": {"S": "1"}}"#.to_owned())]));
    let plan = Plan::from_toml(&example("item = '''\n{\"Item\":\n{\"A\":{\"S\":\"1\"}}}'''\ndropped = true")).unwrap();
    assert_eq!((plan.examples[0].name.as_str(), plan.examples[0].input.as_str()), ("example 1", r#"{"Item":{"A":{"S":"1"}}}"#));
    assert_eq!(plan.examples[0].expected, Expected::Items(Vec::new()));

    one(&format!("{DOCUMENT}[[example]]\nitem = {{ }}\n"), "exactly one of `gives`, `rejects` and `dropped`");
    one(&format!("{DOCUMENT}[[example]]\nitem = '{{'\ndropped = true\n"), "`item` is not an item in DynamoDB JSON");
    one(&format!("{DOCUMENT}[[example]]\nitem = {{ n = 1 }}\ndropped = true\n"), "(write { N = \"1\" })");
    one(&format!("{DOCUMENT}[[example]]\nitem = {{ }}\ngives = [{{ table = \"dosc\", item = {{ }} }}]\n"), "did you mean `docs`?");
}

#[test]
fn unclassified_items_have_a_policy() {
    one(&format!("{DOCUMENT}[unclassified]\npolicy = \"kep\"\n"), "unknown policy: `kep` (did you mean `keep`?)");
    one(&format!("{DOCUMENT}[unclassified]\npolicy = \"drop\"\nto = \"docs\"\n"), "`to` belongs to the policy `keep`");
    one(&format!("{DOCUMENT}[unclassified]\npolicy = \"keep\"\nto = \"docs\"\n"), "items keep their key PK, SK");
    one(&format!("{DOCUMENT}[unclassified]\npolicy = \"keep\"\n[entity.Unclassified]\n"), "an entity has this name");
    let found = mistakes("version = 1\n[source]\nkey = { partition = \"PK\" }\n");
    assert!(found.len() == 1 && found[0].contains("the pipeline has no entity"), "{found:?}");
}

/// Every pipeline file of the repository, by its name.
const PIPELINES: [(&str, &str); 6] = [
    ("docs-split-comments", include_str!("../../../pipelines/docs-split-comments.toml")),
    ("docs-backfill-type", include_str!("../../../pipelines/docs-backfill-type.toml")),
    ("docs-sparse-feed", include_str!("../../../pipelines/docs-sparse-feed.toml")),
    ("workspaces-shard-hot", include_str!("../../../pipelines/workspaces-shard-hot.toml")),
    ("sql-to-one-table", include_str!("../../../pipelines/sql-to-one-table.toml")),
    ("warehouse", include_str!("../../../pipelines/warehouse.toml")),
];

#[test]
fn every_pipeline_of_the_repository_binds_and_its_examples_hold() {
    let mut wrong = Vec::new();
    for (name, text) in PIPELINES {
        match Plan::from_toml(text) {
            Err(diagnostics) => wrong.push(diagnostics.render(name, text)),
            Ok(plan) => {
                wrong.extend(check_examples(&plan).into_iter().map(|failure| format!("{name}: {}: {}", failure.name, failure.message)));
                assert!(plan.examples.len() >= 3, "{name} has too few examples");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_with_any_line_missing_or_cut_is_bound_or_refused_and_never_panics() {
    for (name, text) in PIPELINES {
        let lines: Vec<_> = text.lines().collect();
        for at in 0..lines.len() {
            for half in [0, lines[at].len() / 2] {
                let cut = lines[at].get(..half).unwrap_or_default();
                let file: Vec<_> = lines[..at].iter().copied().chain([cut]).chain(lines[at + 1..].iter().copied()).collect();
                let file = file.join("\n");
                if let Err(diagnostics) = Plan::from_toml(&file) {
                    assert!(diagnostics.render(name, &file).contains(": error: "));
                }
            }
        }
    }
}

#[test]
fn billing_and_tags_of_a_table_are_bound() {
    let with = |fields: &str| {
        let text = format!("{HEAD}{DOCUMENT}").replace("[table.docs]\n", &format!("[table.docs]\n{fields}\n"));
        Plan::from_toml(&text).map(|plan| plan.targets.tables[0].creation.clone()).map_err(|_| mistakes(&text))
    };
    assert_eq!(with("").unwrap(), Creation::default());
    assert_eq!(with("billing = \"on-demand\"").unwrap(), Creation::default());
    let creation = with("billing = { read = 5, write = 10 }\ntags = { team = \"docs & co\", stage = \"\" }");
    assert_eq!(
        creation.unwrap_err(),
        ["9:17: `docs & co` cannot be the value of a tag (at most 256 letters, digits, blanks and + - = . _ : / @)"]
    );
    let creation = with("billing = { read = 5, write = 10 }\ntags = { team = \"docs\", stage = \"\" }").unwrap();
    assert_eq!(creation.billing, Billing::Provisioned { read: 5, write: 10 });
    assert_eq!(creation.tags, [("team".to_owned(), "docs".to_owned()), ("stage".to_owned(), String::new())]);
    for (wrong, expected) in [
        ("billing = \"cheap\"", "unknown billing: `cheap` (billing = \"on-demand\""),
        ("billing = 5", "`billing` is a"),
        ("billing = { read = 5 }", "`write`"),
        ("billing = { read = 0, write = 1 }", "`read` is 0 (a table has at least 1 unit a second)"),
        ("billing = { read = 1, write = 1, burst = 1 }", "unknown field in `billing`: `burst`"),
        ("tags = { \"aws:x\" = \"y\" }", "`aws:x` cannot be the name of a tag"),
        ("tags = { a = 1 }", "the tag `a`"),
    ] {
        let found = with(wrong).unwrap_err();
        assert!(found.len() == 1 && found[0].contains(expected), "expected: {expected}\nfound: {found:#?}");
    }
}

#[test]
fn what_is_declared_of_columns_is_bound_and_told() {
    let with = |fields: &str| {
        let text = format!("{HEAD}{DOCUMENT}[entity.Document.parquet]\n{fields}\n");
        Plan::from_toml(&text).map_err(|_| mistakes(&text))
    };
    let plan =
        with("types = { at = \"timestamp\", price = \"decimal(10, 2)\" }\nnames = { price = \"cost\", title = \"name\" }\nstrict = true")
            .unwrap();
    let declared = &plan.targets.datasets[0].declared;
    assert_eq!(declared.types["price"], ColumnType::Decimal { digits: 10, scale: 2 });
    assert_eq!(declared.names["price"], "cost");
    assert!(declared.strict);
    let told = "  in Parquet at is timestamp; price is decimal(10,2), as cost; title as name; what does not fit is rejected\n";
    assert!(plan.explain().contains(told), "{}", plan.explain());
    let fields = "mixed = { \"*\" = \"json\", a = \"text\" }\nnulls = true\ncolumns = 100\nrest = [\"tmp_*\", \"x\"]\norder = [\"b\", \"a\"]\nsort = [\"k\"]\npartition = [\"p\"]";
    let plan = with(fields).unwrap();
    let declared = &plan.targets.datasets[0].declared;
    assert_eq!((declared.mixed("a"), declared.mixed("b")), (Mixed::Text, Mixed::Json));
    assert!(declared.tells_null("any") && declared.in_rest("tmp_1") == Some("tmp_*") && declared.in_rest("x1").is_none());
    let told = "  in Parquet a of several types is text; what else has several types is json; NULL has columns of its own; b, a first; folders by p; rows by k; \
                no columns for tmp_*, x; at most 100 columns\n";
    assert!(plan.explain().contains(told), "{}", plan.explain());
    for (wrong, expected) in [
        ("types = { at = \"date\" }", "`date` is no type of a Parquet column (a column is timestamp, timestamp(epoch_s)"),
        ("types = { at = \"decimal(39,0)\" }", "`decimal(39,0)` is no type of a Parquet column"),
        ("types = { at = 1 }", "the type of `at`"),
        ("types = { _written_at = \"timestamp\" }", "`_written_at` is what a change record adds, and has a type of its own"),
        ("names = { _op = \"op\" }", "`_op` is what a change record adds, and keeps its name"),
        ("names = { a = \"c\", b = \"c\" }", "the column `c` is that of `a` too (give each attribute a column of its own)"),
        ("names = { a = \"\" }", "the column of `a` is empty"),
        ("strict = 1", "`strict`"),
        ("mixed = \"jsn\"", "unknown policy for mixed types: `jsn` (did you mean `json`?)"),
        ("mixed = { a = \"reject\" }", "unknown policy for mixed types: `reject` (known here: split, json, text, reject-minority"),
        (
            "mixed = { at = \"json\" }\ntypes = { at = \"timestamp\" }",
            "`at` has a declared type, and what does not fit it has columns of its own",
        ),
        ("nulls = 1", "`nulls` must be an array, found an integer"),
        ("nulls = [\"a\", \"b\", \"a\"]", "`a` is in `nulls` twice (take it out here)"),
        ("order = [\"a\", \"a\"]", "`a` is in `order` twice"),
        ("sort = [\"a\", \"a\"]", "`a` is in `sort` twice"),
        ("partition = [\"a\", \"a\"]", "`a` is in `partition` twice"),
        ("partition = [\"a\"]\nrest = [\"a\"]", "`a` has no column of its own by `rest`, and something is said of its column"),
        ("partition = [\"a\"]\nsort = [\"a\"]", "`a` has no column in the files by `partition`, and something is said of its column"),
        ("partition = [\"a\"]\ntypes = { a = \"text\" }", "`a` has no column in the files by `partition`"),
        (
            "partition = [\"a:b\"]",
            "`a:b` would name folders, and has characters that engines do not take there (give it another name under `names`",
        ),
        ("partition = [\"_written_at\"]", "`_written_at` is another one for nearly every change"),
        ("order = [\"\"]", "a name in `order` is empty"),
        ("rest = [\"a\"]\norder = [\"a\"]", "`a` has no column of its own by `rest`, and something is said of its column"),
        ("columns = 0", "`columns` is 0 (a dataset has 1 to 2048 columns"),
        ("columns = 2049", "`columns` is 2049"),
        ("ordr = [\"a\"]", "unknown field in [entity.Document.parquet]: `ordr` (did you mean `order`?)"),
        ("type = { at = \"timestamp\" }", "unknown field in [entity.Document.parquet]: `type`"),
    ] {
        let found = with(wrong).unwrap_err();
        assert!(found.len() == 1 && found[0].contains(expected), "expected: {expected}\nfound: {found:#?}");
    }
}
