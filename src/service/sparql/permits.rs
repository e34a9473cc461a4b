//! The permits of queries and updates: two run and eight wait, at most one and two for each account. While there is not
//! enough memory for another one, it waits too.
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::memory::Memory;
use penstock_base::permits::{Permit, Permits, QueuePlace};
use penstock_resources::gateway::MemoryLevel;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// The maximum number of requests that run at once, one of each account.
const MAX_RUNNING: u64 = 2;
/// The maximum number of requests that wait.
const MAX_WAITING: u64 = 8;
/// The maximum number of requests of one account that wait while another one of it runs.
const MAX_WAITING_PER_ACCOUNT: u64 = 2;
/// The interval at which those that wait look whether there is enough memory.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// How many times they look while nothing runs.
const MAX_IDLE_CHECKS: u32 = 15;

/// The permits. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SparqlPermits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    running: Permits<String>,
    waiting: Permits<String>,
    memory: Memory,
    /// `service.limits.sparql.memory`
    request_bytes: u64,
}

/// The permit of one request. Dropping it lets the next one run.
#[derive(Debug)]
pub struct SparqlPermit {
    permits: SparqlPermits,
    _running: Permit<String>,
}

impl SparqlPermits {
    /// Creates permits for requests that may use this many bytes each.
    pub(super) fn new(memory: Memory, request_bytes: u64) -> Self {
        let running = Permits::new(MAX_RUNNING, 1);
        let waiting = Permits::new(MAX_WAITING, MAX_WAITING_PER_ACCOUNT);
        Self(Arc::new(Shared { running, waiting, memory, request_bytes }))
    }

    /// Waits for a permit of this account.
    ///
    /// # Errors
    /// `ErrorClass::Unavailable` if too many requests wait, of all accounts or of this one, or if memory stays short
    /// while nothing runs.
    pub(super) async fn acquire(&self, account: &str) -> Result<SparqlPermit, GatewayError> {
        let Shared { running, waiting, memory, .. } = &*self.0;
        let place = running.enter_queue(account);
        if let Some(permit) = self.try_start(&place) {
            return Ok(permit);
        }
        let _waiting = waiting.try_acquire(account, 1).ok_or_else(|| {
            if waiting.usage_of(&account.to_owned()) >= MAX_WAITING_PER_ACCOUNT {
                busy_error("two SPARQL requests of this account wait already")
            } else {
                busy_error("eight SPARQL requests wait already")
            }
        })?;
        let mut checks = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut idle_checks = 0;
        let mut is_check = false;
        loop {
            if let Some(permit) = self.try_start(&place) {
                return Ok(permit);
            }
            if is_check {
                idle_checks = if running.total_usage() > 0 { 0 } else { idle_checks + 1 };
                if idle_checks == MAX_IDLE_CHECKS {
                    return Err(self.memory_error());
                }
                // Once for each request, because it writes to the disk.
                if idle_checks == 1 {
                    memory.request_relief();
                }
            }
            is_check = tokio::select! {
                () = place.wait_for_turn() => false,
                _ = checks.tick() => true,
            };
        }
    }

    /// Starts a request if it is its turn and there is enough memory.
    fn try_start(&self, place: &QueuePlace<'_, String>) -> Option<SparqlPermit> {
        let running = place.try_acquire_if(|running| self.has_memory(running))?;
        Some(SparqlPermit { permits: self.clone(), _running: running })
    }

    /// Returns whether there is enough memory for another request beside this number of them. Those may not have taken
    /// theirs yet, and a table that grows takes half as much more for a moment. The rest of twice the limit is for what
    /// other requests take meanwhile.
    fn has_memory(&self, running: u64) -> bool {
        let Shared { memory, request_bytes, .. } = &*self.0;
        let needed = request_bytes.saturating_mul(2 * (running + 1));
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
}

impl Drop for SparqlPermit {
    fn drop(&mut self) {
        let Shared { running, waiting, memory, .. } = &*self.permits.0;
        if waiting.total_usage() > 0 && !self.permits.has_memory(running.total_usage() - 1) {
            // Otherwise the memory of this request would count for another second.
            memory.return_unused_pages();
        }
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
        assert_eq!(permits.0.running.total_usage(), 0);
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
        let Shared { running, waiting, .. } = &*permits.0;
        assert_eq!((running.total_usage(), waiting.total_usage()), (0, 0));
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
        assert_eq!(permits.0.running.total_usage(), 0);
    }
}
