//! Tests the backup against a small model: random commits, shipments, bases, merges, compactions, new eras, kills and
//! restarts, with a bucket in memory that loses requests and answers, cuts uploads and returns old heads. After each step,
//! a restore has the state after a commit that the head names, no older one than before, and the machine that was replaced
//! writes nothing more.
mod bucket;
mod damage;
mod holes;
mod machine;
mod repairs;
mod restores;

use super::folder::BackupFolder;
use super::head::MarkedTime;
use super::objects::Point;
use super::parts::Uploaded;
use super::place::Upload;
use super::reader::Reader;
use super::report::BackupState;
use super::restore::RestoreRequest;
use super::secrecy::{BackupKey, GeneratedKey, generate_key};
use super::ship::Phase;
use super::state::LocalState;
use super::worker::{ShipWorker, Step, run_workers};
use crate::delivery_loop::DeliveryQueue as _;
use bucket::{Fault, MemoryBucket};
use jiff::{SignedDuration, Timestamp};
use machine::{Action, GATEWAY, Machine, Running, content, request, store_dir};
use penstock_base::error::ErrorClass;
use penstock_base::hex::encode_hex;
use penstock_store::{Options, SEQUENCE_JUMP, Store};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let fault = prop_oneof![
        2 => Just(Fault::None),
        1 => Just(Fault::Lost),
        1 => Just(Fault::AnswerLost),
        1 => Just(Fault::OldHead),
    ];
    let action = prop_oneof![
        6 => (0_u64..1_000).prop_map(Action::Commit),
        6 => Just(Action::Ship),
        2 => Just(Action::Base),
        1 => Just(Action::Probe),
        1 => Just(Action::Check),
        2 => Just(Action::Merge),
        1 => Just(Action::TakeOver),
        2 => Just(Action::Restart),
        1 => Just(Action::Compact),
        1 => Just(Action::Pack),
        1 => (1_i64..1_000).prop_map(Action::Advance),
        3 => prop::collection::vec(fault, 1..6).prop_map(Action::Faults),
    ];
    prop::collection::vec(action, 1..60)
}

