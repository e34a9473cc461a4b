//! The roles.
use serde::{Deserialize, Serialize};

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
