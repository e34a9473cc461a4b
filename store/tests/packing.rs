//! Packing does not change the stored data: the same store is rebuilt from the packed segments, which take
//! less disk space.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, add, copy, iri, quad, segments, text};
use penstock_store::faults::{Failure, Faults, Operation};
use penstock_store::{Error, Options, Read as _, Store, ValueClass, ValueRange, verify_store};
use std::fs;
use std::path::{Path, PathBuf};

fn options(background_maintenance: bool) -> Options {
    Options { segment_bytes: 20_000, background_maintenance, ..Options::default() }
}

fn open(dir: &Path) -> Store {
    Store::open(dir, options(false), &mut |_| {}).unwrap()
}

fn fill(store: &Store, commits: std::ops::Range<u64>) {
    for n in commits {
        let quads: Vec<_> = (0..10)
            .map(|field| {
                quad(&format!("s{n}"), &format!("p{field}"), text(&format!("{n} {field}")))
            })
            .chain([quad("shared", "of", iri(&format!("s{n}")))])
            .collect();
        add(store, &quads);
        store
            .transact::<_, Error>(|change| {
                if n % 3 == 1 {
                    change.remove(quad("shared", "of", iri(&format!("s{}", n - 1))).as_ref())?;
                }
                change.put_document("notes", &(n % 5).to_be_bytes(), &n.to_be_bytes().repeat(40))
            })
            .unwrap();
    }
}

fn of(store: &Store) -> Model {
    Model::of(&store.read(), &["notes"])
}

fn is_packed(segment: &PathBuf) -> bool {
    fs::read(segment).unwrap().get(8) == Some(&2)
}

fn size(segments: &[PathBuf]) -> u64 {
    segments.iter().map(|path| fs::metadata(path).unwrap().len()).sum()
}

/// Creates and closes a store whose full segments are all packed. Returns its folder and its expected
/// content.
fn packed() -> (tempfile::TempDir, Model) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, 0..200);
    store.pack_segments().unwrap();
    let model = of(&store);
    drop(store);
    let segments = segments(dir.path());
    assert!(segments.len() > 3);
    assert!(segments.iter().rev().skip(1).all(is_packed));
    assert!(!is_packed(segments.last().unwrap()));
    (dir, model)
}

#[test]
fn the_same_store_is_rebuilt_from_packed_segments_that_take_less_space() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, 0..200);
    let (before, plain) = (store.stats(), segments(dir.path()));
    let plain_bytes = size(&plain);
    store.pack_segments().unwrap();
    assert_eq!(segments(dir.path()), plain, "they keep their names");
    let after = store.stats();
    assert_eq!((after.sequence, after.quads), (before.sequence, before.quads));
    assert_eq!((before.journal_bytes, after.journal_bytes), (plain_bytes, size(&plain)));
    assert!(after.journal_bytes * 3 < before.journal_bytes, "{before:?} {after:?}");
    // A second packing has nothing to do.
    store.pack_segments().unwrap();
    assert_eq!(store.stats(), after);
    fill(&store, 200..300);
    let model = of(&store);
    drop(store);
    assert_eq!(verify_store(dir.path(), &mut |_| {}).unwrap().damage, [""; 0]);
    let store = open(dir.path());
    assert_eq!(store.stats().journal_bytes, size(&segments(dir.path())));
    store.pack_segments().unwrap();
    drop(store);
    fs::remove_dir_all(dir.path().join("index")).unwrap();
    let store = open(dir.path());
    assert_eq!(of(&store), model);
    // A base replaces them.
    store.compact_journal().unwrap();
    assert_eq!(segments(dir.path()).len(), 2);
    assert_eq!(of(&store), model);
}

#[test]
fn full_segments_are_packed_automatically() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), options(true), &mut |_| {}).unwrap();
    fill(&store, 0..200);
    let mut before = segments(dir.path());
    // A segment that is being packed briefly has another name.
    before.retain(|path| path.extension().is_some_and(|extension| extension == "journal"));
    let full = |segments: &[PathBuf]| segments.iter().rev().skip(1).all(is_packed);
    while !full(&before) {
        std::thread::yield_now();
    }
    let model = of(&store);
    drop(store);
    fs::remove_dir_all(dir.path().join("index")).unwrap();
    assert_eq!(of(&open(dir.path())), model);
}

#[test]
fn a_packed_segment_is_never_appended_to() {
    let (dir, _) = packed();
    let newest = segments(dir.path()).pop().unwrap();
    fs::remove_file(newest).unwrap();
    let before = segments(dir.path()).pop().unwrap();
    let error = Store::open(dir.path(), options(false), &mut |_| {}).unwrap_err();
    let Error::Corrupt(place) = error else { panic!("{error}") };
    assert_eq!(place.path, before);
    assert!(place.what.contains("missing"), "{place}");
}

#[test]
fn the_current_segment_is_not_packed_while_the_creation_of_the_next_one_fails() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, 0..200);
    let current = segments(dir.path()).pop().unwrap();
    // A new segment has its name before the folder is synced, and loses it if that fails.
    let first = store.stats().sequence + 1;
    let failing = dir.path().join(format!("journal/{first:020}.journal"));
    fs::write(&failing, b"").unwrap();
    store.pack_segments().unwrap();
    assert!(!is_packed(&current));
    fs::remove_file(failing).unwrap();
    fill(&store, 200..210);
    let model = of(&store);
    drop(store);
    assert_eq!(of(&open(dir.path())), model);
}

