//! The audit trail: changes of accounts, credentials and definitions, sign-ins, and refusals.
//!
//! The event of a change to an account, a key or a definition is in the same commit as the change. Sign-ins and
//! refusals follow within a second. Of repeated refusals, the first few in each minute are stored and logged. The
//! rest are counted, and one event with their number follows, so that a flood of refusals does not fill the disk.
//! Changes of an account to itself and its keys have a rate limit (`rate_limit`), so that they do not evict the events
//! of others. The trail has a maximum length, and each kind of event has a share of it (`shares`).
mod rate_limit;
mod record;
mod shares;

pub use record::{Event, Record};

use super::Caller;
use super::deferred_writes::DeferredWrites;
use parking_lot::Mutex;
use penstock_base::commit::{CommitCheck, GuardedStore, NoClient, commit};
use penstock_base::error::GatewayError;
use penstock_base::network;
use penstock_store::{Store, Transaction};
use rate_limit::AccountLimit;
use record::{EVENTS, EVENTS_PER_READ, read_last_number};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The maximum number of refusals of the same kind, address (for IPv6 its /64) and account that are stored one by one
/// in each [`REFUSAL_WINDOW`]. Further ones are counted.
const MAX_STORED_PER_SOURCE: u64 = 3;
/// The maximum number of refusals that are stored one by one in each [`REFUSAL_WINDOW`], of all sources together.
const MAX_STORED_PER_WINDOW: u64 = 60;
const REFUSAL_WINDOW: Duration = Duration::from_mins(1);

/// The audit trail. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Audit {
    store: Store,
    deferred_writes: DeferredWrites,
    max_events: usize,
    refusals: Arc<Mutex<Refusals>>,
    own_changes: Arc<AccountLimit>,
    new_namespaces: Arc<AccountLimit>,
    view_changes: Arc<AccountLimit>,
}

/// Selects events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Events about this account, or caused by it.
    pub account: Option<String>,
    /// The ids of its API keys. Events caused by one of them count as caused by the account.
    pub keys: Vec<String>,
    /// Events of this kind, or of kinds that begin with it and a dot.
    pub what: Option<String>,
}

/// The refusals in the current [`REFUSAL_WINDOW`].
#[derive(Debug, Default)]
struct Refusals {
    window_start: Option<Instant>,
    stored_in_total: u64,
    stored_by_source: HashMap<RefusalSource, u64>,
    /// The number of refusals that were not stored. A source that used up its own quota has its own counter. Sources
    /// that came after the total quota was used up share one counter for each kind, however many there are.
    counted_by_source: HashMap<RefusalSource, Arc<AtomicU64>>,
}

/// Identifies refusals that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RefusalSource {
    what: &'static str,
    account: Option<String>,
    /// The address, for IPv6 its /64 network, because a single host can use all addresses of it.
    from: Option<IpAddr>,
}

/// What happens to an event.
enum RefusalOutcome {
    Stored,
    Counted,
    /// The first counted refusal of a source. When the window ends, one event with the count is stored.
    CountBegins(RefusalSource, Arc<AtomicU64>),
}

impl Audit {
    pub(super) fn open(store: Store, deferred_writes: DeferredWrites, max_events: usize) -> Self {
        if let Err(fault) = shares::rebuild_if_stale(&store) {
            tracing::warn!(%fault, "The audit trail's events could not be sorted by kind. Until the next start it may exceed service.limits.audit.");
        }
        Self {
            store,
            deferred_writes,
            max_events,
            refusals: Arc::default(),
            own_changes: Arc::new(AccountLimit::of_own_changes()),
            new_namespaces: Arc::new(AccountLimit::of_namespaces()),
            view_changes: Arc::new(AccountLimit::of_views()),
        }
    }

    /// Stores and logs an event. Repeated refusals are only counted. If the store accepts no commit, the event is only
    /// in the log. Never blocks.
    pub fn record_event(&self, event: Event) {
        let outcome = if event.what.ends_with(".refused") {
            self.refusals.lock().classify_refusal(&event, Instant::now())
        } else {
            RefusalOutcome::Stored
        };
        match outcome {
            RefusalOutcome::Stored => {
                log_event(&event);
                let (max_events, record) = (self.max_events, Record::from_event(event, 1));
                self.deferred_writes
                    .enqueue(move |transaction| store_record(transaction, &record, max_events));
            }
            RefusalOutcome::CountBegins(source, count) => {
                let max_events = self.max_events;
                self.deferred_writes.enqueue_after(REFUSAL_WINDOW, move |transaction| {
                    let count = count.load(Ordering::Relaxed);
                    let RefusalSource { what, account, from } = source.clone();
                    let network = match from {
                        Some(IpAddr::V6(network)) => format!(" from {network}/64"),
                        _ => String::new(),
                    };
                    let detail = format!("{count} more of the same{network} within a minute");
                    let event = Event { what, account, by: None, from, detail };
                    log_event(&event);
                    store_record(transaction, &Record::from_event(event, count), max_events)
                });
            }
            RefusalOutcome::Counted => {}
        }
    }

    /// Counts a change that a caller is about to make to its own account or its keys.
    ///
    /// # Errors
    /// `ErrorClass::TooManyRequests` when the changes would evict the events of others from the trail.
    pub(super) fn check_rate_limit(&self, by: &Caller) -> Result<(), GatewayError> {
        self.own_changes.count_change(by, Instant::now())
    }

