//! What the sample exports hold: lines of `DynamoDB` JSON, written without the library so that they are an independent witness.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// A number generator whose sequence never changes, so that samples stay as they are.
pub(super) struct Dice(u64);

impl Dice {
    /// A sequence that belongs to `name`.
    pub(super) fn new(name: &str) -> Self {
        Self(name.bytes().fold(0x5eed, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).expect("31 bits are left")
    }

    /// A number from 0 up to, but not including, `sides`.
    pub(super) fn roll(&mut self, sides: u32) -> u32 {
        self.next() % sides
    }

    /// One of these.
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next() as usize % from.len()]
    }

    /// The same elements in another order.
    pub(super) fn shuffled<T>(&mut self, mut elements: Vec<T>) -> Vec<T> {
        for at in (1..elements.len()).rev() {
            elements.swap(at, self.next() as usize % (at + 1));
        }
        elements
    }

    /// `length` characters of `alphabet`.
    pub(super) fn text(&mut self, alphabet: &str, length: usize) -> String {
        let characters: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| self.pick(&characters)).collect()
    }
}

/// Attributes with their values as typed JSON.
struct Item(Vec<(String, String)>);

impl Item {
    fn new(attributes: &[(&str, String)]) -> Self {
        Self(attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    fn with(mut self, name: &str, value: String) -> Self {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), value));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.0.retain(|(known, _)| known != name);
        self
    }

    /// The line, its attributes in an order of chance as in real exports.
    fn line(self, dice: &mut Dice) -> String {
        let attributes: Vec<_> = dice.shuffled(self.0).into_iter().map(|(name, value)| format!("{}:{value}", quoted(&name))).collect();
        format!("{{\"Item\":{{{}}}}}", attributes.join(","))
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text can be written as JSON")
}

fn s(text: &str) -> String {
    format!("{{\"S\":{}}}", quoted(text))
}

fn n(number: impl std::fmt::Display) -> String {
    format!("{{\"N\":\"{number}\"}}")
}

fn b(bytes: &[u8]) -> String {
    format!("{{\"B\":\"{}\"}}", BASE64.encode(bytes))
}

fn boolean(value: bool) -> String {
    format!("{{\"BOOL\":{value}}}")
}

fn null() -> String {
    "{\"NULL\":true}".to_owned()
}

fn list(values: &[String]) -> String {
    format!("{{\"L\":[{}]}}", values.join(","))
}

fn map(entries: &[(&str, String)]) -> String {
    let entries: Vec<_> = entries.iter().map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
    format!("{{\"M\":{{{}}}}}", entries.join(","))
}

/// A set of strings (`SS`), of numbers (`NS`) or of base64 texts (`BS`).
fn set(kind: &str, members: &[&str]) -> String {
    let members: Vec<_> = members.iter().map(|member| quoted(member)).collect();
    format!("{{\"{kind}\":[{}]}}", members.join(","))
}

/// A time in the first quarter of 2026 that grows with `at`; some 20 minutes apart.
fn time(at: u32) -> String {
    let (minute, hour, day) = (at * 20 + at % 7, at / 3, at / 72);
    format!("2026-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", day / 28 + 1, day % 28 + 1, hour % 24, minute % 60, at * 13 % 60, at * 37 % 1000)
}

/// The ids of documents: numbers of different widths, as a counter and an import from elsewhere leave them.
const DOCUMENTS: [(&str, &[&str]); 3] = [
    (
        "acme",
        &["7", "12", "9", "101", "102", "103", "1044", "1045", "1046", "1047", "20001", "20002", "20003", "300000", "300001", "4000002"],
    ),
    ("globex", &["00012", "00013", "31", "32", "33", "2001", "2002", "2003", "50009", "50010"]),
    ("initech", &["8", "0088", "88001", "88002", "88003", "880044"]),
];

const AUTHORS: [&str; 6] = ["ada", "grace", "linus", "bot-lint", "søren", "美咲"];
const TITLES: [&str; 7] =
    ["Roadmap", "Q2 \"draft\" plan", "Größe & Gewicht", "設計メモ", "Launch 🚀", "line one\nline two\ttab", "C:\\docs\\old"];
const TAGS: [&str; 5] = ["draft", "legal", "q2", "internal", "ünïcode"];

/// The single table of documents, a list of lines for each data file.
pub(super) fn docs() -> Vec<Vec<String>> {
    let mut dice = Dice::new("docs");
    let mut clock = 0;
    let mut files = Vec::new();
    for (ws, documents) in DOCUMENTS {
        let mut items = vec![workspace(ws, &time(clock))];
        for doc in documents {
            clock += 1 + dice.roll(30);
            let (created, updated) = (time(clock), time(clock + dice.roll(200)));
            items.push(oddities(ws, doc, document(&mut dice, ws, doc, &created, &updated)));
            let comments = if *doc == "7" { 9 } else { dice.roll(5) };
            for comment in 1..=comments {
                clock += 1;
                items.push(self::comment(&mut dice, ws, doc, comment, &time(clock)));
            }
        }
        let lines = items.into_iter().map(|item| item.line(&mut dice)).collect();
        files.push(dice.shuffled(lines));
    }
    files.insert(1, Vec::new());
    files
}

