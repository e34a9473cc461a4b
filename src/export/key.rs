//! The keys of exports. Exports are created with a key from the template of their target, and the check of a bucket
//! parses it back.
mod parse;
mod reserved;

pub(super) use parse::{ExportKey, ObjectRole};
pub(super) use reserved::{backup_root, heartbeat_key, is_reserved_key};

use penstock_base::hex::encode_hex;
use penstock_config::{ExportFormat, GraphTemplate, KeyPart, KeyTemplate, Placeholder};
use penstock_resources::export::{Export, ExportKind};

/// The ending of a key in the format `json`, which is that of every template.
const JSON_ENDING: &str = ".json";
/// The ending of a key in the format `jsonl`.
const LINES_ENDING: &str = ".jsonl";
/// The ending of the metadata of an export in the format `jsonl`.
const METADATA_ENDING: &str = KeyTemplate::METADATA_ENDING;

/// The number of digits that a sequence has at least.
const MIN_SEQUENCE_DIGITS: usize = 12;
/// The maximum length of a part of the path in bytes, so that it fits into a directory.
const MAX_PATH_PART_BYTES: usize = 255;
/// The maximum length of a key in bytes (S3).
const MAX_KEY_BYTES: usize = 1024;

/// The values of an export's key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyValues<'a> {
    /// The prefix of the target.
    pub(super) prefix: &'a str,
    /// The name of the Business Object.
    pub(super) name: &'a str,
    pub(super) kind: ExportKind,
    /// `metadata.export_date`
    pub(super) date: &'a str,
    pub(super) sequence: u64,
    /// The id of the gateway.
    pub(super) gateway: &'a str,
}

impl KeyValues<'_> {
    /// Returns the key of the export in this format.
    pub(super) fn build_key(&self, template: &KeyTemplate, format: ExportFormat) -> String {
        let mut key = String::new();
        for part in template.parts() {
            match part {
                KeyPart::Text(text) => key.push_str(text),
                KeyPart::Placeholder(placeholder) => key.push_str(&self.render(*placeholder)),
            }
        }
        match format {
            ExportFormat::Json | ExportFormat::Quads | ExportFormat::Triples => key,
            ExportFormat::JsonLines => replace_ending(&key, JSON_ENDING, LINES_ENDING),
        }
    }

    fn render(&self, placeholder: Placeholder) -> String {
        match placeholder {
            Placeholder::Prefix => self.prefix.to_owned(),
            Placeholder::Name => percent_encode(self.name),
            Placeholder::Kind => self.kind.name().to_owned(),
            Placeholder::Suffix => kind_suffix(self.kind).to_owned(),
            Placeholder::Date => self.date.to_owned(),
            Placeholder::Sequence => format!("{:01$}", self.sequence, MIN_SEQUENCE_DIGITS),
            Placeholder::Gateway => percent_encode(self.gateway),
            Placeholder::Year => date_part(self.date, 0..4),
            Placeholder::Month => date_part(self.date, 4..6),
            Placeholder::Day => date_part(self.date, 6..8),
        }
    }
}

/// How a target names and writes its files.
#[derive(Debug, Clone, Default)]
pub(super) struct FileSettings {
    /// The prefix of the keys.
    pub(super) prefix: String,
    /// The template of the keys.
    pub(super) key: KeyTemplate,
    pub(super) format: ExportFormat,
    /// The template of the graphs of a SPARQL store.
    pub(super) graph: Option<GraphTemplate>,
}

impl FileSettings {
    /// Returns the key of an export: of a SPARQL store the graph in angle brackets.
    pub(super) fn build_key(&self, values: &KeyValues<'_>) -> String {
        match &self.graph {
            Some(template) => {
                let (gateway, name) = (percent_encode(values.gateway), percent_encode(values.name));
                format!("<{}>", template.build_graph(&gateway, &name))
            }
            None => values.build_key(&self.key, self.format),
        }
    }
}

/// Returns the key of the metadata of an export in the format `jsonl`. In the format `json` the metadata is in the file.
pub(super) fn metadata_key(key: &str) -> Option<String> {
    key.ends_with(LINES_ENDING).then(|| replace_ending(key, LINES_ENDING, METADATA_ENDING))
}

/// Returns the key of the lines that this is the metadata of.
pub(super) fn lines_key(metadata_key: &str) -> Option<String> {
    metadata_key
        .ends_with(METADATA_ENDING)
        .then(|| replace_ending(metadata_key, METADATA_ENDING, LINES_ENDING))
}

/// What the key of an export says about its file.
pub trait ExportExt {
    /// Returns the format of the file. Only keys in the format `jsonl` have the ending `.jsonl`. Every file for a SPARQL
    /// store has quads here, since triples are quads too.
    fn format(&self) -> ExportFormat;

