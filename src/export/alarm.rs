//! A timer that fires at a wall-clock time, built on tokio-cron-scheduler.
//!
//! The scheduler checks the clock twice a second and starts due jobs. That is correct as long as the clock only
//! moves forward. Other modules cover what the scheduler (0.15) does not handle:
//! - Its cron jobs keep the UTC offset that their zone had when they were added. They are an hour off after
//!   that offset changes. So `penstock_model::resource::Schedule` computes the due times.
//! - After the clock is set back, the scheduler waits until the clock reaches the old time again. After the clock
//!   is set ahead, repeated jobs catch up tick by tick. `automatic` detects both and sets the timer again.
//! - It persists nothing. `schedule` does.
//! - Its queues lose jobs when many jobs are added or due at once. So this module adds only one job at a time: the
//!   next one due.
use chrono::{DateTime, Utc};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use uuid::Uuid;

/// A one-shot timer. Its scheduler starts when it is first set.
#[derive(Default)]
pub(super) struct Alarm {
    scheduler: Option<JobScheduler>,
    set: Option<(DateTime<Utc>, Uuid)>,
    fired: Arc<Notify>,
}

impl Alarm {
    /// Sets the time to fire at and replaces the previous time. A time in the past fires immediately.
    pub(super) async fn set(&mut self, at: Option<DateTime<Utc>>) -> Result<(), JobSchedulerError> {
        if self.set.map(|(at, _)| at) == at {
            return Ok(());
        }
        self.clear().await?;
        let Some(at) = at else { return Ok(()) };
        // The scheduler counts in whole seconds, and the timer must not fire early.
        let left = (at - Utc::now()).num_milliseconds().max(0).cast_unsigned().div_ceil(1000);
        let fired = Arc::clone(&self.fired);
        let job = Job::new_one_shot_async(Duration::from_secs(left), move |_, _| {
            fired.notify_one();
            Box::pin(std::future::ready(()))
        })?;
        let scheduler = if let Some(scheduler) = &self.scheduler {
            scheduler
        } else {
            let scheduler = JobScheduler::new().await?;
            scheduler.start().await?;
            self.scheduler.insert(scheduler)
        };
        self.set = Some((at, scheduler.add(job).await?));
        Ok(())
    }

    /// Clears the timer, so that the same time can be set again after the clock changed.
    pub(super) async fn clear(&mut self) -> Result<(), JobSchedulerError> {
        if let (Some((at, job)), Some(scheduler)) = (self.set.take(), &self.scheduler)
            && at > Utc::now()
        {
            // A job that has fired removes itself.
            scheduler.remove(&job).await?;
        }
        Ok(())
    }

    /// Waits until the timer fires.
    pub(super) async fn wait_until_fired(&self) {
        self.fired.notified().await;
    }

    /// Shuts down the scheduler.
    pub(super) async fn shut_down(&mut self) {
        if let Some(mut scheduler) = self.scheduler.take()
            && let Err(error) = scheduler.shutdown().await
        {
            tracing::warn!(%error, "The scheduler did not shut down cleanly.");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[tokio::test]
    async fn alarm_never_fires_early_and_can_be_set_many_times() {
        let mut alarm = Alarm::default();
        for hours in 1..300 {
            alarm.set(Some(Utc::now() + TimeDelta::hours(hours))).await.unwrap();
        }
        let at = Utc::now() + TimeDelta::milliseconds(1200);
        alarm.set(Some(at)).await.unwrap();
        alarm.wait_until_fired().await;
        assert!(Utc::now() >= at);
        // A time in the past fires immediately.
        alarm.set(Some(Utc::now() - TimeDelta::hours(1))).await.unwrap();
        alarm.wait_until_fired().await;
        alarm.set(None).await.unwrap();
        alarm.shut_down().await;
    }
}
