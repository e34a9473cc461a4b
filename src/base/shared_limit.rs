//! A total limit with a per-client cap, so that no client takes the share of the others.
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// A total limit, and how much of it each client uses. Cheap to clone.
#[derive(Debug)]
pub struct SharedLimit<Who>(Arc<Inner<Who>>);

impl<Who> Clone for SharedLimit<Who> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Inner<Who> {
    total_limit: u64,
    client_limit: u64,
    usage: Mutex<Usage<Who>>,
}

#[derive(Debug)]
struct Usage<Who> {
    total: u64,
    by_client: HashMap<Who, u64>,
}

/// The amount of a limit that one item of a client uses. Dropping this value releases it.
#[derive(Debug)]
pub struct LimitShare<Who: Eq + Hash> {
    inner: Arc<Inner<Who>>,
    who: Who,
    amount: u64,
}

impl<Who: Eq + Hash + Clone> SharedLimit<Who> {
    /// Creates a limit for all clients together, with a cap for each client.
    pub fn new(total_limit: u64, client_limit: u64) -> Self {
        let usage = Mutex::new(Usage { total: 0, by_client: HashMap::new() });
        Self(Arc::new(Inner { total_limit, client_limit, usage }))
    }

    /// Returns whether this amount exceeds neither the total limit nor that of the client.
    pub fn has_capacity(&self, who: &Who, amount: u64) -> bool {
        self.0.has_capacity(&self.0.lock_usage(), who, amount)
    }

    /// Takes this amount. Returns `None` if it exceeds a limit.
    pub fn try_acquire(&self, who: &Who, amount: u64) -> Option<LimitShare<Who>> {
        let mut usage = self.0.lock_usage();
        self.0.has_capacity(&usage, who, amount).then(|| self.record_usage(&mut usage, who, amount))
    }

    /// Takes this amount, even if it exceeds the limit of the client. Returns `None` if it exceeds the total limit.
    pub fn try_acquire_uncapped(&self, who: &Who, amount: u64) -> Option<LimitShare<Who>> {
        let mut usage = self.0.lock_usage();
        self.0.fits_total(&usage, amount).then(|| self.record_usage(&mut usage, who, amount))
    }

    /// Takes this amount, even if it exceeds a limit.
    pub fn force_acquire(&self, who: &Who, amount: u64) -> LimitShare<Who> {
        self.record_usage(&mut self.0.lock_usage(), who, amount)
    }

    /// Returns the amount that all clients together use.
    pub fn total_usage(&self) -> u64 {
        self.0.lock_usage().total
    }

    fn record_usage(&self, usage: &mut Usage<Who>, who: &Who, amount: u64) -> LimitShare<Who> {
        usage.total += amount;
        *usage.by_client.entry(who.clone()).or_default() += amount;
        LimitShare { inner: self.0.clone(), who: who.clone(), amount }
    }
}

impl<Who: Eq + Hash> Inner<Who> {
    /// Whether this amount fits. While the client uses nothing, its limit does not apply, and while no client uses
    /// anything, the total limit does not apply. So a single item always fits, however large it is.
    fn has_capacity(&self, usage: &Usage<Who>, who: &Who, amount: u64) -> bool {
        let own = usage.by_client.get(who).copied().unwrap_or_default();
        self.fits_total(usage, amount) && (own == 0 || own + amount <= self.client_limit)
    }

    fn fits_total(&self, usage: &Usage<Who>, amount: u64) -> bool {
        usage.total == 0 || usage.total + amount <= self.total_limit
    }

    // No code panics while it holds the lock.
    fn lock_usage(&self) -> MutexGuard<'_, Usage<Who>> {
        self.usage.lock()
    }
}

impl<Who: Eq + Hash> Drop for LimitShare<Who> {
    fn drop(&mut self) {
        let mut usage = self.inner.lock_usage();
        usage.total -= self.amount;
        if let Some(own) = usage.by_client.get_mut(&self.who) {
            *own -= self.amount;
            if *own == 0 {
                usage.by_client.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_gets_its_cap_and_all_get_the_total() {
        let shares = SharedLimit::new(100, 50);
        let first = shares.try_acquire(&"a", 50).unwrap();
        assert!(shares.try_acquire(&"a", 1).is_none());
        let second = shares.try_acquire(&"b", 50).unwrap();
        assert!(shares.try_acquire(&"c", 1).is_none() && shares.has_capacity(&"a", 0));
        let over = shares.force_acquire(&"a", 10);
        assert!(!shares.has_capacity(&"a", 0) && !shares.has_capacity(&"c", 0));
        assert!(shares.try_acquire_uncapped(&"a", 1).is_none());
        drop((first, over));
        assert!(shares.has_capacity(&"a", 0));
        drop(second);
        let uncapped =
            (shares.try_acquire_uncapped(&"a", 50), shares.try_acquire_uncapped(&"a", 50));
        assert!(uncapped.0.is_some() && uncapped.1.is_some());
        assert_eq!(shares.total_usage(), 100);
        drop(uncapped);
        // A single item fits even if it exceeds the total.
        let large = shares.try_acquire(&"a", 1000).unwrap();
        assert!(shares.try_acquire(&"a", 1).is_none() && shares.try_acquire(&"b", 1).is_none());
        drop(large);
        let usage = shares.0.lock_usage();
        assert_eq!((usage.total, usage.by_client.len()), (0, 0));
    }
}
