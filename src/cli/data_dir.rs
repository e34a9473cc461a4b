//! The data directory that a command works on.
use super::{output, owner};
use crate::config::{self, Settings, Sources};
use crate::gateway::store_of;
use crate::telemetry;
use penstock_store::{Options, Store};
use std::process::ExitCode;

/// The settings that the command was given. Its log is for faults alone: what it did, it answers.
pub(super) fn settings(arguments: Vec<String>) -> Result<Settings, ExitCode> {
    match config::load(&Sources::of_process(arguments)) {
        Ok(loaded) => {
            for warning in loaded.warnings {
                output::say(&format!("penstock: warning: {warning}"));
            }
            telemetry::log::start("error", loaded.settings.log_format);
            Ok(loaded.settings)
        }
        Err(faults) => {
            output::configuration_faults(&faults);
            Err(output::FAILED.into())
        }
    }
}

/// Refuses a data directory that is not there.
///
/// # Errors
/// That it is not there, and how another one is named.
pub(super) fn must_exist(settings: &Settings) -> Result<(), String> {
    if settings.data_dir.is_dir() {
        return Ok(());
    }
    Err(format!(
        "there is no data directory {}; name it with --service.data-dir=DIR",
        settings.data_dir.display()
    ))
}

/// Opens the store, as the owner of its files; its lock decides who has it.
///
/// # Errors
/// That there is none, that another process has it, or why it cannot be opened.
pub(super) fn store(settings: &Settings) -> Result<Store, String> {
    let dir = &settings.data_dir;
    let store = store_of(dir);
    if !store.is_dir() {
        return Err(format!("there is no store in {}", dir.display()));
    }
    owner::become_owner(dir)?;
    Store::open(&store, Options::default(), &mut output::progress())
        .map_err(|error| error.to_string())
}
