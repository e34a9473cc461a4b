//! What repairs itself after a failure: files, heads and eras, and what a check says about what does not.
use super::bucket::{Fault, MemoryBucket};
use super::machine::{Action, GATEWAY, Machine, Running, request};
use super::{filled, machine_with_lost_frames, restore};
use crate::backup::folder::BackupFolder;
use crate::backup::head::{Continued, EraRecord, time_of_system};
use crate::backup::holes::Holes;
use crate::backup::keys::new_era_id;
use crate::backup::objects::Point;
use crate::backup::reader::Reader;
use crate::backup::report::BackupState;
use crate::backup::restore::RestoreRequest;
use crate::backup::secrecy::{BackupKey, generate_key};
use crate::backup::ship::Phase;
use crate::backup::state::LocalState;
use crate::backup::worker::{ShipWorker, Step};
use crate::delivery_loop::DeliveryQueue as _;
use penstock_base::error::ErrorClass;
use std::path::Path;
use std::sync::Arc;

/// Loses the head of the next era on its way: the requests before it read the head, list, and write `era.json`.
const HEAD_LOST: [Fault; 4] = [Fault::None, Fault::None, Fault::None, Fault::Lost];

/// Returns the findings of a check.
pub(super) fn check(machine: &Machine) -> Vec<(String, String)> {
    let mut findings = Vec::new();
    let checked = machine.reader().check(
        None,
        &mut |found| findings.push((found.key.clone(), found.cause.clone())),
        &mut |_| {},
    );
    assert_eq!(checked.unwrap().findings, findings.len() as u64);
    findings
}

#[test]
fn segments_of_an_hour_are_merged_although_no_start_runs_for_an_hour() {
    for (count, is_due) in [(359, false), (360, true)] {
        let bucket = MemoryBucket::default();
        let mut machine = filled(&bucket, &generate_key());
        machine.restart();
        let parts = Arc::clone(&machine.running().shipper.parts);
        let state = parts.folder.read_state().unwrap();
        // As many as starts of less than an hour leave, with one every 10 s.
        let era = state.era.clone().unwrap().id;
        let left: Vec<_> =
            parts.folder.read_unmerged(&era).into_iter().cycle().take(count).collect();
        assert_eq!(left.len(), count);
        parts.folder.write_unmerged(&left).unwrap();
        let mut worker = ShipWorker::new(parts, state);
        let mut steps = Vec::new();
        machine.runtime.block_on(async {
            while let Ok(mut step) = worker.next_head().await {
                steps.push(step);
                if step == Step::Merge {
                    break;
                }
                let sent = worker.send(&mut step).await;
                worker.record(step, Some(sent)).await;
            }
        });
        assert!(steps.starts_with(&[Step::Start, Step::Probe, Step::Check, Step::Ship]));
        assert_eq!(steps.contains(&Step::Merge), is_due, "{count}: {steps:?}");
    }
}

#[test]
fn commits_during_an_upload_wait_for_the_next_interval() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    machine.commit(50);
    let store = machine.running().store.clone();
    bucket.0.lock().busy = Some(store.clone());
    let Running { shipper, .. } = machine.running.as_mut().unwrap();
    machine.runtime.block_on(async {
        shipper.record_point().await.unwrap();
        assert!(!shipper.ship().await.unwrap());
    });
    assert!(store.newest_durable() > shipper.last().unwrap().sequence);
    // The times of what is sent are not needed any more, although a commit waits.
    assert!(shipper.parts.folder.read_points(0, 9).is_empty());
    bucket.0.lock().busy = None;
}

