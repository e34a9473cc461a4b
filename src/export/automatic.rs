//! Automatic exports: full exports on a schedule, and incremental exports of changes.
//!
//! One export is created at a time. Due exports are derived from durable data: the document of the schedules
//! and the sets of changes. So a failure, a full spool or a shutdown only delays an export. Changes that arrive
//! in the meantime become part of it.
use super::alarm::Alarm;
use super::{ExportRequester, ExporterParts, PushResult, capacity, make, retention, schedule};
use chrono::{DateTime, Utc};
use penstock_base::backoff::exponential_delay;
use penstock_base::blocking::spawn_blocking;
use penstock_base::disk::Disk;
use penstock_base::error::{self, GatewayError};
use penstock_base::shared::Shared;
use penstock_model::change_feed::{self, ChangeMark, ExportCursor};
use penstock_model::resource::{Compiled, Schedule};
use penstock_resources::export::ExportKind;
use penstock_store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// The interval at which schedules and waiting exports are checked again.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The maximum drift between the clock and the elapsed time before the clock counts as set.
const CLOCK_SET_THRESHOLD: Duration = Duration::from_secs(2);
/// The maximum delay of an export during a steady stream of changes, as a multiple of `debounce`.
const MAX_DEBOUNCES: u32 = 10;
/// The delay after the first failed export. It doubles with each failure.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The maximum delay after a failed export.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(5);
/// The maximum delay after an export ran out of disk space. Each attempt writes up to the free space again.
const MAX_RETRY_DELAY_NO_SPACE: Duration = Duration::from_hours(1);

/// The planned automatic exports by Business Object id.
#[derive(Default)]
pub(super) struct ExportPlan {
    /// The catalogue version that the plan was built from, or `None` if no plan was built yet.
    version: Option<u64>,
    by_id: BTreeMap<String, PlannedExports>,
}

/// The automatic exports of one Business Object.
struct PlannedExports {
    business_object: Arc<Compiled>,
    schedule: Option<Schedule>,
    /// When the next scheduled run is due.
    next_run: Option<DateTime<Utc>>,
    debounce: Duration,
    retention: Option<Duration>,
    /// When to check next for objects past their retention.
    retention_check_at: Instant,
    /// Whether a target may still need its first full export.
    is_new: bool,
    /// Failures since the last success.
    failures: u32,
    /// When to try again after a failure.
    not_before: Option<Instant>,
    /// The free disk space in bytes before the last attempt, if the attempt ran out of space.
    free_bytes_before: Option<u64>,
}

/// The events that start the next round.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WakeConditions {
    next_run_at: Option<DateTime<Utc>>,
    wake_at: Option<Instant>,
    has_schedules: bool,
    waits_for_space: bool,
}

impl WakeConditions {
    /// Starts the next round after a failure.
    fn after_check_interval() -> Self {
        Self { wake_at: Some(Instant::now() + CHECK_INTERVAL), ..Self::default() }
    }

    /// Returns whether the next round is due now.
    #[cfg(test)]
    pub(super) fn is_due_now(&self) -> bool {
        self.wake_at.is_some_and(|passed| passed <= Instant::now())
    }
}

