//! If a crash left an incomplete frame at the end of a journal, the journal is opened without that frame. A
//! journal that is damaged elsewhere is refused with the position. An index that cannot be trusted is
//! discarded.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod model;

use model::{Model, add, copy, iri, newest_segment, open, quad, segments, text};
use penstock_store::{Error, Format, Options, Store, verify_store};
use std::fs;
use std::path::Path;

/// Commits quads one by one. Returns the offsets at which their frames end.
fn commits(store: &Store, dir: &Path, count: u64) -> Vec<u64> {
    let length = || fs::metadata(newest_segment(dir)).unwrap().len();
    let mut ends = vec![length()];
    for n in 0..count {
        add(store, &[quad(&format!("s{n}"), "p", text("value"))]);
        ends.push(length());
    }
    ends
}

fn try_open(dir: &Path) -> Result<Store, Error> {
    Store::open(dir, Options::default(), &mut |_| {})
}

fn flip(path: &Path, at: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[usize::try_from(at).unwrap()] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_last_frame_cut_at_any_byte_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let ends = commits(&store, dir.path(), 3);
    let segment = newest_segment(dir.path());
    let whole = fs::read(&segment).unwrap();
    // Copied while the store is open, as a power cut would leave it.
    for length in ends[2]..ends[3] {
        let kept = usize::try_from(length).unwrap();
        let zeros = whole.len() - kept;
        for tail in [vec![], vec![0; zeros], vec![0xff; zeros.min(3)]] {
            let cut = tempfile::tempdir().unwrap();
            copy(dir.path(), cut.path());
            let mut bytes = whole[..kept].to_vec();
            bytes.extend_from_slice(&tail);
            if bytes == whole {
                continue;
            }
            fs::write(newest_segment(cut.path()), bytes).unwrap();
            let store = open(cut.path());
            assert_eq!((store.stats().sequence, store.stats().quads), (2, 2));
            assert_eq!(add(&store, &[quad("new", "p", text("value"))]), 3);
            drop(store);
            assert_eq!(open(cut.path()).stats().quads, 3);
        }
    }
}

#[test]
fn damage_before_a_synced_frame_is_refused_with_its_position() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let ends = commits(&store, dir.path(), 4);
    for frame in 0..3 {
        for at in ends[frame]..ends[frame + 1] {
            let harmed = tempfile::tempdir().unwrap();
            copy(dir.path(), harmed.path());
            let segment = newest_segment(harmed.path());
            flip(&segment, at);
            match try_open(harmed.path()) {
                Err(Error::Corrupt(place)) => {
                    assert_eq!((place.path, place.offset), (segment, ends[frame]));
                }
                other => panic!("byte {at}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_damaged_frame_that_the_index_has_is_not_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let ends = commits(&store, dir.path(), 3);
    drop(store);
    flip(&newest_segment(dir.path()), ends[3] - 1);
    let Err(Error::Corrupt(place)) = try_open(dir.path()) else { panic!("the store was opened") };
    assert_eq!(place.offset, ends[2]);
}

#[test]
fn a_damaged_or_missing_segment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options =
        Options { segment_bytes: 200, background_maintenance: false, ..Options::default() };
    let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
    commits(&store, dir.path(), 10);
    // Copied while the store is open, as a power cut would leave it, and before the store tidies its journal.
    let left = tempfile::tempdir().unwrap();
    copy(dir.path(), left.path());
    drop(store);
    assert!(segments(left.path()).len() > 4);
    for (n, segment) in segments(left.path()).iter().enumerate().take(3) {
        let name = segment.file_name().unwrap();
        for at in [0, 15, 30, 38, 60] {
            let harmed = tempfile::tempdir().unwrap();
            copy(left.path(), harmed.path());
            flip(&harmed.path().join("journal").join(name), at);
            let error = try_open(harmed.path()).unwrap_err();
            assert!(matches!(error, Error::Corrupt(_)), "segment {n}, byte {at}: {error}");
        }
        let harmed = tempfile::tempdir().unwrap();
        copy(left.path(), harmed.path());
        fs::remove_file(harmed.path().join("journal").join(name)).unwrap();
        assert!(matches!(try_open(harmed.path()), Err(Error::Corrupt(_))));
    }
}

#[test]
fn an_index_without_its_journal_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    commits(&store, dir.path(), 1);
    drop(store);
    fs::remove_dir_all(dir.path().join("journal")).unwrap();
    assert!(matches!(try_open(dir.path()), Err(Error::Corrupt(_))));
}

#[test]
fn a_newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let segment = newest_segment(dir.path());
    let mut bytes = fs::read(&segment).unwrap();
    let newest = Format::NEWEST.number();
    bytes[8] = u8::try_from(newest + 1).unwrap();
    fs::write(&segment, bytes).unwrap();
    let error = try_open(dir.path()).unwrap_err();
    let Error::NewerFormat { found, known, .. } = error else { panic!("{error}") };
    assert_eq!((found, known), (newest + 1, newest));
}

