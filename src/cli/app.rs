//! Opens the gateway, serves it, and shuts it down in order.
//!
//! `site` has all routes, `listen` binds the socket, `tls` has the certificate, `servers` has the servers and their
//! limits, `connections` limits the connections of each address, `opening` opens the gateway, `systemd` reports the
//! state to the service manager, `backoff` delays the start after failed starts.
mod backoff;
mod connections;
mod listen;
mod opening;
mod servers;
mod site;
mod systemd;
mod tls;

pub use backoff::Backoff;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use opening::open_when_space_allows;
use penstock_api::render_heartbeat;
use penstock_auth::{Authorized, Role};
use penstock_base::blocking::spawn_blocking;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::telemetry;
use penstock_config::Settings;
use penstock_http::state::State;
use penstock_service::blocking::run_blocking;
use penstock_service::definitions::{FolderRun, apply_service_folder, retry_service_folder};
use penstock_service::deletions::run_deletions;
use penstock_service::gateway::Gateway;
use penstock_service::gateway::levels::record_levels;
use penstock_service::recovery;
use penstock_service::validations::run_validations;
use penstock_service::{changes, dead_letters};
use penstock_sources::Sources;
use penstock_store::ReadStore;
use servers::Servers;
pub use site::{build_service, list_routes};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

/// The time that running requests and deliveries get when the service stops. The checkpoint follows; the whole
/// shutdown takes at most 10 s.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(8);
/// The part of that time after which the backup sends the last commits although something still runs. It takes at most
/// the other 5 s.
const MAX_WAIT_FOR_LAST_COMMIT: Duration = Duration::from_secs(3);
/// The interval at which sources are stopped or started because of a takeover.
const HOLD_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reads the configuration again at SIGHUP.
pub type ReloadSettings = Box<dyn Fn() -> Option<Settings> + Send + Sync>;

/// Serves until SIGTERM or SIGINT, after the delay that `backoff` asks for. `ready` gets the bound address and the
/// opened gateway; `reload` reads the settings again at SIGHUP.
///
/// # Errors
/// - `ErrorClass::Forbidden` when the process may not use the address or the data directory
/// - `ErrorClass::InsufficientStorage` or `ErrorClass::Internal` when the disk or the network fails
/// - `ErrorClass::Conflict` when the address or the data directory is in use
/// - `ErrorClass::Invalid` when the certificate is not usable
pub async fn serve_until_signal(
    settings: Arc<Settings>,
    reload: ReloadSettings,
    backoff: &Backoff,
    ready: impl FnOnce(SocketAddr, Gateway) + Send + 'static,
) -> Result<(), GatewayError> {
    // A signal that arrives from here on is kept until `serve_until` waits for it.
    let mut stopped = std::pin::pin!(listen_for_stop_signal()?);
    // Without this, SIGHUP would end the process during the delay. Certificate and definitions are read after it.
    let _hangups = listen_for(SignalKind::hangup())?;
    tokio::select! {
        () = backoff.wait_for_delay() => {}
        () = &mut stopped => return Ok(()),
    }
    let reset = tokio::spawn(backoff.clone().reset_count_later());
    let served = serve_until(settings, reload, ready, stopped).await;
    reset.abort();
    served
}

/// Serves until `stop` completes, or SIGTERM or SIGINT arrives.
///
/// # Errors
/// As [`serve_until_signal`].
pub async fn serve_until(
    settings: Arc<Settings>,
    reload: ReloadSettings,
    ready: impl FnOnce(SocketAddr, Gateway) + Send + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), GatewayError> {
    let hangups = listen_for(SignalKind::hangup())?;
    let bound = listen::bind_or_take_socket(&settings).await?;
    let address = bound.address;
    let state = State::new(settings.clone());
    let mut servers = Servers::default();
    let certificates = servers.serve_address(bound, &state).await?;
    systemd::notify_ready();
    tracing::info!(%address, https = certificates.is_some(), "Started listening for HTTP requests.");
    let reporting = tokio::spawn(systemd::report_state(state.clone()));
    let expiry = tokio::spawn(tls::log_expiry_daily(telemetry::metrics::certificate_expiry));
    let reloading = tokio::spawn(reload_at_hangup(
        hangups,
        reload,
        settings.data_dir.clone(),
        certificates,
        state.clone(),
    ));
    let served = serve_opened(address, state, servers, ready, stop).await;
    reloading.abort();
    expiry.abort();
    reporting.abort();
    served
}

