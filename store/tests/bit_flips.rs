//! Flips one bit at a random position of each file: no read ever returns a wrong answer. The index is rebuilt
//! from the journal. `verify` finds damage in the journal and its base, and every read that needs the damaged
//! part fails with its position.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, add, copy, iri, newest_segment, quad, text};
use penstock_store::{Error, Options, Store, verify_store};
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};

const COMMITS: u64 = 160;
/// Number of flips in each file.
const FLIPS: u64 = 16;

fn open(dir: &Path) -> Result<Store, Error> {
    let options =
        Options { segment_bytes: 4_000, background_maintenance: false, ..Options::default() };
    Store::open(dir, options, &mut |_| {})
}

/// Creates a store with a base, several later segments, some of them packed, and a complete index.
fn store_in(dir: &Path) -> Model {
    let store = open(dir).unwrap();
    for n in 0..COMMITS / 2 {
        if n == COMMITS / 4 {
            store.compact_journal().unwrap();
        }
        if n == COMMITS * 3 / 8 {
            store.pack_segments().unwrap();
        }
        let quads = [
            quad(&format!("a{n}"), "p", iri("shared")),
            quad("b", "q", text(&"v".repeat(usize::try_from(n * 3).unwrap()))),
        ];
        add(&store, &quads);
        let put = |change: &mut penstock_store::Transaction<'_>| {
            change.put_document("c", &n.to_be_bytes(), &[7; 90])
        };
        store.transact::<_, Error>(put).unwrap();
    }
    drop(store);
    Model::of(&open(dir).unwrap().read(), &["c"])
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Opens a store with possible damage at `path`: the answer is right, or the error names the position.
fn check(dir: &Path, path: &Path, model: &Model, what: &str) {
    match open(dir) {
        Ok(store) => {
            assert!(Model::of(&store.read(), &["c"]) == *model, "{what}: wrong answer");
        }
        Err(Error::Corrupt(place)) => assert_eq!(place.path, path, "{what}: {place}"),
        Err(Error::NewerFormat { path: place, .. }) => assert_eq!(place, path, "{what}"),
        Err(error) => panic!("{what}: {error}"),
    }
}

#[test]
fn no_answer_is_ever_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let model = store_in(dir.path());
    let mut all = Vec::new();
    files(dir.path(), &mut all);
    let kinds = |end: &str| all.iter().filter(|path| path.to_string_lossy().ends_with(end)).count();
    assert_eq!(kinds(".base"), 1);
    assert!(kinds(".journal") > 2 && kinds("index/db") == 1 && kinds("lock") == 1, "{all:?}");
    let packed = |path: &PathBuf| fs::read(path).unwrap().get(8) == Some(&2);
    let segments = || all.iter().filter(|path| path.to_string_lossy().ends_with(".journal"));
    assert!(segments().any(packed) && !segments().all(packed), "some are packed, and some are not");
    for file in &all {
        let name = file.strip_prefix(dir.path()).unwrap();
        let whole = fs::read(file).unwrap();
        for flip in 0..FLIPS {
            let random = usize::try_from(RandomState::new().hash_one(flip) >> 8).unwrap();
            let (at, bit) = (random / 8 % whole.len().max(1), random % 8);
            let what = format!("{}, byte {at}, bit {bit}", name.display());
            let harmed = tempfile::tempdir().unwrap();
            copy(dir.path(), harmed.path());
            let path = harmed.path().join(name);
            let mut bytes = whole.clone();
            if bytes.is_empty() {
                bytes.push(1);
            } else {
                bytes[at] ^= 1 << bit;
            }
            fs::write(&path, bytes).unwrap();
            if name.starts_with("journal") {
                let verified = verify_store(harmed.path(), &mut |_| {});
                assert!(!verified.is_ok_and(|found| found.damage.is_empty()), "{what}: not found");
            }
            check(harmed.path(), &path, &model, &what);
            // Repeat it when the whole journal has to be read.
            if name.starts_with("journal") {
                fs::remove_dir_all(harmed.path().join("index")).unwrap();
                match open(harmed.path()) {
                    Err(_) => check(harmed.path(), &path, &model, &what),
                    // Without an index, damage of the very last frame looks like a frame that a crash cut.
                    Ok(store) => {
                        let there = (store.stats().sequence, *file == newest_segment(dir.path()));
                        assert_eq!(there, (COMMITS - 1, true), "{what}: damage was ignored");
                    }
                }
            }
        }
    }
}