    /// Counts a namespace that a caller is about to create.
    ///
    /// # Errors
    /// `ErrorClass::TooManyRequests` when the caller has created many recently. Each is an event of the trail.
    pub fn check_namespace_rate(&self, by: &Caller) -> Result<(), GatewayError> {
        self.new_namespaces.count_change(by, Instant::now())
    }

    /// Counts a change that a caller is about to make to a saved view.
    ///
    /// # Errors
    /// `ErrorClass::TooManyRequests` when the caller has made many recently. Each is an event of the trail.
    pub fn check_view_rate(&self, by: &Caller) -> Result<(), GatewayError> {
        self.view_changes.count_change(by, Instant::now())
    }

    /// Commits a change together with its events, and logs them. Blocking.
    pub(super) fn commit_with_events(
        &self,
        check: &dyn CommitCheck,
        events: &[Event],
        change: impl FnOnce(&mut Transaction<'_>) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        if !events.is_empty() {
            // Events that were recorded earlier get lower numbers.
            self.deferred_writes.flush();
        }
        commit::<_, GatewayError>(&self.store, check, |transaction| {
            change(transaction)?;
            events.iter().try_for_each(|event| self.add_event(transaction, event))
        })?;
        events.iter().for_each(log_event);
        Ok(())
    }

    /// Stores the events recorded so far, before a change whose commit adds its own events. Blocking.
    pub fn flush(&self) {
        self.deferred_writes.flush();
    }

    /// Adds an event to the commit of its change. The caller logs it.
    pub fn add_event(
        &self,
        transaction: &mut Transaction<'_>,
        event: &Event,
    ) -> Result<(), GatewayError> {
        add_event_offline(transaction, self.max_events, event)
    }

    /// Lists events, newest first, with numbers below `before`. Blocking.
    pub fn list(
        &self,
        filter: &Filter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Record>, GatewayError> {
        // The list must include the events of recent actions.
        self.deferred_writes.flush();
        let mut found = Vec::new();
        let mut rows =
            EVENTS.scan().after(before).reverse().pages(|| self.store.read(), EVENTS_PER_READ);
        while found.len() < limit
            && let Some(row) = rows.next().transpose()?
        {
            let record = Record::from_row(&row)?;
            if filter.matches_record(&record) {
                found.push(record);
            }
        }
        Ok(found)
    }
}

/// Stores and logs an event in a store that no gateway has open. Deletes the oldest events beyond `max_events`.
/// Blocking.
///
/// # Errors
/// If the commit fails.
pub fn store_event_offline(
    store: &GuardedStore,
    max_events: usize,
    event: &Event,
) -> Result<(), GatewayError> {
    store.commit::<_, GatewayError>(&NoClient, |transaction| {
        add_event_offline(transaction, max_events, event)
    })?;
    log_event(event);
    Ok(())
}

/// Adds an event to a commit of a store that no gateway has open. Deletes the oldest events beyond `max_events`.
///
/// # Errors
/// If the transaction cannot be read or written.
pub fn add_event_offline(
    transaction: &mut Transaction<'_>,
    max_events: usize,
    event: &Event,
) -> Result<(), GatewayError> {
    store_record(transaction, &Record::from_event(event.clone(), 1), max_events)
}

impl Filter {
    fn matches_record(&self, record: &Record) -> bool {
        let of_account = self.account.as_ref().is_none_or(|account| {
            let by = record.by.as_ref();
            record.account.as_ref() == Some(account)
                || by.is_some_and(|by| by == account || self.keys.contains(by))
        });
        let of_kind = self.what.as_ref().is_none_or(|what| {
            let rest = record.what.strip_prefix(what.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        of_account && of_kind
    }
}

impl Refusals {
    fn classify_refusal(&mut self, event: &Event, now: Instant) -> RefusalOutcome {
        if self.window_start.is_none_or(|begun| now.duration_since(begun) >= REFUSAL_WINDOW) {
            *self = Self { window_start: Some(now), ..Self::default() };
        }
        let Event { what, account, from, .. } = event.clone();
        let mut source = RefusalSource { what, account, from: from.map(network::network_of) };
        let kept = self.stored_by_source.get(&source).copied().unwrap_or_default();
        if kept < MAX_STORED_PER_SOURCE && self.stored_in_total < MAX_STORED_PER_WINDOW {
            self.stored_in_total += 1;
            self.stored_by_source.insert(source, kept + 1);
            return RefusalOutcome::Stored;
        }
        if kept < MAX_STORED_PER_SOURCE {
            source = RefusalSource { what, account: None, from: None };
        }
        let count = self.counted_by_source.entry(source.clone()).or_default();
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            return RefusalOutcome::CountBegins(source, count.clone());
        }
        RefusalOutcome::Counted
    }
}

fn log_event(event: &Event) {
    let Event { what, account, by, from, detail } = event;
    let (account, by) = (account.as_deref(), by.as_deref());
    let from = from.map(tracing::field::display);
    if what.ends_with(".refused") {
        tracing::warn!(what, account, by, from, detail, "A request or a sign-in was refused.");
    } else {
        tracing::info!(
            what,
            account,
            by,
            from,
            detail,
            "An account or a credential was used or changed."
        );
    }
}

/// Stores a record, and deletes old records beyond `max_events`.
fn store_record(
    transaction: &mut Transaction<'_>,
    record: &Record,
    max_events: usize,
) -> Result<(), GatewayError> {
    if max_events == 0 {
        return Ok(());
    }
    let number = 1 + read_last_number(transaction)?.unwrap_or_default();
    EVENTS.put(transaction, number, record)?;
    shares::append_to_list(transaction, record, number)?;
    shares::evict_excess(transaction, max_events as u64)
}

#[cfg(test)]
mod tests;