fn run_actions(actions: Vec<Action>) {
    let bucket = MemoryBucket::default();
    let mut machine = Machine::new(&bucket, &generate_key().identity);
    let mut covered = None;
    for action in actions {
        match &action {
            Action::TakeOver => drop(machine.take_over()),
            Action::Commit(number) => machine.commit(*number),
            Action::Restart => machine.restart(),
            Action::Compact => machine.running().store.compact_journal().unwrap(),
            Action::Pack => machine.running().store.pack_segments().unwrap(),
            Action::Advance(hours) => bucket.advance(*hours),
            Action::Faults(faults) => bucket.0.lock().faults.extend(faults),
            step => drop(machine.step(step)),
        }
        // One machine alone is never replaced, whatever the bucket loses.
        assert_ne!(machine.running().shipper.phase, Phase::Stopped, "{action:?}");
        let restored = machine.check_restore();
        assert!(restored >= covered, "{action:?}: {restored:?} after {covered:?}");
        covered = restored;
    }
    // Once the link works, everything arrives.
    bucket.0.lock().faults.clear();
    machine.begin();
    machine.check_restore();
    let newest = machine.running().store.newest_durable();
    let last = machine.running().shipper.last().unwrap().sequence;
    assert_eq!(last, newest);
    let mut findings = Vec::new();
    let checked =
        machine.reader().check(None, &mut |found| findings.push(found.clone()), &mut |_| {});
    assert_eq!((findings, checked.unwrap().findings), (Vec::new(), 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_restore_has_what_the_head_names_after_any_steps(actions in actions()) {
        run_actions(actions);
    }
}

fn filled(bucket: &MemoryBucket, key: &GeneratedKey) -> Machine {
    let mut machine = Machine::new(bucket, &key.identity);
    (0..5).for_each(|number| machine.commit(number));
    machine.begin();
    for number in 5..12 {
        machine.commit(number);
        machine.ship();
    }
    machine
}

/// Restores the gateway of a machine into a new one, which takes over.
fn restore(machine: &Machine) -> Machine {
    let dir = tempfile::tempdir().unwrap();
    let restored = machine.reader().restore(&request(dir.path(), false), &mut |_| {}).unwrap();
    assert!(restored.new_era.is_some() && restored.warnings.is_empty(), "{restored:?}");
    assert_eq!(restored.jump, SEQUENCE_JUMP);
    Machine::in_dir(dir, &machine.bucket, &machine.key)
}

#[test]
fn a_new_machine_takes_over_and_the_old_one_stops() {
    let bucket = MemoryBucket::default();
    let mut old = filled(&bucket, &generate_key());
    let mut new = restore(&old);
    // The clock's document of the start is in another collection.
    let newest = old.states.values().next_back().unwrap().clone();
    assert_eq!(content(&new.running().store), newest);
    new.commit(100);
    new.begin();
    new.check_restore();
    old.commit(200);
    old.step(&Action::Ship);
    assert_eq!(old.running().shipper.phase, Phase::Stopped);
    let before = bucket.0.lock().writes;
    old.commit(201);
    old.step(&Action::Ship);
    let report = old.running().shipper.parts.report();
    assert_eq!(report.state, BackupState::Replaced);
    assert!(old.running().shipper.parts.uplink.hold_reason().is_some());
    // Also after a restart without a link.
    bucket.0.lock().faults.extend([Fault::Lost; 5]);
    old.restart();
    old.step(&Action::Ship);
    assert_eq!(old.running().shipper.phase, Phase::Stopped);
    bucket.0.lock().faults.clear();
    assert_eq!(bucket.0.lock().writes, before, "a replaced machine writes nothing");
    new.commit(101);
    new.ship();
    new.check_restore();
    // The operator may want the old one after all.
    assert!(old.take_over());
    old.begin();
    assert!(old.running().shipper.parts.uplink.hold_reason().is_none());
    new.commit(102);
    new.step(&Action::Ship);
    assert_eq!(new.running().shipper.phase, Phase::Stopped);
}

#[test]
fn of_a_machine_and_the_clone_of_its_disk_one_stops() {
    for ignores_if_match in [false, true] {
        let bucket = MemoryBucket::default();
        bucket.0.lock().ignores_if_match = ignores_if_match;
        let mut machine = filled(&bucket, &generate_key());
        machine.running = None;
        let dir = tempfile::tempdir().unwrap();
        copy_folder(machine.dir.path(), dir.path());
        machine.restart();
        machine.begin();
        machine.commit(50);
        machine.ship();
        let mut clone = Machine::in_dir(dir, &bucket, &machine.key);
        clone.commit(60);
        clone.step(&Action::Ship);
        assert_eq!(clone.running().shipper.phase, Phase::Stopped);
        machine.commit(51);
        machine.ship();
        assert_eq!(machine.running().shipper.phase, Phase::Running);
        machine.check_restore();
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = to.join(path.file_name().unwrap());
        if path.is_dir() { copy_folder(&path, &name) } else { drop(std::fs::copy(&path, &name)) }
    }
}

#[test]
fn two_clones_that_run_at_once_overwrite_nothing() {
    for ignores_if_match in [false, true] {
        let bucket = MemoryBucket::default();
        bucket.0.lock().ignores_if_match = ignores_if_match;
        let mut one = filled(&bucket, &generate_key());
        one.running = None;
        let dir = tempfile::tempdir().unwrap();
        copy_folder(one.dir.path(), dir.path());
        one.restart();
        let mut two = Machine::in_dir(dir, &bucket, &one.key);
        // Both read the same head, and have other commits with the same sequences.
        assert!(one.step(&Action::Probe) && two.step(&Action::Probe));
        one.commit(50);
        two.commit(60);
        one.ship();
        let before: Vec<(String, Vec<u8>)> = bucket
            .keys(".age")
            .into_iter()
            .map(|key| (key.clone(), bucket.0.lock().objects[&key].bytes.clone()))
            .collect();
        two.step(&Action::Ship);
        two.step(&Action::Base);
        assert_eq!(two.running().shipper.phase, Phase::Stopped);
        for (key, bytes) in before {
            assert!(bucket.0.lock().objects[&key].bytes == bytes, "{key} was overwritten");
        }
        one.commit(51);
        one.ship();
        one.check_restore();
    }
}

#[test]
fn the_clone_of_a_running_disk_stops_although_its_journal_is_shorter() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let dir = tempfile::tempdir().unwrap();
    for folder in ["backup", "store/journal"] {
        copy_folder(&machine.dir.path().join(folder), &dir.path().join(folder));
    }
    machine.commit(50);
    machine.ship();
    let writes = bucket.0.lock().writes;
    let mut clone = Machine::in_dir(dir, &bucket, &machine.key);
    clone.commit(60);
    clone.step(&Action::Ship);
    assert_eq!(clone.running().shipper.phase, Phase::Stopped);
    assert_eq!(bucket.0.lock().writes, writes);
    machine.commit(51);
    machine.ship();
    assert_eq!(machine.running().shipper.phase, Phase::Running);
    machine.check_restore();
}

#[test]
fn a_leftover_is_replaced_and_what_counts_is_not() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    machine.commit(70);
    let newest = machine.running().store.newest_durable();
    let Running { shipper, .. } = machine.running();
    let (era, last) = (shipper.state.era.clone().unwrap().id, shipper.last().unwrap().sequence);
    let key = shipper.parts.keys.segment(&era, last + 1, newest);
    bucket.0.lock().store(&key, b"left by a crash".to_vec());
    machine.ship();
    machine.check_restore();
    let path = machine.dir.path().join("other");
    std::fs::write(&path, b"other").unwrap();
    let sha256 = encode_hex(&Sha256::digest(b"other"));
    let base = bucket.keys(".base").pop().unwrap();
    for (key, is_base) in [(key, false), (base, true)] {
        let upload = Upload { key, path: path.clone(), bytes: 5, sha256: sha256.clone(), is_base };
        let Running { shipper, .. } = machine.running.as_mut().unwrap();
        let uploaded = machine.runtime.block_on(shipper.parts.upload(&upload));
        assert_eq!(uploaded, Ok(Uploaded::Kept));
    }
    machine.check_restore();
}

