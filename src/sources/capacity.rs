//! Limits the payload that all sources hold, and the number of messages of each session.
//!
//! Each session has a small share that only it uses, so that a session whose messages cannot be stored does not stop
//! the others. The rest is a pool for all. A session that needs more than there is waits, and does not read from its
//! socket meanwhile. One message takes at most half of the pool, so that no broker gets all of it for one. A session whose
//! messages cannot be stored gives its part of the pool back only while another one waits, because its broker has to send
//! them again. After that it leaves the pool to the others until its messages can be stored. Otherwise two such sessions
//! would take the pool from each other, and their brokers would send the same messages again and again.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The maximum share of a session in bytes.
const MAX_SHARE_BYTES: usize = 64 << 10;
/// All shares together are at most the total divided by this.
const SHARES_DIVISOR: usize = 4;
/// One message takes at most the pool divided by this.
const MESSAGE_DIVISOR: usize = 2;
/// The maximum number of batches that are stored at once. They wait for the disk on threads that HTTP needs too.
const MAX_CONCURRENT_STORES: usize = 4;

/// The capacity of all sessions.
#[derive(Debug, Clone)]
pub(crate) struct Capacity {
    pool: Arc<Semaphore>,
    pool_bytes: usize,
    share_bytes: usize,
    stores: Arc<Semaphore>,
    /// The number of messages that wait for the pool.
    waiting: Arc<AtomicUsize>,
}

impl Capacity {
    /// Divides `total_bytes` among this number of sessions.
    pub(crate) fn new(total_bytes: u64, sessions: usize) -> Self {
        let max = Semaphore::MAX_PERMITS.min(u32::MAX as usize >> 1);
        let total = usize::try_from(total_bytes).unwrap_or(usize::MAX).min(max);
        let sessions = sessions.max(1);
        let share_bytes = (total / SHARES_DIVISOR / sessions).min(MAX_SHARE_BYTES);
        let pool_bytes = total - share_bytes * sessions;
        let stores = Arc::new(Semaphore::new(MAX_CONCURRENT_STORES));
        let (pool, waiting) = (Arc::new(Semaphore::new(pool_bytes)), Arc::default());
        Self { pool, pool_bytes, share_bytes, stores, waiting }
    }

    /// Returns the maximum bytes of one message.
    pub(crate) fn max_message_bytes(&self) -> usize {
        self.pool_bytes / MESSAGE_DIVISOR
    }

    /// Creates the capacity of one session, which holds at most this number of messages.
    pub(crate) fn for_session(&self, max_messages: u16) -> SessionCapacity {
        SessionCapacity {
            all: self.clone(),
            share: Arc::new(Semaphore::new(self.share_bytes)),
            messages: Arc::new(Semaphore::new(usize::from(max_messages).max(1))),
            waiting: Arc::default(),
            last_bytes: Arc::default(),
            uses_pool: Arc::new(watch::Sender::new(true)),
        }
    }
}

/// The capacity of one session.
#[derive(Debug, Clone)]
pub(crate) struct SessionCapacity {
    all: Capacity,
    share: Arc<Semaphore>,
    messages: Arc<Semaphore>,
    /// The number of its messages that wait for the pool.
    waiting: Arc<AtomicUsize>,
    /// The bytes of the last message that asked for capacity.
    last_bytes: Arc<AtomicUsize>,
    /// Whether it takes capacity from the pool, and not only its share.
    uses_pool: Arc<watch::Sender<bool>>,
}

/// A message that waits for the pool, until this is dropped.
struct PoolWait<'c>(&'c SessionCapacity);

impl<'c> PoolWait<'c> {
    fn begin(capacity: &'c SessionCapacity) -> Self {
        capacity.all.waiting.fetch_add(1, Ordering::SeqCst);
        capacity.waiting.fetch_add(1, Ordering::SeqCst);
        Self(capacity)
    }
}

impl Drop for PoolWait<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.all.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The right to hold one message. Dropping it frees the capacity.
#[derive(Debug)]
pub(crate) struct Reservation {
    _message: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
    is_from_pool: bool,
}

impl SessionCapacity {
    /// Waits for the capacity for one message of this size. A message that is larger than the pool gets all of it.
    pub(crate) async fn reserve(&self, bytes: usize) -> Reservation {
        let bytes = bytes.min(self.all.pool_bytes);
        self.last_bytes.store(bytes, Ordering::SeqCst);
        let permits = u32::try_from(bytes).expect("the total is below 2 GiB");
        let message = self.messages.clone().acquire_owned().await;
        let share = self.share.clone().acquire_many_owned(permits);
        let pool = async {
            let mut uses_pool = self.uses_pool.subscribe();
            // The sender is part of this capacity.
            let _ = uses_pool.wait_for(|uses_pool| *uses_pool).await;
            let _waiting = PoolWait::begin(self);
            self.all.pool.clone().acquire_many_owned(permits).await
        };
        let (permit, is_from_pool) = if bytes > self.all.share_bytes {
            (pool.await, true)
        } else {
            tokio::select! {
                biased;
                permit = share => (permit, false),
                permit = pool => (permit, true),
            }
        };
        Reservation {
            _message: message.expect("the semaphore is never closed"),
            _bytes: permit.expect("the semaphore is never closed"),
            is_from_pool,
        }
    }

