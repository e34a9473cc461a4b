//! The permits of queries and updates: two run and eight wait, at most one and two for each account.
use penstock_base::error::{ErrorClass, GatewayError};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The maximum number of requests that run at once.
const MAX_RUNNING: usize = 2;
/// The maximum number of requests that wait.
const MAX_WAITING: usize = 8;
/// The maximum number of requests of one account that wait while another one of it runs.
const MAX_WAITING_PER_ACCOUNT: usize = 2;

/// The permits. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct SparqlPermits(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    /// The account of each running request.
    running: Vec<String>,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    account: String,
    wake: oneshot::Sender<SparqlPermit>,
}

/// The permit of one request. Dropping it lets the next one run.
#[derive(Debug)]
pub struct SparqlPermit {
    permits: SparqlPermits,
    account: String,
}

impl SparqlPermits {
    /// Waits for a permit of this account.
    ///
    /// # Errors
    /// `ErrorClass::Unavailable` if too many requests run or wait, of all accounts or of this one.
    pub(super) async fn acquire(&self, account: &str) -> Result<SparqlPermit, GatewayError> {
        let woken = {
            let mut queue = self.lock();
            queue.drop_gone();
            if queue.may_run(account) {
                return Ok(self.start(&mut queue, account.to_owned()));
            }
            if queue.count_waiting(account) >= MAX_WAITING_PER_ACCOUNT {
                return Err(busy_error("two SPARQL requests of this account wait already"));
            }
            if queue.waiting.len() >= MAX_WAITING {
                return Err(busy_error("two SPARQL requests run and eight wait already"));
            }
            let (wake, woken) = oneshot::channel();
            queue.waiting.push_back(Waiter { account: account.to_owned(), wake });
            woken
        };
        woken.await.map_err(|_| busy_error("the gateway is stopping"))
    }

    /// Returns the number of requests that run.
    pub(super) fn count_running(&self) -> usize {
        self.lock().running.len()
    }

    fn start(&self, queue: &mut Queue, account: String) -> SparqlPermit {
        queue.running.push(account.clone());
        SparqlPermit { permits: self.clone(), account }
    }

    /// Ends a request of this account, and starts those that may run now, the oldest first.
    fn release(&self, account: &str) {
        let mut started = Vec::new();
        let mut queue = self.lock();
        if let Some(at) = queue.running.iter().position(|running| running == account) {
            queue.running.swap_remove(at);
        }
        queue.drop_gone();
        while let Some(at) = queue.waiting.iter().position(|next| queue.may_run(&next.account)) {
            let Some(Waiter { account, wake }) = queue.waiting.remove(at) else { break };
            started.push((wake, self.start(&mut queue, account)));
        }
        drop(queue);
        for (wake, permit) in started {
            // If the waiting request has ended meanwhile, dropping its permit starts the next one.
            let _ = wake.send(permit);
        }
    }

    // No code panics while it holds this lock.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Removes the requests whose clients have disconnected while they waited.
    fn drop_gone(&mut self) {
        self.waiting.retain(|waiter| !waiter.wake.is_closed());
    }

    fn count_waiting(&self, account: &str) -> usize {
        self.waiting.iter().filter(|waiter| waiter.account == account).count()
    }

    fn may_run(&self, account: &str) -> bool {
        self.running.len() < MAX_RUNNING && !self.running.iter().any(|running| running == account)
    }
}

impl Drop for SparqlPermit {
    fn drop(&mut self) {
        self.permits.release(&self.account);
    }
}

fn busy_error(why: &str) -> GatewayError {
    let class = ErrorClass::Unavailable(Duration::from_secs(1));
    GatewayError::new(class, format!("{why}; try again when one of them has ended"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinHandle;

    fn wait(permits: &SparqlPermits, account: &str) -> JoinHandle<SparqlPermit> {
        let (permits, account) = (permits.clone(), account.to_owned());
        tokio::spawn(async move { permits.acquire(&account).await.unwrap() })
    }

    async fn settle() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn two_run_one_of_each_account_and_the_others_wait_in_order() {
        let permits = SparqlPermits::default();
        let first = permits.acquire("a").await.unwrap();
        let own_second = wait(&permits, "a");
        let own_third = wait(&permits, "a");
        settle().await;
        assert!(permits.acquire("a").await.is_err(), "one runs and two wait");
        let second = permits.acquire("b").await.unwrap();
        let third = wait(&permits, "c");
        settle().await;
        assert!(!own_second.is_finished() && !third.is_finished());
        // The second request of an account waits for its first one, whatever else ends.
        drop(second);
        let third = third.await.unwrap();
        settle().await;
        assert!(!own_second.is_finished());
        drop(first);
        drop(own_second.await.unwrap());
        drop(own_third.await.unwrap());
        drop(third);
        assert!(permits.lock().running.is_empty());
    }

    #[tokio::test]
    async fn eight_wait_and_those_whose_clients_are_gone_give_up_their_place() {
        let permits = SparqlPermits::default();
        let running = [permits.acquire("a").await.unwrap(), permits.acquire("b").await.unwrap()];
        let waiting: Vec<_> = (0..8).map(|at| wait(&permits, &format!("w{at}"))).collect();
        settle().await;
        let refused = permits.acquire("c").await.unwrap_err();
        assert!(matches!(refused.class, ErrorClass::Unavailable(_)), "{refused}");
        for waiter in &waiting {
            waiter.abort();
        }
        settle().await;
        let next = wait(&permits, "c");
        settle().await;
        drop(running);
        drop(next.await.unwrap());
        let queue = permits.lock();
        assert!(queue.running.is_empty() && queue.waiting.is_empty());
    }
}
