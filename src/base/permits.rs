//! Permits: a total, and a share of it for each client, so that no client takes the part of the others. Without shares, the
//! semaphore of tokio suffices.
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The permits of one kind of work. Cheap to clone.
#[derive(Debug)]
pub struct Permits<Who>(Arc<Pool<Who>>);

impl<Who> Clone for Permits<Who> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Pool<Who> {
    total: u64,
    share: u64,
    usage: Mutex<Usage<Who>>,
    /// Notifies those that wait when a permit is released, and when one of them leaves the queue.
    released: Notify,
}

#[derive(Debug)]
struct Usage<Who> {
    total: u64,
    by_client: HashMap<Who, u64>,
    /// The clients that wait, in the order in which they began to.
    waiting: BTreeMap<u64, Who>,
}

/// An amount that a client holds. Dropping this value releases it.
#[derive(Debug)]
pub struct Permit<Who: Eq + Hash> {
    pool: Arc<Pool<Who>>,
    who: Who,
    amount: u64,
}

/// The place of a client that waits for a permit. Dropping this value leaves the queue.
#[derive(Debug)]
pub struct QueuePlace<'a, Who> {
    permits: &'a Permits<Who>,
    number: u64,
}

impl Permits<String> {
    /// Creates this many permits for all accounts together, of which one account may hold half, but at least one.
    pub fn for_accounts(total: usize) -> Self {
        Self::new(total as u64, (total as u64 / 2).max(1))
    }
}

impl<Who: Eq + Hash + Clone> Permits<Who> {
    /// Creates permits with this total, and this share of it for each client.
    pub fn new(total: u64, share: u64) -> Self {
        let usage = Usage { total: 0, by_client: HashMap::new(), waiting: BTreeMap::new() };
        Self(Arc::new(Pool { total, share, usage: Mutex::new(usage), released: Notify::new() }))
    }

    /// Returns whether this amount exceeds neither the total nor the share of the client.
    pub fn has_capacity(&self, who: &Who, amount: u64) -> bool {
        self.0.has_capacity(&self.0.usage.lock(), who, amount)
    }

    /// Takes this amount. Returns `None` if it exceeds the total or the share of the client.
    pub fn try_acquire(&self, who: impl Into<Who>, amount: u64) -> Option<Permit<Who>> {
        let (who, mut usage) = (who.into(), self.0.usage.lock());
        self.0.has_capacity(&usage, &who, amount).then(|| self.record(&mut usage, who, amount))
    }

    /// Takes this amount, even if it exceeds the share of the client. Returns `None` if it exceeds the total.
    pub fn try_acquire_uncapped(&self, who: impl Into<Who>, amount: u64) -> Option<Permit<Who>> {
        let mut usage = self.0.usage.lock();
        self.0.fits_total(&usage, amount).then(|| self.record(&mut usage, who.into(), amount))
    }

    /// Takes this amount, even if it exceeds the total or the share of the client.
    pub fn force_acquire(&self, who: impl Into<Who>, amount: u64) -> Permit<Who> {
        self.record(&mut self.0.usage.lock(), who.into(), amount)
    }

    /// Waits for one permit. It goes to the first of those that wait and whose share is not used up.
    pub async fn acquire(&self, who: impl Into<Who>) -> Permit<Who> {
        let place = self.enter_queue(who);
        loop {
            let released = self.released();
            if let Some(permit) = place.try_acquire_if(|_| true) {
                return permit;
            }
            released.await;
        }
    }

    /// Begins to wait for one permit.
    pub fn enter_queue(&self, who: impl Into<Who>) -> QueuePlace<'_, Who> {
        let mut usage = self.0.usage.lock();
        let number = usage.waiting.last_key_value().map_or(0, |(last, _)| last + 1);
        usage.waiting.insert(number, who.into());
        QueuePlace { permits: self, number }
    }

    /// Waits until a place may have got its turn. This counts from the call, not from the first poll.
    pub fn released(&self) -> Notified<'_> {
        self.0.released.notified()
    }

    /// Returns the amount that all clients together hold.
    pub fn total_usage(&self) -> u64 {
        self.0.usage.lock().total
    }

    /// Returns the amount that a client holds.
    pub fn usage_of(&self, who: &Who) -> u64 {
        self.0.usage.lock().of_client(who)
    }

    fn record(&self, usage: &mut Usage<Who>, who: Who, amount: u64) -> Permit<Who> {
        usage.total += amount;
        *usage.by_client.entry(who.clone()).or_default() += amount;
        Permit { pool: Arc::clone(&self.0), who, amount }
    }
}

impl<Who: Eq + Hash> Pool<Who> {
    /// Whether this amount fits. While the client holds nothing, its share does not limit it, and while no client holds
    /// anything, the total does not, unless it is 0. So a single item always fits, however large it is.
    fn has_capacity(&self, usage: &Usage<Who>, who: &Who, amount: u64) -> bool {
        let own = usage.of_client(who);
        self.fits_total(usage, amount) && (own == 0 || own + amount <= self.share)
    }

    fn fits_total(&self, usage: &Usage<Who>, amount: u64) -> bool {
        self.total > 0 && (usage.total == 0 || usage.total + amount <= self.total)
    }
}

