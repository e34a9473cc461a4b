//! What a change would do: each object before and after it, and the quads that it adds and removes.
use super::compression::compress;
use super::open::hash_subject;
use super::read::{Part, read_json};
use super::record::Change;
use crate::ingest::{Answer, Request};
use crate::list::find_owner;
use crate::mapping::Shape;
use crate::resource::Compiled;
use crate::view;
use crate::visible::VisibleObjects;
use oxrdf::{NamedNode, Quad};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::change::ChangedObject;
use penstock_resources::ingestion::{IngestedStatus, Warning};
use penstock_store::{Pattern, Read, Transaction};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

/// The bytes after which a page ends, before it is compressed. A larger object has a page of its own.
const MAX_PAGE_BYTES: usize = 64 << 10;
/// The maximum number of objects of a page.
const MAX_PAGE_ITEMS: usize = 100;

/// An object that a change creates, changes or removes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DifferenceItem {
    /// Its URI.
    pub uri: String,
    /// What the change does with it. An object of the request that only changes in a nested one counts as updated.
    pub status: IngestedStatus,
    /// Its index in the request, where the request names it first; `None` for nested objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Whether it is removed because nothing refers to it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orphaned: bool,
    /// An object of the request as the view shows it now; `None` if it does not exist, and for nested objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<RawValue>>,
    /// An object of the request as the view would show it; `None` if it would not exist, and for nested objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Box<RawValue>>,
    /// The quads about it that are added, as lines of N-Quads, sorted.
    pub added: Vec<String>,
    /// The quads about it that are removed.
    pub removed: Vec<String>,
}

impl From<DifferenceItem> for ChangedObject {
    fn from(item: DifferenceItem) -> Self {
        let DifferenceItem { uri, status, index, orphaned, before, after, added, removed } = item;
        Self { uri, status, index, orphaned, before, after, added, removed }
    }
}

/// A difference, in pages.
#[derive(Debug)]
pub(super) struct Difference {
    /// The SHA-256 of its objects, of the warnings and of the names of the bypassed Business Objects, in hexadecimal.
    pub(super) digest: String,
    /// The number of its objects.
    pub(super) items: u64,
    /// Its pages: arrays of [`DifferenceItem`], compressed, and the size of each before.
    pub(super) pages: Vec<(Vec<u8>, u64)>,
    /// The hashes of its objects.
    pub(super) subjects: Vec<u8>,
}

/// Collects pages.
#[derive(Default)]
struct Paginator {
    digest: Sha256,
    items: u64,
    subjects: Vec<u8>,
    page: Vec<u8>,
    page_items: usize,
    finished: Vec<(Vec<u8>, u64)>,
}

/// Computes what the transaction changes: first the objects of the request in its order, then the others by their URIs.
/// `orphans` are the nested objects that it removes because nothing refers to them any more. `bypassed` are the other
/// Business Objects that require a review and whose objects it changes. The digest covers their names and the warnings too,
/// because an approver decides with them.
pub(super) fn compute_difference(
    transaction: &mut Transaction<'_>,
    request: &Request<'_>,
    answer: &Answer,
    orphans: &[NamedNode],
    bypassed: &[String],
) -> Result<Difference, GatewayError> {
    let mut pages = Paginator::default();
    for name in bypassed {
        pages.digest.update((name.len() as u64).to_be_bytes());
        pages.digest.update(name);
    }
    pages.digest.update(digest_warnings(&answer.warnings)?);
    for_each_item(transaction, request, answer, orphans, &mut |item| {
        pages.push(&item)?;
        Ok(ControlFlow::Continue(()))
    })?;
    pages.finish()
}

/// Returns a page of the difference of a change; none past its end.
///
/// # Errors
/// The errors of the store.
pub fn read_difference(
    read: &dyn Read,
    change: &Change,
    page: u32,
) -> Result<Vec<DifferenceItem>, GatewayError> {
    if page >= change.pages {
        return Ok(Vec::new());
    }
    read_json(read, change, Part::Page(page))
}

/// Calls `visit` with each object that the transaction changes: first those of the request in its order, then the others by
/// their URIs, until it breaks. `orphans` are the nested objects that it removes because nothing refers to them any more.
/// Returns how many objects were not visited. The views show what the credential of the request sees.
///
/// # Errors
/// The errors of the store and of `visit`.
pub(crate) fn for_each_item(
    transaction: &mut Transaction<'_>,
    request: &Request<'_>,
    answer: &Answer,
    orphans: &[NamedNode],
    visit: &mut dyn FnMut(DifferenceItem) -> Result<ControlFlow<()>, GatewayError>,
) -> Result<usize, GatewayError> {
    // Each object, with the nodes of its lists.
    let mut changed: BTreeMap<NamedNode, Vec<NamedNode>> = BTreeMap::new();
    for (uri, _) in transaction.changed_subjects()? {
        let object = find_owner(&uri).unwrap_or_else(|| uri.clone());
        changed.entry(object).or_default().push(uri);
    }
    let orphans: HashSet<&NamedNode> = orphans.iter().collect();
    let transaction = &*transaction;
    let prior = transaction.prior_state();
    let root = &request.business_object.mapping.root;
    let visible_before = VisibleObjects::new(&prior, request.watch, list_scope(request))?;
    let visible_after = VisibleObjects::new(transaction, request.watch, list_scope(request))?;
    let mut requested: HashSet<&str> = HashSet::new();
    let (mut is_stopped, mut skipped) = (false, 0);
    for outcome in &answer.objects {
        let uri = NamedNode::new_unchecked(&outcome.uri);
        let is_same = matches!(outcome.status, IngestedStatus::Unchanged | IngestedStatus::Absent);
        if !requested.insert(&outcome.uri) || is_same && !changed.contains_key(&uri) {
            continue;
        }
        if is_stopped {
            skipped += 1;
            continue;
        }
        let item = DifferenceItem {
            index: Some(outcome.index),
            before: render_if_stored(&visible_before, root, &uri)?,
            after: render_if_stored(&visible_after, root, &uri)?,
            ..compare_quads(&prior, transaction, (&uri, changed.get(&uri)), false)?
        };
        is_stopped = visit(item)?.is_break();
    }
    for (uri, nodes) in changed.iter().filter(|(uri, _)| !requested.contains(uri.as_str())) {
        if is_stopped {
            skipped += 1;
            continue;
        }
        let is_orphan = orphans.contains(uri);
        let item = compare_quads(&prior, transaction, (uri, Some(nodes)), is_orphan)?;
        is_stopped = visit(item)?.is_break();
    }
    Ok(skipped)
}

