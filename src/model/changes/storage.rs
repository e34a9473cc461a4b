//! The documents of changes, and their limits.
//!
//! An account has at most a tenth of the limits. Past its share, the oldest closed changes of the account make place for a
//! new one; past the limit of all, the oldest closed ones of the account that has most of them. Open changes are never
//! removed: without enough closed ones, the new change is refused.
use super::read::read_minted;
use super::{CHANGES, CLOSED, Change, IdBytes, PARTS, TOTALS, parse_id};
use crate::ingest::Limits;
use crate::namespace::{self, moving::list_rebases_since};
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{DocumentRange, Format, Read, Transaction};
use std::time::Duration;

/// The part of the limits that one account may have.
const SHARE: u64 = 10;
/// The maximum number of changes that expire in one commit.
const MAX_EXPIRED_PER_COMMIT: usize = 100;
/// How long a client waits before it sends a change again that was refused because of a limit.
const RETRY_DELAY: Duration = Duration::from_mins(1);

/// A part of a change that has a document of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The request as received.
    Request,
    /// The identifiers that were minted.
    Minted,
    /// The warnings of the ingestion.
    Warnings,
    /// The page of the difference with this number, from 0.
    Page(u32),
}

impl Part {
    /// Returns its key.
    pub(super) fn key(self, id: IdBytes) -> Vec<u8> {
        let (kind, number) = match self {
            Self::Request => (0, 0),
            Self::Minted => (1, 0),
            Self::Warnings => (2, 0),
            Self::Page(number) => (3, number),
        };
        [id.as_slice(), &[kind], &u32::to_be_bytes(number)].concat()
    }
}

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
    fn decode(value: &[u8]) -> Self {
        let (numbers, _) = value.as_chunks::<8>();
        let &[open, open_bytes, closed, closed_bytes] = numbers else { return Self::default() };
        let [open, open_bytes, closed, closed_bytes] =
            [open, open_bytes, closed, closed_bytes].map(u64::from_be_bytes);
        Self { open, open_bytes, closed, closed_bytes }
    }

    fn encode(self) -> Vec<u8> {
        let Self { open, open_bytes, closed, closed_bytes } = self;
        [open, open_bytes, closed, closed_bytes].map(u64::to_be_bytes).concat()
    }

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

/// Returns the totals of all changes.
///
/// # Errors
/// The errors of the store.
pub fn read_totals(read: &impl Read) -> Result<ChangeTotals, GatewayError> {
    read_totals_of(read, "")
}

/// Reads the totals of an account; of all together if it is empty.
fn read_totals_of(read: &impl Read, account: &str) -> Result<ChangeTotals, GatewayError> {
    let document = read.read_document(TOTALS, account.as_bytes())?;
    Ok(document.map(|document| ChangeTotals::decode(&document)).unwrap_or_default())
}

/// Reads a stored change, without looking at its Business Object.
pub(super) fn read_stored(read: &impl Read, id: &str) -> Result<Option<Change>, GatewayError> {
    let Some(id) = parse_id(id) else { return Ok(None) };
    read.read_document(CHANGES, &id)?.as_deref().map(Change::decode).transpose()
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
    let id = after.id_bytes()?;
    if before.is_some_and(|before| before.state.is_open()) && !after.state.is_open() {
        let sequence = transaction.sequence();
        after.closed = Some(sequence);
        transaction.put_document(CLOSED, &closed_key(after, sequence, id), &now.to_be_bytes())?;
    }
    after.bytes = 0;
    after.bytes = after.part_bytes.saturating_add(after.encode()?.len() as u64);
    transaction.put_document(CHANGES, &id, &after.encode()?)?;
    update_totals(transaction, &after.author, |totals| {
        if let Some(before) = before {
            totals.remove(before);
        }
        totals.add(after);
    })
}

fn update_totals(
    transaction: &mut Transaction<'_>,
    account: &str,
    update: impl Fn(&mut ChangeTotals),
) -> Result<(), GatewayError> {
    for key in [account, ""] {
        let mut totals = read_totals_of(transaction, key)?;
        update(&mut totals);
        if totals == ChangeTotals::default() {
            transaction.delete_document(TOTALS, key.as_bytes())?;
        } else {
            transaction.put_document(TOTALS, key.as_bytes(), &totals.encode())?;
        }
    }
    Ok(())
}

fn closed_key(change: &Change, sequence: u64, id: IdBytes) -> Vec<u8> {
    [change.author.as_bytes(), &[0], &sequence.to_be_bytes(), &id].concat()
}

