//! `penstock verify`: checks whether the store is whole.
use super::output::{self, STATUS_FAILED};
use super::{data_dir, owner};
use clap::{ArgMatches, Command};
use penstock_config::Settings;
use penstock_service::gateway::{describe_in_use, store_path};
use penstock_store::{Error, Verified};
use serde_json::json;
use std::process::ExitCode;

pub(super) fn build_command() -> Command {
    Command::new("verify")
        .about("Check the store: every frame, every block, and the index against the journal")
        .override_usage("penstock verify [--json] [--name=value]...")
        .arg(output::json_flag())
        .after_help(
            "Stop the service first. The command builds an index to compare with, so the disk needs space for a second one.\n\n\
             Exit status: 0 the store is whole, 1 it is damaged or not readable.\n\nExamples:\n  \
             penstock verify --service.data-dir=data\n  penstock verify --json",
        )
}

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let verified = match verify_store(settings) {
        Ok(verified) => verified,
        Err(why) => return output::print_failure(&why),
    };
    let text = if given.get_flag("json") { format_json(&verified) } else { format_text(&verified) };
    match output::print_result(&text) {
        Ok(()) if verified.damage.is_empty() => ExitCode::SUCCESS,
        Ok(()) => STATUS_FAILED.into(),
        Err(failed) => failed,
    }
}

fn verify_store(settings: &Settings) -> Result<Verified, String> {
    data_dir::check_exists(settings)?;
    owner::become_owner(&settings.data_dir)?;
    let store = store_path(&settings.data_dir);
    penstock_store::verify_store(&store, &mut output::show_replay_progress()).map_err(|error| {
        match error {
            Error::InUse { .. } => describe_in_use(&error),
            error if error.is_disk_full() => {
                format!("{error}; verifying needs disk space for a second quad index")
            }
            error => error.to_string(),
        }
    })
}

fn format_json(verified: &Verified) -> String {
    json!({
        "whole": verified.damage.is_empty(),
        "faults": verified.damage,
        "notes": verified.notes,
        "format": verified.format.number(),
        "sequence": verified.sequence,
        "quads": verified.quads,
        "documents": verified.documents,
        "baseParts": verified.parts,
        "segments": verified.segments,
        "frames": verified.frames,
        "journalBytes": verified.bytes,
    })
    .to_string()
}

fn format_text(verified: &Verified) -> String {
    let mut lines: Vec<String> =
        verified.damage.iter().map(|fault| format!("damaged: {fault}")).collect();
    lines.extend(verified.notes.iter().map(|note| format!("note: {note}")));
    lines.push(format!(
        "read: {} parts of the base, {} frames in {} segments, {} bytes",
        verified.parts, verified.frames, verified.segments, verified.bytes
    ));
    lines.push(if verified.damage.is_empty() {
        format!(
            "The store is whole: {} quads and {} documents at commit {}, in format {}.",
            verified.quads, verified.documents, verified.sequence, verified.format
        )
    } else {
        "The store is damaged. If the journal is damaged, restore a backup into a new directory with penstock restore."
            .to_owned()
    });
    lines.join("\n")
}
