use super::*;
use crate::faults::{Failure, Faults, Operation};
use crate::index::Health as _;
use crate::{Options, Pattern, Read as _, Snapshot, Store};
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use tempfile::TempDir;

const SUBJECTS: u32 = 4_000;

fn open(memory_bytes: usize, disk_bytes: u64) -> (TempDir, Store) {
    open_with(SnapshotLimits { memory_bytes, disk_bytes, reserve_bytes: 0 })
}

fn open_with(snapshots: SnapshotLimits) -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { snapshots, ..Options::default() };
    let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
    (dir, store)
}

fn quad(subject: u32, value: u32) -> Quad {
    let iri = |name: String| NamedNode::new_unchecked(format!("https://example.org/{name}"));
    let subject = iri(format!("{:04x}", subject.wrapping_mul(0x9e37) & 0xffff));
    let object = Literal::from(format!("the value {value} ").repeat(5));
    Quad::new(subject, iri("value".to_owned()), object, GraphName::DefaultGraph)
}

/// Replaces the value of all subjects in one commit.
fn set_value(store: &Store, value: u32) {
    store
        .transact::<_, Error>(|t| {
            for subject in 0..SUBJECTS {
                t.remove(quad(subject, value.wrapping_sub(1)).as_ref())?;
                t.insert(quad(subject, value).as_ref())?;
            }
            Ok(())
        })
        .unwrap();
}

/// Adds a value of some subjects in one commit.
fn add_values(store: &Store, mut subjects: std::ops::Range<u32>, value: u32) {
    store
        .transact::<_, Error>(|t| {
            subjects.try_for_each(|subject| t.insert(quad(subject, value).as_ref()).map(drop))
        })
        .unwrap();
}

fn read_all(snapshot: &Snapshot) -> Result<BTreeSet<String>, Error> {
    let mut found = BTreeSet::new();
    let visit = &mut |quad: Quad| {
        assert!(found.insert(quad.to_string()));
        ControlFlow::Continue(())
    };
    snapshot.for_each(&Pattern::default(), visit)?;
    Ok(found)
}

/// Returns what a snapshot has after [`set_value`].
fn all_with(value: u32) -> BTreeSet<String> {
    (0..SUBJECTS).map(|subject| quad(subject, value).to_string()).collect()
}

fn list_snapshots(store: &Store) -> Vec<Arc<PreservedBlocks>> {
    store.inner().lock_index().snapshots().list()
}

