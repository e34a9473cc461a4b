//! `penstock backup FILE`.
use super::{control, data_dir, output, serve};
use clap::{Arg, ArgMatches, Command, value_parser};
use penstock_config::Settings;
use penstock_service::gateway::data_events;
use penstock_store::{Backup, BackupFile};
use serde_json::{Value, json};
use std::fs::File;
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

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let Some(path) = given.get_one::<PathBuf>("FILE") else { return output::STATUS_USAGE.into() };
    output::print_outcome(given, back_up(settings, path))
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
    // Opened before this process may change to another user, who may lack the permission.
    data_dir::write_new_file(path, |file| {
        write_backup(settings, path, file)?;
        let read_back = file.try_clone().map_err(|error| format!("{}: {error}", path.display()))?;
        BackupFile::from_file(read_back, path).verify_content().map_err(|error| error.to_string())
    })
}

/// Writes the backup: through the running service, or from the store itself. The store's lock excludes other processes.
fn write_backup(settings: &Settings, path: &Path, file: &mut File) -> Result<(), String> {
    let dir = &settings.data_dir;
    let runtime = serve::build_runtime().map_err(|error| error.to_string())?;
    let downloaded = runtime.block_on(control::download_to(dir, "/control/backup", file));
    if downloaded.map_err(|why| format!("{}: {why}", path.display()))?.is_some() {
        return Ok(());
    }
    let store = data_dir::open_store(settings)?;
    let result = store.write_backup(file);
    data_dir::record_event(&store.into(), settings, &data_events::backup_event(&result));
    result.map(drop).map_err(|error| match error {
        full if full.is_disk_full() => {
            format!("{}: {full}; {}", path.display(), control::FULL_OUTPUT_REMEDY)
        }
        error => error.to_string(),
    })
}
