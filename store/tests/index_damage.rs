//! Whatever happens to the files of the index, the store opens and answers as before. Damage leads to a
//! rebuild of the index from the journal, even if it is found while the store is open.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, add, copy, iri, newest_segment, open, quad, text};
use penstock_store::faults::{Failure, Faults, Operation};
use penstock_store::{Error, Options, Pattern, Read as _, Store, verify_store};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Creates a store with several checkpoints, whose newest frames are only in the journal.
fn store_in(dir: &Path) -> Model {
    let options = Options { write_back_bytes: 60_000, ..Options::default() };
    for day in 0..3 {
        let store = Store::open(dir, options.clone(), &mut |_| {}).unwrap();
        for n in day * 60..(day + 1) * 60 {
            let quads = [
                quad(&format!("a{n}"), "p", iri("shared")),
                quad("b", "q", text(&"v".repeat(n))),
                quad(&format!("a{}", n * 7 % 180), "r", text(&format!("w{n}"))),
            ];
            add(&store, &quads);
        }
    }
    Model::of(&open(dir).read(), &[])
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Opens a copy of the store with one file of its index changed, and reads everything.
fn check(dir: &Path, model: &Model, name: &str, what: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let harmed = tempfile::tempdir().unwrap();
    copy(dir, harmed.path());
    let path = harmed.path().join("index").join(name);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let store = Store::open(harmed.path(), Options::default(), &mut |_| {}).unwrap();
    assert!(Model::of(&store.read(), &[]) == *model, "{name}, {what}: a wrong answer");
    add(&store, &[quad("new", "p", text("value"))]);
    drop(store);
    assert_eq!(open(harmed.path()).stats().quads, model.quads.len() as u64 + 1, "{name}, {what}");
}

#[test]
fn a_damaged_index_is_rebuilt_and_never_answers_wrongly() {
    let dir = tempfile::tempdir().unwrap();
    let model = store_in(dir.path());
    let folder = dir.path().join("index");
    let mut files = 0;
    for path in files_below(&folder) {
        files += 1;
        let name = path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
        let whole = fs::read(&path).unwrap();
        let steps = if name == "db" { 60 } else { 12 };
        for step in 0..steps {
            let at = step * whole.len() / steps + step * 7 % 13;
            let at = at.min(whole.len() - 1);
            let flip = |bytes: &mut Vec<u8>| bytes[at] ^= 1 << (step % 8);
            check(dir.path(), &model, &name, &format!("byte {at} flipped"), flip);
        }
        for eighth in [0, 3, 7] {
            let middle = whole.len() * eighth / 8;
            let cut = |bytes: &mut Vec<u8>| bytes.truncate(middle);
            check(dir.path(), &model, &name, &format!("cut at {middle}"), cut);
            let zeroed = |bytes: &mut Vec<u8>| {
                bytes.iter_mut().skip(middle).take(4096).for_each(|byte| *byte = 0);
            };
            check(dir.path(), &model, &name, &format!("a page of zeros at {middle}"), zeroed);
        }
    }
    assert!(files >= 5, "only {files} files: the engine's, the runs or the seal are missing");
}

/// Flips bits of a file that is open.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes.iter_mut().step_by(61).for_each(|byte| *byte ^= 4);
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(&bytes).unwrap();
}

/// Flips bits in the files with this extension in the index, which is open.
fn harm(dir: &Path, end: &str) {
    let mut files = files_below(&dir.join("index"));
    files.retain(|path| path.to_str().unwrap().ends_with(end));
    assert!(!files.is_empty(), "{end}");
    for path in files {
        flip(&path);
    }
}

#[test]
fn damage_found_while_the_store_is_open_is_repaired_by_reopening() {
    let whole = tempfile::tempdir().unwrap();
    let model = store_in(whole.path());
    for end in ["/db", ".run"] {
        let dir = tempfile::tempdir().unwrap();
        copy(whole.path(), dir.path());
        let store = open(dir.path());
        assert_eq!(store.index_damage(), None);
        harm(dir.path(), end);
        // Reading the names reads the runs.
        let met = match end {
            "/db" => store.compact_journal(),
            _ => store.read().quads_about(&iri("a7").into()).map(drop),
        };
        assert!(matches!(met, Err(Error::Index(_))), "{end}: {met:?}");
        assert!(store.index_damage().is_some(), "{end}");
        assert_eq!(store.poison_cause(), None, "{end}: an undamaged journal accepts commits");
        let mut total = 0;
        store.reopen(&mut |progress| total = progress.total).unwrap();
        assert_eq!(total, store.stats().sequence, "{end}: it was not rebuilt");
        assert_eq!((store.index_damage(), store.poison_cause()), (None, None), "{end}");
        assert!(Model::of(&store.read(), &[]) == model, "{end}: a wrong answer");
        store.compact_journal().unwrap();
        add(&store, &[quad("new", "p", text("value"))]);
        drop(store);
        assert_eq!(verify_store(dir.path(), &mut |_| {}).unwrap().damage, [""; 0], "{end}");
    }
}

