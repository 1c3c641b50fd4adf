//! What a run must be allowed to do, as an IAM policy: each action that the program calls, on exactly the resources that it calls it on.
//!
//! Pure: it knows the services' names for actions and resources, and what each part of the program asks for. It looks at no account, so
//! what cannot be told from the command and the manifest is a placeholder in capitals, and a note says so. Sources: AWS, *Service
//! Authorization Reference* and, for what an import needs by itself, `DynamoDB` developer guide, *Requesting a table import*.

use std::collections::BTreeMap;

use serde::Serialize;

/// Stands for an account that is not known.
const ACCOUNT: &str = "ACCOUNT";
/// Stands for a region that is not known.
const REGION: &str = "REGION";
/// Stands for a key that is not known.
const KEY: &str = "KEY";

/// What a run is told, as far as permissions depend on it.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The region of the tables.
    pub region: Option<String>,
    /// The account of the tables.
    pub account: Option<String>,
    /// The exports that lie in S3.
    pub exports: Vec<ExportAccess>,
    /// The folders in S3 that files are written to.
    pub outputs: Vec<S3Place>,
    /// The key of KMS that encrypts what is written there.
    pub output_key: Option<String>,
    /// The real names of the pipeline's tables.
    pub tables: Vec<String>,
    /// Those of them that get tags where they are created.
    pub tagged: Vec<String>,
    /// How items are put into live tables; `None`: they are not.
    pub live: Option<LiveAccess>,
    /// The folders of files, one a table, that imports into new tables are started from.
    pub imports: Vec<S3Place>,
    /// Live tables are compared with the export.
    pub verify_tables: bool,
    /// Files and exports in S3 that are compared with the export.
    pub verify_files: Vec<S3Place>,
    /// What a live run wrote is taken back.
    pub undo: bool,
}

/// What a live run does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveAccess {
    /// Puts have a condition, so each is a request of its own.
    pub conditional: bool,
    /// What is replaced is read first.
    pub undo_log: bool,
    /// Tables that are missing are created.
    pub create_tables: bool,
}

/// A key in a bucket, or a prefix that ends with `/`; an empty one is the whole bucket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct S3Place {
    /// The bucket's name.
    pub bucket: String,
    /// The key or prefix.
    pub key: String,
}

/// An export in S3.
#[derive(Clone, Debug)]
pub struct ExportAccess {
    /// What was named, without `/` at its end.
    pub named: S3Place,
    /// What its manifest says, where it could be read.
    pub known: Option<KnownExport>,
    /// It is one of several that were named for one source.
    pub one_of_several: bool,
}

/// What a manifest says.
#[derive(Clone, Debug)]
pub struct KnownExport {
    /// The export's folder, without `/` at its end; `None` for a data file.
    pub folder: Option<String>,
    /// It holds changes, whose files lie in the folder `data` beside the export's own.
    pub incremental: bool,
    /// The key of KMS that encrypts it.
    pub kms_key: Option<String>,
    /// There is a check sum beside the summary, so that nothing is asked for that is not there.
    pub checked: bool,
}

/// A policy document.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Policy {
    version: &'static str,
    statement: Vec<Statement>,
    /// What the user must fill in or decide; no part of the document.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// What is allowed for one purpose.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Statement {
    sid: String,
    effect: &'static str,
    action: Vec<&'static str>,
    resource: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<BTreeMap<&'static str, BTreeMap<&'static str, Vec<String>>>>,
}

/// The policy that lets this run do its work, and nothing else.
#[must_use]
pub fn policy(access: &Access) -> Policy {
    let mut writer = PolicyWriter { access, statements: Vec::new(), notes: Vec::new() };
    writer.exports();
    writer.outputs();
    writer.live();
    writer.imports();
    writer.verify();
    writer.undo();
    writer.placeholders();
    Policy { version: "2012-10-17", statement: writer.statements, notes: writer.notes }
}

