//! Noting, in a commit that changes the graph, what it changes for whom.
use super::CHANGES;
use super::cursor::{Cursor, change_key, cursor, forget_age, put_age, put_age_of_all, put_cursor};
use super::watch::{View, Watch};
use oxrdf::NamedNode;
use penstock_base::fault::Fault;
use penstock_store::{Read, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// Notes what this change does to the objects of each watched Business Object. Call it last in every
/// change of quads.
pub fn note(transaction: &mut Transaction<'_>, watch: &Watch) -> Result<(), Fault> {
    note_but(transaction, watch, "", &BTreeSet::new())
}

/// As [`note`], but what becomes of `left_out` is nothing that the Business Object `id` exports.
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

/// Something changes for objects that nobody can name, or for too many to note: full exports begin anew,
/// and every object may be as young as this change.
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

/// An object of a view that changes.
struct Root {
    /// It belongs once the change is done.
    belongs: bool,
    /// It did not belong before.
    new: bool,
}

/// The objects that change, and whether these are all: not where more than `most` hold what changes.
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
    // What nothing named before is held by what changes alone, and that is here already.
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
