//! A commit that requires a newer format raises that of the store. From then on no file with such a commit has
//! the version of an older format, and a program that knows only the older one refuses the store, whatever was
//! interrupted.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod model;

use model::{Model, copy, folder, quad, segments, text};
use penstock_store::faults::{EXIT_STATUS, Failure, Faults};
use penstock_store::{BackupFile, Error, Format, Options, Store, Transaction, verify_store};
use proptest::prelude::*;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest versions that a program for format 2 reads.
const KNOWN_IN_SEGMENTS: u32 = 2;
const KNOWN_IN_BASES: u32 = 1;
const CHILD_DIR: &str = "PENSTOCK_STORE_FORMAT_DIR";
const CHILD_ENDS_AT: &str = "PENSTOCK_STORE_FORMAT_ENDS_AT";
const CHILD_START: &str = "PENSTOCK_STORE_FORMAT_START";

fn options() -> Options {
    // Segments of a few commits. Packing and compaction only where a test calls them.
    Options { segment_bytes: 1_000, background_maintenance: false, ..Options::default() }
}

fn try_open(dir: &Path) -> Result<Store, Error> {
    Store::open(dir, options(), &mut |_| {})
}

fn open(dir: &Path) -> Store {
    try_open(dir).unwrap()
}

fn of(store: &Store) -> Model {
    Model::of(&store.read(), &["d"])
}

fn put(change: &mut Transaction<'_>, n: u64) -> Result<(), Error> {
    change.put_document("d", &(n % 20).to_be_bytes(), &n.to_string().repeat(20).into_bytes())?;
    change.insert(quad(&format!("s{n}"), "p", text(&n.to_string())).as_ref())?;
    Ok(())
}

fn commit(store: &Store, n: u64) -> Result<u64, Error> {
    store.transact::<_, Error>(|change| put(change, n)).map(|((), commit)| commit.sequence)
}

/// Commits what a program for format 2 would misread.
fn commit_new(store: &Store, n: u64) -> Result<u64, Error> {
    let change = |change: &mut Transaction<'_>| {
        change.require_format(Format::V3);
        put(change, n)
    };
    store.transact::<_, Error>(change).map(|((), commit)| commit.sequence)
}

fn version(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[8..12].try_into().unwrap())
}

/// Returns the sequence of the newest commit in a base or a backup.
fn newest_in_base(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.last_chunk().unwrap())
}

/// A base or a segment.
struct JournalFile {
    path: PathBuf,
    /// Whether a program for format 2 reads it.
    is_old: bool,
    /// Whether it has, or would have, a commit that such a program misreads.
    has_new: bool,
}

/// Returns the files of a journal. `first_new` is the sequence of the first commit that requires the format 3.
fn journal_files(dir: &Path, first_new: Option<u64>) -> Vec<JournalFile> {
    let paths = segments(dir);
    let first = |path: &Path| path.file_stem().unwrap().to_str().unwrap().parse::<u64>().unwrap();
    let mut next_segment = None;
    let mut files = Vec::new();
    // The next open removes unfinished files.
    for path in paths.iter().rev().filter(|path| path.extension().is_some_and(|e| e != "new")) {
        let bytes = fs::read(path).unwrap();
        let (known, last) = if is_journal(path) {
            let last = next_segment.replace(first(path)).map_or(u64::MAX, |next| next - 1);
            (KNOWN_IN_SEGMENTS, last)
        } else {
            (KNOWN_IN_BASES, newest_in_base(&bytes))
        };
        files.push(JournalFile {
            path: path.clone(),
            is_old: version(&bytes) <= known,
            has_new: first_new.is_some_and(|first| first <= last),
        });
    }
    files
}

/// Asserts that a program for format 2 refuses exactly the files since the first commit that it misreads.
fn check_versions(dir: &Path, first_new: Option<u64>) {
    for file in journal_files(dir, first_new) {
        assert_ne!(file.is_old, file.has_new, "{}", file.path.display());
    }
}

/// Works as [`check_versions`], for a store that was interrupted: the format may have been raised before the
/// commit that requires it.
fn check_after_interruption(dir: &Path, first_new: Option<u64>) {
    for file in journal_files(dir, first_new) {
        assert!(!(file.is_old && file.has_new), "{}", file.path.display());
    }
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "journal")
}

