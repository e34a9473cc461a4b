//! The workers until the gateway stops, and the one that ships: it decides what is due, and retries after failures.
use super::base::BaseWorker;
use super::parts::Parts;
use super::place::Objects;
use super::report::BackupState;
use super::ship::{Phase, Shipper};
use super::state::LocalState;
use crate::backoff::{FailedAttempts, FailureLogLimit, RetryRule};
use crate::cause::DeliveryFailure;
use crate::delivery_loop::{DeliveryQueue, Next, deliver_queue, finish_within};
use penstock_base::time;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The interval of merges.
const MERGE_INTERVAL: Duration = Duration::from_hours(1);
/// The interval at which the era is listed.
const CHECK_INTERVAL: Duration = Duration::from_hours(24);

/// Sends commits and bases until `stop` becomes true. Then sends the last commits, for at most `grace`.
pub(super) async fn run_workers<O: Objects>(
    parts: &Arc<Parts<O>>,
    state: LocalState,
    mut stop: watch::Receiver<bool>,
    grace: Duration,
) {
    let ship = deliver_queue(ShipWorker::new(Arc::clone(parts), state), stop.clone());
    let base = deliver_queue(BaseWorker::new(Arc::clone(parts)), stop.clone());
    finish_within(grace, async { tokio::join!(ship, base) }, &mut stop).await;
}

/// Returns the number of small segments in an hour, at least 3: a merge leaves the newest alone, so it needs two others.
fn hourly_segments(interval: Duration) -> u64 {
    (MERGE_INTERVAL.as_secs() / interval.as_secs().max(1)).max(3)
}

/// What the worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Reads the head, and finds or begins the era.
    Start,
    /// Tests the bucket.
    Probe,
    /// Lists the backup.
    Check,
    /// Deletes what the last check found.
    Delete,
    /// Merges small segments.
    Merge,
    /// Sends the commits since the last head.
    Ship,
}

/// The worker that ships.
pub(super) struct ShipWorker<O> {
    shipper: Shipper<O>,
    is_probed: bool,
    /// Whether the backup was listed since the start.
    is_listed: bool,
    next_check: Instant,
    next_merge: Instant,
    next_ship: Instant,
    /// When the time of the newest commit is recorded next, also while the link is down.
    next_point: Instant,
    /// When the next attempt may begin after a failure.
    not_before: Instant,
    attempts: Option<FailedAttempts>,
    log_limit: FailureLogLimit,
    /// Failures of checks, deletions and merges, which delay nothing else.
    cleanup_attempts: Option<FailedAttempts>,
    cleanup_log_limit: FailureLogLimit,
}

impl<O: Objects> ShipWorker<O> {
    pub(super) fn new(parts: Arc<Parts<O>>, state: LocalState) -> Self {
        let now = Instant::now();
        Self {
            shipper: Shipper::new(parts, state),
            is_probed: false,
            is_listed: false,
            next_check: now,
            next_merge: now + MERGE_INTERVAL,
            next_ship: now,
            next_point: now,
            not_before: now,
            attempts: None,
            log_limit: FailureLogLimit::default(),
            cleanup_attempts: None,
            cleanup_log_limit: FailureLogLimit::default(),
        }
    }

    /// Returns whether the times of commits are recorded: also while no head can be read, but not before the first attempt
    /// to read it, which may find that this gateway was replaced. Without an era the journal keeps no frames for one, and the
    /// first era begins with the newest frame.
    fn records_points(&self) -> bool {
        match self.shipper.phase {
            Phase::Running => true,
            Phase::Starting => {
                self.attempts.is_some() && self.shipper.state.retain_after().is_some()
            }
            Phase::Stopped => false,
        }
    }

    fn parts(&self) -> &Arc<Parts<O>> {
        &self.shipper.parts
    }

    /// Returns what is due now.
    fn due_step(&self, now: Instant) -> Option<Step> {
        match self.shipper.phase {
            Phase::Stopped => (*self.parts().take_over.lock()).then_some(Step::Start),
            // The probe is the first request that writes, so a replaced gateway must not get there.
            Phase::Starting => Some(Step::Start),
            Phase::Running if *self.parts().take_over.lock() => Some(Step::Start),
            Phase::Running if !self.is_probed => Some(Step::Probe),
            // Once before anything is sent: what an earlier process left above the head can have frames that the medium has
            // lost since. It would count as soon as the head is above it.
            Phase::Running if !self.is_listed => Some(Step::Check),
            // First, so that commits never wait for what else is done.
            Phase::Running if now >= self.next_ship || self.shipper.has_base_to_name() => {
                Some(Step::Ship)
            }
            Phase::Running if !self.shipper.deletable.is_empty() => Some(Step::Delete),
            Phase::Running if now >= self.next_check => Some(Step::Check),
            Phase::Running if now >= self.next_merge => Some(Step::Merge),
            Phase::Running => None,
        }
    }

    /// Returns whether there are as many small segments as an hour leaves. A gateway that never runs for an hour would not merge
    /// them otherwise, and its journal would keep all their frames.
    fn has_many_unmerged(&self) -> bool {
        self.shipper.unmerged.len() as u64 >= hourly_segments(self.parts().options.interval)
    }

