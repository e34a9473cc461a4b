//! Sign-in with a password.
use super::super::audit::Event;
use super::super::password::{Hash, PASSWORD_BYTES};
use super::super::{Account, AuthError};
use super::{Accounts, account_disabled_error};
use penstock_base::commit::NoClient;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::account::AccountSource;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time after which a client should retry when too many passwords are being hashed.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(5);

impl Accounts {
    /// Returns whether built-in accounts can sign in.
    pub fn allows_password_sign_in(&self) -> bool {
        self.inner.people == AccountSource::BuiltIn
    }

    /// Returns the built-in account with this email and password. Takes as long for an unknown email as for a known
    /// one. Failures are recorded in the audit trail and delay the next attempt.
    ///
    /// # Errors
    /// `AuthError::Invalid` for a wrong email or password, without saying which. `AuthError::Forbidden` when the
    /// account is disabled and the password is right. `AuthError::TooMany` after too many failures.
    /// `AuthError::Unavailable` when too many clients are signing in.
    pub async fn verify_password(
        &self,
        email: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<Arc<Account>, AuthError> {
        let this = self.clone();
        let (given, password) = (email.trim().to_lowercase(), password.to_owned());
        let email = given.clone();
        let error = if let Some(wait) = self.sign_in_delay(&given, from, Instant::now()) {
            // The answer takes as long as if the password had been checked.
            tokio::time::sleep(self.inner.attempts.check_time()).await;
            AuthError::TooMany(wait)
        } else {
            let is_known = self.inner.attempts.is_known(&given, from, Instant::now());
            // The delay is checked again with the permit, because concurrent attempts can fail while this one waits.
            let verified = self.inner.hash_permits.run_with_permit((is_known, from), move || {
                this.verify_blocking(&email, &password, from, Instant::now())
            });
            match verified.await {
                Some(Ok(account)) => return Ok(self.record_login(&account.id).unwrap_or(account)),
                Some(Err(error)) => error,
                None => busy_error(),
            }
        };
        let account = self.inner.entries.read().by_email(&given).map(|account| account.id.clone());
        // Someone may type a password into the email field. So the trail never contains an unknown email.
        let detail = if account.is_some() { error.to_string() } else { "no such account".into() };
        let what = "sign-in.refused";
        self.inner.audit.record_event(Event { what, account, by: None, from, detail });
        Err(error)
    }

    /// Returns how long a sign-in must wait, unless the account is known at this address.
    fn sign_in_delay(&self, email: &str, from: Option<IpAddr>, now: Instant) -> Option<Duration> {
        let attempts = &self.inner.attempts;
        attempts.remaining_delay(email, from, now).filter(|_| !attempts.is_known(email, from, now))
    }

    fn verify_blocking(
        &self,
        email: &str,
        password: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<Arc<Account>, AuthError> {
        let attempts = &self.inner.attempts;
        let wait = attempts.remaining_delay(email, from, now);
        if let Some(wait) = self.sign_in_delay(email, from, now) {
            return Err(AuthError::TooMany(wait));
        }
        let account = self.inner.entries.read().by_email(email).cloned();
        let account = account.filter(|_| self.allows_password_sign_in());
        let hash = account.as_ref().and_then(|account| account.password.clone());
        let begun = Instant::now();
        let is_right = password.len() <= *PASSWORD_BYTES.end()
            && hash.clone().unwrap_or_else(Hash::unmatchable).matches_password(password);
        attempts.record_check_time(begun.elapsed());
        let (Some(account), Some(hash), true) = (account, hash, is_right) else {
            if let Some(wait) = wait {
                // A client that does not know the password must not learn that the account is known at this address.
                attempts.record_failure_in_delay(email, from);
                return Err(AuthError::TooMany(wait));
            }
            attempts.record_failure(email, from, now);
            return Err(AuthError::Invalid("the email or the password is wrong".to_owned()));
        };
        attempts.record_success(email, from);
        if !account.enabled {
            return Err(account_disabled_error());
        }
        attempts.record_known_address(email, from, now);
        if !hash.is_current() {
            self.replace_hash(&account.id, &hash, password);
        }
        Ok(account)
    }

    /// Replaces a hash that has outdated parameters.
    fn replace_hash(&self, id: &str, old: &Hash, password: &str) {
        let Ok(new) = Hash::from_password(password) else { return };
        let writer = self.inner.writer.lock();
        let Some(now) = self.get(id).filter(|now| now.password.as_ref() == Some(old)) else {
            return;
        };
        let account = Account { password: Some(new), ..(*now).clone() };
        if let Err(fault) = self.commit_account(&writer, &NoClient, account, &[]) {
            // The old hash remains valid.
            tracing::warn!(%fault, "A password's hash with outdated parameters could not be replaced.");
        }
    }

    /// Hashes a new password, after waiting for a permit.
    ///
    /// # Errors
    /// `ErrorClass::Unavailable` when too many passwords are being hashed.
    pub async fn hash_password(&self, password: &str) -> Result<Hash, GatewayError> {
        let password = password.to_owned();
        self.inner
            .hash_permits
            .run_with_permit((true, None), move || Hash::from_password(&password))
            .await
            .unwrap_or_else(|| {
                Err(GatewayError::new(
                    ErrorClass::Unavailable(BUSY_RETRY_AFTER),
                    "too many passwords are being checked; try again",
                ))
            })
    }

    /// Checks the account's current password. It counts as a sign-in attempt.
    ///
    /// # Errors
    /// As [`Self::verify_password`].
    pub async fn confirm_password(
        &self,
        account: &Account,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<(), AuthError> {
        self.verify_password(&account.email, password, from).await.map(drop)
    }
}

fn busy_error() -> AuthError {
    AuthError::Unavailable(format!(
        "too many clients are signing in at once; try again in {} s",
        BUSY_RETRY_AFTER.as_secs()
    ))
}
