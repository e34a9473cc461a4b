//! Verification finds damage wherever it is, reports its position, and changes nothing.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, add, copy, iri, newest_segment, open, quad, segments, text};
use penstock_store::{Error, Options, Store, verify_store};
use std::fs;
use std::path::Path;

fn options() -> Options {
    Options { segment_bytes: 3_000, background_maintenance: false, ..Options::default() }
}

fn fill(dir: &Path, first: u64) -> Store {
    let store = Store::open(dir, options(), &mut |_| {}).unwrap();
    for n in first..first + 30 {
        add(
            &store,
            &[quad(&format!("s{n}"), "p", text("value")), quad("s", "of", iri(&format!("s{n}")))],
        );
        store
            .transact::<_, Error>(|change| {
                change.put_document("notes", &n.to_be_bytes(), &[7; 500])
            })
            .unwrap();
    }
    store
}

fn check(dir: &Path) -> penstock_store::Verified {
    let names = |dir: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let bytes = || segments(dir).iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    let before = (names(dir), bytes());
    let verified = verify_store(dir, &mut |_| {}).unwrap();
    assert!((names(dir), bytes()) == before, "verification changed a file");
    verified
}

#[test]
fn an_intact_store_has_no_faults() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path(), options(), &mut |_| {}).unwrap());
    assert_eq!(check(dir.path()).damage, Vec::<String>::new());
    let store = fill(dir.path(), 0);
    assert!(matches!(verify_store(dir.path(), &mut |_| {}), Err(Error::InUse { .. })));
    // As a power cut would leave it: the index lacks all frames.
    let cut = tempfile::tempdir().unwrap();
    copy(dir.path(), cut.path());
    drop(store);
    for (dir, notes) in [(dir.path(), 0), (cut.path(), 1)] {
        let verified = check(dir);
        assert_eq!((verified.damage.len(), verified.notes.len()), (0, notes), "{verified:?}");
        assert_eq!((verified.sequence, verified.frames), (60, 60));
        assert_eq!((verified.quads, verified.documents), (60, 30));
        assert!(verified.segments > 2 && verified.parts == 0);
    }
    let store = fill(dir.path(), 20);
    store.compact_journal().unwrap();
    add(&store, &[quad("new", "p", text("value"))]);
    let model = Model::of(&store.read(), &["notes"]);
    drop(store);
    let verified = check(dir.path());
    assert_eq!(verified.damage, Vec::<String>::new());
    assert_eq!((verified.quads, verified.documents), (model.quads.len() as u64, 50));
    assert_eq!((verified.segments, verified.frames, verified.parts), (1, 1, 1));
    fs::remove_dir_all(dir.path().join("index")).unwrap();
    let verified = check(dir.path());
    assert_eq!((verified.damage.len(), verified.notes.len()), (0, 1), "{verified:?}");
    assert!(Model::of(&open(dir.path()).read(), &["notes"]) == model);
}

#[test]
fn damage_is_reported_with_its_position() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 0).compact_journal().unwrap();
    drop(fill(dir.path(), 30));
    let harm = |path: &Path, at: usize| {
        let harmed = tempfile::tempdir().unwrap();
        copy(dir.path(), harmed.path());
        let path = harmed.path().join(path.strip_prefix(dir.path()).unwrap());
        let mut bytes = fs::read(&path).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        let verified = check(harmed.path());
        assert!(!verified.damage.is_empty(), "{} at {at}", path.display());
        assert!(verified.damage[0].contains(path.to_str().unwrap()), "{verified:?}");
    };
    let files = segments(dir.path());
    assert!(files.len() > 3);
    for path in &files {
        for at in [0, 13, 30, 60, 200, 1_000] {
            harm(path, at);
        }
    }
    let missing = tempfile::tempdir().unwrap();
    copy(dir.path(), missing.path());
    fs::remove_file(missing.path().join("journal").join(files[2].file_name().unwrap())).unwrap();
    assert!(check(missing.path()).damage[0].contains("missing"));
}

#[test]
fn a_frame_cut_by_a_crash_is_not_damage() {
    let dir = tempfile::tempdir().unwrap();
    let store = fill(dir.path(), 0);
    let cut = tempfile::tempdir().unwrap();
    copy(dir.path(), cut.path());
    drop(store);
    let newest = newest_segment(cut.path());
    let length = fs::metadata(&newest).unwrap().len();
    fs::File::options().write(true).open(&newest).unwrap().set_len(length - 5).unwrap();
    let verified = check(cut.path());
    assert_eq!((verified.damage.len(), verified.sequence), (0, 59), "{verified:?}");
    assert!(
        verified.notes.iter().any(|note| note.contains("a power cut leaves such an end")),
        "{verified:?}"
    );
    // The same, but the index has that frame.
    let newest = newest_segment(dir.path());
    fs::File::options().write(true).open(&newest).unwrap().set_len(length - 5).unwrap();
    assert!(!check(dir.path()).damage.is_empty());
}

#[test]
fn a_damaged_index_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    drop(fill(dir.path(), 0));
    for at in [1_500, 3_000, 6_000] {
        let harmed = tempfile::tempdir().unwrap();
        copy(dir.path(), harmed.path());
        let db = harmed.path().join("index").join("db");
        let mut bytes = fs::read(&db).unwrap();
        bytes[at] ^= 0x55;
        fs::write(&db, bytes).unwrap();
        let verified = check(harmed.path());
        // Damage may leave an engine without entries, which looks like a new one.
        assert_eq!(verified.damage.len() + verified.notes.len(), 1, "{at}: {verified:?}");
        assert_eq!((verified.quads, verified.documents), (60, 30));
    }
    let other = tempfile::tempdir().unwrap();
    drop(fill(other.path(), 0));
    fs::remove_dir_all(dir.path().join("index")).unwrap();
    copy(&other.path().join("index"), &dir.path().join("index"));
    assert_eq!(check(dir.path()).damage, ["the quad index belongs to another journal"]);
}
