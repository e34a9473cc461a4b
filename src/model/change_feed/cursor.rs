//! The export progress of a Business Object, and the set of changed objects.
use super::watch::Watch;
use super::{AGES, CHANGES, CURSORS, WATCHED, decode_u64};
use crate::namespace::moving::Rebase;
use crate::natural_key;
use crate::resource::{BusinessObject, Definition};
use penstock_base::error::GatewayError;
use penstock_store::{DocumentRange, Error, Read, Store, Transaction};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The maximum number of documents that one cleanup commit removes.
const CLEANUP_BATCH_DOCUMENTS: usize = 1000;
/// The URI in the key of an age of all objects of the Business Object ([`AGES`]).
const ALL_OBJECTS: &str = "";
/// The generation in an age of all objects that makes all earlier ages invalid.
const UNKNOWN_BEFORE: u64 = u64::MAX;

/// The export progress of a watched Business Object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportCursor {
    /// The generation in which changes are recorded now.
    pub open: u64,
    /// The last generation whose changes are all exported.
    pub done: u64,
    /// The last generation that has more changes than are recorded, or 0. Until it is done, only a full export
    /// contains all changes.
    #[serde(default)]
    #[serde(rename = "anew")]
    pub full_since: u64,
    /// The journal sequence of the commit that closed the generation after `done`, or of an earlier one; 0 if it is
    /// unknown. No later generation has a change of an earlier commit.
    #[serde(default)]
    pub closed_at: u64,
    /// The number of exports so far.
    pub exports: u64,
    /// A digest of the exported name, mapping and conditions.
    pub view: String,
    /// The targets that have received a full export of this view and all exports since.
    pub targets: BTreeMap<String, KnownTarget>,
}

/// A target that has received everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownTarget {
    /// The place that its bucketName led to at that time.
    pub place: String,
    /// The last sequence of this target. If the target itself has a different one, for example after a backup was
    /// restored, it has received exports that are unknown here.
    pub sequence: u64,
}

/// A changed object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedObject {
    /// Its URI.
    pub uri: String,
    /// If the object became a member in this generation: the number of exports before that.
    pub new_at: Option<u64>,
}

impl ExportCursor {
    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a cursor has only string keys")
    }

    /// Returns whether there are more changes than are recorded, so that a full export is needed.
    pub fn needs_full_export(&self) -> bool {
        self.full_since > self.done
    }
}

impl Default for ExportCursor {
    fn default() -> Self {
        Self {
            open: 1,
            done: 0,
            full_since: 0,
            closed_at: 0,
            exports: 0,
            view: String::new(),
            targets: BTreeMap::new(),
        }
    }
}

/// Reads the cursor of a Business Object; `None` while it is not watched.
pub fn read_cursor(read: &impl Read, id: &str) -> Result<Option<ExportCursor>, Error> {
    let document = read.read_document(CURSORS, id.as_bytes())?;
    Ok(document.map(|bytes| {
        serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            // A full export of everything loses no change.
            tracing::error!(
                business_object = id,
                %error,
                "Reading the export progress of a Business Object failed. Its next exports are full exports."
            );
            ExportCursor { open: u64::MAX / 4, ..ExportCursor::default() }
        })
    }))
}

/// Writes the cursor of a Business Object.
pub fn write_cursor(
    transaction: &mut Transaction<'_>,
    id: &str,
    cursor: &ExportCursor,
) -> Result<(), Error> {
    transaction.put_document(CURSORS, id.as_bytes(), &cursor.encode())
}

/// Closes the open generation of a Business Object, so that further changes are recorded in the next one.
/// Returns `None` if it is not watched. Blocking.
pub fn close_generation(store: &Store, id: &str) -> Result<Option<ExportCursor>, Error> {
    let (closed, _) = store.transact::<_, Error>(|t| {
        let Some(mut cursor) = read_cursor(t, id)? else { return Ok(None) };
        if cursor.open == cursor.done.saturating_add(1) {
            cursor.closed_at = t.sequence();
        }
        cursor.open += 1;
        write_cursor(t, id, &cursor)?;
        Ok(Some(cursor))
    })?;
    Ok(closed)
}

/// Returns whether there are changes that are in no export.
pub fn has_changes(read: &impl Read, id: &str, cursor: &ExportCursor) -> Result<bool, Error> {
    if cursor.needs_full_export() {
        return Ok(true);
    }
    let from = generation_key(id, cursor.done.saturating_add(1));
    let prefix = key_prefix(id);
    // Keys of changes sort after their generation's key, because the URI makes them longer.
    let range = DocumentRange { prefix: &prefix, after: Some(&from), reverse: false, limit: 1 };
    Ok(!read.read_documents(CHANGES, range)?.is_empty())
}

