//! The roles.
use serde::{Deserialize, Serialize};
use std::fmt;

/// A role, the least first: each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// May read `/metrics`, and nothing else: for API keys of monitoring alone, never for an account.
    Metrics,
    /// Reads.
    User,
    /// Ingests, pushes, keeps namespaces.
    Contributor,
    /// Everything.
    Admin,
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Metrics, Self::User, Self::Contributor, Self::Admin];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metrics => "Metrics",
            Self::User => "User",
            Self::Contributor => "Contributor",
            Self::Admin => "Admin",
        }
    }

    /// The role of this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