#[test]
fn a_snapshot_is_opened_while_others_read_and_write() {
    let (_dir, store) = open(8 << 20, 0);
    set_value(&store, 1);
    let elsewhere =
        |work: &(dyn Fn() + Sync)| std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    let reader = store.read();
    elsewhere(&|| {
        store.snapshot().unwrap();
        assert!(store.try_read().is_some());
    });
    drop(reader);
    store
        .transact::<_, Error>(|t| {
            t.insert(quad(0, 7).as_ref())?;
            elsewhere(&|| {
                assert_eq!(read_all(&store.snapshot().unwrap()).unwrap(), all_with(1));
                assert!(store.try_read().is_some());
            });
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_failed_write_ends_only_the_snapshot_of_that_file() {
    for failure in [Failure::Io, Failure::DiskFull, Failure::ShortWrite] {
        let (dir, store) = open(128 << 10, 1 << 30);
        let faults = Faults::inject_below(dir.path());
        set_value(&store, 1);
        add_values(&store, 0..1, 9);
        let older = store.snapshot().unwrap();
        let younger = store.snapshot().unwrap();
        // The journal writes first.
        faults.fail_nth_of(Operation::Write, 2, failure);
        set_value(&store, 2);
        let (_, failed) = faults.first_failure().unwrap();
        assert_eq!(failed, file_path(dir.path()));
        let causes = [older.lost_cause(), younger.lost_cause()];
        assert_eq!(causes.iter().flatten().count(), 1, "{failure:?}: {causes:?}");
        for (snapshot, cause) in [(&older, causes[0]), (&younger, causes[1])] {
            let mut expected = all_with(1);
            expected.insert(quad(0, 9).to_string());
            match (cause, read_all(snapshot)) {
                (None, read) => assert_eq!(read.unwrap(), expected),
                (Some(_), read) => assert!(
                    matches!(read, Err(Error::SnapshotLost { cause: LostCause::Io })),
                    "{read:?}"
                ),
            }
        }
        assert_eq!((store.index_damage(), store.poison_cause()), (None, None));
    }
}

#[test]
fn a_damaged_file_ends_its_snapshot_and_leaves_the_index() {
    let (_dir, store) = open(128 << 10, 1 << 30);
    set_value(&store, 1);
    let snapshot = store.snapshot().unwrap();
    set_value(&store, 2);
    assert!(store.stats().snapshots.file_bytes > 0);
    list_snapshots(&store)[0].damage_file();
    let read = read_all(&snapshot);
    assert!(matches!(read, Err(Error::SnapshotLost { cause: LostCause::Io })), "{read:?}");
    assert_eq!(snapshot.lost_cause(), Some(LostCause::Io));
    assert_eq!((store.index_damage(), store.poison_cause()), (None, None));
    assert_eq!(read_all(&store.snapshot().unwrap()).unwrap(), all_with(2));
}

#[test]
fn the_positions_of_blocks_in_files_count_as_memory() {
    let limit = 32 << 10;
    let (_dir, store) = open(limit, 1 << 30);
    set_value(&store, 1);
    let snapshot = store.snapshot().unwrap();
    let (mut subject, mut largest) = (0, 0);
    while snapshot.lost_cause().is_none() {
        assert!(subject < SUBJECTS, "the positions do not count: {:?}", store.stats().snapshots);
        add_values(&store, subject..subject + 10, 2);
        subject += 10;
        let stats = store.stats().snapshots;
        assert!(stats.memory_bytes <= limit as u64, "{stats:?}");
        largest = largest.max(stats.file_bytes);
    }
    assert_eq!(snapshot.lost_cause(), Some(LostCause::Memory { limit_bytes: limit as u64 }));
    assert!(largest > 0);
}

#[test]
fn a_commit_leaves_room_for_the_next_one() {
    let limit = 128 << 10;
    let (_dir, store) = open(limit, 1 << 30);
    set_value(&store, 1);
    let snapshot = store.snapshot().unwrap();
    set_value(&store, 2);
    let stats = store.stats().snapshots;
    assert_eq!(stats.count, 1);
    assert!(stats.memory_bytes <= limit as u64 / 4 * 3, "{stats:?}");
    assert_eq!(read_all(&snapshot).unwrap(), all_with(1));
    drop(snapshot);
    assert_eq!(store.stats().snapshots, SnapshotStats::default());
}

#[test]
fn a_snapshot_may_take_all_of_the_memory() {
    let (_dir, store) = open(8 << 20, 0);
    let preserve = |store: &Store| {
        set_value(store, 1);
        let snapshot = store.snapshot().unwrap();
        set_value(store, 2);
        (store.stats().snapshots.memory_bytes, snapshot.lost_cause())
    };
    let (needed, cause) = preserve(&store);
    assert_eq!(cause, None);
    let (_dir, store) = open(usize::try_from(needed + needed / 10).unwrap(), 0);
    assert_eq!(preserve(&store), (needed, None));
    let limit = usize::try_from(needed - needed / 10).unwrap();
    let (_dir, store) = open(limit, 0);
    assert_eq!(preserve(&store), (0, Some(LostCause::Disk { limit_bytes: 0 })));
}

#[test]
fn the_disk_reserve_is_left_free() {
    let limits =
        SnapshotLimits { memory_bytes: 4 << 10, disk_bytes: 1 << 30, reserve_bytes: u64::MAX };
    let (_dir, store) = open_with(limits);
    set_value(&store, 1);
    let snapshot = store.snapshot().unwrap();
    set_value(&store, 2);
    let cause = snapshot.lost_cause();
    assert!(matches!(cause, Some(LostCause::DiskFull { .. })), "{cause:?}");
}

#[test]
fn snapshots_of_a_closed_index_keep_nothing() {
    let (_dir, store) = open(128 << 10, 1 << 30);
    set_value(&store, 1);
    let snapshot = store.snapshot().unwrap();
    set_value(&store, 2);
    let open = Arc::clone(store.inner().lock_index().snapshots());
    assert!(open.stats().memory_bytes > 0 && open.stats().file_bytes > 0);
    store.inner().lock_index().record_damage(&Error::Index("for this test".into()));
    store.reopen(&mut |_| {}).unwrap();
    assert_eq!(open.stats(), SnapshotStats::default());
    assert!(matches!(read_all(&snapshot), Err(Error::Reopening)));
    assert_eq!(snapshot.lost_cause(), None);
}
