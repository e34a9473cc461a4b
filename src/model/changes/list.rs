//! Finds and lists changes.
use super::open::OPEN;
use super::record::Change;
use super::storage::{CHANGES, read_stored};
use crate::catalogue;
use crate::change_feed::Watch;
use penstock_base::error::GatewayError;
use penstock_base::principal::Principal;
use penstock_resources::change::ChangeState;
use penstock_store::{Read, ReadStore};
use std::collections::HashMap;

/// The number of changes that are read at a time.
const CHANGES_PER_READ: usize = 200;
/// The bytes of stored changes after which a page ends.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// Which changes a list looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Those that were open when they were stored last. Others are not read.
    Open,
    /// All.
    All,
}

/// A page of changes.
#[derive(Debug, Default)]
pub struct ListedChanges {
    /// The changes, newest first.
    pub changes: Vec<Change>,
    /// Whether there are more.
    pub has_more: bool,
}

/// Returns the change with this id. If its Business Object is not stored any more, it counts as withdrawn.
///
/// # Errors
/// The errors of the store.
pub fn find_change(read: &dyn Read, id: &str) -> Result<Option<Change>, GatewayError> {
    let Some(mut change) = read_stored(read, id)? else { return Ok(None) };
    if is_abandoned(read, &change)? {
        change.state = ChangeState::Withdrawn;
    }
    Ok(Some(change))
}

/// Returns whether a change is open although its Business Object is not stored any more.
pub(super) fn is_abandoned(read: &dyn Read, change: &Change) -> Result<bool, GatewayError> {
    Ok(change.state.is_open() && !is_defined(read, &change.business_object)?)
}

/// Returns whether the Business Object with this id is stored.
pub(super) fn is_defined(read: &dyn Read, business_object: &str) -> Result<bool, GatewayError> {
    Ok(catalogue::BUSINESS_OBJECTS.contains(read, business_object)?)
}

/// Returns the users and groups that approve a change now; none if Admins do.
///
/// # Errors
/// The errors of the store.
pub fn current_approvers(
    read: &dyn Read,
    watch: &Watch,
    change: &Change,
) -> Result<Vec<Principal>, GatewayError> {
    let definitions = watch.current_definitions(read)?;
    let current = definitions.approvers_of(&change.business_object);
    Ok(current.unwrap_or(&change.approvers).to_vec())
}

/// A page of a list of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangePage<'a> {
    /// Which changes the list looks at.
    pub selection: Selection,
    /// The id of the last change of the previous page.
    pub after: Option<&'a str>,
    /// The maximum number of changes. There are fewer if they are large.
    pub limit: usize,
}

/// Lists the changes that `is_wanted` selects, newest first. It gets each change with its current approvers.
///
/// # Errors
/// The errors of the store.
pub fn list_changes(
    store: &ReadStore,
    watch: &Watch,
    ChangePage { selection, after, limit }: ChangePage<'_>,
    is_wanted: &mut dyn FnMut(&Change, &[Principal]) -> bool,
) -> Result<ListedChanges, GatewayError> {
    let mut found = ListedChanges::default();
    let ids = match selection {
        Selection::Open => OPEN.with_values(),
        Selection::All => CHANGES,
    };
    let mut rows = ids.scan().after(after.and_then(|id| id.parse().ok())).reverse();
    let mut is_stored: HashMap<String, bool> = HashMap::new();
    let mut page_bytes = 0;
    loop {
        let read = store.read();
        let definitions = watch.current_definitions(&read)?;
        let page = rows.next_page(&read, CHANGES_PER_READ)?;
        if page.is_empty() {
            return Ok(found);
        }
        for row in page {
            let row = match selection {
                Selection::All => Some(row),
                Selection::Open => CHANGES.row(&read, row.key()?)?,
            };
            let Some(row) = row else { continue };
            // What cannot be read is logged, and does not hide the others.
            let Some(mut change) = row.value_or_log() else { continue };
            if change.state.is_open() {
                let object = &change.business_object;
                let is_there = match is_stored.get(object) {
                    Some(known) => *known,
                    None => !is_abandoned(&read, &change)?,
                };
                is_stored.insert(object.clone(), is_there);
                if !is_there {
                    change.state = ChangeState::Withdrawn;
                }
            }
            let approvers = definitions.approvers_of(&change.business_object);
            if !is_wanted(&change, approvers.unwrap_or(&change.approvers)) {
                continue;
            }
            page_bytes += row.value_bytes().len();
            if found.changes.len() == limit
                || page_bytes > MAX_PAGE_BYTES && !found.changes.is_empty()
            {
                found.has_more = true;
                return Ok(found);
            }
            found.changes.push(change);
        }
    }
}