fn list_scope<'r>(request: &Request<'r>) -> Option<impl Iterator<Item = &'r Compiled>> {
    request.write_scope.map(|scope| scope.iter().copied())
}

/// Returns the SHA-256 of warnings in any order.
fn digest_warnings(warnings: &[Warning]) -> Result<[u8; 32], GatewayError> {
    let encode = |warning| serde_json::to_vec(warning).map_err(|error| unwritable_error(&error));
    let mut encoded = warnings.iter().map(encode).collect::<Result<Vec<_>, _>>()?;
    encoded.sort();
    let mut digest = Sha256::new();
    for warning in encoded {
        digest.update((warning.len() as u64).to_be_bytes());
        digest.update(warning);
    }
    Ok(digest.finalize().into())
}

/// Returns the quads about an object and the nodes of its lists that differ, without its views. `changed` are those with such a
/// quad.
fn compare_quads(
    before: &dyn Read,
    after: &dyn Read,
    (uri, changed): (&NamedNode, Option<&Vec<NamedNode>>),
    orphaned: bool,
) -> Result<DifferenceItem, GatewayError> {
    let write = |quads: Vec<Quad>| quads.into_iter().map(|quad| format!("{quad} ."));
    let (mut old, mut new) = (BTreeSet::new(), BTreeSet::new());
    let nodes = changed.into_iter().flatten().filter(|node| *node != uri);
    for subject in std::iter::once(uri).chain(nodes) {
        let subject = subject.clone().into();
        old.extend(write(before.quads_about(&subject)?));
        new.extend(write(after.quads_about(&subject)?));
    }
    let status = match (old.is_empty(), new.is_empty()) {
        (true, false) => IngestedStatus::Created,
        (false, true) => IngestedStatus::Deleted,
        (true, true) => IngestedStatus::Absent,
        (false, false) => IngestedStatus::Updated,
    };
    Ok(DifferenceItem {
        uri: uri.as_str().to_owned(),
        status,
        index: None,
        orphaned,
        before: None,
        after: None,
        added: new.difference(&old).cloned().collect(),
        removed: old.difference(&new).cloned().collect(),
    })
}

/// Returns an object as the view shows it; `None` if no quad is about it.
fn render_if_stored(
    read: &dyn Read,
    shape: &Shape,
    uri: &NamedNode,
) -> Result<Option<Box<RawValue>>, GatewayError> {
    let about = Pattern { subject: Some(uri.clone().into()), ..Pattern::default() };
    if !read.any(&about)? {
        return Ok(None);
    }
    let mut json = Vec::new();
    view::render_object(read, shape, uri, &mut json, &mut Vec::new())?;
    let text = String::from_utf8(json).map_err(|error| unwritable_error(&error))?;
    RawValue::from_string(text).map(Some).map_err(|error| unwritable_error(&error))
}

fn unwritable_error(error: &dyn std::error::Error) -> GatewayError {
    let detail = format!("serializing the difference of a change failed: {error}");
    GatewayError::new(ErrorClass::Internal, detail)
}

impl Paginator {
    fn push(&mut self, item: &DifferenceItem) -> Result<(), GatewayError> {
        let json = serde_json::to_vec(item).map_err(|error| unwritable_error(&error))?;
        self.subjects.extend(hash_subject(&item.uri));
        self.digest.update((json.len() as u64).to_be_bytes());
        self.digest.update(&json);
        let is_full = self.page_items == MAX_PAGE_ITEMS
            || self.page_items > 0 && self.page.len() + json.len() > MAX_PAGE_BYTES;
        if is_full {
            self.end_page()?;
        }
        self.page.push(if self.page_items == 0 { b'[' } else { b',' });
        self.page.extend(json);
        self.page_items += 1;
        self.items += 1;
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), GatewayError> {
        if self.page_items > 0 {
            self.page.push(b']');
            self.finished.push((compress(&self.page)?, self.page.len() as u64));
            self.page.clear();
            self.page_items = 0;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Difference, GatewayError> {
        self.end_page()?;
        let Self { digest, items, subjects, finished, .. } = self;
        let digest = format!("{:x}", digest.finalize());
        Ok(Difference { digest, items, pages: finished, subjects })
    }
}
