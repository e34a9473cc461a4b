//! The configuration: one flat space of dotted names, read from files, the environment, credentials
//! and the command line, later wins.
//!
//! `table` lists every setting (name, type, default, unit, meaning), `load` gathers the values with
//! their origins, `settings` is what the rest of the program sees.

mod settings;

pub use settings::{
    ForwardHeaders, Limits, LogFormat, Server, Settings, Target, TargetKind, Targets,
};
