//! Opens the data directory that a command works on.
use super::{output, owner, serve};
use nix::errno::Errno;
use penstock_auth::audit::{self, Event};
use penstock_base::commit::GuardedStore;
use penstock_base::error::GatewayError;
use penstock_base::shared_folder::SharedFolder;
use penstock_base::telemetry;
use penstock_config::{self as config, ConfigError, Settings, Sources};
use penstock_model::namespace::moving::find_pending_move;
use penstock_service::gateway::restored::refuse_unfinished_restore;
use penstock_service::gateway::{Gateway, describe_in_use, store_path};
use penstock_store::{Error, Options, Store};
use serde_json::Value;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The characters of a file's name that its temporary name has too. File systems allow 255 bytes.
const MAX_STEM_CHARACTERS: usize = 50;

/// Loads the settings that the command was given, and starts its log. The log is only for errors: the command prints
/// its result.
pub(super) fn load_settings(arguments: Vec<String>) -> Result<Settings, ExitCode> {
    load_settings_with(arguments, |_| {})
}

/// Loads the settings as [`load_settings`] does. `explain` gets each error before it is printed.
pub(super) fn load_settings_with(
    arguments: Vec<String>,
    explain: impl FnMut(&mut ConfigError),
) -> Result<Settings, ExitCode> {
    match config::load(&Sources::of_process(arguments)) {
        Ok(loaded) => {
            for warning in loaded.warnings {
                output::print_error_line(&format!("penstock: warning: {warning}"));
            }
            telemetry::log::start_logging("error", loaded.settings.log_format);
            Ok(loaded.settings)
        }
        Err(mut invalid) => {
            invalid.errors.iter_mut().for_each(explain);
            output::print_invalid_configuration(&invalid);
            Err(output::STATUS_FAILED.into())
        }
    }
}

/// Refuses a missing data directory. As root, also refuses one that another user could replace.
///
/// # Errors
/// Names the missing directory and the setting for another one, or the owner of the folder that it is in.
pub(super) fn check_exists(settings: &Settings) -> Result<(), String> {
    if settings.data_dir.is_dir() {
        return owner::check_path(&settings.data_dir);
    }
    Err(format!(
        "there is no data directory {}; set it with --service.data-dir=DIR",
        settings.data_dir.display()
    ))
}

