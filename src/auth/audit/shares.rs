//! The shares of the audit trail. A fifth of `service.limits.audit` is guaranteed to each kind of event, so that a
//! flood of one kind does not evict the guaranteed events of another. A kind can borrow capacity that others do not
//! use, and gives it back when they need it. Within a kind, the oldest event of the account with the most events goes
//! first, so that no account evicts the events of others that have fewer.
//!
//! | collection | key | value |
//! |---|---|---|
//! | one for each kind | digest of the account (16 bytes), number of the event | empty |
//! | `audit.counts` | kind (1 byte) | the number of its events |
//! | `audit.counts` | kind, digest of the account | the number of its events of this kind, the number of the oldest one |
//! | `audit.counts` | `newest` | the number of the newest event in the lists |
//!
//! Numbers are big-endian, with 8 bytes.
use super::{COLLECTION, EVENTS_PER_READ, Record, decode_record, read_event_number};
use crate::keys;
use penstock_base::error::GatewayError;
use penstock_store::{DocumentRange, Read, Store, Transaction};
use sha2::{Digest, Sha256};

/// The collection with the numbers of events.
const COUNTS: &str = "audit.counts";
/// The key there of the number of the newest event in the lists.
const NEWEST: &[u8] = b"newest";
const ACTOR_BYTES: usize = 16;

/// Identifies the account that caused an event.
type Actor = [u8; ACTOR_BYTES];

/// The number of events of an account, and the number of its oldest event.
#[derive(Debug, Clone, Copy)]
struct ActorEvents {
    count: u64,
    oldest: u64,
}

/// A kind of event with its own share. The kinds give back borrowed capacity in this order: first the kinds
/// that unauthenticated clients can cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// Refused sign-ins and requests.
    Refusals,
    /// Sign-ins and sign-outs.
    SignIns,
    /// What Contributors do: steps of changes under review, namespaces, validations, and dead letters.
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
            "change" | "namespace" | "validation" | "dead-letter" => Self::Changes,
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
    fn collection(self) -> &'static str {
        match self {
            Self::Refusals => "audit.refusals",
            Self::SignIns => "audit.sign-ins",
            Self::Changes => "audit.changes",
            Self::Others => "audit.others",
            Self::Credentials => "audit.credentials",
        }
    }

    /// Returns the key of the number of its events.
    fn total_key(self) -> [u8; 1] {
        [self as u8]
    }

    fn count_events(self, read: &impl Read) -> Result<u64, GatewayError> {
        let total = read.read_document(COUNTS, &self.total_key())?;
        Ok(total.and_then(|bytes| read_number(&bytes)).unwrap_or(0))
    }

    fn put_total(self, transaction: &mut Transaction<'_>, total: u64) -> Result<(), GatewayError> {
        Ok(transaction.put_document(COUNTS, &self.total_key(), &total.to_be_bytes())?)
    }

    fn actor_key(self, actor: Actor) -> Vec<u8> {
        [&self.total_key()[..], &actor].concat()
    }

    fn read_actor(
        self,
        read: &impl Read,
        actor: Actor,
    ) -> Result<Option<ActorEvents>, GatewayError> {
        let document = read.read_document(COUNTS, &self.actor_key(actor))?;
        Ok(document.and_then(|bytes| ActorEvents::decode(&bytes)))
    }

    fn put_actor(
        self,
        transaction: &mut Transaction<'_>,
        actor: Actor,
        events: Option<ActorEvents>,
    ) -> Result<(), GatewayError> {
        let key = self.actor_key(actor);
        match events {
            Some(events) => transaction.put_document(COUNTS, &key, &events.encode())?,
            None => transaction.delete_document(COUNTS, &key)?,
        }
        Ok(())
    }

    /// Returns the account with the most events of this kind; of several, the one with the oldest event.
    fn find_largest(self, read: &impl Read) -> Result<Option<(Actor, ActorEvents)>, GatewayError> {
        let prefix = self.total_key();
        let range =
            DocumentRange { prefix: &prefix, limit: usize::MAX, ..DocumentRange::default() };
        let actors = read.read_documents(COUNTS, range)?;
        let actors = actors.iter().filter_map(|(key, value)| {
            Some((Actor::try_from(key.get(1..)?).ok()?, ActorEvents::decode(value)?))
        });
        Ok(actors.max_by_key(|(_, events)| (events.count, u64::MAX - events.oldest)))
    }

    /// Deletes the oldest event of the account with the most events. Returns whether there was one.
    fn delete_one(self, transaction: &mut Transaction<'_>) -> Result<bool, GatewayError> {
        let Some((actor, ActorEvents { count, oldest })) = self.find_largest(transaction)? else {
            return Ok(false);
        };
        transaction.delete_document(self.collection(), &entry_key(actor, oldest))?;
        transaction.delete_document(COLLECTION, &oldest.to_be_bytes())?;
        let range = DocumentRange { prefix: &actor, limit: 1, ..DocumentRange::default() };
        let next = transaction.read_documents(self.collection(), range)?;
        let next = next.first().and_then(|(key, _)| read_number(key.get(ACTOR_BYTES..)?));
        let left = next.map(|oldest| ActorEvents { count: count.saturating_sub(1).max(1), oldest });
        self.put_actor(transaction, actor, left)?;
        let total = self.count_events(transaction)?.saturating_sub(1);
        self.put_total(transaction, total)?;
        Ok(true)
    }
}

