//! The journal and the quad index of Penstock.
//!
//! One ordered, checksummed journal is the truth; the quad index is a view of it that can be thrown
//! away and made again. The crate knows RDF terms, quads and byte documents; it knows nothing of
//! HTTP, JSON or YAML, and it blocks: call it from a thread that may.

mod error;
mod read;
mod store;
mod transaction;

pub use error::{Corruption, Error};
pub use read::{DocumentRange, Pattern, Read, SubjectFilter};
pub use store::{Commit, Options, Progress, Reader, Stats, Store};
pub use transaction::Transaction;
