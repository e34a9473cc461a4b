//! `penstock serve`: runs the service.
use super::output::{self, CONFIGURATION, DATA, DISK, FAILED, PERMISSION};
use super::owner;
use crate::app;
use crate::app::Backoff;
use clap::Command;
use penstock_base::fault::{Fault, Kind};
use penstock_base::memory::Memory;
use penstock_base::telemetry;
use penstock_base::telemetry::LogFormat;
use penstock_config::{self as config, Loaded, Settings, Sources};
use std::process::ExitCode;
use std::sync::Arc;

pub(super) fn command() -> Command {
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
        Err(faults) => {
            if telemetry::log::is_journal() {
                telemetry::log::start("error", LogFormat::Text);
                for fault in &faults {
                    tracing::error!("{fault}");
                }
            } else {
                output::configuration_faults(&faults);
            }
            return CONFIGURATION.into();
        }
    };
    telemetry::log::start(&settings.log_level, settings.log_format);
    telemetry::metrics::start();
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    for value in &settings.effective {
        tracing::debug!(
            name = value.name,
            value = value.value,
            origin = value.origin,
            "A setting was read."
        );
    }
    let settings = within_memory(settings);
    let backoff = Backoff::of_service();
    let (ended, status) = match serve(settings, sources, &backoff) {
        Ok(()) => (true, 0),
        Err(fault) => {
            tracing::error!("{fault}");
            let status = status(&fault);
            (matches!(status, DATA | PERMISSION | CONFIGURATION), status)
        }
    };
    if ended {
        backoff.forget();
    }
    status.into()
}

/// Reduces the limits of requests to what the available memory can hold.
fn within_memory(settings: Settings) -> Settings {
    let Some(memory) = Memory::new(settings.limits.memory).limit() else { return settings };
    let limits = settings.limits.within(memory);
    if limits != settings.limits {
        tracing::info!(
            memory,
            body = limits.body,
            in_flight = limits.in_flight,
            values = limits.values,
            "The limits of requests were reduced, because the available memory is too small for the configured ones."
        );
    }
    Settings { limits, ..settings }
}

/// Returns the exit status for an error that ends the service.
fn status(fault: &Fault) -> u8 {
    match fault.kind {
        Kind::NoRoom | Kind::Internal => DISK,
        Kind::Damaged => DATA,
        Kind::Forbidden => PERMISSION,
        Kind::Invalid | Kind::Malformed => CONFIGURATION,
        _ => FAILED,
    }
}

/// Reads the configuration again. If it has errors, logs them and returns `None`; the previous settings stay in use.
fn read_again(sources: &Sources) -> Option<Settings> {
    match config::load(sources) {
        Ok(loaded) => Some(loaded.settings),
        Err(faults) => {
            for fault in &faults {
                tracing::error!("{fault}");
            }
            tracing::error!(
                "Reloading failed: the configuration has errors; the previous settings stay in use."
            );
            None
        }
    }
}

fn serve(settings: Settings, sources: Sources, backoff: &Backoff) -> Result<(), Fault> {
    let runtime = runtime().map_err(|error| {
        Fault::new(
            Kind::Unavailable(std::time::Duration::ZERO),
            format!("starting threads failed: {error}"),
        )
    })?;
    // The owner could not open files that root creates there.
    owner::become_owner(&settings.data_dir).map_err(|why| Fault::new(Kind::Forbidden, why))?;
    let data_dir = settings.data_dir.display().to_string();
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    let reload = Box::new(move || read_again(&sources));
    let ready = move |address, _| {
        // Printed at every log level, because `server.port` may be 0. A closed standard output is not an error.
        let _ = output::answer(&format!(
            "Penstock {} listens on {scheme}://{address} with its data in {data_dir}",
            env!("CARGO_PKG_VERSION")
        ));
    };
    let served = runtime.block_on(app::serve(Arc::new(settings), reload, backoff, ready));
    // Blocking work that still runs may be interrupted: everything acknowledged is synced.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    served
}

/// Creates the runtime. It has few threads, because each costs memory and the disk limits the throughput.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.clamp(2, 4))
        .max_blocking_threads(16)
        .enable_all()
        .build()
}
