//! `penstock verify-export FILE...`: are export files whole?
use super::output;
use crate::export::verify;
use crate::fault::Kind;
use clap::{ArgMatches, Command};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn command() -> Command {
    Command::new("verify-export")
        .about("Check the form, the count and the checksum of export files")
        .arg(output::files("Export files"))
        .arg(output::json_flag().help("Answer in JSON, an object a line for each file"))
        .after_help(
            "Exit status: 0 every file is whole, 1 one is not.\n\nExamples:\n  \
             penstock verify-export data/buckets/operations/Pumps/*.json\n  \
             penstock verify-export --json export.json",
        )
}

pub(super) fn run(given: &ArgMatches) -> ExitCode {
    output::each_file(given, one)
}

fn one(path: &Path, json: bool) -> (bool, String) {
    let shown = path.display();
    match verify::file(path) {
        Ok(verified) if json => {
            let mut line = serde_json::to_value(&verified).unwrap_or_default();
            if let Some(fields) = line.as_object_mut() {
                fields.shift_insert(0, "file".to_owned(), json!(shown.to_string()));
                fields.shift_insert(1, "whole".to_owned(), json!(true));
            }
            (true, line.to_string())
        }
        Ok(verified) => {
            let objects = if verified.object_count == 1 { "object" } else { "objects" };
            let text = format!(
                "{shown}: whole: {} {objects} of {}, exported {}, SHA-256 {}",
                verified.object_count,
                verified.object_type,
                verified.export_date,
                verified.data_checksum
            );
            (true, text)
        }
        Err(fault) if json => (
            false,
            json!({ "file": shown.to_string(), "whole": false, "fault": fault.to_string() })
                .to_string(),
        ),
        Err(fault) if fault.kind == Kind::Invalid => (false, format!("{shown}: {fault}")),
        // It names the file itself.
        Err(fault) => (false, fault.to_string()),
    }
}
