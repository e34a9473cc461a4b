//! The export progress of a Business Object, and the set of changed objects.
use super::watched_number::change_watched_number;
use super::{AGES, CHANGES};
use crate::namespace::moving::rebase::Rebase;
use crate::resource::{BusinessObject, Definition};
use penstock_base::collections;
use penstock_base::error::GatewayError;
use penstock_base::table::{AsJson, Row, Table};
use penstock_store::{Error, Read, Store, Transaction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The progress of each Business Object, by id. Exists while the Business Object is watched.
pub const CURSORS: Table<String, AsJson<ExportCursor>> = Table::new(collections::CHANGE_CURSORS);
/// The URI in the key of an age of all objects of the Business Object ([`AGES`]).
pub(super) const ALL_OBJECTS: &str = "";
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
pub fn read_cursor(read: &dyn Read, id: &str) -> Result<Option<ExportCursor>, Error> {
    match CURSORS.get(read, id) {
        Err(Error::Unreadable(error)) => {
            // A full export of everything loses no change.
            tracing::error!(
                business_object = id,
                %error,
                "Reading the export progress of a Business Object failed. Its next exports are full exports."
            );
            Ok(Some(ExportCursor { open: u64::MAX / 4, ..ExportCursor::default() }))
        }
        cursor => cursor,
    }
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
        CURSORS.put(t, id, &cursor)?;
        Ok(Some(cursor))
    })?;
    Ok(closed)
}

/// Returns whether there are changes that are in no export.
pub fn has_changes(read: &dyn Read, id: &str, cursor: &ExportCursor) -> Result<bool, Error> {
    if cursor.needs_full_export() {
        return Ok(true);
    }
    // The keys of the changes in a generation are after the key with an empty URI.
    let done = (id, cursor.done.saturating_add(1), "");
    let first = CHANGES.scan().prefix::<String>(id).after(Some(done)).first(read)?;
    Ok(first.is_some())
}

/// Returns up to `limit` changed objects of a generation after the URI `after`, in the order of their URIs.
pub fn list_changed(
    read: &dyn Read,
    id: &str,
    generation: u64,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<ChangedObject>, Error> {
    let rows = CHANGES.scan().prefix::<(String, u64)>((id, generation));
    let rows = rows.after(after.map(|uri| (id, generation, uri))).read(read, limit)?;
    let changed = rows.iter().filter_map(|row| {
        let (_, _, uri) = row.key_or_log()?;
        Some(ChangedObject { uri, new_at: row.value_or_log().flatten() })
    });
    Ok(changed.collect())
}

/// Returns when an object last changed, as elapsed time in milliseconds, and the generation of that change. Returns
/// `None` if they are unknown.
pub fn read_age(read: &dyn Read, id: &str, uri: &str) -> Result<Option<(u64, u64)>, Error> {
    let Some(own) = AGES.get_readable(read, (id, uri))? else { return Ok(None) };
    Ok(match AGES.get_readable(read, (id, ALL_OBJECTS))? {
        Some((since, UNKNOWN_BEFORE)) => (own.0 >= since).then_some(own),
        Some(all) => Some(own.max(all)),
        None => Some(own),
    })
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
    let mut cursor = match read_cursor(transaction, &object.id)? {
        Some(cursor) => cursor,
        None => begin_cursor(transaction, &object.id)?,
    };
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
        AGES.put(transaction, (&object.id, ALL_OBJECTS), (now, UNKNOWN_BEFORE))?;
    }
    CURSORS.put(transaction, &object.id, &cursor)?;
    change_watched_number(transaction)
}

/// Returns the cursor of a Business Object that begins to be watched. Records of an earlier time may still be there. Their
/// generations count as done. Otherwise they would hide later changes of the same objects.
fn begin_cursor(read: &dyn Read, id: &str) -> Result<ExportCursor, Error> {
    let last = CHANGES.scan().prefix::<String>(id).reverse().first(read)?;
    let done = last.and_then(|row| row.key_or_log()).map_or(0, |(_, generation, _)| generation);
    Ok(ExportCursor { open: done.saturating_add(1), done, ..ExportCursor::default() })
}

/// Returns whether both definitions show the same members in the same way.
fn has_same_view(before: &Definition, after: &Definition) -> bool {
    before.name == after.name
        && before.config == after.config
        && before.conditions == after.conditions
}

/// Stops watching a definition that this commit removes, or that no longer needs to be watched.
pub(crate) fn stop_watching(transaction: &mut Transaction<'_>, id: &str) -> Result<(), Error> {
    CURSORS.delete(transaction, id)?;
    change_watched_number(transaction)
}

/// Returns whether changes are recorded for a Business Object. A disabled one is watched too: its objects can change
/// in other ways, and those changes are exported once it is enabled. One that is being deleted is not.
pub(super) fn is_watched(object: &BusinessObject) -> bool {
    let definition = &object.definition;
    object.deleting.is_none() && (definition.export_on_change || definition.retention.is_some())
}

/// Rewrites the URI in the key of a changed object. Returns whether this changes it.
pub(crate) fn rewrite_change(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    row: &Row<(String, u64, String), Option<u64>>,
) -> Result<bool, GatewayError> {
    let Some(((id, generation, uri), new_at)) = row.entry_or_log() else { return Ok(false) };
    let Some(uri) = rebase.rewrite(&uri) else { return Ok(false) };
    row.delete(transaction)?;
    CHANGES.put(transaction, (&id, generation, &uri), new_at)?;
    Ok(true)
}

/// Rewrites the URI in the key of an age. Returns whether this changes it.
pub(crate) fn rewrite_age(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    row: &Row<(String, String), (u64, u64)>,
) -> Result<bool, GatewayError> {
    let Some(((id, uri), age)) = row.entry_or_log() else { return Ok(false) };
    let Some(uri) = rebase.rewrite(&uri) else { return Ok(false) };
    row.delete(transaction)?;
    AGES.put(transaction, (&id, &uri), age)?;
    Ok(true)
}