fn workspace(ws: &str, created: &str) -> Item {
    let item = Item::new(&[
        ("PK", s(&format!("WS#{ws}"))),
        ("SK", s("META")),
        ("EntityType", s("Workspace")),
        ("name", s(&ws.to_uppercase())),
        ("createdAt", s(created)),
    ]);
    match ws {
        "acme" => item.with("plan", s("enterprise")).with("seats", n(250)).with("features", set("SS", &["sso", "audit", "exports"])),
        "globex" => item.with("plan", s("team")).with("seats", n(40)).with("features", set("SS", &["exports"])),
        // No plan and no features: an account from before there were plans.
        _ => item.with("seats", n(5)).with("legacy", null()),
    }
}

fn document(dice: &mut Dice, ws: &str, doc: &str, created: &str, updated: &str) -> Item {
    let tags: Vec<String> = (0..dice.roll(4)).map(|at| s(TAGS[at as usize])).collect();
    let readers: Vec<&str> = AUTHORS[..=dice.roll(4) as usize].to_vec();
    let checksum: Vec<u8> = (0..16).map(|_| dice.roll(256).to_le_bytes()[0]).collect();
    Item::new(&[
        ("PK", s(&format!("WS#{ws}"))),
        ("SK", s(&format!("DOC#{doc}"))),
        ("EntityType", s("Document")),
        ("title", s(&format!("{} {doc}", dice.pick(&TITLES)))),
        ("version", n(1 + dice.roll(40))),
        ("createdAt", s(created)),
        ("updatedAt", s(updated)),
        ("tags", list(&tags)),
        ("acl", map(&[("read", set("SS", &readers)), ("public", boolean(dice.roll(3) == 0))])),
        ("starred", boolean(dice.roll(4) == 0)),
        ("checksum", b(&checksum)),
        ("GSI1PK", s(&format!("WS#{ws}"))),
        ("GSI1SK", s(updated)),
    ])
}

/// What single documents have of their own: drift of the type attribute, and values at the edge of what is allowed.
fn oddities(ws: &str, doc: &str, item: Item) -> Item {
    match (ws, doc) {
        ("acme", "7") => item.with("bigId", n("12345678901234567890123456789012345678")).with("summary", s("")),
        ("acme", "12") => item.with("EntityType", s("Doc")).with("tags", list(&[])).with("acl", map(&[])),
        ("acme", "9") | ("initech", "0088") => item.without("EntityType"),
        ("acme", "101") => item.with("aws:rep:updateregion", s("eu-central-1")).with("aws:rep:deleting", boolean(false)),
        ("acme", "102") => item.with("a.b", s("a dot in the name")).with("GSI1-PK", s("a dash in the name")),
        ("acme", "103") => item.with("extent", n(format!("1{}", "0".repeat(125)))).with("ratio", n("-0.125")),
        ("acme", "1044") => item.with("ratio", n("2.5")).with("archivedAt", null()).with("pages", set("NS", &["1", "2.5", "-3"])),
        ("acme", "1045") => item.with("attachments", set("BS", &["aGVsbG8=", "AP8B", ""])),
        ("acme", "1046") => item.with("tags", list(&[s("mixed"), n(7), boolean(true), null(), map(&[("L", list(&[n("1")]))])])),
        ("globex", "00012" | "00013") => item.with("EntityType", s("document")).with("legacy", s("imported")),
        ("globex", "31") | ("initech", "88001") => item.with("EntityType", s("Doc")),
        ("globex", "2002") => item.with("aws:rep:updateregion", s("us-east-1")),
        // A document that was never updated is in no index.
        ("initech", "8") => item.without("updatedAt").without("GSI1PK").without("GSI1SK"),
        _ => item,
    }
}

fn comment(dice: &mut Dice, ws: &str, doc: &str, comment: u32, created: &str) -> Item {
    let body = dice.pick(&["Looks good", "Please check § 4", "👍🏽", "no — see \"notes\"", "ok\r\n"]);
    let mut item = Item::new(&[
        ("PK", s(&format!("WS#{ws}"))),
        ("SK", s(&format!("DOC#{doc}#CMT#{comment}"))),
        ("EntityType", s("Comment")),
        ("body", s(body)),
        ("author", s(dice.pick(&AUTHORS))),
        ("createdAt", s(created)),
        ("likes", n(dice.roll(90))),
        ("GSI1PK", s(&format!("WS#{ws}"))),
        ("GSI1SK", s(created)),
    ]);
    if dice.roll(3) == 0 {
        let reactions = [("👍", n(1 + dice.roll(9))), ("heart", n(dice.roll(3)))];
        item = item.with("reactions", map(&reactions[..dice.roll(3) as usize]));
    }
    if dice.roll(4) == 0 {
        item = item.with("scores", set("NS", &["4", "4.5", "-1"]));
    }
    match (doc, comment) {
        ("7", 2 | 5) => item.without("EntityType"),
        ("7", 3 | 4) | ("12" | "31", 1) => item.with("EntityType", s("COMMENT")),
        _ => item,
    }
}

