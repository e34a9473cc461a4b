//! Sign-in with a password.
use super::super::audit::Event;
use super::super::password::Hash;
use super::super::{Account, Refusal, Source};
use super::{Accounts, disabled};
use penstock_base::commit::NoClient;
use penstock_base::fault::{Fault, Kind};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time after which a client should retry when too many passwords are being hashed.
const BUSY: Duration = Duration::from_secs(5);
/// The maximum length of a password in bytes. A longer one cannot be set.
const LONGEST: usize = 1024;

impl Accounts {
    /// Returns whether built-in accounts can sign in.
    pub fn has_passwords(&self) -> bool {
        self.inner.people == Source::BuiltIn
    }

    /// Returns the built-in account with this email and password. It takes as long for an unknown email. Failures are
    /// counted, recorded in the audit trail, and delay the next attempt.
    ///
    /// # Errors
    /// `Refusal::Invalid` for a wrong email or password, without saying which. `Refusal::Forbidden` when the account is
    /// disabled and the password right. `Refusal::TooMany` after too many failures. `Refusal::Unavailable` when too
    /// many clients are signing in.
    pub async fn verify_password(
        &self,
        email: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<Arc<Account>, Refusal> {
        let this = self.clone();
        let (given, password) = (email.trim().to_lowercase(), password.to_owned());
        let email = given.clone();
        let refusal = if let Some(wait) = self.delay(&given, from, Instant::now()) {
            // The answer takes as long as if the password had been checked.
            tokio::time::sleep(self.inner.attempts.check_time()).await;
            Refusal::TooMany(wait)
        } else {
            let is_known = self.inner.attempts.is_known(&given, from, Instant::now());
            // The delay is checked again when the permit comes, because concurrent attempts wait for each other.
            let verified = self.inner.turns.take((is_known, from), move || {
                this.verify(&email, &password, from, Instant::now())
            });
            match verified.await {
                Some(Ok(account)) => return Ok(self.seen(&account.id).unwrap_or(account)),
                Some(Err(refusal)) => refusal,
                None => busy(),
            }
        };
        let account = self.entries().by_email(&given).map(|account| account.id.clone());
        // A password typed into the wrong field must not get into the trail, so it never contains an unknown name.
        let detail = if account.is_some() { refusal.to_string() } else { "no such account".into() };
        let what = "sign-in.refused";
        self.inner.audit.record(Event { what, account, by: None, from, detail });
        Err(refusal)
    }

    /// Returns how long a sign-in must wait, unless the account is known at this address.
    fn delay(&self, email: &str, from: Option<IpAddr>, now: Instant) -> Option<Duration> {
        let attempts = &self.inner.attempts;
        attempts.wait(email, from, now).filter(|_| !attempts.is_known(email, from, now))
    }

    fn verify(
        &self,
        email: &str,
        password: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<Arc<Account>, Refusal> {
        let attempts = &self.inner.attempts;
        let wait = attempts.wait(email, from, now);
        if let Some(wait) = self.delay(email, from, now) {
            return Err(Refusal::TooMany(wait));
        }
        let account = self.entries().by_email(email).cloned();
        let account = account.filter(|_| self.has_passwords());
        let hash = account.as_ref().and_then(|account| account.password.clone());
        let begun = Instant::now();
        let is_right = password.len() <= LONGEST
            && hash.clone().unwrap_or_else(Hash::of_nobody).is_of(password);
        attempts.note_check_time(begun.elapsed());
        let (Some(account), Some(hash), true) = (account, hash, is_right) else {
            if let Some(wait) = wait {
                // A client that does not know the password must not learn that the account is known here.
                attempts.failed_in_delay(email, from);
                return Err(Refusal::TooMany(wait));
            }
            attempts.failed(email, from, now);
            return Err(Refusal::Invalid("the email or the password is wrong".to_owned()));
        };
        attempts.succeeded(email, from);
        if !account.enabled {
            return Err(disabled());
        }
        attempts.remember(email, from, now);
        if !hash.is_current() {
            self.rehash(&account.id, &hash, password);
        }
        Ok(account)
    }

    /// Replaces a hash that has outdated parameters.
    fn rehash(&self, id: &str, old: &Hash, password: &str) {
        let Ok(new) = Hash::of(password) else { return };
        let writer = self.write();
        let Some(now) = self.get(id).filter(|now| now.password.as_ref() == Some(old)) else {
            return;
        };
        let account = Account { password: Some(new), ..(*now).clone() };
        if let Err(fault) = self.save(&writer, &NoClient, account, &[]) {
            // The old hash remains valid.
            tracing::warn!(%fault, "A password's hash with outdated parameters could not be replaced.");
        }
    }

    /// Hashes a new password as soon as it gets a permit.
    ///
    /// # Errors
    /// `Kind::Unavailable` when too many passwords are being hashed.
    pub async fn hash(&self, password: &str) -> Result<Hash, Fault> {
        let password = password.to_owned();
        self.inner.turns.take((true, None), move || Hash::of(&password)).await.unwrap_or_else(
            || {
                Err(Fault::new(
                    Kind::Unavailable(BUSY),
                    "too many passwords are being checked; try again",
                ))
            },
        )
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
    ) -> Result<(), Refusal> {
        self.verify_password(&account.email, password, from).await.map(drop)
    }
}

fn busy() -> Refusal {
    Refusal::Unavailable(format!(
        "too many clients are signing in at once; try again in {} s",
        BUSY.as_secs()
    ))
}
