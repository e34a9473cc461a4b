//! The shares of the audit trail. A fifth of `service.limits.audit` is guaranteed to each kind of event, so that a
//! flood of one kind does not evict the guaranteed events of another. A kind can borrow capacity that others do not
//! use, and gives it back when they need it. Within a kind, the oldest event of the account with the most events goes
//! first, so that no account evicts the events of others that have fewer.
use super::record::{EVENTS, EVENTS_PER_READ, Record, read_last_number};
use crate::keys::stored_key::read_owner;
use penstock_base::collections::{self, Collection};
use penstock_base::error::GatewayError;
use penstock_base::table::Table;
use penstock_store::{Read, Store, Transaction};
use sha2::{Digest, Sha256};

/// The numbers of events, by kind.
const TOTALS: Table<u8, u64> = Table::new(collections::AUDIT_COUNTS);
/// The number of events of each account, and the number of its oldest event, by kind and account.
const ACTORS: Table<(u8, Actor), (u64, u64)> = Table::new(collections::AUDIT_COUNTS);
/// The number of the newest event in the lists.
const NEWEST: Table<String, u64> = Table::new(collections::AUDIT_COUNTS);
const NEWEST_KEY: &str = "newest";

/// Identifies the account that caused an event.
type Actor = [u8; 16];

/// A kind of event with its own share. The kinds give back borrowed capacity in this order: first the kinds
/// that unauthenticated clients can cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// Refused sign-ins and requests.
    Refusals,
    /// Sign-ins and sign-outs.
    SignIns,
    /// What Contributors do: steps of changes under review, namespaces, validations, and dead letters; and saved views, which
    /// all accounts save.
    Changes,
    /// Everything else, such as changes to definitions: what only Admins do.
    Others,
    /// Changes to accounts and API keys.
    Credentials,
}

impl Share {
    const ALL: [Self; 5] =
        [Self::Refusals, Self::SignIns, Self::Changes, Self::Others, Self::Credentials];

    /// Returns the share that an event of this kind counts for.
    fn for_kind(what: &str) -> Self {
        if what.ends_with(".refused") {
            return Self::Refusals;
        }
        match what.split('.').next().unwrap_or_default() {
            "sign-in" | "sign-out" => Self::SignIns,
            "change" | "namespace" | "validation" | "dead-letter" | "view" => Self::Changes,
            "account" | "group" | "role" | "password" | "key" => Self::Credentials,
            _ => Self::Others,
        }
    }

    /// Returns the number of events that are guaranteed to it, of `capacity` in total.
    fn guaranteed_events(self, capacity: u64) -> u64 {
        let fifth = capacity / 5;
        if self == Self::Credentials { capacity - 4 * fifth } else { fifth }
    }

    /// Returns the collection of its list.
    fn collection(self) -> Collection {
        match self {
            Self::Refusals => collections::AUDIT_REFUSALS,
            Self::SignIns => collections::AUDIT_SIGN_INS,
            Self::Changes => collections::AUDIT_CHANGES,
            Self::Others => collections::AUDIT_OTHERS,
            Self::Credentials => collections::AUDIT_CREDENTIALS,
        }
    }

    /// Returns its list: the account and the number of each event.
    fn list(self) -> Table<(Actor, u64), ()> {
        Table::new(self.collection())
    }

    fn count_events(self, read: &dyn Read) -> Result<u64, GatewayError> {
        Ok(TOTALS.get_readable(read, self as u8)?.unwrap_or(0))
    }

    /// Deletes the oldest event of the account with the most events of this kind; of several accounts, the one with the
    /// oldest event. Returns whether there was one.
    fn delete_one(self, transaction: &mut Transaction<'_>) -> Result<bool, GatewayError> {
        let actors = ACTORS.scan().prefix::<u8>(self as u8).read_all(transaction)?;
        let actors = actors.iter().filter_map(|row| row.entry().ok());
        let largest = actors.max_by_key(|(_, (count, oldest))| (*count, u64::MAX - oldest));
        let Some(((kind, actor), (count, oldest))) = largest else { return Ok(false) };
        self.list().delete(transaction, (actor, oldest))?;
        EVENTS.delete(transaction, oldest)?;
        let next = self.list().scan().prefix::<Actor>(actor).first(transaction)?;
        match next.and_then(|row| row.key().ok()) {
            Some((_, oldest)) => {
                let left = (count.saturating_sub(1).max(1), oldest);
                ACTORS.put(transaction, (kind, actor), left)?;
            }
            None => ACTORS.delete(transaction, (kind, actor))?,
        }
        let total = self.count_events(transaction)?.saturating_sub(1);
        TOTALS.put(transaction, kind, total)?;
        Ok(true)
    }
}

