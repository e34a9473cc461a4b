//! Exports by themselves: full ones on a schedule, and what changed.
//!
//! One export is made at a time. What is due is durable: the schedules' document and the sets of what
//! changed. So a failure, a full spool or a stop only puts it off, and what comes meanwhile joins it.
use super::alarm::Alarm;
use super::entry::Kind;
use super::{By, Inner, Push, make, retention, room, schedule};
use chrono::{DateTime, Utc};
use penstock_base::fault::{self, Fault};
use penstock_model::changes::{self, Cursor, Mark};
use penstock_model::resource::{Compiled, Schedule};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;
use tokio::task;

/// How often the clock is looked at while there are schedules, and the room while something waits for it.
const LOOK: Duration = Duration::from_secs(5);
/// How far the clock may go from the time that passes before it counts as set.
const SET: Duration = Duration::from_secs(2);
/// A steady stream of changes is exported after so many times `debounce` at the latest.
const MOST_DEBOUNCES: u32 = 10;
/// The first wait after an export that failed; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest of them.
const LONGEST_WAIT: Duration = Duration::from_mins(5);
/// The longest after one that the disk had no room for: each try writes as much as there was.
const LONGEST_WAIT_FOR_ROOM: Duration = Duration::from_hours(1);

/// What is planned, by the Business Object's id.
#[derive(Default)]
pub(super) struct Plan {
    /// As of which count of the catalogue's; `None` before the first.
    version: Option<u64>,
    by_id: BTreeMap<String, Planned>,
}

/// One Business Object that is exported by itself.
struct Planned {
    business_object: Arc<Compiled>,
    schedule: Option<Schedule>,
    /// When the next run is due.
    next: Option<DateTime<Utc>>,
    debounce: Duration,
    retention: Option<Duration>,
    /// When objects whose time is over are looked for next.
    sweep_at: Instant,
    /// Whether some target may have to have a full export.
    is_new: bool,
    /// Failures since the last success, and when to try again.
    failures: u32,
    not_before: Option<Instant>,
    /// What was free on the disk before the last try, if that was not enough.
    had: Option<u64>,
}

/// What to wait for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Next {
    clock: Option<DateTime<Utc>>,
    passed: Option<Instant>,
    has_schedules: bool,
    waits_for_room: bool,
}

#[cfg(test)]
impl Next {
    /// Whether there is nothing to wait for.
    pub(super) fn is_now(&self) -> bool {
        self.passed.is_some_and(|passed| passed <= Instant::now())
    }
}

/// Makes the exports that are due until `stop` becomes true.
pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let watch = inner.options.catalogue.watch().clone();
    let mut alarm = Alarm::default();
    let mut clock = Clock::now();
    let mut plan = Plan::default();
    while !*stop.borrow_and_update() {
        let moved = {
            let inner = Arc::clone(&inner);
            task::spawn_blocking(move || {
                let next = turn(&inner, &mut plan);
                (plan, next)
            })
        };
        let turned = tokio::select! {
            turned = moved => turned,
            _ = stop.wait_for(|stop| *stop) => {
                // It ends at its next page; what was made of it is removed.
                inner.stopping.store(true, Ordering::Relaxed);
                break;
            }
        };
        let next;
        (plan, next) = match turned {
            Ok(turned) => turned,
            Err(error) => {
                tracing::error!(%error, "A task of the exporter failed.");
                (Plan::default(), Next { passed: Some(Instant::now() + LOOK), ..Next::default() })
            }
        };
        if let Err(error) = alarm.set(next.clock).await {
            tracing::warn!(%error, "The scheduler failed; schedules are looked at every few seconds.");
        }
        let look = (next.has_schedules || next.waits_for_room).then(|| Instant::now() + LOOK);
        let until = next.passed.into_iter().chain(look).min();
        tokio::select! {
            () = watch.marked() => {}
            () = alarm.rang() => {}
            () = inner.queue.room.notified(), if next.waits_for_room => {}
            () = sleep_until(until) => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
        if let Some(seconds) = clock.was_set() {
            tracing::info!(seconds, "The clock was set; schedules are looked at anew.");
            plan.version = None;
            // The time is no longer what it was set for.
            if let Err(error) = alarm.clear().await {
                tracing::warn!(%error, "The scheduler failed; schedules are looked at every few seconds.");
            }
        }
    }
    alarm.end().await;
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until.into()).await,
        None => std::future::pending().await,
    }
}

