//! A store of every format opens with all of its data. `fixtures/v1` has a base, a later segment, and a term of
//! every kind. `fixtures/v2` and those of later formats also have a packed segment before the last. They contain
//! no index, because it is rebuilt. But `fixtures/index-4` has one of version 4, which is rebuilt too.
//!
//! For a new format, add it to [`Format::ALL`] and to FORMAT.md, and write its fixture:
//! `UPDATE=1 cargo test -p penstock-store --test format`. That never changes an existing one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, blank, copy, iri, open, quad, text};
use oxrdf::vocab::xsd;
use oxrdf::{GraphName, Literal, NamedOrBlankNode, Quad};
use penstock_store::{Error, Format, Options, Store, ValueRange, verify_store};
use std::path::{Path, PathBuf};

const COLLECTIONS: [&str; 3] = ["", "a", "b"];
const COMMITS: usize = 5;

fn fixture(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version)
}

struct Commit {
    added: Vec<Quad>,
    removed: Vec<Quad>,
    put: Vec<(&'static str, &'static [u8], Vec<u8>)>,
    deleted: Vec<(&'static str, &'static [u8])>,
}

/// The content of the fixtures: three commits in the base, two after it.
fn commits() -> [Commit; COMMITS] {
    let gone = || quad("gone", "p", text("that was removed"));
    let in_base = || quad("s", "later", text("removed behind the base"));
    let commit = |added| Commit { added, removed: vec![], put: vec![], deleted: vec![] };
    let named = |name: &str, graph: GraphName| Quad::new(iri(name), iri("p"), iri("o"), graph);
    let integer = Literal::new_typed_literal("01", xsd::INTEGER);
    let typed = Literal::new_typed_literal("1 2", iri("type"));
    let tagged = Literal::new_language_tagged_literal_unchecked("Füllstand", "de-AT");
    [
        commit(vec![
            gone(),
            in_base(),
            quad("s", "iri", iri("o")),
            quad("s", "blank", blank("b0")),
        ]),
        Commit {
            removed: vec![gone()],
            put: vec![("a", b"key", vec![1, 2, 3]), ("b", b"", vec![]), ("a", b"old", vec![9])],
            ..commit(vec![
                quad("s", "number", integer),
                quad("s", "typed", typed),
                quad("s", "tagged", tagged),
                quad("s", "text", text("\u{0}\n\"\\ 𝄞 é e\u{301}")),
                quad("s", "text", text("")),
            ])
        },
        commit(vec![
            quad("s", "long", text(&"long and longer ".repeat(60))),
            named("in-a-graph", iri("g").into()),
            named("in-a-graph-of-a-blank-node", blank("g").into()),
            Quad::new(blank("b0"), iri("p"), blank("b1"), GraphName::DefaultGraph),
        ]),
        Commit {
            removed: vec![in_base()],
            put: vec![("a", b"key", vec![4; 900]), ("", b"\0\xff", vec![5])],
            deleted: vec![("a", b"old")],
            ..commit(vec![quad("behind", "the-base", text("one"))])
        },
        commit(vec![quad("behind", "the-base", Literal::from(true))]),
    ]
}

/// Runs the commits, with a compaction after the third. The second one requires the format.
fn run_commits(store: &Store, format: Format) {
    for (n, commit) in commits().iter().enumerate() {
        if n == 3 {
            store.compact_journal().unwrap();
        }
        store
            .transact::<_, Error>(|change| {
                if n == 1 {
                    change.require_format(format);
                }
                for quad in &commit.removed {
                    assert!(change.remove(quad.as_ref())?);
                }
                for quad in &commit.added {
                    assert!(change.insert(quad.as_ref())?);
                }
                for (collection, key, value) in &commit.put {
                    change.put_document(collection, key, value)?;
                }
                commit
                    .deleted
                    .iter()
                    .try_for_each(|(collection, key)| change.delete_document(collection, key))
            })
            .unwrap();
    }
}

