//! Permits: a total, and a share of it for each client, so that no client takes the part of the others. Without shares, the
//! semaphore of tokio suffices.
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::Notify;

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
}

#[derive(Debug)]
struct Usage<Who> {
    total: u64,
    by_client: HashMap<Who, u64>,
    /// The places of each client that waits, in their order, with what wakes them. So finding whose turn it is takes as many
    /// steps as there are clients, however many places one of them has.
    waiting: HashMap<Who, BTreeMap<u64, Arc<Notify>>>,
    /// The number of the next place.
    next_place: u64,
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
pub struct QueuePlace<'a, Who: Eq + Hash> {
    permits: &'a Permits<Who>,
    who: Who,
    number: u64,
    turn: Arc<Notify>,
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
        let usage =
            Usage { total: 0, by_client: HashMap::new(), waiting: HashMap::new(), next_place: 0 };
        Self(Arc::new(Pool { total, share, usage: Mutex::new(usage) }))
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
            if let Some(permit) = place.try_acquire_if(|_| true) {
                return permit;
            }
            place.wait_for_turn().await;
        }
    }

    /// Begins to wait for one permit.
    pub fn enter_queue(&self, who: impl Into<Who>) -> QueuePlace<'_, Who> {
        let (who, turn) = (who.into(), Arc::new(Notify::new()));
        let mut usage = self.0.usage.lock();
        let number = usage.next_place;
        usage.next_place += 1;
        usage.waiting.entry(who.clone()).or_default().insert(number, Arc::clone(&turn));
        QueuePlace { permits: self, who, number, turn }
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

    /// Returns the number of the place whose turn it is, and what wakes it: the first one of those whose client may hold
    /// another permit.
    fn find_turn<'u>(&self, usage: &'u Usage<Who>) -> Option<(u64, &'u Notify)> {
        let mut first: Option<(u64, &Notify)> = None;
        for (who, places) in &usage.waiting {
            if let Some((number, turn)) = places.first_key_value()
                && first.is_none_or(|(first, _)| *number < first)
                && self.has_capacity(usage, who, 1)
            {
                first = Some((*number, turn.as_ref()));
            }
        }
        first
    }

    /// Wakes the place whose turn it is.
    fn wake_next(&self, usage: &Usage<Who>) {
        if let Some((_, turn)) = self.find_turn(usage) {
            turn.notify_one();
        }
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
        self.pool.wake_next(&usage);
    }
}

impl<Who: Eq + Hash + Clone> QueuePlace<'_, Who> {
    /// Takes one permit if it is the turn of this place, and if `condition` holds for the amount that all clients
    /// together hold.
    pub fn try_acquire_if(&self, condition: impl FnOnce(u64) -> bool) -> Option<Permit<Who>> {
        let pool = &*self.permits.0;
        let mut usage = pool.usage.lock();
        let is_turn = pool.find_turn(&usage).is_some_and(|(number, _)| number == self.number);
        let is_granted = is_turn && condition(usage.total);
        is_granted.then(|| self.permits.record(&mut usage, self.who.clone(), 1))
    }

    /// Waits until it may be the turn of this place. This counts from the last time that it was waited for.
    pub async fn wait_for_turn(&self) {
        self.turn.notified().await;
    }
}

/// The next place gets its turn, also after this one has taken a permit, since there may be more.
impl<Who: Eq + Hash> Drop for QueuePlace<'_, Who> {
    fn drop(&mut self) {
        let pool = &*self.permits.0;
        let mut usage = pool.usage.lock();
        if let Some(places) = usage.waiting.get_mut(&self.who) {
            places.remove(&self.number);
            if places.is_empty() {
                usage.waiting.remove(&self.who);
            }
        }
        pool.wake_next(&usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};
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
    /// Counts how often what waits is woken.
    #[derive(Default)]
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_permit_that_is_released_wakes_only_the_one_whose_turn_it_is() {
        let permits = Permits::<&str>::new(3, 2);
        let mut held =
            vec![permits.try_acquire("a", 2).unwrap(), permits.try_acquire("b", 1).unwrap()];
        let wakes = Arc::new(WakeCount::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut context = Context::from_waker(&waker);
        let mut waiting: Vec<_> = (0..1_000).map(|_| Box::pin(permits.acquire("a"))).collect();
        let mut last = Box::pin(permits.acquire("c"));
        for one in &mut waiting {
            assert!(one.as_mut().poll(&mut context).is_pending());
        }
        assert!(last.as_mut().poll(&mut context).is_pending());
        // The share of the first thousand is used up.
        drop(held.pop());
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(last.as_mut().poll(&mut context).is_ready());
        // One that leaves the queue after it was woken passes its turn on.
        drop(held.pop());
        assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
        drop(waiting.remove(0));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 3);
        // There is another permit for the next one.
        assert!(waiting[0].as_mut().poll(&mut context).is_ready());
        assert!(wakes.0.load(Ordering::Relaxed) > 3);
    }
}
