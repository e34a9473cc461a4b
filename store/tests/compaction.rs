//! A compaction does not change the stored data. The same store is rebuilt from only the journal, wherever the
//! compaction was interrupted and whatever was committed meanwhile.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, add, blank, copy, iri, open, quad, text};
use oxrdf::{GraphName, Quad};
use penstock_store::{Error, Options, Store};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const COLLECTIONS: [&str; 3] = ["", "notes", "sequences"];

fn options() -> Options {
    // Only explicit compactions.
    Options { segment_bytes: 2_000, background_maintenance: false, ..Options::default() }
}

fn open_with(dir: &Path, options: &Options) -> Store {
    Store::open(dir, options.clone(), &mut |_| {}).unwrap()
}

fn try_open(dir: &Path) -> Result<Store, Error> {
    Store::open(dir, options(), &mut |_| {})
}

fn of(store: &Store) -> Model {
    Model::of(&store.read(), &COLLECTIONS)
}

/// Commit number `n`. Every second commit removes and deletes what the previous one added and put.
fn commit(store: &Store, n: u64) {
    let quads = |n: u64| -> Vec<Quad> {
        let subject = format!("s{n}");
        let mut quads: Vec<Quad> = (0..5)
            .map(|field| quad(&subject, &format!("p{field}"), text(&format!("{n} {field}"))))
            .collect();
        quads.push(quad(&subject, "long", text(&"long ".repeat(200))));
        quads.push(Quad::new(
            blank(&format!("b{n}")),
            iri("of"),
            iri(&subject),
            GraphName::from(iri("graph")),
        ));
        quads
    };
    store
        .transact::<_, Error>(|change| {
            for quad in quads(n) {
                change.insert(quad.as_ref())?;
            }
            change.put_document(
                "notes",
                &n.to_be_bytes(),
                &vec![0xab; usize::try_from(n % 7).unwrap() * 150],
            )?;
            change.put_document("sequences", b"last", &n.to_be_bytes())?;
            change.put_document("", &[0, 1, 0xff, 0], b"")?;
            if n % 2 == 1 {
                for quad in quads(n - 1).iter().skip(2) {
                    change.remove(quad.as_ref())?;
                }
                change.delete_document("notes", &(n - 1).to_be_bytes())?;
            }
            Ok(())
        })
        .unwrap();
}

/// Returns incompressible bytes.
fn noise(seed: u64) -> Vec<u8> {
    let mut random = seed;
    let bytes = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random.to_be_bytes()[0]
    });
    bytes.take(100_000).collect()
}

fn journal(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    found.sort();
    found
}

fn lose_index(dir: &Path) {
    fs::remove_dir_all(dir.join("index")).unwrap();
}

/// Creates and closes a store of 40 commits. Returns its folder and its expected content.
fn filled() -> (tempfile::TempDir, Model) {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(dir.path(), &options());
    for n in 0..40 {
        commit(&store, n);
    }
    let model = of(&store);
    (dir, model)
}

#[test]
fn a_lost_index_is_rebuilt_from_the_base_and_later_frames() {
    let (dir, mut model) = filled();
    assert!(journal(dir.path(), "journal").len() > 4);
    let store = open_with(dir.path(), &options());
    let before = store.stats();
    for round in 0..3 {
        store.compact_journal().unwrap();
        let stats = store.stats();
        assert_eq!(
            (stats.sequence, stats.quads),
            (before.sequence + round, before.quads + 7 * round)
        );
        assert!(stats.journal_bytes < before.journal_bytes, "{stats:?}");
        let sizes = ["base", "journal"].map(|extension| {
            let files = journal(dir.path(), extension);
            assert_eq!(files.len(), 1);
            fs::metadata(&files[0]).unwrap().len()
        });
        assert_eq!([stats.base_bytes, stats.journal_bytes - stats.base_bytes], sizes);
        // A second compaction has nothing to do.
        store.compact_journal().unwrap();
        assert_eq!(store.stats(), stats);
        commit(&store, 1_000 + 2 * round);
        model = of(&store);
    }
    drop(store);
    lose_index(dir.path());
    let mut reports = Vec::new();
    let store = Store::open(dir.path(), options(), &mut |progress| reports.push(progress)).unwrap();
    assert_eq!(of(&store), model);
    assert_eq!((reports[0].done, reports.last().unwrap().done), (0, reports[0].total));
    assert_eq!(store.stats().sequence, before.sequence + 3);
    assert_eq!(add(&store, &[quad("new", "p", text("value"))]), before.sequence + 4);
}

