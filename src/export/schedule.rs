//! When each schedule's next run is due, whatever happened meanwhile: a document says up to when a
//! Business Object's runs are done.
//!
//! Runs that were missed, since the gateway was off or busy or the clock was set ahead, are made up for by
//! one. A clock that is set back by more than [`SLACK`] lets the schedule begin anew where the clock stands
//! now; by less, nothing runs until it has caught up, lest a run is made twice.
//!
//! | collection | key | value |
//! |---|---|---|
//! | `schedules` | Business Object id | [`Kept`] as JSON |
use chrono::{DateTime, TimeDelta, Utc};
use penstock_model::resource::{Definition, Schedule};
use penstock_store::{DocumentRange, Error, Read, Store, Transaction};
use serde::{Deserialize, Serialize};

const SCHEDULES: &str = "schedules";

/// How far a clock may be set back without a schedule beginning anew.
const SLACK: TimeDelta = TimeDelta::minutes(5);

/// Up to when the runs of a schedule are done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    schedule: String,
    timezone: Option<String>,
    /// Seconds since 1970.
    done: i64,
}

/// When the next run of a Business Object's schedule is due. A schedule that is new, or another one,
/// begins now. Blocks.
pub(super) fn next(
    store: &Store,
    id: &str,
    definition: &Definition,
    schedule: &Schedule,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, Error> {
    let kept = store.read().document(SCHEDULES, id.as_bytes())?;
    let kept: Option<Kept> = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let kept = kept.filter(|kept| {
        Some(&kept.schedule) == definition.schedule.as_ref() && kept.timezone == definition.timezone
    });
    let done = kept.and_then(|kept| DateTime::from_timestamp(kept.done, 0));
    let done = match done {
        Some(done) if done - now <= SLACK => done,
        before => {
            if before.is_some() {
                tracing::warn!(
                    business_object = definition.name,
                    "The clock was set back; the schedule goes on from where it stands now."
                );
            }
            store.transact::<_, Error>(|t| put(t, id, definition, now))?;
            now
        }
    };
    Ok(schedule.next(done))
}

/// Notes that all runs up to now are done.
pub(super) fn put(
    transaction: &mut Transaction<'_>,
    id: &str,
    definition: &Definition,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let kept = Kept {
        schedule: definition.schedule.clone().unwrap_or_default(),
        timezone: definition.timezone.clone(),
        done: now.timestamp(),
    };
    let value = serde_json::to_vec(&kept).expect("it holds strings and a number alone");
    transaction.put(SCHEDULES, id.as_bytes(), &value)
}

/// Forgets the schedules of all Business Objects but these: one that is disabled or removed misses nothing.
pub(super) fn retain(store: &Store, keep: impl Fn(&str) -> bool) -> Result<(), Error> {
    let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    let kept = store.read().documents(SCHEDULES, range)?;
    let gone: Vec<Vec<u8>> = kept
        .into_iter()
        .map(|(key, _)| key)
        .filter(|key| std::str::from_utf8(key).is_ok_and(|id| !keep(id)))
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    store.transact::<_, Error>(|t| gone.iter().try_for_each(|key| t.delete(SCHEDULES, key)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_store::Options;

    fn utc(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    struct World {
        store: Store,
        definition: Definition,
        _dir: tempfile::TempDir,
    }

    impl World {
        fn new(schedule: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
            let definition =
                Definition { schedule: Some(schedule.to_owned()), ..Definition::default() };
            Self { store, definition, _dir: dir }
        }

        fn next(&self, now: &str) -> DateTime<Utc> {
            let schedule = self.definition.automatic().unwrap().schedule.unwrap();
            next(&self.store, "id", &self.definition, &schedule, utc(now)).unwrap().unwrap()
        }

        fn run(&self, now: &str) {
            self.store.transact::<_, Error>(|t| put(t, "id", &self.definition, utc(now))).unwrap();
        }
    }

    #[test]
    fn missed_runs_are_made_up_for_once() {
        let world = World::new("0 * * * *");
        assert_eq!(world.next("2026-03-01T10:30:00Z"), utc("2026-03-01T11:00:00Z"));
        // Off for a week: the run of 11:00 is due, and then the next one that comes.
        assert_eq!(world.next("2026-03-08T10:30:00Z"), utc("2026-03-01T11:00:00Z"));
        world.run("2026-03-08T10:30:00Z");
        assert_eq!(world.next("2026-03-08T10:30:01Z"), utc("2026-03-08T11:00:00Z"));
    }

    #[test]
    fn a_clock_that_jumps_a_year_in_both_directions_neither_floods_nor_stops_a_schedule() {
        let world = World::new("0 * * * *");
        world.next("2026-03-01T10:30:00Z");
        // Ahead: one run is due.
        assert!(world.next("2027-03-01T10:30:00Z") < utc("2027-03-01T10:30:00Z"));
        world.run("2027-03-01T10:30:00Z");
        assert_eq!(world.next("2027-03-01T10:30:05Z"), utc("2027-03-01T11:00:00Z"));
        // Back: it goes on from there.
        assert_eq!(world.next("2026-03-01T10:31:00Z"), utc("2026-03-01T11:00:00Z"));
    }

    #[test]
    fn a_clock_that_is_set_back_a_little_runs_nothing_twice() {
        let world = World::new("0 * * * *");
        world.run("2026-03-01T11:00:00Z");
        assert_eq!(world.next("2026-03-01T10:59:58Z"), utc("2026-03-01T12:00:00Z"));
    }

    #[test]
    fn another_schedule_begins_when_it_is_first_seen() {
        let mut world = World::new("0 * * * *");
        world.next("2026-03-01T10:30:00Z");
        world.definition.schedule = Some("15 * * * *".to_owned());
        assert_eq!(world.next("2026-03-05T10:30:00Z"), utc("2026-03-05T11:15:00Z"));
        world.definition.timezone = Some("Asia/Kolkata".to_owned());
        assert_eq!(world.next("2026-03-07T10:30:00Z"), utc("2026-03-07T10:45:00Z"));
        // One that was disabled for a while misses nothing.
        retain(&world.store, |_| false).unwrap();
        assert_eq!(world.next("2026-03-09T10:30:00Z"), utc("2026-03-09T10:45:00Z"));
    }
}