/// Makes place for a change of an account that has `bytes`, and checks the limits. `before` is what is stored of it.
///
/// # Errors
/// `ErrorClass::TooManyRequests` if the open changes leave no place.
pub(super) fn make_place(
    transaction: &mut Transaction<'_>,
    account: &str,
    before: Option<&Change>,
    bytes: u64,
    limits: &Limits,
) -> Result<(), GatewayError> {
    let is_new = u64::from(before.is_none());
    let old_bytes = before.map_or(0, |before| before.bytes);
    let share = |limit: u64| (limit / SHARE).max(1);
    let every_limit = [
        (account, share(limits.changes), share(limits.change_bytes), "this account has"),
        ("", limits.changes, limits.change_bytes, "there are"),
    ];
    for (owner, max_open, max_bytes, whose) in every_limit {
        let totals = read_totals_of(transaction, owner)?;
        let open_bytes = totals.open_bytes.saturating_sub(old_bytes).saturating_add(bytes);
        if totals.open + is_new > max_open || open_bytes > max_bytes {
            return Err(GatewayError::new(
                ErrorClass::TooManyRequests(RETRY_DELAY),
                format!(
                    "{whose} {} open changes with {} bytes, and this one would have {bytes}; the limits are {max_open} and {max_bytes} (service.limits.changes and .change-bytes; an account may have a tenth); approve, reject or withdraw some first",
                    totals.open, totals.open_bytes
                ),
            ));
        }
        while read_totals_of(transaction, owner)?
            .bytes()
            .saturating_sub(old_bytes)
            .saturating_add(bytes)
            > max_bytes
        {
            let loser = if owner.is_empty() {
                find_largest_owner(transaction)?
            } else {
                Some(owner.to_owned())
            };
            let Some(loser) = loser else { break };
            if !remove_oldest_closed(transaction, &loser)? {
                break;
            }
        }
    }
    Ok(())
}

/// Returns the account whose closed changes have most bytes.
fn find_largest_owner(read: &impl Read) -> Result<Option<String>, GatewayError> {
    let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    let all = read.read_documents(TOTALS, range)?.into_iter();
    let owners = all.filter(|(account, _)| !account.is_empty());
    let bytes = owners.map(|(account, value)| (ChangeTotals::decode(&value).closed_bytes, account));
    let largest = bytes.filter(|(bytes, _)| *bytes > 0).max();
    Ok(largest.map(|(_, account)| String::from_utf8_lossy(&account).into_owned()))
}

/// Removes the oldest closed change of an account. Returns false if it has none.
fn remove_oldest_closed(
    transaction: &mut Transaction<'_>,
    account: &str,
) -> Result<bool, GatewayError> {
    let oldest = read_oldest_closed(transaction, account, 1)?;
    let Some((key, id, _)) = oldest.into_iter().next() else { return Ok(false) };
    remove_closed(transaction, account, &key, id)?;
    Ok(true)
}

/// Returns the oldest closed changes of an account: the key of each, its id, and the elapsed milliseconds when it was
/// closed.
fn read_oldest_closed(
    read: &impl Read,
    account: &str,
    limit: usize,
) -> Result<Vec<(Vec<u8>, IdBytes, u64)>, GatewayError> {
    let prefix = [account.as_bytes(), &[0]].concat();
    let range = DocumentRange { prefix: &prefix, limit, ..DocumentRange::default() };
    let entries = read.read_documents(CLOSED, range)?.into_iter();
    let decode = |(key, value): (Vec<u8>, Vec<u8>)| {
        let id = *key.last_chunk::<16>()?;
        let at = u64::from_be_bytes(value.try_into().ok()?);
        Some((key, id, at))
    };
    Ok(entries.filter_map(decode).collect())
}

/// Removes a closed change with its parts.
fn remove_closed(
    transaction: &mut Transaction<'_>,
    account: &str,
    key: &[u8],
    id: IdBytes,
) -> Result<(), GatewayError> {
    transaction.delete_document(CLOSED, key)?;
    let Some(document) = transaction.read_document(CHANGES, &id)? else { return Ok(()) };
    let change = Change::decode(&document)?;
    release_identifiers(transaction, &change)?;
    transaction.delete_document(CHANGES, &id)?;
    let pages = (0..change.pages).map(Part::Page);
    for part in [Part::Request, Part::Minted, Part::Warnings].into_iter().chain(pages) {
        transaction.delete_document(PARTS, &part.key(id))?;
    }
    update_totals(transaction, account, |totals| totals.remove(&change))
}

/// Removes the reservations of the identifiers of a change that is published or removed.
pub(super) fn release_identifiers(
    transaction: &mut Transaction<'_>,
    change: &Change,
) -> Result<(), GatewayError> {
    let minted = read_minted(transaction, change)?;
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
    let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    let accounts = store.read().read_documents(TOTALS, range)?;
    let mut expired = 0;
    for (account, _) in accounts {
        let Ok(account) = String::from_utf8(account) else { continue };
        loop {
            let is_old = |at: u64| now.saturating_sub(at) > max_age;
            let oldest = read_oldest_closed(&store.read(), &account, 1)?;
            if !oldest.first().is_some_and(|(.., at)| is_old(*at)) {
                break;
            }
            let (count, _) = store.commit(&NoClient, |transaction| -> Result<_, GatewayError> {
                let oldest = read_oldest_closed(transaction, &account, MAX_EXPIRED_PER_COMMIT)?;
                let mut count = 0;
                for (key, id, _) in oldest.into_iter().take_while(|(.., at)| is_old(*at)) {
                    remove_closed(transaction, &account, &key, id)?;
                    count += 1;
                }
                Ok(count)
            })?;
            expired += count;
        }
    }
    Ok(expired)
}
