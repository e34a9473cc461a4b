//! Tests exports whose snapshot is lost at any read: they never fail, and their records say what they show.
use super::*;
use penstock_resources::export::Export;
use penstock_store::faults::{Failure, Faults, Operation};

const WARNING: &str = "The export may mix several commits: ";

/// Returns whether the first warning says that the export mixes commits. No other one does.
fn is_mixed(entry: &Export) -> bool {
    let warned = |warning: &String| warning.starts_with(WARNING);
    assert!(!entry.warnings.iter().skip(1).any(warned), "{:?}", entry.warnings);
    let first = entry.warnings.first().filter(|warning| warned(warning));
    assert!(first.is_none_or(|warning| warning.contains("the gateway's log")), "{first:?}");
    first.is_some()
}

impl Fixture {
    /// Delivers everything that waits, so that the spool has capacity.
    fn deliver_all(&mut self) {
        for target in TARGETS {
            while self.deliver_next(target) {}
        }
    }
}

#[test]
fn a_full_export_survives_a_loss_at_any_read() {
    let mut fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![0]), (1, 1, vec![1]), (2, 1, vec![])]);
    fixture.settle_all();
    let plant = fixture.catalogue.get(NAMES[0]).unwrap();
    let faults = Faults::inject_below(&fixture.dir.path().join("store"));
    let (mut mixed, mut restarted) = (0, 0);
    for nth in 1.. {
        faults.fail_nth_of(Operation::FindPreserved, nth, Failure::Io);
        let pushed = fixture.exporter.push(&plant, ExportRequester::gateway()).unwrap();
        let was_lost = faults.first_failure().is_some();
        assert_eq!(pushed.exports.len(), TARGETS.len());
        for entry in &pushed.exports {
            assert_eq!((entry.object_count, entry.kind), (3, ExportKind::Full));
            assert_eq!(entry.commit.is_none(), is_mixed(entry), "{entry:?}");
            assert_eq!(fixture.exporter.get(&entry.id).unwrap().as_ref(), Some(entry));
        }
        fixture.consume_files();
        fixture.deliver_all();
        match pushed.exports[0].commit {
            None => mixed += 1,
            Some(commit) => {
                assert!(commit > 0 && commit < fixture.store().stats().sequence);
                if !was_lost {
                    break;
                }
                // Nothing was written yet, so that it started over.
                restarted += 1;
            }
        }
    }
    assert!(mixed > 1 && restarted > 1, "{mixed} mixed, {restarted} restarted");
    fixture.settle_all();
    fixture.assert_consumers_match();
}

#[test]
fn an_incremental_export_survives_a_loss_at_any_read() {
    let mut fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![]), (1, 1, vec![])]);
    fixture.settle_all();
    let faults = Faults::inject_below(&fixture.dir.path().join("store"));
    let mut mixed = BTreeMap::new();
    for nth in 1.. {
        fixture.ingest_objects(0, Mode::Add, &[(2, 1, vec![])]);
        fixture.settle_all();
        let before = fixture.exporter.list(None, 100_000).unwrap().len();
        fixture.ingest_objects(0, Mode::Replace, &[(0, nth + 1, vec![]), (1, nth + 1, vec![])]);
        fixture.ingest_objects(0, Mode::Delete, &[(2, 1, vec![])]);
        faults.fail_nth_of(Operation::FindPreserved, nth as u64, Failure::Io);
        fixture.plan.try_now();
        fixture.run_round();
        fixture.deliver_all();
        fixture.plan.try_now();
        fixture.run_round();
        let was_lost = faults.first_failure().is_some();
        let after = fixture.exporter.list(None, 100_000).unwrap();
        let new = &after[..after.len() - before];
        assert!(new.iter().any(|entry| entry.kind == ExportKind::Incremental), "{new:?}");
        for entry in new {
            assert_eq!(entry.commit, None, "{entry:?}");
            if is_mixed(entry) {
                *mixed.entry(entry.kind.name()).or_insert(0) += 1;
            }
        }
        fixture.assert_consumers_match();
        if !was_lost {
            break;
        }
    }
    assert!(mixed["incremental"] > 1 && mixed["deleted"] > 1, "{mixed:?}");
}