#[test]
fn a_damaged_index_is_kept_while_it_cannot_be_rebuilt_from_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let model = store_in(dir.path());
    let store = open(dir.path());
    harm(dir.path(), ".run");
    let segment = newest_segment(dir.path());
    let sound = fs::read(&segment).unwrap();
    flip(&segment);
    assert!(store.read().quads_about(&iri("a7").into()).is_err());
    let error = store.reopen(&mut |_| {}).unwrap_err();
    assert!(matches!(&error, Error::Corrupt(place) if place.path == segment), "{error}");
    assert_eq!(store.poison_cause(), None);
    assert!(Model::of(&store.read(), &[]) == model, "undamaged data must be readable");
    store.transact::<_, Error>(|change| change.put_document("d", b"key", b"value")).unwrap();
    let appended = fs::read(&segment).unwrap().split_off(sound.len());
    fs::write(&segment, [sound, appended].concat()).unwrap();
    store.reopen(&mut |_| {}).unwrap();
    assert!(
        store
            .read()
            .any(&Pattern { subject: Some(iri("a7").into()), ..Pattern::default() })
            .unwrap()
    );
    assert_eq!(store.read().read_document("d", b"key").unwrap(), Some(b"value".to_vec()));
}

#[test]
fn a_poisoned_store_with_a_damaged_index_accepts_commits_again_even_if_the_journal_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let model = store_in(dir.path());
    let faults = Faults::inject_below(dir.path());
    let small = Options { segment_bytes: 4_000, ..Options::default() };
    let store = Store::open(dir.path(), small, &mut |_| {}).unwrap();
    let first = newest_segment(dir.path());
    for n in 0..60 {
        store.transact::<_, Error>(|change| change.put_document("d", b"key", &[n; 100])).unwrap();
    }
    assert_ne!(newest_segment(dir.path()), first);
    harm(dir.path(), ".run");
    let mut bytes = fs::read(&first).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&first, bytes).unwrap();
    assert!(store.read().quads_about(&iri("a7").into()).is_err());
    // The frame is neither written nor cut off.
    faults.fail_nth(1, Failure::Io, true);
    store.transact::<_, Error>(|change| change.put_document("d", b"key", b"lost")).unwrap_err();
    assert!(store.poison_cause().is_some());
    faults.clear_plan();
    store.reopen(&mut |_| {}).unwrap();
    assert_eq!(store.poison_cause(), None);
    assert!(store.index_damage().is_some(), "it must not be rebuilt from a damaged journal");
    assert_eq!(store.read().read_document("d", b"key").unwrap(), Some(vec![59; 100]));
    store.transact::<_, Error>(|change| change.put_document("d", b"key", b"value")).unwrap();
    assert!(Model::of(&store.read(), &[]) == model, "undamaged data must be readable");
}

/// Returns whether the index has runs, as it has none once it was discarded.
fn has_runs(dir: &Path) -> bool {
    files_below(&dir.join("index")).iter().any(|path| path.extension().is_some_and(|e| e == "run"))
}

#[test]
fn an_unusable_index_is_kept_until_the_journal_is_complete_and_intact() {
    let dir = tempfile::tempdir().unwrap();
    let model = store_in(dir.path());
    harm(dir.path(), ".run");
    let segment = newest_segment(dir.path());
    let sound = fs::read(&segment).unwrap();
    let mut damaged = sound.clone();
    damaged[sound.len() / 2] ^= 4;
    // The second one ends after its header, and only the note of the index says that frames are missing.
    for harmed in [&damaged[..], &sound[..40]] {
        fs::write(&segment, harmed).unwrap();
        let place = match Store::open(dir.path(), Options::default(), &mut |_| {}) {
            Err(Error::Corrupt(place)) => place,
            other => panic!("{other:?}"),
        };
        assert_eq!(place.path, segment, "{place}");
        assert!(has_runs(dir.path()), "the index was discarded");
        let found = verify_store(dir.path(), &mut |_| {}).unwrap().damage;
        assert!(found.contains(&place.to_string()), "{found:?}");
    }
    fs::write(&segment, sound).unwrap();
    assert!(Model::of(&open(dir.path()).read(), &[]) == model);
}

#[test]
fn an_unusable_index_is_kept_when_a_store_with_a_damaged_journal_is_reopened() {
    let dir = tempfile::tempdir().unwrap();
    let model = store_in(dir.path());
    let faults = Faults::inject_below(dir.path());
    let options =
        Options { segment_bytes: 4_000, background_maintenance: false, ..Options::default() };
    let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
    let first = newest_segment(dir.path());
    let put =
        |n: u8| store.transact::<_, Error>(|change| change.put_document("d", b"key", &[n; 100]));
    for n in 0..60 {
        put(n).unwrap();
    }
    assert_ne!(newest_segment(dir.path()), first);
    faults.fail_nth_of(Operation::Apply, 1, Failure::Io);
    put(60).unwrap_err();
    assert!(store.poison_cause().is_some());
    harm(dir.path(), ".run");
    let mut bytes = fs::read(&first).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&first, &bytes).unwrap();
    for _ in 0..2 {
        let error = store.reopen(&mut |_| {}).unwrap_err();
        assert!(matches!(&error, Error::Corrupt(place) if place.path == first), "{error}");
        assert!(has_runs(dir.path()), "the index was discarded");
    }
    bytes[middle] ^= 4;
    fs::write(&first, &bytes).unwrap();
    store.reopen(&mut |_| {}).unwrap();
    assert_eq!((store.index_damage(), store.poison_cause()), (None, None));
    assert!(Model::of(&store.read(), &[]) == model);
    assert_eq!(store.read().read_document("d", b"key").unwrap(), Some(vec![59; 100]));
}
