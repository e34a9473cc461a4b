//! The wiring: the gateway is opened, served, and ended in good order.
use crate::config::Settings;
use crate::fault::{Fault, Kind};
use crate::gateway::Gateway;
use crate::http::{self, State};
use crate::mend::{self, Replay};
use salvo::Server;
use salvo::conn::tcp::TcpAcceptor;
use salvo::conn::unix::UnixListener;
use salvo::conn::{Acceptor, Listener};
use salvo::fuse::FuseConfig;
use salvo::server::ServerHandle;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// What runs when the stop comes has so long to end; the checkpoint follows, and all is over in 10 s.
const GRACE: Duration = Duration::from_secs(8);
/// Connections at once; each holds some tens of kilobytes.
const CONNECTIONS: usize = 512;
/// Bytes that a connection buffers at most; the head of a request must fit.
const CONNECTION_BUFFER: usize = 64 << 10;
/// The local administration's socket in the data directory.
const CONTROL_SOCKET: &str = "control.sock";

/// Serves until SIGTERM or SIGINT. `ready` is told the address once it is bound.
///
/// # Errors
/// `Kind::Forbidden` when the address or the data directory may not be used; `Kind::NoRoom` or
/// `Kind::Internal` when the disk or the network fails; `Kind::Conflict` when the address or the data
/// directory is in use.
pub async fn serve(
    settings: Arc<Settings>,
    ready: impl FnOnce(SocketAddr, Gateway) + Send + 'static,
) -> Result<(), Fault> {
    serve_until(settings, ready, std::future::pending()).await
}

/// Serves until `stop` is done, or SIGTERM or SIGINT comes.
///
/// # Errors
/// As [`serve`].
pub async fn serve_until(
    settings: Arc<Settings>,
    ready: impl FnOnce(SocketAddr, Gateway) + Send + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), Fault> {
    let address = SocketAddr::new(settings.server.address, settings.server.port);
    let listener = TcpListener::bind(address).await.map_err(|error| not_bound(&error, address))?;
    let address = listener.local_addr().map_err(|error| not_bound(&error, address))?;
    let acceptor = TcpAcceptor::try_from(listener).map_err(|error| not_bound(&error, address))?;
    let state = State::new(settings.clone());
    let mut servers = Servers::default();
    servers.start(acceptor, state.clone());
    tracing::info!(%address, "HTTP was opened.");

    let signalled = stop_signal()?;
    let mut stop = std::pin::pin!(async {
        tokio::select! {
            () = stop => {}
            () = signalled => {}
        }
    });
    let opened = tokio::select! {
        opened = open(settings.clone(), state.clone()) => opened,
        () = &mut stop => {
            // Opening only reads and replays: it can be cut short at any moment.
            servers.stop(Instant::now() + GRACE).await;
            return Ok(());
        }
    };
    let gateway = match opened {
        Ok(gateway) => gateway,
        Err(fault) => {
            servers.stop(Instant::now()).await;
            return Err(fault);
        }
    };
    state.opened(gateway.clone());
    let control = servers.start_control(&settings.data_dir, &state).await;
    let (stop_exports, stopped) = watch::channel(false);
    let mending = tokio::spawn(mend::run(gateway.store.clone()));
    let keeping_keys = gateway.auth.tokens.clone().map(|tokens| tokio::spawn(tokens.run()));
    let ticking = tokio::spawn(gateway.clock.clone().run());
    let exporter = gateway.exporter.clone();
    let exports = tokio::spawn(async move { exporter.run(stopped).await });
    ready(address, gateway.clone());

    stop.await;
    tracing::info!("The stop began; what runs is finished first.");
    let deadline = Instant::now() + GRACE;
    state.stop();
    mending.abort();
    ticking.abort();
    if let Some(keeping_keys) = keeping_keys {
        keeping_keys.abort();
    }
    // Nobody may be waiting any more; then there is nothing to stop.
    let _ = stop_exports.send(true);
    servers.stop(deadline).await;
    match timeout_at(deadline, exports).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "The exporter had ended before its time."),
        Err(_) => {
            tracing::warn!("A delivery was cut off; it is tried again after the next start.");
        }
    }
    if let Some(path) = control
        && let Err(error) = std::fs::remove_file(&path)
    {
        tracing::warn!(%error, "The control socket could not be removed.");
    }
    let Gateway { store, auth, clock, .. } = gateway.clone();
    let close = move || {
        auth.flush();
        clock.close();
        store.checkpoint()
    };
    match tokio::task::spawn_blocking(close).await {
        Ok(Ok(())) => tracing::info!("The gateway stopped."),
        // The journal has everything: the next start only takes longer.
        Ok(Err(error)) => tracing::warn!(%error, "The checkpoint at the end failed."),
        Err(error) => tracing::warn!(%error, "The checkpoint at the end was not finished."),
    }
    Ok(())
}

