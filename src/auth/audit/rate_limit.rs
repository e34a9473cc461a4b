//! The rate limits for changes that accounts below Admin make: those to themselves, new namespaces, and saved views. Each
//! change is an event, and all callers share the capacity of the audit trail.
use crate::{Caller, Credential};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::rate_limit::{RateLimit, RateLimiter};
use penstock_resources::role::Role;
use std::time::{Duration, Instant};

/// The maximum burst of changes of an account to itself.
const MAX_BURST: u32 = 30;
/// The time after which one more change is allowed. That is about 300 a day; the trail's default capacity is 10,000.
const RECOVERY_INTERVAL: Duration = Duration::from_mins(5);
/// The maximum burst of new namespaces of an account.
const MAX_NEW_NAMESPACES: u32 = 100;
/// The time after which one more namespace is allowed.
const NAMESPACE_INTERVAL: Duration = Duration::from_secs(10);
/// The maximum burst of changes of an account to saved views.
const MAX_VIEW_CHANGES: u32 = 100;
/// The time after which one more change of a saved view is allowed.
const VIEW_INTERVAL: Duration = Duration::from_secs(10);
/// The number of accounts above which accounts with a full quota are forgotten.
const MAX_REMEMBERED_ACCOUNTS: usize = 256;

/// A rate limit of accounts, by the id of the account, or of the API key without an account.
#[derive(Debug)]
pub(super) struct AccountLimit {
    limiter: RateLimiter<String>,
    burst: u32,
    /// What an account has done that often.
    done: &'static str,
}

impl AccountLimit {
    /// The limit for changes of accounts to themselves.
    pub(super) fn of_own_changes() -> Self {
        Self::new(MAX_BURST, RECOVERY_INTERVAL, "changed itself or its API keys")
    }

    /// The limit for new namespaces.
    pub(super) fn of_namespaces() -> Self {
        Self::new(MAX_NEW_NAMESPACES, NAMESPACE_INTERVAL, "created namespaces")
    }

    /// The limit for changes of saved views.
    pub(super) fn of_views() -> Self {
        Self::new(MAX_VIEW_CHANGES, VIEW_INTERVAL, "changed saved views")
    }

    fn new(burst: u32, interval: Duration, done: &'static str) -> Self {
        let limiter = RateLimiter::new(RateLimit {
            burst,
            interval,
            max_idle_clients: MAX_REMEMBERED_ACCOUNTS,
            // There are only so many accounts, and none gets its quota back early.
            max_clients: usize::MAX,
        });
        Self { limiter, burst, done }
    }

    /// Counts a change that a caller is about to make. Admins have no limit.
    ///
    /// # Errors
    /// `ErrorClass::TooManyRequests` when the limit is reached.
    pub(super) fn count_change(&self, by: &Caller, now: Instant) -> Result<(), GatewayError> {
        if by.role == Role::Admin || by.credential == Credential::Local {
            return Ok(());
        }
        let Err(wait) = self.limiter.count_event(by.id().to_owned(), now) else { return Ok(()) };
        let seconds = wait.as_millis().div_ceil(1000).max(1);
        let Self { burst, done, .. } = self;
        Err(GatewayError::new(
            ErrorClass::TooManyRequests(wait),
            format!(
                "this account has {done} {burst} times recently, and the audit trail limits such changes; try again in \
                 {seconds} s"
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(id: &str, role: Role) -> Caller {
        let credential = Credential::ApiKey { id: id.to_owned(), business_objects: None };
        Caller { account: None, role, credential, from: None }
    }

    #[test]
    fn each_account_has_its_own_quota_which_recovers() {
        let limits = AccountLimit::of_own_changes();
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
        let limits = AccountLimit::of_own_changes();
        let begin = Instant::now();
        for i in 0..MAX_REMEMBERED_ACCOUNTS {
            limits.count_change(&caller(&i.to_string(), Role::User), begin).unwrap();
        }
        limits.count_change(&caller("one more", Role::User), begin + RECOVERY_INTERVAL).unwrap();
        assert_eq!(limits.limiter.count_clients(), 1);
    }
}