#[test]
fn a_file_that_is_damaged_before_it_is_sent_is_written_again() {
    let harms: [fn(&Path); 3] = [
        |path| std::fs::remove_file(path).unwrap(),
        |path| std::fs::write(path, b"other").unwrap(),
        |path| {
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(9).unwrap();
        },
    ];
    for harm in harms {
        let bucket = MemoryBucket::default();
        let mut machine = filled(&bucket, &generate_key());
        machine.commit(60);
        let parts = Arc::clone(&machine.running().shipper.parts);
        bucket.0.lock().faults.push_back(Fault::Lost);
        assert!(!machine.step(&Action::Ship));
        harm(&parts.folder.segment_file());
        assert!(!machine.step(&Action::Ship));
        machine.ship();
        machine.check_restore();

        let era = machine.running().shipper.state.era.clone().unwrap().id;
        machine.commit(61);
        parts.want_base(&era, None);
        bucket.0.lock().faults.push_back(Fault::Lost);
        assert!(!machine.step(&Action::Base));
        harm(&parts.folder.base_file());
        assert!(!machine.step(&Action::Base));
        assert!(machine.step(&Action::Base));
        machine.ship();
        machine.check_restore();
        assert!(check(&machine).is_empty());
    }
}

#[test]
fn a_refused_head_of_a_new_era_is_a_failure_with_a_delay() {
    let bucket = MemoryBucket::default();
    bucket.0.lock().refuses_heads = true;
    let mut machine = Machine::new(&bucket, &generate_key().identity);
    machine.commit(1);
    let parts = Arc::clone(&machine.running().shipper.parts);
    let mut worker = ShipWorker::new(Arc::clone(&parts), LocalState::default());
    machine.runtime.block_on(async {
        let Ok(mut step) = worker.next_head().await else { panic!("nothing is due") };
        assert_eq!(step, Step::Start);
        let sent = worker.send(&mut step).await;
        assert!(sent.is_err());
        worker.record(step, Some(sent)).await;
        assert!(worker.next_head().await.is_err());
    });
    let report = parts.report();
    assert_eq!(report.state, BackupState::Blocked);
    assert!(report.cause.is_some_and(|cause| cause.contains("_backup/edge-1/head.json")));
    // They hold the lock of the store.
    drop((worker, parts));
    bucket.0.lock().refuses_heads = false;
    machine.restart();
    machine.begin();
    machine.check_restore();
}

#[test]
fn the_first_head_is_sent_again_if_it_was_lost() {
    let bucket = MemoryBucket::default();
    let mut machine = Machine::new(&bucket, &generate_key().identity);
    machine.commit(1);
    bucket.0.lock().faults.extend(HEAD_LOST);
    assert!(!machine.step(&Action::Ship));
    machine.begin();
    machine.check_restore();
    assert_eq!(bucket.keys("era.json").len(), 1);
}

#[test]
fn a_new_era_beside_another_machine_is_begun_although_its_first_head_was_lost() {
    let bucket = MemoryBucket::default();
    let old = filled(&bucket, &generate_key());
    let mut machine = Machine::new(&bucket, &old.key);
    machine.new_era = true;
    machine.restart();
    bucket.0.lock().faults.extend(HEAD_LOST);
    assert!(!machine.step(&Action::Ship));
    machine.restart();
    machine.begin();
    assert_eq!(machine.running().shipper.phase, Phase::Running);
    assert_eq!(machine.reader().read_head().unwrap().unwrap().head.number, 2);
    machine.check_restore();
}

#[test]
fn what_an_earlier_process_left_above_the_head_is_deleted() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let Running { shipper, .. } = machine.running();
    let (era, last) = (shipper.state.era.clone().unwrap().id, shipper.last().unwrap().sequence);
    let keys = &shipper.parts.keys;
    let left = [keys.segment(&era, last + 1, last + 3), keys.base(&era, last + 2)];
    for key in &left {
        bucket.0.lock().store(key, b"left by a crash".to_vec());
    }
    machine.restart();
    // The first step that writes after the bucket was tested.
    let parts = Arc::clone(&machine.running().shipper.parts);
    let state = BackupFolder::of(machine.dir.path()).read_state().unwrap();
    let mut worker = ShipWorker::new(parts, state);
    machine.runtime.block_on(async {
        for expected in [Step::Start, Step::Probe, Step::Check] {
            let Ok(mut step) = worker.next_head().await else { panic!("nothing is due") };
            assert_eq!(step, expected);
            let sent = worker.send(&mut step).await;
            worker.record(step, Some(sent)).await;
        }
    });
    assert!(left.iter().all(|key| !bucket.0.lock().objects.contains_key(key)));
}

