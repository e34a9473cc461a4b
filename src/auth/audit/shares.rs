//! The shares of the audit trail. A fifth of `service.limits.audit` is guaranteed to each kind of event, so that a
//! flood of one kind does not evict the guaranteed events of another. A kind can borrow capacity that others do not
//! use, and gives it back when they need it.
//!
//! The trail has one list for each kind. An entry maps its place, a running number without gaps, to the number of the
//! event. So the first and the last entry give the count of stored events of the kind, and the oldest one.
use super::{COLLECTION, EVENTS_PER_READ, decode_record, read_event_number};
use penstock_base::error::GatewayError;
use penstock_store::{DocumentRange, Read, Store, Transaction};

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

    /// Reads the first or the last entry of its list: its place, and the number of the event.
    fn read_entry(
        self,
        read: &impl Read,
        is_last: bool,
    ) -> Result<Option<(u64, u64)>, GatewayError> {
        let range = DocumentRange { reverse: is_last, limit: 1, ..DocumentRange::default() };
        let found = read.read_documents(self.collection(), range)?;
        Ok(found.first().and_then(|(place, event)| {
            let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
            Some((number(place)?, number(event)?))
        }))
    }

    fn count_events(self, read: &impl Read) -> Result<u64, GatewayError> {
        let (first, last) = (self.read_entry(read, false)?, self.read_entry(read, true)?);
        Ok(first.zip(last).map_or(0, |((first, _), (last, _))| last.saturating_sub(first) + 1))
    }
}

/// Appends an event to the list of its kind.
pub(super) fn append_to_list(
    transaction: &mut Transaction<'_>,
    what: &str,
    number: u64,
) -> Result<(), GatewayError> {
    let share = Share::for_kind(what);
    let place = 1 + share.read_entry(transaction, true)?.map_or(0, |(place, _)| place);
    Ok(transaction.put_document(share.collection(), &place.to_be_bytes(), &number.to_be_bytes())?)
}

/// Deletes the oldest events of the kinds that exceed their shares until `capacity` events are left.
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
            let Some((place, number)) = share.read_entry(transaction, false)? else { break };
            transaction.delete_document(share.collection(), &place.to_be_bytes())?;
            transaction.delete_document(COLLECTION, &number.to_be_bytes())?;
        }
        excess -= beyond;
    }
    Ok(())
}

/// Rebuilds the lists if they do not match the events. They do not match if an earlier version of the gateway, which
/// has no lists, wrote the newest event or deleted the oldest.
pub(super) fn rebuild_if_stale(store: &Store) -> Result<(), GatewayError> {
    let read = store.read();
    let (mut oldest, mut newest) = (None::<u64>, None::<u64>);
    for share in Share::ALL {
        for is_last in [false, true] {
            if let Some((_, number)) = share.read_entry(&read, is_last)? {
                oldest = Some(oldest.map_or(number, |known| known.min(number)));
                newest = newest.max(Some(number));
            }
        }
    }
    let is_current =
        oldest == read_event_number(&read, false)? && newest == read_event_number(&read, true)?;
    drop(read);
    if is_current {
        return Ok(());
    }
    for share in Share::ALL {
        for_each_document(store, share.collection(), |transaction, place, _| {
            Ok(transaction.delete_document(share.collection(), place)?)
        })?;
    }
    for_each_document(store, COLLECTION, |transaction, key, event| {
        let record = decode_record(key, event)?;
        append_to_list(transaction, &record.what, record.id)
    })
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