/// Returns the account that caused an event: the owner of the API key that was used, or else who acted, or else whom the
/// event is about. Everybody without an account counts as one.
fn find_actor(read: &dyn Read, record: &Record) -> Result<Actor, GatewayError> {
    let by = record.by.as_ref().or(record.account.as_ref()).map_or("", String::as_str);
    let owner = read_owner(read, by)?;
    let digest = Sha256::digest(owner.as_deref().unwrap_or(by));
    Ok(digest.first_chunk().copied().unwrap_or_default())
}

/// Appends an event to the list of its kind.
pub(super) fn append_to_list(
    transaction: &mut Transaction<'_>,
    record: &Record,
    number: u64,
) -> Result<(), GatewayError> {
    let (share, actor) = (Share::for_kind(&record.what), find_actor(transaction, record)?);
    share.list().put(transaction, (actor, number), ())?;
    let key = (share as u8, actor);
    let events = match ACTORS.get_readable(transaction, key)? {
        Some((count, oldest)) => (count + 1, oldest),
        None => (1, number),
    };
    ACTORS.put(transaction, key, events)?;
    let total = share.count_events(transaction)? + 1;
    TOTALS.put(transaction, share as u8, total)?;
    Ok(NEWEST.put(transaction, NEWEST_KEY, number)?)
}

/// Deletes events of the kinds that exceed their shares until `capacity` events are left.
pub(super) fn evict_excess(
    transaction: &mut Transaction<'_>,
    capacity: u64,
) -> Result<(), GatewayError> {
    let mut counts = Vec::with_capacity(Share::ALL.len());
    for share in Share::ALL {
        counts.push((share, share.count_events(transaction)?));
    }
    let mut excess = counts.iter().map(|(_, count)| count).sum::<u64>().saturating_sub(capacity);
    for (share, count) in counts {
        let beyond = count.saturating_sub(share.guaranteed_events(capacity)).min(excess);
        for _ in 0..beyond {
            if !share.delete_one(transaction)? {
                break;
            }
        }
        excess -= beyond;
    }
    Ok(())
}

/// Rebuilds the lists if they do not match the events. They do not match if an earlier version of the gateway, whose lists
/// have another form, was started last, or if a rebuild did not end.
pub(super) fn rebuild_if_stale(store: &Store) -> Result<(), GatewayError> {
    let read = store.read();
    let newest = NEWEST.get_readable(&read, NEWEST_KEY)?;
    let is_current = newest == read_last_number(&read)? && has_own_form(&read)?;
    drop(read);
    if is_current {
        return Ok(());
    }
    // First of all, so that a rebuild that does not end is begun again.
    store.transact(|transaction| NEWEST.delete(transaction, NEWEST_KEY))?;
    for collection in
        Share::ALL.map(Share::collection).into_iter().chain([collections::AUDIT_COUNTS])
    {
        let all = Table::<Vec<u8>, Vec<u8>>::new(collection).scan();
        while store.transact(|transaction| all.delete(transaction, EVENTS_PER_READ))?.0 > 0 {}
    }
    let mut events = EVENTS.scan();
    loop {
        let page = events.next_page(&store.read(), EVENTS_PER_READ)?;
        if page.is_empty() {
            return Ok(());
        }
        store.transact::<_, GatewayError>(|transaction| {
            page.iter().try_for_each(|row| {
                let record = Record::from_row(row)?;
                append_to_list(transaction, &record, record.id)
            })
        })?;
    }
}

/// Returns whether the lists have the form of this version.
fn has_own_form(read: &dyn Read) -> Result<bool, GatewayError> {
    for share in Share::ALL {
        if share.list().scan().first(read)?.is_some_and(|row| row.key().is_err()) {
            return Ok(false);
        }
    }
    Ok(true)
}