    /// Records the result of a check, a deletion or a merge.
    fn record_cleanup(&mut self, step: Step, done: Result<(), DeliveryFailure>) {
        let Err(failure) = done else {
            self.cleanup_attempts = None;
            self.cleanup_log_limit.reset_after_success();
            self.parts().reported.lock().cleanup_failure = None;
            return;
        };
        if self.cleanup_log_limit.should_log(failure.class, Instant::now()) {
            let cause = failure.cause.as_str();
            tracing::warn!(
                ?step,
                cause,
                "The backup could not be cleaned up; the gateway retries."
            );
        }
        self.parts().reported.lock().cleanup_failure = Some(failure.cause.clone());
        let rule = RetryRule::of_targets(self.parts().timings);
        let attempts = FailedAttempts::add(self.cleanup_attempts.take(), failure, &rule);
        let next = Instant::now() + attempts.delay;
        self.cleanup_attempts = Some(attempts);
        match step {
            Step::Merge => self.next_merge = next,
            // A check finds again what was not deleted.
            _ => self.next_check = next,
        }
    }
}

impl<O: Objects> DeliveryQueue for ShipWorker<O> {
    type Head = Step;
    type Sent = Result<(), DeliveryFailure>;

    async fn next_head(&mut self) -> Result<Step, Next> {
        let now = Instant::now();
        let wake = Arc::clone(&self.parts().wake);
        if self.records_points() && now >= self.next_point {
            self.next_point = now + self.parts().options.interval;
            if let Err(failure) = self.shipper.record_point().await {
                let cause = failure.cause;
                tracing::debug!(cause, "The time of the newest commit could not be recorded.");
            }
        }
        let is_asked = *self.parts().take_over.lock();
        let due = self.due_step(now);
        if let Some(step) = due.filter(|_| is_asked || now >= self.not_before) {
            return Ok(step);
        }
        if self.shipper.phase == Phase::Stopped {
            return Err(Next::wait_for(async move { wake.notified().await }));
        }
        let next = self.next_ship.min(self.next_check).min(self.next_merge);
        let next = if due.is_some() { self.not_before } else { next.max(self.not_before) };
        let next = if self.records_points() { next.min(self.next_point) } else { next };
        Err(Next::retry_after(next.saturating_duration_since(now), wake))
    }

    async fn send(&mut self, step: &mut Step) -> Self::Sent {
        let now = Instant::now();
        match step {
            Step::Start => {
                self.shipper.start().await?;
                if self.has_many_unmerged() {
                    self.next_merge = now;
                }
                Ok(())
            }
            Step::Probe => {
                self.shipper.probe().await?;
                self.is_probed = true;
                Ok(())
            }
            Step::Check => {
                self.shipper.check().await?;
                self.next_check = now + CHECK_INTERVAL;
                Ok(())
            }
            Step::Delete => self.shipper.delete_some().await,
            Step::Merge => {
                self.shipper.merge().await?;
                self.next_merge = now + MERGE_INTERVAL;
                Ok(())
            }
            Step::Ship => {
                let has_more = self.shipper.ship().await?;
                self.next_ship = if has_more { now } else { now + self.parts().options.interval };
                Ok(())
            }
        }
    }

    async fn record(&mut self, step: Step, sent: Option<Self::Sent>) -> Next {
        let failure = match sent {
            None => return Next::Continue,
            // The first check is none of them: nothing is sent before it.
            Some(done)
                if matches!(step, Step::Delete | Step::Merge)
                    || (step == Step::Check && self.is_listed) =>
            {
                self.record_cleanup(step, done);
                return Next::Continue;
            }
            Some(Ok(())) => {
                self.is_listed |= step == Step::Check;
                self.attempts = None;
                let had_failed = self.parts().clear_failure();
                if self.log_limit.reset_after_success() && had_failed {
                    tracing::info!("The backup continues after a failure.");
                }
                return Next::Continue;
            }
            Some(Err(failure)) if failure.is_interruption => return Next::Continue,
            Some(Err(failure)) => failure,
        };
        if self.log_limit.should_log(failure.class, Instant::now()) {
            let cause = failure.cause.as_str();
            tracing::warn!(?step, cause, "The backup failed; the gateway retries.");
        }
        self.parts().record_failure(&failure);
        let rule = RetryRule::of_targets(self.parts().timings);
        let attempts = FailedAttempts::add(self.attempts.take(), failure, &rule);
        self.not_before = Instant::now() + attempts.delay;
        self.attempts = Some(attempts);
        Next::Continue
    }

    /// Sends the last commits. What fails is not retried before the next start.
    async fn finish(&mut self) {
        self.next_ship = Instant::now();
        while let Some(mut step) = self.due_step(Instant::now()) {
            let sent = self.send(&mut step).await;
            let has_failed = sent.is_err();
            self.record(step, Some(sent)).await;
            let has_more = step != Step::Ship || self.next_ship <= Instant::now();
            if has_failed || !has_more {
                break;
            }
        }
    }
}

impl<O: Objects> Parts<O> {
    /// Records why an attempt failed.
    pub(super) fn record_failure(&self, failure: &DeliveryFailure) {
        let mut reported = self.reported.lock();
        let is_new = reported.class.replace(failure.class) != Some(failure.class);
        let report = &mut reported.report;
        if report.state == BackupState::Replaced || report.state == BackupState::Copy {
            return;
        }
        report.state = BackupState::Blocked;
        report.cause = Some(failure.cause.clone());
        if is_new || report.cause_since.is_none() {
            report.cause_since = Some(time::now_rfc3339());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_long_intervals_are_due_when_two_can_be_merged() {
        let hourly = [1, 10, 1_800, 3_600].map(Duration::from_secs).map(hourly_segments);
        assert_eq!(hourly, [3_600, 360, 3, 3]);
    }
}
