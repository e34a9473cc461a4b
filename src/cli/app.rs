//! Opens the gateway, serves it, and shuts it down in order.
//!
//! `site` has all routes, `listen` binds the socket, `tls` has the certificate, `connections` limits the connections of each address,
//! `systemd` reports the state to the service manager, `backoff` delays the start after failed starts.
mod backoff;
mod connections;
mod listen;
mod site;
mod systemd;
mod tls;

pub use backoff::Backoff;
use connections::ConnectionPolicy;
use hyper_util::rt::TokioTimer;
use penstock_api::render_heartbeat;
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::telemetry;
use penstock_config::Settings;
use penstock_http::state::State;
use penstock_service::blocking::run_blocking;
use penstock_service::definitions::{FolderRun, apply_service_folder};
use penstock_service::deletions::run_deletions;
use penstock_service::gateway::levels::record_levels;
use penstock_service::gateway::{self, Gateway, create_private_folder};
use penstock_service::recovery::{self, ReplayLog};
use penstock_service::validations::run_validations;
use penstock_service::{changes, dead_letters};
use penstock_sources::Sources;
use penstock_store::ReadStore;
use salvo::Server;
use salvo::conn::rustls::RustlsListener;
use salvo::conn::unix::UnixListener;
use salvo::conn::{Acceptor, Listener};
use salvo::fuse::{FuseConfig, FusePolicy};
use salvo::server::ServerHandle;
pub use site::{build_service, list_routes};
use std::fs::Permissions;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// The time that running requests and deliveries get when the service stops. The checkpoint follows; the whole
/// shutdown takes at most 10 s.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(8);
/// The interval between attempts to open a store for which disk space was missing.
const DISK_SPACE_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The interval at which sources are stopped or started because of a takeover.
const HOLD_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum buffer of a connection in bytes; the head of a request must fit.
const CONNECTION_BUFFER_BYTES: usize = 64 << 10;
const CONNECTION_BUFFER_BYTES_U32: u32 = 64 << 10;
/// The maximum number of concurrent requests on one HTTP/2 connection.
const MAX_STREAMS_PER_CONNECTION: u32 = 32;
/// The local administration's socket in the data directory.
const CONTROL_SOCKET_FILE: &str = "control.sock";

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
    let bound = listen::bind_or_take_socket(&settings.server).await?;
    let address = bound.address;
    let state = State::new(settings.clone());
    let mut servers = Servers::default();
    let certificates = servers.serve_address(bound, &state).await?;
    systemd::notify_ready();
    tracing::info!(%address, https = certificates.is_some(), "Started listening for HTTP requests.");
    let reporting = tokio::spawn(systemd::report_state(state.clone()));
    let reloading = tokio::spawn(reload_at_hangup(
        listen_for_hangups()?,
        reload,
        settings.clone(),
        certificates,
        state.clone(),
    ));
    let served = serve_opened(settings, address, state, servers, ready, stop).await;
    reloading.abort();
    reporting.abort();
    served
}

