//! Damage of the state in the data directory.
use super::bucket::{Fault, MemoryBucket};
use super::machine::{Action, Machine, Running};
use super::{filled, restore};
use crate::backup::data_dir::{has_era, request_take_over, retain_after, stored_hold};
use crate::backup::report::BackupState;
use crate::backup::secrecy::generate_key;
use crate::backup::ship::Phase;
use crate::backup::worker::ShipWorker;
use crate::delivery_loop::DeliveryQueue as _;
use std::sync::Arc;

/// The state and its copy.
const STATE_FILES: [&str; 2] = ["state.json", "state.copy.json"];

/// Ends the process, and zeroes files of the backup as a power cut can.
fn zero_files(machine: &mut Machine, names: &[&str]) {
    machine.running = None;
    for name in names {
        std::fs::write(machine.dir.path().join("backup").join(name), [0_u8; 700]).unwrap();
    }
}

#[test]
fn an_era_continues_although_the_state_or_its_copy_is_damaged() {
    for name in STATE_FILES {
        let bucket = MemoryBucket::default();
        // Only the state has the secret of a recipient.
        let key = generate_key();
        let mut machine = Machine::new(&bucket, &key.recipient);
        machine.commit(1);
        machine.begin();
        zero_files(&mut machine, &[name]);
        machine.restart();
        machine.commit(2);
        machine.ship();
        let newest = machine.running().store.newest_durable();
        let warnings = machine.running().shipper.parts.report().warnings;
        let is_state = name == "state.json";
        assert_eq!(warnings.iter().any(|one| one.contains("state.json.damaged")), is_state);
        machine.key = key.identity;
        let head = machine.reader().read_head().unwrap().unwrap().head;
        assert_eq!((head.number, head.last.sequence), (1, newest));
        machine.check_restore();
    }
}

#[test]
fn a_replaced_machine_stays_so_although_its_state_is_damaged() {
    let bucket = MemoryBucket::default();
    let mut old = filled(&bucket, &generate_key());
    let mut new = restore(&old);
    new.begin();
    old.commit(200);
    old.step(&Action::Ship);
    assert_eq!(old.running().shipper.phase, Phase::Stopped);
    zero_files(&mut old, &["state.json"]);
    // Without a link only the data directory knows it.
    bucket.0.lock().faults.extend([Fault::Lost; 5]);
    assert!(stored_hold(old.dir.path()).unwrap().is_some());
    old.restart();
    old.step(&Action::Ship);
    assert_eq!(old.running().shipper.phase, Phase::Stopped);
}

#[test]
fn frames_stay_for_a_state_that_can_be_read_again_unless_the_disk_is_full() {
    for is_full in [false, true] {
        let bucket = MemoryBucket::default();
        let mut machine = filled(&bucket, &generate_key());
        // Several segments of the journal, which are not sent.
        (60..80).for_each(|number| machine.commit(number));
        let folder = machine.dir.path().join("backup");
        let whole = STATE_FILES.map(|name| std::fs::read(folder.join(name)).unwrap());
        zero_files(&mut machine, &STATE_FILES);
        machine.reserve = if is_full { u64::MAX } else { 0 };
        machine.restart();
        machine.running().store.compact_journal().unwrap();
        assert!(!machine.step(&Action::Ship));
        assert_eq!(machine.running().store.retained_bytes().unwrap() == 0, is_full);
        if is_full {
            continue;
        }
        machine.running = None;
        for (name, bytes) in STATE_FILES.iter().zip(whole) {
            std::fs::write(folder.join(name), bytes).unwrap();
        }
        machine.restart();
        machine.ship();
        let newest = machine.running().store.newest_durable();
        let head = machine.reader().read_head().unwrap().unwrap().head;
        assert_eq!((head.number, head.last.sequence), (1, newest));
        assert_eq!(machine.running().shipper.state.holes.newest(), None);
        machine.check_restore();
    }
}

#[test]
fn without_its_state_a_machine_sends_nothing_until_it_takes_over() {
    for is_asked_while_it_runs in [false, true] {
        let bucket = MemoryBucket::default();
        let mut machine = filled(&bucket, &generate_key());
        let dir = machine.dir.path().to_owned();
        zero_files(&mut machine, &STATE_FILES);
        for number in 60..62 {
            let writes = bucket.0.lock().writes;
            assert!(stored_hold(&dir).unwrap().is_some_and(|why| why.contains("take-over")));
            assert_eq!((retain_after(&dir).unwrap(), has_era(&dir).unwrap()), (Some(0), true));
            machine.restart();
            machine.commit(number);
            let Running { shipper, .. } = machine.running();
            let (parts, state) = (Arc::clone(&shipper.parts), shipper.state.clone());
            let mut worker = ShipWorker::new(Arc::clone(&parts), state);
            machine.runtime.block_on(async {
                let Ok(mut step) = worker.next_head().await else { panic!("nothing is due") };
                let sent = worker.send(&mut step).await;
                worker.record(step, Some(sent)).await;
            });
            let report = parts.report();
            assert_eq!((report.state, report.is_held), (BackupState::Blocked, true));
            assert!(report.cause.is_some_and(|cause| cause.contains("take-over")));
            assert!(parts.uplink.hold_reason().is_some() && *parts.cleared.borrow());
            assert_eq!(bucket.0.lock().writes, writes);
            // They hold the lock of the store.
            drop((worker, parts));
        }
        request_take_over(&dir, || Ok(())).unwrap();
        if is_asked_while_it_runs {
            assert!(machine.take_over());
        } else {
            machine.restart();
        }
        machine.begin();
        let parts = &machine.running().shipper.parts;
        assert!(parts.uplink.hold_reason().is_none() && !parts.report().is_held);
        assert_eq!(machine.reader().read_head().unwrap().unwrap().head.number, 2);
        assert!(dir.join("backup/state.json.damaged").exists());
        machine.check_restore();
        machine.restart();
        machine.ship();
    }
}
