//! Creates the index of a key that a definition adds to a namespace with objects, before the key takes effect.
//!
//! The objects are read page by page, and each page is a commit. Ingestion continues meanwhile: every commit updates the
//! index of the new key too, because the build is registered first. An object without a key value, or with the key of
//! another object, is a problem. The commit of the definition checks the problems again and fails if one remains.
use super::{KeyMatch, NaturalKey};
use crate::list::is_list_node;
use oxrdf::NamedNode;
use parking_lot::{Mutex, MutexGuard};
use penstock_base::commit::{CommitCheck, commit};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_store::{Error, Pattern, Read, Store, SubjectFilter, Transaction};
use std::collections::BTreeSet;

/// The number of objects in one commit.
const OBJECTS_PER_COMMIT: usize = 1000;
/// The number of problems after which the build ends.
const MAX_PROBLEMS: usize = 10_000;
/// The number of objects that an error names.
const MAX_NAMED: usize = 10;

/// A key whose index is being created.
#[derive(Debug)]
pub(crate) struct KeyBuild {
    pub(super) key: NaturalKey,
    /// The objects that had no usable key when a commit last changed them.
    problems: Mutex<BTreeSet<NamedNode>>,
}

impl KeyBuild {
    pub(super) fn new(key: NaturalKey) -> Self {
        Self { key, problems: Mutex::default() }
    }

    /// Returns whether the entries of the key begin with this digest.
    pub(crate) fn has_digest(&self, digest: &[u8]) -> bool {
        self.key.has_digest(digest)
    }

    /// Updates the index in a commit that changed the graph, and records problems.
    pub(crate) fn update(&self, transaction: &mut Transaction<'_>) -> Result<(), Error> {
        self.key.update_entries(transaction)?;
        let in_graph = Pattern { graph: Some(self.key.graph.clone()), ..Pattern::default() };
        let mut changed = self.key.find_affected(transaction)?;
        changed.extend(transaction.find_changed_subjects(&in_graph)?);
        changed.keys().try_for_each(|uri| self.check_object(transaction, uri))
    }

    /// Records the object if it has no usable key.
    fn check_object(&self, read: &dyn Read, uri: &NamedNode) -> Result<(), Error> {
        if self.key.has_problem(read, uri)? {
            let mut problems = self.lock_problems();
            if problems.len() < MAX_PROBLEMS {
                problems.insert(uri.clone());
            }
        }
        Ok(())
    }

    fn lock_problems(&self) -> MutexGuard<'_, BTreeSet<NamedNode>> {
        self.problems.lock()
    }

    /// Adds the objects of the namespace to the index, until too many of them have no usable key.
    pub(super) fn add_objects(
        &self,
        store: &Store,
        check: &dyn CommitCheck,
    ) -> Result<(), GatewayError> {
        self.key.add_objects(store, check, |transaction, uri| {
            self.check_object(transaction, uri)?;
            Ok(self.lock_problems().len() < MAX_PROBLEMS)
        })
    }

    /// Checks that no problem remains.
    pub(super) fn verify(&self, read: &dyn Read) -> Result<(), GatewayError> {
        let recorded = self.lock_problems().clone();
        let is_complete = recorded.len() < MAX_PROBLEMS;
        let mut remaining = Vec::new();
        for uri in recorded {
            if self.key.has_problem(read, &uri)? {
                remaining.push(uri);
            }
        }
        if remaining.is_empty() && is_complete {
            return Ok(());
        }
        let objects = match remaining.len() {
            1 => "1 stored object has no value for it, or shares one".to_owned(),
            count => format!("{count} stored objects have no value for it, or share one"),
        };
        let at_least = if is_complete { "" } else { "at least " };
        let findings = remaining
            .into_iter()
            .take(MAX_NAMED)
            .map(|uri| Ok(Finding::whole(self.key.describe_problem(read, &uri)?)));
        Err(GatewayError::with_findings(
            ErrorClass::Conflict,
            format!(
                "the key of the namespace `{}` cannot take effect: {at_least}{objects}; correct or delete them \
                 first, or use another namespace",
                self.key.namespace.name
            ),
            findings.collect::<Result<_, Error>>()?,
        ))
    }
}

impl NaturalKey {
    /// Adds the objects of the namespace to the index, in commits of bounded size, as long as `visit` returns true.
    pub(super) fn add_objects(
        &self,
        store: &Store,
        check: &dyn CommitCheck,
        mut visit: impl FnMut(&Transaction<'_>, &NamedNode) -> Result<bool, Error>,
    ) -> Result<(), GatewayError> {
        let filter = SubjectFilter {
            graph: Some(self.graph.clone()),
            having: Vec::new(),
            ..SubjectFilter::default()
        };
        let mut last: Option<String> = None;
        loop {
            let page = store.list_subjects(&filter, last.as_deref(), OBJECTS_PER_COMMIT)?;
            let Some(end) = page.last() else { return Ok(()) };
            last = Some(end.as_str().to_owned());
            let (goes_on, _) = commit::<_, GatewayError>(store, check, |transaction| {
                let mut goes_on = true;
                for uri in &page {
                    let key_uris = self.read_key_uris(transaction, uri)?;
                    self.add_entries(transaction, uri, &key_uris)?;
                    goes_on &= visit(transaction, uri)?;
                }
                Ok(goes_on)
            })?;
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Returns whether an object of the namespace has no usable key, or the key of another object. The nodes of lists are no
    /// objects.
    fn has_problem(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, Error> {
        if is_list_node(uri) || !self.covers(read, uri)? {
            return Ok(false);
        }
        if self.read_texts(read, uri)?.is_none() {
            return Ok(true);
        }
        for key_uri in self.read_key_uris(read, uri)? {
            if matches!(self.find_objects(read, &key_uri, true)?, KeyMatch::Several(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn describe_problem(&self, read: &dyn Read, uri: &NamedNode) -> Result<String, Error> {
        let Some(texts) = self.read_texts(read, uri)? else {
            return Ok(format!("{} has no single value for the key", uri.as_str()));
        };
        let shared = format!("{} shares the key {:?}", uri.as_str(), texts.join("/"));
        for key_uri in self.read_key_uris(read, uri)? {
            if let KeyMatch::Several(found) = self.find_objects(read, &key_uri, true)?
                && let Some(other) = found.iter().find(|other| *other != uri)
            {
                return Ok(format!("{shared} with {}", other.as_str()));
            }
        }
        Ok(shared)
    }
}