/// Resolves when the process is asked to end.
fn stop_signal() -> Result<impl Future<Output = ()> + Send, Fault> {
    let listen = |kind| {
        signal(kind).map_err(|error| {
            Fault::new(Kind::Internal, format!("signals cannot be listened for: {error}"))
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

fn not_bound(error: &std::io::Error, address: SocketAddr) -> Fault {
    let (kind, mend) = match error.kind() {
        ErrorKind::PermissionDenied => {
            (Kind::Forbidden, "ports below 1024 need a privilege; set another server.port")
        }
        ErrorKind::AddrInUse => {
            (Kind::Conflict, "another program listens there; end it, or set another server.port")
        }
        ErrorKind::AddrNotAvailable => {
            (Kind::Conflict, "this machine has no such address; set another server.address")
        }
        _ => (Kind::Internal, "see server.address and server.port"),
    };
    Fault::new(kind, format!("cannot listen on {address}: {error}; {mend}"))
}

/// Opens the gateway beside the server, on a thread that the end of the process does not wait for.
async fn open(settings: Arc<Settings>, state: Arc<State>) -> Result<Gateway, Fault> {
    let (sender, receiver) = oneshot::channel();
    let opening = std::thread::Builder::new().name("open".into()).spawn(move || {
        let mut replay = Replay::default();
        let opened = Gateway::open(settings, &mut |progress| {
            state.progress(progress);
            replay.tell(progress);
        });
        // Nobody waits for it when the stop came first.
        let _ = sender.send(opened);
    });
    if let Err(error) = opening {
        return Err(Fault::new(Kind::Internal, format!("no thread could be started: {error}")));
    }
    receiver.await.unwrap_or_else(|_| {
        Err(Fault::new(Kind::Internal, "opening the store ended without a result"))
    })
}

/// The servers that run.
#[derive(Default)]
struct Servers(Vec<(ServerHandle, JoinHandle<()>)>);

impl Servers {
    fn start<A: Acceptor + Send + 'static>(&mut self, acceptor: A, state: Arc<State>) {
        let timeouts = FuseConfig::default()
            .with_http1_header_timeout(Duration::from_secs(30))
            .with_request_body_timeout(Duration::from_secs(30))
            // A client may send a long stream before it reads the answer.
            .with_write_stall_timeout(Duration::from_mins(5));
        let mut server = Server::new(acceptor).fuse_config(timeouts).max_connections(CONNECTIONS);
        server.http1_mut().max_buf_size(CONNECTION_BUFFER);
        let handle = server.handle();
        let service = http::service(state);
        let running = tokio::spawn(async move {
            if let Err(error) = server.try_serve(service).await {
                tracing::error!(%error, "The server ended before its time.");
            }
        });
        self.0.push((handle, running));
    }

    /// Starts the control socket and gives its path. The store's lock is ours, so a socket that is
    /// there is that of a process that has died.
    async fn start_control(&mut self, data_dir: &Path, state: &Arc<State>) -> Option<PathBuf> {
        let path = data_dir.join(CONTROL_SOCKET);
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
                self.start(acceptor, state.clone());
                Some(path)
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "The control socket could not be made; commands that need it will fail."
                );
                None
            }
        }
    }

    /// Stops accepting, finishes what runs until the deadline, and cuts off the rest.
    async fn stop(self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        for (handle, _) in &self.0 {
            handle.stop_graceful(left);
        }
        for (_, running) in self.0 {
            // The server itself keeps the deadline; a second more covers its own end.
            let _ = timeout_at(deadline + Duration::from_secs(1), running).await;
        }
    }
}
