//! `penstock backup FILE`.
use super::{control, data_dir, output, serve};
use clap::{Arg, ArgMatches, Command, value_parser};
use penstock_base::files::sync_folder;
use penstock_config::Settings;
use penstock_service::gateway::data_events;
use penstock_store::{Backup, BackupFile};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn build_command() -> Command {
    Command::new("backup")
        .about("Back up the whole store into a file, also while the service runs")
        .override_usage("penstock backup FILE [--json] [--name=value]...")
        .arg(
            Arg::new("FILE")
                .help("The file to create; it must not exist")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(output::json_flag())
        .after_help(
            "The file is a compressed snapshot of one moment. The command reads it back before it ends. The \
             configuration and the files of exports are not part of it.\n\nExamples:\n  \
             penstock backup /mnt/penstock-monday --service.data-dir=data",
        )
}

pub(super) fn run(given: &ArgMatches, arguments: Vec<String>) -> ExitCode {
    let settings = match data_dir::load_settings(arguments) {
        Ok(settings) => settings,
        Err(failed) => return failed,
    };
    let Some(path) = given.get_one::<PathBuf>("FILE") else { return output::STATUS_USAGE.into() };
    output::print_outcome(given, back_up(&settings, path))
}

/// Writes a backup, and describes it as text and JSON.
fn back_up(settings: &Settings, path: &Path) -> Result<(String, Value), String> {
    let Backup { sequence, quads, documents, .. } = backup_to_file(settings, path)?;
    let file = path.display().to_string();
    let text = format!("{file}: {quads} quads and {documents} documents at commit {sequence}");
    let json =
        json!({ "file": file, "sequence": sequence, "quads": quads, "documents": documents });
    Ok((text, json))
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
