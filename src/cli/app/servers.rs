//! The servers of the address and of the control socket: their limits, and how they end.
use super::connections::{self, ConnectionPolicy};
use super::listen::BoundSocket;
use super::site::build_service;
use super::tls;
use hyper_util::rt::TokioTimer;
use penstock_base::blocking::spawn_blocking;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_http::state::State;
use penstock_service::gateway::{self, create_private_folder};
use salvo::Server;
use salvo::conn::rustls::RustlsListener;
use salvo::conn::unix::UnixListener;
use salvo::conn::{Acceptor, Listener};
use salvo::fuse::{FuseConfig, FusePolicy};
use salvo::server::ServerHandle;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// The maximum buffer of a connection in bytes; the head of a request must fit.
const CONNECTION_BUFFER_BYTES: usize = 64 << 10;
const CONNECTION_BUFFER_BYTES_U32: u32 = 64 << 10;
/// The maximum number of concurrent requests on one HTTP/2 connection.
const MAX_STREAMS_PER_CONNECTION: u32 = 32;
/// The local administration's socket in the data directory.
const CONTROL_SOCKET_FILE: &str = "control.sock";

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
pub(super) struct Servers(Vec<(ServerHandle, JoinHandle<()>)>);

impl Servers {
    /// Serves the bound address. With HTTPS, returns the sender for later configurations of it; without, returns
    /// `None`.
    pub(super) async fn serve_address(
        &mut self,
        bound: BoundSocket,
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
        let config = spawn_blocking(move || {
            create_private_folder(&data_dir).map_err(|error| {
                gateway::disk_error(&error, "creating the data directory", &data_dir)
            })?;
            tls::load_server_config(&tls, &data_dir, tls::ReadAt::Start)
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
    pub(super) async fn start_control(
        &mut self,
        data_dir: &Path,
        state: &Arc<State>,
    ) -> Option<PathBuf> {
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
    pub(super) async fn stop_all(self, deadline: Instant) {
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
