//! What a request has found out about URIs so far, with a savepoint: a rejected object takes what it added with it.
use oxrdf::NamedNode;
use std::collections::HashMap;

/// A value for each URI. An entry never changes.
#[derive(Debug)]
pub(super) struct RequestUris<V> {
    values: HashMap<NamedNode, V>,
    /// The URIs since the savepoint; `None` without one.
    since_savepoint: Option<Vec<NamedNode>>,
}

impl<V> Default for RequestUris<V> {
    fn default() -> Self {
        Self { values: HashMap::new(), since_savepoint: None }
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
        if self.values.contains_key(&uri) {
            return;
        }
        if let Some(recent) = &mut self.since_savepoint {
            recent.push(uri.clone());
        }
        self.values.insert(uri, value);
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
