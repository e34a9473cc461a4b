//! Where a request comes from and which address it was sent to, as far as that can be believed.
use crate::config::{ForwardHeaders, Settings};
use salvo::Request;
use salvo::http::header::{FORWARDED, HOST};
use salvo::http::uri::Authority;
use std::net::IpAddr;

/// What a request says of its way here; forwarded headers are looked at only when the connection is a
/// trusted proxy's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// `http` or `https`, as the client used it.
    pub(super) scheme: String,
    /// The `Host` that the client asked for, with its port.
    pub(super) host: Option<String>,
    /// The path before ours, without a slash at its end: the proxy's, or else that of `service.base-url`.
    pub(super) prefix: String,
    /// Whether it came through the control socket.
    pub(super) control: bool,
}

impl Origin {
    /// Reads it from a request.
    pub(super) fn of(req: &Request, settings: &Settings) -> Self {
        // HTTP/1.0 has no Host, and HTTP/2 has it in the URI.
        let host = req.headers().get(HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| req.uri().authority().map(Authority::as_str));
        let mut origin = Self {
            scheme: req.scheme().to_string(),
            host: host.map(str::to_owned),
            prefix: base_path(settings.base_url.as_deref()).to_owned(),
            control: req.remote_addr().is_unix(),
        };
        if is_trusted(req.remote_addr().ip(), settings) {
            origin.believe(req);
        }
        origin
    }

    fn believe(&mut self, req: &Request) {
        // The standard header wins (RFC 7239); the nearest proxy's word is the last one.
        if let Some(element) = last(req, FORWARDED.as_str()) {
            for pair in element.split(';') {
                let Some((name, value)) = pair.split_once('=') else { continue };
                let value = value.trim().trim_matches('"');
                match name.trim().to_ascii_lowercase().as_str() {
                    "proto" => value.clone_into(&mut self.scheme),
                    "host" => self.host = Some(value.to_owned()),
                    _ => {}
                }
            }
        } else {
            if let Some(scheme) = last(req, "x-forwarded-proto") {
                self.scheme = scheme;
            }
            if let Some(host) = last(req, "x-forwarded-host") {
                self.host = Some(host);
            }
        }
        if let Some(prefix) = last(req, "x-forwarded-prefix")
            && is_path(&prefix)
        {
            prefix.trim_end_matches('/').clone_into(&mut self.prefix);
        }
        self.scheme.make_ascii_lowercase();
    }

    /// The host without its port.
    pub(super) fn host_name(&self) -> Option<&str> {
        let host = self.host.as_deref()?;
        Some(match host.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?.0,
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        })
    }
}

/// Until there is sign-in, whoever reaches the gateway may use it. A page in a browser beside it can
/// reach it under a name that it makes resolve to the loopback address, so the name must be one of
/// ours: a loopback one, or the host of `service.base-url`.
pub(super) fn is_ours(origin: &Origin, settings: &Settings) -> bool {
    if origin.control || settings.server.insecure_http {
        return true;
    }
    let Some(name) = origin.host_name() else { return false };
    let base =
        settings.base_url.as_deref().and_then(|url| url.parse::<salvo::http::uri::Uri>().ok());
    name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
        || base
            .as_ref()
            .and_then(|url| url.host())
            .is_some_and(|host| host.trim_matches(['[', ']']).eq_ignore_ascii_case(name))
}

/// The path of `service.base-url`, without a slash at its end.
pub(super) fn base_path(base_url: Option<&str>) -> &str {
    let after_scheme = base_url.and_then(|url| url.split_once("://")).map_or("", |(_, rest)| rest);
    after_scheme.find('/').map_or("", |at| &after_scheme[at..]).trim_end_matches('/')
}

fn is_trusted(address: Option<IpAddr>, settings: &Settings) -> bool {
    settings.server.forward_headers == ForwardHeaders::Trusted
        && address.is_some_and(|address| {
            settings
                .server
                .trusted_proxies
                .iter()
                .any(|net| is_within(address.to_canonical(), *net))
        })
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

/// The last element of a list header, which the proxy that is connected to us wrote.
fn last(req: &Request, name: &str) -> Option<String> {
    let line = req.headers().get_all(name).iter().next_back()?.to_str().ok()?;
    let element = line.rsplit(',').next()?.trim();
    (!element.is_empty()).then(|| element.to_owned())
}

/// A prefix goes into `Location`: it must be a path and nothing else (`//host` would lead away).
fn is_path(prefix: &str) -> bool {
    prefix.starts_with('/')
        && !prefix.starts_with("//")
        && prefix
            .bytes()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b'?' | b'#' | b'\\' | b'"' | b'<' | b'>'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(host: &str) -> Origin {
        Origin {
            scheme: "http".into(),
            host: Some(host.into()),
            prefix: String::new(),
            control: false,
        }
    }

    #[test]
    fn host_names_lose_their_port() {
        for (host, name) in [
            ("localhost:8080", "localhost"),
            ("localhost", "localhost"),
            ("[::1]:8080", "::1"),
            ("[::1]", "::1"),
        ] {
            assert_eq!(origin(host).host_name(), Some(name));
        }
    }

    #[test]
    fn networks_hold_their_addresses() {
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
    fn the_base_path_is_what_follows_the_host() {
        assert_eq!(base_path(Some("https://example.org/gw/a/")), "/gw/a");
        assert_eq!(base_path(Some("https://example.org")), "");
        assert_eq!(base_path(None), "");
    }

    #[test]
    fn a_prefix_is_a_path() {
        assert!(is_path("/gateway"));
        for bad in ["gateway", "//evil.example", "/a?b", "/a b", "/\\evil"] {
            assert!(!is_path(bad), "{bad}");
        }
    }
}