#[test]
fn a_take_over_replaces_a_head_that_cannot_be_used_and_continues_after_a_failure() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    for harm in ["{", "{\"penstock\":\"backup-head\"}"] {
        let head = bucket.keys("head.json").pop().unwrap();
        bucket.change(&head, |bytes| *bytes = harm.as_bytes().to_vec());
        bucket.0.lock().objects.get_mut(&head).unwrap().etag = format!("\"{}\"", harm.len());
        machine.restart();
        machine.commit(80);
        assert!(!machine.step(&Action::Ship));
        bucket.0.lock().faults.push_back(Fault::Lost);
        *machine.running().shipper.parts.take_over.lock() = true;
        assert!(!machine.step(&Action::Ship));
        machine.begin();
        machine.check_restore();
    }
}

/// Returns a machine whose medium lied about the last commits that were sent, but not about the state of the backup.
fn machine_with_lost_frames(bucket: &MemoryBucket) -> Machine {
    let mut machine = filled(bucket, &generate_key());
    machine.running = None;
    let dir = tempfile::tempdir().unwrap();
    copy_folder(&machine.dir.path().join("store"), &dir.path().join("store"));
    machine.restart();
    machine.step(&Action::Ship);
    machine.commit(70);
    machine.ship();
    machine.running = None;
    std::fs::remove_dir_all(machine.dir.path().join("store")).unwrap();
    copy_folder(&dir.path().join("store"), &machine.dir.path().join("store"));
    machine.states.clear();
    machine.restart();
    machine
}

#[test]
fn a_journal_that_lost_synced_frames_begins_a_new_era() {
    let bucket = MemoryBucket::default();
    let mut machine = machine_with_lost_frames(&bucket);
    machine.begin();
    assert_eq!(machine.running().shipper.phase, Phase::Running);
    let head = machine.reader().read_head().unwrap().unwrap().head;
    assert_eq!((head.number, bucket.keys("era.json").len()), (2, 2));
    machine.check_restore();
}

