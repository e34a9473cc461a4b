//! The rate limit for events that callers cause in the trail, because all callers share its capacity.
use crate::{Caller, Credential, Role};
use penstock_base::fault::{Fault, Kind};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum burst of changes of an account to itself.
const AT_ONCE: u32 = 30;
/// The time after which one more change is allowed: about 300 a day, of the trail's capacity of 10,000 events.
const ONE_MORE: Duration = Duration::from_mins(5);
/// The number of accounts above which accounts with a full quota are forgotten.
const REMEMBERED: usize = 256;

/// The recent changes of accounts to themselves.
#[derive(Debug, Default)]
pub(super) struct Paces(Mutex<HashMap<String, Pace>>);

#[derive(Debug)]
struct Pace {
    made: u32,
    since: Instant,
}

impl Pace {
    /// Returns one change to the quota for each interval that has passed.
    fn recover(&mut self, now: Instant) {
        let passed = now.duration_since(self.since).as_secs() / ONE_MORE.as_secs();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        if passed >= self.made {
            (self.made, self.since) = (0, now);
        } else {
            self.made -= passed;
            self.since += ONE_MORE * passed;
        }
    }
}

impl Paces {
    /// Counts a change that a caller is about to make. Admins have no limit.
    ///
    /// # Errors
    /// `Kind::TooMany` when the limit is reached.
    pub(super) fn note(&self, by: &Caller, now: Instant) -> Result<(), Fault> {
        if by.role == Role::Admin || by.credential == Credential::Local {
            return Ok(());
        }
        // Entries change by single assignments, so a panic leaves them consistent.
        let mut paces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if paces.len() >= REMEMBERED && !paces.contains_key(by.id()) {
            paces.retain(|_, pace| {
                pace.recover(now);
                pace.made > 0
            });
        }
        let pace = paces.entry(by.id().to_owned()).or_insert(Pace { made: 0, since: now });
        pace.recover(now);
        if pace.made < AT_ONCE {
            pace.made += 1;
            return Ok(());
        }
        let wait = ONE_MORE.saturating_sub(now.duration_since(pace.since));
        let seconds = wait.as_millis().div_ceil(1000).max(1);
        Err(Fault::new(
            Kind::TooMany(wait),
            format!(
                "this account has changed itself or its API keys {AT_ONCE} times recently, and the audit trail limits such \
                 changes; try again in {seconds} s"
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(id: &str, role: Role) -> Caller {
        let credential = Credential::ApiKey { id: id.to_owned(), business_object: None };
        Caller { account: None, role, credential, from: None }
    }

    #[test]
    fn each_account_has_its_own_quota_which_recovers() {
        let paces = Paces::default();
        let begin = Instant::now();
        let (one, other) = (caller("a", Role::Contributor), caller("b", Role::User));
        for _ in 0..AT_ONCE {
            paces.note(&one, begin).unwrap();
        }
        let half = begin + ONE_MORE / 2;
        let refused = paces.note(&one, half).unwrap_err();
        assert_eq!(refused.kind, Kind::TooMany(ONE_MORE / 2));
        paces.note(&other, half).unwrap();
        for _ in 0..AT_ONCE * 2 {
            paces.note(&caller("a", Role::Admin), half).unwrap();
        }
        let later = begin + ONE_MORE * 2;
        paces.note(&one, later).unwrap();
        paces.note(&one, later).unwrap();
        assert!(paces.note(&one, later).is_err());
    }

    #[test]
    fn accounts_with_a_full_quota_are_forgotten() {
        let paces = Paces::default();
        let begin = Instant::now();
        for i in 0..REMEMBERED {
            paces.note(&caller(&i.to_string(), Role::User), begin).unwrap();
        }
        paces.note(&caller("one more", Role::User), begin + ONE_MORE).unwrap();
        assert_eq!(paces.0.lock().unwrap().len(), 1);
    }
}
