//! `penstock backup FILE` and `penstock restore FILE`.
use super::{control, data_dir, output, owner, serve};
use clap::{Arg, ArgMatches, Command, value_parser};
use penstock_base::files::sync_folder;
use penstock_config::Settings;
use penstock_service::gateway::restored::{NOTE_FILE, RestoreNote};
use penstock_service::gateway::{
    COUNTER_COLLECTIONS, create_private_folder, data_events, store_path,
};
use penstock_store::{Backup, BackupFile, Restored, SEQUENCE_JUMP};
use serde_json::json;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn file_argument(help: &'static str) -> Arg {
    Arg::new("FILE").help(help).required(true).value_parser(value_parser!(PathBuf))
}

pub(super) fn build_command() -> Command {
    Command::new("backup")
        .about("Back up the whole store into a file, also while the service runs")
        .override_usage("penstock backup FILE [--json] [--name=value]...")
        .arg(file_argument("The file to create; it must not exist"))
        .arg(output::json_flag())
        .after_help(
            "The file is a compressed snapshot of one moment. The command reads it back before it ends. The \
             configuration and the files of exports are not part of it.\n\nExamples:\n  \
             penstock backup /mnt/penstock-monday --service.data-dir=data",
        )
}

pub(super) fn build_restore_command() -> Command {
    Command::new("restore")
        .about("Restore a backup into an empty data directory")
        .override_usage("penstock restore FILE [--revoke-keys] [--sign-out] [--json] [--name=value]...")
        .arg(file_argument("The file that penstock backup wrote"))
        .arg(output::flag_argument("revoke-keys", "Revoke every API key of the backup at the first start"))
        .arg(output::flag_argument("sign-out", "End every session of the backup at the first start"))
        .arg(output::json_flag())
        .after_help(
            "Counters and sequences continue 1,000,000 ahead of the backup, so that no number issued since is \
             issued again. The first start builds the index.\n\nA backup brings back API keys that were revoked since, \
             earlier passwords, and accounts that were disabled since. The gateway lists them in its log and its \
             status.\n\nExamples:\n  \
             penstock restore /mnt/penstock-monday --service.data-dir=data",
        )
}

pub(super) fn run(given: &ArgMatches, arguments: Vec<String>) -> ExitCode {
    run_action(given, arguments, |settings, path| {
        let backup = backup_to_file(settings, path)?;
        let text = format!(
            "{}: {} quads and {} documents at commit {}",
            path.display(),
            backup.quads,
            backup.documents,
            backup.sequence
        );
        let Backup { sequence, quads, documents, .. } = backup;
        let json = json!({
            "file": path.display().to_string(),
            "sequence": sequence,
            "quads": quads,
            "documents": documents,
        });
        Ok((text, json))
    })
}

pub(super) fn run_restore(given: &ArgMatches, arguments: Vec<String>) -> ExitCode {
    run_action(given, arguments, |settings, path| {
        let note = RestoreNote {
            revoke_keys: given.get_flag("revoke-keys"),
            sign_out: given.get_flag("sign-out"),
            ..RestoreNote::begin()
        };
        let Restored { backup, sequence, counters, .. } = restore_backup(settings, path, note)?;
        let dir = settings.data_dir.display();
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
    })
}

fn run_action(
    given: &ArgMatches,
    arguments: Vec<String>,
    action: impl FnOnce(&Settings, &Path) -> Result<(String, serde_json::Value), String>,
) -> ExitCode {
    let settings = match data_dir::load_settings(arguments) {
        Ok(settings) => settings,
        Err(failed) => return failed,
    };
    let Some(path) = given.get_one::<PathBuf>("FILE") else { return output::STATUS_USAGE.into() };
    match action(&settings, path) {
        Ok((text, json)) => {
            let text = if given.get_flag("json") { json.to_string() } else { text };
            output::print_result(&text).map_or_else(|status| status, |()| ExitCode::SUCCESS)
        }
        Err(why) => output::print_failure(&why),
    }
}

fn backup_to_file(settings: &Settings, path: &Path) -> Result<Backup, String> {
    data_dir::check_exists(settings)?;
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    // Opened before this process may change to another user, who may lack the permission.
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.map_err(failed)?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let written = write_backup(settings, &mut file).and_then(|()| {
        file.sync_all().map_err(failed)?;
        let read_back = file.try_clone().map_err(failed)?;
        BackupFile::from_file(read_back, path).verify_content().map_err(|error| error.to_string())
    });
    match written {
        Ok(backup) => {
            sync_folder(folder.unwrap_or(Path::new("."))).map_err(failed)?;
            Ok(backup)
        }
        Err(why) => {
            // A partial backup is useless; if it cannot be removed, restore refuses it.
            let _ = fs::remove_file(path);
            Err(why)
        }
    }
}

/// Writes the backup: through the running service, or from the store itself. The store's lock excludes other processes.
fn write_backup(settings: &Settings, file: &mut File) -> Result<(), String> {
    let dir = &settings.data_dir;
    let runtime = serve::build_runtime().map_err(|error| error.to_string())?;
    if runtime.block_on(control::download_to(dir, "/control/backup", file))?.is_some() {
        return Ok(());
    }
    let store = data_dir::open_store(settings)?;
    let result = store.write_backup(file);
    data_dir::record_event(&store.into(), settings, &data_events::backup_event(&result));
    result.map(drop).map_err(|error| error.to_string())
}

fn restore_backup(
    settings: &Settings,
    path: &Path,
    mut note: RestoreNote,
) -> Result<Restored, String> {
    let backup = BackupFile::open(path).map_err(|error| error.to_string())?;
    let dir = &settings.data_dir;
    create_private_folder(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    // The store itself refuses a store folder that is not empty. A note is of a restore that was interrupted.
    let expected = [store_path(dir), dir.join(NOTE_FILE)];
    if entries.flatten().any(|entry| !expected.contains(&entry.path())) {
        return Err(format!(
            "{} is not empty; stop the service and its socket (systemctl stop penstock.socket penstock.service) \
             and move its content elsewhere, or choose another directory with --service.data-dir=DIR",
            dir.display()
        ));
    }
    owner::become_owner(dir)?;
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    // Before the data, so that no restored store is without it.
    note.write(dir).map_err(failed)?;
    let restored = backup
        .restore_into(&store_path(dir), &COUNTER_COLLECTIONS)
        .inspect_err(|_| drop(fs::remove_file(dir.join(NOTE_FILE))))
        .map_err(|error| error.to_string())?;
    note.describe(&restored.backup);
    note.write(dir).map_err(failed)?;
    Ok(restored)
}
