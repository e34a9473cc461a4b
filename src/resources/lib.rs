//! What the gateway shows: one type for each resource. REST, events, the heartbeat, webhooks, commands, pages and the
//! system types of GraphQL read them. What is stored differently has types of its own, beside the code that stores
//! it. Some records are stored as they are shown, such as those of ingestions: a change of these types must read what
//! earlier versions wrote (`tests/fixtures`).
//!
//! A member that an answer can leave out is never null: it has `skip_serializing_if`. The order of the members is that of
//! the JSON.

pub mod account;
pub mod api_key;
pub mod audit;
mod body;
pub mod business_object;
pub mod change;
pub mod dead_letter;
pub mod definitions;
pub mod event;
pub mod export;
pub mod gateway;
pub mod graphql;
pub mod group;
pub mod ingestion;
mod names;
pub mod namespace;
pub mod object;
mod page;
pub mod problem;
pub mod role;
pub mod shapes_graph;
pub mod source;
pub mod sparql;
pub mod summary;
pub mod validation;
pub mod view;
pub mod warning;
pub mod webhook;

pub use page::Page;
