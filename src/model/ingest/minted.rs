//! The URIs that counters minted for a request.
use oxrdf::NamedNode;
use std::collections::HashSet;

/// The URIs that counters minted for a request. A URI given later must not equal one of them. Those since a savepoint can
/// be forgotten, because a rejected object takes its URIs with it.
#[derive(Debug, Default)]
pub(super) struct MintedUris {
    uris: HashSet<NamedNode>,
    /// Those since the savepoint; `None` without one.
    since_savepoint: Option<Vec<NamedNode>>,
}

impl MintedUris {
    pub(super) fn contains(&self, uri: &NamedNode) -> bool {
        self.uris.contains(uri)
    }

    pub(super) fn insert(&mut self, uri: NamedNode) {
        if let Some(recent) = &mut self.since_savepoint {
            recent.push(uri.clone());
        }
        self.uris.insert(uri);
    }

    pub(super) fn set_savepoint(&mut self) {
        self.since_savepoint.get_or_insert_default().clear();
    }

    pub(super) fn roll_back_to_savepoint(&mut self) {
        for uri in self.since_savepoint.take().into_iter().flatten() {
            self.uris.remove(&uri);
        }
    }
}
