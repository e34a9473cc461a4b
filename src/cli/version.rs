//! `penstock version`
use super::output;
use clap::{ArgMatches, Command};
use std::env::consts::{ARCH, OS};
use std::process::ExitCode;

pub(super) fn build_command() -> Command {
    Command::new("version")
        .about("Print the version")
        .arg(output::json_flag())
        .after_help("Examples:\n  penstock version\n  penstock version --json")
}

pub(super) fn run(given: &ArgMatches) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    let text = if given.get_flag("json") {
        serde_json::json!({ "version": version, "arch": ARCH, "os": OS, "api": "v1" }).to_string()
    } else {
        format!("penstock {version} ({ARCH}-{OS}), API v1")
    };
    output::print_text(Ok(text))
}