/// Creates due exports until `stop` becomes true.
pub(super) async fn run_automatic_exports(
    inner: Shared<ExporterParts>,
    mut stop: watch::Receiver<bool>,
) {
    let watch = inner.options.catalogue.watch().clone();
    let mut alarm = Alarm::default();
    let mut clock = ClockWatch::now();
    let mut plan = ExportPlan::default();
    while !*stop.borrow_and_update() {
        let round = {
            let inner = inner.clone();
            spawn_blocking(move || {
                let next = run_due_exports(&inner, &mut plan);
                (plan, next)
            })
        };
        let finished = tokio::select! {
            finished = round => finished,
            _ = stop.wait_for(|stop| *stop) => {
                // The export in progress stops at its next page and removes its files.
                inner.stopping.store(true, Ordering::Relaxed);
                break;
            }
        };
        let next;
        (plan, next) = match finished {
            Ok(finished) => finished,
            Err(error) => {
                tracing::error!(%error, "A task of the exporter failed.");
                (ExportPlan::default(), WakeConditions::after_check_interval())
            }
        };
        if let Err(error) = alarm.set(next.next_run_at).await {
            tracing::warn!(%error, "The scheduler failed; the gateway checks schedules every few seconds instead.");
        }
        let check_at =
            (next.has_schedules || next.waits_for_space).then(|| Instant::now() + CHECK_INTERVAL);
        let until = next.wake_at.into_iter().chain(check_at).min();
        tokio::select! {
            () = watch.wait_for_mark() => {}
            () = alarm.wait_until_fired() => {}
            () = inner.queue.capacity_freed.notified(), if next.waits_for_space => {}
            () = sleep_until(until) => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
        if let Some(seconds) = clock.seconds_set_since_last_call() {
            tracing::info!(seconds, "The clock was set; the gateway computes all schedules again.");
            plan.version = None;
            // The remaining time was computed with the old clock.
            if let Err(error) = alarm.clear().await {
                tracing::warn!(%error, "The scheduler failed; the gateway checks schedules every few seconds instead.");
            }
        }
    }
    alarm.shut_down().await;
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until.into()).await,
        None => std::future::pending().await,
    }
}

/// Compares the wall clock with the elapsed time.
struct ClockWatch {
    wall: SystemTime,
    monotonic: Instant,
}

impl ClockWatch {
    fn now() -> Self {
        Self { wall: SystemTime::now(), monotonic: Instant::now() }
    }

    /// Returns by how many seconds the clock was set since the last call, or `None` if it was not set.
    fn seconds_set_since_last_call(&mut self) -> Option<i64> {
        let now = Self::now();
        let expected = self.wall + (now.monotonic - self.monotonic);
        *self = now;
        let (ahead, by) = match self.wall.duration_since(expected) {
            Ok(by) => (1, by),
            Err(error) => (-1, error.duration()),
        };
        (by > CLOCK_SET_THRESHOLD).then(|| ahead * i64::try_from(by.as_secs()).unwrap_or(i64::MAX))
    }
}

/// Creates the due exports and returns the events to wait for. Blocking.
pub(super) fn run_due_exports(inner: &ExporterParts, plan: &mut ExportPlan) -> WakeConditions {
    let version = inner.options.catalogue.watch().version();
    if plan.version != Some(version) {
        match plan.rebuild_plan(inner) {
            Ok(()) => plan.version = Some(version),
            Err(fault) => {
                tracing::warn!(%fault, "Planning the automatic exports failed; the gateway retries in a few seconds.");
                return WakeConditions::after_check_interval();
            }
        }
    }
    let is_retry_requested = inner.waiting.take_retry_request();
    for (id, planned) in &mut plan.by_id {
        if is_retry_requested && inner.waiting.has_export_of(id) {
            planned.not_before = None;
        }
        if !inner.stopping.load(Ordering::Relaxed) {
            planned.create_due_export(inner);
            planned.remove_expired_if_due(inner);
        }
    }
    plan.next_wake(inner)
}

impl ExportPlan {
    /// Sets the time since which a scheduled run of this Business Object is due.
    #[cfg(test)]
    pub(super) fn run_now(&mut self, id: &str, since: DateTime<Utc>) {
        if let Some(planned) = self.by_id.get_mut(id) {
            planned.next_run = planned.schedule.as_ref().map(|_| since);
        }
    }

    /// Ends the delays after failures.
    #[cfg(test)]
    pub(super) fn try_now(&mut self) {
        let end_delay = |planned: &mut PlannedExports| {
            planned.not_before = planned.not_before.map(|_| Instant::now());
        };
        self.by_id.values_mut().for_each(end_delay);
    }

    /// Simulates that disk space was freed since the last attempt.
    #[cfg(test)]
    pub(super) fn simulate_freed_space(&mut self) {
        self.by_id
            .values_mut()
            .for_each(|planned| planned.free_bytes_before = planned.free_bytes_before.map(|_| 0));
    }

    /// Returns the number of failed attempts since the last success, over all Business Objects.
    #[cfg(test)]
    pub(super) fn count_failures(&self) -> u32 {
        self.by_id.values().map(|planned| planned.failures).sum()
    }