#[test]
fn a_cut_or_damaged_packed_segment_is_refused_with_its_position() {
    let (dir, model) = packed();
    let path = segments(dir.path()).remove(1);
    let whole = fs::read(&path).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        let harmed = tempfile::tempdir().unwrap();
        copy(dir.path(), harmed.path());
        let path = harmed.path().join(path.strip_prefix(dir.path()).unwrap());
        fs::write(&path, bytes).unwrap();
        assert!(!verify_store(harmed.path(), &mut |_| {}).unwrap().damage.is_empty(), "{what}");
        // The index has all of its content.
        assert_eq!(of(&open(harmed.path())), model, "{what}");
        fs::remove_dir_all(harmed.path().join("index")).unwrap();
        match Store::open(harmed.path(), options(false), &mut |_| {}) {
            // If whole packs are missing, the next segment shows it.
            Err(Error::Corrupt(place)) => {
                assert!(segments(harmed.path()).contains(&place.path), "{what}: {place}");
            }
            other => panic!("{what}: {other:?}"),
        }
    };
    for length in [40, 41, 60, whole.len() / 2, whole.len() - 1] {
        refused(&whole[..length], &format!("cut at {length}"));
    }
    for at in (12..whole.len()).step_by(whole.len() / 40) {
        let mut harmed = whole.clone();
        harmed[at] ^= 1;
        refused(&harmed, &format!("byte {at}"));
    }
}

#[test]
fn a_damaged_full_segment_is_replaced_by_a_base_from_the_index() {
    let whole = tempfile::tempdir().unwrap();
    let store = open(whole.path());
    fill(&store, 0..200);
    let model = of(&store);
    drop(store);
    let length = size(&segments(whole.path())[1..2]);
    // In its header, and among its frames.
    for at in [3, 20, usize::try_from(length).unwrap() / 2] {
        let dir = tempfile::tempdir().unwrap();
        copy(whole.path(), dir.path());
        let path = segments(dir.path()).remove(1);
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        // Without the background thread, packing reports the position and changes nothing.
        let store = open(dir.path());
        let Err(Error::Corrupt(place)) = store.pack_segments() else {
            panic!("byte {at}: it was packed")
        };
        assert_eq!(place.path, path, "byte {at}");
        drop(store);
        let store = Store::open(dir.path(), options(true), &mut |_| {}).unwrap();
        while store.stats().base_bytes == 0 {
            std::thread::yield_now();
        }
        assert_eq!(of(&store), model, "byte {at}");
        drop(store);
        assert_eq!(verify_store(dir.path(), &mut |_| {}).unwrap().damage, [""; 0], "byte {at}");
        fs::remove_dir_all(dir.path().join("index")).unwrap();
        assert_eq!(of(&open(dir.path())), model, "byte {at}");
    }
}

#[test]
fn a_full_segment_that_cannot_be_read_is_replaced_by_a_base_from_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, 0..200);
    let model = of(&store);
    drop(store);
    let path = segments(dir.path()).remove(1);
    fs::remove_file(&path).unwrap();
    // Reading a folder fails, as reading a bad sector does.
    fs::create_dir_all(path.join("x".repeat(100))).unwrap();
    let store = Store::open(dir.path(), options(true), &mut |_| {}).unwrap();
    while store.stats().base_bytes == 0 {
        std::thread::yield_now();
    }
    assert_eq!(of(&store), model);
    drop(store);
    // The store can remove a file that cannot be read, but no folder.
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(verify_store(dir.path(), &mut |_| {}).unwrap().damage, [""; 0]);
    fs::remove_dir_all(dir.path().join("index")).unwrap();
    assert_eq!(of(&open(dir.path())), model);
}

#[test]
fn an_index_is_kept_if_the_journal_is_damaged_when_its_values_are_switched() {
    let (dir, model) = packed();
    let path = segments(dir.path()).remove(1);
    let whole = fs::read(&path).unwrap();
    let mut harmed = whole.clone();
    harmed[whole.len() / 2] ^= 1;
    fs::write(&path, harmed).unwrap();
    let open = || {
        let options = Options { value_index: false, ..options(false) };
        let mut reports = 0;
        let store = Store::open(dir.path(), options, &mut |_| reports += 1).unwrap();
        assert!(reports > 0, "reading the journal was not reported");
        let property = iri("p");
        let all = ValueRange::of_class(ValueClass::Text);
        let has_values = store.read().estimate_values(property.as_ref(), &all).unwrap().is_some();
        (of(&store), has_values)
    };
    for _ in 0..2 {
        assert!(open() == (model.clone(), true));
    }
    fs::write(&path, whole).unwrap();
    assert!(open() == (model, false));
}

#[test]
fn a_damaged_segment_that_cannot_be_removed_is_ignored_once_a_base_replaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, 0..200);
    let path = segments(dir.path()).remove(1);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let Err(Error::Corrupt(place)) = store.pack_segments() else { panic!("it was packed") };
    assert_eq!(place.path, path);
    let faults = Faults::inject_below(&path);
    faults.fail_nth(1, Failure::Io, true);
    store.compact_journal().unwrap();
    assert_eq!(faults.first_failure().unwrap(), (Operation::Remove, path.clone()));
    assert!(path.exists());
    store.pack_segments().unwrap();
    fill(&store, 200..400);
    store.pack_segments().unwrap();
    faults.clear_plan();
    store.compact_journal().unwrap();
    assert!(!path.exists());
    let model = of(&store);
    drop(store);
    assert_eq!(verify_store(dir.path(), &mut |_| {}).unwrap().damage, [""; 0]);
    assert_eq!(of(&open(dir.path())), model);
}
