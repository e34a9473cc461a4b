//! Records, in the commit that changes the graph, which objects of which Business Objects it changes.
use super::CHANGES;
use super::cursor::{Cursor, change_key, cursor, forget_age, put_age, put_age_of_all, put_cursor};
use super::watch::{View, Watch};
use oxrdf::NamedNode;
use penstock_base::fault::Fault;
use penstock_store::{Read, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// Records the changed objects of each watched Business Object. Every transaction that changes quads must call it
/// last.
pub fn note(transaction: &mut Transaction<'_>, watch: &Watch) -> Result<(), Fault> {
    note_but(transaction, watch, "", &BTreeSet::new())
}

/// As [`note`], but does not record the objects `left_out` for the Business Object `id`.
pub fn note_but(
    transaction: &mut Transaction<'_>,
    watch: &Watch,
    id: &str,
    left_out: &BTreeSet<NamedNode>,
) -> Result<(), Fault> {
    let views = watch.views(transaction)?;
    if views.is_empty() {
        return Ok(());
    }
    let changed = transaction.changed_subjects()?;
    if changed.is_empty() {
        return Ok(());
    }
    for view in views.iter() {
        if view.is_blind {
            if let Some(cursor) = cursor(transaction, &view.id)? {
                begin_anew(transaction, view, watch, cursor)?;
            }
            continue;
        }
        let (mut roots, are_all) = roots(transaction, view, &changed, watch.most_holders())?;
        if view.id == id {
            roots.retain(|uri, _| !left_out.contains(uri));
        }
        if roots.is_empty() && are_all {
            continue;
        }
        let Some(cursor) = cursor(transaction, &view.id)? else { continue };
        for (uri, root) in &roots {
            let uri = uri.as_str();
            if view.exports_on_change {
                let key = change_key(&view.id, cursor.open, uri);
                if transaction.document(CHANGES, &key)?.is_none() {
                    let new_at = cursor.exports.to_be_bytes();
                    let value: &[u8] = if root.new { &new_at } else { b"" };
                    transaction.put(CHANGES, &key, value)?;
                }
            }
            if view.keeps_ages && root.belongs {
                put_age(transaction, &view.id, uri, watch.elapsed(), cursor.open)?;
            } else if view.keeps_ages {
                forget_age(transaction, &view.id, uri)?;
            }
        }
        if !are_all {
            begin_anew(transaction, view, watch, cursor)?;
        }
        if view.exports_on_change {
            watch.mark(&view.id);
        }
    }
    Ok(())
}

/// Requires a full export, because the changed objects are unknown or too many to record. Every object may have
/// the age of this change.
fn begin_anew(
    transaction: &mut Transaction<'_>,
    view: &View,
    watch: &Watch,
    mut cursor: Cursor,
) -> Result<(), Fault> {
    if view.keeps_ages {
        put_age_of_all(transaction, &view.id, watch.elapsed(), cursor.open)?;
    }
    if cursor.anew != cursor.open {
        cursor.anew = cursor.open;
        put_cursor(transaction, &view.id, &cursor)?;
    }
    Ok(())
}

/// A changed object of a view.
struct Root {
    /// Whether it is a member after the change.
    belongs: bool,
    /// Whether it was not a member before.
    new: bool,
}

/// Returns the changed objects, and whether they are complete. They are not if more than `most` objects hold a
/// changed object.
fn roots(
    transaction: &Transaction<'_>,
    view: &View,
    changed: &[(NamedNode, bool)],
    most: usize,
) -> Result<(BTreeMap<NamedNode, Root>, bool), Fault> {
    let mut roots = BTreeMap::new();
    for (uri, known) in changed {
        let belongs = view.holds(transaction, uri)?;
        let new = !known || !view.holds(&transaction.before(), uri)?;
        if belongs || !new {
            roots.insert(uri.clone(), Root { belongs, new });
        }
    }
    // Only changed objects can hold an object that no quad named before, and they are included already.
    let known = changed.iter().filter(|(_, known)| *known).map(|(uri, _)| uri.clone());
    let Some(holders) = view.links.climb(transaction, known, most)? else {
        return Ok((roots, false));
    };
    for uri in holders {
        if !roots.contains_key(&uri) && view.holds(transaction, &uri)? {
            roots.insert(uri, Root { belongs: true, new: false });
        }
    }
    Ok((roots, true))
}
