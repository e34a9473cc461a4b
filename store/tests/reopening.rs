//! While a store is being reopened no caller waits for it, however long that takes, and it does not wait for
//! a backup.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, add, open, quad, text};
use penstock_store::faults::{Failure, Faults};
use penstock_store::{BackupFile, Error, Pattern, Read as _, Store};
use std::fs;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Poisons the store by a failed commit.
fn poison(store: &Store, faults: &Faults) {
    // The frame is written, but its sync fails.
    faults.fail_nth(2, Failure::Io, false);
    let failed = store.transact::<_, Error>(|change| change.put_document("d", b"k", b"v"));
    assert!(matches!(failed, Err(Error::Io { action: "syncing", .. })), "{failed:?}");
    assert!(store.poison_cause().is_some());
}

#[test]
fn commits_during_a_rebuild_are_refused_at_once_and_its_steps_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::inject_below(dir.path());
    let store = open(dir.path());
    for n in 0..50 {
        add(&store, &[quad(&format!("s{n}"), "p", text("value"))]);
    }
    let model = Model::of(&store.read(), &["d"]);
    poison(&store, &faults);
    // The file of an interrupted checkpoint that cannot be finished.
    fs::write(dir.path().join("checkpoint-open"), b"no images").unwrap();
    let (replaying, begun) = channel();
    let (answers, answered) = channel();
    let (resume, resumed) = channel::<()>();
    std::thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || {
            let mut steps = Vec::new();
            let reopened = store.reopen(&mut |_| {
                if steps.is_empty() {
                    replaying.send(()).unwrap();
                    resumed.recv().unwrap();
                }
                steps.push(store.step_count());
            });
            reopened.unwrap();
            // The journal is read, and then replayed.
            assert_eq!(steps.len(), 50 + 51);
            assert!(steps.windows(2).all(|two| two[0] < two[1]), "{steps:?}");
        });
        scope.spawn(move || {
            begun.recv().unwrap();
            let refused = store.transact::<_, Error>(|change| change.put_document("d", b"k", b"v"));
            answers.send(refused.unwrap_err()).unwrap();
            answers.send(store.checkpoint().unwrap_err()).unwrap();
            answers.send(store.read().any(&Pattern::default()).unwrap_err()).unwrap();
        });
        let answers: Vec<_> =
            (0..3).map_while(|_| answered.recv_timeout(Duration::from_mins(1)).ok()).collect();
        resume.send(()).unwrap();
        assert!(
            matches!(
                answers[..],
                [Error::Poisoned { .. }, Error::Poisoned { .. }, Error::Reopening]
            ),
            "{answers:?}"
        );
    });
    assert_eq!(store.poison_cause(), None);
    assert!(Model::of(&store.read(), &["d"]) == model);
    add(&store, &[quad("new", "p", text("value"))]);
    drop(store);
    assert_eq!(open(dir.path()).stats().quads, 51);
}

/// The output of a backup. After its first bytes it poisons the store.
struct Poisoning<'a> {
    store: &'a Store,
    faults: &'a Faults,
    bytes: usize,
}

impl Write for Poisoning<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes == 0 && self.store.poison_cause().is_none() {
            self.faults.fail_nth(1, Failure::Io, false);
            let failed =
                self.store.transact::<_, Error>(|change| change.put_document("d", b"k", b"v"));
            assert!(matches!(failed, Err(Error::Io { action: "writing", .. })), "{failed:?}");
        }
        self.bytes += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The output of a backup. It first poisons the store, and then accepts nothing until the store is reopened.
struct Stalled<'a> {
    store: &'a Store,
    faults: &'a Faults,
    poisoned: Sender<()>,
    reopened: Receiver<()>,
    had_to_wait: bool,
}

impl Write for Stalled<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        poison(self.store, self.faults);
        self.poisoned.send(()).unwrap();
        self.had_to_wait = self.reopened.recv_timeout(Duration::from_mins(1)).is_err();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn reopening_does_not_wait_for_the_reader_of_a_backup() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::inject_below(dir.path());
    let store = open(dir.path());
    add(&store, &[quad("s", "p", text("value"))]);
    let (poisoned, is_poisoned) = channel();
    let (reopen, reopened) = channel();
    std::thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || {
            is_poisoned.recv().unwrap();
            store.reopen(&mut |_| {}).unwrap();
            // Stops waiting if this takes too long.
            let _ = reopen.send(());
        });
        let mut out = Stalled { store, faults: &faults, poisoned, reopened, had_to_wait: false };
        let backup = store.write_backup(&mut out);
        assert!(!out.had_to_wait, "the store was not reopened while the backup waited");
        // Commits that it had read may have been cut off.
        assert!(matches!(backup, Err(Error::Reopening)), "{backup:?}");
    });
    store.write_backup(&mut Vec::new()).unwrap();
    store.compact_journal().unwrap();
}

#[test]
fn a_backup_ends_when_the_store_is_poisoned_and_one_begun_afterwards_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::inject_below(dir.path());
    let store = open(dir.path());
    store
        .transact::<_, Error>(|change| change.put_document("d", b"long", &vec![7; 300_000]))
        .unwrap();
    let mut out = Poisoning { store: &store, faults: &faults, bytes: 0 };
    let given_up = store.write_backup(&mut out);
    assert!(matches!(given_up, Err(Error::Poisoned { .. })), "{given_up:?}");
    assert!(out.bytes < 100, "{} bytes: the backup continued", out.bytes);
    // The disk may never accept writes again.
    store.write_backup(&mut out).unwrap();
    store.reopen(&mut |_| {}).unwrap();
    assert_eq!(store.poison_cause(), None);
    store.write_backup(&mut out).unwrap();
}

#[test]
fn a_store_whose_sync_failed_can_be_backed_up_before_it_is_reopened() {
    let dir = tempfile::tempdir().unwrap();
    let [path, to] = ["backup", "restored"].map(|name| dir.path().join(name));
    let faults = Faults::inject_below(&dir.path().join("store"));
    let store = open(&dir.path().join("store"));
    add(&store, &[quad("s", "p", text("value"))]);
    poison(&store, &faults);
    store.write_backup(&mut fs::File::create(&path).unwrap()).unwrap();
    // After a reopening another commit may have the sequence of the one that was not synced.
    let refused = store.write_durable_backup(&mut Vec::new());
    assert!(matches!(refused, Err(Error::Io { action: "syncing", .. })), "{refused:?}");
    BackupFile::open(&path).unwrap().restore_into(&to, &[]).unwrap();
    assert!(Model::of(&open(&to).read(), &["d"]) == Model::of(&store.read(), &["d"]));
    store.reopen(&mut |_| {}).unwrap();
    let durable = store.write_durable_backup(&mut Vec::new()).unwrap();
    assert_eq!(durable.sequence, store.newest_durable());
}
