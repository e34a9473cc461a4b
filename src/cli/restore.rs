//! `penstock restore FILE`, and `penstock restore --from BUCKET` for the continuous backup.
use super::offsite_backup::{BackupPlace, era_argument, from_argument, gateway_argument};
use super::{data_dir, output, owner};
use clap::{Arg, ArgMatches, Command, value_parser};
use jiff::Timestamp;
use penstock_base::files::temporary_path;
use penstock_config::Settings;
use penstock_export::backup::{RestoreRequest, RestoredBackup};
use penstock_service::gateway::restored::{NOTE_FILE, RestoreNote};
use penstock_service::gateway::{
    COUNTER_COLLECTIONS, GATEWAY_ID_FILE, create_private_folder, store_path, write_gateway_id,
};
use penstock_store::{BackupFile, Corruption, Error, Restored, SEQUENCE_JUMP};
use serde_json::{Value, json};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The folder of the continuous backup in the data directory.
const BACKUP_FOLDER: &str = "backup";

pub(super) fn build_command() -> Command {
    Command::new("restore")
        .about("Restore a backup into an empty data directory")
        .override_usage(
            "penstock restore FILE [--revoke-keys] [--sign-out] [--json] [--name=value]...\n       \
             penstock restore --from BUCKET [--gateway ID] [--era ERA] [--at TIME] [--copy] [--revoke-keys] [--sign-out] [--json] [--name=value]...",
        )
        .arg(
            Arg::new("FILE")
                .help("The file that penstock backup wrote")
                .required_unless_present("from")
                .conflicts_with_all(["from", "gateway", "era", "at", "copy"])
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(from_argument())
        .arg(gateway_argument().requires("from"))
        .arg(era_argument().requires("from"))
        .arg(
            Arg::new("at")
                .long("at")
                .value_name("TIME")
                .requires("from")
                .value_parser(|text: &str| {
                    text.parse::<Timestamp>().map_err(|error| error.to_string())
                })
                .help("Restore the state at this time, such as 2026-11-28T20:00:00Z"),
        )
        .arg(
            output::flag_argument("copy", "Restore a copy for inspection: it never takes over, and sends nothing")
                .requires("from"),
        )
        .arg(output::flag_argument("revoke-keys", "Revoke every API key of the backup at the first start"))
        .arg(output::flag_argument("sign-out", "End every session of the backup at the first start"))
        .arg(output::json_flag())
        .after_help(
            "Counters and sequences continue 1,000,000 ahead of the backup, so that no number issued since is \
             issued again; with --from, 1,000,000 ahead for each era since the restored one, the new one included. The \
             first start builds the index.\n\nA backup brings back API keys that were revoked since, \
             earlier passwords, and accounts that were disabled since. The gateway lists them in its log and its \
             status.\n\nWith --from, the command reads the continuous backup from this target of the configuration, and \
             the restored gateway takes it over as the last step. It needs service.backup.key, the age identity. \
             docs/backup.md has the steps for a gateway that died.\n\nExamples:\n  \
             penstock restore /mnt/penstock-monday --service.data-dir=data\n  \
             penstock restore --from vault --gateway edge-1\n  \
             penstock restore --from vault --at 2026-11-28T20:00:00Z --copy --service.data-dir=look",
        )
}

pub(super) fn run(given: &ArgMatches, arguments: Vec<String>) -> ExitCode {
    let note = RestoreNote {
        revoke_keys: given.get_flag("revoke-keys"),
        sign_out: given.get_flag("sign-out"),
        ..RestoreNote::begin()
    };
    let restored = match given.get_one::<PathBuf>("FILE") {
        Some(path) => {
            data_dir::load_settings(arguments).map(|settings| restore_file(&settings, path, note))
        }
        None => BackupPlace::load(given, arguments, output::STATUS_FAILED)
            .map(|place| restore_continuous_backup(given, &place, note)),
    };
    match restored {
        Ok(outcome) => output::print_outcome(given, outcome),
        Err(failed) => failed,
    }
}

/// Creates the data directory if it is missing, and acts as its owner. Refuses one that has a store, or anything else than
/// the note, what `expected` names, and the folder of a store, which a restore that was interrupted has left.
fn prepare_data_dir(dir: &Path, expected: &[&str]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    let is_new = !dir.exists();
    create_private_folder(dir).map_err(failed)?;
    if is_new {
        owner::give_to_service(dir)?;
    }
    let entries = fs::read_dir(dir).map_err(failed)?;
    let is_expected = |path: &Path| {
        let mut files = expected.iter().chain(&[NOTE_FILE]).map(|name| dir.join(name));
        path == store_path(dir) || files.any(|file| path == file || path == temporary_path(&file))
    };
    // Before the note is replaced: that of a restore that succeeded says what its first start has to do.
    let has_store = store_path(dir).join("journal").exists();
    if has_store || entries.flatten().any(|entry| !is_expected(&entry.path())) {
        return Err(format!(
            "{} is not empty; stop the service and its socket (systemctl stop penstock.socket penstock.service) \
             and move its content elsewhere, or choose another directory with --service.data-dir=DIR",
            dir.display()
        ));
    }
    owner::become_owner(dir)
}

/// Describes why nothing was restored. A start could begin a new, empty gateway in the directory.
fn describe_failure(error: &dyn Display, dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "{error}; nothing was restored into {dir}: restore again before you start the service there"
    )
}