struct PolicyWriter<'a> {
    access: &'a Access,
    statements: Vec<Statement>,
    notes: Vec<String>,
}

impl PolicyWriter<'_> {
    fn allow(&mut self, sid: &str, action: &[&'static str], mut resource: Vec<String>) {
        if action.is_empty() || resource.is_empty() {
            return;
        }
        let mut seen = std::collections::BTreeSet::new();
        resource.retain(|arn| seen.insert(arn.clone()));
        self.push(sid, action, resource, None);
    }

    /// Listing, of one bucket a statement, since the condition on prefixes holds for all its resources. What S3 says of a key that is not
    /// there follows from this permission too, and is asked with the key as the prefix.
    fn allow_listing(&mut self, sid: &str, prefixes: impl IntoIterator<Item = S3Place>) {
        let mut buckets: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for S3Place { bucket, key } in prefixes {
            let known = buckets.entry(bucket).or_default();
            if !known.contains(&key) {
                known.push(key);
            }
        }
        for (bucket, prefixes) in buckets {
            let all = prefixes.iter().any(String::is_empty);
            let patterns = prefixes.into_iter().map(|prefix| format!("{}*", literal(&prefix))).collect();
            let condition = BTreeMap::from([("StringLike", BTreeMap::from([("s3:prefix", patterns)]))]);
            let resource = vec![self.bucket(&bucket)];
            self.push(sid, &["s3:ListBucket"], resource, (!all).then_some(condition));
        }
    }

    fn push(
        &mut self,
        sid: &str,
        action: &[&'static str],
        resource: Vec<String>,
        condition: Option<BTreeMap<&'static str, BTreeMap<&'static str, Vec<String>>>>,
    ) {
        // Ids must differ within a policy.
        let same = self.statements.iter().filter(|known| known.sid.trim_end_matches(|digit: char| digit.is_ascii_digit()) == sid).count();
        let sid = if same == 0 { sid.to_owned() } else { format!("{sid}{}", same + 1) };
        self.statements.push(Statement { sid, effect: "Allow", action: action.to_vec(), resource, condition });
    }

    fn partition(&self) -> &'static str {
        partition(self.access.region.as_deref().unwrap_or_default())
    }

    fn bucket(&self, name: &str) -> String {
        format!("arn:{}:s3:::{name}", self.partition())
    }

    /// An object by its key, or all of a prefix.
    fn objects(&self, place: &S3Place) -> String {
        let all = if place.key.is_empty() || place.key.ends_with('/') { "*" } else { "" };
        format!("{}/{}{all}", self.bucket(&place.bucket), literal(&place.key))
    }

    fn regional(&self, service: &str, resource: &str) -> String {
        let region = self.access.region.as_deref().unwrap_or(REGION);
        let account = self.access.account.as_deref().unwrap_or(ACCOUNT);
        format!("arn:{}:{service}:{region}:{account}:{resource}", self.partition())
    }

    fn table(&self, name: &String) -> String {
        self.regional("dynamodb", &format!("table/{name}"))
    }

    fn tables(&self) -> Vec<String> {
        self.access.tables.iter().map(|name| self.table(name)).collect()
    }

    /// A key by what a manifest or the user says of it.
    fn key(&mut self, named: &str) -> String {
        if named.starts_with("arn:") && named.contains(":key/") {
            return named.to_owned();
        }
        let is_id = named.starts_with("mrk-") || named.len() == 36;
        if is_id && named.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return self.regional("kms", &format!("key/{named}"));
        }
        self.notes.push(format!("put the id of the KMS key in place of {KEY}: what is known of it is `{named}`"));
        self.regional("kms", &format!("key/{KEY}"))
    }

    fn exports(&mut self) {
        let mut objects = Vec::new();
        let mut listed = Vec::new();
        let mut keys = Vec::new();
        for export in &self.access.exports {
            let ExportAccess { named, known, one_of_several } = export;
            let below = |key: &str| S3Place { bucket: named.bucket.clone(), key: format!("{key}/") };
            let (folder, is_folder) = match known {
                Some(KnownExport { folder: Some(folder), .. }) => (folder.clone(), true),
                Some(KnownExport { folder: None, .. }) => (named.key.clone(), false),
                None => guess(&named.key),
            };
            if !is_folder {
                objects.push(self.objects(named));
                continue;
            }
            let summary = named.key.ends_with("/manifest-summary.json");
            let must_be_found = !summary && folder != named.key;
            let everything =
                if named.key.is_empty() { S3Place { bucket: named.bucket.clone(), key: String::new() } } else { below(&named.key) };
            if must_be_found || (known.is_none() && !summary && !is_export_id(&folder)) {
                objects.push(self.objects(&everything));
                self.notes.push(format!(
                    "the export is looked for below s3://{}/{}; name its own folder, and the policy holds for that alone",
                    named.bucket, named.key
                ));
            } else {
                objects.push(self.objects(&below(&folder)));
                let parent = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
                let shared = S3Place {
                    bucket: named.bucket.clone(),
                    key: if parent.is_empty() { "data/".to_owned() } else { format!("{parent}/data/") },
                };
                if known.as_ref().is_none_or(|known| known.incremental) {
                    objects.push(self.objects(&shared));
                }
                if known.is_none() {
                    self.notes.push(format!(
                        "the manifest of s3://{}/{} was not read: an incremental export has its files in s3://{}/{}; take that out for a full one",
                        named.bucket, named.key, named.bucket, shared.key
                    ));
                }
            }
            let unchecked = known.as_ref().is_some_and(|known| !known.checked);
            if must_be_found || (known.is_none() && !summary && !is_export_id(&folder)) {
                listed.push(everything);
            } else if unchecked || (*one_of_several && !summary) {
                listed.push(below(&folder));
            }
            match known {
                Some(known) => keys.extend(known.kms_key.clone()),
                None => self.notes.push(format!(
                    "if the export in s3://{}/{} is encrypted by a key of KMS, add kms:Decrypt on that key",
                    named.bucket, named.key
                )),
            }
        }
        self.allow("ReadExport", &["s3:GetObject"], objects);
        self.allow_listing("FindExport", listed);
        let keys = keys.iter().map(|key| self.key(key)).collect();
        self.allow("DecryptExport", &["kms:Decrypt"], keys);
    }

    fn outputs(&mut self) {
        let outputs = &self.access.outputs;
        if outputs.is_empty() {
            return;
        }
        let objects = outputs.iter().map(|place| self.objects(place)).collect();
        self.allow("WriteFiles", &["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"], objects);
        self.allow_listing("ListFiles", outputs.iter().cloned());
        // It knows no condition on prefixes.
        let buckets = outputs.iter().map(|place| self.bucket(&place.bucket)).collect();
        self.allow("ListUploads", &["s3:ListBucketMultipartUploads"], buckets);
        if let Some(key) = &self.access.output_key {
            let key = self.key(key);
            self.allow("EncryptFiles", &["kms:GenerateDataKey", "kms:Decrypt"], vec![key]);
        } else {
            self.notes.push("if a bucket that is written to encrypts by a key of KMS, name the key with --kms-key".to_owned());
        }
    }

    fn live(&mut self) {
        let Some(LiveAccess { conditional, undo_log, create_tables }) = self.access.live else { return };
        let tables = self.tables();
        self.allow("LookAtTables", &["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"], tables.clone());
        if create_tables {
            self.allow("CreateTables", &["dynamodb:CreateTable"], tables.clone());
            let tagged = self.access.tagged.iter().map(|name| self.table(name)).collect();
            self.allow("TagTables", &["dynamodb:TagResource"], tagged);
        }
        if undo_log {
            self.allow("ReadWhatIsReplaced", &["dynamodb:BatchGetItem"], tables.clone());
        }
        self.allow("WriteItems", if conditional { &["dynamodb:PutItem"] } else { &["dynamodb:BatchWriteItem"] }, tables);
    }

    /// An import reads the files and writes its log with the permissions of whoever starts it.
    fn imports(&mut self) {
        let imports = &self.access.imports;
        if imports.is_empty() {
            return;
        }
        let tables = self.tables();
        self.allow("StartImports", &["dynamodb:DescribeTable", "dynamodb:ImportTable", "dynamodb:ListImports"], tables.clone());
        let runs = tables.iter().map(|table| format!("{table}/import/*")).collect();
        self.allow("FollowImports", &["dynamodb:DescribeImport"], runs);
        // Lists belong to the endpoint, not to a table.
        self.allow("FindImports", &["dynamodb:ListImports"], vec!["*".to_owned()]);
        let objects = imports.iter().map(|place| self.objects(place)).collect();
        self.allow("LetImportsRead", &["s3:GetObject"], objects);
        // Under which prefix the import lists is not documented; AWS's own example has no condition.
        let buckets = imports.iter().map(|place| self.bucket(&place.bucket)).collect();
        self.allow("LetImportsList", &["s3:ListBucket"], buckets);
        let logs = self.regional("logs", "log-group:/aws-dynamodb/*");
        let actions = [
            "logs:CreateLogGroup",
            "logs:CreateLogStream",
            "logs:DescribeLogGroups",
            "logs:DescribeLogStreams",
            "logs:PutLogEvents",
            "logs:PutRetentionPolicy",
        ];
        self.allow("LetImportsLog", &actions, vec![logs]);
    }

    fn verify(&mut self) {
        if self.access.verify_tables {
            let tables = self.tables();
            self.allow("CompareTables", &["dynamodb:DescribeTable", "dynamodb:Scan", "dynamodb:GetItem"], tables);
        }
        let objects = self.access.verify_files.iter().map(|place| self.objects(place)).collect();
        self.allow("CompareFiles", &["s3:GetObject"], objects);
        self.allow_listing("FindFilesToCompare", self.access.verify_files.iter().cloned());
    }

    fn undo(&mut self) {
        if self.access.undo {
            let tables = self.tables();
            let actions = ["dynamodb:DescribeTable", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"];
            self.allow("TakeBack", &actions, tables);
        }
    }

    fn placeholders(&mut self) {
        let names = |placeholder: &str| {
            let part = format!(":{placeholder}:");
            self.statements.iter().flat_map(|statement| &statement.resource).any(|arn| arn.contains(&part))
        };
        let (region, account) = (names(REGION), names(ACCOUNT));
        if region {
            self.notes.push(format!("put the region in place of {REGION}, or name it with --region"));
        }
        if account {
            self.notes.push(format!("put the id of the tables' account in place of {ACCOUNT}, or name it with --account"));
        }
    }
}