    /// Returns the graph of an export for a SPARQL store. Its key is the graph in angle brackets, which no other key has.
    fn graph(&self) -> Option<&str>;

    /// Returns a name for the file: the last part of the key.
    fn file_name(&self) -> String;

    /// Returns the media type of the file.
    fn media_type(&self) -> &'static str;

    /// Returns the key of the metadata, if it is an object of its own.
    fn metadata_key(&self) -> Option<String>;
}

impl ExportExt for Export {
    fn format(&self) -> ExportFormat {
        if self.graph().is_some() {
            ExportFormat::Quads
        } else if self.key.ends_with(LINES_ENDING) {
            ExportFormat::JsonLines
        } else {
            ExportFormat::Json
        }
    }

    fn graph(&self) -> Option<&str> {
        self.key.strip_prefix('<')?.strip_suffix('>')
    }

    fn file_name(&self) -> String {
        match self.graph() {
            Some(graph) => {
                let name = graph.rsplit(['/', ':', '#']).next().unwrap_or_default();
                format!("{name}-{:01$}.nq", self.sequence, MIN_SEQUENCE_DIGITS)
            }
            None => self.key.rsplit('/').next().unwrap_or_default().to_owned(),
        }
    }

    fn media_type(&self) -> &'static str {
        // An object of the backup.
        if self.business_object.is_empty() {
            return "application/octet-stream";
        }
        match self.format() {
            ExportFormat::Json => "application/json",
            ExportFormat::JsonLines => "application/x-ndjson",
            ExportFormat::Quads | ExportFormat::Triples => "application/n-quads",
        }
    }

    fn metadata_key(&self) -> Option<String> {
        metadata_key(&self.key)
    }
}

/// Checks the keys of a Business Object's exports of this kind, which is the one with the longest keys: that they fit
/// into a directory and a bucket, and that none has the ending of metadata.
///
/// # Errors
/// The reason and the remedy.
pub(super) fn check_key(
    files: &FileSettings,
    name: &str,
    kind: ExportKind,
    gateway: &str,
) -> Result<(), String> {
    let FileSettings { prefix, key: template, format, graph } = files;
    if graph.is_some() {
        // The template was checked, and an IRI has no limit.
        return Ok(());
    }
    let (date, sequence) = ("20260301T120000Z", 10_u64.pow(12) - 1);
    let values = KeyValues { prefix, name, kind, date, sequence, gateway };
    let full =
        KeyValues { kind: ExportKind::Full, ..values }.build_key(template, ExportFormat::Json);
    if full.ends_with(METADATA_ENDING) {
        return Err(format!(
            "the keys of the exports of `{name}` would end in `{METADATA_ENDING}`, which only the metadata of an \
             export has; rename the Business Object or change the target's `key`"
        ));
    }
    let key = values.build_key(template, *format);
    let key = metadata_key(&key).unwrap_or(key);
    let longest_part = key.split('/').map(str::len).max().unwrap_or_default();
    let excess = longest_part
        .saturating_sub(MAX_PATH_PART_BYTES)
        .max(key.len().saturating_sub(MAX_KEY_BYTES));
    if excess == 0 {
        return Ok(());
    }
    Err(format!(
        "the keys of the exports of `{name}` would be {excess} bytes too long (the limit is {MAX_PATH_PART_BYTES} in a \
         part of the path and {MAX_KEY_BYTES} in total); shorten the name of the Business Object, the target's \
         `prefix` or its `key`"
    ))
}

fn date_part(date: &str, range: std::ops::Range<usize>) -> String {
    date.get(range).unwrap_or_default().to_owned()
}

fn kind_suffix(kind: ExportKind) -> &'static str {
    match kind {
        ExportKind::Full => "",
        ExportKind::Incremental => ".incremental",
        ExportKind::Deleted => ".deleted",
    }
}

fn replace_ending(key: &str, ending: &str, new: &str) -> String {
    format!("{}{new}", key.strip_suffix(ending).unwrap_or(key))
}

