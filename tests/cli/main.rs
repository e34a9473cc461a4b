//! The command line, one behaviour a file: the binary as a person or a script calls it.
#![expect(clippy::indexing_slicing, reason = "a test ends at once where something is wrong")]

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

/// The binary in a directory, with no environment of ours.
fn penstock(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    command.args(arguments).current_dir(dir).env_clear().stdin(Stdio::null());
    command
}
