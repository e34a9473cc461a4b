//! A total limit with a per-client cap, so that no client takes the share of the others.
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A total limit, and how much of it each client uses.
#[derive(Debug)]
pub(super) struct Shares<Who>(Arc<Inner<Who>>);

#[derive(Debug)]
struct Inner<Who> {
    most: u64,
    most_of_one: u64,
    counts: Mutex<Counts<Who>>,
}

#[derive(Debug)]
struct Counts<Who> {
    all: u64,
    of: HashMap<Who, u64>,
}

/// A client's part of the limit. Dropping it releases it.
#[derive(Debug)]
pub(super) struct Share<Who: Eq + Hash> {
    inner: Arc<Inner<Who>>,
    who: Who,
    amount: u64,
}

impl<Who: Eq + Hash + Clone> Shares<Who> {
    pub(super) fn new(most: u64, most_of_one: u64) -> Self {
        let counts = Mutex::new(Counts { all: 0, of: HashMap::new() });
        Self(Arc::new(Inner { most, most_of_one, counts }))
    }

    /// Whether this client may take more.
    pub(super) fn has_room(&self, who: &Who) -> bool {
        self.0.has_room(&self.0.counts(), who, 0)
    }

    /// Takes this amount. `None` if it does not fit.
    pub(super) fn take(&self, who: &Who, amount: u64) -> Option<Share<Who>> {
        let mut counts = self.0.counts();
        self.0.has_room(&counts, who, amount).then(|| self.count(&mut counts, who, amount))
    }

    /// Takes this amount even if it does not fit.
    pub(super) fn add(&self, who: &Who, amount: u64) -> Share<Who> {
        self.count(&mut self.0.counts(), who, amount)
    }

    fn count(&self, counts: &mut Counts<Who>, who: &Who, amount: u64) -> Share<Who> {
        counts.all += amount;
        *counts.of.entry(who.clone()).or_default() += amount;
        Share { inner: self.0.clone(), who: who.clone(), amount }
    }
}

impl<Who: Eq + Hash> Inner<Who> {
    /// A client's only item fits if anything does, however large it is.
    fn has_room(&self, counts: &Counts<Who>, who: &Who, amount: u64) -> bool {
        let own = counts.of.get(who).copied().unwrap_or_default();
        let fits_all = counts.all == 0 || counts.all + amount <= self.most;
        fits_all && (own == 0 || own + amount <= self.most_of_one)
    }

    // Nothing panics while they are held.
    fn counts(&self) -> MutexGuard<'_, Counts<Who>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Who: Eq + Hash> Drop for Share<Who> {
    fn drop(&mut self) {
        let mut counts = self.inner.counts();
        counts.all -= self.amount;
        if let Some(own) = counts.of.get_mut(&self.who) {
            *own -= self.amount;
            if *own == 0 {
                counts.of.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_gets_its_cap_and_all_get_the_total() {
        let shares = Shares::new(100, 50);
        let first = shares.take(&"a", 50).unwrap();
        assert!(shares.take(&"a", 1).is_none());
        let second = shares.take(&"b", 50).unwrap();
        assert!(shares.take(&"c", 1).is_none() && shares.has_room(&"a"));
        let over = shares.add(&"a", 10);
        assert!(!shares.has_room(&"a") && !shares.has_room(&"c"));
        drop((first, over));
        assert!(shares.has_room(&"a"));
        drop(second);
        // A single item fits even if it exceeds the total.
        let large = shares.take(&"a", 1000).unwrap();
        assert!(shares.take(&"a", 1).is_none() && shares.take(&"b", 1).is_none());
        drop(large);
        let counts = shares.0.counts();
        assert_eq!((counts.all, counts.of.len()), (0, 0));
    }
}
