//! The audit trail: what happened to accounts and credentials, and who was refused.
use std::net::IpAddr;

/// The audit trail. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Audit {}

/// What happened.
#[derive(Debug, Clone)]
pub struct Event {
    /// What: `sign-in`, `sign-in.refused`, `request.refused`, `account.created`, `role.changed`, ...
    pub what: &'static str,
    /// The account that it happened to, or that came in.
    pub account: Option<String>,
    /// Who did it (an account's id, or `local`), where somebody else did.
    pub by: Option<String>,
    /// Where the request came from.
    pub from: Option<IpAddr>,
    /// The reason or the change, in words; never a part of a credential.
    pub detail: String,
}

impl Audit {
    /// Keeps and logs an event. A refusal that repeats is counted rather than kept again; what cannot be
    /// kept, because the store takes no commit, is in the log.
    pub fn record(&self, event: Event) {
        let _ = event;
        todo!("accounts")
    }
}