impl ActorEvents {
    fn encode(self) -> Vec<u8> {
        [self.count.to_be_bytes(), self.oldest.to_be_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (count, oldest) = bytes.split_at_checked(8)?;
        Some(Self { count: read_number(count)?, oldest: read_number(oldest)? })
    }
}

fn read_number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

fn entry_key(actor: Actor, number: u64) -> Vec<u8> {
    [&actor[..], &number.to_be_bytes()].concat()
}

/// Returns the account that caused an event: the owner of the API key that was used, or else who acted, or else whom the
/// event is about. Everybody without an account counts as one.
fn find_actor(read: &impl Read, record: &Record) -> Result<Actor, GatewayError> {
    let by = record.by.as_ref().or(record.account.as_ref()).map_or("", String::as_str);
    let owner = keys::read_owner(read, by)?;
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
    transaction.put_document(share.collection(), &entry_key(actor, number), b"")?;
    let events = match share.read_actor(transaction, actor)? {
        Some(ActorEvents { count, oldest }) => ActorEvents { count: count + 1, oldest },
        None => ActorEvents { count: 1, oldest: number },
    };
    share.put_actor(transaction, actor, Some(events))?;
    let total = share.count_events(transaction)? + 1;
    share.put_total(transaction, total)?;
    Ok(transaction.put_document(COUNTS, NEWEST, &number.to_be_bytes())?)
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
    let is_current = read_newest(&read)? == read_event_number(&read, true)? && has_own_form(&read)?;
    drop(read);
    if is_current {
        return Ok(());
    }
    // First of all, so that a rebuild that does not end is begun again.
    store.transact(|transaction| transaction.delete_document(COUNTS, NEWEST))?;
    for collection in Share::ALL.map(Share::collection).into_iter().chain([COUNTS]) {
        for_each_document(store, collection, |transaction, key, _| {
            Ok(transaction.delete_document(collection, key)?)
        })?;
    }
    for_each_document(store, COLLECTION, |transaction, key, event| {
        let record = decode_record(key, event)?;
        append_to_list(transaction, &record, record.id)
    })
}

/// Returns the number of the newest event in the lists.
fn read_newest(read: &impl Read) -> Result<Option<u64>, GatewayError> {
    Ok(read.read_document(COUNTS, NEWEST)?.and_then(|bytes| read_number(&bytes)))
}

/// Returns whether the lists have the form of this version.
fn has_own_form(read: &impl Read) -> Result<bool, GatewayError> {
    for share in Share::ALL {
        let range = DocumentRange { limit: 1, ..DocumentRange::default() };
        let first = read.read_documents(share.collection(), range)?;
        if first.iter().any(|(key, _)| key.len() != ACTOR_BYTES + size_of::<u64>()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Calls `each` for every document of a collection, in commits of a bounded size.
fn for_each_document(
    store: &Store,
    collection: &str,
    each: impl Fn(&mut Transaction<'_>, &[u8], &[u8]) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let range = DocumentRange {
            after: after.as_deref(),
            limit: EVENTS_PER_READ,
            ..DocumentRange::default()
        };
        let piece = store.read().read_documents(collection, range)?;
        let Some((last, _)) = piece.last() else { return Ok(()) };
        store.transact::<_, GatewayError>(|transaction| {
            piece.iter().try_for_each(|(key, value)| each(transaction, key, value))
        })?;
        after = Some(last.clone());
    }
}