/// The clock beside the time that passes.
struct Clock {
    wall: SystemTime,
    passed: Instant,
}

impl Clock {
    fn now() -> Self {
        Self { wall: SystemTime::now(), passed: Instant::now() }
    }

    /// By how many seconds the clock was set since it was last asked, if it was.
    fn was_set(&mut self) -> Option<i64> {
        let now = Self::now();
        let expected = self.wall + (now.passed - self.passed);
        *self = now;
        let (ahead, by) = match self.wall.duration_since(expected) {
            Ok(by) => (1, by),
            Err(error) => (-1, error.duration()),
        };
        (by > SET).then(|| ahead * i64::try_from(by.as_secs()).unwrap_or(i64::MAX))
    }
}

/// Makes what is due, and tells what to wait for. Blocks.
pub(super) fn turn(inner: &Inner, plan: &mut Plan) -> Next {
    let version = inner.options.catalogue.watch().version();
    if plan.version != Some(version) {
        match plan.renew(inner) {
            Ok(()) => plan.version = Some(version),
            Err(fault) => {
                tracing::warn!(%fault, "What is to be exported by itself could not be planned yet.");
                return Next { passed: Some(Instant::now() + LOOK), ..Next::default() };
            }
        }
    }
    let is_asked = inner.waiting.take_asked();
    for (id, planned) in &mut plan.by_id {
        if is_asked && inner.waiting.has(id) {
            planned.not_before = None;
        }
        if !inner.stopping.load(Ordering::Relaxed) {
            planned.make_due(inner);
            planned.sweep(inner);
        }
    }
    plan.next(inner)
}

impl Plan {
    /// Lets a run of this Business Object's schedule have been due since then.
    #[cfg(test)]
    pub(super) fn run_now(&mut self, id: &str, since: DateTime<Utc>) {
        if let Some(planned) = self.by_id.get_mut(id) {
            planned.next = planned.schedule.as_ref().map(|_| since);
        }
    }

    /// Lets the waits be over of what failed.
    #[cfg(test)]
    pub(super) fn try_now(&mut self) {
        let over =
            |planned: &mut Planned| planned.not_before = planned.not_before.map(|_| Instant::now());
        self.by_id.values_mut().for_each(over);
    }

    /// Lets the disk have more room now than when room lacked.
    #[cfg(test)]
    pub(super) fn has_more_room(&mut self) {
        self.by_id.values_mut().for_each(|planned| planned.had = planned.had.map(|_| 0));
    }

    /// Tries that failed, of all, since the last that did not.
    #[cfg(test)]
    pub(super) fn failures(&self) -> u32 {
        self.by_id.values().map(|planned| planned.failures).sum()
    }

    /// Reads the definitions again.
    fn renew(&mut self, inner: &Inner) -> Result<(), Fault> {
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
            let automatic = match definition.automatic() {
                Ok(automatic) => automatic,
                Err(wrong) => {
                    let cause = wrong.first().map_or("", |wrong| wrong.cause.as_str());
                    tracing::error!(
                        business_object = definition.name,
                        cause,
                        "What is to be exported by itself is not valid; replace the Business Object."
                    );
                    continue;
                }
            };
            let before = self.by_id.remove(&id);
            let mut planned = Planned {
                business_object: Arc::clone(business_object),
                schedule: automatic.schedule,
                next: None,
                debounce: automatic.debounce,
                retention: automatic.retention,
                sweep_at: Instant::now(),
                is_new: definition.export_on_change,
                failures: before.as_ref().map_or(0, |before| before.failures),
                not_before: None,
                had: None,
            };
            planned.look_at_clock(inner)?;
            if planned.has_changes(inner)? {
                inner.options.catalogue.watch().mark_unless_marked(&id);
            }
            by_id.insert(id, planned);
        }
        self.by_id = by_id;
        let has_schedule = |id: &str| self.by_id.get(id).is_some_and(|p| p.schedule.is_some());
        schedule::retain(store, has_schedule)?;
        inner.waiting.retain(|id| self.by_id.contains_key(id));
        changes::sweep_all(store)?;
        Ok(())
    }

    fn next(&self, inner: &Inner) -> Next {
        let watch = inner.options.catalogue.watch();
        let mut next = Next { waits_for_room: inner.waiting.any(), ..Next::default() };
        for (id, planned) in &self.by_id {
            next.has_schedules |= planned.schedule.is_some();
            let held_up = planned.not_before.is_some() || inner.waiting.has(id);
            let due = match planned.not_before {
                Some(not_before) => Some(not_before),
                None if held_up => None,
                None => planned.due(watch.marked_at(id).as_ref()),
            };
            let sweep = planned.retention.map(|_| planned.sweep_at);
            next.passed = next.passed.into_iter().chain(due).chain(sweep).min();
            if !held_up {
                next.clock = next.clock.into_iter().chain(planned.next).min();
            }
        }
        next
    }
}

