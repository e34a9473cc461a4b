//! Stores and removes changes, and keeps them within their limits.
//!
//! An account has at most a tenth of the limits. Past them, the oldest changes that the account has withdrawn make room for
//! a new one. Open ones, and those that an approver has decided about, are kept for `service.review.history`.
use super::open::update_open_changes;
use super::read::{PARTS, read_minted};
use super::record::Change;
use crate::ingest::Limits;
use crate::namespace::{self, moving::list_rebases_since};
use penstock_base::collections;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::store_as_fields;
use penstock_base::table::{AsJson, Row, Table, encode};
use penstock_resources::change::ChangeState;
use penstock_store::{Error, Format, Read, Transaction};
use std::time::Duration;
use uuid::Uuid;

/// The changes, by id.
pub(super) const CHANGES: Table<Uuid, AsJson<Change>> = Table::new(collections::REVIEWED_CHANGES);
/// The elapsed milliseconds when a change was closed, by account, kind (0 if it was withdrawn, 1 if it was decided),
/// sequence of the commit, and id.
const CLOSED: Table<(String, u8, u64, Uuid), u64> =
    Table::new(collections::REVIEWED_CHANGES_CLOSED);
/// The totals, by account; those of all together have an empty name.
const TOTALS: Table<String, ChangeTotals> = Table::new(collections::REVIEWED_CHANGES_TOTALS);

/// The part of the limits that one account may have.
const SHARE: u64 = 10;
/// The maximum number of changes that expire in one commit.
const MAX_EXPIRED_PER_COMMIT: usize = 100;
/// The kinds of entries in the list of closed changes.
const WITHDRAWN: u8 = 0;
const DECIDED: u8 = 1;
/// How long a client waits before it sends a change again that was refused because of a limit.
const RETRY_DELAY: Duration = Duration::from_mins(1);

/// The number and bytes of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeTotals {
    /// The number of open changes.
    pub open: u64,
    /// Their bytes.
    pub open_bytes: u64,
    /// The number of closed changes.
    pub closed: u64,
    /// Their bytes.
    pub closed_bytes: u64,
}

impl ChangeTotals {
    /// Returns the bytes of all of them.
    pub fn bytes(self) -> u64 {
        self.open_bytes.saturating_add(self.closed_bytes)
    }

    fn add(&mut self, change: &Change) {
        let (number, bytes) = self.numbers_of(change);
        *number = number.saturating_add(1);
        *bytes = bytes.saturating_add(change.bytes);
    }

    fn remove(&mut self, change: &Change) {
        let (number, bytes) = self.numbers_of(change);
        *number = number.saturating_sub(1);
        *bytes = bytes.saturating_sub(change.bytes);
    }

    fn numbers_of(&mut self, change: &Change) -> (&mut u64, &mut u64) {
        if change.state.is_open() {
            (&mut self.open, &mut self.open_bytes)
        } else {
            (&mut self.closed, &mut self.closed_bytes)
        }
    }
}

store_as_fields!(ChangeTotals: open: u64, open_bytes: u64, closed: u64, closed_bytes: u64);

/// Returns the totals of all changes.
///
/// # Errors
/// The errors of the store.
pub fn read_totals(read: &dyn Read) -> Result<ChangeTotals, GatewayError> {
    Ok(read_totals_of(read, "")?)
}

/// Reads the totals of an account; of all together if it is empty.
fn read_totals_of(read: &dyn Read, account: &str) -> Result<ChangeTotals, Error> {
    Ok(TOTALS.get(read, account)?.unwrap_or_default())
}

/// Reads a stored change, without looking at its Business Object.
pub(super) fn read_stored(read: &dyn Read, id: &str) -> Result<Option<Change>, GatewayError> {
    let Ok(id) = Uuid::parse_str(id) else { return Ok(None) };
    Ok(CHANGES.get(read, id)?)
}