#[test]
fn an_interrupted_compaction_leaves_the_old_or_the_new_base_in_use() {
    let (dir, model) = filled();
    let before = tempfile::tempdir().unwrap();
    copy(dir.path(), before.path());
    let store = open_with(dir.path(), &options());
    store.compact_journal().unwrap();
    commit(&store, 2_000);
    let later = of(&store);
    drop(store);
    let base = journal(dir.path(), "base").pop().unwrap();
    let bytes = fs::read(&base).unwrap();
    let check = |dir: &Path, expected: &Model| {
        for lose in [false, true] {
            if lose {
                lose_index(dir);
            }
            let store = open_with(dir, &options());
            assert_eq!(of(&store), *expected);
            drop(store);
            assert!(journal(dir, "new").is_empty());
            assert!(journal(dir, "base").len() <= 1);
        }
    };
    // Interrupted while the base was written: it does not have its name.
    for length in [0, 30, bytes.len() / 2, bytes.len()] {
        let cut = tempfile::tempdir().unwrap();
        copy(before.path(), cut.path());
        let new = format!("{}.new", base.file_name().unwrap().to_str().unwrap());
        fs::write(cut.path().join("journal").join(new), &bytes[..length]).unwrap();
        check(cut.path(), &model);
    }
    // Interrupted while the replaced segments were removed.
    let old = journal(before.path(), "journal");
    let old: Vec<_> =
        old.iter().filter(|path| !journal(dir.path(), "journal").contains(path)).collect();
    for removed in 0..=old.len() {
        let cut = tempfile::tempdir().unwrap();
        copy(dir.path(), cut.path());
        for path in &old[removed..] {
            fs::copy(path, cut.path().join("journal").join(path.file_name().unwrap())).unwrap();
        }
        check(cut.path(), &later);
        assert_eq!(journal(cut.path(), "journal").len(), 1);
    }
}

#[test]
fn an_index_older_than_the_base_is_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let early = tempfile::tempdir().unwrap();
    for n in 0..20 {
        commit(&open_with(dir.path(), &options()), n);
        if n == 9 {
            copy(&dir.path().join("index"), &early.path().join("index"));
        }
    }
    let store = open_with(dir.path(), &options());
    store.compact_journal().unwrap();
    commit(&store, 20);
    let model = of(&store);
    drop(store);
    lose_index(dir.path());
    copy(&early.path().join("index"), &dir.path().join("index"));
    assert_eq!(of(&open_with(dir.path(), &options())), model);
}

#[test]
fn commits_continue_during_a_compaction() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(dir.path(), &Options { write_back_bytes: 50_000, ..options() });
    for n in 0..100 {
        commit(&store, n);
    }
    let done = AtomicBool::new(false);
    let committed = std::thread::scope(|scope| {
        let changes = scope.spawn(|| {
            let mut n = 0_u64;
            while !done.load(Ordering::Relaxed) {
                // Commit the same items again and again, so that pages see them in old and new states.
                commit(&store, n * 7 % 120);
                n += 1;
            }
            n
        });
        for _ in 0..6 {
            store.compact_journal().unwrap();
            let copied = tempfile::tempdir().unwrap();
            // A consistent copy of the files: no commit is being written.
            let expected = store
                .transact::<_, Error>(|change| {
                    copy(&dir.path().join("journal"), &copied.path().join("journal"));
                    Ok(Model::of(change, &COLLECTIONS))
                })
                .unwrap()
                .0;
            assert_eq!(of(&open_with(copied.path(), &options())), expected);
        }
        done.store(true, Ordering::Relaxed);
        changes.join().unwrap()
    });
    assert!(committed > 0);
}

#[test]
fn automatic_compaction_starts_when_due_and_ends_with_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let small = Options { segment_bytes: 20_000, compact_bytes: 10_000, ..Options::default() };
    let mut n = 0;
    let mut compacted = false;
    // Each note replaces the one before, until the journal takes more than the index.
    while !compacted {
        let store = open_with(dir.path(), &small);
        for _ in 0..30 {
            commit(&store, n);
            n += 1;
            store
                .transact::<_, Error>(|change| change.put_document("notes", b"noise", &noise(n)))
                .unwrap();
        }
        compacted = store.stats().base_bytes > 0;
        // The thread may be packing or compacting, and the store is reopened at once.
        drop(store);
    }
    let store = open_with(dir.path(), &small);
    let model = of(&store);
    drop(store);
    lose_index(dir.path());
    assert_eq!(of(&open_with(dir.path(), &small)), model);
}

