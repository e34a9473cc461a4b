//! Commits on behalf of a client, and the check that each of them makes.
//!
//! A request is authorized before its body is read, and its body may take minutes. Meanwhile its API key may
//! be revoked, its session may end, its account may be disabled or lose its role. So whatever a client changes
//! is checked again inside the transaction that changes it. Writers run one after the other: a check inside a
//! transaction sees every revocation that was committed before it, and none is committed between the check and
//! the commit.
//!
//! The layers above get the store as a [`GuardedStore`]. It reads like any other, and its only way to commit
//! takes a [`CommitCheck`]: a handler without one does not compile.
use crate::fault::Fault;
use penstock_store::{Commit, Error, ReadStore, Store, Transaction};
use std::fmt::Debug;
use std::ops::Deref;

/// Decides, inside a commit, whether whoever asked for it may still do so.
pub trait CommitCheck: Debug + Send + Sync {
    /// Checks the state that this transaction sees. It runs before anything is changed.
    ///
    /// # Errors
    /// `Kind::Unauthorized` when the credential has ended; `Kind::Forbidden` when its role no longer suffices.
    fn check(&self, transaction: &Transaction<'_>) -> Result<(), Fault>;
}

/// The gateway itself asks, not a client: schedules, retention, and what opens the data directory. Never for
/// a request.
#[derive(Debug, Clone, Copy)]
pub struct NoClient;

impl CommitCheck for NoClient {
    fn check(&self, _transaction: &Transaction<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// [`Store::transact`] on behalf of the client that `check` stands for.
///
/// # Errors
/// What `check` and `change` fail with, and as [`Store::transact`].
pub fn commit<T, E: From<Error> + From<Fault>>(
    store: &Store,
    check: &dyn CommitCheck,
    change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
) -> Result<(T, Commit), E> {
    store.transact(|transaction| {
        check.check(transaction)?;
        change(transaction)
    })
}

/// The store of the layers above: reads are free, and each commit takes a check. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GuardedStore(Store);

impl GuardedStore {
    /// Commits on behalf of the client that `check` stands for: see [`Store::transact`].
    ///
    /// # Errors
    /// What `check` and `change` fail with, and as [`Store::transact`].
    pub fn commit<T, E: From<Error> + From<Fault>>(
        &self,
        check: &dyn CommitCheck,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<(T, Commit), E> {
        commit(&self.0, check, change)
    }
}

impl From<Store> for GuardedStore {
    fn from(store: Store) -> Self {
        Self(store)
    }
}

impl Deref for GuardedStore {
    type Target = ReadStore;

    fn deref(&self) -> &ReadStore {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if !path.ends_with("tests.rs") {
                found.push(path);
            }
        }
    }

    /// What no type forbids: to name another requester than the one that `access` let in.
    #[test]
    fn no_handler_acts_as_the_gateway_itself_or_as_local_administration() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut all = Vec::new();
        for layer in ["http", "graphql"] {
            sources(&root.join(layer), &mut all);
        }
        assert!(all.len() > 50, "{all:?}");
        for path in all.iter().filter(|path| !path.ends_with("http/access.rs")) {
            let text = std::fs::read_to_string(path).unwrap();
            for other in ["NoClient", "By::gateway", "Authorized::local", ".authorize("] {
                assert!(!text.contains(other), "{} names {other}", path.display());
            }
        }
    }
}
