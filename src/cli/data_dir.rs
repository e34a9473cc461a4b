//! The data directory that a command works on.
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

/// Refuses a data directory that is not there, or that root cannot trust to be the one it was.
///
/// # Errors
/// That it is not there, and how another one is named, or whose folder it is in.
pub(super) fn must_exist(settings: &Settings) -> Result<(), String> {
    if settings.data_dir.is_dir() {
        return owner::check_path(&settings.data_dir);
    }
    Err(format!(
        "there is no data directory {}; name it with --service.data-dir=DIR",
        settings.data_dir.display()
    ))
}

/// Has it done by the service when one runs (`by_service` gives nothing when none does), else does it on the
/// store itself, whose lock decides who has it.
///
/// # Errors
/// Why it could not be done.
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
    // Parts of the gateway may look for the runtime.
    let _entered = runtime.enter();
    let gateway = Gateway::open(Arc::new(settings), &mut output::progress());
    gateway.and_then(|gateway| by_store(&gateway)).map_err(|fault| fault.to_string())
}

/// Opens the store, as the owner of its files; its lock decides who has it.
///
/// # Errors
/// That there is none, that another process has it, or why it cannot be opened.
pub(super) fn store(settings: &Settings) -> Result<Store, String> {
    let store = owned(settings)?;
    Store::open(&store, Options::default(), &mut output::progress())
        .map_err(|error| error.to_string())
}

/// Notes in the audit log of a store that no service has open what was done. A store that takes no commit does
/// not undo it: a full disk is no reason against a backup.
pub(super) fn note(store: &GuardedStore, settings: &Settings, event: &Event) {
    let what = event.what;
    if let Err(why) = audit::keep_offline(store, settings.limits.audit, event) {
        output::say(&format!("penstock: warning: the audit log has no event {what}: {why}"));
    }
}

/// As [`store`], with all that knows what its changes mean.
///
/// # Errors
/// As of [`store`].
pub(super) fn gateway(settings: &Settings) -> Result<Gateway, String> {
    owned(settings)?;
    Gateway::open(Arc::new(settings.clone()), &mut output::progress())
        .map_err(|fault| fault.to_string())
}

/// Where the store is, once this acts as the owner of its files.
fn owned(settings: &Settings) -> Result<PathBuf, String> {
    let dir = &settings.data_dir;
    let store = store_of(dir);
    if !store.is_dir() {
        return Err(format!("there is no store in {}", dir.display()));
    }
    owner::become_owner(dir)?;
    Ok(store)
}
