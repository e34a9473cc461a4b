//! The alarm: rings at a time of the clock, by tokio-cron-scheduler.
//!
//! The scheduler looks at the clock twice a second and starts what is due, which is right as long as the
//! clock only goes on. What it does not do (0.15), is done elsewhere:
//! - Its cron jobs keep the offset that their zone had when they were added, and so are an hour off after it
//!   changed: the moments are found by `business_object::resource::Schedule`.
//! - After the clock was set back it waits until the clock is where it was; repeated jobs catch up tick by
//!   tick after it was set ahead: `automatic` notices both and sets the alarm anew.
//! - It keeps nothing: `schedule` does.
//! - Its queues lose jobs when many are added or due at once: there is one job at a time, the next one due.
use chrono::{DateTime, Utc};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use uuid::Uuid;

/// The alarm. Nothing runs for it until it is first set.
#[derive(Default)]
pub(super) struct Alarm {
    scheduler: Option<JobScheduler>,
    set: Option<(DateTime<Utc>, Uuid)>,
    rang: Arc<Notify>,
}

impl Alarm {
    /// Lets it ring at this time, in place of the one before; at once when the time is over.
    pub(super) async fn set(&mut self, at: Option<DateTime<Utc>>) -> Result<(), JobSchedulerError> {
        if self.set.map(|(at, _)| at) == at {
            return Ok(());
        }
        self.clear().await?;
        let Some(at) = at else { return Ok(()) };
        // It counts in whole seconds of the clock, and must not ring early.
        let left = (at - Utc::now()).num_milliseconds().max(0).cast_unsigned().div_ceil(1000);
        let rang = Arc::clone(&self.rang);
        let job = Job::new_one_shot_async(Duration::from_secs(left), move |_, _| {
            rang.notify_one();
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

    /// Sets it anew for the same time, since the clock is another now.
    pub(super) async fn clear(&mut self) -> Result<(), JobSchedulerError> {
        if let (Some((at, job)), Some(scheduler)) = (self.set.take(), &self.scheduler)
            && at > Utc::now()
        {
            // One that rang takes itself away.
            scheduler.remove(&job).await?;
        }
        Ok(())
    }

    /// Waits until it rings.
    pub(super) async fn rang(&self) {
        self.rang.notified().await;
    }

    /// Ends what runs for it.
    pub(super) async fn end(&mut self) {
        if let Some(mut scheduler) = self.scheduler.take()
            && let Err(error) = scheduler.shutdown().await
        {
            tracing::warn!(%error, "The scheduler did not end in good order.");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[tokio::test]
    async fn it_rings_not_before_its_time_and_can_be_set_again_and_again() {
        let mut alarm = Alarm::default();
        for hours in 1..300 {
            alarm.set(Some(Utc::now() + TimeDelta::hours(hours))).await.unwrap();
        }
        let at = Utc::now() + TimeDelta::milliseconds(1200);
        alarm.set(Some(at)).await.unwrap();
        alarm.rang().await;
        assert!(Utc::now() >= at);
        // One whose time is over rings at once.
        alarm.set(Some(Utc::now() - TimeDelta::hours(1))).await.unwrap();
        alarm.rang().await;
        alarm.set(None).await.unwrap();
        alarm.end().await;
    }
}
