//! Fails the n-th file operation of a run that uses all features, for every n: with an error, a short write
//! or a full disk. No acknowledged commit is lost. The store continues, or refuses commits and says why. It
//! recovers when the cause is gone.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, folder, quad, text};
use penstock_store::faults::{Failure, Faults, Operation};
use penstock_store::{Error, Options, Store, Transaction, verify_store};
use std::ops::Range;
use std::path::{Path, PathBuf};

fn options() -> Options {
    // Segments of three commits; checkpoints and compactions only where the run calls them.
    Options {
        write_back_bytes: 1 << 20,
        segment_bytes: 400,
        compact_bytes: 1,
        background_maintenance: false,
        ..Options::default()
    }
}

fn open(dir: &Path) -> Result<Store, Error> {
    Store::open(dir, options(), &mut |_| {})
}

/// The state of a run. At every step the store must have exactly the acknowledged commits.
struct Run<'a> {
    dir: PathBuf,
    faults: &'a Faults,
    model: Model,
    next: usize,
}

impl Run<'_> {
    fn commit(&mut self, store: &Store) {
        self.next += 1;
        let mut expected = self.model.clone();
        let new = quad(&format!("s{}", self.next), "p", text(&"value ".repeat(10)));
        let old = expected.quads.iter().find(|_| self.next.is_multiple_of(3)).cloned();
        // A long frame is synced by another thread.
        let value = vec![1; if self.next.is_multiple_of(4) { 20_000 } else { 500 }];
        let done = store.transact::<_, Error>(|change| {
            if let Some(old) = &old {
                assert!(change.remove(old.as_ref())?);
            }
            change.put_document("documents", b"key", &value)?;
            change.insert(new.as_ref())
        });
        if let Some(old) = &old {
            expected.quads.remove(old);
        }
        expected.quads.insert(new);
        expected.documents.insert(("documents".into(), b"key".to_vec()), value);
        match done {
            Ok(_) => self.model = expected,
            Err(error) => self.check_after_failure(store, &error),
        }
        self.check(store);
    }

    /// Checks that after a failure the store continues, or reports that it is poisoned until the cause is
    /// gone.
    fn check_after_failure(&self, store: &Store, error: &Error) {
        let struck = self.faults.first_failure();
        assert!(struck.is_some(), "{error} without a cause");
        match store.poison_cause() {
            None => assert!(error.is_disk_full(), "{struck:?} {error}"),
            Some(cause) => {
                assert!(!cause.is_empty());
                let again =
                    store.transact::<_, Error>(|change| change.put_document("d", b"k", b"v"));
                assert!(matches!(again, Err(Error::Poisoned { .. })), "{struck:?} {again:?}");
            }
        }
        // While the fault persists, the store may stay poisoned. Reads must still be right.
        if store.reopen(&mut |_| {}).is_err() {
            assert!(store.poison_cause().is_some());
            self.faults.clear_plan();
            store.reopen(&mut |_| {}).unwrap();
        }
        assert_eq!(store.poison_cause(), None);
    }

    fn check(&self, store: &Store) {
        let found = Model::of(&store.read(), &["documents", "d"]);
        assert!(
            found == self.model,
            "{:?}: not the acknowledged state",
            self.faults.first_failure()
        );
    }

    fn open(&self) -> Store {
        open(&self.dir).unwrap_or_else(|error| {
            assert!(self.faults.first_failure().is_some(), "{error}");
            self.faults.clear_plan();
            open(&self.dir).unwrap()
        })
    }

    fn run_all(&mut self) {
        let store = self.open();
        for _ in 0..4 {
            self.commit(&store);
        }
        if let Err(error) = store.checkpoint() {
            self.check_after_failure(&store, &error);
        }
        self.commit(&store);
        if let Err(error) = store.pack_segments() {
            assert!(self.faults.first_failure().is_some(), "{error}");
            assert!(store.poison_cause().is_none(), "{error}");
        }
        self.check(&store);
        self.commit(&store);
        for _ in 0..2 {
            if let Err(error) = store.compact_journal() {
                assert!(self.faults.first_failure().is_some(), "{error}");
                if store.poison_cause().is_some() {
                    self.check_after_failure(&store, &error);
                }
            }
            self.commit(&store);
        }
        drop(store);
        let store = self.open();
        self.check(&store);
        self.commit(&store);
        drop(store);
        self.faults.clear_plan();
        let store = open(&self.dir).unwrap();
        self.check(&store);
    }
}

