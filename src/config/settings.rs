//! What settings decide: which addresses are served and trusted, and how limits fit into the memory.
use super::section::read_defaults;
use super::table::{Limits, Oidc, Server, SessionLimits, Settings};
use std::net::IpAddr;

impl Server {
    /// Returns an error if this address must not be served, because credentials would go over the network in the
    /// clear.
    pub fn check_serving_address(&self, address: IpAddr) -> Result<(), String> {
        if address.to_canonical().is_loopback() || self.tls.is_some() || self.insecure_http {
            return Ok(());
        }
        Err("plain HTTP is served only on loopback (127.0.0.1, ::1), because passwords and keys would go \
             over the network in the clear; set server.ssl.certificate or server.ssl.self-signed, or, \
             behind a proxy that terminates HTTPS, server.insecure-http=true"
            .to_owned())
    }
}

impl Settings {
    /// Whether `service.trusted-proxies` names this address, also in its IPv4-mapped IPv6 form.
    pub fn is_trusted_proxy(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| is_within(address.to_canonical(), *network))
    }
}

fn is_within(address: IpAddr, (network, bits): (IpAddr, u8)) -> bool {
    let (address, network, width) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(n)) => (u128::from(a.to_bits()), u128::from(n.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(n)) => (a.to_bits(), n.to_bits(), 128),
        _ => return false,
    };
    let host_bits = width - u32::from(bits).min(width);
    address.checked_shr(host_bits).unwrap_or(0) == network.checked_shr(host_bits).unwrap_or(0)
}

impl Limits {
    /// Returns these limits, reduced to fit into `memory` bytes. All concurrent bodies get a sixteenth, and one body
    /// half of that; the messages of sources get as much as all bodies. The values of the running change get a third, at
    /// a kilobyte each. The limits are never reduced below 8 MiB, 4 MiB and 10,000 values.
    #[must_use]
    pub fn fit_into_memory(self, memory: u64) -> Self {
        let bodies = (memory / 16).max(8 << 20);
        let values = usize::try_from(memory / (3 << 10)).unwrap_or(usize::MAX).max(10_000);
        Self {
            body_bytes: self.body_bytes.min(bodies / 2),
            in_flight_bytes: self.in_flight_bytes.min(bodies),
            source_bytes: self.source_bytes.min(bodies),
            values: self.values.min(values),
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        read_defaults()
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        read_defaults()
    }
}

impl Oidc {
    /// Returns the issuer that accounts name: the configured one, or else the registration identifier.
    pub fn identity_issuer(&self) -> &str {
        self.issuer_uri.as_deref().unwrap_or(&self.registration)
    }
}

impl std::fmt::Debug for Oidc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Oidc({}, client {:?})", self.registration, self.client_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        let net = |text: &str, bits| (text.parse().unwrap(), bits);
        let within = |address: &str, net| is_within(address.parse().unwrap(), net);
        assert!(within("10.1.2.3", net("10.0.0.0", 8)));
        assert!(!within("11.1.2.3", net("10.0.0.0", 8)));
        assert!(within("1.2.3.4", net("0.0.0.0", 0)));
        assert!(within("10.0.0.1", net("10.0.0.1", 32)));
        assert!(!within("10.0.0.2", net("10.0.0.1", 32)));
        assert!(within("fd00::1", net("fd00::", 8)));
        assert!(within("fd00::1", net("::", 0)));
        assert!(!within("10.0.0.1", net("::", 0)));
    }

    #[test]
    fn limits_shrink_to_fit_memory() {
        let sources = crate::Sources::default();
        let configured = crate::load(&sources).unwrap().settings.limits;
        assert_eq!(configured.fit_into_memory(1 << 30), configured);
        let of_a_gateway = configured.fit_into_memory(150 << 20);
        assert_eq!(of_a_gateway.in_flight_bytes, (150 << 20) / 16);
        assert_eq!(of_a_gateway.body_bytes, (150 << 20) / 32);
        assert_eq!(of_a_gateway.values, 51_200);
        let of_sources = Limits { source_bytes: 1 << 30, ..configured }.fit_into_memory(150 << 20);
        assert_eq!(of_sources.source_bytes, (150 << 20) / 16);
        let of_a_small_one = configured.fit_into_memory(1 << 20);
        assert_eq!((of_a_small_one.in_flight_bytes, of_a_small_one.body_bytes), (8 << 20, 4 << 20));
        assert_eq!(of_a_small_one.values, 10_000);
        let modest =
            Limits { body_bytes: 1 << 20, in_flight_bytes: 2 << 20, values: 100, ..configured };
        assert_eq!(modest.fit_into_memory(1 << 20), modest);
    }
}