/// Creates a store with an earlier checkpoint, and copies its directory before and after another one.
fn around_a_checkpoint(dir: &Path, before: &Path, after: &Path) -> Model {
    let store = open(dir);
    for n in 0..40 {
        add(
            &store,
            &[quad(&format!("a{n}"), "p", iri("shared")), quad("b", "q", text(&"v".repeat(n)))],
        );
    }
    store.checkpoint().unwrap();
    for n in 0..400 {
        add(&store, &[quad(&format!("c{n}"), "p", iri("shared"))]);
    }
    copy(dir, before);
    store.checkpoint().unwrap();
    copy(dir, after);
    Model::of(&store.read(), &[])
}

#[test]
fn an_index_with_the_mark_of_an_interrupted_checkpoint_is_rebuilt() {
    let [dir, before, after] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let model = around_a_checkpoint(dir.path(), before.path(), after.path());
    // The engine's file as an interrupted checkpoint may leave it: the first pages new, the others old.
    let [old, new] = [&before, &after].map(|dir| fs::read(dir.path().join("index/db")).unwrap());
    for eighth in 0..=8 {
        let cut = tempfile::tempdir().unwrap();
        copy(before.path(), cut.path());
        let middle = new.len() * eighth / 8;
        let mut mixed = new[..middle].to_vec();
        mixed.extend(old.get(middle..).unwrap_or_default());
        fs::write(cut.path().join("index/db"), mixed).unwrap();
        fs::write(cut.path().join("checkpoint-open"), []).unwrap();
        let mut frames = 0;
        let count = &mut |progress: penstock_store::Progress| frames = progress.total;
        let store = Store::open(cut.path(), Options::default(), count).unwrap();
        assert_eq!(Model::of(&store.read(), &[]), model);
        assert!(!cut.path().join("checkpoint-open").exists());
        drop(store);
        assert_eq!(frames, 440, "all frames are replayed");
        assert_eq!(Model::of(&open(cut.path()).read(), &[]), model);
    }
}

#[test]
fn an_index_of_another_journal_is_rebuilt() {
    let [dir, before, after, other] = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let model = around_a_checkpoint(dir.path(), before.path(), after.path());
    let foreign = open(other.path());
    add(&foreign, &[quad("foreign", "p", text("value"))]);
    drop(foreign);
    fs::remove_dir_all(after.path().join("index")).unwrap();
    copy(&other.path().join("index"), &after.path().join("index"));
    assert_eq!(Model::of(&open(after.path()).read(), &[]), model);
}

#[test]
fn a_journal_that_ends_before_its_index_is_refused_until_it_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let options =
        || Options { segment_bytes: 400, background_maintenance: false, ..Options::default() };
    let try_open = |dir: &Path| Store::open(dir, options(), &mut |_| {});
    let store = try_open(dir.path()).unwrap();
    let mut ends = vec![];
    while segments(dir.path()).len() < 3 || ends.len() < 2 {
        let count = segments(dir.path()).len();
        add(&store, &[quad(&format!("s{}", store.stats().sequence), "p", text("value"))]);
        if segments(dir.path()).len() > count {
            ends.clear();
        }
        ends.push(fs::metadata(newest_segment(dir.path())).unwrap().len());
    }
    let model = Model::of(&store.read(), &[]);
    let newest = store.stats().sequence;
    drop(store);
    let newest_segment = newest_segment(dir.path());
    let whole = fs::read(&newest_segment).unwrap();
    let before = segments(dir.path()).into_iter().rev().nth(1).unwrap();
    // Cut after its header, after its first frame, or removed.
    for kept in [Some(40), Some(ends[0]), None] {
        let (last, end) = if let Some(length) = kept {
            let kept = &whole[..usize::try_from(length).unwrap()];
            fs::write(&newest_segment, kept).unwrap();
            (&newest_segment, length)
        } else {
            fs::remove_file(&newest_segment).unwrap();
            (&before, fs::metadata(&before).unwrap().len())
        };
        let harmed =
            segments(dir.path()).iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
        for _ in 0..2 {
            match try_open(dir.path()) {
                Err(Error::Corrupt(place)) => {
                    assert_eq!((&place.path, place.offset), (last, end), "{place}");
                    assert!(place.what.contains("put the missing part"), "{place}");
                    let faults = verify_store(dir.path(), &mut |_| {}).unwrap().damage;
                    assert_eq!(faults, [place.to_string()], "verify reports something else");
                }
                other => panic!("{kept:?}: {other:?}"),
            }
        }
        let left: Vec<_> =
            segments(dir.path()).iter().map(|path| fs::read(path).unwrap()).collect();
        assert!(left == harmed, "{kept:?}: the journal was changed");
        fs::write(&newest_segment, &whole).unwrap();
        let mut replayed = false;
        let store = Store::open(dir.path(), options(), &mut |_| replayed = true).unwrap();
        assert!(!replayed, "{kept:?}: the index was rebuilt");
        assert!(Model::of(&store.read(), &[]) == model, "{kept:?}");
        assert_eq!(store.stats().sequence, newest);
    }
}

#[test]
fn only_what_the_index_lacks_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let [before, after] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    around_a_checkpoint(dir.path(), before.path(), after.path());
    for (copy, expected) in [(before, Some(400)), (after, None)] {
        let mut frames = None;
        Store::open(copy.path(), Options::default(), &mut |progress| frames = Some(progress.total))
            .unwrap();
        assert_eq!(frames, expected);
    }
}