    /// Rebuilds the plan from the current definitions.
    fn rebuild_plan(&mut self, inner: &ExporterParts) -> Result<(), GatewayError> {
        let store = &inner.queue.store;
        let mut by_id = BTreeMap::new();
        let listed = inner.options.catalogue.list();
        for business_object in &listed {
            let definition = &business_object.object.definition;
            let id = business_object.object.id.clone();
            let may_run = definition.enabled && !definition.push_targets.is_empty();
            let asks = definition.schedule.is_some()
                || definition.export_on_change
                || definition.retention.is_some();
            if !may_run || !asks {
                continue;
            }
            let automatic = match definition.parse_automatic() {
                Ok(automatic) => automatic,
                Err(errors) => {
                    let cause = errors.first().map_or("", |error| error.cause.as_str());
                    tracing::error!(
                        business_object = definition.name,
                        cause,
                        "The automatic exports of a Business Object are not valid; correct its definition."
                    );
                    continue;
                }
            };
            let before = self.by_id.remove(&id);
            let mut planned = PlannedExports {
                business_object: Arc::clone(business_object),
                schedule: automatic.schedule,
                next_run: None,
                debounce: automatic.debounce,
                retention: automatic.retention,
                retention_check_at: Instant::now(),
                is_new: definition.export_on_change,
                failures: before.as_ref().map_or(0, |before| before.failures),
                not_before: None,
                free_bytes_before: None,
            };
            planned.update_next_run(store)?;
            if planned.has_changes(store)? {
                inner.options.catalogue.watch().mark_unless_marked(&id);
            }
            by_id.insert(id, planned);
        }
        self.by_id = by_id;
        let has_schedule = |id: &str| self.by_id.get(id).is_some_and(|p| p.schedule.is_some());
        schedule::retain_schedules(store, has_schedule)?;
        inner.waiting.retain(|id| self.by_id.contains_key(id));
        // Only automatic runs record errors, and only they can clear them.
        inner.empty_runs.retain(|id, run| {
            self.by_id.contains_key(id)
                || (!run.is_error && listed.iter().any(|one| one.object.id == id))
        });
        change_feed::clean_up_all(store, inner.options.catalogue.watch())?;
        Ok(())
    }

    fn next_wake(&self, inner: &ExporterParts) -> WakeConditions {
        let watch = inner.options.catalogue.watch();
        let mut next = WakeConditions {
            waits_for_space: inner.waiting.has_any(),
            ..WakeConditions::default()
        };
        for (id, planned) in &self.by_id {
            next.has_schedules |= planned.schedule.is_some();
            let held_up = planned.not_before.is_some() || inner.waiting.has_export_of(id);
            let due = match planned.not_before {
                Some(not_before) => Some(not_before),
                None if held_up => None,
                None => planned.changes_due_at(watch.find_mark(id).as_ref()),
            };
            let retention_check = planned.retention.map(|_| planned.retention_check_at);
            next.wake_at = next.wake_at.into_iter().chain(due).chain(retention_check).min();
            if !held_up {
                next.next_run_at = next.next_run_at.into_iter().chain(planned.next_run).min();
            }
        }
        next
    }
}

impl PlannedExports {
    /// Returns when changes are due for export.
    fn changes_due_at(&self, mark: Option<&ChangeMark>) -> Option<Instant> {
        if !self.business_object.object.definition.export_on_change {
            return None;
        }
        let mark = mark?;
        let latest = mark.first + self.debounce * MAX_DEBOUNCES;
        Some((mark.last + self.debounce).min(latest))
    }

    /// Updates the time of the next scheduled run.
    fn update_next_run(&mut self, store: &Store) -> Result<(), GatewayError> {
        let object = &self.business_object.object;
        let Some(schedule) = &self.schedule else { return Ok(()) };
        self.next_run =
            schedule::next_run(store, &object.id, &object.definition, schedule, Utc::now())?;
        Ok(())
    }