/// Workspaces and their projects in one table; nearly all projects belong to one workspace.
pub(super) fn workspaces() -> Vec<Vec<String>> {
    let mut dice = Dice::new("workspaces");
    let mut files = vec![Vec::new(), Vec::new(), Vec::new()];
    let mut project = 0;
    for (at, (ws, projects)) in
        [("acme", 80), ("globex", 5), ("hooli", 3), ("initech", 4), ("umbrella", 2), ("wonka", 0)].into_iter().enumerate()
    {
        let key = s(&format!("WS#{ws}"));
        let meta = Item::new(&[
            ("EntityRef", key.clone()),
            ("Detail", s("META")),
            ("EntityType", s("Workspace")),
            ("name", s(&ws.to_uppercase())),
            ("plan", s(if projects > 10 { "enterprise" } else { "team" })),
            ("createdAt", s(&time(u32::try_from(at).expect("six workspaces")))),
        ]);
        let file = usize::from(at > 0) * 2;
        files[file].push(meta.line(&mut dice));
        for _ in 0..projects {
            project += 1;
            let item = Item::new(&[
                ("EntityRef", key.clone()),
                ("Detail", s(&format!("PROJ#2026-{project:04}"))),
                ("EntityType", s("Project")),
                ("name", s(&format!("Project {project}"))),
                ("status", s(dice.pick(&["active", "paused", "done"]))),
                ("createdAt", s(&time(project * 60))),
                ("owner", map(&[("id", s(dice.pick(&["u-1", "u-2", "u-3"]))), ("name", s(dice.pick(&AUTHORS)))])),
                ("budget", n(format!("{}.{:02}", dice.roll(90_000), 1 + dice.roll(99)).trim_end_matches('0'))),
            ]);
            files[file].push(item.line(&mut dice));
        }
    }
    files.into_iter().map(|lines| dice.shuffled(lines)).collect()
}

const SQL_WORKSPACES: [(&str, &str); 6] =
    [("acme", "enterprise"), ("globex", "team"), ("hooli", "team"), ("initech", "free"), ("umbrella", "free"), ("wonka", "free")];

/// A table of one kind, as it comes from a relational schema.
pub(super) fn sql_workspaces() -> Vec<Vec<String>> {
    let mut dice = Dice::new("sql-style/workspaces");
    let rows =
        SQL_WORKSPACES.map(|(id, plan)| Item::new(&[("id", s(id)), ("name", s(&id.to_uppercase())), ("plan", s(plan))]).line(&mut dice));
    vec![dice.shuffled(rows.to_vec())]
}

/// Its children in a table of their own, which name their parent.
pub(super) fn sql_projects() -> Vec<Vec<String>> {
    let mut dice = Dice::new("sql-style/projects");
    let mut files = vec![Vec::new(), Vec::new(), Vec::new()];
    for project in 1..=30 {
        let item = Item::new(&[
            ("id", s(&format!("prj-{project:03}"))),
            ("workspace_id", s(dice.pick(&SQL_WORKSPACES[..5]).0)),
            ("name", s(&format!("Project {project}"))),
            ("status", s(dice.pick(&["active", "paused", "done"]))),
            ("created_at", s(&time(project * 100))),
        ]);
        files[if project % 3 == 0 { 2 } else { 0 }].push(item.line(&mut dice));
    }
    files.into_iter().map(|lines| dice.shuffled(lines)).collect()
}

/// A small healthy table in two files, for one fault to be put in.
pub(super) fn small(dice: &mut Dice) -> Vec<Vec<String>> {
    let mut items = vec![workspace("acme", &time(1))];
    for (at, doc) in (10..).zip(["7", "12", "9", "101"]) {
        items.push(document(dice, "acme", doc, &time(at), &time(at + 5)));
        items.push(comment(dice, "acme", doc, 8, &time(at + 7)));
    }
    let lines: Vec<String> = items.into_iter().map(|item| item.line(dice)).collect();
    let (first, second) = lines.split_at(5);
    vec![first.to_vec(), second.to_vec()]
}

/// One line with a fault in it.
pub(super) fn bad_line(fault: &str, dice: &mut Dice) -> String {
    let good = |dice: &mut Dice, doc: &str| document(dice, "acme", doc, &time(90), &time(95));
    match fault {
        "bad-line" => {
            let mut line = good(dice, "666").line(dice);
            line.truncate(line.len() / 2);
            line
        }
        "no-key" => good(dice, "666").without("SK").line(dice),
        "two-types" => good(dice, "666").with("title", "{\"S\":\"1\",\"N\":\"1\"}".to_owned()).line(dice),
        "digits-39" => good(dice, "666").with("bigId", n("1".repeat(39))).line(dice),
        // A number at level 33, inside 32 lists.
        "levels-33" => good(dice, "666").with("deep", format!("{}{}{}", "{\"L\":[".repeat(32), n(1), "]}".repeat(32))).line(dice),
        // `DOC#12` is there; padded to one width, both are the same key.
        "same-key" => good(dice, "00012").line(dice),
        other => panic!("no fault is called {other}"),
    }
}
