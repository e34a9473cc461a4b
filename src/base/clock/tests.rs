//! Tests of the clock.
use super::*;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const START: i64 = 1_790_000_000_000;

fn build_reading(wall: i64, uptime: i64, boot: &str, synchronised: bool) -> Reading {
    Reading {
        wall,
        uptime: uptime.try_into().unwrap(),
        boot: boot.into(),
        synchronised: Some(synchronised),
    }
}

fn first_state(synchronised: bool) -> ClockState {
    ClockState::continue_at(None, &build_reading(START, HOUR, "a", synchronised))
}

#[test]
fn the_time_is_never_before_the_last_known_time_plus_elapsed_time() {
    let known = first_state(true);
    assert_eq!(known.now(&build_reading(START + HOUR, 2 * HOUR, "a", false)), START + HOUR);
    // The clock is set back while the program runs.
    assert_eq!(known.now(&build_reading(0, 2 * HOUR, "a", false)), START + HOUR);
    // Another boot, without a battery: the time off is unknown.
    let known = ClockState::continue_at(Some(known), &build_reading(0, 1000, "b", false));
    assert_eq!(known.now(&build_reading(500, 1500, "b", false)), START + 500);
}

#[test]
fn a_jump_ahead_has_no_lasting_effect() {
    let mut known = first_state(true);
    let ahead = build_reading(START + 30_000 * DAY, HOUR + 60_000, "a", false);
    known.update_known_time(&ahead);
    assert_eq!(known.now(&ahead), ahead.wall);
    let back = build_reading(START + HOUR, 2 * HOUR, "a", false);
    assert_eq!(known.now(&back), START + HOUR);
    assert_eq!(
        known.elapsed(&back),
        known.elapsed(&build_reading(0, HOUR, "a", false)) + 3_600_000
    );
}

#[test]
fn a_wrong_time_server_is_trusted_until_the_reset() {
    let mut known = first_state(true);
    let wrong = build_reading(START + 30_000 * DAY, 2 * HOUR, "a", true);
    known.update_known_time(&wrong);
    let truth = build_reading(START + 2 * HOUR, 3 * HOUR, "a", true);
    known.update_known_time(&truth);
    assert_eq!(known.now(&truth), wrong.wall + HOUR);
    assert!(known.is_behind_logged);
    known.right = None;
    assert_eq!(known.now(&truth), truth.wall);
    known.update_known_time(&truth);
    assert_eq!(known.right.as_ref().unwrap().wall, truth.wall);
}

#[test]
fn elapsed_time_continues_across_restarts() {
    let known = first_state(false);
    let begun = known.elapsed(&build_reading(0, HOUR, "a", false));
    let kept = known.at_reading(&build_reading(0, HOUR + 10, "a", false));
    // Only the program restarts: the time between counts, whatever the clock says.
    let again =
        ClockState::continue_at(Some(kept.clone()), &build_reading(5, HOUR + 1000, "a", false));
    assert_eq!(again.elapsed(&build_reading(5, HOUR + 1000, "a", false)), begun + 1000);
    // The machine restarts, with a clock that is not synchronised: the time between is unknown.
    let booted = ClockState::continue_at(Some(kept), &build_reading(START + DAY, 50, "b", false));
    assert_eq!(booted.elapsed(&build_reading(0, 60, "b", false)), begun + 20);
}

#[test]
fn time_off_counts_once_the_clock_is_synchronised() {
    let known = first_state(true);
    let begun = known.elapsed(&build_reading(0, HOUR, "a", true));
    let mut known = ClockState::continue_at(Some(known), &build_reading(7, 50, "b", false));
    assert_eq!(known.elapsed(&build_reading(7, 50, "b", false)), begun);
    known.update_known_time(&build_reading(START + DAY, 60, "b", true));
    assert_eq!(known.elapsed(&build_reading(START + DAY, 60, "b", true)), begun + DAY as u64);
    // It counts only once: within a boot, only the kernel's clock counts.
    known.update_known_time(&build_reading(START + 9 * DAY, 70, "b", true));
    assert_eq!(known.elapsed(&build_reading(0, 70, "b", true)), begun + DAY as u64 + 10);
}