    /// Creates the due export, if any.
    fn create_due_export(&mut self, inner: &ExporterParts) {
        let business_object = Arc::clone(&self.business_object);
        let id = business_object.object.id.as_str();
        let name = business_object.object.definition.name.as_str();
        if self.is_delayed(&inner.options.disk) {
            return;
        }
        self.not_before = None;
        let mark = inner.options.catalogue.watch().find_mark(id);
        let is_scheduled = self.next_run.is_some_and(|next| next <= Utc::now());
        let due = self.changes_due_at(mark.as_ref());
        let has_due_changes = due.is_some_and(|due| due <= Instant::now());
        if !is_scheduled && !has_due_changes && !self.is_new {
            // A new definition may have removed the reason for the waiting export.
            if due.is_none() {
                inner.waiting.remove(id);
                inner.empty_runs.clear_error(id);
            }
            return;
        }
        match self.create_export(inner, ExportTrigger { is_scheduled, has_due_changes }) {
            Ok(()) => {
                (self.failures, self.free_bytes_before) = (0, None);
                inner.empty_runs.clear_error(id);
                if inner.waiting.remove(id) {
                    tracing::info!(
                        business_object = name,
                        "Spool capacity is available again; the automatic exports continue."
                    );
                }
            }
            Err(DelayReason::NoSpace { kind, cause, had }) => {
                self.free_bytes_before = had;
                if had.is_some() {
                    self.delay_next_attempt(CHECK_INTERVAL, MAX_RETRY_DELAY_NO_SPACE);
                }
                if inner.waiting.add(&business_object, kind, &cause) {
                    for entry in inner.waiting.exports_of(id) {
                        inner.queue.publish_unstored_entry(&entry);
                    }
                    tracing::warn!(
                        business_object = name,
                        cause,
                        "An automatic export waits for spool or disk space; it will include further changes."
                    );
                }
            }
            Err(DelayReason::Error(error)) => {
                self.free_bytes_before = None;
                inner.record_empty_run(id, &error.detail, true);
                self.delay_next_attempt(FIRST_RETRY_DELAY, MAX_RETRY_DELAY);
                if self.failures.is_power_of_two() && !inner.stopping.load(Ordering::Relaxed) {
                    tracing::warn!(
                        business_object = name,
                        failures = self.failures,
                        cause = %error,
                        "An automatic export failed; the gateway retries it."
                    );
                }
            }
        }
    }

    /// Delays the next attempt. The delay doubles with each failure.
    fn delay_next_attempt(&mut self, first: Duration, longest: Duration) {
        self.failures = self.failures.saturating_add(1);
        let delay = exponential_delay(first, self.failures.into(), longest);
        self.not_before = Some(Instant::now() + delay);
    }

    /// Returns whether the next attempt is still delayed. After a lack of disk space, the delay ends early when
    /// more space is free: an eighth more than before the last attempt.
    fn is_delayed(&self, disk: &Disk) -> bool {
        let has_more_space =
            |had: u64| disk.free_bytes().is_some_and(|free| free > had.saturating_add(had / 8));
        self.not_before.is_some_and(|not_before| Instant::now() < not_before)
            && !self.free_bytes_before.is_some_and(has_more_space)
    }

    /// Removes objects past their retention if the check is due.
    fn remove_expired_if_due(&mut self, inner: &ExporterParts) {
        let Some(time) = self.retention else { return };
        if Instant::now() < self.retention_check_at {
            return;
        }
        self.retention_check_at = Instant::now() + retention::check_interval(time);
        if let Err(error) = retention::remove_expired(inner, &self.business_object, time) {
            tracing::warn!(
                business_object = self.business_object.object.definition.name,
                cause = %error,
                "Objects past their retention could not be removed; the gateway retries."
            );
        }
    }

