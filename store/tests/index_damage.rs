//! Whatever happens to the files of the index, the store opens and answers as before: damage leads to
//! the index being made again from the journal.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, add, copy, iri, open, quad, text};
use penstock_store::{Options, Store};
use std::fs;
use std::path::{Path, PathBuf};

/// A store of several checkpoints, the newest frames of which are in the journal alone.
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

/// Opens a copy of the store with a file of its index changed, and reads all of it.
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
fn a_damaged_index_is_made_again_and_never_answers_wrongly() {
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
    assert!(files >= 5, "{files}: where are the engine's, the runs and the seal?");
}
