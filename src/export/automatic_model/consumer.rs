//! A model of a consumer, which applies the files of each target in sequence order.
use super::*;
use crate::Exporter;
use crate::key::ExportExt as _;
use crate::record::{EXPORT_IDS, EXPORTS};
use crate::verify;
use penstock_config::ExportFormat;
use penstock_resources::export::Export;

/// A consumer of all targets. It keeps the files that it has read, by target, name and sequence.
#[derive(Default)]
pub(super) struct Consumer {
    pub(super) files: BTreeMap<(String, String), Files>,
}

pub(super) type Files = BTreeMap<u64, (ExportKind, Vec<Value>)>;

impl Consumer {
    /// Reads the new files of all targets.
    pub(super) fn read_files(&mut self, exporter: &Exporter) {
        for entry in exporter.list(None, 100_000).unwrap() {
            if entry.status == ExportStatus::Waiting {
                continue;
            }
            let Export { target, business_object_name: name, .. } = &entry;
            let files = self.files.entry((target.clone(), name.clone())).or_default();
            files.entry(entry.sequence).or_insert_with(|| {
                let data = read_data(exporter, &entry);
                assert_eq!(data.len() as u64, entry.object_count);
                (kind_in_key(&entry), data)
            });
        }
    }

    /// Returns the kinds of the plants' files in order.
    pub(super) fn plant_kinds(&self, target: &str) -> Vec<ExportKind> {
        let files = &self.files[&(target.to_owned(), "Plant".to_owned())];
        files.values().map(|(kind, _)| *kind).collect()
    }

    /// Returns the consumer's objects of one name in one target, by URI.
    pub(super) fn objects_of(&self, target: &str, name: &str) -> BTreeMap<String, Value> {
        let mut held = BTreeMap::new();
        let files = self.files.get(&(target.to_owned(), name.to_owned()));
        for (expected, (sequence, (kind, data))) in (1..).zip(files.into_iter().flatten()) {
            assert_eq!(*sequence, expected, "a gap in {target}/{name}");
            if *kind == ExportKind::Full {
                held.clear();
            }
            for object in data {
                let uri = object["uri"].as_str().unwrap().to_owned();
                if *kind == ExportKind::Deleted {
                    assert_eq!(object.as_object().unwrap().len(), 1);
                    held.remove(&uri);
                } else {
                    held.insert(uri, object.clone());
                }
            }
        }
        held
    }
}

/// Returns the kind that the key of an export tells.
fn kind_in_key(entry: &Export) -> ExportKind {
    let key = entry.key.as_str();
    let is_kind =
        |kind: &str| key.contains(&format!(".{kind}.json")) || key.starts_with(&format!("{kind}/"));
    let kind = match (is_kind("incremental"), is_kind("deleted")) {
        (true, _) => ExportKind::Incremental,
        (_, true) => ExportKind::Deleted,
        _ => ExportKind::Full,
    };
    assert_eq!(kind, entry.kind, "{key}");
    kind
}

/// Reads the objects of an export, and checks its metadata.
fn read_data(exporter: &Exporter, entry: &Export) -> Vec<Value> {
    let text = std::io::read_to_string(exporter.open_content(&entry.id).unwrap().file).unwrap();
    let (verified, data) = match entry.format() {
        ExportFormat::Json => {
            let file: Value = serde_json::from_str(&text).unwrap();
            let data = file["data"].as_array().unwrap().clone();
            (verify::read_file(text.as_bytes()).unwrap(), data)
        }
        ExportFormat::JsonLines => {
            let queue = &exporter.inner.queue;
            let order = EXPORT_IDS.get(&queue.store.read(), &entry.id).unwrap().unwrap();
            let record = EXPORTS.get(&queue.store.read(), order).unwrap().unwrap();
            let metadata = record.metadata.unwrap();
            let metadata = verify::read_metadata_document(metadata.as_bytes()).unwrap();
            let data = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            (verify::read_lines(metadata, text.as_bytes()).unwrap(), data)
        }
        ExportFormat::Quads | ExportFormat::Triples => panic!("the model has no SPARQL store"),
    };
    let extended = verified.extended.unwrap();
    assert_eq!(extended.kind, entry.kind.name());
    assert_eq!((extended.sequence, &extended.export_id), (entry.sequence, &entry.id));
    assert!(extended.schema_version > 0 && extended.commit > 0);
    assert_eq!(
        (&verified.data_checksum, verified.object_count),
        (&entry.data_checksum, entry.object_count)
    );
    data
}
