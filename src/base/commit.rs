//! Commits on behalf of a client, and the check that each of them runs.
//!
//! A request is authorized before its body is read, and its body may take minutes. Meanwhile its API key may be
//! revoked, its session may end, and its account may be disabled or lose its role. So every change by a client is
//! checked again inside its transaction. Writers run one after the other: a check inside a transaction sees every
//! revocation that was committed before it, and no revocation is committed between the check and the commit.
//!
//! The layers above get the store as a [`GuardedStore`]. Reading is unrestricted; the methods that commit need a
//! [`CommitCheck`], so a handler without one does not compile.
use crate::error::GatewayError;
use penstock_store::{Commit, Error, ReadStore, Store, Transaction, Unsynced};
use std::fmt::Debug;
use std::ops::Deref;

/// Decides, inside a commit, whether its requester is still authorized.
pub trait CommitCheck: Debug + Send + Sync {
    /// Checks the state that this transaction sees. Runs before any change.
    ///
    /// # Errors
    /// - `ErrorClass::Unauthorized` when the credential is no longer valid
    /// - `ErrorClass::Forbidden` when its role no longer suffices
    fn check_commit(&self, transaction: &Transaction<'_>) -> Result<(), GatewayError>;
}

/// What another function adds to a commit.
pub type CommitPart<'p> = &'p dyn Fn(&mut Transaction<'_>) -> Result<(), GatewayError>;

/// The check of commits by the gateway itself: schedules, retention, deletions that a client has begun, and opening the
/// data directory. Never for a request of a client.
#[derive(Debug, Clone, Copy)]
pub struct NoClient;

impl CommitCheck for NoClient {
    fn check_commit(&self, _transaction: &Transaction<'_>) -> Result<(), GatewayError> {
        Ok(())
    }
}

/// Commits on behalf of the client that `check` belongs to: see [`Store::transact`].
///
/// # Errors
/// The errors of `check`, of `change` and of [`Store::transact`].
pub fn commit<T, E: From<Error> + From<GatewayError>>(
    store: &Store,
    check: &dyn CommitCheck,
    change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
) -> Result<(T, Commit), E> {
    Ok(commit_unsynced(store, check, change)?.wait()?)
}

/// As [`commit`], but returns before the commit is synced: see [`Store::transact_unsynced`].
fn commit_unsynced<T, E: From<Error> + From<GatewayError>>(
    store: &Store,
    check: &dyn CommitCheck,
    change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
) -> Result<Unsynced<(T, Commit)>, E> {
    store.transact_unsynced(|transaction| {
        check.check_commit(transaction)?;
        change(transaction)
    })
}

/// The store of the layers above: reading is unrestricted, and each commit needs a check. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GuardedStore(Store);

impl GuardedStore {
    /// Commits on behalf of the client that `check` belongs to: see [`Store::transact`].
    ///
    /// # Errors
    /// The errors of `check`, of `change` and of [`Store::transact`].
    pub fn commit<T, E: From<Error> + From<GatewayError>>(
        &self,
        check: &dyn CommitCheck,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<(T, Commit), E> {
        commit(&self.0, check, change)
    }

    /// As [`Self::commit`], but returns before the commit is synced: see [`Store::transact_unsynced`].
    ///
    /// # Errors
    /// As [`Self::commit`], except those of the sync.
    pub fn commit_unsynced<T, E: From<Error> + From<GatewayError>>(
        &self,
        check: &dyn CommitCheck,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<Unsynced<(T, Commit)>, E> {
        commit_unsynced(&self.0, check, change)
    }

    /// Runs `work` on behalf of the client that `check` belongs to, and keeps none of its changes: see
    /// [`Store::dry_run`].
    ///
    /// # Errors
    /// The errors of `check`, of `work` and of [`Store::dry_run`].
    pub fn dry_run<T, E: From<Error> + From<GatewayError>>(
        &self,
        check: &dyn CommitCheck,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.0.dry_run(|transaction| {
            check.check_commit(transaction)?;
            work(transaction)
        })
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

    fn collect_sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("tests") {
                continue;
            }
            if path.is_dir() {
                collect_sources(&path, found);
            } else if path.extension().is_some_and(|found| found == "rs")
                && !path.ends_with("tests.rs")
            {
                found.push(path);
            }
        }
    }

    /// Checks what the types do not enforce: handlers and use cases must not act as another requester than the one that
    /// `access` authorized.
    #[test]
    fn no_handler_acts_as_the_gateway_itself_or_as_local_administration() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut all = Vec::new();
        for layer in ["service", "http", "api", "web", "graphql"] {
            collect_sources(&root.join(layer), &mut all);
        }
        assert!(all.len() > 50, "{all:?}");
        for path in all.iter().filter(|path| !path.ends_with("http/access.rs")) {
            let text = std::fs::read_to_string(path).unwrap();
            for other in [
                "NoClient",
                "ExportRequester::gateway",
                "Request::of_gateway",
                "Authorized::local",
                ".authorize(",
            ] {
                assert!(!text.contains(other), "{} names {other}", path.display());
            }
        }
    }
}