#[test]
fn any_operation_may_fail_in_any_way() {
    let failures =
        [Failure::Io, Failure::DiskFull, Failure::ShortWrite, Failure::ShortWriteDiskFull];
    let mut struck = Vec::new();
    for (failure, lasting) in failures.into_iter().flat_map(|f| [(f, false), (f, true)]) {
        for nth in 1.. {
            let dir = folder();
            let faults = Faults::inject_below(dir.path());
            faults.fail_nth(nth, failure, lasting);
            let dir = dir.path().join("store");
            Run { dir, faults: &faults, model: Model::default(), next: 0 }.run_all();
            let Some((operation, _)) = faults.first_failure() else {
                assert!(nth > 50, "only {nth} operations: too few for this test");
                break;
            };
            if !struck.contains(&operation) {
                struck.push(operation);
            }
        }
    }
    assert!(struck.len() >= 5, "{struck:?}: a kind of operation was never tried");
}

#[test]
fn applying_any_commit_may_fail() {
    for nth in 1.. {
        let dir = folder();
        let faults = Faults::inject_below(dir.path());
        faults.fail_nth_of(Operation::Apply, nth, Failure::Io);
        let dir = dir.path().join("store");
        Run { dir, faults: &faults, model: Model::default(), next: 0 }.run_all();
        if faults.first_failure().is_none() {
            assert!(nth > 8, "only {nth} commits: too few for this test");
            return;
        }
    }
}

#[test]
fn an_open_syncs_the_names_that_a_killed_process_may_have_left() {
    let dir = folder();
    let faults = Faults::inject_below(dir.path());
    let store = dir.path().join("store");
    drop(open(&store).unwrap());
    let mut synced = Vec::new();
    for nth in 1.. {
        faults.fail_nth_of(Operation::Sync, nth, Failure::Io);
        let opened = open(&store);
        let Some((_, path)) = faults.first_failure() else {
            drop(opened.unwrap());
            break;
        };
        synced.push(path);
    }
    for folder in [store.join("journal"), store] {
        assert!(synced.contains(&folder), "{}: {synced:?}", folder.display());
    }
}

#[test]
fn what_a_base_replaces_stays_until_the_name_of_the_base_is_durable() {
    for nth in 1.. {
        let dir = folder();
        let faults = Faults::inject_below(dir.path());
        let store = open(dir.path()).unwrap();
        for n in 0..9 {
            model::add(&store, &[quad(&format!("s{n}"), "p", text(&"value ".repeat(10)))]);
        }
        faults.fail_nth_of(Operation::Sync, nth, Failure::Io);
        let failed = store.compact_journal();
        let files = model::segments(dir.path());
        let is_base = |path: &PathBuf| path.extension().is_some_and(|end| end == "base");
        if !files.iter().any(is_base) {
            continue;
        }
        failed.unwrap_err();
        // Its name is there, but its sync failed.
        faults.fail_nth_of(Operation::Sync, 1, Failure::Io);
        store.retain_frames_after(None).unwrap_err();
        assert_eq!(model::segments(dir.path()), files);
        store.retain_frames_after(None).unwrap();
        assert!(model::segments(dir.path()).len() < files.len());
        return;
    }
}

#[test]
fn after_a_checkpoint_failed_at_any_operation_the_next_one_is_complete() {
    for nth in 1.. {
        let dir = folder();
        let faults = Faults::inject_below(dir.path());
        let store = open(dir.path()).unwrap();
        let each = |store: &Store, documents: Range<u64>, value: Option<&[u8]>| {
            let change = |change: &mut Transaction<'_>| {
                for n in documents {
                    match value {
                        Some(value) => change.put_document("d", &n.to_be_bytes(), value)?,
                        None => change.delete_document("d", &n.to_be_bytes())?,
                    }
                }
                change.insert(quad(&format!("s{}", change.sequence()), "p", text("v")).as_ref())
            };
            store.transact::<_, Error>(change).unwrap();
        };
        each(&store, 0..400, Some(&[1; 100]));
        faults.fail_nth(nth, Failure::Io, false);
        let done = store.checkpoint();
        let Some(struck) = faults.first_failure() else {
            done.unwrap();
            assert!(nth > 8, "only {nth} operations: too few for this test");
            return;
        };
        assert_eq!(done.is_err(), store.poison_cause().is_some(), "{struck:?}");
        store.reopen(&mut |_| {}).unwrap();
        // The blocks that were new are joined.
        each(&store, 5..395, None);
        store.checkpoint().unwrap();
        let model = Model::of(&store.read(), &["d"]);
        assert_eq!(model.documents.len(), 10);
        drop(store);
        assert_eq!(verify_store(dir.path(), &mut |_| {}).unwrap().damage, [""; 0], "{struck:?}");
        assert!(Model::of(&open(dir.path()).unwrap().read(), &["d"]) == model, "{struck:?}");
    }
}
