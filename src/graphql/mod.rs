//! GraphQL (the edition of October 2021) over what the gateway holds.
//!
//! `schema` puts the types together, `user` is one of them, `cost` bounds what a document may ask for.
//! The schema is made when the program runs and not when it is compiled, so that types of Business
//! Objects can stand in it beside those that are always there.
//!
//! This layer knows nothing of HTTP: `http/graphql.rs` does.

mod cost;
mod schema;
mod user;

pub use schema::{Answer, Query, Schema};

/// The deepest selection that is answered. The introspection query of common tools has 15 levels.
pub const DEPTH: usize = 20;
/// The most fields that are answered, those of a fragment counted wherever it is spread.
pub const COMPLEXITY: usize = 1000;

/// Bytes of a request that are looked at: parsing takes the most of what a document costs.
pub const LONGEST: usize = 64 << 10;
