//! Penstock: a semantic data gateway for the edge.
//!
//! Each layer knows only what is below it: `cli` > `app` > `http` > `gateway` > `graphql` > `export` > `business_object` >
//! the `penstock_store` crate; `characters`, `clock`, `config`, `disk`, `fault`, `files`, `memory`, `nearest`, `network`, `telemetry` and `time` stand beside them.
//! ARCHITECTURE.md is the map.

pub mod app;
pub mod auth;
pub mod business_object;
mod characters;
pub mod cli;
pub mod clock;
pub mod commit;
pub mod config;
pub mod disk;
pub mod events;
pub mod export;
pub mod fault;
pub mod files;
pub mod gateway;
pub mod graphql;
pub mod http;
pub mod memory;
pub mod mend;
mod nearest;
mod network;
pub mod rdf;
pub mod telemetry;
pub mod time;
pub mod time_zone;
