//! A dump shows the state after one commit. If that is lost, it continues page by page, and its result says so.
use super::Fixture;
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use penstock_model::rdf::{DumpOptions, Dumped, Format, write_dump};
use penstock_store::faults::{Failure, Faults, Operation};
use penstock_store::{Error, LostCause, Options, SnapshotLimits, Store};
use std::collections::BTreeSet;

const SUBJECTS: usize = 1_500;
const ALL: DumpOptions = DumpOptions { format: Format::NQuads, graph: None };

fn quad(subject: usize, value: &str) -> Quad {
    let iri = |name: String| NamedNode::new_unchecked(format!("https://plant.example/{name}"));
    let (subject, value) = (iri(format!("{subject:04}")), Literal::from(value.repeat(20)));
    Quad::new(subject, iri("value".to_owned()), value, GraphName::DefaultGraph)
}

/// Returns what a dump consists of if the first subjects have one value and the others another.
fn lines(first: usize, values: [&str; 2]) -> BTreeSet<String> {
    let value = |subject| if subject < first { values[0] } else { values[1] };
    (0..SUBJECTS).map(|subject| format!("{} .", quad(subject, value(subject)))).collect()
}

fn set_value(store: &Store, before: &str, value: &str) {
    store
        .transact::<_, Error>(|t| {
            for subject in 0..SUBJECTS {
                t.remove(quad(subject, before).as_ref())?;
                t.insert(quad(subject, value).as_ref())?;
            }
            Ok(())
        })
        .unwrap();
}

/// Dumps a store, whose values change after the first page. The new ones come after the old ones in the order of the
/// index, so that none is omitted at the end of that page. Returns the lines, and the quads of the first page.
fn dump_during_commit(snapshots: SnapshotLimits) -> (Dumped, BTreeSet<String>, usize) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { snapshots, ..Options::default() };
    let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
    set_value(&store, "none", "old");
    let (mut out, mut first) = (Vec::new(), 0);
    let mut change_once = |written: u64| {
        if first == 0 {
            first = usize::try_from(written).unwrap();
            set_value(&store, "old", "young");
        }
    };
    let dumped = write_dump(&store, &ALL, &mut out, &mut change_once).unwrap();
    let text = String::from_utf8(out).unwrap();
    (dumped, text.lines().map(str::to_owned).collect(), first)
}

#[test]
fn a_dump_shows_one_commit_while_everything_changes() {
    let (dumped, found, first) = dump_during_commit(SnapshotLimits::default());
    assert!(first < SUBJECTS);
    assert_eq!(dumped, Dumped { quads: SUBJECTS as u64, mixed_cause: None });
    assert_eq!((dumped.to_warning(), found), (None, lines(SUBJECTS, ["old", "young"])));
}

#[test]
fn a_dump_whose_state_is_lost_continues_with_the_newest() {
    let limits = SnapshotLimits { memory_bytes: 4 << 10, disk_bytes: 0, reserve_bytes: 0 };
    let (dumped, found, first) = dump_during_commit(limits);
    let mixed_cause = Some(LostCause::Disk { limit_bytes: 0 });
    assert_eq!(dumped, Dumped { quads: SUBJECTS as u64, mixed_cause });
    let warning = dumped.to_warning().unwrap();
    assert!(warning.contains("service.limits.snapshot.disk is 0.0 MiB"), "{warning}");
    assert_eq!(found, lines(first, ["old", "young"]));
}

#[test]
fn a_dump_survives_a_loss_at_any_read() {
    let fixture = Fixture::of(&(0..SUBJECTS).map(|at| quad(at, "old")).collect::<Vec<_>>());
    let faults = Faults::inject_below(fixture.dir.path());
    for nth in 1.. {
        faults.fail_nth_of(Operation::FindPreserved, nth, Failure::Io);
        let mut out = Vec::new();
        let dumped = write_dump(&fixture.store, &ALL, &mut out, &mut |_| {}).unwrap();
        let is_lost = faults.first_failure().is_some();
        assert_eq!(dumped.quads, SUBJECTS as u64);
        assert_eq!(dumped.mixed_cause, is_lost.then_some(LostCause::Io));
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().eq(lines(SUBJECTS, ["old", "old"]).iter()));
        if !is_lost {
            assert!(nth > 10, "{nth}");
            return;
        }
    }
}
