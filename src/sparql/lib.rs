//! SPARQL 1.1 over the store.
//!
//! [`Query`] and [`Update`] are parsed requests. [`evaluate`] runs a query on a snapshot and writes its results;
//! [`apply_update`] applies an update to a transaction. Both keep to limits of time and memory.
//!
//! The evaluator is spareval. `dataset` gives it the store's quads as codes, so that joins compare codes and only
//! results and expressions decode terms. `plan` orders the joins by the statistics of the index. `prefilter` finds simple
//! conditions of filters, and `condition` tests them while quads are read. `ranges` finds what the index of values selects.
//! `operators` and `aggregates` compute with numbers that the evaluator cannot hold, and with literals that keep their form.
//! `budget` ends a query that exceeds its limits.
mod aggregates;
mod budget;
mod condition;
mod constant_patterns;
mod dataset;
mod delta;
mod evaluate;
mod expressions;
mod form;
mod functions;
mod graphs;
mod internal_term;
mod newer_syntax;
mod number;
mod operators;
mod order;
mod plan;
mod prefilter;
mod ranges;
mod rank;
mod request;
mod service;
mod syntax;
#[cfg(test)]
mod tests;
mod thread;
mod update;
mod value;
mod warnings;

pub use budget::{Deadline, Limits};
pub use evaluate::{QueryContext, ResultFormat, evaluate, evaluate_short};
pub use request::{DatasetParameters, Query, QueryForm, Update};
pub use service::{NoServices, ServiceClient};
pub use thread::{run_on_query_stack, spawn_query_thread};
pub use update::{Changes, UpdateLimits, apply_update};
