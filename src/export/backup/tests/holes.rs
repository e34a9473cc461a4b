//! Holes: times that no restore has, because their frames are gone or cannot be read.
use super::bucket::MemoryBucket;
use super::filled;
use super::machine::{Action, Machine};
use crate::backup::folder::BackupFolder;
use crate::backup::holes::{Hole, Holes};
use crate::backup::secrecy::generate_key;
use penstock_resources::gateway::BackupHole;
use penstock_store::faults::{Failure, Faults, Operation};
use std::ffi::OsStr;

#[test]
fn a_hole_ends_where_the_next_era_begins() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let sent = machine.running().shipper.last().unwrap().sequence;
    machine.commit(60);
    let store = machine.running().store.clone();
    store.retain_frames_after(None).unwrap();
    store.compact_journal().unwrap();
    assert!(!machine.step(&Action::Ship));
    // Until the link is there again.
    (61..64).for_each(|number| machine.commit(number));
    machine.begin();
    let state = machine.running().shipper.state.clone();
    let begin = state.era.unwrap().begin.sequence;
    assert_eq!(state.holes.newest(), Some(Hole { from: sent + 1, to: begin }));
    machine.check_restore();
    // As long as the era before it can be restored.
    assert!(machine.step(&Action::Check));
    assert!(machine.running().shipper.parts.report().holes.len() == 1);
    bucket.advance(31 * 24);
    assert!(machine.step(&Action::Check) && machine.step(&Action::Check));
    assert!(machine.running().shipper.parts.report().holes.is_empty());
    assert_eq!(BackupFolder::of(machine.dir.path()).read_state().unwrap().holes, Holes::default());
    machine.check_restore();
}

#[test]
fn each_hole_is_named_until_no_state_before_it_is_left() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let mut expected = Vec::new();
    for number in [60, 70] {
        let sent = machine.running().shipper.last().unwrap().sequence;
        machine.commit(number);
        let store = machine.running().store.clone();
        store.retain_frames_after(None).unwrap();
        store.compact_journal().unwrap();
        assert!(!machine.step(&Action::Ship));
        machine.begin();
        let begin = machine.running().shipper.state.era.clone().unwrap().begin.sequence;
        expected.push(BackupHole { from: sent + 1, to: begin });
        // The next hole does not follow at once.
        machine.commit(number + 1);
        machine.ship();
    }
    assert!(machine.step(&Action::Check));
    let report = machine.running().shipper.parts.report();
    assert_eq!(report.holes, expected);
    // The bucket says it too.
    let eras = machine.reader().list().unwrap().eras;
    let listed = eras.iter().filter_map(|era| Some((era.continues.as_ref()?.1, era.begin?)));
    let in_bucket = listed.map(|(last, begin)| BackupHole { from: last + 1, to: begin });
    assert_eq!(in_bucket.collect::<Vec<_>>(), expected);
    let ranges = expected.iter().map(|BackupHole { from, to }| format!("{from} to {to}"));
    let named = format!("the commits {} were not", ranges.collect::<Vec<_>>().join(", "));
    assert!(report.warnings.iter().any(|warning| warning.starts_with(&named)), "{report:?}");
    machine.restart();
    assert_eq!(machine.running().shipper.parts.report().holes, expected, "also after a restart");
}

/// Damages the first frame of the segment of the journal that has this frame. Returns its sequence.
fn damage_segment_of(machine: &Machine, sequence: u64) -> u64 {
    let name = format!("{sequence:020}.journal");
    let journal = std::fs::read_dir(machine.dir.path().join("store/journal")).unwrap();
    let segments = journal.map(|entry| entry.unwrap().path());
    let begun = segments.filter(|path| path.file_name().unwrap() <= OsStr::new(&name));
    let path = begun.max().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // In its first frame.
    bytes[60] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    path.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

#[test]
fn frames_that_cannot_be_read_are_a_hole() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let sent = machine.running().shipper.last().unwrap().sequence;
    (60..64).for_each(|number| machine.commit(number));
    // The newest segment, to which the frames of the next era would be appended.
    let newest = machine.running().store.newest_durable();
    let damaged = damage_segment_of(&machine, newest);
    assert!(!machine.step(&Action::Ship));
    machine.begin();
    let state = machine.running().shipper.state.clone();
    let begin = state.era.unwrap().begin.sequence;
    assert_eq!(state.holes.newest(), Some(Hole { from: damaged.max(sent + 1), to: begin }));
    machine.commit(64);
    machine.ship();
    assert_eq!(machine.running().shipper.last().unwrap().sequence, begin + 1);
    machine.check_restore();
}

