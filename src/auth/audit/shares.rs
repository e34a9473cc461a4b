//! The shares of the audit trail: each kind of event is guaranteed a quarter of `service.limits.audit`, so that a
//! flood of one kind evicts no event of another. Unused capacity is lent, and given back when it is needed.
//!
//! The trail has one list for each kind, from a running number without gaps to the number of the event. So the first
//! and the last entry give the number of stored events of the kind, and the oldest one.
use super::{COLLECTION, PIECE, decode, number_of};
use penstock_base::fault::Fault;
use penstock_store::{DocumentRange, Read, Store, Transaction};

/// A kind of event with its own share, in the order in which they give back borrowed capacity. The kinds that
/// unauthenticated clients can cause come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// Refused sign-ins and requests.
    Refusals,
    /// Sign-ins and sign-outs.
    SignIns,
    /// Everything else, such as changes to definitions.
    Others,
    /// Changes to accounts and API keys.
    Credentials,
}

impl Share {
    const ALL: [Self; 4] = [Self::Refusals, Self::SignIns, Self::Others, Self::Credentials];

    /// Returns the share that an event of this kind counts for.
    fn of(what: &str) -> Self {
        if what.ends_with(".refused") {
            return Self::Refusals;
        }
        match what.split('.').next().unwrap_or_default() {
            "sign-in" | "sign-out" => Self::SignIns,
            "account" | "role" | "password" | "key" => Self::Credentials,
            _ => Self::Others,
        }
    }

    /// Returns the number of events that it is guaranteed, of `capacity` in total.
    fn guaranteed(self, capacity: u64) -> u64 {
        let quarter = capacity / 4;
        if self == Self::Credentials { capacity - 3 * quarter } else { quarter }
    }

    /// Returns the collection of its list.
    fn collection(self) -> &'static str {
        match self {
            Self::Refusals => "audit.refusals",
            Self::SignIns => "audit.sign-ins",
            Self::Others => "audit.others",
            Self::Credentials => "audit.credentials",
        }
    }

    /// Reads the first or the last entry of its list: its place, and the number of the event.
    fn entry(self, read: &impl Read, is_last: bool) -> Result<Option<(u64, u64)>, Fault> {
        let range = DocumentRange { reverse: is_last, limit: 1, ..DocumentRange::default() };
        let found = read.documents(self.collection(), range)?;
        Ok(found.first().and_then(|(place, event)| {
            let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
            Some((number(place)?, number(event)?))
        }))
    }

    fn count(self, read: &impl Read) -> Result<u64, Fault> {
        let (first, last) = (self.entry(read, false)?, self.entry(read, true)?);
        Ok(first.zip(last).map_or(0, |((first, _), (last, _))| last.saturating_sub(first) + 1))
    }
}

/// Appends an event to the list of its kind.
pub(super) fn list(
    transaction: &mut Transaction<'_>,
    what: &str,
    number: u64,
) -> Result<(), Fault> {
    let share = Share::of(what);
    let place = 1 + share.entry(transaction, true)?.map_or(0, |(place, _)| place);
    Ok(transaction.put(share.collection(), &place.to_be_bytes(), &number.to_be_bytes())?)
}

/// Deletes the oldest events of the kinds that exceed their shares until `capacity` events are left.
pub(super) fn evict(transaction: &mut Transaction<'_>, capacity: u64) -> Result<(), Fault> {
    let mut counts = Vec::with_capacity(Share::ALL.len());
    for share in Share::ALL {
        counts.push((share, share.count(transaction)?));
    }
    let mut excess = counts.iter().map(|(_, count)| count).sum::<u64>().saturating_sub(capacity);
    for (share, count) in counts {
        let beyond = count.saturating_sub(share.guaranteed(capacity)).min(excess);
        for _ in 0..beyond {
            let Some((place, number)) = share.entry(transaction, false)? else { break };
            transaction.delete(share.collection(), &place.to_be_bytes())?;
            transaction.delete(COLLECTION, &number.to_be_bytes())?;
        }
        excess -= beyond;
    }
    Ok(())
}

/// Rebuilds the lists if they do not match the events. This happens when an earlier version, which has no lists,
/// wrote the newest event or deleted the oldest.
pub(super) fn rebuild_if_stale(store: &Store) -> Result<(), Fault> {
    let read = store.read();
    let (mut oldest, mut newest) = (None::<u64>, None::<u64>);
    for share in Share::ALL {
        for is_last in [false, true] {
            if let Some((_, number)) = share.entry(&read, is_last)? {
                oldest = Some(oldest.map_or(number, |known| known.min(number)));
                newest = newest.max(Some(number));
            }
        }
    }
    let is_current = oldest == number_of(&read, false)? && newest == number_of(&read, true)?;
    drop(read);
    if is_current {
        return Ok(());
    }
    for share in Share::ALL {
        in_pieces(store, share.collection(), |transaction, place, _| {
            Ok(transaction.delete(share.collection(), place)?)
        })?;
    }
    in_pieces(store, COLLECTION, |transaction, key, event| {
        let record = decode(key, event)?;
        list(transaction, &record.what, record.id)
    })
}

/// Calls `each` for every document of a collection, in commits of a bounded size.
fn in_pieces(
    store: &Store,
    collection: &str,
    each: impl Fn(&mut Transaction<'_>, &[u8], &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let range =
            DocumentRange { after: after.as_deref(), limit: PIECE, ..DocumentRange::default() };
        let piece = store.read().documents(collection, range)?;
        let Some((last, _)) = piece.last() else { return Ok(()) };
        store.transact::<_, Fault>(|transaction| {
            piece.iter().try_for_each(|(key, value)| each(transaction, key, value))
        })?;
        after = Some(last.clone());
    }
}