#[test]
fn a_new_store_has_the_oldest_format_and_a_commit_raises_it_for_good() {
    let dir = folder();
    let store = open(dir.path());
    assert_eq!(store.format(), Format::V2);
    commit(&store, 1).unwrap();
    check_versions(dir.path(), None);
    let first = commit_new(&store, 2).unwrap();
    assert_eq!(store.format(), Format::V3);
    check_versions(dir.path(), Some(first));
    // One segment for each format: further commits need no new one.
    assert_eq!(segments(dir.path()).len(), 2);
    commit_new(&store, 3).unwrap();
    commit(&store, 4).unwrap();
    assert_eq!(segments(dir.path()).len(), 2);
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.format(), Format::V3);
    for n in 5..30 {
        commit(&store, n).unwrap();
    }
    drop(store);
    check_versions(dir.path(), Some(first));
    let verified = verify_store(dir.path(), &mut |_| {}).unwrap();
    assert_eq!((verified.damage, verified.format), (vec![], Format::V3));
}

#[test]
fn a_newest_segment_of_an_older_format_than_another_file_is_damage() {
    let (dir, copied) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    commit(&open(dir.path()), 0).unwrap();
    copy(dir.path(), copied.path());
    let store = open(copied.path());
    for n in 1..30 {
        commit(&store, n).unwrap();
    }
    drop(store);
    let older = segments(copied.path()).pop().unwrap();
    let first: u64 = older.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let store = open(dir.path());
    let mut newest = commit_new(&store, 1).unwrap();
    while newest < first - 1 {
        newest = commit(&store, newest).unwrap();
    }
    drop(store);
    assert_eq!(verify_store(dir.path(), &mut |_| {}).unwrap().damage, Vec::<String>::new());
    // An operator puts back a segment of a copy that never got the newer format.
    fs::copy(&older, dir.path().join("journal").join(older.file_name().unwrap())).unwrap();
    let damage = verify_store(dir.path(), &mut |_| {}).unwrap().damage;
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert!(
        damage[0].contains("the newest segment has format 2, and a file before it has format 3"),
        "{damage:?}"
    );
}

#[test]
fn a_segment_without_frames_is_replaced_by_one_of_the_new_format() {
    let dir = folder();
    let store = open(dir.path());
    let first = commit_new(&store, 1).unwrap();
    assert_eq!((first, segments(dir.path()).len()), (1, 1));
    check_versions(dir.path(), Some(first));
    let on_disk: u64 =
        segments(dir.path()).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!(store.stats().journal_bytes, on_disk);
    let model = of(&store);
    drop(store);
    assert_eq!(of(&open(dir.path())), model);
}

#[test]
fn a_change_that_fails_or_changes_nothing_raises_nothing() {
    let dir = folder();
    let store = open(dir.path());
    commit(&store, 1).unwrap();
    let failed = store.transact::<(), Error>(|change| {
        change.require_format(Format::V3);
        put(change, 2)?;
        Err(Error::Closing)
    });
    assert!(matches!(failed, Err(Error::Closing)));
    commit_new(&store, 1).unwrap();
    assert_eq!(store.format(), Format::V2);
    check_versions(dir.path(), None);
}

#[test]
fn a_backup_during_which_the_format_is_raised_fails_and_the_next_one_has_it() {
    /// Commits when the second part is written, so that the header was written before.
    struct Meddling<'a>(&'a Store, usize);

    impl Write for Meddling<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1 == 2 {
                commit_new(self.0, 9_999).unwrap();
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let dir = folder();
    let store = open(&dir.path().join("store"));
    for n in 0..5 {
        store
            .transact::<_, Error>(|change| change.put_document("d", &[n], &vec![n; 200_000]))
            .unwrap();
    }
    let failed = store.write_backup(&mut Meddling(&store, 0));
    assert!(matches!(failed, Err(Error::FormatRaised)), "{failed:?}");
    let first = store.stats().sequence;
    let mut bytes = Vec::new();
    store.write_backup(&mut bytes).unwrap();
    assert_eq!(newest_in_base(&bytes), first);
    assert!(version(&bytes) > KNOWN_IN_BASES);
    let (path, restored) = (dir.path().join("backup"), dir.path().join("restored"));
    fs::write(&path, bytes).unwrap();
    BackupFile::open(&path).unwrap().restore_into(&restored, &[]).unwrap();
    check_versions(&restored, Some(first));
    assert_eq!(open(&restored).format(), Format::V3);
}