/// Opens the gateway while HTTP answers 503, serves it, and shuts it down.
async fn serve_opened(
    address: SocketAddr,
    state: Arc<State>,
    mut servers: Servers,
    ready: impl FnOnce(SocketAddr, Gateway) + Send + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), GatewayError> {
    let settings = Arc::clone(state.settings());
    let signalled = listen_for_stop_signal()?;
    let mut stop = std::pin::pin!(async {
        tokio::select! {
            () = stop => {}
            () = signalled => {}
        }
    });
    let opened = tokio::select! {
        opened = open_when_space_allows(&settings, &state) => opened,
        () = &mut stop => {
            // Opening only reads and replays, so it can be interrupted at any moment.
            servers.stop_all(Instant::now() + SHUTDOWN_GRACE_PERIOD).await;
            return Ok(());
        }
    };
    let gateway = match opened {
        Ok(gateway) => gateway,
        Err(error) => {
            servers.stop_all(Instant::now()).await;
            return Err(error);
        }
    };
    // The status shows the run from the first response on.
    let run = gateway.definition_files.begin_run();
    state.set_gateway(gateway.clone());
    let definitions = tokio::spawn(apply_definitions(gateway.clone(), run));
    let definition_retries =
        tokio::spawn(retry_service_folder(gateway.clone(), Authorized::local()));
    let control = servers.start_control(&settings.data_dir, &state).await;
    let (stop_workers, stopped) = watch::channel(false);
    let reopening = tokio::spawn(recovery::reopen_when_needed(ReadStore::clone(&gateway.store)));
    let letter_cleanup = tokio::spawn(dead_letters::clean_up_dead_letters(gateway.clone()));
    let change_cleanup = tokio::spawn(changes::clean_up_changes(gateway.clone()));
    let key_refresh = gateway.auth.tokens.clone().map(|tokens| tokio::spawn(tokens.refresh_keys()));
    let measurements = tokio::spawn(record_levels(gateway.clone()));
    let clock_updates = tokio::spawn(gateway.clock.clone().run_updates());
    let memory_relief =
        tokio::spawn(gateway.memory.clone().relieve_pressure(ReadStore::clone(&gateway.store)));
    let deletions = tokio::spawn(run_deletions(gateway.clone(), stopped.clone()));
    let validations = tokio::spawn(run_validations(gateway.clone(), stopped.clone()));
    let (stop_backups, backups_stopped) = watch::channel(false);
    let backups = tokio::spawn(run_backups(gateway.clone(), backups_stopped));
    // All wait together, so that they begin at once and one warning says why they waited.
    let cleared = wait_until_cleared(gateway.clone(), stopped.clone()).boxed().shared();
    let sources = run_sources(gateway.clone(), stopped.clone());
    let sources = tokio::spawn(run_when_cleared(cleared.clone(), sources));
    let (sender, stopped_webhooks) = (gateway.webhooks.clone(), stopped.clone());
    let webhooks = async move { sender.run(stopped_webhooks).await };
    let webhooks = tokio::spawn(run_when_cleared(cleared.clone(), webhooks));
    let heartbeats = run_heartbeats(state.clone(), gateway.clone(), stopped.clone());
    let heartbeats = tokio::spawn(run_when_cleared(cleared.clone(), heartbeats));
    let exporter = gateway.exporter.clone();
    let exports = async move { exporter.run(stopped).await };
    let exports = tokio::spawn(run_when_cleared(cleared, exports));
    ready(address, gateway.clone());

    stop.await;
    systemd::notify_stopping();
    tracing::info!("The shutdown began; running requests and deliveries are finished first.");
    let begun = Instant::now();
    let deadline = begun + SHUTDOWN_GRACE_PERIOD;
    state.stop();
    gateway.exporter.stop_rendering();
    reopening.abort();
    definition_retries.abort();
    letter_cleanup.abort();
    change_cleanup.abort();
    measurements.abort();
    clock_updates.abort();
    memory_relief.abort();
    heartbeats.abort();
    if let Some(key_refresh) = key_refresh {
        key_refresh.abort();
    }
    // Sending fails if the workers have ended already. Then there is nothing to stop.
    let _ = stop_workers.send(true);
    let stop_backups_late = tokio::spawn({
        let stop_backups = stop_backups.clone();
        async move {
            sleep_until(begun + MAX_WAIT_FOR_LAST_COMMIT).await;
            stop_backups.send_replace(true);
        }
    });
    servers.stop_all(deadline).await;
    match timeout_at(deadline, exports).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "The exporter ended unexpectedly."),
        Err(_) => {
            tracing::warn!(
                "A delivery was interrupted; the gateway retries it after the next start."
            );
        }
    }
    for (task, interrupted) in [
        (
            sources,
            "A source did not stop in time; its broker sends the messages again that it did not acknowledge.",
        ),
        (
            webhooks,
            "A webhook did not answer in time; it gets the event again after the next start.",
        ),
        (deletions, "A deletion was interrupted; it continues after the next start."),
        (
            definitions,
            "Applying the files of service.definitions.dir did not end in time; the next start applies them.",
        ),
        (validations, "A validation did not end in time; the process ends it."),
    ] {
        if timeout_at(deadline, task).await.is_err() {
            tracing::warn!("{interrupted}");
        }
    }
    // After everything that publishes events.
    gateway.webhooks.store_last_events().await;
    if let Some(path) = control
        && let Err(error) = std::fs::remove_file(&path)
    {
        tracing::warn!(%error, "Removing the control socket failed.");
    }
    let last_commits = {
        let gateway = gateway.clone();
        move || {
            gateway.auth.flush_deferred();
            gateway.clock.save_at_shutdown();
        }
    };
    if let Err(error) = spawn_blocking(last_commits).await {
        tracing::error!(%error, "The last commits of the shutdown ended unexpectedly.");
    }
    stop_backups_late.abort();
    stop_backups.send_replace(true);
    // A base that is being sent may take longer. What counts is which commits the bucket has.
    let _ = timeout_at(deadline, backups).await;
    let close = move || {
        // Here, because something may have committed after the backup had ended.
        if let Some(backups) = &gateway.backups {
            backups.log_unsent();
        }
        gateway.store.checkpoint()
    };
    match spawn_blocking(close).await {
        Ok(Ok(())) => tracing::info!("The gateway stopped."),
        // The journal has everything; only the next start takes longer.
        Ok(Err(error)) => {
            tracing::warn!(%error, "The checkpoint at shutdown failed; the next start takes longer.");
        }
        Err(error) => {
            tracing::warn!(%error, "The checkpoint at shutdown did not finish; the next start takes longer.");
        }
    }
    Ok(())
}

