//! The opened gateway: its parts, its status, and how it recovers from a failed disk.

pub mod blocking;
pub mod gateway;
pub mod query_permits;
pub mod recovery;
