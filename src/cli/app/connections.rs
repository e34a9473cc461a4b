//! Limits the connections of each address, so that a client with many idle connections does not lock out others.
use penstock_base::network;
use penstock_config::Settings;
use salvo::async_trait;
use salvo::conn::{ConnCtrl, SocketAddr};
use salvo::fuse::{ArcConnObserver, ConnObserver, FuseAction, FuseConfig, FuseInfo, FusePolicy};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The connection policy of a listener: timeouts, and the limit of each address.
pub(super) struct ConnectionPolicy {
    pub(super) timeouts: FuseConfig,
    pub(super) settings: Arc<Settings>,
    pub(super) open: OpenConnections,
}

/// The number of open connections of each address.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenConnections(Arc<Mutex<HashMap<IpAddr, usize>>>);

impl OpenConnections {
    fn count_of(&self, address: IpAddr) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&address).copied().unwrap_or(0)
    }

    fn add_connection(&self, address: IpAddr) -> CountedConnection {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *open.entry(address).or_default() += 1;
        CountedConnection { address, open: self.clone() }
    }
}

/// One connection, counted until it is dropped.
struct CountedConnection {
    address: IpAddr,
    open: OpenConnections,
}

impl ConnObserver for CountedConnection {}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut open = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

impl ConnectionPolicy {
    /// Returns the address that a connection is counted for. Trusted proxies are not counted, because they carry many
    /// clients.
    fn counted_address(&self, remote: &SocketAddr) -> Option<IpAddr> {
        let address = remote.ip()?.to_canonical();
        (!self.settings.server.is_trusted_proxy(address)).then(|| network::network_of(address))
    }
}

#[async_trait]
impl FusePolicy for ConnectionPolicy {
    async fn decide(&self, info: &FuseInfo) -> FuseAction {
        match self.counted_address(&info.remote_addr) {
            Some(address)
                if self.open.count_of(address) >= self.settings.server.connections_per_address =>
            {
                tracing::debug!(%address, "A connection was refused: its address has reached the limit of connections.");
                FuseAction::Reject
            }
            _ => FuseAction::Accept(self.timeouts),
        }
    }

    fn observe(&self, info: &FuseInfo, _: &ConnCtrl) -> Option<ArcConnObserver> {
        let address = self.counted_address(&info.remote_addr)?;
        Some(Arc::new(self.open.add_connection(address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_counts_until_it_ends() {
        let open = OpenConnections::default();
        let address = "192.0.2.1".parse().unwrap();
        let (first, second) = (open.add_connection(address), open.add_connection(address));
        assert_eq!(open.count_of(address), 2);
        drop(first);
        drop(second);
        assert_eq!(open.count_of(address), 0);
        assert!(open.0.lock().unwrap().is_empty());
    }
}