#[test]
fn a_takeover_whose_answer_is_lost_ships_into_the_era_of_its_head() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    machine.commit(80);
    bucket.0.lock().faults.extend(HEAD_LOST.map(|fault| match fault {
        Fault::Lost => Fault::AnswerLost,
        fault => fault,
    }));
    assert!(!machine.take_over());
    machine.begin();
    machine.commit(81);
    machine.ship();
    let head = machine.reader().read_head().unwrap().unwrap().head;
    assert_eq!(head.number, 2);
    assert_eq!(Some(head.era), machine.running().shipper.state.era.clone().map(|own| own.id));
    machine.check_restore();
    assert!(check(&machine).is_empty());
}

#[test]
fn a_journal_with_other_frames_never_continues_the_era() {
    let bucket = MemoryBucket::default();
    let mut machine = machine_with_lost_frames(&bucket);
    (100..105).for_each(|number| machine.commit(number));
    // What the state says before the head of the new era is there must not hide the difference.
    bucket.0.lock().faults.extend(HEAD_LOST);
    assert!(!machine.step(&Action::Ship));
    machine.restart();
    machine.begin();
    let head = machine.reader().read_head().unwrap().unwrap().head;
    assert_eq!(head.number, 2);
    machine.check_restore();
}

#[test]
fn a_new_key_continues_where_the_era_before_ends() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let sent = machine.running().shipper.last().unwrap().sequence;
    machine.commit(60);
    machine.key = generate_key().identity;
    machine.restart();
    machine.begin();
    let state = machine.running().shipper.state.clone();
    assert_eq!((state.era.unwrap().begin.sequence, state.holes), (sent, Holes::default()));
    machine.check_restore();
}

#[test]
fn the_head_is_checked_with_the_secret_of_its_own_era() {
    let bucket = MemoryBucket::default();
    let key = generate_key();
    let mut machine = Machine::new(&bucket, &key.recipient);
    machine.commit(1);
    machine.begin();
    // Without the state of the recipient, the next era has no secret.
    machine.running = None;
    std::fs::remove_dir_all(machine.dir.path().join("backup")).unwrap();
    machine.key.clone_from(&key.identity);
    machine.restart();
    assert!(machine.take_over());
    machine.begin();
    assert_eq!(machine.reader().read_head().unwrap().unwrap().head.number, 2);
    let findings = check(&machine);
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn a_check_names_what_is_missing() {
    let bucket = MemoryBucket::default();
    let machine = filled(&bucket, &generate_key());
    let segment = bucket.keys(".segment").pop().unwrap();
    bucket.0.lock().unreadable = Some(segment.clone());
    assert!(check(&machine).iter().any(|(key, _)| *key == segment));
    bucket.0.lock().unreadable = None;
    let base = bucket.keys(".base").pop().unwrap();
    let head = bucket.keys("head.json");
    bucket.0.lock().objects.retain(|key, _| head.contains(key));
    assert!(check(&machine).iter().any(|(key, _)| *key == base));
    let key = BackupKey::parse(Some(&machine.key)).unwrap();
    let empty = Reader::new(MemoryBucket::default(), "plant/", GATEWAY, key).unwrap();
    let refused = empty.list().unwrap_err();
    assert_eq!(refused.class, ErrorClass::NotFound);
    for words in [GATEWAY, "the bucket of the test", "plant/_backup/edge-1/head.json"] {
        assert!(refused.detail.contains(words), "{refused}");
    }
}

#[test]
fn the_record_of_a_takeover_that_failed_limits_no_era() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let Running { shipper, .. } = machine.running();
    let own = shipper.state.era.clone().unwrap();
    let id = new_era_id(2);
    let continues = Continued { era: own.id.clone(), sequence: own.begin.sequence + 1 };
    let record = EraRecord::new(GATEWAY, (id.as_str(), 2), own.begin, Some(continues));
    let key = shipper.parts.keys.era(&id);
    bucket.0.lock().store(&key, record.to_text().into_bytes());
    machine.commit(90);
    machine.ship();
    let last = machine.running().shipper.last().unwrap().sequence;
    assert!(machine.take_over());
    machine.begin();
    let dir = tempfile::tempdir().unwrap();
    let request = RestoreRequest { era: Some(&own.id), ..request(dir.path(), true) };
    let restored = machine.reader().restore(&request, &mut |_| {}).unwrap();
    assert_eq!(restored.restored.backup.sequence, last);
}