/// Stores a change, and updates the totals. `before` is what is stored of it.
pub(super) fn put_change(
    transaction: &mut Transaction<'_>,
    before: Option<&Change>,
    after: &mut Change,
    now: u64,
) -> Result<(), GatewayError> {
    // An older version would show a change to everybody, or drop it.
    transaction.require_format(Format::V3);
    let id = after.uuid()?;
    if before.is_some_and(|before| before.state.is_open()) && !after.state.is_open() {
        let kind = if after.state == ChangeState::Withdrawn { WITHDRAWN } else { DECIDED };
        let sequence = transaction.sequence();
        CLOSED.put(transaction, (&after.author, kind, sequence, id), now)?;
    }
    after.bytes = after.part_bytes.saturating_add(encode::<AsJson<Change>>(after).len() as u64);
    CHANGES.put(transaction, id, after)?;
    update_open_changes(transaction, after)?;
    update_totals(transaction, &after.author, |totals| {
        if let Some(before) = before {
            totals.remove(before);
        }
        totals.add(after);
    })?;
    Ok(())
}

fn update_totals(
    transaction: &mut Transaction<'_>,
    account: &str,
    update: impl Fn(&mut ChangeTotals),
) -> Result<(), Error> {
    for key in [account, ""] {
        let mut totals = read_totals_of(transaction, key)?;
        update(&mut totals);
        if totals == ChangeTotals::default() {
            TOTALS.delete(transaction, key)?;
        } else {
            TOTALS.put(transaction, key, &totals)?;
        }
    }
    Ok(())
}

/// Checks the limits after a change was stored, and removes withdrawn ones of its author past them. `before` is what was
/// stored of it.
///
/// # Errors
/// If the change is new or larger than before:
/// - `ErrorClass::TooLarge` if it takes more bytes than its author may have
/// - `ErrorClass::TooManyRequests` if the other changes leave too little
pub(super) fn keep_limits(
    transaction: &mut Transaction<'_>,
    before: Option<&Change>,
    after: &Change,
    limits: &Limits,
) -> Result<(), GatewayError> {
    let share = |limit: u64| (limit / SHARE).max(1);
    let max_bytes = share(limits.change_bytes);
    let grows = before.is_none_or(|before| after.bytes > before.bytes);
    if !grows {
        return Ok(());
    }
    if after.bytes > max_bytes {
        return Err(GatewayError::new(
            ErrorClass::TooLarge,
            format!(
                "the change has {} bytes with its difference, and an account may have {max_bytes}, a tenth of service.limits.change-bytes; send fewer objects at once",
                after.bytes
            ),
        ));
    }
    for (account, whose, max_open, max_bytes) in [
        (after.author.as_str(), "of this account", share(limits.changes), max_bytes),
        ("", "of all accounts", limits.changes, limits.change_bytes),
    ] {
        if before.is_none() && read_totals_of(transaction, account)?.open > max_open {
            return Err(GatewayError::new(
                ErrorClass::TooManyRequests(RETRY_DELAY),
                format!(
                    "the open changes {whose} have reached their limit of {max_open} (service.limits.changes; an account may have a tenth); approve, reject or withdraw some first"
                ),
            ));
        }
        while read_totals_of(transaction, account)?.bytes() > max_bytes {
            if !remove_oldest_withdrawn(transaction, &after.author)? {
                return Err(GatewayError::new(
                    ErrorClass::TooManyRequests(RETRY_DELAY),
                    format!(
                        "the changes {whose} have reached their limit of {max_bytes} bytes (service.limits.change-bytes; an account may have a tenth); withdraw some, or wait until decided ones are older than service.review.history"
                    ),
                ));
            }
        }
    }
    let used = read_totals_of(transaction, &after.author)?.bytes();
    let used_before = used.saturating_sub(after.bytes - before.map_or(0, |before| before.bytes));
    let warned_at = max_bytes / 5 * 4;
    if used > warned_at && used_before <= warned_at {
        tracing::warn!(
            account = after.author,
            bytes = used,
            limit = max_bytes,
            "The changes of an account take more than 80 % of what it may have (service.limits.change-bytes; an account may have a tenth). Past the limit, new ones get 429."
        );
    }
    Ok(())
}

