//! A backup has the state of one moment, regardless of concurrent commits. An incomplete backup is refused. A
//! restored store continues with higher sequences and counters than the original.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, add, blank, iri, open, quad, text};
use oxrdf::{GraphName, Literal, Quad};
use penstock_store::faults::{EXIT_STATUS, Failure, Faults};
use penstock_store::{
    BackupFile, Error, NEW_COUNTERS, Options, Read, Restored, SEQUENCE_JUMP, Store, verify_backup,
    verify_store,
};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

const CHILD_DIR: &str = "PENSTOCK_STORE_RESTORE_DIR";
const CHILD_ENDS_AT: &str = "PENSTOCK_STORE_RESTORE_ENDS_AT";
const COLLECTIONS: [&str; 3] = ["", "counters", "notes"];

fn commit(store: &Store, n: u64) {
    store
        .transact::<_, Error>(|change| {
            let subject = format!("s{}", n % 50);
            change.insert(quad(&subject, "n", text(&n.to_string())).as_ref())?;
            if let Some(before) = n.checked_sub(50) {
                change.remove(quad(&subject, "n", text(&before.to_string())).as_ref())?;
            }
            let odd = Literal::new_language_tagged_literal_unchecked("Zug\u{0}\u{fffd}", "DE-ch");
            change.insert(
                Quad::new(blank(&format!("b{n}")), iri("of"), odd, GraphName::from(blank("g")))
                    .as_ref(),
            )?;
            change.put_document("counters", b"pid", &n.to_be_bytes())?;
            change.put_document("notes", &(n % 30).to_be_bytes(), &n.to_string().into_bytes())?;
            change.delete_document("notes", &(n * 7 % 30).to_be_bytes())
        })
        .unwrap();
}

fn of(store: &Store) -> Model {
    Model::of(&store.read(), &COLLECTIONS)
}

fn restore(dir: &Path, backup: &Path, counters: &[&str]) -> Result<Restored, Error> {
    let file = BackupFile::open(backup)?;
    let (checked, restored) = (file.verify_content(), file.restore_into(dir, counters));
    match &restored {
        Ok(restored) => assert_eq!(restored.backup, checked.unwrap()),
        Err(Error::Corrupt(_)) => assert!(checked.is_err()),
        Err(_) => {}
    }
    restored
}

/// Returns the model with a higher counter, and where new counters begin.
fn jumped(mut model: Model) -> Model {
    let new = ("counters".to_owned(), NEW_COUNTERS.to_vec());
    model.documents.insert(new, SEQUENCE_JUMP.to_be_bytes().to_vec());
    let counter = model.documents.get_mut(&("counters".to_owned(), b"pid".to_vec())).unwrap();
    let number = u64::from_be_bytes(counter.as_slice().try_into().unwrap());
    *counter = (number + SEQUENCE_JUMP).to_be_bytes().to_vec();
    model
}

/// Returns the backup of a store with ten commits, and what its restored store has.
fn back_up_ten_commits(dir: &Path) -> (PathBuf, Model) {
    let store = open(&dir.join("store"));
    for n in 0..10 {
        commit(&store, n);
    }
    let mut bytes = Vec::new();
    store.write_backup(&mut bytes).unwrap();
    (written(dir, &bytes), jumped(of(&store)))
}

fn written(dir: &Path, bytes: &[u8]) -> PathBuf {
    let path = dir.join("backup");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_restored_store_has_the_backed_up_state_and_higher_sequences() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("store"));
    for n in 0..120 {
        commit(&store, n);
    }
    let mut bytes = Vec::new();
    let backup = store.write_backup(&mut bytes).unwrap();
    assert_eq!((backup.sequence, backup.quads), (120, store.stats().quads));
    let model = of(&store);
    let restored_dir = dir.path().join("restored");
    let path = written(dir.path(), &bytes);
    let restored = restore(&restored_dir, &path, &["counters", "none"]).unwrap();
    assert_eq!((restored.backup, restored.sequence), (backup, 120 + SEQUENCE_JUMP));
    assert_eq!(restored.counters, 1);
    let again = open(&restored_dir);
    assert_eq!(of(&again), jumped(model.clone()));
    assert_eq!(add(&again, &[quad("new", "p", text("v"))]), 121 + SEQUENCE_JUMP);
    again.compact_journal().unwrap();
    drop(again);
    fs::remove_dir_all(restored_dir.join("index")).unwrap();
    let mut expected = jumped(model);
    expected.quads.insert(quad("new", "p", text("v")));
    assert_eq!(of(&open(&restored_dir)), expected);
    assert!(matches!(
        restore(&restored_dir, &path, &[]),
        Err(Error::InUse { .. } | Error::NotEmpty { .. })
    ));
}

