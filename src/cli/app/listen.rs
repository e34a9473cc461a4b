//! Binds the listening socket, or takes the one that systemd holds for the service.
use listenfd::ListenFd;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::{EffectiveValue, Settings};
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
pub(super) async fn bind_or_take_socket(settings: &Settings) -> Result<BoundSocket, GatewayError> {
    let server = &settings.server;
    let mut sockets = ListenFd::from_env();
    let passed = sockets.take_tcp_listener(0).map_err(|error| {
        GatewayError::new(
            ErrorClass::Invalid,
            format!("the socket that systemd passed is not a TCP socket: {error}; check ListenStream= of penstock.socket"),
        )
    })?;
    let wanted = SocketAddr::new(server.address, server.port);
    let is_passed = passed.is_some();
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
    let ignored = is_passed.then(|| list_ignored(settings, address));
    for EffectiveValue { name, value, origin, .. } in ignored.into_iter().flatten() {
        tracing::warn!(
            "{name} = {value} (from {origin}) has no effect, because systemd passed a socket that is bound to {address}; \
             change ListenStream= of penstock.socket (systemctl edit penstock.socket), or remove the setting."
        );
    }
    if sockets.len() > 1 {
        tracing::warn!(
            %address,
            "systemd passed several sockets, and only the first one is served; connections to the others wait without \
             an answer. Keep one ListenStream= in penstock.socket."
        );
    }
    Ok(BoundSocket { address, listener })
}

/// Lists the settings of the address that were given and are not those of the bound address.
fn list_ignored(settings: &Settings, bound: SocketAddr) -> impl Iterator<Item = &EffectiveValue> {
    let (has_address, has_port) =
        (bound.ip() == settings.server.address, bound.port() == settings.server.port);
    settings.effective_values.iter().filter(move |value| {
        let differs = match value.name.as_str() {
            "server.address" => !has_address,
            "server.port" => !has_port,
            _ => false,
        };
        differs && value.origin != "default"
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_config::Sources;

    #[test]
    fn a_given_port_that_is_not_that_of_the_socket_is_found() {
        let ignored = |arguments: &[&str], bound: &str| -> Vec<String> {
            let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            let sources = Sources { arguments, ..Sources::default() };
            let settings = penstock_config::load(&sources).unwrap().settings;
            let found = list_ignored(&settings, bound.parse().unwrap());
            found.map(|value| value.name.clone()).collect()
        };
        assert_eq!(ignored(&[], "[::]:8443"), [""; 0]);
        assert_eq!(ignored(&["--server.port=9000"], "[::]:8443"), ["server.port"]);
        assert_eq!(ignored(&["--server.port=8443"], "[::]:8443"), [""; 0]);
        let both = ["--server.address=127.0.0.2", "--server.port=9000"];
        assert_eq!(ignored(&both, "127.0.0.1:8443"), ["server.address", "server.port"]);
        assert_eq!(ignored(&both, "127.0.0.2:9000"), [""; 0]);
    }
}
