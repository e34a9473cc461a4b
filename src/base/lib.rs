//! What every layer of Penstock uses: errors, time, the guard of commits, limits, the memory and disk of the
//! machine, JSON and YAML with positions, events and telemetry.

mod background;
pub mod backoff;
pub mod blocking;
pub mod bucket_name;
pub mod characters;
pub mod clock;
pub mod collections;
pub mod commit;
pub mod cursor;
pub mod definition;
pub mod disk;
pub mod error;
pub mod events;
pub mod files;
pub mod hex;
mod if_match;
pub mod json;
pub mod managed;
pub mod memory;
pub mod nearest;
pub mod network;
pub mod permits;
pub mod prefixes;
pub mod principal;
pub mod rate_limit;
pub mod shared;
pub mod shared_folder;
pub mod table;
pub mod telemetry;
pub mod time;
pub mod time_zone;
pub mod topic;
pub mod unwind;
pub mod xpath_regex;
pub mod yaml;

pub use background::run_in_background;
pub use if_match::{IfMatch, Preconditions, Put, free_name, next_version, next_version_named};
pub use penstock_resources::role::Role;