#[test]
fn small_segments_are_merged_and_deleted_a_day_later() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let before = bucket.keys(".segment").len();
    assert!(before >= 7);
    assert!(machine.step(&Action::Merge));
    assert_eq!(bucket.keys(".segment").len(), before + 1);
    machine.check_restore();
    bucket.advance(25);
    assert!(machine.step(&Action::Check));
    assert!(bucket.keys(".segment").len() <= 2, "{:?}", bucket.keys(".segment"));
    machine.check_restore();
}

#[test]
fn a_missing_object_is_replaced_by_a_new_base() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let lost = bucket.keys(".segment").pop().unwrap();
    bucket.0.lock().objects.remove(&lost);
    assert!(machine.step(&Action::Check));
    assert!(!machine.running().shipper.parts.report().restorable);
    let dir = tempfile::tempdir().unwrap();
    let refused = machine.reader().restore(&request(dir.path(), true), &mut |_| {}).unwrap_err();
    assert!(refused.detail.contains("lacks the frames"), "{refused}");
    assert!(machine.step(&Action::Base) && machine.step(&Action::Ship));
    assert!(machine.running().shipper.parts.report().restorable);
    machine.check_restore();
}

#[test]
fn hostile_objects_are_refused_by_name_and_leave_nothing() {
    let bucket = MemoryBucket::default();
    let key = generate_key();
    let machine = filled(&bucket, &key);
    let other = filled(&MemoryBucket::default(), &key);
    let segments = bucket.keys(".segment");
    let (first, second) = (segments[0].clone(), segments[1].clone());
    let base = bucket.keys(".base").pop().unwrap();
    let of = |bucket: &MemoryBucket, key: &str| bucket.0.lock().objects[key].bytes.clone();
    let foreign = of(&other.bucket, &other.bucket.keys(".segment")[0]);
    let foreign_base = of(&other.bucket, &other.bucket.keys(".base")[0]);
    let (swapped, stored_base) = (of(&bucket, &second), of(&bucket, &base));
    let cut = swapped[..swapped.len() / 2].to_vec();
    let mut changed = swapped.clone();
    *changed.last_mut().unwrap() ^= 1;
    let cut_base = stored_base[..stored_base.len() - 9].to_vec();
    let cases = [
        ("swapped", &first, swapped),
        ("of another era", &first, foreign),
        ("cut", &second, cut),
        ("changed", &second, changed),
        ("base of another era", &base, foreign_base),
        ("cut base", &base, cut_base),
    ];
    for (case, name, hostile) in cases {
        let before = of(&bucket, name);
        bucket.change(name, |bytes| *bytes = hostile);
        let dir = tempfile::tempdir().unwrap();
        let refused = machine.reader().restore(&request(dir.path(), false), &mut |_| {});
        let refused = refused.unwrap_err();
        assert_eq!(refused.class, ErrorClass::Damaged, "{case}: {refused}");
        assert!(refused.detail.contains(name), "{case}: {refused}");
        assert!(!dir.path().join("store/journal").exists(), "{case}");
        let mut found = Vec::new();
        let checked =
            machine.reader().check(None, &mut |finding| found.push(finding.clone()), &mut |_| {});
        assert!(checked.unwrap().findings > 0, "{case}");
        bucket.change(name, |bytes| *bytes = before);
    }
    let head = bucket.keys("head.json").pop().unwrap();
    let text = String::from_utf8(of(&bucket, &head)).unwrap();
    bucket.change(&head, |bytes| {
        *bytes = text.replace("\"write\":", "\"write\":1").into_bytes();
    });
    let dir = tempfile::tempdir().unwrap();
    let refused = machine.reader().restore(&request(dir.path(), false), &mut |_| {}).unwrap_err();
    assert!(refused.detail.contains("HMAC"), "{refused}");
    let stranger = BackupKey::parse(Some(&generate_key().identity)).unwrap();
    let reader = Reader::new(bucket.clone(), "", GATEWAY, stranger).unwrap();
    let refused = reader.restore(&request(dir.path(), false), &mut |_| {}).unwrap_err();
    assert_eq!(refused.class, ErrorClass::Forbidden, "{refused}");
    assert!(refused.detail.contains("fingerprint"), "{refused}");
}

