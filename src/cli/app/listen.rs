//! Binds the listening socket, or takes the one that systemd holds for the service.
use listenfd::ListenFd;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::Server;
use salvo::conn::Listener;
use salvo::conn::tcp::TcpAcceptor;
use socket2::SockRef;
use std::io::ErrorKind;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// A bound socket and its address.
pub(super) struct BoundSocket {
    pub(super) address: SocketAddr,
    listener: TcpListener,
}

/// Takes the socket that systemd passes (`sd_listen_fds(3)`), in which connections wait while the service restarts.
/// Without one, binds `server.address` and `server.port`.
pub(super) async fn bind_or_take_socket(server: &Server) -> Result<BoundSocket, GatewayError> {
    let mut sockets = ListenFd::from_env();
    let passed = sockets.take_tcp_listener(0).map_err(|error| {
        GatewayError::new(
            ErrorClass::Invalid,
            format!("the socket that systemd passed is not a TCP socket: {error}; check ListenStream= of penstock.socket"),
        )
    })?;
    let wanted = SocketAddr::new(server.address, server.port);
    let listener = match passed {
        Some(socket) => socket.set_nonblocking(true).and_then(|()| TcpListener::from_std(socket)),
        None => TcpListener::bind(wanted).await,
    };
    // Accepted connections inherit it. Without it, a streamed answer waits up to 40 ms for an acknowledgement that the
    // client delays (RFC 1122, 4.2.3.2).
    let listener = listener.and_then(|listener| {
        SockRef::from(&listener).set_tcp_nodelay(true)?;
        Ok(listener)
    });
    let listener = listener.map_err(|error| bind_error(&error, wanted))?;
    let address = listener.local_addr().map_err(|error| bind_error(&error, wanted))?;
    server.check_serving_address(address.ip()).map_err(|why| {
        GatewayError::new(
            ErrorClass::Invalid,
            format!("the socket that systemd passed is bound to {address}: {why}"),
        )
    })?;
    if sockets.len() > 1 {
        tracing::warn!(
            %address,
            "systemd passed several sockets, and only the first one is served; connections to the others wait without \
             an answer. Keep one ListenStream= in penstock.socket."
        );
    }
    Ok(BoundSocket { address, listener })
}

impl Listener for BoundSocket {
    type Acceptor = TcpAcceptor;

    async fn try_bind(self) -> salvo::core::Result<TcpAcceptor> {
        Ok(self.listener.try_into()?)
    }
}

pub(super) fn bind_error(error: &std::io::Error, address: SocketAddr) -> GatewayError {
    let (kind, remedy) = match error.kind() {
        ErrorKind::PermissionDenied => (
            ErrorClass::Forbidden,
            "ports below 1024 need a privilege; set server.port to a higher one",
        ),
        ErrorKind::AddrInUse => (
            ErrorClass::Conflict,
            "another program listens on it; stop that program, or set another server.port",
        ),
        ErrorKind::AddrNotAvailable => (
            ErrorClass::Conflict,
            "this machine does not have this address; set another server.address",
        ),
        _ => (ErrorClass::Internal, "check server.address and server.port"),
    };
    GatewayError::new(kind, format!("cannot listen on {address}: {error}; {remedy}"))
}