/// The partition of a region.
fn partition(region: &str) -> &'static str {
    match region {
        region if region.starts_with("cn-") => "aws-cn",
        region if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    }
}

/// A key or prefix in a policy, where `*`, `?` and `$` mean more than themselves.
fn literal(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for character in key.chars() {
        match character {
            '*' | '?' | '$' => {
                out.push_str("${");
                out.push(character);
                out.push('}');
            }
            other => out.push(other),
        }
    }
    out
}

/// What a key that nobody looked at leads to: the export's folder, or a data file.
fn guess(key: &str) -> (String, bool) {
    match key.strip_suffix("/manifest-summary.json") {
        Some(folder) => (folder.to_owned(), true),
        None if key.rsplit('/').next().is_some_and(|name| name.contains('.')) => (key.to_owned(), false),
        None => (key.to_owned(), true),
    }
}

/// Whether the last name is what the service calls an export: milliseconds, a hyphen, eight hexadecimal digits.
fn is_export_id(folder: &str) -> bool {
    let name = folder.rsplit('/').next().unwrap_or_default();
    let digits = |text: &str| text.len() >= 13 && text.bytes().all(|byte| byte.is_ascii_digit());
    let hex = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split_once('-').is_some_and(|(time, suffix)| digits(time) && hex(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(key: &str, known: impl Into<Option<KnownExport>>) -> Access {
        let named = S3Place { bucket: "b".to_owned(), key: key.to_owned() };
        let exports = vec![ExportAccess { named, known: known.into(), one_of_several: false }];
        Access { region: Some("eu-west-1".to_owned()), account: Some("111122223333".to_owned()), exports, ..Access::default() }
    }

    fn known(folder: &str, incremental: bool) -> KnownExport {
        KnownExport { folder: Some(folder.to_owned()), incremental, kms_key: None, checked: true }
    }

    /// Each statement as `SID ACTIONS on RESOURCES [where PREFIXES]`.
    fn told(access: &Access) -> Vec<String> {
        let tell = |statement: &Statement| {
            let prefixes = statement.condition.iter().flat_map(|all| all["StringLike"]["s3:prefix"].iter());
            let prefixes: Vec<_> = prefixes.map(String::as_str).collect();
            let below = if prefixes.is_empty() { String::new() } else { format!(" where {}", prefixes.join(" ")) };
            format!("{} {} on {}{below}", statement.sid, statement.action.join(" "), statement.resource.join(" "))
        };
        policy(access).statement.iter().map(tell).collect()
    }

    #[test]
    fn an_export_that_is_named_is_read_and_nothing_is_listed() {
        let id = "p/AWSDynamoDB/01768385930622-efd1a093";
        let read = format!("ReadExport s3:GetObject on arn:aws:s3:::b/{id}/*");
        assert_eq!(told(&export(id, known(id, false))), [read.as_str()]);
        assert_eq!(told(&export(&format!("{id}/manifest-summary.json"), known(id, false))), [read.as_str()]);
        assert_eq!(told(&export(id, known(id, true))), [format!("{read} arn:aws:s3:::b/p/AWSDynamoDB/data/*")]);
    }

    #[test]
    fn an_export_that_must_be_found_is_listed_for() {
        let id = "p/AWSDynamoDB/01768385930622-efd1a093";
        let found = ["ReadExport s3:GetObject on arn:aws:s3:::b/p/*", "FindExport s3:ListBucket on arn:aws:s3:::b where p/*"];
        assert_eq!(told(&export("p", known(id, false))), found);
        assert_eq!(told(&export("p", None)), found);
        let whole = ["ReadExport s3:GetObject on arn:aws:s3:::b/*", "FindExport s3:ListBucket on arn:aws:s3:::b"];
        assert_eq!(told(&export("", known(id, false))), whole);
    }

    #[test]
    fn an_export_whose_manifest_nobody_read_may_be_of_either_kind() {
        let id = "AWSDynamoDB/01768385930622-efd1a093";
        let access = export(id, None);
        let read = format!("ReadExport s3:GetObject on arn:aws:s3:::b/{id}/* arn:aws:s3:::b/AWSDynamoDB/data/*");
        assert_eq!(told(&access), [read]);
        let notes = policy(&access).notes;
        assert!(notes.iter().any(|note| note.contains("take that out for a full one")), "{notes:?}");
        assert_eq!(told(&export("rejects/unit-00001.jsonl", None)), ["ReadExport s3:GetObject on arn:aws:s3:::b/rejects/unit-00001.jsonl"]);
    }

    #[test]
    fn an_export_without_check_sums_takes_the_permission_to_learn_that_they_are_missing() {
        let mut access = export("p/x", known("p/x", false));
        access.exports[0].known.as_mut().unwrap().checked = false;
        assert_eq!(
            told(&access),
            ["ReadExport s3:GetObject on arn:aws:s3:::b/p/x/*", "FindExport s3:ListBucket on arn:aws:s3:::b where p/x/*"]
        );
    }

    #[test]
    fn the_key_of_an_encrypted_export_is_named_as_exactly_as_it_is_known() {
        for (key, expected, notes) in [
            ("arn:aws:kms:eu-west-1:1:key/k", "arn:aws:kms:eu-west-1:1:key/k", 0),
            ("1234abcd-12ab-34cd-56ef-1234567890ab", "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab", 0),
            ("its key", "arn:aws:kms:eu-west-1:111122223333:key/KEY", 1),
            ("alias/exports", "arn:aws:kms:eu-west-1:111122223333:key/KEY", 1),
        ] {
            let mut access = export("p/x", known("p/x", false));
            access.exports[0].known.as_mut().unwrap().kms_key = Some(key.to_owned());
            assert_eq!(told(&access)[1], format!("DecryptExport kms:Decrypt on {expected}"));
            assert_eq!(policy(&access).notes.len(), notes);
        }
    }

    #[test]
    fn what_a_live_run_needs_follows_from_its_flags() {
        let tables = vec!["prod-docs".to_owned()];
        let mut access = Access { tagged: tables.clone(), tables, live: Some(LiveAccess::default()), ..export("", None) };
        access.exports.clear();
        let on = "on arn:aws:dynamodb:eu-west-1:111122223333:table/prod-docs";
        let look = format!("LookAtTables dynamodb:DescribeTable dynamodb:DescribeTimeToLive {on}");
        assert_eq!(told(&access), [look.clone(), format!("WriteItems dynamodb:BatchWriteItem {on}")]);
        access.live = Some(LiveAccess { conditional: true, undo_log: true, create_tables: true });
        let expected = [
            look,
            format!("CreateTables dynamodb:CreateTable {on}"),
            format!("TagTables dynamodb:TagResource {on}"),
            format!("ReadWhatIsReplaced dynamodb:BatchGetItem {on}"),
            format!("WriteItems dynamodb:PutItem {on}"),
        ];
        assert_eq!(told(&access), expected);
    }

    #[test]
    fn partitions_and_placeholders_follow_from_the_region_and_what_is_known() {
        for (region, arn) in [
            (Some("cn-north-1"), "arn:aws-cn:dynamodb:cn-north-1:ACCOUNT:table/t"),
            (Some("us-gov-west-1"), "arn:aws-us-gov:dynamodb:us-gov-west-1:ACCOUNT:table/t"),
            (None, "arn:aws:dynamodb:REGION:ACCOUNT:table/t"),
        ] {
            let access = Access {
                region: region.map(str::to_owned),
                tables: vec!["t".to_owned()],
                live: Some(LiveAccess::default()),
                ..Access::default()
            };
            let policy = policy(&access);
            assert_eq!(policy.statement[0].resource, [arn]);
            assert_eq!(policy.notes.len(), 1 + usize::from(region.is_none()), "{:?}", policy.notes);
        }
    }

    #[test]
    fn two_buckets_are_listed_by_two_statements_with_ids_of_their_own_and_wildcards_in_names_are_names() {
        let place = |bucket: &str, key: &str| S3Place { bucket: bucket.to_owned(), key: key.to_owned() };
        let outputs = vec![place("a", "x*/"), place("a", "y/"), place("c", "")];
        let told = told(&Access { outputs, output_key: Some("arn:aws:kms:r:1:key/k".to_owned()), ..Access::default() });
        let expected = [
            "WriteFiles s3:GetObject s3:PutObject s3:DeleteObject s3:AbortMultipartUpload on arn:aws:s3:::a/x${*}/* arn:aws:s3:::a/y/* arn:aws:s3:::c/*",
            "ListFiles s3:ListBucket on arn:aws:s3:::a where x${*}/* y/*",
            "ListFiles2 s3:ListBucket on arn:aws:s3:::c",
            "ListUploads s3:ListBucketMultipartUploads on arn:aws:s3:::a arn:aws:s3:::c",
            "EncryptFiles kms:GenerateDataKey kms:Decrypt on arn:aws:kms:r:1:key/k",
        ];
        assert_eq!(told, expected);
    }
}