#[test]
fn a_new_era_continues_the_newest_head_although_the_bucket_returned_an_older_one() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let sent = machine.running().shipper.last().unwrap().sequence;
    bucket.0.lock().faults.push_back(Fault::OldHead);
    assert!(!machine.take_over());
    assert!(machine.step(&Action::Probe));
    let head = machine.reader().read_head().unwrap().unwrap().head;
    assert!(head.number > 1 && head.base.is_none());
    // Until the new era has a base, everything that was sent before it is still restored.
    assert_eq!(head.restorable().unwrap().last.sequence, sent);
    machine.check_restore();
    machine.begin();
    assert!(check(&machine).is_empty());
}

#[test]
fn an_older_head_of_the_machine_before_replaces_nobody() {
    let bucket = MemoryBucket::default();
    let mut old = filled(&bucket, &generate_key());
    let mut new = restore(&old);
    bucket.0.lock().faults.push_back(Fault::OldHead);
    assert!(!new.step(&Action::Probe));
    assert_eq!(new.running().shipper.phase, Phase::Starting);
    new.begin();
    // Nor after a takeover by a machine that was replaced.
    old.step(&Action::Check);
    assert_eq!(old.running().shipper.phase, Phase::Stopped);
    assert!(old.take_over());
    // The requests list, and read the head.
    bucket.0.lock().faults.extend([Fault::None, Fault::OldHead]);
    assert!(!old.step(&Action::Check));
    assert_eq!(old.running().shipper.phase, Phase::Running);
    old.begin();
    old.check_restore();
}

#[test]
fn the_recipient_in_place_of_its_identity_begins_an_era_although_its_first_head_was_lost() {
    let bucket = MemoryBucket::default();
    let key = generate_key();
    let mut machine = filled(&bucket, &key);
    machine.key = key.recipient;
    machine.restart();
    bucket.0.lock().faults.extend(HEAD_LOST);
    assert!(!machine.step(&Action::Ship));
    machine.begin();
    machine.key = key.identity;
    assert_eq!(machine.reader().read_head().unwrap().unwrap().head.number, 2);
    machine.check_restore();
}

#[test]
fn nothing_is_sent_before_the_backup_was_listed() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    machine.commit(50);
    machine.restart();
    let parts = Arc::clone(&machine.running().shipper.parts);
    let state = BackupFolder::of(machine.dir.path()).read_state().unwrap();
    let mut worker = ShipWorker::new(Arc::clone(&parts), state);
    machine.runtime.block_on(async {
        for expected in [Step::Start, Step::Probe, Step::Check] {
            let Ok(mut step) = worker.next_head().await else { panic!("nothing is due") };
            assert_eq!(step, expected);
            if step == Step::Check {
                bucket.0.lock().faults.push_back(Fault::Lost);
            }
            let sent = worker.send(&mut step).await;
            worker.record(step, Some(sent)).await;
        }
        assert!(worker.next_head().await.is_err());
    });
    assert_eq!(parts.report().state, BackupState::Blocked);
}