#[test]
fn a_restored_backup_of_an_empty_store_accepts_commits() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    open(&dir.path().join("store")).write_backup(&mut bytes).unwrap();
    let to = dir.path().join("restored");
    restore(&to, &written(dir.path(), &bytes), &[]).unwrap();
    assert_eq!(add(&open(&to), &[quad("new", "p", text("v"))]), 1 + SEQUENCE_JUMP);
    assert_eq!(verify_store(&to, &mut |_| {}).unwrap().damage, [""; 0]);
    assert_eq!(open(&to).stats().quads, 1);
}

/// Commits whenever something is written to it.
struct Meddling<'a> {
    bytes: Vec<u8>,
    store: &'a Store,
    n: &'a AtomicU64,
}

impl Write for Meddling<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for _ in 0..3 {
            commit(self.store, self.n.fetch_add(1, Ordering::Relaxed));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn concurrent_commits_are_in_a_backup_completely_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 3_000, compact_bytes: 10_000, ..Options::default() };
    let store = Store::open(&dir.path().join("store"), options, &mut |_| {}).unwrap();
    let n = AtomicU64::new(0);
    for _ in 0..60 {
        commit(&store, n.fetch_add(1, Ordering::Relaxed));
    }
    for round in 0..3 {
        // Enough for several parts, so that commits come between pages.
        let noise: Vec<Quad> = (0..4_000)
            .map(|k| quad(&format!("x{k}"), "long", text(&format!("{round} {k} ").repeat(30))))
            .collect();
        add(&store, &noise);
        let mut out = Meddling { bytes: Vec::new(), store: &store, n: &n };
        let backup = store.write_backup(&mut out).unwrap();
        let path = written(dir.path(), &out.bytes);
        let to = dir.path().join(format!("restored {round}"));
        restore(&to, &path, &[]).unwrap();
        let restored = open(&to);
        let read = restored.read();
        // The counter says which commits are in the backup.
        let last = read.read_document("counters", b"pid").unwrap().unwrap();
        let last = u64::from_be_bytes(last.try_into().unwrap());
        assert_eq!(backup.sequence, last + 2 + round);
        let model = tempfile::tempdir().unwrap();
        let model = open(model.path());
        for k in 0..=last {
            commit(&model, k);
        }
        let mut expected = of(&model);
        let found = Model::of(&read, &COLLECTIONS);
        expected.quads.extend((0..=round).flat_map(|round| {
            (0..4_000).map(move |k| {
                quad(&format!("x{k}"), "long", text(&format!("{round} {k} ").repeat(30)))
            })
        }));
        assert!(found == expected, "round {round}");
    }
}

#[test]
fn an_incomplete_or_damaged_backup_is_refused_and_restores_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("store"));
    for n in 0..10 {
        commit(&store, n);
    }
    let mut bytes = Vec::new();
    store.write_backup(&mut bytes).unwrap();
    let to = dir.path().join("restored");
    let refused = |bytes: &[u8]| {
        let path = written(dir.path(), bytes);
        assert!(
            matches!(restore(&to, &path, &[]), Err(Error::Corrupt(place)) if place.path == path)
        );
        let mut left: Vec<_> = fs::read_dir(&to).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["journal.new", "lock"]);
        assert_eq!(fs::read_dir(to.join("journal.new")).unwrap().count(), 0);
    };
    for length in (0..bytes.len()).step_by(7) {
        refused(&bytes[..length]);
    }
    for at in (12..bytes.len()).step_by(5) {
        let mut harmed = bytes.clone();
        harmed[at] ^= 1;
        refused(&harmed);
    }
    let mut longer = bytes.clone();
    longer.push(0);
    refused(&longer);
    // No open begins an empty store in its place.
    let opened = Store::open(&to, Options::default(), &mut |_| {}).map(drop);
    assert!(matches!(opened, Err(Error::UnfinishedRestore { .. })), "{opened:?}");
    restore(&to, &written(dir.path(), &bytes), &[]).unwrap();
}

/// A stream that breaks off.
struct BrokenLink;

