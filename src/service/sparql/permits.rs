//! The permits of queries and updates: two run and eight wait, at most one and two for each account. While there is not
//! enough memory for another one, it waits too.
use parking_lot::{Mutex, MutexGuard};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::memory::{Memory, return_unused_pages};
use penstock_resources::gateway::MemoryLevel;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The maximum number of requests that run at once.
const MAX_RUNNING: usize = 2;
/// The maximum number of requests that wait.
const MAX_WAITING: usize = 8;
/// The maximum number of requests of one account that wait while another one of it runs.
const MAX_WAITING_PER_ACCOUNT: usize = 2;
/// The interval at which those that wait look whether there is enough memory.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// How many times they look while nothing runs.
const MAX_IDLE_CHECKS: u32 = 15;

/// The permits. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SparqlPermits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    memory: Memory,
    /// `service.limits.sparql.memory`
    request_bytes: u64,
}

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
    /// Creates permits for requests that may use this many bytes each.
    pub(super) fn new(memory: Memory, request_bytes: u64) -> Self {
        Self(Arc::new(Shared { queue: Mutex::default(), memory, request_bytes }))
    }

    /// Waits for a permit of this account.
    ///
    /// # Errors
    /// `ErrorClass::Unavailable` if too many requests wait, of all accounts or of this one, or if memory stays short
    /// while nothing runs.
    pub(super) async fn acquire(&self, account: &str) -> Result<SparqlPermit, GatewayError> {
        let mut woken = {
            let mut queue = self.lock();
            queue.drop_gone();
            // The others wait for one of their own accounts.
            let is_before = |waiter: &Waiter| queue.has_place(&waiter.account);
            if !queue.waiting.iter().any(is_before) && self.may_run(&queue, account) {
                return Ok(self.start(&mut queue, account.to_owned()));
            }
            if queue.count_waiting(account) >= MAX_WAITING_PER_ACCOUNT {
                return Err(busy_error("two SPARQL requests of this account wait already"));
            }
            if queue.waiting.len() >= MAX_WAITING {
                return Err(busy_error("eight SPARQL requests wait already"));
            }
            let (wake, woken) = oneshot::channel();
            queue.waiting.push_back(Waiter { account: account.to_owned(), wake });
            woken
        };
        let mut idle_checks = 0;
        loop {
            if let Ok(permit) = timeout(CHECK_INTERVAL, &mut woken).await {
                return permit.map_err(|_| busy_error("the gateway is stopping"));
            }
            if self.start_waiting(self.lock()) > 0 {
                idle_checks = 0;
                continue;
            }
            idle_checks += 1;
            if idle_checks == MAX_IDLE_CHECKS {
                return Err(self.memory_error());
            }
            // Once for each request, because it writes to the disk.
            if idle_checks == 1 {
                self.0.memory.request_relief();
            }
        }
    }

    /// Returns whether a request of this account may run now.
    fn may_run(&self, queue: &Queue, account: &str) -> bool {
        queue.has_place(account) && self.has_memory(queue)
    }

    /// Returns whether there is enough memory for another request. Those that run may not have taken theirs yet, and a
    /// table that grows takes half as much more for a moment. The rest of twice the limit is for what other requests take
    /// meanwhile.
    fn has_memory(&self, queue: &Queue) -> bool {
        let Shared { memory, request_bytes, .. } = &*self.0;
        let needed = request_bytes.saturating_mul(2 * (queue.running.len() as u64 + 1));
        memory.current_level() < MemoryLevel::Short
            && memory.remaining_bytes().is_none_or(|remaining| remaining >= needed)
    }

    fn memory_error(&self) -> GatewayError {
        let class = ErrorClass::Unavailable(Duration::from_secs(5));
        let message = format!(
            "memory is short: a SPARQL request needs twice the {} bytes of service.limits.sparql.memory, and the gateway \
             has less left; try again later, or lower that limit",
            self.0.request_bytes
        );
        GatewayError::new(class, message)
    }

    fn start(&self, queue: &mut Queue, account: String) -> SparqlPermit {
        queue.running.push(account.clone());
        SparqlPermit { permits: self.clone(), account }
    }

    /// Ends a request of this account, and starts those that may run now.
    fn release(&self, account: &str) {
        let mut queue = self.lock();
        if let Some(at) = queue.running.iter().position(|running| running == account) {
            queue.running.swap_remove(at);
        }
        let is_next = |waiter: &Waiter| queue.has_place(&waiter.account);
        if queue.waiting.iter().any(is_next) && !self.has_memory(&queue) {
            // Otherwise the memory of this request would count for another second.
            drop(queue);
            return_unused_pages();
            queue = self.lock();
        }
        self.start_waiting(queue);
    }

    /// Starts the requests that may run now, the oldest first. Returns how many run.
    fn start_waiting(&self, mut queue: MutexGuard<'_, Queue>) -> usize {
        let mut started = Vec::new();
        queue.drop_gone();
        let find_next = |queue: &Queue| {
            queue.waiting.iter().position(|next| self.may_run(queue, &next.account))
        };
        while let Some(at) = find_next(&queue) {
            let Some(Waiter { account, wake }) = queue.waiting.remove(at) else { break };
            started.push((wake, self.start(&mut queue, account)));
        }
        let running = queue.running.len();
        drop(queue);
        for (wake, permit) in started {
            // If the waiting request has ended meanwhile, dropping its permit starts the next one.
            let _ = wake.send(permit);
        }
        running
    }

    // No code panics while it holds this lock.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock()
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

    fn has_place(&self, account: &str) -> bool {
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

    fn create_permits() -> SparqlPermits {
        SparqlPermits::new(Memory::new(None), 1)
    }

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
        let permits = create_permits();
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
        let permits = create_permits();
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

    #[tokio::test]
    async fn a_request_waits_for_memory_and_is_refused_if_it_stays_short() {
        let mut permits = SparqlPermits::new(Memory::new(Some(1 << 30)), 300 << 20);
        let first = permits.acquire("a").await.unwrap();
        let second = wait(&permits, "b");
        settle().await;
        // Two would need as many bytes as the limit, and the process has some already.
        assert!(!second.is_finished());
        drop(first);
        drop(second.await.unwrap());
        permits = SparqlPermits::new(Memory::new(Some(1)), 1);
        let refused = permits.acquire("a").await.unwrap_err();
        assert!(matches!(refused.class, ErrorClass::Unavailable(_)), "{refused}");
        assert!(refused.to_string().contains("service.limits.sparql.memory"), "{refused}");
        assert!(permits.lock().running.is_empty());
    }
}