#[test]
fn a_gateway_with_only_a_recipient_ships_and_merges_and_the_identity_restores() {
    let bucket = MemoryBucket::default();
    let key = generate_key();
    let mut machine = Machine::new(&bucket, &key.recipient);
    machine.begin();
    for number in 0..6 {
        machine.commit(number);
        machine.ship();
    }
    assert!(machine.step(&Action::Merge));
    machine.restart();
    machine.commit(9);
    machine.ship();
    let dir = tempfile::tempdir().unwrap();
    let refused = machine.reader().restore(&request(dir.path(), true), &mut |_| {}).unwrap_err();
    assert_eq!(refused.class, ErrorClass::Forbidden);
    machine.key.clone_from(&key.identity);
    machine.check_restore();
    // The new machine has the identity, and continues with the secret of the base.
    let mut new = restore(&machine);
    new.begin();
    new.check_restore();
}

#[test]
fn a_changed_key_begins_a_new_era() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    machine.key = generate_key().identity;
    machine.restart();
    machine.begin();
    let head = machine.reader().read_head().unwrap().unwrap().head;
    assert_eq!((head.number, head.previous), (2, None));
    let mut notes = Vec::new();
    let checked =
        machine.reader().check(None, &mut |found| notes.push(found.is_note), &mut |_| {}).unwrap();
    assert_eq!((checked.findings, checked.other_keys, notes), (0, 1, vec![true]));
    machine.check_restore();
}

#[test]
fn a_moment_is_restored_from_the_times_in_the_segments() {
    let bucket = MemoryBucket::default();
    let mut machine = Machine::new(&bucket, &generate_key().identity);
    machine.begin();
    let mut moments = Vec::new();
    for number in 0..6 {
        machine.commit(number);
        machine.ship();
        moments.push((Timestamp::now(), machine.running().store.newest_durable()));
        std::thread::sleep(Duration::from_millis(15));
    }
    assert!(machine.step(&Action::Merge));
    for (at, sequence) in moments {
        let dir = tempfile::tempdir().unwrap();
        let request = RestoreRequest { at: Some(at), ..request(dir.path(), true) };
        let restored = machine.reader().restore(&request, &mut |_| {}).unwrap();
        assert_eq!(restored.restored.backup.sequence, sequence, "{at}");
        let store = Store::open(&store_dir(dir.path()), Options::default(), &mut |_| {}).unwrap();
        assert_eq!(Some(&content(&store)), machine.states.get(&sequence));
    }
    let dir = tempfile::tempdir().unwrap();
    let long_ago = Timestamp::now() - SignedDuration::from_hours(1);
    let request = RestoreRequest { at: Some(long_ago), ..request(dir.path(), true) };
    let refused = machine.reader().restore(&request, &mut |_| {}).unwrap_err();
    assert_eq!(refused.class, ErrorClass::NotFound);
}

/// Commits, and records that it happened so many hours ago. Returns the sequence.
fn commit_hours_ago(machine: &mut Machine, number: u64, hours: i64) -> u64 {
    machine.commit(number);
    let sequence = machine.running().store.newest_durable();
    let at = (Timestamp::now() - SignedDuration::from_hours(hours)).to_string();
    let point = Point { sequence, time: MarkedTime { at, clock: None } };
    machine.running().shipper.parts.folder.append_point(&point).unwrap();
    sequence
}