/// Opens the gateway while HTTP answers 503, serves it, and shuts it down.
async fn serve_opened(
    settings: Arc<Settings>,
    address: SocketAddr,
    state: Arc<State>,
    mut servers: Servers,
    ready: impl FnOnce(SocketAddr, Gateway) + Send + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), GatewayError> {
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
    let backups = tokio::spawn(run_backups(gateway.clone(), stopped.clone()));
    let sources = tokio::spawn(run_sources(gateway.clone(), stopped.clone()));
    let (cleared, stopped_webhooks) = (gateway.clone(), stopped.clone());
    let webhooks = tokio::spawn(async move {
        if wait_until_cleared(&cleared, stopped_webhooks.clone()).await {
            cleared.webhooks.run(stopped_webhooks).await;
        }
    });
    let (cleared, beating) = (gateway.clone(), stopped.clone());
    let exports = tokio::spawn(async move {
        if wait_until_cleared(&cleared, stopped.clone()).await {
            cleared.exporter.run(stopped).await;
        }
    });
    let heartbeats = tokio::spawn(run_heartbeats(state.clone(), gateway.clone(), beating));
    ready(address, gateway.clone());

    stop.await;
    systemd::notify_stopping();
    tracing::info!("The shutdown began; running requests and deliveries are finished first.");
    let deadline = Instant::now() + SHUTDOWN_GRACE_PERIOD;
    state.stop();
    gateway.exporter.stop_rendering();
    reopening.abort();
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
    servers.stop_all(deadline).await;
    if timeout_at(deadline, sources).await.is_err() {
        tracing::warn!(
            "A source did not stop in time; its broker sends the messages again that it did not acknowledge."
        );
    }
    match timeout_at(deadline, exports).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "The exporter ended unexpectedly."),
        Err(_) => {
            tracing::warn!(
                "A delivery was interrupted; the gateway retries it after the next start."
            );
        }
    }
    if timeout_at(deadline, backups).await.is_err() {
        tracing::warn!(
            "The backup was interrupted; it continues after the next start, and nothing is lost."
        );
    }
    if timeout_at(deadline, webhooks).await.is_err() {
        tracing::warn!(
            "A webhook did not answer in time; it gets the event again after the next start."
        );
    }
    if timeout_at(deadline, deletions).await.is_err() {
        tracing::warn!("A deletion was interrupted; it continues after the next start.");
    }
    if timeout_at(deadline, definitions).await.is_err() {
        tracing::warn!(
            "Applying the files of service.definitions.dir did not end in time; the next start applies them."
        );
    }
    if timeout_at(deadline, validations).await.is_err() {
        tracing::warn!("A validation did not end in time; the process ends it.");
    }
    // After everything that publishes events.
    gateway.webhooks.store_last_events().await;
    if let Some(path) = control
        && let Err(error) = std::fs::remove_file(&path)
    {
        tracing::warn!(%error, "Removing the control socket failed.");
    }
    let close = move || {
        gateway.auth.flush_deferred();
        gateway.clock.save_at_shutdown();
        gateway.store.checkpoint()
    };
    match tokio::task::spawn_blocking(close).await {
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

/// Sends the journal to the bucket of the backup until `stop` becomes true, if there is one.
async fn run_backups(gateway: Gateway, stop: watch::Receiver<bool>) {
    if let Some(backups) = &gateway.backups {
        Box::pin(backups.run(stop)).await;
    }
}

/// Waits until the head of the backup was read, so that a machine that was replaced exports nothing. Returns false if
/// `stop` becomes true before.
async fn wait_until_cleared(gateway: &Gateway, mut stop: watch::Receiver<bool>) -> bool {
    let Some(backups) = &gateway.backups else { return true };
    tokio::select! {
        () = backups.wait_until_cleared() => true,
        _ = stop.wait_for(|stop| *stop) => false,
    }
}

/// Reads the sources until `stop` becomes true, except while another machine has taken over.
async fn run_sources(gateway: Gateway, mut stop: watch::Receiver<bool>) {
    if !wait_until_cleared(&gateway, stop.clone()).await {
        return;
    }
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
    if !wait_until_cleared(&gateway, stop.clone()).await {
        return;
    }
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
    let listen = |kind| {
        signal(kind).map_err(|error| {
            GatewayError::new(
                ErrorClass::Internal,
                format!("installing a signal handler failed: {error}"),
            )
        })
    };
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn listen_for_hangups() -> Result<tokio::signal::unix::Signal, GatewayError> {
    signal(SignalKind::hangup()).map_err(|error| {
        GatewayError::new(
            ErrorClass::Internal,
            format!("installing a signal handler failed: {error}"),
        )
    })
}

/// Reads the log level, the certificate and the files of `service.definitions.dir` again at each SIGHUP; other settings
/// need a restart. If a new value is not usable, logs the error and keeps the previous value.
async fn reload_at_hangup(
    mut hangups: tokio::signal::unix::Signal,
    reload: ReloadSettings,
    settings: Arc<Settings>,
    certificates: Option<mpsc::Sender<rustls::ServerConfig>>,
    state: Arc<State>,
) {
    let mut settings = settings;
    while hangups.recv().await.is_some() {
        systemd::notify_reload(async {
            // A gateway that is still being opened reads them at the end of that.
            if let Some(gateway) = state.gateway_if_open() {
                let run = gateway.definition_files.begin_run();
                apply_definitions(gateway.clone(), run).await;
            }
            let Some(read) = reload() else { return };
            telemetry::log::set_level(&read.log_level);
            let read = Arc::new(read);
            if let (Some(certificates), Some(tls)) = (&certificates, read.server.tls.clone()) {
                let data_dir = settings.data_dir.clone();
                let config =
                    tokio::task::spawn_blocking(move || tls::load_server_config(&tls, &data_dir)).await;
                match config {
                    Ok(Ok(config)) => {
                        // The receiver ends only with the service.
                        let _ = certificates.send(config).await;
                    }
                    Ok(Err(error)) => {
                        tracing::error!("{error}; the previous certificate stays in use.");
                    }
                    Err(error) => tracing::error!(%error, "Reading the certificate again failed; the previous one stays in use."),
                }
            }
            tracing::info!(
                "The log level, the certificate and the definition files were read again; other settings need a restart."
            );
            settings = read;
        })
        .await;
    }
}

/// Opens the gateway, and retries while the disk is too full for it. Meanwhile, responses to clients contain the
/// reason. The process does not exit, because a restart would free no space.
async fn open_when_space_allows(
    settings: &Arc<Settings>,
    state: &Arc<State>,
) -> Result<Gateway, GatewayError> {
    let mut is_logged = false;
    loop {
        match open_on_thread(settings.clone(), state.clone()).await {
            Err(error) if error.class == ErrorClass::InsufficientStorage => {
                if !std::mem::replace(&mut is_logged, true) {
                    tracing::error!(
                        "{}; the gateway retries until there is enough space.",
                        error.detail
                    );
                }
                state.set_wait_reason(Some(describe_missing_space(&error)));
                tokio::time::sleep(DISK_SPACE_RETRY_INTERVAL).await;
            }
            opened => {
                state.set_wait_reason(None);
                return opened;
            }
        }
    }
}

/// Returns why the gateway is not open, for clients. The path is only in the log.
fn describe_missing_space(error: &GatewayError) -> String {
    let needed = error.findings.first().map_or_else(String::new, |finding| format!(" ({finding})"));
    format!("the gateway's disk is full; the store opens when there is enough space{needed}")
}

/// Opens the gateway on a separate thread. The process can exit without waiting for that thread.
async fn open_on_thread(
    settings: Arc<Settings>,
    state: Arc<State>,
) -> Result<Gateway, GatewayError> {
    let (sender, receiver) = oneshot::channel();
    let opening = std::thread::Builder::new().name("open".into()).spawn(move || {
        let mut replay = ReplayLog::default();
        let opened = Gateway::open(settings, &mut |progress| {
            state.set_progress(progress);
            replay.log_progress(progress);
        });
        // The receiver is gone if the shutdown came first.
        let _ = sender.send(opened);
    });
    if let Err(error) = opening {
        return Err(GatewayError::new(
            ErrorClass::Internal,
            format!("starting the thread that opens the store failed: {error}"),
        ));
    }
    receiver.await.unwrap_or_else(|_| {
        Err(GatewayError::new(ErrorClass::Internal, "opening the store ended without a result"))
    })
}

/// Returns the timeouts of client connections.
fn client_timeouts() -> FuseConfig {
    FuseConfig::default()
        .with_tls_handshake_timeout(Duration::from_secs(10))
        .with_http1_header_timeout(Duration::from_secs(30))
        .with_request_body_timeout(Duration::from_secs(30))
        // A client may send a long stream before it reads the response.
        .with_write_stall_timeout(Duration::from_mins(5))
}

/// The running servers.
#[derive(Default)]
struct Servers(Vec<(ServerHandle, JoinHandle<()>)>);

impl Servers {
    /// Serves the bound address. With HTTPS, returns the sender for later configurations of it; without, returns
    /// `None`.
    async fn serve_address(
        &mut self,
        bound: listen::BoundSocket,
        state: &Arc<State>,
    ) -> Result<Option<mpsc::Sender<rustls::ServerConfig>>, GatewayError> {
        let address = bound.address;
        let failed = |error: salvo::core::Error| {
            GatewayError::new(ErrorClass::Internal, format!("cannot listen on {address}: {error}"))
        };
        let policy = |state: &State| ConnectionPolicy {
            timeouts: client_timeouts(),
            settings: state.settings().clone(),
            open: connections::limit_connections(state.settings()),
        };
        let Some(tls) = state.settings().server.tls.clone() else {
            let acceptor = bound.try_bind().await.map_err(failed)?;
            self.start_server(acceptor, state.clone(), policy(state));
            return Ok(None);
        };
        let data_dir = state.settings().data_dir.clone();
        let config = tokio::task::spawn_blocking(move || {
            create_private_folder(&data_dir).map_err(|error| {
                gateway::disk_error(&error, "creating the data directory", &data_dir)
            })?;
            tls::load_server_config(&tls, &data_dir)
        });
        let config = config.await.unwrap_or_else(|error| {
            Err(GatewayError::new(
                ErrorClass::Internal,
                format!("reading the certificate ended: {error}"),
            ))
        })?;
        let (configurations, sender) = tls::ServerConfigs::new(config);
        let acceptor =
            RustlsListener::new(configurations, bound).try_bind().await.map_err(failed)?;
        self.start_server(acceptor, state.clone(), policy(state));
        Ok(Some(sender))
    }

    fn start_server<A: Acceptor + Send + 'static>(
        &mut self,
        acceptor: A,
        state: Arc<State>,
        policy: impl FusePolicy,
    ) {
        let connections = state.settings().server.connections;
        let mut server = Server::new(acceptor).fuse_policy(policy).max_connections(connections);
        server.http1_mut().max_buf_size(CONNECTION_BUFFER_BYTES);
        server
            .http2_mut()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS_PER_CONNECTION)
            .max_header_list_size(CONNECTION_BUFFER_BYTES_U32)
            .max_frame_size(16 << 10)
            .initial_stream_window_size(CONNECTION_BUFFER_BYTES_U32)
            .initial_connection_window_size(4 * CONNECTION_BUFFER_BYTES_U32)
            .max_send_buf_size(CONNECTION_BUFFER_BYTES)
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(10));
        let handle = server.handle();
        let service = build_service(state);
        let running = tokio::spawn(async move {
            if let Err(error) = server.try_serve(service).await {
                tracing::error!(%error, "The server ended unexpectedly.");
            }
        });
        self.0.push((handle, running));
    }

    /// Starts the control socket and returns its path. This process holds the store's lock, so an existing socket
    /// belongs to a process that has died.
    async fn start_control(&mut self, data_dir: &Path, state: &Arc<State>) -> Option<PathBuf> {
        let path = data_dir.join(CONTROL_SOCKET_FILE);
        let removed = match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        };
        let listener = UnixListener::new(path.clone()).permissions(Permissions::from_mode(0o600));
        let bound = match removed {
            Ok(()) => listener.try_bind().await,
            Err(error) => Err(error),
        };
        match bound {
            Ok(acceptor) => {
                self.start_server(acceptor, state.clone(), client_timeouts());
                Some(path)
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "Creating the control socket failed; commands that need it will fail."
                );
                None
            }
        }
    }

    /// Stops accepting connections, finishes running requests until the deadline, and interrupts the rest.
    async fn stop_all(self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        for (handle, _) in &self.0 {
            handle.stop_graceful(left);
        }
        for (_, running) in self.0 {
            // The server itself keeps the deadline; the extra second covers its shutdown.
            let _ = timeout_at(deadline + Duration::from_secs(1), running).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_store::{DiskFull, Error};

    #[test]
    fn a_lack_of_disk_space_is_reported_with_amounts_and_without_the_path() {
        let full = DiskFull { needed: 38 << 20, free: 36 << 20 };
        let path = PathBuf::from("/var/lib/penstock/store/index");
        let error = gateway::disk_error(&full.into(), "writing a checkpoint to", &path);
        assert_eq!(error.class, ErrorClass::InsufficientStorage);
        let refused =
            GatewayError::from(Error::Io { action: "writing to", path, source: full.into() });
        for text in [describe_missing_space(&error), refused.to_string()] {
            assert!(text.contains("38.0 MiB are needed, and 36.0 MiB are free"), "{text}");
            assert!(!text.contains("/var"), "{text}");
        }
        assert!(error.detail.contains("/var/lib/penstock/store/index"), "{error}");
    }
}