#[test]
fn a_compaction_during_which_the_format_is_raised_writes_a_base_that_has_it() {
    for round in 0..5 {
        let dir = folder();
        let store = open(dir.path());
        let change = |change: &mut Transaction<'_>| {
            (0..3_000).try_for_each(|n: u64| {
                change.insert(quad("s", &format!("p{n}"), text(&n.to_string())).as_ref()).map(drop)
            })
        };
        store.transact::<_, Error>(change).unwrap();
        let first = std::thread::scope(|scope| {
            let compacting = scope.spawn(|| store.compact_journal());
            // Not before the base is begun, or after some commits of an older format.
            let mut n = 0;
            while n < round * 2 || segments(dir.path()).len() == 1 {
                n += 1;
                commit(&store, n).unwrap();
            }
            let first = commit_new(&store, n + 1).unwrap();
            commit(&store, n + 2).unwrap();
            compacting.join().unwrap().unwrap();
            first
        });
        check_versions(dir.path(), Some(first));
        let model = of(&store);
        drop(store);
        fs::remove_dir_all(dir.path().join("index")).unwrap();
        let store = open(dir.path());
        assert_eq!((store.format(), of(&store)), (Format::V3, model));
    }
}

/// Prepares a store in one of the states in which a commit can raise the format.
fn start(store: &Store, state: usize) -> Result<u64, Error> {
    let commits = [0, 1, 2, 2][state];
    for n in 1..=commits {
        commit(store, n)?;
    }
    if state == 3 {
        // The newest segment is empty, and a base is before it.
        store.compact_journal()?;
    }
    Ok(commits)
}

#[test]
fn any_operation_may_fail_while_the_format_is_raised() {
    let failures =
        [Failure::Io, Failure::DiskFull, Failure::ShortWrite, Failure::ShortWriteDiskFull];
    for (state, failure) in (0..4).flat_map(|state| failures.map(|failure| (state, failure))) {
        for nth in 1.. {
            let dir = folder();
            let faults = Faults::inject_below(dir.path());
            let store = open(dir.path());
            let n = start(&store, state).unwrap();
            let before = of(&store);
            faults.fail_nth(nth, failure, false);
            let done = commit_new(&store, n + 1);
            let struck = faults.first_failure();
            faults.clear_plan();
            let what = format!("state {state}, {failure:?}, {struck:?}, {done:?}");
            assert_eq!(done.is_err(), struck.is_some(), "{what}");
            if done.is_err() {
                assert!(of(&store) == before || store.poison_cause().is_some(), "{what}");
                store.reopen(&mut |_| {}).unwrap();
                assert!(of(&store) == before, "{what}");
                check_after_interruption(dir.path(), None);
                // An older commit continues in either segment.
                commit(&store, n + 2).unwrap();
            }
            let first = commit_new(&store, n + 3).unwrap().min(done.unwrap_or(u64::MAX));
            check_after_interruption(dir.path(), Some(first));
            assert_eq!(store.format(), Format::V3);
            let model = of(&store);
            drop(store);
            assert_eq!(verify_store(dir.path(), &mut |_| {}).unwrap().damage, [""; 0], "{what}");
            fs::remove_dir_all(dir.path().join("index")).unwrap();
            assert!(of(&open(dir.path())) == model, "{what}");
            if struck.is_none() {
                assert!(nth > 5, "only {nth} operations: too few for this test");
                break;
            }
        }
    }
}

/// The child process that ends at any operation. It does nothing unless started by the test.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(CHILD_DIR).map(PathBuf::from) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let store = open(&dir);
    let n = start(&store, usize::try_from(number(CHILD_START)).unwrap()).unwrap();
    let faults = Faults::inject_below(&dir);
    faults.fail_nth(number(CHILD_ENDS_AT), Failure::Exit, false);
    let acknowledged = |n: u64| fs::write(dir.with_extension("acknowledged"), n.to_string());
    commit_new(&store, n + 1).unwrap();
    acknowledged(n + 1).unwrap();
    commit(&store, n + 2).unwrap();
    acknowledged(n + 2).unwrap();
    store.pack_segments().unwrap();
    store.compact_journal().unwrap();
}

