//! `penstock backup FILE` and `penstock restore FILE`.
use super::{control, data_dir, output, owner, serve};
use clap::{Arg, ArgMatches, Command, value_parser};
use penstock_base::files::sync_folder;
use penstock_config::Settings;
use penstock_service::gateway::{COUNTERS, data_events, make_private, store_of};
use penstock_store::{Backup, BackupFile, JUMP, Restored};
use serde_json::json;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn file(help: &'static str) -> Arg {
    Arg::new("FILE").help(help).required(true).value_parser(value_parser!(PathBuf))
}

pub(super) fn command() -> Command {
    Command::new("backup")
        .about("Back up the whole store into a file, also while the service runs")
        .override_usage("penstock backup FILE [--json] [--name=value]...")
        .arg(file("The file to create; it must not exist"))
        .arg(output::json_flag())
        .after_help(
            "The file is a compressed snapshot of one moment. The command reads it back before it ends. The \
             configuration and the files of exports are not part of it.\n\nExamples:\n  \
             penstock backup /mnt/penstock-monday --service.data-dir=data",
        )
}

pub(super) fn restore_command() -> Command {
    Command::new("restore")
        .about("Restore a backup into an empty data directory")
        .override_usage("penstock restore FILE [--json] [--name=value]...")
        .arg(file("The file that penstock backup wrote"))
        .arg(output::json_flag())
        .after_help(
            "Counters and sequences continue 1,000,000 ahead of the backup, so that no number issued since is \
             issued again. The first start builds the index.\n\nExamples:\n  \
             penstock restore /mnt/penstock-monday --service.data-dir=data",
        )
}

pub(super) fn run(given: &ArgMatches, arguments: Vec<String>) -> ExitCode {
    act(given, arguments, |settings, path| {
        let backup = backup(settings, path)?;
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
    act(given, arguments, |settings, path| {
        let Restored { backup, sequence, counters, .. } = restore(settings, path)?;
        let dir = settings.data_dir.display();
        let text = format!(
            "{dir}: {} quads and {} documents of commit {}; {counters} counters and the commits continue {JUMP} ahead",
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

fn act(
    given: &ArgMatches,
    arguments: Vec<String>,
    action: impl FnOnce(&Settings, &Path) -> Result<(String, serde_json::Value), String>,
) -> ExitCode {
    let settings = match data_dir::settings(arguments) {
        Ok(settings) => settings,
        Err(failed) => return failed,
    };
    let Some(path) = given.get_one::<PathBuf>("FILE") else { return output::USED_WRONGLY.into() };
    match action(&settings, path) {
        Ok((text, json)) => {
            let text = if given.get_flag("json") { json.to_string() } else { text };
            output::answer(&text).map_or_else(|status| status, |()| ExitCode::SUCCESS)
        }
        Err(why) => output::fail(&why),
    }
}

fn backup(settings: &Settings, path: &Path) -> Result<Backup, String> {
    data_dir::must_exist(settings)?;
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    // Opened before this process may change to another user, who may lack the permission.
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.map_err(failed)?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let written = write(settings, &mut file).and_then(|()| {
        file.sync_all().map_err(failed)?;
        let read_back = file.try_clone().map_err(failed)?;
        BackupFile::of(read_back, path).check().map_err(|error| error.to_string())
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
fn write(settings: &Settings, file: &mut File) -> Result<(), String> {
    let dir = &settings.data_dir;
    let runtime = serve::runtime().map_err(|error| error.to_string())?;
    if runtime.block_on(control::download(dir, "/control/backup", file))? {
        return Ok(());
    }
    let store = data_dir::store(settings)?;
    let result = store.backup(file);
    data_dir::note(&store.into(), settings, &data_events::backed_up(&result));
    result.map(drop).map_err(|error| error.to_string())
}

fn restore(settings: &Settings, path: &Path) -> Result<Restored, String> {
    let backup = BackupFile::open(path).map_err(|error| error.to_string())?;
    let dir = &settings.data_dir;
    make_private(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    // The store itself refuses a store folder that is not empty.
    if entries.flatten().any(|entry| entry.path() != store_of(dir)) {
        return Err(format!(
            "{} is not empty; stop the service and its socket (systemctl stop penstock.socket penstock.service) \
             and move its content elsewhere, or choose another directory with --service.data-dir=DIR",
            dir.display()
        ));
    }
    owner::become_owner(dir)?;
    let restored = backup.restore(&store_of(dir), &COUNTERS).map_err(|error| error.to_string())?;
    data_events::note_restored(dir, &restored.backup)
        .map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(restored)
}