/// Returns up to `limit` changed objects of a generation after the URI `after`, in the order of their URIs.
pub fn list_changed(
    read: &impl Read,
    id: &str,
    generation: u64,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<ChangedObject>, Error> {
    let prefix = generation_key(id, generation);
    let after = after.map(|uri| [prefix.as_slice(), uri.as_bytes()].concat());
    let range = DocumentRange { prefix: &prefix, after: after.as_deref(), reverse: false, limit };
    let documents = read.read_documents(CHANGES, range)?;
    Ok(documents
        .into_iter()
        .filter_map(|(key, value)| {
            let uri = String::from_utf8(key.get(prefix.len()..)?.to_vec()).ok()?;
            Some(ChangedObject { uri, new_at: decode_u64(&value) })
        })
        .collect())
}

/// Returns when an object last changed, as elapsed time in milliseconds, and the generation of that change. Returns
/// `None` if they are unknown.
pub fn read_age(read: &impl Read, id: &str, uri: &str) -> Result<Option<(u64, u64)>, Error> {
    let Some(own) = read_stored_age(read, id, uri)? else { return Ok(None) };
    Ok(match read_stored_age(read, id, ALL_OBJECTS)? {
        Some((since, UNKNOWN_BEFORE)) => (own.0 >= since).then_some(own),
        Some(all) => Some(own.max(all)),
        None => Some(own),
    })
}

fn read_stored_age(read: &impl Read, id: &str, uri: &str) -> Result<Option<(u64, u64)>, Error> {
    let Some(value) = read.read_document(AGES, &age_key(id, uri))? else { return Ok(None) };
    Ok(value.split_at_checked(8).and_then(|(at, in_)| Some((decode_u64(at)?, decode_u64(in_)?))))
}

/// Records that any object may have changed.
pub(super) fn write_age_of_all(
    transaction: &mut Transaction<'_>,
    id: &str,
    at: u64,
    generation: u64,
) -> Result<(), Error> {
    write_age(transaction, id, ALL_OBJECTS, at, generation)
}

/// Records the last change of an object.
pub fn write_age(
    transaction: &mut Transaction<'_>,
    id: &str,
    uri: &str,
    at: u64,
    generation: u64,
) -> Result<(), Error> {
    let value = [at.to_be_bytes(), generation.to_be_bytes()].concat();
    transaction.put_document(AGES, &age_key(id, uri), &value)
}

/// Removes the record of an object's last change.
pub fn delete_age(transaction: &mut Transaction<'_>, id: &str, uri: &str) -> Result<(), Error> {
    transaction.delete_document(AGES, &age_key(id, uri))
}

/// Removes the records of generations that are done, and all records of a Business Object that is not watched, in
/// small commits. Blocking.
pub fn clean_up(store: &Store, id: &str) -> Result<(), Error> {
    loop {
        let (removed, _) = store.transact::<_, Error>(|t| {
            let cursor = read_cursor(t, id)?;
            let prefix = key_prefix(id);
            let range = DocumentRange {
                prefix: &prefix,
                limit: CLEANUP_BATCH_DOCUMENTS,
                ..DocumentRange::default()
            };
            let mut removed = 0;
            for (key, _) in t.read_documents(CHANGES, range)? {
                let generation = key.get(prefix.len()..prefix.len() + 8).and_then(decode_u64);
                let done = cursor.as_ref().is_none_or(|cursor| {
                    generation.is_none_or(|generation| generation <= cursor.done)
                });
                if !done {
                    break;
                }
                t.delete_document(CHANGES, &key)?;
                removed += 1;
            }
            if cursor.is_none() && removed < CLEANUP_BATCH_DOCUMENTS {
                for (key, _) in t.read_documents(AGES, range)? {
                    t.delete_document(AGES, &key)?;
                    removed += 1;
                }
            }
            Ok(removed)
        })?;
        if removed < CLEANUP_BATCH_DOCUMENTS {
            return Ok(());
        }
    }
}

/// Runs [`clean_up`] for every Business Object with records, including deleted ones, and removes the entries of unused
/// natural keys. Blocking.
pub fn clean_up_all(store: &Store, watch: &Watch) -> Result<(), GatewayError> {
    natural_key::remove_unused_entries(store, watch)?;
    for collection in [CHANGES, AGES] {
        let mut after = Vec::new();
        loop {
            let range = DocumentRange { after: Some(&after), limit: 1, ..DocumentRange::default() };
            let found = store.read().read_documents(collection, range)?;
            let Some((key, _)) = found.first() else { break };
            let id = key.split(|byte| *byte == 0).next().unwrap_or_default();
            // An id is followed by 0, so this sorts after all of its keys.
            after = [id, &[1]].concat();
            if let Ok(id) = std::str::from_utf8(id) {
                clean_up(store, id)?;
            }
        }
    }
    Ok(())
}

/// Starts or stops watching a definition that this commit stores. `now` is the elapsed time.
pub(crate) fn update_watching(
    transaction: &mut Transaction<'_>,
    before: Option<&BusinessObject>,
    object: &BusinessObject,
    now: u64,
) -> Result<(), Error> {
    if !is_watched(object) {
        return stop_watching(transaction, &object.id);
    }
    let definition = &object.definition;
    let mut cursor = read_cursor(transaction, &object.id)?.unwrap_or_default();
    // Changes are missing from the time when none were recorded, or when another view decided which ones concern it. A
    // target missed the exports while it was not listed. Such targets need a full export.
    let was_recorded = before.is_some_and(|before| {
        is_watched(before)
            && (before.definition.export_on_change || !definition.export_on_change)
            && has_same_view(&before.definition, definition)
    });
    cursor.targets.retain(|name, _| {
        was_recorded && definition.push_targets.iter().any(|target| target.bucket_name == *name)
    });
    let had_ages = before.is_some_and(|before| before.definition.retention.is_some());
    if definition.retention.is_some() && !had_ages {
        // The ages of an earlier retention are out of date, because nothing has updated them since it ended.
        write_age_of_all(transaction, &object.id, now, UNKNOWN_BEFORE)?;
    }
    write_cursor(transaction, &object.id, &cursor)?;
    change_watched_number(transaction)
}

/// Returns whether both definitions show the same members in the same way.
fn has_same_view(before: &Definition, after: &Definition) -> bool {
    before.name == after.name
        && before.config == after.config
        && before.conditions == after.conditions
}

/// Stops watching a definition that this commit removes, or that no longer needs to be watched.
pub(crate) fn stop_watching(transaction: &mut Transaction<'_>, id: &str) -> Result<(), Error> {
    transaction.delete_document(CURSORS, id.as_bytes())?;
    change_watched_number(transaction)
}

/// Returns whether changes are recorded for a Business Object. A disabled one is watched too: its objects can change
/// in other ways, and those changes are exported once it is enabled. One that is being deleted is not.
pub(super) fn is_watched(object: &BusinessObject) -> bool {
    let definition = &object.definition;
    object.deleting.is_none() && (definition.export_on_change || definition.retention.is_some())
}

/// Reads the number of the stored definitions. Each change of one gives them another number; it is 0 before the first
/// change, and in data of versions that numbered only the watched definitions.
pub(super) fn read_watched_number(read: &impl Read) -> Result<u64, Error> {
    Ok(read.read_document(WATCHED, b"")?.as_deref().and_then(decode_u64).unwrap_or(0))
}

/// Gives the stored definitions a new random number. It is random and not the next one, because the number of a failed commit
/// may still be in memory. The next commit must not get the same number.
pub(crate) fn change_watched_number(transaction: &mut Transaction<'_>) -> Result<(), Error> {
    let number: u64 = rand::rng().random_range(1..=u64::MAX);
    transaction.put_document(WATCHED, b"", &number.to_be_bytes())
}

/// Rewrites the URI in the key of a changed object. Returns whether this changes it.
pub(crate) fn rewrite_change(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    key: &[u8],
) -> Result<bool, GatewayError> {
    // The URI follows the id, a zero and the generation. A generation can have zeros; an id has none.
    rewrite_key(transaction, rebase, CHANGES, key, 1 + 8)
}

/// Rewrites the URI in the key of an age. Returns whether this changes it.
pub(crate) fn rewrite_age(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    key: &[u8],
) -> Result<bool, GatewayError> {
    rewrite_key(transaction, rebase, AGES, key, 1)
}

/// Rewrites a URI that begins `distance` bytes after the id.
fn rewrite_key(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    collection: &str,
    key: &[u8],
    distance: usize,
) -> Result<bool, GatewayError> {
    let id = key.iter().position(|byte| *byte == 0).unwrap_or(key.len());
    let Some((start, uri)) = key.split_at_checked(id + distance) else { return Ok(false) };
    let rewritten = std::str::from_utf8(uri).ok().and_then(|uri| rebase.rewrite(uri));
    let (Some(uri), Some(value)) = (rewritten, transaction.read_document(collection, key)?) else {
        return Ok(false);
    };
    transaction.delete_document(collection, key)?;
    transaction.put_document(collection, &[start, uri.as_bytes()].concat(), &value)?;
    Ok(true)
}

fn key_prefix(id: &str) -> Vec<u8> {
    [id.as_bytes(), &[0]].concat()
}

fn generation_key(id: &str, generation: u64) -> Vec<u8> {
    [id.as_bytes(), &[0], &generation.to_be_bytes()].concat()
}

/// Returns the key of a changed object.
pub(super) fn change_key(id: &str, generation: u64, uri: &str) -> Vec<u8> {
    [generation_key(id, generation).as_slice(), uri.as_bytes()].concat()
}

fn age_key(id: &str, uri: &str) -> Vec<u8> {
    [id.as_bytes(), &[0], uri.as_bytes()].concat()
}