#[test]
fn a_process_may_end_at_any_operation_while_the_format_is_raised() {
    for state in 0..4 {
        for nth in 1.. {
            let work = folder();
            let dir = work.path().join("store");
            let ended = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "child", "--test-threads=1"])
                .env(CHILD_DIR, &dir)
                .env(CHILD_START, state.to_string())
                .env(CHILD_ENDS_AT, nth.to_string())
                .output()
                .unwrap();
            let is_whole = ended.status.success();
            assert!(is_whole || ended.status.code() == Some(EXIT_STATUS), "{ended:?}");
            let n = [0, 1, 2, 2][state];
            let acknowledged = fs::read_to_string(dir.with_extension("acknowledged"))
                .map_or(n, |text| text.parse().unwrap());
            // The new record may be in the journal although nobody knows. So it counts from its sequence on.
            let has_new = segments(&dir)
                .iter()
                .filter(|path| is_journal(path))
                .any(|path| find_sequence(&fs::read(path).unwrap(), n + 1));
            check_after_interruption(&dir, (has_new || acknowledged > n).then_some(n + 1));
            let store = open(&dir);
            let sequence = store.stats().sequence;
            assert!(sequence >= acknowledged, "state {state}, operation {nth}");
            assert!(
                sequence <= n || store.format() == Format::V3,
                "state {state}, operation {nth}"
            );
            commit_new(&store, 99).unwrap();
            check_after_interruption(&dir, Some(n + 1));
            if is_whole {
                assert!(nth > 15, "only {nth} operations: too few for this test");
                break;
            }
        }
    }
}

/// Returns whether an unpacked segment has the frame of a sequence.
fn find_sequence(segment: &[u8], sequence: u64) -> bool {
    let mut at = 40;
    while let Some(length) = segment.get(at..at + 4) {
        let length = u32::from_le_bytes(length.try_into().unwrap());
        if segment.get(at + 8..at + 16) == Some(sequence.to_le_bytes().as_slice()) {
            return true;
        }
        at += 16 + usize::try_from(length).unwrap();
    }
    false
}

#[derive(Debug, Clone)]
enum Step {
    Commit,
    CommitNew,
    Fail,
    Checkpoint,
    Compact,
    Pack,
    Reopen,
    LoseIndex,
    BackUpAndRestore,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => Just(Step::Commit),
        1 => Just(Step::CommitNew),
        1 => Just(Step::Fail),
        1 => Just(Step::Checkpoint),
        2 => Just(Step::Compact),
        2 => Just(Step::Pack),
        2 => Just(Step::Reopen),
        1 => Just(Step::LoseIndex),
        2 => Just(Step::BackUpAndRestore),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn every_file_since_the_format_was_raised_has_it(
        steps in steps(),
        segment_bytes in prop::sample::select(vec![1_u64, 600, 1 << 20]),
    ) {
        let work = folder();
        let options = Options { segment_bytes, ..options() };
        let open = |dir: &Path| Store::open(dir, options.clone(), &mut |_| {}).unwrap();
        let mut dir = work.path().join("0");
        let mut store = open(&dir);
        let mut first_new = None;
        for (n, step) in (1..).zip(steps) {
            match step {
                Step::Commit => drop(commit(&store, n).unwrap()),
                Step::CommitNew => {
                    let sequence = commit_new(&store, n).unwrap();
                    first_new.get_or_insert(sequence);
                }
                Step::Fail => {
                    let failed = store.transact::<(), Error>(|change| {
                        change.require_format(Format::V3);
                        put(change, n)?;
                        Err(Error::Closing)
                    });
                    prop_assert!(failed.is_err());
                }
                Step::Checkpoint => store.checkpoint().unwrap(),
                Step::Compact => store.compact_journal().unwrap(),
                Step::Pack => store.pack_segments().unwrap(),
                Step::Reopen => {
                    drop(store);
                    store = open(&dir);
                }
                Step::LoseIndex => {
                    drop(store);
                    fs::remove_dir_all(dir.join("index")).unwrap();
                    store = open(&dir);
                }
                Step::BackUpAndRestore => {
                    let mut bytes = Vec::new();
                    let backup = store.write_backup(&mut bytes).unwrap();
                    let has_new = first_new.is_some();
                    prop_assert_eq!(version(&bytes) > KNOWN_IN_BASES, has_new, "{:?}", backup);
                    let model = of(&store);
                    let path = work.path().join("backup");
                    fs::write(&path, bytes).unwrap();
                    dir = work.path().join(n.to_string());
                    BackupFile::open(&path).unwrap().restore_into(&dir, &[]).unwrap();
                    store = open(&dir);
                    prop_assert!(of(&store) == model);
                }
            }
            let expected = if first_new.is_some() { Format::V3 } else { Format::V2 };
            prop_assert_eq!(store.format(), expected);
            check_versions(&dir, first_new);
        }
        let model = of(&store);
        drop(store);
        prop_assert_eq!(verify_store(&dir, &mut |_| {}).unwrap().damage, [""; 0]);
        fs::remove_dir_all(dir.join("index")).unwrap();
        prop_assert!(of(&open(&dir)) == model);
    }
}