    fn create_export(
        &mut self,
        inner: &ExporterParts,
        ExportTrigger { is_scheduled, has_due_changes }: ExportTrigger,
    ) -> Result<(), DelayReason> {
        let business_object = Arc::clone(&self.business_object);
        let object = &business_object.object;
        let id = object.id.as_str();
        let store = &inner.queue.store;
        let watch = inner.options.catalogue.watch();
        let export_lock = inner.export_lock(id);
        let _one_at_a_time = export_lock.lock();
        let lacking = match self.read_change_cursor(store)? {
            Some(cursor) => make::targets_without_full(inner, &business_object, &cursor)?,
            None => Vec::new(),
        };
        let full = if is_scheduled { make::all_targets(&business_object) } else { lacking };
        if full.is_empty() && !has_due_changes {
            self.is_new = false;
            return Ok(());
        }
        make::check_exportable(&inner.options, &business_object)?;
        let kind = if full.is_empty() { ExportKind::Incremental } else { ExportKind::Full };
        if (!full.is_empty() || self.has_changes(store)?)
            && let Some(cause) = capacity::automatic_block_reason(
                &inner.queue,
                inner.options.spool,
                &inner.options.disk,
            )
        {
            return Err(DelayReason::NoSpace { kind, cause, had: None });
        }
        let free = inner.options.disk.free_bytes().unwrap_or(u64::MAX);
        if has_due_changes {
            // The reads below see every commit that has set the mark so far.
            watch.unmark(id);
        }
        let created = if full.is_empty() {
            make::create_incremental_export(inner, &business_object)
                .map(|exports| PushResult { exports, reason: None })
        } else {
            let now = Utc::now();
            make::create_full_export(
                inner,
                &business_object,
                &full,
                ExportRequester::gateway(),
                &mut |t| {
                    if is_scheduled {
                        schedule::record_runs(t, id, &object.definition, now)
                    } else {
                        Ok(())
                    }
                },
            )
        };
        if has_due_changes && created.is_err() {
            watch.mark_unless_marked(id);
        }
        let created = created.map_err(|error| match error.class {
            error::ErrorClass::InsufficientStorage => {
                DelayReason::NoSpace { kind, cause: error.detail, had: Some(free) }
            }
            _ => DelayReason::Error(error),
        });
        if let Some(reason) = created?.reason
            && is_scheduled
        {
            tracing::info!(
                business_object = object.definition.name,
                reason,
                "A run of the schedule had nothing to export."
            );
        }
        self.is_new = false;
        self.update_next_run(store)?;
        change_feed::clean_up(store, id)?;
        if self.has_changes(store)? || self.has_further_target_without_full(inner, &full)? {
            watch.mark_unless_marked(id);
        }
        Ok(())
    }

    /// Returns whether another target than these needs a full export. A delivery may have shown so
    /// meanwhile.
    fn has_further_target_without_full(
        &self,
        inner: &ExporterParts,
        full: &[String],
    ) -> Result<bool, GatewayError> {
        let Some(cursor) = self.read_change_cursor(&inner.queue.store)? else { return Ok(false) };
        let lacking = make::targets_without_full(inner, &self.business_object, &cursor)?;
        Ok(lacking.iter().any(|target| !full.contains(target)))
    }

    /// Returns the change cursor, or `None` if the Business Object does not export on change or has no cursor.
    fn read_change_cursor(&self, store: &Store) -> Result<Option<ExportCursor>, GatewayError> {
        let object = &self.business_object.object;
        if !object.definition.export_on_change {
            return Ok(None);
        }
        Ok(change_feed::read_cursor(&store.read(), &object.id)?)
    }

    fn has_changes(&self, store: &Store) -> Result<bool, GatewayError> {
        let Some(cursor) = self.read_change_cursor(store)? else { return Ok(false) };
        let id = &self.business_object.object.id;
        Ok(change_feed::has_changes(&store.read(), id, &cursor)?)
    }
}

/// Why an export may be created. Neither is set if a target may only need its first full export.
#[derive(Debug, Clone, Copy)]
struct ExportTrigger {
    /// Whether a run of the schedule is due.
    is_scheduled: bool,
    /// Whether the delay of changes is over.
    has_due_changes: bool,
}

/// The reason why an export was delayed.
enum DelayReason {
    NoSpace {
        kind: ExportKind,
        cause: String,
        /// The free disk space in bytes before the failed attempt, `None` if it was not attempted.
        had: Option<u64>,
    },
    Error(GatewayError),
}

impl From<GatewayError> for DelayReason {
    fn from(error: GatewayError) -> Self {
        Self::Error(error)
    }
}

impl From<penstock_store::Error> for DelayReason {
    fn from(error: penstock_store::Error) -> Self {
        GatewayError::from(error).into()
    }
}
