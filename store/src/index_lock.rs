//! The lock of the index. Waiting writers have precedence, so a thread that reads twice at a time waits for ever if a
//! writer comes between the two. With debug assertions, it panics at the second lock, whether a writer came or not.
//!
//! Two threads can wait in the same way, which no assertion finds: one reads under a lock of its own, for which the other
//! waits while it has a reader. So nothing is read under a lock that is taken while a reader exists.
use crate::index::Index;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::ops::{Deref, DerefMut};

#[derive(Debug)]
pub(crate) struct IndexLock {
    lock: RwLock<Index>,
}

/// Shared access to the index.
#[derive(Debug)]
pub(crate) struct IndexReadGuard<'a> {
    guard: RwLockReadGuard<'a, Index>,
    _held: Held,
}

/// Exclusive access to the index.
#[derive(Debug)]
pub(crate) struct IndexWriteGuard<'a> {
    guard: RwLockWriteGuard<'a, Index>,
    _held: Held,
}

impl IndexLock {
    pub(crate) const fn new(index: Index) -> Self {
        Self { lock: RwLock::new(index) }
    }

    /// Waits while a writer has the lock or waits for it.
    pub(crate) fn read(&self) -> IndexReadGuard<'_> {
        self.check_not_held();
        IndexReadGuard { guard: self.lock.read(), _held: Held::record(self) }
    }

    /// Returns `None` while a writer has the lock or waits for it. A thread that has the lock may try.
    pub(crate) fn try_read(&self) -> Option<IndexReadGuard<'_>> {
        let guard = self.lock.try_read()?;
        Some(IndexReadGuard { guard, _held: Held::record(self) })
    }

    /// Waits while another thread has the lock.
    pub(crate) fn write(&self) -> IndexWriteGuard<'_> {
        self.check_not_held();
        IndexWriteGuard { guard: self.lock.write(), _held: Held::record(self) }
    }

    /// Panics with debug assertions if this thread has the lock.
    #[track_caller]
    fn check_not_held(&self) {
        #[cfg(debug_assertions)]
        HELD.with_borrow(|held| {
            let address = std::ptr::from_ref(self).addr();
            assert!(
                !held.contains(&address),
                "a thread locks the index that it has locked already"
            );
        });
    }
}

impl Deref for IndexReadGuard<'_> {
    type Target = Index;

    fn deref(&self) -> &Index {
        &self.guard
    }
}

impl Deref for IndexWriteGuard<'_> {
    type Target = Index;

    fn deref(&self) -> &Index {
        &self.guard
    }
}

impl DerefMut for IndexWriteGuard<'_> {
    fn deref_mut(&mut self) -> &mut Index {
        &mut self.guard
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// The addresses of the locks that this thread has.
    static HELD: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// The record that this thread has a lock. It is empty without debug assertions.
#[derive(Debug)]
struct Held {
    #[cfg(debug_assertions)]
    address: usize,
}

impl Held {
    #[cfg(debug_assertions)]
    fn record(lock: &IndexLock) -> Self {
        let address = std::ptr::from_ref(lock).addr();
        HELD.with_borrow_mut(|held| held.push(address));
        Self { address }
    }

    #[cfg(not(debug_assertions))]
    const fn record(_: &IndexLock) -> Self {
        Self {}
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|held| {
            if let Some(place) = held.iter().position(|address| *address == self.address) {
                held.swap_remove(place);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::{Error, Options, Store};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_second_lock_of_a_thread_panics_also_without_a_writer() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let open = |dir: &tempfile::TempDir| {
            Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap()
        };
        let [store, other] = dirs.each_ref().map(open);
        let panics = |store: &Store| catch_unwind(AssertUnwindSafe(|| drop(store.read()))).is_err();
        let read = store.read();
        assert!(panics(&store));
        assert!(store.try_read().is_some());
        assert!(panics(&store));
        // Another store has another lock, and another thread may read.
        assert!(!panics(&other));
        std::thread::scope(|scope| assert!(!scope.spawn(|| panics(&store)).join().unwrap()));
        drop(read);
        assert!(!panics(&store));
        assert!(store.dry_run::<_, Error>(|_| Ok(panics(&store))).unwrap());
        assert!(!panics(&store));
    }
}