#[test]
fn the_times_of_what_was_sent_are_removed_although_others_wait() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let Running { shipper, .. } = machine.running();
    let last = shipper.last().unwrap().sequence;
    for number in 50..53 {
        machine.commit(number);
        let Running { shipper, .. } = machine.running.as_mut().unwrap();
        machine.runtime.block_on(shipper.record_point()).unwrap();
    }
    let folder = machine.running().shipper.parts.folder.clone();
    let waiting = Point { sequence: last + 1_000, time: time_of_system() };
    folder.append_point(&waiting).unwrap();
    assert_eq!(folder.read_points(0, 9).len(), 4);
    let Running { shipper, .. } = machine.running.as_mut().unwrap();
    machine.runtime.block_on(shipper.ship()).unwrap();
    assert_eq!(folder.read_points(0, 9), [waiting]);
}

#[test]
fn the_times_of_frames_that_are_given_up_are_removed_although_the_link_is_down() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    for number in 50..70 {
        machine.commit(number);
        let Running { shipper, .. } = machine.running.as_mut().unwrap();
        machine.runtime.block_on(shipper.record_point()).unwrap();
    }
    machine.running().store.compact_journal().unwrap();
    machine.reserve = u64::MAX;
    machine.restart();
    let folder = BackupFolder::of(machine.dir.path());
    assert_eq!(folder.read_points(0, 99).len(), 20);
    bucket.0.lock().faults.extend([Fault::Lost; 5]);
    assert!(!machine.step(&Action::Ship));
    assert!(machine.running().shipper.state.holes.newest().is_some());
    assert!(folder.read_points(0, 99).is_empty());
    bucket.0.lock().faults.clear();
    machine.reserve = 0;
    machine.restart();
    machine.begin();
    machine.check_restore();
}

#[test]
fn no_times_are_recorded_before_the_first_era() {
    let bucket = MemoryBucket::default();
    let mut machine = Machine::new(&bucket, &generate_key().identity);
    machine.commit(1);
    bucket.0.lock().faults.push_back(Fault::Lost);
    let parts = Arc::clone(&machine.running().shipper.parts);
    let mut worker = ShipWorker::new(Arc::clone(&parts), LocalState::default());
    machine.runtime.block_on(async {
        let Ok(mut step) = worker.next_head().await else { panic!("nothing is due") };
        assert_eq!(step, Step::Start);
        let sent = worker.send(&mut step).await;
        assert!(sent.is_err());
        worker.record(step, Some(sent)).await;
        assert!(worker.next_head().await.is_err());
    });
    assert!(parts.folder.read_points(0, 9).is_empty());
}

#[test]
fn a_segment_that_counts_already_is_not_sent_for_ever() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let before = machine.running().shipper.known.clone();
    machine.commit(70);
    machine.ship();
    // As if the bucket had returned the head before, after the answer to the last one was lost. The segment is built again
    // and has other bytes, because it is encrypted again.
    machine.running().shipper.known = before;
    assert!(!machine.step(&Action::Ship));
    machine.ship();
    machine.commit(71);
    machine.ship();
    let newest = machine.running().store.newest_durable();
    assert_eq!(machine.running().shipper.last().unwrap().sequence, newest);
    machine.check_restore();
}

#[test]
fn a_changed_key_keeps_what_can_be_restored_while_the_era_has_no_base() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    assert!(machine.take_over());
    let before = machine.reader().read_head().unwrap().unwrap().head;
    assert!(before.base.is_none() && before.restorable().is_some());
    machine.key = generate_key().identity;
    machine.restart();
    machine.ship();
    let head = machine.reader().read_head().unwrap().unwrap().head;
    assert_eq!((head.number, head.restorable()), (3, before.restorable()));
}
