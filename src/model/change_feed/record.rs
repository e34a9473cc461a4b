//! Updates, in the commit that changes the graph, the index of natural keys, and records which objects of which Business
//! Objects the commit changes.
use super::cursor::{ALL_OBJECTS, CURSORS, ExportCursor, read_cursor};
use super::watch::{Watch, WatchedView};
use super::{AGES, CHANGES};
use crate::list::{changed_objects, remove_unlinked_lists};
use crate::natural_key::{GainedKey, NaturalKey};
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_store::Transaction;
use std::collections::{BTreeMap, BTreeSet};

/// Removes the lists that lost their last link, updates the index of natural keys, and records the changed objects of each
/// watched Business Object. Every transaction that changes quads must call it last.
pub fn record_changes(
    transaction: &mut Transaction<'_>,
    watch: &Watch,
) -> Result<(), GatewayError> {
    record_changes_except(transaction, watch, "", &BTreeSet::new())
}

/// As [`record_changes`], but does not record the objects `left_out` for the Business Object `id`.
pub fn record_changes_except(
    transaction: &mut Transaction<'_>,
    watch: &Watch,
    id: &str,
    left_out: &BTreeSet<NamedNode>,
) -> Result<(), GatewayError> {
    remove_unlinked_lists(transaction)?;
    update_key_index(transaction, watch, &[])?;
    record_changed_objects(transaction, watch, id, left_out)
}

/// Updates the index of natural keys: of the keys of all stored definitions, of those that are being added, and of those of
/// the mapping in use. Returns which objects got a key of this mapping.
pub(crate) fn update_key_index<'k>(
    transaction: &mut Transaction<'_>,
    watch: &Watch,
    of_mapping: &[&'k NaturalKey],
) -> Result<Vec<GainedKey<'k>>, GatewayError> {
    let mut gained = Vec::new();
    for key in of_mapping {
        gained.extend(key.update_entries(transaction)?);
    }
    for key in &watch.current_definitions(transaction)?.keys {
        if of_mapping.iter().all(|own| own.namespace() != key.namespace()) {
            key.update_entries(transaction)?;
        }
    }
    for build in &watch.key_builds() {
        build.update(transaction)?;
    }
    Ok(gained)
}

/// Records the changed objects of each watched Business Object, but not the objects `left_out` for the Business Object
/// `id`.
pub(crate) fn record_changed_objects(
    transaction: &mut Transaction<'_>,
    watch: &Watch,
    id: &str,
    left_out: &BTreeSet<NamedNode>,
) -> Result<(), GatewayError> {
    let definitions = watch.current_definitions(transaction)?;
    if definitions.views.is_empty() {
        return Ok(());
    }
    let changed = changed_objects(transaction)?;
    if changed.is_empty() {
        return Ok(());
    }
    for view in &definitions.views {
        if view.is_blind() {
            if let Some(cursor) = read_cursor(transaction, &view.id)? {
                require_full_export(transaction, view, watch, cursor)?;
            }
            continue;
        }
        let (mut roots, is_complete) =
            find_changed_roots(transaction, view, &changed, watch.max_holders())?;
        if view.id == id {
            roots.retain(|uri, _| !left_out.contains(uri));
        }
        if roots.is_empty() && is_complete {
            continue;
        }
        let Some(cursor) = read_cursor(transaction, &view.id)? else { continue };
        for (uri, root) in &roots {
            let uri = uri.as_str();
            if view.exports_on_change {
                let key = (view.id.as_str(), cursor.open, uri);
                if !CHANGES.contains(transaction, key)? {
                    CHANGES.put(transaction, key, root.new.then_some(cursor.exports))?;
                }
            }
            if view.keeps_ages && root.belongs {
                AGES.put(transaction, (&view.id, uri), (watch.elapsed(), cursor.open))?;
            } else if view.keeps_ages {
                AGES.delete(transaction, (&view.id, uri))?;
            }
        }
        if !is_complete {
            require_full_export(transaction, view, watch, cursor)?;
        }
        if view.exports_on_change {
            watch.mark(&view.id);
        }
    }
    Ok(())
}

/// Requires a full export of each watched Business Object of which a member is one of these objects, or holds one of
/// them. Must run before the commit changes them. Adds the ids of these Business Objects to `required`, and skips those
/// that it contains.
pub(crate) fn require_full_exports(
    transaction: &mut Transaction<'_>,
    watch: &Watch,
    objects: &[NamedNode],
    required: &mut BTreeSet<String>,
) -> Result<(), GatewayError> {
    for view in &watch.current_definitions(transaction)?.views {
        if required.contains(&view.id) || !shows_any(transaction, view, watch, objects)? {
            continue;
        }
        if let Some(cursor) = read_cursor(transaction, &view.id)? {
            require_full_export(transaction, view, watch, cursor)?;
            required.insert(view.id.clone());
        }
    }
    Ok(())
}

/// Returns whether a member of the view is one of these objects or holds one of them.
fn shows_any(
    transaction: &Transaction<'_>,
    view: &WatchedView,
    watch: &Watch,
    objects: &[NamedNode],
) -> Result<bool, GatewayError> {
    if view.is_blind() {
        return Ok(true);
    }
    for uri in objects {
        if view.is_member(transaction, uri)? {
            return Ok(true);
        }
    }
    let nested = objects.iter().cloned();
    let Some(holders) = view.links.find_holders(transaction, nested, watch.max_holders())? else {
        return Ok(true);
    };
    for uri in holders {
        if view.is_member(transaction, &uri)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Requires a full export, because the changed objects are unknown or too many to record. Every object may have
/// the age of this change.
fn require_full_export(
    transaction: &mut Transaction<'_>,
    view: &WatchedView,
    watch: &Watch,
    mut cursor: ExportCursor,
) -> Result<(), GatewayError> {
    if view.keeps_ages {
        AGES.put(transaction, (&view.id, ALL_OBJECTS), (watch.elapsed(), cursor.open))?;
    }
    if cursor.full_since != cursor.open {
        cursor.full_since = cursor.open;
        CURSORS.put(transaction, &view.id, &cursor)?;
    }
    Ok(())
}

/// A changed object of a view.
struct ChangedRoot {
    /// Whether it is a member after the change.
    belongs: bool,
    /// Whether it was not a member before.
    new: bool,
}

/// Returns the changed objects, and whether the list is complete. It is not complete if more than `most` objects hold
/// a changed object.
fn find_changed_roots(
    transaction: &Transaction<'_>,
    view: &WatchedView,
    changed: &[(NamedNode, bool)],
    most: usize,
) -> Result<(BTreeMap<NamedNode, ChangedRoot>, bool), GatewayError> {
    let mut roots = BTreeMap::new();
    for (uri, known) in changed {
        let belongs = view.is_member(transaction, uri)?;
        let new = !known || !view.is_member(&transaction.prior_state(), uri)?;
        if belongs || !new {
            roots.insert(uri.clone(), ChangedRoot { belongs, new });
        }
    }
    // Only changed objects can hold an object that no quad named before. They are in `roots` already.
    let known = changed.iter().filter(|(_, known)| *known).map(|(uri, _)| uri.clone());
    let Some(holders) = view.links.find_holders(transaction, known, most)? else {
        return Ok((roots, false));
    };
    for uri in holders {
        if !roots.contains_key(&uri) && view.is_member(transaction, &uri)? {
            roots.insert(uri, ChangedRoot { belongs: true, new: false });
        }
    }
    Ok((roots, true))
}