/// Restores a file, and describes the result as text and JSON.
fn restore_file(
    settings: &Settings,
    path: &Path,
    mut note: RestoreNote,
) -> Result<(String, Value), String> {
    // Opened before this process may change to another user, who may lack the permission.
    let file = BackupFile::open(path).map_err(|error| error.to_string())?;
    let dir = &settings.data_dir;
    prepare_data_dir(dir, &[])?;
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    // Before the data, so that no restored store is without it.
    note.write(dir).map_err(failed)?;
    let restored = file
        .restore_into(&store_path(dir), &COUNTER_COLLECTIONS)
        .inspect_err(|_| drop(fs::remove_file(dir.join(NOTE_FILE))))
        .map_err(|error| match error {
            // Its header is at its beginning.
            Error::Corrupt(Corruption { path: of, offset: 0, what }) if of == path => {
                let path = path.display();
                let cause = format!(
                    "{path} is not a file of penstock backup, or its beginning is damaged: {what}"
                );
                describe_failure(&cause, dir)
            }
            error => describe_failure(&error, dir),
        })?;
    note.describe(&restored.backup);
    note.write(dir).map_err(failed)?;
    let Restored { backup, sequence, counters, .. } = restored;
    let dir = dir.display();
    let text = format!(
        "{dir}: {} quads and {} documents of commit {}; {counters} counters and the commits continue {SEQUENCE_JUMP} ahead",
        backup.quads, backup.documents, backup.sequence
    );
    let json = json!({
        "dataDir": dir.to_string(),
        "quads": backup.quads,
        "documents": backup.documents,
        "counters": counters,
        "sequence": sequence,
    });
    Ok((text, json))
}

/// Restores the continuous backup, and describes the result as text and JSON.
fn restore_continuous_backup(
    given: &ArgMatches,
    place: &BackupPlace,
    mut note: RestoreNote,
) -> Result<(String, Value), String> {
    let dir = &place.settings.data_dir;
    let copy = given.get_flag("copy");
    if let Some(id) = place.settings.gateway_id.as_ref().filter(|id| **id != place.gateway)
        && !copy
    {
        return Err(format!(
            "service.gateway-id is {id}, and the restored gateway keeps its id; set it to {}, or add --copy",
            place.gateway
        ));
    }
    prepare_data_dir(dir, &[BACKUP_FOLDER, GATEWAY_ID_FILE])?;
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    let had_id = dir.join(GATEWAY_ID_FILE).exists();
    // Before the data, so that no restored store is without them.
    note.write(dir).map_err(failed)?;
    write_gateway_id(dir, &place.gateway).map_err(failed)?;
    let request = RestoreRequest {
        store_dir: &store_path(dir),
        data_dir: dir,
        counters: &COUNTER_COLLECTIONS,
        era: given.get_one::<String>("era").map(String::as_str),
        at: given.get_one::<Timestamp>("at").copied(),
        copy,
    };
    let mut show = output::show_each_second(|(commit, last): (u64, u64)| {
        format!("restoring: {commit} of {last} commits")
    });
    let restored = place
        .reader
        .restore(&request, &mut |progress| show((progress.sequence, progress.last)))
        .inspect_err(|_| {
            // A file that stays is replaced by the next attempt.
            let _ = fs::remove_file(dir.join(NOTE_FILE));
            if !had_id {
                let _ = fs::remove_file(dir.join(GATEWAY_ID_FILE));
            }
        })
        .map_err(|error| describe_failure(&error, dir))?;
    note.detail = format!(
        "{}, from the continuous backup in {}: the era {} up to commit {}",
        note.detail, place.bucket, restored.era, restored.restored.backup.sequence
    );
    note.write(dir).map_err(failed)?;
    for warning in &restored.warnings {
        output::print_error_line(&format!("penstock: warning: {warning}"));
    }
    Ok(describe_restored(dir, &restored))
}

/// Describes a restored continuous backup as text and JSON.
fn describe_restored(dir: &Path, restored: &RestoredBackup) -> (String, Value) {
    let RestoredBackup { era, at, restored, jump, new_era, warnings } = restored;
    let Restored { backup, sequence, counters } = restored;
    let time = at.as_ref().map_or_else(String::new, |at| format!(", committed by {at}"));
    let next = new_era.as_ref().map_or_else(
        || "it is a copy for inspection, which sends nothing".to_owned(),
        |next| format!("it continues the backup with the era {next}"),
    );
    let text = format!(
        "{}: the era {era} up to commit {}{time}; {counters} counters and the commits continue {jump} ahead; {next}",
        dir.display(),
        backup.sequence
    );
    let json = json!({
        "dataDir": dir.display().to_string(),
        "era": era,
        "commit": backup.sequence,
        "at": at,
        "counters": counters,
        "sequence": sequence,
        "newEra": new_era,
        "warnings": warnings,
    });
    (text, json)
}