impl<Who: Eq + Hash> Usage<Who> {
    fn of_client(&self, who: &Who) -> u64 {
        self.by_client.get(who).copied().unwrap_or_default()
    }
}

impl<Who: Eq + Hash> Drop for Permit<Who> {
    fn drop(&mut self) {
        let mut usage = self.pool.usage.lock();
        usage.total -= self.amount;
        if let Some(own) = usage.by_client.get_mut(&self.who) {
            *own -= self.amount;
            if *own == 0 {
                usage.by_client.remove(&self.who);
            }
        }
        drop(usage);
        self.pool.released.notify_waiters();
    }
}

impl<Who: Eq + Hash + Clone> QueuePlace<'_, Who> {
    /// Takes one permit if it is the turn of this place, and if `condition` holds for the amount that all clients
    /// together hold.
    pub fn try_acquire_if(&self, condition: impl FnOnce(u64) -> bool) -> Option<Permit<Who>> {
        let pool = &*self.permits.0;
        let mut usage = pool.usage.lock();
        let who = usage.waiting.get(&self.number)?.clone();
        let mut before = usage.waiting.range(..self.number);
        let is_first = before.all(|(_, other)| !pool.has_capacity(&usage, other, 1));
        let is_granted = is_first && pool.has_capacity(&usage, &who, 1) && condition(usage.total);
        is_granted.then(|| self.permits.record(&mut usage, who, 1))
    }
}

impl<Who> Drop for QueuePlace<'_, Who> {
    fn drop(&mut self) {
        self.permits.0.usage.lock().waiting.remove(&self.number);
        self.permits.0.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    fn one_client_gets_its_share_and_all_get_the_total() {
        let permits = Permits::<&str>::new(100, 50);
        let first = permits.try_acquire("a", 50).unwrap();
        assert!(permits.try_acquire("a", 1).is_none());
        let second = permits.try_acquire("b", 50).unwrap();
        assert!(permits.try_acquire("c", 1).is_none() && permits.has_capacity(&"a", 0));
        let over = permits.force_acquire("a", 10);
        assert!(!permits.has_capacity(&"a", 0) && !permits.has_capacity(&"c", 0));
        assert!(permits.try_acquire_uncapped("a", 1).is_none());
        drop((first, over));
        assert!(permits.has_capacity(&"a", 0));
        drop(second);
        let uncapped =
            (permits.try_acquire_uncapped("a", 50), permits.try_acquire_uncapped("a", 50));
        assert!(uncapped.0.is_some() && uncapped.1.is_some());
        assert_eq!((permits.total_usage(), permits.usage_of(&"a")), (100, 100));
        drop(uncapped);
        // A single item fits even if it exceeds the total.
        let large = permits.try_acquire("a", 1000).unwrap();
        assert!(permits.try_acquire("a", 1).is_none() && permits.try_acquire("b", 1).is_none());
        drop(large);
        let usage = permits.0.usage.lock();
        assert_eq!((usage.total, usage.by_client.len()), (0, 0));
    }

    #[tokio::test]
    async fn an_account_holds_half_and_leaves_the_rest_to_others() {
        let permits = Permits::for_accounts(4);
        let own = [permits.try_acquire("a", 1), permits.try_acquire("a", 1)];
        assert!(own.iter().all(Option::is_some) && permits.try_acquire("a", 1).is_none());
        assert!(timeout(SHORT, permits.acquire("a")).await.is_err());
        let others = [permits.acquire("b").await, permits.acquire("c").await];
        assert!(permits.try_acquire("d", 1).is_none());
        let waiting = tokio::spawn({
            let permits = permits.clone();
            async move { drop(permits.acquire("a").await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(others);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "its own share is used up");
        drop(own);
        waiting.await.unwrap();
        assert!(permits.0.usage.lock().waiting.is_empty());
    }

    #[test]
    fn a_single_permit_is_for_anyone() {
        let permits = Permits::for_accounts(1);
        let permit = permits.try_acquire("a", 1).unwrap();
        assert!(permits.try_acquire("b", 1).is_none());
        drop(permit);
        assert!(permits.try_acquire("b", 1).is_some());
        assert!(Permits::for_accounts(0).try_acquire("a", 1).is_none());
    }

    #[test]
    fn those_that_wait_get_permits_in_order_except_beyond_their_shares() {
        let permits = Permits::<&str>::new(2, 1);
        let (a, b) = (permits.try_acquire("a", 1).unwrap(), permits.try_acquire("b", 1).unwrap());
        let places = ["a", "c", "d"].map(|who| permits.enter_queue(who));
        let try_all = || places.each_ref().map(|place| place.try_acquire_if(|_| true));
        assert!(try_all().iter().all(Option::is_none));
        drop(b);
        assert!(places[2].try_acquire_if(|_| true).is_none(), "c is before d");
        assert!(places[1].try_acquire_if(|held| held != 1).is_none());
        let [of_a, of_c, of_d] = try_all();
        assert!(of_a.is_none() && of_c.is_some() && of_d.is_none());
        drop(a);
        let [of_a, _, of_d] = try_all();
        assert!(of_a.is_some() && of_d.is_none());
    }
}