#[test]
fn the_lag_is_the_age_of_the_oldest_commit_that_is_not_in_the_bucket() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let report = machine.running().shipper.parts.report();
    assert_eq!((report.lag_seconds, report.lag_bytes), (0, 0));
    let first = commit_hours_ago(&mut machine, 50, 3);
    commit_hours_ago(&mut machine, 51, 2);
    let report = machine.running().shipper.parts.report();
    assert_eq!(report.lag_seconds / 3_600, 3);
    // A segment with the first commit only.
    machine.running().shipper.parts.reported.lock().report.last_sequence = Some(first);
    let report = machine.running().shipper.parts.report();
    assert_eq!(report.lag_seconds / 3_600, 2);
    // After a restart without a link, the data directory knows it.
    bucket.0.lock().faults.extend([Fault::Lost; 5]);
    machine.restart();
    assert!(!machine.step(&Action::Ship));
    let report = machine.running().shipper.parts.report();
    assert_eq!((report.lag_seconds / 3_600, report.last_sequence), (3, Some(first - 1)));
    assert!(report.restorable && report.lag_bytes > 0 && report.era.is_some(), "{report:?}");
    bucket.0.lock().faults.clear();
    machine.ship();
    let report = machine.running().shipper.parts.report();
    assert_eq!((report.lag_seconds, report.lag_bytes), (0, 0));
    // A clock that was set back.
    commit_hours_ago(&mut machine, 52, -1);
    let report = machine.running().shipper.parts.report();
    assert!(report.lag_seconds == 0 && report.lag_bytes > 0, "{report:?}");
}

#[test]
fn times_are_recorded_while_the_head_cannot_be_read() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    machine.commit(50);
    machine.restart();
    bucket.0.lock().faults.extend([Fault::Lost; 5]);
    let state = BackupFolder::of(machine.dir.path()).read_state().unwrap();
    let parts = Arc::clone(&machine.running().shipper.parts);
    let mut worker = ShipWorker::new(Arc::clone(&parts), state);
    machine.runtime.block_on(async {
        let Ok(mut step) = worker.next_head().await else { panic!("nothing is due") };
        assert_eq!(step, Step::Start);
        let sent = worker.send(&mut step).await;
        assert!(parts.folder.read_points(0, 9).is_empty());
        worker.record(step, Some(sent)).await;
        assert!(worker.next_head().await.is_err());
    });
    let points = parts.folder.read_points(0, 9);
    let sequences: Vec<u64> = points.iter().map(|point| point.sequence).collect();
    assert_eq!(sequences, [parts.store.newest_durable()]);
    let report = parts.report();
    assert_eq!(report.state, BackupState::Blocked);
    assert!(report.restorable && report.lag_bytes > 0, "{report:?}");
}

/// Stops a gateway that has just started. The backup gets at most `grace`.
fn stop(machine: &mut Machine, grace: Duration) {
    let parts = Arc::clone(&machine.running().shipper.parts);
    let state = BackupFolder::of(machine.dir.path()).read_state().unwrap();
    let (_stop, stopped) = watch::channel(true);
    machine.runtime.block_on(run_workers(&parts, state, stopped, grace));
}

#[test]
fn a_stop_sends_the_last_commits() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    machine.commit(50);
    machine.restart();
    let newest = machine.running().store.newest_durable();
    stop(&mut machine, Duration::from_hours(1));
    assert_eq!(machine.check_restore(), Some(newest));
    assert_eq!(machine.running().shipper.parts.count_unsent(), 0);
}

#[test]
fn a_stop_ends_although_the_bucket_hangs() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    machine.commit(50);
    machine.restart();
    let sent = machine.check_restore();
    bucket.0.lock().hanging_uploads = Some(".segment");
    stop(&mut machine, Duration::from_millis(100));
    assert_eq!(machine.check_restore(), sent);
    assert!(machine.running().shipper.parts.count_unsent() > 0);
}

#[test]
fn a_restore_fails_if_the_old_machine_writes_meanwhile() {
    let bucket = MemoryBucket::default();
    let machine = std::cell::RefCell::new(filled(&bucket, &generate_key()));
    let reader = machine.borrow().reader();
    let dir = tempfile::tempdir().unwrap();
    let mut number = 300;
    let refused = reader.restore(&request(dir.path(), false), &mut |_| {
        number += 1;
        let mut machine = machine.borrow_mut();
        machine.commit(number);
        machine.ship();
    });
    let refused = refused.unwrap_err();
    assert_eq!(refused.class, ErrorClass::Conflict, "{refused}");
    assert!(!dir.path().join("store/journal").exists());
    assert_eq!(BackupFolder::of(dir.path()).read_state().unwrap(), LocalState::default());
}
