//! GraphQL (the edition of October 2021) over what the gateway holds. docs/graphql.md says what it answers.
//!
//! | file | what |
//! |---|---|
//! | `schema`, `built` | the schema of the moment; how a document is prepared and executed |
//! | `introspection` | what the library's introspection lacks |
//! | `model`, `names` | what it says of Business Objects; names derived from any |
//! | `types`, `system` | its types, of Business Objects and of the gateway |
//! | `cost` | what a document asks for, told beforehand |
//! | `document`, `input` | a validated document, its arguments and filters |
//! | `execute`, `plan`, `objects`, `pages`, `out` | the answer: laid out, read level by level, written |
//! | `user` | the account that asks |
//!
//! The schema is made when the program runs and not when it is compiled, of the catalogue as it is then. A
//! request takes it when it begins, and keeps it to its end; the next one sees what has changed. It is made when
//! it is asked for, and let go after a while, so that a gateway that nobody asks has none in memory.
//!
//! This layer knows nothing of HTTP: `http/graphql.rs` does.

mod built;
mod cost;
mod document;
mod execute;
mod input;
mod introspection;
mod model;
mod names;
mod objects;
mod out;
mod pages;
mod plan;
mod schema;
mod system;
mod types;
mod user;

pub use schema::{Answer, Query, Schema};

/// Bytes of a request that are looked at: parsing takes the most of what a document costs.
pub const LONGEST: usize = 64 << 10;
