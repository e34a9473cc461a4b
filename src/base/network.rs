//! Maps the address of a client to its network.
use std::net::IpAddr;

/// Returns the address by which a client is counted: the /64 of an IPv6 address, because one host can use
/// every address in it.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_host_has_one_network_of_ipv6() {
        let of = |text: &str| super::network_of(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("192.0.2.7"), "192.0.2.7");
        assert_eq!(of("::ffff:192.0.2.7"), "192.0.2.7");
    }
}