/// Removes the oldest withdrawn change of an account. Returns false if it has none.
fn remove_oldest_withdrawn(
    transaction: &mut Transaction<'_>,
    account: &str,
) -> Result<bool, GatewayError> {
    let oldest = read_oldest_closed(transaction, WITHDRAWN, account, 1)?;
    let Some(oldest) = oldest.into_iter().next() else { return Ok(false) };
    remove_closed(transaction, &oldest)?;
    Ok(true)
}

/// An entry of the list of closed changes.
type ClosedRow = Row<(String, u8, u64, Uuid), u64>;

fn read_oldest_closed(
    read: &dyn Read,
    kind: u8,
    account: &str,
    limit: usize,
) -> Result<Vec<ClosedRow>, Error> {
    CLOSED.scan().prefix::<(String, u8)>((account, kind)).read(read, limit)
}

/// Removes a closed change with its parts.
fn remove_closed(transaction: &mut Transaction<'_>, entry: &ClosedRow) -> Result<(), GatewayError> {
    entry.delete(transaction)?;
    let Some((account, _, _, id)) = entry.key_or_log() else { return Ok(()) };
    let Some(row) = CHANGES.row(transaction, id)? else { return Ok(()) };
    // What cannot be read is logged, and does not keep the others from being removed.
    if let Some(change) = row.value_or_log() {
        release_identifiers(transaction, &change)?;
        update_totals(transaction, &account, |totals| totals.remove(&change))?;
    }
    row.delete(transaction)?;
    while PARTS.scan().prefix::<Uuid>(id).delete(transaction, 4)? > 0 {}
    Ok(())
}

/// Removes the reservations of the identifiers of a change that is published or removed.
pub(super) fn release_identifiers(
    transaction: &mut Transaction<'_>,
    change: &Change,
) -> Result<(), GatewayError> {
    // What cannot be read is logged; its reservations stay.
    let Ok(minted) = read_minted(transaction, change) else { return Ok(()) };
    let moves = list_rebases_since(transaction, change.base)?;
    for mut uri in minted.into_iter().map(|minted| minted.uri) {
        namespace::release_identifier(transaction, &uri)?;
        for rebase in &moves {
            let Some(moved) = rebase.rewrite(&uri) else { continue };
            namespace::release_identifier(transaction, &moved)?;
            uri = moved;
        }
    }
    Ok(())
}

/// Removes the changes that were closed more than `max_age` milliseconds ago, in commits of bounded size. `now` is the
/// elapsed time in milliseconds. Returns their number.
///
/// # Errors
/// The errors of the store.
pub fn expire_changes(store: &GuardedStore, now: u64, max_age: u64) -> Result<u64, GatewayError> {
    let accounts = TOTALS.scan().read_all(&store.read())?;
    let mut expired = 0;
    for row in accounts {
        let account = row.key()?;
        for kind in [WITHDRAWN, DECIDED] {
            loop {
                let is_old = |entry: &ClosedRow| {
                    entry.value().is_ok_and(|at| now.saturating_sub(at) > max_age)
                };
                if !read_oldest_closed(&store.read(), kind, &account, 1)?.iter().any(is_old) {
                    break;
                }
                let (count, _) =
                    store.commit(&NoClient, |transaction| -> Result<_, GatewayError> {
                        let most = MAX_EXPIRED_PER_COMMIT;
                        let oldest = read_oldest_closed(transaction, kind, &account, most)?;
                        let old = oldest.into_iter().take_while(is_old);
                        old.map(|entry| remove_closed(transaction, &entry))
                            .try_fold(0, |count, removed| removed.map(|()| count + 1))
                    })?;
                expired += count;
            }
        }
    }
    Ok(expired)
}
