//! The loop of a worker that delivers a queue in order: exports to a target, or events to a webhook. It sends the head of
//! the queue, and again after a failure until that succeeds. `backoff` has the rule of the retries.
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The time that a delivery in progress has to finish when the gateway stops.
pub(super) const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// A queue with one receiver.
pub(super) trait DeliveryQueue: Send {
    /// What one attempt sends.
    type Head: Send;
    /// The result of an attempt.
    type Sent: Send;

    /// Returns the head of the queue, or what to do without one.
    fn next_head(&mut self) -> impl Future<Output = Result<Self::Head, Next>> + Send;

    /// Sends the head of the queue. It may take from it what [`Self::record`] does not need.
    fn send(&mut self, head: &mut Self::Head) -> impl Future<Output = Self::Sent> + Send;

    /// Records and reports the result of an attempt, `None` if the gateway stopped before there was one. Returns what to do
    /// next.
    fn record(
        &mut self,
        head: Self::Head,
        sent: Option<Self::Sent>,
    ) -> impl Future<Output = Next> + Send;

    /// Stores or sends what is left, because the gateway stops.
    fn finish(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// What a worker does next.
pub(super) enum Next {
    /// Reads the queue again.
    Continue,
    /// Reads the queue again after this.
    WaitFor(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Ends.
    End,
}

impl Next {
    /// Waits for something.
    pub(super) fn wait_for(event: impl Future<Output = ()> + Send + 'static) -> Self {
        Self::WaitFor(Box::pin(event))
    }

    /// Waits until the next attempt is due, or an operator asks for one with `wake`.
    pub(super) fn retry_after(delay: Duration, wake: Arc<Notify>) -> Self {
        Self::wait_for(async move {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = wake.notified() => {}
            }
        })
    }

    /// Stops waiting as soon as `event` happens.
    pub(super) fn or_after(self, event: impl Future<Output = ()> + Send + 'static) -> Self {
        match self {
            Self::WaitFor(wait) => Self::wait_for(async move {
                tokio::select! {
                    () = wait => {}
                    () = event => {}
                }
            }),
            next => next,
        }
    }
}

/// Delivers a queue until it ends or `stop` becomes true.
pub(super) async fn deliver_queue(mut queue: impl DeliveryQueue, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        let next = match queue.next_head().await {
            Ok(mut head) => {
                let is_stopping = *stop.borrow();
                let sent = if is_stopping {
                    None
                } else {
                    finish_within(SHUTDOWN_GRACE, queue.send(&mut head), &mut stop).await
                };
                queue.record(head, sent).await
            }
            Err(next) => next,
        };
        match next {
            Next::Continue => {}
            Next::WaitFor(event) => {
                tokio::select! {
                    () = event => {}
                    _ = stop.wait_for(|stop| *stop) => break,
                }
            }
            Next::End => break,
        }
    }
    queue.finish().await;
}

/// Runs an attempt. Returns `None` if the gateway stops and the attempt takes longer than `grace` after that.
pub(super) async fn finish_within<T>(
    grace: Duration,
    attempt: impl Future<Output = T>,
    stop: &mut watch::Receiver<bool>,
) -> Option<T> {
    let grace_end = async {
        let _ = stop.wait_for(|stop| *stop).await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        sent = attempt => Some(sent),
        () = grace_end => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue with one head, whose first attempts fail.
    struct TestQueue {
        failures: u32,
        wake: Arc<Notify>,
        finished: watch::Sender<bool>,
    }

    impl DeliveryQueue for TestQueue {
        type Head = u32;
        type Sent = Result<(), u32>;

        async fn next_head(&mut self) -> Result<u32, Next> {
            Ok(self.failures)
        }

        async fn send(&mut self, left: &mut u32) -> Result<(), u32> {
            if *left == 0 { Ok(()) } else { Err(*left - 1) }
        }

        async fn record(&mut self, _: u32, sent: Option<Result<(), u32>>) -> Next {
            match sent {
                Some(Ok(())) | None => Next::End,
                Some(Err(left)) => {
                    self.failures = left;
                    Next::retry_after(Duration::from_hours(1), Arc::clone(&self.wake))
                }
            }
        }

        async fn finish(&mut self) {
            self.finished.send_replace(true);
        }
    }

    #[tokio::test]
    async fn a_worker_retries_when_it_is_woken_and_ends_when_the_gateway_stops() {
        let wake = Arc::new(Notify::new());
        let run = |failures, stop: &watch::Sender<bool>| {
            let (finished, is_finished) = watch::channel(false);
            let queue = TestQueue { failures, wake: Arc::clone(&wake), finished };
            (tokio::spawn(deliver_queue(queue, stop.subscribe())), is_finished)
        };
        let (stop, _) = watch::channel(false);
        wake.notify_one();
        let (delivered, is_finished) = run(1, &stop);
        delivered.await.unwrap();
        assert!(*is_finished.borrow());
        let (stopped, is_finished) = run(1, &stop);
        tokio::task::yield_now().await;
        stop.send_replace(true);
        stopped.await.unwrap();
        assert!(*is_finished.borrow());
    }
}
