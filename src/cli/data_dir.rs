//! Opens the data directory that a command works on.
use super::{output, owner, serve};
use penstock_auth::audit::{self, Event};
use penstock_base::commit::GuardedStore;
use penstock_base::fault::Fault;
use penstock_base::telemetry;
use penstock_config::{self as config, Settings, Sources};
use penstock_service::gateway::{Gateway, store_of};
use penstock_store::{Options, Store};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Loads the settings that the command was given, and starts its log. The log is only for errors: the command prints
/// its result.
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

/// Refuses a missing data directory, and as root one that another user could replace.
///
/// # Errors
/// That the directory is missing, and how to name another one; or whose folder it is in.
pub(super) fn must_exist(settings: &Settings) -> Result<(), String> {
    if settings.data_dir.is_dir() {
        return owner::check_path(&settings.data_dir);
    }
    Err(format!(
        "there is no data directory {}; set it with --service.data-dir=DIR",
        settings.data_dir.display()
    ))
}

/// Performs an operation through the running service, or on the store itself. `by_service` returns `None` if no service
/// runs. The store's lock excludes other processes.
///
/// # Errors
/// Why the operation failed.
pub(super) fn perform(
    settings: Settings,
    by_service: impl AsyncFnOnce(&Path) -> Result<Option<Value>, String>,
    by_store: impl FnOnce(&Gateway) -> Result<Value, Fault>,
) -> Result<Value, String> {
    must_exist(&settings)?;
    let runtime = serve::runtime().map_err(|error| error.to_string())?;
    if let Some(answer) = runtime.block_on(by_service(&settings.data_dir))? {
        return Ok(answer);
    }
    owner::become_owner(&settings.data_dir)?;
    // Parts of the gateway may need the current runtime.
    let _entered = runtime.enter();
    let gateway = Gateway::open(Arc::new(settings), &mut output::progress());
    gateway.and_then(|gateway| by_store(&gateway)).map_err(|fault| fault.to_string())
}

/// Opens the store as the owner of its files.
///
/// # Errors
/// That there is no store, that another process has it open, or why opening failed.
pub(super) fn store(settings: &Settings) -> Result<Store, String> {
    let store = owned(settings)?;
    Store::open(&store, Options::default(), &mut output::progress())
        .map_err(|error| error.to_string())
}

/// Adds an event to the audit log of a store that no service has open. If the store refuses the commit, the operation
/// still succeeds with a warning: a full disk must not prevent a backup.
pub(super) fn note(store: &GuardedStore, settings: &Settings, event: &Event) {
    let what = event.what;
    if let Err(why) = audit::keep_offline(store, settings.limits.audit, event) {
        output::say(&format!(
            "penstock: warning: adding the event {what} to the audit log failed: {why}"
        ));
    }
}

/// Opens the whole gateway, for changes that need more than the store.
///
/// # Errors
/// As [`store`].
pub(super) fn gateway(settings: &Settings) -> Result<Gateway, String> {
    owned(settings)?;
    Gateway::open(Arc::new(settings.clone()), &mut output::progress())
        .map_err(|fault| fault.to_string())
}

/// Changes to the owner of the data directory, and returns the path of the store.
fn owned(settings: &Settings) -> Result<PathBuf, String> {
    let dir = &settings.data_dir;
    let store = store_of(dir);
    if !store.is_dir() {
        return Err(format!("there is no store in {}; check --service.data-dir", dir.display()));
    }
    owner::become_owner(dir)?;
    Ok(store)
}
