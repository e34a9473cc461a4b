//! A model of a consumer, which applies the files of each target in sequence order.
use crate::Exporter;
use crate::entry::{ExportEntry, Kind, Status};
use serde_json::Value;
use std::collections::BTreeMap;

/// A consumer of all targets. It keeps the files that it has read, by target, name and sequence.
#[derive(Default)]
pub(super) struct Consumer {
    pub(super) files: BTreeMap<(String, String), Files>,
}

pub(super) type Files = BTreeMap<u64, (Kind, Vec<Value>)>;

impl Consumer {
    /// Reads the new files of all targets.
    pub(super) fn read_files(&mut self, exporter: &Exporter) {
        for entry in exporter.list(None, 100_000).unwrap() {
            if entry.status == Status::Waiting {
                continue;
            }
            let ExportEntry { target, business_object_name: name, .. } = &entry;
            let files = self.files.entry((target.clone(), name.clone())).or_default();
            files.entry(entry.sequence).or_insert_with(|| {
                let content = exporter.open_content(&entry.id).unwrap();
                let file: Value = serde_json::from_reader(content.file).unwrap();
                let data = file["data"].as_array().unwrap().clone();
                assert_eq!(data.len() as u64, entry.object_count);
                (entry.kind, data)
            });
        }
    }

    /// Returns the kinds of the plants' files in order.
    pub(super) fn plant_kinds(&self, target: &str) -> Vec<Kind> {
        let files = &self.files[&(target.to_owned(), "Plant".to_owned())];
        files.values().map(|(kind, _)| *kind).collect()
    }

    /// Returns the consumer's objects of one name in one target, by URI.
    pub(super) fn objects_of(&self, target: &str, name: &str) -> BTreeMap<String, Value> {
        let mut held = BTreeMap::new();
        let files = self.files.get(&(target.to_owned(), name.to_owned()));
        for (expected, (sequence, (kind, data))) in (1..).zip(files.into_iter().flatten()) {
            assert_eq!(*sequence, expected, "a gap in {target}/{name}");
            if *kind == Kind::Full {
                held.clear();
            }
            for object in data {
                let uri = object["uri"].as_str().unwrap().to_owned();
                if *kind == Kind::Deleted {
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