impl io::Read for BrokenLink {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

#[test]
fn a_stream_that_breaks_off_is_not_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    commit(&store, 0);
    let mut bytes = Vec::new();
    store.write_backup(&mut bytes).unwrap();
    let path = Path::new("backup");
    for length in 0..=bytes.len() {
        let mut stream = io::Read::chain(&bytes[..length], BrokenLink);
        let error = verify_backup(&mut stream, path).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "after {length} bytes: {error}");
    }
    verify_backup(&mut bytes.as_slice(), path).unwrap();
    bytes.push(0);
    assert!(matches!(verify_backup(&mut bytes.as_slice(), path), Err(Error::Corrupt(_))));
}

/// The child process in which a restore is interrupted. It does nothing unless started by the test.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(CHILD_DIR).map(PathBuf::from) else { return };
    let nth = std::env::var(CHILD_ENDS_AT).unwrap().parse().unwrap();
    let to = dir.join("restored");
    let faults = Faults::inject_below(&to);
    faults.fail_nth(nth, Failure::Exit, false);
    BackupFile::open(&dir.join("backup")).unwrap().restore_into(&to, &["counters"]).unwrap();
}

#[test]
fn a_restore_interrupted_at_any_operation_is_refused_until_it_is_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let (backup, expected) = back_up_ten_commits(dir.path());
    let to = dir.path().join("restored");
    let mut refused = 0;
    for is_repeated in [false, true] {
        for nth in 1.. {
            if is_repeated {
                let left = to.join("journal.new");
                fs::create_dir_all(&left).unwrap();
                fs::write(left.join("00000000000000000001.journal"), b"of another attempt")
                    .unwrap();
            }
            let ended = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "child", "--test-threads=1"])
                .env(CHILD_DIR, dir.path())
                .env(CHILD_ENDS_AT, nth.to_string())
                .output()
                .unwrap();
            let is_whole = ended.status.success();
            assert!(is_whole || ended.status.code() == Some(EXIT_STATUS), "{ended:?}");
            let begun = fs::read_dir(&to)
                .is_ok_and(|names| names.flatten().any(|entry| entry.file_name() != "lock"));
            match Store::open(&to, Options::default(), &mut |_| {}) {
                Ok(store) if begun => assert!(of(&store) == expected, "operation {nth}"),
                // Nothing of the restore exists yet.
                Ok(_) => assert!(!is_repeated, "operation {nth}: an empty store in its place"),
                Err(Error::UnfinishedRestore { path }) => {
                    assert_eq!(path, to);
                    assert!(matches!(
                        verify_store(&to, &mut |_| {}),
                        Err(Error::UnfinishedRestore { .. })
                    ));
                    refused += 1;
                    restore(&to, &backup, &["counters"]).unwrap();
                    assert!(of(&open(&to)) == expected, "operation {nth}: repeated restore");
                }
                Err(error) => panic!("operation {nth}: {error}"),
            }
            fs::remove_dir_all(&to).unwrap();
            if is_whole {
                break;
            }
        }
    }
    assert!(refused > 8, "only {refused} operations: too few for this test");
}

#[test]
fn a_restore_that_fails_at_any_operation_leaves_no_store_and_can_be_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let (backup, expected) = back_up_ten_commits(dir.path());
    let to = dir.path().join("restored");
    let faults = Faults::inject_below(&to);
    for failure in [Failure::Io, Failure::DiskFull] {
        for nth in 1.. {
            faults.fail_nth(nth, failure, false);
            let restored = restore(&to, &backup, &["counters"]);
            faults.clear_plan();
            let failed = faults.first_failure();
            if restored.is_err() {
                assert!(!to.join("journal").exists(), "operation {nth}: {failed:?}");
                restore(&to, &backup, &["counters"]).unwrap();
            }
            assert!(of(&open(&to)) == expected, "operation {nth}: {failed:?}");
            fs::remove_dir_all(&to).unwrap();
            if failed.is_none() {
                assert!(nth > 8, "only {nth} operations: too few for this test");
                break;
            }
        }
    }
}

struct Failing;

impl Write for Failing {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_base_of_a_journal_is_refused_as_a_backup() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("store");
    let store = open(&from);
    commit(&store, 0);
    // A failing writer ends the backup, and the store continues.
    let error = store.write_backup(&mut Failing).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    commit(&store, 1);
    store.compact_journal().unwrap();
    drop(store);
    let segment = model::newest_segment(&from);
    let error = restore(&dir.path().join("to"), &segment, &[]).unwrap_err();
    assert!(matches!(error, Error::Corrupt(_)), "{error}");
    assert!(matches!(restore(&from, &segment, &[]), Err(Error::NotEmpty { .. })));
}
