//! What a request has found out about URIs so far, with a savepoint: a rejected object takes what it added with it.
use oxrdf::NamedNode;
use penstock_store::FastMap;
use std::collections::hash_map::Entry;

/// A value for each URI. An entry never changes.
#[derive(Debug)]
pub(super) struct RequestUris<V> {
    values: FastMap<NamedNode, V>,
    /// The URIs since the savepoint; `None` without one.
    since_savepoint: Option<Vec<NamedNode>>,
}

impl<V> Default for RequestUris<V> {
    fn default() -> Self {
        Self { values: FastMap::default(), since_savepoint: None }
    }
}

impl<V> RequestUris<V> {
    pub(super) fn contains(&self, uri: &NamedNode) -> bool {
        self.values.contains_key(uri)
    }

    pub(super) fn get(&self, uri: &NamedNode) -> Option<&V> {
        self.values.get(uri)
    }

    /// Adds an entry unless there is one.
    pub(super) fn insert(&mut self, uri: NamedNode, value: V) {
        let Entry::Vacant(entry) = self.values.entry(uri) else { return };
        if let Some(recent) = &mut self.since_savepoint {
            recent.push(entry.key().clone());
        }
        entry.insert(value);
    }

    pub(super) fn set_savepoint(&mut self) {
        self.since_savepoint.get_or_insert_default().clear();
    }

    pub(super) fn roll_back_to_savepoint(&mut self) {
        for uri in self.since_savepoint.take().into_iter().flatten() {
            self.values.remove(&uri);
        }
    }
}