#[test]
fn stamps_never_go_back_and_say_when_they_may_be_wrong() {
    let mut known = first_state(false);
    let mut stamp = |wall, synchronised| known.stamp(&build_reading(wall, HOUR, "a", synchronised));
    assert_eq!(stamp(5, false), (5, Some(Doubt::Unsynchronised)));
    assert_eq!(stamp(7, true), (7, Some(Doubt::Unsynchronised)), "a time in 1970 is wrong");
    assert_eq!(stamp(START, true), (START, None));
    assert_eq!(stamp(6, false), (START, Some(Doubt::Behind)));
    assert_eq!(stamp(START - 1, true), (START, Some(Doubt::Behind)));
    assert_eq!(stamp(START + 1, true), (START + 1, None));
    // The state of the clock is unknown.
    let unknown = Reading { synchronised: None, ..build_reading(START + 2, HOUR, "a", false) };
    assert_eq!(known.stamp(&unknown), (START + 2, None));
    // After a restart with the clock at 1970.
    let mut known = ClockState::continue_at(Some(known), &build_reading(0, 50, "b", false));
    assert_eq!(known.stamp(&build_reading(1, 60, "b", false)), (START + 2, Some(Doubt::Behind)));
}

#[test]
fn a_time_ahead_that_stamps_repeat_is_described_until_the_clock_has_passed_it() {
    let mut known = first_state(true);
    let read = |wall, synchronised| build_reading(wall, HOUR, "a", synchronised);
    known.stamp(&read(START + DAY, false));
    let truth = read(START + HOUR, true);
    // After the reset too.
    known.right = None;
    let text = known.describe_repeated_stamp(&truth).unwrap();
    assert!(text.contains("2026-09-22T14:13:20.000Z of an earlier one, 23h ahead"), "{text}");
    known.log_repeated_stamp(&truth);
    assert!(known.is_repetition_logged);
    // A clock in doubt is behind after each start without a battery, until it is synchronised.
    for doubtful in [read(START + HOUR, false), read(5, true)] {
        assert!(known.repeated_stamp(&doubtful).is_some());
        assert_eq!(known.describe_repeated_stamp(&doubtful), None);
    }
    let almost = read(START + DAY - TOLERANCE_MS, true);
    assert_eq!(known.repeated_stamp(&almost), None);
    known.log_repeated_stamp(&almost);
    assert!(!known.is_repetition_logged);
}

#[test]
fn a_file_that_was_touched_long_ago_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("timesync/synchronized");
    let now = Timestamp::now().as_millisecond();
    assert_eq!(check_synchronised(&mark, now), None);
    std::fs::create_dir(mark.parent().unwrap()).unwrap();
    assert_eq!(check_synchronised(&mark, now), Some(false));
    std::fs::write(&mark, "").unwrap();
    assert_eq!(check_synchronised(&mark, now), Some(true));
    assert_eq!(check_synchronised(&mark, now + 3 * HOUR), Some(false));
    assert_eq!(check_synchronised(&mark, now - 3 * HOUR), Some(false));
}

#[test]
fn the_state_is_kept_in_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let options = penstock_store::Options::default();
        Clock::open(Store::open(folder.path(), options, &mut |_| {}).unwrap()).unwrap()
    };
    let clock = open();
    let begun = clock.elapsed();
    clock.lock_state().right =
        Some(KnownTime { wall: START + 30_000 * DAY, elapsed: begun, boot: boot_id() });
    clock.save_state(&NoClient).unwrap();
    drop(clock);
    let clock = open();
    assert!(clock.elapsed() >= begun);
    assert!(clock.now().as_millisecond() >= START + 30_000 * DAY);
    clock.reset(&NoClient).unwrap();
    drop(clock);
    assert!(open().now() < Timestamp::now() + SignedDuration::from_secs(1));
}