impl Planned {
    /// When what changed is to be exported.
    fn due(&self, mark: Option<&Mark>) -> Option<Instant> {
        if !self.business_object.object.definition.export_on_change {
            return None;
        }
        let mark = mark?;
        let latest = mark.first + self.debounce * MOST_DEBOUNCES;
        Some((mark.last + self.debounce).min(latest))
    }

    /// Finds when the next run of the schedule is due.
    fn look_at_clock(&mut self, inner: &Inner) -> Result<(), Fault> {
        let object = &self.business_object.object;
        let Some(schedule) = &self.schedule else { return Ok(()) };
        let store = &inner.queue.store;
        self.next = schedule::next(store, &object.id, &object.definition, schedule, Utc::now())?;
        Ok(())
    }

    /// Makes the export that is due, if one is.
    fn make_due(&mut self, inner: &Inner) {
        let business_object = Arc::clone(&self.business_object);
        let id = business_object.object.id.as_str();
        let name = business_object.object.definition.name.as_str();
        if self.is_put_off(inner) {
            return;
        }
        self.not_before = None;
        let mark = inner.options.catalogue.watch().marked_at(id);
        let is_run = self.next.is_some_and(|next| next <= Utc::now());
        let due = self.due(mark.as_ref());
        let is_due = due.is_some_and(|due| due <= Instant::now());
        if !is_run && !is_due && !self.is_new {
            // Another definition may have taken away what waited for room.
            if due.is_none() {
                inner.waiting.remove(id);
            }
            return;
        }
        match self.make(inner, is_run, is_due) {
            Ok(()) => {
                (self.failures, self.had) = (0, None);
                if inner.waiting.remove(id) {
                    tracing::info!(business_object = name, "There is room for exports again.");
                }
            }
            Err(Delay::NoRoom { kind, cause, had }) => {
                self.had = had;
                if had.is_some() {
                    self.put_off(LOOK, LONGEST_WAIT_FOR_ROOM);
                }
                if inner.waiting.add(&business_object, kind, &cause) {
                    for entry in inner.waiting.of(id) {
                        inner.queue.tell(&entry);
                    }
                    tracing::warn!(
                        business_object = name,
                        cause,
                        "An export waits for room; what changes meanwhile joins it."
                    );
                }
            }
            Err(Delay::Fault(fault)) => {
                self.had = None;
                self.put_off(FIRST_WAIT, LONGEST_WAIT);
                if self.failures.is_power_of_two() && !inner.stopping.load(Ordering::Relaxed) {
                    tracing::warn!(
                        business_object = name,
                        failures = self.failures,
                        cause = %fault,
                        "An export could not be made by itself and is tried again."
                    );
                }
            }
        }
    }

    /// Lets the next try wait, twice as long with each that failed.
    fn put_off(&mut self, first: Duration, longest: Duration) {
        let doublings = self.failures.min(16);
        self.failures = self.failures.saturating_add(1);
        let wait = first.saturating_mul(1 << doublings).min(longest);
        self.not_before = Some(Instant::now() + wait);
    }