/// Sends the journal to the bucket of the backup until `stop` becomes true, and then the last commits, if there is one.
async fn run_backups(gateway: Gateway, stop: watch::Receiver<bool>) {
    if let Some(backups) = &gateway.backups {
        backups.run(stop).await;
    }
}

/// Waits until the head of the backup was read, so that a machine that was replaced exports nothing. Returns false if
/// `stop` becomes true before.
async fn wait_until_cleared(gateway: Gateway, mut stop: watch::Receiver<bool>) -> bool {
    let Some(backups) = &gateway.backups else { return true };
    tokio::select! {
        () = backups.wait_until_cleared() => true,
        _ = stop.wait_for(|stop| *stop) => false,
    }
}

/// Runs this after [`wait_until_cleared`], unless the gateway stops before.
async fn run_when_cleared(
    cleared: Shared<BoxFuture<'static, bool>>,
    running: impl Future<Output = ()>,
) {
    if cleared.await {
        running.await;
    }
}

/// Reads the sources until `stop` becomes true, except while another machine has taken over.
async fn run_sources(gateway: Gateway, mut stop: watch::Receiver<bool>) {
    let shared = Arc::new(gateway.clone());
    let mut running: Option<Sources> = None;
    loop {
        match (gateway.exporter.hold_reason().is_some(), running.take()) {
            (true, Some(sources)) => sources.stop().await,
            (false, None) => running = Some(Sources::start(&shared)),
            (_, same) => running = same,
        }
        tokio::select! {
            () = tokio::time::sleep(HOLD_CHECK_INTERVAL) => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    if let Some(sources) = running {
        sources.stop().await;
    }
}

/// Writes heartbeats until `stop` becomes true, with the status as the role User sees it.
async fn run_heartbeats(state: Arc<State>, gateway: Gateway, stop: watch::Receiver<bool>) {
    let by = Authorized::local().limited_to(Role::User);
    let collect = |times| {
        let (state, by) = (state.clone(), by.clone());
        async move {
            let rendered = render_heartbeat(&state, &by, times).await;
            rendered.map_err(|problem| problem.detail().to_owned())
        }
    };
    gateway.exporter.run_heartbeats(stop, collect).await;
}

/// Applies the files of `service.definitions.dir`. An error is in the log and in the status.
async fn apply_definitions(gateway: Gateway, run: FolderRun) {
    let applied = run_blocking(move || {
        apply_service_folder(&gateway, &Authorized::local());
        drop(run);
        Ok::<_, GatewayError>(())
    });
    if let Err(error) = applied.await {
        tracing::error!(%error, "Applying the files of service.definitions.dir ended unexpectedly.");
    }
}

/// Resolves when the process gets SIGTERM or SIGINT.
fn listen_for_stop_signal() -> Result<impl Future<Output = ()> + Send, GatewayError> {
    let (mut terminate, mut interrupt) =
        (listen_for(SignalKind::terminate())?, listen_for(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn listen_for(kind: SignalKind) -> Result<Signal, GatewayError> {
    signal(kind).map_err(|error| {
        GatewayError::new(
            ErrorClass::Internal,
            format!("installing a signal handler failed: {error}"),
        )
    })
}

/// Reads the log level, the certificate and the files of `service.definitions.dir` again at each SIGHUP; other settings
/// need a restart. If a new value is not usable, logs the error and keeps the previous value.
async fn reload_at_hangup(
    mut hangups: Signal,
    reload: ReloadSettings,
    data_dir: PathBuf,
    certificates: Option<mpsc::Sender<rustls::ServerConfig>>,
    state: Arc<State>,
) {
    while hangups.recv().await.is_some() {
        systemd::notify_reload(async {
            // A gateway that is still being opened reads them at the end of that.
            if let Some(gateway) = state.gateway_if_open() {
                let run = gateway.definition_files.begin_run();
                apply_definitions(gateway.clone(), run).await;
            }
            let Some(Settings { log_level, server, .. }) = reload() else { return };
            telemetry::log::set_level(&log_level);
            let mut is_certificate_refused = false;
            if let (Some(certificates), Some(tls)) = (&certificates, server.tls) {
                let data_dir = data_dir.clone();
                let read = move || tls::load_server_config(&tls, &data_dir, tls::ReadAt::Reload);
                match spawn_blocking(read).await {
                    Ok(Ok(config)) => {
                        // The receiver ends only with the service.
                        let _ = certificates.send(config).await;
                    }
                    Ok(Err(error)) => {
                        is_certificate_refused = true;
                        tracing::error!(
                            "{error}; the previous certificate stays in use. systemd passes a changed credential only at a restart."
                        );
                    }
                    Err(error) => {
                        is_certificate_refused = true;
                        tracing::error!(%error, "Reading the certificate again failed; the previous one stays in use.");
                    }
                }
            }
            if is_certificate_refused {
                tracing::info!(
                    "The log level and the definition files were read again; other settings need a restart."
                );
            } else {
                tracing::info!(
                    "The log level, the certificate and the definition files were read again; other settings need a restart."
                );
            }
        })
        .await;
    }
}