#[test]
fn frames_before_those_that_cannot_be_read_are_sent() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let sent = machine.running().shipper.last().unwrap().sequence;
    // Several segments of the journal, and one of the backup.
    (60..80).for_each(|number| machine.commit(number));
    let newest = machine.running().store.newest_durable();
    let damaged = damage_segment_of(&machine, newest);
    assert!(damaged > sent + 1);
    assert!(!machine.step(&Action::Ship));
    assert_eq!(machine.check_restore(), Some(damaged - 1));
    machine.begin();
    let state = machine.running().shipper.state.clone();
    let begin = state.era.unwrap().begin.sequence;
    assert_eq!(state.holes.newest(), Some(Hole { from: damaged, to: begin }));
    machine.check_restore();
}

#[test]
fn without_space_the_journal_with_frames_that_cannot_be_read_is_compacted_only_once() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    machine.commit(60);
    let newest = machine.running().store.newest_durable();
    damage_segment_of(&machine, newest);
    let faults = Faults::inject_below(&machine.dir.path().join("store"));
    // The first file is the next segment, the second one the base.
    faults.fail_nth_of(Operation::Create, 2, Failure::DiskFull);
    assert!(!machine.step(&Action::Ship));
    assert!(faults.first_failure().is_some());
    machine.begin();
    machine.commit(61);
    machine.ship();
    assert_eq!(machine.running().store.stats().base_bytes, 0);
    let newest = machine.running().store.newest_durable();
    assert_eq!(machine.running().shipper.last().unwrap().sequence, newest);
    machine.check_restore();
}

#[test]
fn a_start_that_cannot_read_the_frames_of_the_head_begins_a_new_era() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    (60..80).for_each(|number| machine.commit(number));
    machine.ship();
    let sent = machine.running().shipper.last().unwrap().sequence;
    // Several segments, so that the store opens.
    (80..100).for_each(|number| machine.commit(number));
    machine.running = None;
    damage_segment_of(&machine, sent);
    machine.restart();
    machine.begin();
    assert_eq!(machine.reader().read_head().unwrap().unwrap().head.number, 2);
    // The commits up to the head before are in the bucket.
    let state = machine.running().shipper.state.clone();
    let begin = state.era.unwrap().begin.sequence;
    assert_eq!(state.holes.newest(), Some(Hole { from: sent + 1, to: begin }));
    machine.check_restore();
    machine.commit(100);
    machine.ship();
    machine.check_restore();
}

#[test]
fn frames_that_are_given_up_before_the_first_segment_are_a_hole() {
    let bucket = MemoryBucket::default();
    let mut machine = Machine::new(&bucket, &generate_key().identity);
    machine.commit(1);
    assert!(machine.step(&Action::Probe));
    let first = machine.running().shipper.state.era.clone().unwrap().begin.sequence;
    (2..20).for_each(|number| machine.commit(number));
    machine.running().store.compact_journal().unwrap();
    machine.reserve = u64::MAX;
    machine.restart();
    machine.step(&Action::Ship);
    let state = machine.running().shipper.state.clone();
    let begin = state.era.unwrap().begin.sequence;
    assert!(begin > first);
    assert_eq!(state.holes.newest(), Some(Hole { from: first + 1, to: begin }));
    machine.reserve = 0;
    machine.restart();
    machine.begin();
    machine.check_restore();
}