    /// Whether it waits for the next try still; one that lacked room ends with clearly more of it.
    fn is_put_off(&self, inner: &Inner) -> bool {
        let has_more_room = |had: u64| {
            inner.options.disk.free().is_some_and(|free| free > had.saturating_add(had / 8))
        };
        self.not_before.is_some_and(|not_before| Instant::now() < not_before)
            && !self.had.is_some_and(has_more_room)
    }

    /// Removes the objects whose time is over, now and then.
    fn sweep(&mut self, inner: &Inner) {
        let Some(time) = self.retention else { return };
        if Instant::now() < self.sweep_at {
            return;
        }
        self.sweep_at = Instant::now() + retention::interval(time);
        if let Err(fault) = retention::sweep(inner, &self.business_object, time) {
            tracing::warn!(
                business_object = self.business_object.object.definition.name,
                cause = %fault,
                "Objects whose time is over could not be removed yet."
            );
        }
    }

    fn make(&mut self, inner: &Inner, is_run: bool, is_due: bool) -> Result<(), Delay> {
        let business_object = Arc::clone(&self.business_object);
        let object = &business_object.object;
        let id = object.id.as_str();
        let store = &inner.queue.store;
        let watch = inner.options.catalogue.watch();
        let making = inner.making(id);
        let _one_at_a_time = making.lock().unwrap_or_else(PoisonError::into_inner);
        let lacking = match self.cursor(inner)? {
            Some(cursor) => make::without_full(inner, &business_object, &cursor)?,
            None => Vec::new(),
        };
        let full = if is_run { make::all_targets(&business_object) } else { lacking };
        if full.is_empty() && !is_due {
            self.is_new = false;
            return Ok(());
        }
        make::check(inner, &business_object)?;
        let kind = if full.is_empty() { Kind::Incremental } else { Kind::Full };
        if (!full.is_empty() || self.has_changes(inner)?)
            && let Some(cause) = room::by_itself(inner)
        {
            return Err(Delay::NoRoom { kind, cause, had: None });
        }
        let free = inner.options.disk.free().unwrap_or(u64::MAX);
        if is_due {
            // Every commit that has marked so far is seen by the commits that follow here.
            watch.unmark(id);
        }
        let made = if full.is_empty() {
            make::incremental(inner, &business_object).map(|exports| Push { exports, reason: None })
        } else {
            let now = Utc::now();
            make::full(inner, &business_object, &full, By::gateway(), &mut |t| {
                if is_run { schedule::put(t, id, &object.definition, now) } else { Ok(()) }
            })
        };
        if is_due && made.is_err() {
            watch.mark_unless_marked(id);
        }
        let made = made.map_err(|fault| match fault.kind {
            fault::Kind::NoRoom => Delay::NoRoom { kind, cause: fault.detail, had: Some(free) },
            _ => Delay::Fault(fault),
        });
        if let Some(reason) = made?.reason
            && is_run
        {
            tracing::info!(
                business_object = object.definition.name,
                reason,
                "A run of the schedule had nothing to export."
            );
        }
        self.is_new = false;
        self.look_at_clock(inner)?;
        changes::sweep(store, id)?;
        if self.has_changes(inner)? {
            watch.mark_unless_marked(id);
        }
        Ok(())
    }

    /// How far its exports have come, if it exports on change.
    fn cursor(&self, inner: &Inner) -> Result<Option<Cursor>, Fault> {
        let object = &self.business_object.object;
        if !object.definition.export_on_change {
            return Ok(None);
        }
        Ok(changes::cursor(&inner.queue.store.read(), &object.id)?)
    }

    fn has_changes(&self, inner: &Inner) -> Result<bool, Fault> {
        let Some(cursor) = self.cursor(inner)? else { return Ok(false) };
        let id = &self.business_object.object.id;
        Ok(changes::has_changes(&inner.queue.store.read(), id, &cursor)?)
    }
}

/// Why an export was not made.
enum Delay {
    NoRoom {
        kind: Kind,
        cause: String,
        /// What was free on the disk before it was tried and found too little; `None` when it was not tried.
        had: Option<u64>,
    },
    Fault(Fault),
}

impl From<Fault> for Delay {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<penstock_store::Error> for Delay {
    fn from(error: penstock_store::Error) -> Self {
        Fault::from(error).into()
    }
}
