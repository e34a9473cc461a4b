//! `penstock demo`: the main job on sample data.
use std::process::ExitCode;

/// Runs the demonstration; `arguments` are settings and `--exit`.
pub(super) fn run(arguments: &[String]) -> ExitCode {
    let _ = arguments;
    super::output::fail(&"the demonstration is not in this build")
}
