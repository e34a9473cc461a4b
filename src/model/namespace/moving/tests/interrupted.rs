//! Moves that a failed write or a full disk interrupts.
use super::*;
use penstock_store::faults::{Failure, Faults};

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_move_that_fails_at_any_write_continues_to_the_same_end() {
    let Plant { dir: original, store, catalogue } = Plant::new();
    drop((store, catalogue));
    let start = || {
        let dir = tempfile::tempdir().unwrap();
        copy(original.path(), dir.path());
        let store = open(dir.path());
        Plant::reopen(dir, store)
    };
    let (whole, moved) = start().move_to("Pump", NEW);
    let expected = (whole.quads(), whole.documents());
    let mut interrupted = 0;
    for nth in 1.. {
        let plant = start();
        let faults = Faults::inject_below(plant.dir.path());
        faults.fail_nth(nth, Failure::Io, true);
        let plan = plant.plan("Pump", NEW).unwrap().unwrap();
        let begun = begin_move(plant.target(&plant.disk()), &plan);
        let ended = begun.and_then(|()| plant.continue_move());
        if ended.is_ok() {
            assert!(interrupted > 10, "{interrupted}");
            return;
        }
        let Plant { dir, store, catalogue } = plant;
        drop((store, catalogue));
        faults.clear_plan();
        drop(faults);
        let store = open(dir.path());
        let plant = Plant::reopen(dir, store);
        let pending = find_pending_move(&plant.store.read()).unwrap();
        let plant = match pending {
            Some(pending) => {
                interrupted += 1;
                assert_eq!((pending.name.as_str(), pending.uri_base.as_str()), ("Pump", NEW));
                assert_eq!(plant.plan("Pump", NEW).unwrap_err().class, ErrorClass::Damaged);
                assert_eq!(plant.continue_move().unwrap(), moved, "{nth}");
                plant
            }
            // The last commit may be on disk although its sync failed.
            None if plant.plan("Pump", NEW).unwrap().is_none() => plant,
            None => plant.move_to("Pump", NEW).0,
        };
        assert_eq!(plant.quads(), expected.0, "{nth}");
        assert_eq!(plant.documents(), expected.1, "{nth}");
    }
}

#[test]
fn a_full_disk_interrupts_a_move_which_continues_with_more_space() {
    let plant = Plant::new();
    let plan = plant.plan("Pump", NEW).unwrap().unwrap();
    begin_move(plant.target(&plant.disk()), &plan).unwrap();
    let full = Disk::new(plant.dir.path().to_owned(), u64::MAX);
    let error = continue_move(plant.target(&full), &mut |_| {}, &mut |_, _| Ok(())).unwrap_err();
    assert_eq!(error.class, ErrorClass::InsufficientStorage);
    assert!(find_pending_move(&plant.store.read()).unwrap().is_some());
    let error = begin_move(plant.target(&plant.disk()), &plan).unwrap_err();
    assert!(error.detail.contains("penstock namespace move \"Pump\""), "{error}");
    plant.continue_move().unwrap();
    assert_eq!(plant.continue_move().unwrap_err().class, ErrorClass::NotFound);
}