/// Percent-encodes all bytes except `A-Za-z0-9._-`. A name that consists only of dots is encoded completely,
/// because it would lead to another folder.
fn percent_encode(name: &str) -> String {
    let dots = name.bytes().all(|b| b == b'.');
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if (byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')) && !dots {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push_str(&encode_hex(&[byte]).to_ascii_uppercase());
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::parse::MAX_READINGS;
    use super::*;
    use proptest::prelude::*;

    fn template(text: &str) -> KeyTemplate {
        text.parse().unwrap()
    }

    /// Returns the first reading of a key by the default template.
    fn parse(path: &str) -> Option<ExportKey> {
        ExportKey::parse_all(path, &[KeyTemplate::default()], None).into_iter().next()
    }

    fn full_export(name: &str, sequence: u64) -> KeyValues<'_> {
        let date = "20260301T120000Z";
        KeyValues {
            prefix: "plant/",
            name,
            kind: ExportKind::Full,
            date,
            sequence,
            gateway: "gw-1",
        }
    }

    #[test]
    fn export_keys_are_parsed_and_others_are_foreign() {
        let key =
            parse("edge 1/a-b%20%C3%BC/a-b%20%C3%BC-20260301T120000Z-000000000007.json").unwrap();
        assert_eq!(key.folder, "edge 1/a-b%20%C3%BC");
        assert_eq!((key.name.as_str(), key.sequence), ("a-b ü", 7));
        assert!(key.has_date("20260301T120000Z") && !key.has_date("20260301T120001Z"));
        assert_eq!(key.role, ObjectRole::Document);
        assert_eq!(
            parse("gw1-Pump/Pump-20260301T120000Z-1000000000000.json").unwrap().sequence,
            1_000_000_000_000
        );
        for path in [
            "Pump-20260301T120000Z-000000000007.json",
            "Valve/Pump-20260301T120000Z-000000000007.json",
            "Pump/Pump-20260301T120000Z-7.json",
            "Pump/Pump-20260301T120000Z-000000000000.json",
            "Pump/Pump-20260301-000000000007.json",
            "Pump/Pump-20260301T120000Z-000000000007.json.gz",
            "Pump/Pump-20260301T120000Z-000000000007.full.json",
            "Pump/Pump-20260301T120000Z-000000000007.incremental.incremental.json",
            "Pump/-20260301T120000Z-000000000007.json",
            "/Pump/Pump-20260301T120000Z-000000000007.json",
            "Pump/readme.txt",
            "ü",
            "",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
    }

    #[test]
    fn the_kind_and_the_format_are_in_the_key() {
        let stem = "Pump/Pump-20260301T120000Z-000000000007";
        for (ending, kind, role) in [
            (".json", None, ObjectRole::Document),
            (".incremental.json", Some(ExportKind::Incremental), ObjectRole::Document),
            (".deleted.json", Some(ExportKind::Deleted), ObjectRole::Document),
            (".jsonl", None, ObjectRole::Lines),
            (".meta.json", None, ObjectRole::Metadata),
            (".deleted.jsonl", Some(ExportKind::Deleted), ObjectRole::Lines),
            (".incremental.meta.json", Some(ExportKind::Incremental), ObjectRole::Metadata),
        ] {
            let key = parse(&format!("{stem}{ending}")).unwrap();
            assert_eq!((key.kind, key.role, key.folder.as_str()), (kind, role, "Pump"), "{ending}");
            assert_eq!(key.is_like_full, kind.is_none(), "{ending}");
        }
        let by_kind = [template("{prefix}{kind}/{name}/{sequence}.json")];
        let keys = ExportKey::parse_all("edge/full/Pump/000000000007.json", &by_kind, None);
        assert_eq!((keys[0].kind, keys[0].folder.as_str()), (Some(ExportKind::Full), "edge/Pump"));
        assert!(keys[0].is_like_full);
        assert!(ExportKey::parse_all("edge/all/Pump/000000000007.json", &by_kind, None).is_empty());
        let by_nothing = [template("{prefix}{name}/{sequence}.json")];
        let keys = ExportKey::parse_all("Pump/000000000007.json", &by_nothing, None);
        assert!(!keys[0].is_like_full, "only its metadata can tell");
    }

    #[test]
    fn a_known_prefix_decides_where_the_name_begins() {
        let templates = [template("{prefix}{name}/{sequence}.json")];
        let path = "edge-Pump/000000000007.json";
        let known = ExportKey::parse_all(path, &templates, Some("edge-"));
        assert_eq!(known.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["Pump"]);
        // The bucket may have exports of a gateway with another prefix.
        for other in ["", "plant/"] {
            let by_default = ExportKey::parse_all(
                "edge/Pump/Pump-20260301T120000Z-000000000007.json",
                &[KeyTemplate::default()],
                Some(other),
            );
            assert_eq!(by_default[0].folder, "edge/Pump");
        }
        let unknown = ExportKey::parse_all(path, &templates, None);
        assert_eq!(unknown[0].name, "edge-Pump");
        assert!(unknown.iter().any(|key| key.name == "Pump"));
        assert!(unknown.iter().all(|key| key.folder == "edge-Pump"));
    }

    #[test]
    fn keys_contain_no_path_characters() {
        let default = KeyTemplate::default();
        let key = |values: KeyValues<'_>| values.build_key(&default, ExportFormat::Json);
        assert_eq!(
            key(full_export("Pump", 7)),
            "plant/Pump/Pump-20260301T120000Z-000000000007.json"
        );
        let deleted = KeyValues { kind: ExportKind::Deleted, ..full_export("Pump", 8) };
        assert_eq!(
            deleted.build_key(&default, ExportFormat::JsonLines),
            "plant/Pump/Pump-20260301T120000Z-000000000008.deleted.jsonl"
        );
        let by_gateway =
            template("{prefix}{gateway}/{name}/{yyyy}/{mm}/{dd}/{sequence}-{kind}.json");
        let lost = KeyValues { gateway: "..", ..full_export("..", 7) };
        assert_eq!(
            lost.build_key(&by_gateway, ExportFormat::Json),
            "plant/%2E%2E/%2E%2E/2026/03/01/000000000007-full.json"
        );
        assert_eq!(percent_encode("a b/ü..c"), "a%20b%2F%C3%BC..c");
        assert_eq!(percent_encode("."), "%2E");
        assert_eq!(percent_encode(".."), "%2E%2E");
    }

    #[test]
    fn metadata_is_beside_its_lines() {
        assert_eq!(
            metadata_key("Pump/1.deleted.jsonl").as_deref(),
            Some("Pump/1.deleted.meta.json")
        );
        assert_eq!(lines_key("Pump/1.deleted.meta.json").as_deref(), Some("Pump/1.deleted.jsonl"));
        assert_eq!((metadata_key("Pump/1.json"), lines_key("Pump/1.json")), (None, None));
    }

    #[test]
    fn names_that_are_too_long_for_a_key_are_refused() {
        let settings = |key: &KeyTemplate, prefix: &str| FileSettings {
            prefix: prefix.to_owned(),
            key: key.clone(),
            format: ExportFormat::Json,
            graph: None,
        };
        let check = |key: &KeyTemplate, prefix: &str, name: &str, kind| {
            check_key(&settings(key, prefix), name, kind, "gw-1")
        };
        let default = KeyTemplate::default();
        for (kind, longest) in [(ExportKind::Incremental, 208), (ExportKind::Full, 220)] {
            assert_eq!(check(&default, "", &"n".repeat(longest), kind), Ok(()));
            let error = check(&default, "", &"n".repeat(longest + 1), kind).unwrap_err();
            assert!(error.contains("would be 1 bytes too long"), "{error}");
        }
        let error = check(&default, "", &"ü".repeat(100), ExportKind::Incremental).unwrap_err();
        assert!(error.contains("would be 392 bytes too long"), "{error}");
        let flat = template("{prefix}{name}/{sequence}-{kind}.json");
        assert_eq!(check(&flat, "", &"n".repeat(255), ExportKind::Incremental), Ok(()));
        assert!(check(&flat, "", &"n".repeat(256), ExportKind::Incremental).is_err());
        let error = check(&default, &"p/".repeat(500), "Pump", ExportKind::Full).unwrap_err();
        assert!(error.contains("the target's `prefix` or its `key`"), "{error}");
    }

    #[test]
    fn only_metadata_has_the_ending_of_metadata() {
        let key = template("{prefix}{sequence}-{name}.json");
        for format in [ExportFormat::Json, ExportFormat::JsonLines] {
            let files =
                FileSettings { prefix: String::new(), key: key.clone(), format, graph: None };
            assert_eq!(check_key(&files, "Pump", ExportKind::Full, "gw-1"), Ok(()));
            assert_eq!(check_key(&files, "Pump.metal", ExportKind::Full, "gw-1"), Ok(()));
            let error = check_key(&files, "Pump.meta", ExportKind::Full, "gw-1").unwrap_err();
            assert!(error.contains("would end in `.meta.json`"), "{error}");
        }
        let default = FileSettings::default();
        assert_eq!(check_key(&default, "Pump.meta", ExportKind::Incremental, "gw-1"), Ok(()));
    }

    #[test]
    fn every_end_of_a_long_prefix_is_a_reading() {
        let templates = [template("{prefix}{name}/{sequence}.json"), KeyTemplate::default()];
        for path in [
            "plant-exports-of-the-gateway-edge-1-Pump/000000000007.json",
            "plant-exports-of-the-gateway-edge-1-Pump/Pump-20260301T120000Z-000000000007.json",
        ] {
            let readings = ExportKey::parse_all(path, &templates, None);
            assert!(readings.iter().any(|key| key.name == "Pump"), "{path}: {readings:?}");
        }
    }

    /// Generates templates from placeholders in any order with separators between them.
    fn arbitrary_template() -> impl Strategy<Value = KeyTemplate> {
        let middle = prop::sample::subsequence(
            vec![
                "{name}",
                "{kind}",
                "{date}",
                "{gateway}",
                "{yyyy}",
                "{mm}",
                "{dd}",
                "x",
                "part-7",
            ],
            0..8,
        )
        .prop_shuffle();
        let separators =
            prop::collection::vec(prop::sample::select(vec!["/", "-", "-a/", "/.b-"]), 12);
        (middle, separators, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(middle, separators, has_suffix, is_name_first, is_name_last)| {
                let mut text = "{prefix}".to_owned();
                let name = if is_name_first { "{name}" } else { "all" };
                for (part, separator) in [name].into_iter().chain(middle).zip(&separators) {
                    text.push_str(part);
                    text.push_str(separator);
                }
                text.push_str(if is_name_first { "{sequence}" } else { "{name}/{sequence}" });
                text.push_str(match (has_suffix, is_name_last) {
                    (_, true) => "-{name}.json",
                    (true, false) => "{suffix}.json",
                    (false, false) => ".json",
                });
                text.parse().unwrap()
            },
        )
    }

    proptest! {
        #[test]
        fn a_rendered_key_is_parsed_back(
            template in arbitrary_template(),
            prefix in prop::sample::select(vec!["", "edge 1/", "a/b/", "gw1-", "7/"]),
            name in "[a-b.ü/ _-]{1,6}|full|20260301T120000Z|[a-b]?\\.meta",
            gateway in "[a-b._-]{1,4}",
            kind in prop::sample::select(vec![ExportKind::Full, ExportKind::Incremental, ExportKind::Deleted]),
            sequence in prop_oneof![1..20_u64, 999_999_999_990..1_000_000_000_010_u64, Just(u64::MAX)],
            is_prefix_known in any::<bool>(),
        ) {
            let date = "20260301T120000Z";
            let values = KeyValues { prefix, name: &name, kind, date, sequence, gateway: &gateway };
            let format = ExportFormat::Json;
            let files = FileSettings {
                prefix: prefix.to_owned(),
                key: template.clone(),
                format,
                graph: None,
            };
            prop_assume!(check_key(&files, &name, kind, &gateway).is_ok());
            for format in [ExportFormat::Json, ExportFormat::JsonLines] {
                let key = values.build_key(&template, format);
                prop_assert!(key.starts_with(prefix));
                prop_assert!(key.split('/').all(|part| !matches!(part, "" | "." | "..")), "{}", key);
                let known = is_prefix_known.then_some(prefix);
                let keys = ExportKey::parse_all(&key, std::slice::from_ref(&template), known);
                let is_right = |found: &ExportKey| {
                    found.name == name
                        && found.sequence == sequence
                        && found.folder == format!("{prefix}{}", percent_encode(&name))
                        && found.has_date(date)
                        && found.kind.is_none_or(|found| found == kind)
                        && found.gateway.as_ref().is_none_or(|found| *found == gateway)
                };
                prop_assert!(keys.iter().any(is_right), "{} by {}: {:?}", key, template, keys);
                // Only a name beside a gateway can end in two places.
                if is_prefix_known && !template.has(Placeholder::Gateway) {
                    prop_assert_eq!(keys.len(), 1, "{} by {}: {:?}", key, template, keys);
                }
                if template.has(Placeholder::Kind) || kind != ExportKind::Full && template.tells_kind() {
                    prop_assert!(keys.iter().all(|found| found.kind == Some(kind)));
                }
            }
        }

        #[test]
        fn exports_of_one_gateway_have_different_keys(
            template in arbitrary_template(),
            exports in prop::collection::btree_set(("[a-b.-]{1,4}", 1..4_u64), 2..6),
        ) {
            let keys: std::collections::BTreeSet<String> = exports
                .iter()
                .map(|(name, sequence)| {
                    full_export(name, *sequence).build_key(&template, ExportFormat::Json)
                })
                .collect();
            prop_assert_eq!(keys.len(), exports.len());
        }

        #[test]
        fn any_text_is_parsed_without_a_panic(
            path in "([a-z0-9/.%ü-]|full|incremental|20260301T120000Z|000000000001|\\.meta\\.json|\\.jsonl?){0,12}",
            template in arbitrary_template(),
        ) {
            let keys = ExportKey::parse_all(&path, &[template, KeyTemplate::default()], None);
            prop_assert!(keys.len() <= 2 * MAX_READINGS);
        }
    }
}
