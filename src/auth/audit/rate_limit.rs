//! The rate limit for changes of accounts to themselves. Each change is an event, and all callers share the capacity of
//! the audit trail.
use crate::{Caller, Credential, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum burst of changes of an account to itself.
const MAX_BURST: u32 = 30;
/// The time after which one more change is allowed. That is about 300 a day; the trail's default capacity is 10,000.
const RECOVERY_INTERVAL: Duration = Duration::from_mins(5);
/// The number of accounts above which accounts with a full quota are forgotten.
const MAX_REMEMBERED_ACCOUNTS: usize = 256;

/// The rate limits of accounts, by the id of the account, or of the API key without an account.
#[derive(Debug, Default)]
pub(super) struct RateLimits(Mutex<HashMap<String, RateLimit>>);

#[derive(Debug)]
struct RateLimit {
    used_changes: u32,
    since: Instant,
}

impl RateLimit {
    /// Returns one change to the quota for each interval that has passed.
    fn recover_quota(&mut self, now: Instant) {
        let passed = now.duration_since(self.since).as_secs() / RECOVERY_INTERVAL.as_secs();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        if passed >= self.used_changes {
            (self.used_changes, self.since) = (0, now);
        } else {
            self.used_changes -= passed;
            self.since += RECOVERY_INTERVAL * passed;
        }
    }
}

impl RateLimits {
    /// Counts a change that a caller is about to make. Admins have no limit.
    ///
    /// # Errors
    /// `ErrorClass::TooManyRequests` when the limit is reached.
    pub(super) fn count_change(&self, by: &Caller, now: Instant) -> Result<(), GatewayError> {
        if by.role == Role::Admin || by.credential == Credential::Local {
            return Ok(());
        }
        // A panic cannot leave an entry half changed.
        let mut limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if limits.len() >= MAX_REMEMBERED_ACCOUNTS && !limits.contains_key(by.id()) {
            limits.retain(|_, limit| {
                limit.recover_quota(now);
                limit.used_changes > 0
            });
        }
        let limit =
            limits.entry(by.id().to_owned()).or_insert(RateLimit { used_changes: 0, since: now });
        limit.recover_quota(now);
        if limit.used_changes < MAX_BURST {
            limit.used_changes += 1;
            return Ok(());
        }
        let wait = RECOVERY_INTERVAL.saturating_sub(now.duration_since(limit.since));
        let seconds = wait.as_millis().div_ceil(1000).max(1);
        Err(GatewayError::new(
            ErrorClass::TooManyRequests(wait),
            format!(
                "this account has changed itself or its API keys {MAX_BURST} times recently, and the audit trail limits such \
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
        let limits = RateLimits::default();
        let begin = Instant::now();
        let (one, other) = (caller("a", Role::Contributor), caller("b", Role::User));
        for _ in 0..MAX_BURST {
            limits.count_change(&one, begin).unwrap();
        }
        let half = begin + RECOVERY_INTERVAL / 2;
        let refused = limits.count_change(&one, half).unwrap_err();
        assert_eq!(refused.class, ErrorClass::TooManyRequests(RECOVERY_INTERVAL / 2));
        limits.count_change(&other, half).unwrap();
        for _ in 0..MAX_BURST * 2 {
            limits.count_change(&caller("a", Role::Admin), half).unwrap();
        }
        let later = begin + RECOVERY_INTERVAL * 2;
        limits.count_change(&one, later).unwrap();
        limits.count_change(&one, later).unwrap();
        assert!(limits.count_change(&one, later).is_err());
    }

    #[test]
    fn accounts_with_a_full_quota_are_forgotten() {
        let limits = RateLimits::default();
        let begin = Instant::now();
        for i in 0..MAX_REMEMBERED_ACCOUNTS {
            limits.count_change(&caller(&i.to_string(), Role::User), begin).unwrap();
        }
        limits.count_change(&caller("one more", Role::User), begin + RECOVERY_INTERVAL).unwrap();
        assert_eq!(limits.0.lock().unwrap().len(), 1);
    }
}
