//! Restores that fail, are repeated, or go to a moment of the past.
use super::bucket::MemoryBucket;
use super::machine::{Action, Machine, request};
use super::repairs::check;
use super::{commit_hours_ago, filled};
use crate::backup::folder::BackupFolder;
use crate::backup::restore::RestoreRequest;
use crate::backup::secrecy::generate_key;
use jiff::{SignedDuration, Timestamp};
use penstock_store::SEQUENCE_JUMP;
use std::time::Duration;

#[test]
fn a_restore_reads_the_head_again_if_what_it_named_is_deleted_meanwhile() {
    let bucket = MemoryBucket::default();
    let machine = std::cell::RefCell::new(filled(&bucket, &generate_key()));
    assert!(machine.borrow_mut().take_over());
    let reader = machine.borrow().reader();
    let dir = tempfile::tempdir().unwrap();
    let mut is_read = false;
    let restored = reader.restore(&request(dir.path(), true), &mut |_| {
        // The base of the era before was read, and its segments follow.
        if !std::mem::replace(&mut is_read, true) {
            let mut machine = machine.borrow_mut();
            assert!(machine.step(&Action::Base) && machine.step(&Action::Ship));
            bucket.advance(31 * 24);
            assert!(machine.step(&Action::Check));
        }
    });
    let era = machine.borrow_mut().running().shipper.state.era.clone().unwrap().id;
    assert_eq!(restored.unwrap().era, era);
}

#[test]
fn a_restore_whose_takeover_is_denied_leaves_nothing() {
    let bucket = MemoryBucket::default();
    let machine = filled(&bucket, &generate_key());
    let dir = tempfile::tempdir().unwrap();
    let reader = machine.reader();
    let restore = || reader.restore(&request(dir.path(), false), &mut |_| {});
    bucket.0.lock().denies_heads = true;
    let denied = restore().unwrap_err();
    assert!(denied.detail.contains("403"), "{denied}");
    assert_eq!(reader.read_head().unwrap().unwrap().head.number, 1);
    assert!(!dir.path().join("backup").exists());
    bucket.0.lock().denies_heads = false;
    assert!(restore().unwrap().new_era.is_some());
}

#[test]
fn a_restore_that_fails_after_its_takeover_continues_the_same_era() {
    let bucket = MemoryBucket::default();
    let machine = filled(&bucket, &generate_key());
    let dir = tempfile::tempdir().unwrap();
    let reader = machine.reader();
    let restore = || reader.restore(&request(dir.path(), false), &mut |_| {});
    // Nothing can replace a folder, so the head is written and the state is not.
    let obstacle = dir.path().join("backup/state.json");
    std::fs::create_dir_all(&obstacle).unwrap();
    restore().unwrap_err();
    let head = reader.read_head().unwrap().unwrap().head;
    assert_eq!(head.number, 2);
    std::fs::remove_dir(&obstacle).unwrap();
    let restored = restore().unwrap();
    assert_eq!((restored.new_era.as_ref(), restored.jump), (Some(&head.era), SEQUENCE_JUMP));
    assert_eq!(bucket.keys("era.json").len(), 2);
    assert!(BackupFolder::of(dir.path()).read_takeover().is_none());
    let mut new = Machine::in_dir(dir, &bucket, &machine.key);
    new.commit(100);
    new.begin();
    assert_eq!(new.reader().read_head().unwrap().unwrap().head.era, head.era);
    new.check_restore();
}

#[test]
fn a_moment_within_a_segment_is_restored_again_before_the_new_era_has_a_base() {
    let bucket = MemoryBucket::default();
    let mut machine = filled(&bucket, &generate_key());
    let era = machine.running().shipper.state.era.clone().unwrap().id;
    // Without a link for hours, one segment has both commits.
    let sequence = commit_hours_ago(&mut machine, 50, -1);
    commit_hours_ago(&mut machine, 51, -3);
    machine.ship();
    let lost = tempfile::tempdir().unwrap();
    let at = Timestamp::now() + SignedDuration::from_hours(2);
    let moment = RestoreRequest { at: Some(at), ..request(lost.path(), false) };
    let restored = machine.reader().restore(&moment, &mut |_| {}).unwrap();
    assert_eq!(restored.restored.backup.sequence, sequence);

    // That machine is lost too, before its first base.
    let findings = check(&machine);
    assert!(findings.is_empty(), "{findings:?}");
    let dir = tempfile::tempdir().unwrap();
    let again = machine.reader().restore(&request(dir.path(), false), &mut |_| {}).unwrap();
    assert_eq!(again.restored.backup.sequence, sequence);
    let mut new = Machine::in_dir(dir, &bucket, &machine.key);
    new.begin();
    // What the new era continues is the end of the one before.
    let look = tempfile::tempdir().unwrap();
    let earlier = RestoreRequest { era: Some(&era), ..request(look.path(), true) };
    let looked = new.reader().restore(&earlier, &mut |_| {}).unwrap();
    assert_eq!(looked.restored.backup.sequence, sequence);
}

#[test]
fn a_moment_before_the_first_commit_of_an_era_is_restored_from_its_base() {
    let bucket = MemoryBucket::default();
    let mut machine = Machine::new(&bucket, &generate_key().identity);
    machine.commit(1);
    machine.begin();
    let sequence = machine.running().store.newest_durable();
    let at = Timestamp::now();
    std::thread::sleep(Duration::from_millis(15));
    machine.commit(2);
    machine.ship();
    let dir = tempfile::tempdir().unwrap();
    let moment = RestoreRequest { at: Some(at), ..request(dir.path(), true) };
    let restored = machine.reader().restore(&moment, &mut |_| {}).unwrap();
    assert_eq!(restored.restored.backup.sequence, sequence);
}