#[test]
fn a_damaged_base_is_refused_with_its_position_when_it_is_needed() {
    let (dir, _) = filled();
    open_with(dir.path(), &options()).compact_journal().unwrap();
    lose_index(dir.path());
    let base = journal(dir.path(), "base").pop().unwrap();
    let whole = fs::read(&base).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        fs::write(&base, bytes).unwrap();
        match try_open(dir.path()) {
            Err(Error::Corrupt(place)) => assert_eq!(place.path, base, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
    };
    for at in (0..whole.len()).step_by(3) {
        // The version field has its own error.
        if (8..12).contains(&at) {
            continue;
        }
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        refused(&bytes, &format!("byte {at}"));
    }
    for length in (0..whole.len()).step_by(17) {
        refused(&whole[..length], &format!("cut at {length}"));
    }
    fs::write(&base, &whole).unwrap();
    try_open(dir.path()).unwrap();
}

#[test]
fn a_journal_without_frames_that_its_base_needs_is_refused() {
    let (dir, _) = filled();
    let store = open_with(dir.path(), &options());
    store.compact_journal().unwrap();
    drop(store);
    let segment = journal(dir.path(), "journal").pop().unwrap();
    let kept = fs::read(&segment).unwrap();
    fs::remove_file(&segment).unwrap();
    assert!(matches!(try_open(dir.path()), Err(Error::Corrupt(_))));
    fs::write(&segment, kept).unwrap();
    let base = journal(dir.path(), "base").pop().unwrap();
    fs::remove_file(base).unwrap();
    let Err(Error::Corrupt(place)) = try_open(dir.path()) else { panic!("the store was opened") };
    assert!(place.what.contains("missing"), "{place}");
}

/// A small file system of its own.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"])
            .arg(dir.path())
            .status();
        mount.is_ok_and(|status| status.success()).then(|| Self(dir))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).status().unwrap();
    }
}

#[test]
fn a_full_disk_ends_a_compaction_and_loses_nothing() {
    let Some(small) = Small::mount() else {
        assert!(std::env::var_os("CI").is_none(), "no tmpfs can be mounted: run the tests as root");
        eprintln!("skipped: no tmpfs can be mounted; root can");
        return;
    };
    let dir = small.0.path().join("store");
    let store = open_with(&dir, &Options { segment_bytes: 100_000, ..options() });
    for n in 0..60 {
        commit(&store, n);
    }
    // Incompressible, so that the base takes the same disk space.
    store.transact::<_, Error>(|change| change.put_document("notes", b"noise", &noise(1))).unwrap();
    let model = of(&store);
    store.checkpoint().unwrap();
    let ballast = small.0.path().join("ballast");
    for left in [0, 4_096, 8_192, 40_960] {
        // The write fails when the disk is full.
        let full = fs::write(&ballast, vec![1; 16 << 20]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        let length = fs::metadata(&ballast).unwrap().len();
        fs::File::options().write(true).open(&ballast).unwrap().set_len(length - left).unwrap();
        let Err(Error::Io { source, .. }) = store.compact_journal() else {
            panic!("another error than a full disk")
        };
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
        assert_eq!((of(&store), store.stats().base_bytes), (model.clone(), 0));
        assert!(journal(&dir, "new").is_empty());
        fs::remove_file(&ballast).unwrap();
    }
    commit(&store, 60);
    store.compact_journal().unwrap();
    let model = of(&store);
    drop(store);
    lose_index(&dir);
    assert_eq!(of(&open_with(&dir, &options())), model);
}

#[test]
fn a_base_has_only_the_current_state() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..300_u64 {
        store
            .transact::<_, Error>(|change| {
                change.put_document("notes", b"one", &[u8::try_from(n % 251).unwrap(); 2_000])?;
                change.insert(quad("s", "p", text(&n.to_string())).as_ref())?;
                if let Some(before) = n.checked_sub(1) {
                    change.remove(quad("s", "p", text(&before.to_string())).as_ref())?;
                }
                Ok(())
            })
            .unwrap();
    }
    let before = store.stats().journal_bytes;
    store.compact_journal().unwrap();
    let after = store.stats();
    assert!(before > 600_000 && after.journal_bytes < 1_000, "{before} {after:?}");
}