    /// Waits for the permit to store a batch.
    pub(crate) async fn acquire_store_permit(&self) -> OwnedSemaphorePermit {
        let permit = self.all.stores.clone().acquire_owned().await;
        permit.expect("the semaphore is never closed")
    }

    /// Leaves the pool to the other sessions until [`Self::use_pool`] is called.
    pub(crate) fn leave_pool(&self) {
        self.uses_pool.send_replace(false);
    }

    /// Lets the session take capacity from the pool again.
    pub(crate) fn use_pool(&self) {
        self.uses_pool.send_replace(true);
    }

    /// Returns whether the session takes capacity from the pool.
    pub(crate) fn uses_pool(&self) -> bool {
        *self.uses_pool.borrow()
    }

    /// Returns the bytes of the last message that asked for capacity, which may still wait for it.
    pub(crate) fn last_message_bytes(&self) -> usize {
        self.last_bytes.load(Ordering::SeqCst)
    }

    /// Returns whether another session waits for the pool.
    pub(crate) fn is_pool_needed(&self) -> bool {
        self.all.waiting.load(Ordering::SeqCst) > self.waiting.load(Ordering::SeqCst)
    }
}

impl Reservation {
    /// Returns whether it takes capacity from other sessions.
    pub(crate) fn is_from_pool(&self) -> bool {
        self.is_from_pool
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    /// Returns the result of a reservation that does not have to wait.
    fn try_reserve(capacity: &SessionCapacity, bytes: usize) -> Option<Reservation> {
        let mut reserve = pin!(capacity.reserve(bytes));
        match reserve.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(reservation) => Some(reservation),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn a_session_that_fills_the_pool_leaves_the_others_their_shares() {
        let capacity = Capacity::new(1 << 20, 4);
        let (greedy, other) = (capacity.for_session(1_000), capacity.for_session(1_000));
        let held: Vec<Reservation> =
            std::iter::from_fn(|| try_reserve(&greedy, 10_000)).take(1_000).collect();
        let from_pool = held.iter().filter(|one| one.is_from_pool()).count();
        assert!(from_pool > 70 && held.len() < 105, "{from_pool} of {}", held.len());
        let own = try_reserve(&other, 10_000).expect("its share is free");
        assert!(!own.is_from_pool());
        assert!(try_reserve(&other, 100_000).is_none());
        drop(held);
        assert!(try_reserve(&other, 100_000).expect("the pool is free").is_from_pool());
    }

    #[test]
    fn the_pool_is_needed_while_another_session_waits_for_it() {
        let capacity = Capacity::new(1 << 20, 2);
        let (holder, other) = (capacity.for_session(10), capacity.for_session(10));
        let held = try_reserve(&holder, capacity.pool_bytes).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut own = pin!(holder.reserve(100_000));
        assert!(own.as_mut().poll(&mut context).is_pending());
        assert!(!holder.is_pool_needed());
        let mut waiting = pin!(other.reserve(100_000));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert!(holder.is_pool_needed());
        drop(held);
        assert!(own.as_mut().poll(&mut context).is_ready());
        assert!(waiting.as_mut().poll(&mut context).is_ready());
        assert!(!holder.is_pool_needed() && !other.is_pool_needed());
    }

    #[test]
    fn a_session_that_left_the_pool_takes_only_its_share_and_asks_for_no_more() {
        let capacity = Capacity::new(1 << 20, 2);
        let (holder, other) = (capacity.for_session(10), capacity.for_session(10));
        other.leave_pool();
        assert!(!try_reserve(&other, 10_000).expect("its share is free").is_from_pool());
        let held = try_reserve(&holder, capacity.pool_bytes).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut waiting = pin!(other.reserve(100_000));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert!(!holder.is_pool_needed());
        drop(held);
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        other.use_pool();
        assert!(waiting.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn a_session_holds_at_most_its_number_of_messages() {
        let capacity = Capacity::new(1 << 20, 1).for_session(2);
        let held = [try_reserve(&capacity, 1).unwrap(), try_reserve(&capacity, 1).unwrap()];
        assert!(try_reserve(&capacity, 1).is_none());
        drop(held);
        assert!(try_reserve(&capacity, 1).is_some());
    }

    #[test]
    fn a_message_larger_than_everything_takes_the_whole_pool() {
        let capacity = Capacity::new(1 << 20, 1);
        let session = capacity.for_session(10);
        let all = try_reserve(&session, 5 << 20).unwrap();
        assert_eq!(capacity.pool.available_permits(), 0);
        drop(all);
        assert_eq!(capacity.pool.available_permits(), capacity.pool_bytes);
    }

    #[test]
    fn any_configured_size_is_a_valid_capacity() {
        let capacity = Capacity::new(u64::MAX, 1);
        assert!(capacity.pool.available_permits() > 1 << 20);
        let two = [(); 2].map(|()| {
            try_reserve(&capacity.for_session(9), capacity.max_message_bytes()).is_some()
        });
        assert_eq!(two, [true, true]);
    }
}
