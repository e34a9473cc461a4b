//! A total limit with a per-client cap, so that no client takes the share of the others.
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// A client's part of the limit. Dropping it releases it.
#[derive(Debug)]
pub struct LimitShare<Who: Eq + Hash> {
    inner: Arc<Inner<Who>>,
    who: Who,
    amount: u64,
}

impl<Who: Eq + Hash + Clone> SharedLimit<Who> {
    /// Allows `total_limit` for all clients together, and `client_limit` for each.
    pub fn new(total_limit: u64, client_limit: u64) -> Self {
        let usage = Mutex::new(Usage { total: 0, by_client: HashMap::new() });
        Self(Arc::new(Inner { total_limit, client_limit, usage }))
    }

    /// Returns whether this amount would fit.
    pub fn has_capacity(&self, who: &Who, amount: u64) -> bool {
        self.0.has_capacity(&self.0.lock_usage(), who, amount)
    }

    /// Takes this amount. `None` if it does not fit.
    pub fn try_acquire(&self, who: &Who, amount: u64) -> Option<LimitShare<Who>> {
        let mut counts = self.0.lock_usage();
        self.0
            .has_capacity(&counts, who, amount)
            .then(|| self.record_usage(&mut counts, who, amount))
    }

    /// Takes this amount even if it does not fit.
    pub fn force_acquire(&self, who: &Who, amount: u64) -> LimitShare<Who> {
        self.record_usage(&mut self.0.lock_usage(), who, amount)
    }

    fn record_usage(&self, counts: &mut Usage<Who>, who: &Who, amount: u64) -> LimitShare<Who> {
        counts.total += amount;
        *counts.by_client.entry(who.clone()).or_default() += amount;
        LimitShare { inner: self.0.clone(), who: who.clone(), amount }
    }
}

impl<Who: Eq + Hash> Inner<Who> {
    /// A client's only item fits if anything does, however large it is.
    fn has_capacity(&self, counts: &Usage<Who>, who: &Who, amount: u64) -> bool {
        let own = counts.by_client.get(who).copied().unwrap_or_default();
        let fits_all = counts.total == 0 || counts.total + amount <= self.total_limit;
        fits_all && (own == 0 || own + amount <= self.client_limit)
    }

    // Nothing panics while they are held.
    fn lock_usage(&self) -> MutexGuard<'_, Usage<Who>> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Who: Eq + Hash> Drop for LimitShare<Who> {
    fn drop(&mut self) {
        let mut counts = self.inner.lock_usage();
        counts.total -= self.amount;
        if let Some(own) = counts.by_client.get_mut(&self.who) {
            *own -= self.amount;
            if *own == 0 {
                counts.by_client.remove(&self.who);
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
        drop((first, over));
        assert!(shares.has_capacity(&"a", 0));
        drop(second);
        // A single item fits even if it exceeds the total.
        let large = shares.try_acquire(&"a", 1000).unwrap();
        assert!(shares.try_acquire(&"a", 1).is_none() && shares.try_acquire(&"b", 1).is_none());
        drop(large);
        let counts = shares.0.lock_usage();
        assert_eq!((counts.total, counts.by_client.len()), (0, 0));
    }
}
