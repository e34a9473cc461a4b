//! Tests of the command line, one topic in each file. They run the binary as a person or a script does.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

mod accounts;
mod backup;
mod check;
mod commands;
mod control;
mod data;
mod journal;
mod owner;
mod rdf;

use std::path::Path;
use std::process::{Command, Stdio};

/// Builds a command that runs the binary in a directory with an empty environment.
fn penstock(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    command.args(arguments).current_dir(dir).env_clear().stdin(Stdio::null());
    command
}
