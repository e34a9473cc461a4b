//! Tests of the command line, one topic in each file. They run the binary as a person or a script does.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic or a line says what a test found"
)]
mod accounts;
mod apply;
mod backup;
mod check;
mod commands;
mod control;
mod data;
mod journal;
mod namespace;
mod offsite_backup;
mod owner;
mod query;
mod rdf;
mod validate;

use penstock_test_support::prelude::*;
use std::process::Output;

/// Builds a command that runs the binary in a directory, without the caller's configuration.
fn penstock(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = penstock_test_support::process::penstock(dir);
    command.args(arguments).stdin(Stdio::null());
    command
}

const DATA: &str = "--service.data-dir=data";

/// Runs a command to its end.
fn run(dir: &Path, arguments: &[&str]) -> Output {
    penstock(dir, arguments).output().unwrap()
}

/// Starts the service with its data in the folder `data`. Returns it with an Admin's client.
fn serve_for_admin(dir: &Path) -> (TestProcess, Client) {
    let service = serve(dir, "data");
    let client = service.client.with_key(create_key(dir, DATA, "cli", "Admin"));
    (service, client)
}

/// Starts the service with its data in this folder.
fn serve(dir: &Path, data: &str) -> TestProcess {
    let data = format!("--service.data-dir={data}");
    TestProcess::spawn(&mut penstock(dir, &["serve", "--server.port=0", &data]))
}
