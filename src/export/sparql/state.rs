//! The state of a graph in the store, as the results of a query.
use crate::graph_lines::VOCABULARY;
use penstock_resources::export::Export;
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};

/// What the store has of a Business Object.
///
/// There is one sequence, id and target, unless two requests ran at the same time or a store without transactions was
/// interrupted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StoreState {
    /// The sequence of the last export that was applied.
    pub(super) sequences: BTreeSet<u64>,
    /// The id of that export.
    pub(super) export_ids: BTreeSet<String>,
    /// The bucketName of the target that wrote it.
    pub(super) targets: BTreeSet<String>,
    /// Up to which position of its file the export to deliver is staged.
    pub(super) staged_bytes: u64,
}

/// The results of a query (SPARQL 1.1 Query Results JSON Format).
#[derive(Deserialize)]
struct QueryResults {
    results: Bindings,
}

#[derive(Deserialize)]
struct Bindings {
    bindings: Vec<HashMap<String, Value>>,
}

#[derive(Deserialize)]
struct Value {
    value: String,
}

impl StoreState {
    /// Returns the state of a store that answers no queries, by the last sequence that was delivered to it.
    pub(super) fn assumed(last_delivered: u64) -> Self {
        Self { sequences: BTreeSet::from([last_delivered]), ..Self::default() }
    }

    /// Parses the results of the query for the state: `?p` and `?o` of the state, and `?written` of what is staged.
    pub(super) fn parse(body: &str) -> Option<Self> {
        let results: QueryResults = serde_json::from_str(body).ok()?;
        let mut state = Self::default();
        for binding in results.results.bindings {
            let value = |name: &str| binding.get(name).map(|value| value.value.clone());
            if let Some(written) = value("written") {
                state.staged_bytes = state.staged_bytes.max(written.parse().ok()?);
            }
            let (Some(predicate), Some(object)) = (value("p"), value("o")) else { continue };
            match predicate.strip_prefix(VOCABULARY) {
                Some("sequence") => {
                    state.sequences.insert(object.parse().ok()?);
                }
                Some("export-id") => {
                    state.export_ids.insert(object);
                }
                Some("target") => {
                    state.targets.insert(object);
                }
                _ => {}
            }
        }
        Some(state)
    }

    /// Returns the highest sequence, 0 if there is none.
    pub(super) fn last_sequence(&self) -> u64 {
        self.sequences.last().copied().unwrap_or(0)
    }

    /// Returns whether this export was the last one that was applied.
    pub(super) fn has_export(&self, entry: &Export) -> bool {
        self.last_sequence() == entry.sequence && self.export_ids.contains(&entry.id)
    }

    /// Returns whether the state mixes several exports.
    pub(super) fn is_mixed(&self) -> bool {
        self.sequences.len() > 1 || self.export_ids.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_read_from_the_results_of_a_query() {
        let bindings = [
            r#"{"p":{"type":"uri","value":"urn:penstock:export:sequence"},"o":{"type":"literal","value":"7"}}"#,
            r#"{"p":{"type":"uri","value":"urn:penstock:export:export-id"},"o":{"type":"literal","value":"a"}}"#,
            r#"{"p":{"type":"uri","value":"urn:penstock:export:target"},"o":{"type":"literal","value":"t"}}"#,
            r#"{"written":{"type":"typed-literal","value":"20"}}"#,
            r#"{"written":{"type":"typed-literal","value":"300"}}"#,
        ];
        let body = format!(
            r#"{{"head":{{"vars":[]}},"results":{{"bindings":[{}]}}}}"#,
            bindings.join(",")
        );
        let state = StoreState {
            sequences: BTreeSet::from([7]),
            export_ids: BTreeSet::from(["a".to_owned()]),
            targets: BTreeSet::from(["t".to_owned()]),
            staged_bytes: 300,
        };
        assert_eq!(StoreState::parse(&body), Some(state));
        // Without a value, an aggregate has a row without a binding.
        let none = r#"{"head":{},"results":{"bindings":[{}]}}"#;
        assert_eq!(StoreState::parse(none), Some(StoreState::default()));
        let none = r#"{"head":{},"results":{"bindings":[]}}"#;
        assert_eq!(StoreState::parse(none), Some(StoreState::default()));
        for other in ["", "<sparql/>", r#"{"boolean":true}"#] {
            assert_eq!(StoreState::parse(other), None, "{other}");
        }
    }
}
