//! Tests of the command line, one topic in each file. They run the binary as a person or a script does.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a panic or a line says what a test found"
)]

mod accounts;
mod apply;
mod backup;
mod check;
#[expect(dead_code, reason = "the end-to-end tests use the rest")]
#[path = "../gateway/client.rs"]
mod client;
mod commands;
mod control;
mod data;
mod journal;
mod namespace;
mod owner;
mod query;
mod rdf;
#[expect(dead_code, reason = "the end-to-end tests use the rest")]
#[path = "../gateway/server.rs"]
mod server;
mod validate;

use server::Server;
use std::path::Path;
use std::process::{Command, Stdio};

/// Builds a command that runs the binary in a directory, without the caller's configuration.
fn penstock(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = server::penstock(dir);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Starts the service with its data in this folder.
fn serve(dir: &Path, data: &str) -> Server {
    let data = format!("--service.data-dir={data}");
    Server::spawn(&mut penstock(dir, &["serve", "--server.port=0", &data]))
}