/// Creates a file, passes it to `write`, syncs it, and gives it this name, which an incomplete file never has. `write` may
/// change this process with [`owner::act_as_owner`] to a user who has no rights in the folder of the file.
///
/// # Errors
/// There is something with this name, or the errors of `write`, of syncing and of the folder.
pub(super) fn write_new_file<T>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, String>,
) -> Result<T, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let not_created = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{}; write to another file, or move this one away", failed(error))
        }
        _ => failed(error),
    };
    // An error of the name is reported before anything is written.
    match fs::symlink_metadata(path) {
        // A link that leads nowhere exists too.
        Ok(_) => return Err(not_created(Errno::EEXIST.into())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Err(_) => {}
    }
    let name = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/"));
    let name = name.ok_or_else(|| failed(Errno::EISDIR.into()))?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = SharedFolder::open_root(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    let stem: String = name.to_string_lossy().chars().take(MAX_STEM_CHARACTERS).collect();
    // They only take space.
    let _ = folder.remove_abandoned_files(&stem);
    let temporary = folder.create_private_temporary(&stem).map_err(failed)?;
    let mut file = temporary.file().try_clone().map_err(failed)?;
    let caller = owner::Caller::current();
    let written =
        write(&mut file).and_then(|written| file.sync_all().map(|()| written).map_err(failed));
    // The folder belongs to the caller.
    let resumed = caller.resume();
    let written = written?;
    resumed?;
    temporary.rename_new_synced(Path::new(name)).map_err(not_created)?;
    Ok(written)
}

/// Fails if a move of a namespace was interrupted: its URIs are not the same everywhere.
///
/// # Errors
/// How to continue the move; the errors of the store.
pub(super) fn check_no_move(store: &Store) -> Result<(), String> {
    match find_pending_move(&store.read()).map_err(|error| error.to_string())? {
        Some(pending) => Err(pending.to_string()),
        None => Ok(()),
    }
}

/// Performs an operation through the running service, or on the store itself. `by_service` returns `None` if no service
/// runs. The store's lock excludes other processes.
///
/// # Errors
/// Why the operation failed.
pub(super) fn perform_action(
    settings: &Settings,
    by_service: impl AsyncFnOnce(&Path) -> Result<Option<Value>, String>,
    by_store: impl AsyncFnOnce(&Gateway) -> Result<Value, GatewayError>,
) -> Result<Value, String> {
    check_exists(settings)?;
    let runtime = serve::build_runtime().map_err(|error| error.to_string())?;
    if let Some(answer) = runtime.block_on(by_service(&settings.data_dir))? {
        return Ok(answer);
    }
    owner::become_owner(&settings.data_dir)?;
    // Parts of the gateway may need the current runtime.
    let _entered = runtime.enter();
    let gateway = Gateway::open(Arc::new(settings.clone()), &mut output::show_replay_progress());
    let performed = gateway.and_then(|gateway| runtime.block_on(by_store(&gateway)));
    performed.map_err(|error| error.to_string())
}

/// Opens the store as the owner of its files, for a command that writes a file of its own. It acts as that user with
/// [`owner::act_as_owner`].
///
/// # Errors
/// Why opening failed: there is no store, another process has it open, or another error.
pub(super) fn open_store(settings: &Settings) -> Result<Store, String> {
    let store = find_store(settings)?;
    owner::act_as_owner(&settings.data_dir)?;
    Store::open(&store, store_options(settings), &mut output::show_replay_progress())
        .map_err(|error| error.to_string())
}

/// Returns the options with which the service opens the store, as far as they decide what is in its files. The journal keeps
/// what the continuous backup has not sent yet.
fn store_options(settings: &Settings) -> Options {
    let retain_after = penstock_export::backup::retain_after(&settings.data_dir);
    Options {
        value_index: settings.value_index,
        // If it is not known what was sent, the journal keeps all that it has.
        retain_after: retain_after.unwrap_or(Some(0)),
        ..Options::default()
    }
}

/// Opens the store as [`open_store`] does, for a command that needs the service to be stopped. The store's lock says
/// whether it is.
///
/// # Errors
/// As [`open_store`]; if another process has the store open, also how to stop the service.
pub(super) fn open_stopped_store(settings: &Settings) -> Result<Store, String> {
    let store = become_store_owner(settings)?;
    let options = store_options(settings);
    Store::open(&store, options, &mut output::show_replay_progress()).map_err(|error| match error {
        Error::InUse { .. } => describe_in_use(&error),
        error => error.to_string(),
    })
}

/// Adds an event to the audit trail of a store that no service has open. If the store refuses the commit, this only
/// prints a warning: a full disk must not prevent a backup.
pub(super) fn record_event(store: &GuardedStore, settings: &Settings, event: &Event) {
    let what = event.what;
    if let Err(why) = audit::store_event_offline(store, settings.limits.audit, event) {
        output::print_error_line(&format!(
            "penstock: warning: adding the event {what} to the audit trail failed: {why}"
        ));
    }
}

/// Opens the whole gateway, for changes that need more than the store.
///
/// # Errors
/// As [`open_store`].
pub(super) fn open_gateway(settings: &Settings) -> Result<Gateway, String> {
    become_store_owner(settings)?;
    Gateway::open(Arc::new(settings.clone()), &mut output::show_replay_progress())
        .map_err(|error| error.to_string())
}

/// Changes to the owner of the data directory, and returns the path of the store.
fn become_store_owner(settings: &Settings) -> Result<PathBuf, String> {
    let store = find_store(settings)?;
    owner::become_owner(&settings.data_dir)?;
    Ok(store)
}

fn find_store(settings: &Settings) -> Result<PathBuf, String> {
    let dir = &settings.data_dir;
    let store = store_path(dir);
    if !store.is_dir() {
        return Err(format!("there is no store in {}; check --service.data-dir", dir.display()));
    }
    refuse_unfinished_restore(dir).map_err(|error| error.to_string())?;
    Ok(store)
}
