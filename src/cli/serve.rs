//! `penstock serve`: runs the service.
use super::output::{
    self, STATUS_CONFIGURATION, STATUS_DATA, STATUS_FAILED, STATUS_IO, STATUS_PERMISSION,
};
use super::owner;
use crate::app;
use crate::app::Backoff;
use clap::Command;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::memory::Memory;
use penstock_base::telemetry;
use penstock_base::telemetry::LogFormat;
use penstock_config::{self as config, InvalidConfiguration, Loaded, Settings, Sources};
use penstock_service::blocking::MAX_BLOCKING_THREADS;
use std::process::ExitCode;
use std::sync::Arc;

pub(super) fn build_command() -> Command {
    Command::new("serve")
        .about("Serve the HTTP API and deliver exports, until SIGTERM or SIGINT")
        .override_usage("penstock serve [--name=value]...")
        .after_help(
            "The service prints its address when it is ready. The log goes to standard error.\n\n\
             Exit status: 0 normal shutdown, 65 the data is damaged or of a newer version, 74 the disk, 77 permissions, \
             78 the configuration, 1 anything else. 65, 77 and 78 need a person: restarting does not help.\n\n\
             Examples:\n  penstock serve --service.data-dir=data\n  \
             penstock serve --server.port=9000 --service.log.level=debug\n  \
             SERVICE_DATA_DIR=data penstock serve",
        )
}

pub(super) fn run(arguments: Vec<String>) -> ExitCode {
    let sources = Sources::of_process(arguments);
    let Loaded { settings, warnings } = match config::load(&sources) {
        Ok(loaded) => loaded,
        Err(invalid) => {
            if telemetry::log::is_journal() {
                telemetry::log::start_logging("warn", LogFormat::Text);
                log_invalid_configuration(&invalid);
            } else {
                output::print_invalid_configuration(&invalid);
            }
            return STATUS_CONFIGURATION.into();
        }
    };
    telemetry::log::start_logging(&settings.log_level, settings.log_format);
    telemetry::metrics::start_counting();
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    for value in &settings.effective_values {
        tracing::debug!(
            name = value.name,
            value = value.value,
            origin = value.origin,
            "A setting was read."
        );
    }
    let settings = limit_to_memory(settings);
    let backoff = Backoff::count_start_of_service();
    let (ended, status) = match run_service(settings, sources, &backoff) {
        Ok(()) => (true, 0),
        Err(error) => {
            tracing::error!("{error}");
            let status = exit_status(&error);
            (matches!(status, STATUS_DATA | STATUS_PERMISSION | STATUS_CONFIGURATION), status)
        }
    };
    if ended {
        backoff.reset_count();
    }
    status.into()
}

/// Reduces the limits of requests to what the available memory can hold.
fn limit_to_memory(settings: Settings) -> Settings {
    let Some(memory) = Memory::new(settings.limits.memory_bytes).limit_bytes() else {
        return settings;
    };
    let limits = settings.limits.fit_into_memory(memory);
    if limits != settings.limits {
        tracing::info!(
            memory,
            body = limits.body_bytes,
            in_flight = limits.in_flight_bytes,
            values = limits.values,
            "The limits of requests were reduced, because the available memory is too small for the configured ones."
        );
    }
    Settings { limits, ..settings }
}

/// Returns the exit status for an error that ends the service.
fn exit_status(error: &GatewayError) -> u8 {
    match error.class {
        ErrorClass::InsufficientStorage | ErrorClass::Internal => STATUS_IO,
        ErrorClass::Damaged => STATUS_DATA,
        ErrorClass::Forbidden => STATUS_PERMISSION,
        ErrorClass::Invalid | ErrorClass::Malformed => STATUS_CONFIGURATION,
        _ => STATUS_FAILED,
    }
}

/// Reads the configuration again. If it has errors, logs them and returns `None`; the previous settings stay in use.
fn reload_settings(sources: &Sources) -> Option<Settings> {
    match config::load(sources) {
        Ok(loaded) => Some(loaded.settings),
        Err(invalid) => {
            log_invalid_configuration(&invalid);
            tracing::error!(
                "Reloading failed: the configuration has errors; the previous settings stay in use."
            );
            None
        }
    }
}

fn log_invalid_configuration(InvalidConfiguration { errors, warnings }: &InvalidConfiguration) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    for error in errors {
        tracing::error!("{error}");
    }
}

fn run_service(
    settings: Settings,
    sources: Sources,
    backoff: &Backoff,
) -> Result<(), GatewayError> {
    let runtime = build_runtime().map_err(|error| {
        GatewayError::new(
            ErrorClass::Unavailable(std::time::Duration::ZERO),
            format!("starting threads failed: {error}"),
        )
    })?;
    // The owner could not open files that root creates there.
    owner::become_owner(&settings.data_dir)
        .map_err(|why| GatewayError::new(ErrorClass::Forbidden, why))?;
    let data_dir = settings.data_dir.display().to_string();
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    let reload = Box::new(move || reload_settings(&sources));
    let ready = move |address, _| {
        // Printed at every log level, because `server.port` may be 0. A closed standard output is not an error.
        let _ = output::print_result(&format!(
            "Penstock {} listens on {scheme}://{address} with its data in {data_dir}",
            env!("CARGO_PKG_VERSION")
        ));
    };
    let served =
        runtime.block_on(app::serve_until_signal(Arc::new(settings), reload, backoff, ready));
    // Blocking work that still runs may be interrupted: everything acknowledged is synced.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    served
}

/// Creates the runtime. It has few threads for requests, because each costs memory. Those that may block end when they
/// have nothing to do for some seconds.
pub(super) fn build_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.clamp(2, 4))
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build()
}