fn expected() -> Model {
    let mut model = Model::default();
    for commit in commits() {
        for quad in &commit.removed {
            assert!(model.quads.remove(quad));
        }
        model.quads.extend(commit.added);
        for (collection, key, value) in commit.put {
            model.documents.insert((collection.to_owned(), key.to_vec()), value);
        }
        for (collection, key) in commit.deleted {
            model.documents.remove(&(collection.to_owned(), key.to_vec()));
        }
    }
    model
}

/// Writes the fixture of a format.
fn write_fixture(format: Format) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 1, background_maintenance: false, ..Options::default() };
    let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
    run_commits(&store, format);
    store.pack_segments().unwrap();
    drop(store);
    copy(&dir.path().join("journal"), &fixture(&format!("v{format}")).join("journal"));
}

#[test]
fn a_store_of_version_1_is_read() {
    is_read("v1", 2, Format::V2);
}

#[test]
fn a_store_of_every_format_is_read() {
    for format in Format::ALL {
        let name = format!("v{format}");
        if std::env::var_os("UPDATE").is_some() && !fixture(&name).exists() {
            write_fixture(format);
        }
        is_read(&name, 3, format);
    }
}

#[test]
fn an_index_of_an_earlier_version_is_rebuilt() {
    for value_index in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        copy(&fixture("index-4"), dir.path());
        let verified = verify_store(dir.path(), &mut |_| {}).unwrap();
        assert_eq!(verified.damage, [""; 0]);
        assert!(verified.notes.iter().any(|note| note.contains("another version")), "{verified:?}");
        let options = Options { value_index, background_maintenance: false, ..Options::default() };
        let mut totals = Vec::new();
        let store =
            Store::open(dir.path(), options, &mut |progress| totals.push(progress.total)).unwrap();
        assert!(totals.iter().all(|total| *total > 0) && !totals.is_empty());
        let read = store.snapshot().unwrap();
        assert!(Model::of(&read, &COLLECTIONS) == expected());
        let numbers = ValueRange::equal_to(Literal::from(1).as_ref());
        let found = model::read_values(&read, &iri("number"), &numbers);
        assert_eq!(found.is_some(), value_index);
        let subjects: Vec<_> = found.into_iter().flatten().flat_map(|(_, found)| found).collect();
        assert_eq!(subjects, vec![NamedOrBlankNode::from(iri("s")); usize::from(value_index)]);
    }
}

#[test]
fn an_index_of_an_earlier_version_shows_that_its_journal_ends_too_early() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture("index-4"), dir.path());
    let newest = model::newest_segment(dir.path());
    let whole = std::fs::read(&newest).unwrap();
    // Only its header is left.
    std::fs::write(&newest, &whole[..40]).unwrap();
    for _ in 0..2 {
        let place = match Store::open(dir.path(), Options::default(), &mut |_| {}) {
            Err(Error::Corrupt(place)) => place,
            other => panic!("{other:?}"),
        };
        assert!(place.what.contains("put the missing part"), "{place}");
        let found = verify_store(dir.path(), &mut |_| {}).unwrap().damage;
        assert_eq!(found, [place.to_string()]);
    }
    std::fs::write(&newest, whole).unwrap();
    assert!(Model::of(&open(dir.path()).read(), &COLLECTIONS) == expected());
}

fn is_read(version: &str, files: usize, format: Format) {
    let names: Vec<PathBuf> = model::segments(&fixture(version));
    let has = |end: &str| names.iter().any(|path| path.extension().is_some_and(|e| e == end));
    assert!(has("base") && has("journal") && names.len() == files, "{names:?}");
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture(version), dir.path());
    let store = open(dir.path());
    assert_eq!((store.stats().sequence, store.format()), (COMMITS as u64, format));
    assert!(
        Model::of(&store.read(), &COLLECTIONS) == expected(),
        "the content differs from the fixture's"
    );
    model::add(&store, &[quad("new", "p", text("value"))]);
    drop(store);
    assert_eq!(verify_store(dir.path(), &mut |_| {}).unwrap().damage, [""; 0]);
}
