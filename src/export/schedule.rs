//! Computes when the next run of each schedule is due, also after restarts and clock changes. A document records up
//! to which time the runs of a Business Object are done.
//!
//! Missed runs are replaced by one run, whether the gateway was off or busy or the clock was set ahead. After
//! the clock is set back by more than 5 minutes, the schedule restarts at the new time. After a smaller step, nothing
//! runs until the clock reaches the old time again, so that no run happens twice.
use chrono::{DateTime, TimeDelta, Utc};
use penstock_base::collections;
use penstock_base::table::{AsJson, Table};
use penstock_model::resource::{Definition, Schedule};
use penstock_store::{Error, Store, Transaction};
use serde::{Deserialize, Serialize};

/// The progress, by the id of the Business Object.
const SCHEDULES: Table<String, AsJson<ScheduleProgress>> = Table::new(collections::SCHEDULES);

/// How far the clock may be set back without restarting the schedule.
const MAX_CLOCK_SETBACK: TimeDelta = TimeDelta::minutes(5);

/// A schedule, and up to which time its runs are done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ScheduleProgress {
    schedule: String,
    timezone: Option<String>,
    /// All runs up to this time are done, in seconds since 1970.
    done: i64,
}

/// Returns when the next run of a Business Object's schedule is due. A new or changed schedule starts now.
/// Blocking.
pub(super) fn next_run(
    store: &Store,
    id: &str,
    definition: &Definition,
    schedule: &Schedule,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, Error> {
    let progress = SCHEDULES.get_readable(&store.read(), id)?.filter(|progress| {
        Some(&progress.schedule) == definition.schedule.as_ref()
            && progress.timezone == definition.timezone
    });
    let done = progress.and_then(|progress| DateTime::from_timestamp(progress.done, 0));
    let done = match done {
        Some(done) if done - now <= MAX_CLOCK_SETBACK => done,
        before => {
            if before.is_some() {
                tracing::warn!(
                    business_object = definition.name,
                    "The clock was set back; the schedule restarts at the current time."
                );
            }
            store.transact::<_, Error>(|t| record_runs(t, id, definition, now))?;
            now
        }
    };
    Ok(schedule.next(done))
}

/// Records that all runs up to now are done.
pub(super) fn record_runs(
    transaction: &mut Transaction<'_>,
    id: &str,
    definition: &Definition,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let progress = ScheduleProgress {
        schedule: definition.schedule.clone().unwrap_or_default(),
        timezone: definition.timezone.clone(),
        done: now.timestamp(),
    };
    SCHEDULES.put(transaction, id, &progress)
}

/// Removes the records of the Business Objects for which `keep` returns false. So the runs that were due while one
/// is disabled or removed do not count as missed.
pub(super) fn retain_schedules(store: &Store, keep: impl Fn(&str) -> bool) -> Result<(), Error> {
    let mut rows = SCHEDULES.scan().read_all(&store.read())?;
    rows.retain(|row| row.key().is_ok_and(|id| !keep(&id)));
    if rows.is_empty() {
        return Ok(());
    }
    store.transact::<_, Error>(|t| rows.iter().try_for_each(|row| row.delete(t)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::testing::open_store;

    fn parse_utc(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    struct Fixture {
        store: Store,
        definition: Definition,
        _dir: tempfile::TempDir,
    }

    impl Fixture {
        fn new(schedule: &str) -> Self {
            let (dir, store) = open_store();
            let definition =
                Definition { schedule: Some(schedule.to_owned()), ..Definition::default() };
            Self { store, definition, _dir: dir }
        }

        fn next(&self, now: &str) -> DateTime<Utc> {
            let schedule = self.definition.parse_automatic().unwrap().schedule.unwrap();
            next_run(&self.store, "id", &self.definition, &schedule, parse_utc(now))
                .unwrap()
                .unwrap()
        }

        fn run_at(&self, now: &str) {
            self.store
                .transact::<_, Error>(|t| record_runs(t, "id", &self.definition, parse_utc(now)))
                .unwrap();
        }
    }

    #[test]
    fn missed_runs_are_replaced_by_one_run() {
        let fixture = Fixture::new("0 * * * *");
        assert_eq!(fixture.next("2026-03-01T10:30:00Z"), parse_utc("2026-03-01T11:00:00Z"));
        // The gateway was off for a week. The run of 11:00 is due, then the next regular one.
        assert_eq!(fixture.next("2026-03-08T10:30:00Z"), parse_utc("2026-03-01T11:00:00Z"));
        fixture.run_at("2026-03-08T10:30:00Z");
        assert_eq!(fixture.next("2026-03-08T10:30:01Z"), parse_utc("2026-03-08T11:00:00Z"));
    }

    #[test]
    fn a_clock_that_jumps_a_year_in_both_directions_neither_floods_nor_stops_a_schedule() {
        let fixture = Fixture::new("0 * * * *");
        fixture.next("2026-03-01T10:30:00Z");
        // Ahead: one run is due.
        assert!(fixture.next("2027-03-01T10:30:00Z") < parse_utc("2027-03-01T10:30:00Z"));
        fixture.run_at("2027-03-01T10:30:00Z");
        assert_eq!(fixture.next("2027-03-01T10:30:05Z"), parse_utc("2027-03-01T11:00:00Z"));
        // Back: the schedule restarts there.
        assert_eq!(fixture.next("2026-03-01T10:31:00Z"), parse_utc("2026-03-01T11:00:00Z"));
    }

    #[test]
    fn setting_the_clock_back_a_little_runs_nothing_twice() {
        let fixture = Fixture::new("0 * * * *");
        fixture.run_at("2026-03-01T11:00:00Z");
        assert_eq!(fixture.next("2026-03-01T10:59:58Z"), parse_utc("2026-03-01T12:00:00Z"));
    }

    #[test]
    fn a_changed_schedule_starts_when_it_is_first_read() {
        let mut fixture = Fixture::new("0 * * * *");
        fixture.next("2026-03-01T10:30:00Z");
        fixture.definition.schedule = Some("15 * * * *".to_owned());
        assert_eq!(fixture.next("2026-03-05T10:30:00Z"), parse_utc("2026-03-05T11:15:00Z"));
        fixture.definition.timezone = Some("Asia/Kolkata".to_owned());
        assert_eq!(fixture.next("2026-03-07T10:30:00Z"), parse_utc("2026-03-07T10:45:00Z"));
        // A schedule that was disabled for a while misses no runs.
        retain_schedules(&fixture.store, |_| false).unwrap();
        assert_eq!(fixture.next("2026-03-09T10:30:00Z"), parse_utc("2026-03-09T10:45:00Z"));
    }
}
