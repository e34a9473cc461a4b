//! Limits the connections of each address, so that a client with many idle connections does not lock out others.
use penstock_base::network;
use penstock_base::permits::{Permit, Permits};
use penstock_config::Settings;
use salvo::async_trait;
use salvo::conn::{ConnCtrl, SocketAddr};
use salvo::fuse::{ArcConnObserver, ConnObserver, FuseAction, FuseConfig, FuseInfo, FusePolicy};
use std::net::IpAddr;
use std::sync::Arc;

/// The connection policy of a listener: timeouts, and the limit of each address.
pub(super) struct ConnectionPolicy {
    pub(super) timeouts: FuseConfig,
    pub(super) settings: Arc<Settings>,
    pub(super) open: OpenConnections,
}

/// The open connections of each address.
pub(super) type OpenConnections = Permits<IpAddr>;

/// Limits the open connections of each address as the settings say. The listener limits the total.
pub(super) fn limit_connections(settings: &Settings) -> OpenConnections {
    Permits::new(u64::MAX, settings.server.connections_per_address as u64)
}

/// One connection, counted until it is dropped.
struct CountedConnection(
    #[expect(dead_code, reason = "held until the connection ends")] Permit<IpAddr>,
);

impl ConnObserver for CountedConnection {}

impl ConnectionPolicy {
    /// Returns the address that a connection is counted for. Trusted proxies are not counted, because they carry many
    /// clients.
    fn counted_address(&self, remote: &SocketAddr) -> Option<IpAddr> {
        let address = remote.ip()?.to_canonical();
        (!self.settings.is_trusted_proxy(address)).then(|| network::network_of(address))
    }
}

#[async_trait]
impl FusePolicy for ConnectionPolicy {
    async fn decide(&self, info: &FuseInfo) -> FuseAction {
        match self.counted_address(&info.remote_addr) {
            Some(address) if !self.open.has_capacity(&address, 1) => {
                tracing::debug!(%address, "A connection was refused: its address has reached the limit of connections.");
                FuseAction::Reject
            }
            _ => FuseAction::Accept(self.timeouts),
        }
    }

    fn observe(&self, info: &FuseInfo, _: &ConnCtrl) -> Option<ArcConnObserver> {
        let address = self.counted_address(&info.remote_addr)?;
        Some(Arc::new(CountedConnection(self.open.force_acquire(address, 1))))
    }
}
