//! API keys: credentials of plant systems, worth at most what their owner is now.
use super::{Caller, Refusal};

/// The API keys. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Keys {}

impl Keys {
    /// What every key begins with, so that it is told from an access token and found by secret scanners.
    pub const PREFIX: &'static str = "penstock_";

    /// Who has this key.
    pub fn caller(&self, key: &str) -> Result<Caller, Refusal> {
        let _ = key;
        todo!("accounts")
    }
}
