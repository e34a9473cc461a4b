//! The address of the client, and the address that the request was sent to, as far as they can be trusted.
use penstock_config::{ForwardHeaders, Settings};
use salvo::http::Version;
use salvo::http::header::{FORWARDED, HOST};
use salvo::http::uri::Authority;
use salvo::{Depot, Request};
use std::net::IpAddr;

/// The origin of a request. Forwarded headers count only on a connection from a trusted proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// `http` or `https`, as the client used it.
    pub scheme: String,
    /// The `Host` that the client sent, with its port.
    pub host: Option<String>,
    /// The path before the gateway's own paths, without a slash at its end: the proxy's, otherwise that of
    /// `service.base-url`.
    pub prefix: String,
    /// The client's address: that of the connection, or the one that trusted proxies name.
    pub client: Option<IpAddr>,
    /// Whether a program on this machine sent it over loopback, without a proxy.
    pub is_local: bool,
    /// Whether `host` and `scheme` come from a trusted proxy.
    forwarded: ForwardedTrust,
    /// Whether it came through the control socket.
    pub control: bool,
    /// Why the request's host is malformed, if it is.
    host_error: Option<String>,
}

/// Returns the origin of this request.
///
/// # Panics
/// Outside a request of the service.
pub fn origin(depot: &Depot) -> &Origin {
    depot.get_typed::<Origin>().expect("the service injects it before any handler runs")
}

/// Whether the forwarded headers of a request count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForwardedTrust {
    /// The connection is not from a trusted proxy.
    None,
    /// The headers of a trusted proxy are used.
    Trusted,
    /// `Forwarded` and `X-Forwarded-*` disagree, so one of them comes from the client. Neither is used.
    Contradictory,
}

impl Origin {
    /// Determines the origin of a request.
    pub(super) fn from_request(req: &Request, settings: &Settings) -> Self {
        // HTTP/1.0 may have no Host. A target in absolute form, and HTTP/2's `:authority`, take precedence
        // (RFC 9112, 3.2.2); salvo puts the Host of any other target there.
        let host = req.uri().authority().map(Authority::as_str);
        let host = host.or_else(|| req.headers().get(HOST)?.to_str().ok());
        let peer = req.remote_addr().ip().map(|address| address.to_canonical());
        let mut origin = Self {
            scheme: req.scheme().to_string(),
            host: host.map(str::to_owned),
            prefix: base_path(settings.base_url.as_deref()).to_owned(),
            client: peer,
            is_local: peer.is_some_and(|peer| peer.is_loopback()) && !is_forwarded(req),
            forwarded: ForwardedTrust::None,
            control: req.remote_addr().is_unix(),
            host_error: None,
        };
        if peer.is_some_and(|peer| is_trusted(peer, settings)) {
            origin.apply_forwarded(req, settings);
        }
        origin.host_error = find_host_error(req, origin.host.as_deref());
        origin
    }

    fn apply_forwarded(&mut self, req: &Request, settings: &Settings) {
        let (forwarded, x_forwarded) =
            (ForwardedInfo::from_forwarded(req), ForwardedInfo::from_x_forwarded(req));
        // A proxy that writes only one of them may pass on what a client wrote into the other.
        if let (Some(forwarded), Some(x_forwarded)) = (&forwarded, &x_forwarded)
            && !forwarded.agrees_with(x_forwarded, settings)
        {
            self.forwarded = ForwardedTrust::Contradictory;
            return;
        }
        self.forwarded = ForwardedTrust::Trusted;
        if let Some(info) = forwarded.or(x_forwarded) {
            self.client = info.client_address(settings).or(self.client);
            self.scheme = info.scheme.unwrap_or_else(|| self.scheme.clone());
            self.host = info.host.or_else(|| self.host.take());
        }
        // RFC 7239 has no parameter for the prefix.
        if let Some(prefix) = last_element(req, "x-forwarded-prefix")
            && is_path(&prefix)
        {
            prefix.trim_end_matches('/').clone_into(&mut self.prefix);
        }
        self.scheme.make_ascii_lowercase();
    }

    /// Whether the headers of a trusted proxy contradict each other.
    pub(super) fn is_contradictory(&self) -> bool {
        self.forwarded == ForwardedTrust::Contradictory
    }

    /// Returns why the request's host is malformed, if it is. Two programs could read such a request as one for
    /// different hosts.
    pub(super) fn host_error(&self) -> Option<&str> {
        self.host_error.as_deref()
    }

    /// Returns the origin as browsers write it (RFC 6454, 6.1).
    pub fn url(&self) -> Option<String> {
        Some(format!("{}://{}", self.scheme, self.host.as_deref()?))
    }

    /// Returns the external address of the service: as a trusted proxy reports it, otherwise
    /// `service.base-url`, otherwise as the request was sent.
    pub fn base_url(&self, settings: &Settings) -> Option<String> {
        match &settings.base_url {
            Some(url) if self.forwarded != ForwardedTrust::Trusted => Some(url.clone()),
            _ => Some(format!("{}{}", self.url()?, self.prefix)),
        }
    }

    /// Returns the host without its port.
    fn host_name(&self) -> Option<&str> {
        let host = self.host.as_deref()?;
        Some(match host.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?.0,
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        })
    }
}

/// Whether the request was sent to one of this gateway's own names. A page of another site can make its own name
/// resolve to this gateway (DNS rebinding), so only these hosts are accepted:
/// - an IP address or a loopback name, which no other site can have
/// - the host in `service.base-url`
/// - any host on the control socket or from a trusted proxy
/// - any host, if `service.base-url` is not set and the gateway listens beyond loopback
pub(super) fn is_own_host(origin: &Origin, settings: &Settings) -> bool {
    if origin.control || origin.forwarded == ForwardedTrust::Trusted {
        return true;
    }
    let Some(name) = origin.host_name() else { return false };
    let base =
        settings.base_url.as_deref().and_then(|url| url.parse::<salvo::http::uri::Uri>().ok());
    is_loopback_name(name)
        || name.parse::<IpAddr>().is_ok()
        || match base.as_ref().and_then(|url| url.host()) {
            Some(host) => host.trim_matches(['[', ']']).eq_ignore_ascii_case(name),
            None => !settings.server.address.is_loopback(),
        }
}

/// Whether the response tells browsers to use only HTTPS for this host (RFC 6797). The request must have come over
/// HTTPS, and the host must be a name with a certificate that browsers trust. They do not trust the gateway's
/// self-signed certificate. `localhost` is excluded, because all programs on a machine share that name.
pub(super) fn wants_https_only(origin: &Origin, settings: &Settings) -> bool {
    let is_self_signed = settings.server.tls.as_ref().is_some_and(|tls| tls.certificate.is_none());
    origin.scheme == "https"
        && (origin.forwarded == ForwardedTrust::Trusted || !is_self_signed)
        && origin
            .host_name()
            .is_some_and(|name| !is_loopback_name(name) && name.parse::<IpAddr>().is_err())
}

fn is_loopback_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Checks the host against RFC 9112 (3.2), RFC 9113 (8.3.1) and RFC 9110 (4.2.4 and 7.2). Returns what is
/// wrong.
fn find_host_error(req: &Request, host: Option<&str>) -> Option<String> {
    let lines: Vec<_> = req.headers().get_all(HOST).iter().collect();
    let authority = req.uri().authority().map(Authority::as_str);
    match lines.as_slice() {
        [] if req.version() == Version::HTTP_11 => {
            return Some("the request has no Host, which HTTP/1.1 requires".to_owned());
        }
        [] => {}
        [line] => {
            let line = String::from_utf8_lossy(line.as_bytes());
            if !is_host(&line) {
                return Some(format!("the Host {line:?} is not a host with an optional port"));
            }
            if req.version() == Version::HTTP_2
                && authority.is_some_and(|authority| !authority.eq_ignore_ascii_case(&line))
            {
                return Some(format!("the Host {line:?} differs from :authority"));
            }
        }
        lines => return Some(format!("the request has {} Host lines; send one", lines.len())),
    }
    // The host in use may come from the request target or from a proxy.
    let host = host.filter(|host| !is_host(host))?;
    Some(format!("{host:?} is not a host with an optional port"))
}

/// Whether a text is `uri-host [ ":" port ]`.
fn is_host(text: &str) -> bool {
    let Ok(authority) = text.parse::<Authority>() else { return false };
    let port = text.strip_prefix(authority.host());
    !authority.host().is_empty()
        && port.is_some_and(|port| {
            port.is_empty()
                || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()))
        })
}

/// Returns a path, perhaps with a query, with this prefix. The path may have the prefix already: a proxy may pass it on or
/// strip it.
pub(super) fn add_prefix(prefix: &str, path: &str) -> String {
    let has_prefix = path
        .strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    if has_prefix { path.to_owned() } else { format!("{prefix}{path}") }
}

/// Returns the path of `service.base-url`, without a slash at its end.
pub fn base_path(base_url: Option<&str>) -> &str {
    let after_scheme = base_url.and_then(|url| url.split_once("://")).map_or("", |(_, rest)| rest);
    after_scheme.find('/').map_or("", |at| &after_scheme[at..]).trim_end_matches('/')
}

fn is_trusted(address: IpAddr, settings: &Settings) -> bool {
    settings.server.forward_headers == ForwardHeaders::Trusted && settings.is_trusted_proxy(address)
}

/// Whether a proxy has forwarded the request.
fn is_forwarded(req: &Request) -> bool {
    req.headers().keys().any(|name| {
        let name = name.as_str();
        name.starts_with("x-forwarded-") || matches!(name, "forwarded" | "x-real-ip" | "via")
    })
}

/// What the proxies report about the request as the client sent it.
#[derive(Debug, Default)]
struct ForwardedInfo {
    /// The addresses from which the proxies received the request, that of the first proxy first. `None` for a
    /// value that is not an address.
    senders: Vec<Option<IpAddr>>,
    scheme: Option<String>,
    host: Option<String>,
}

impl ForwardedInfo {
    /// Reads the standard header (RFC 7239). For scheme and host the last element counts, which the nearest
    /// proxy wrote.
    fn from_forwarded(req: &Request) -> Option<Self> {
        let lines = header_lines(req, FORWARDED.as_str())?;
        let mut info = Self::default();
        for element in lines.iter().flat_map(|line| line.split(',')) {
            (info.scheme, info.host) = (None, None);
            let mut client = None;
            for pair in element.split(';') {
                let Some((name, value)) = pair.split_once('=') else { continue };
                let value = value.trim().trim_matches('"');
                match name.trim().to_ascii_lowercase().as_str() {
                    "for" if client.is_none() => client = Some(parse_address(value)),
                    "proto" => info.scheme = Some(value.to_owned()),
                    "host" => info.host = Some(value.to_owned()),
                    _ => {}
                }
            }
            info.senders.push(client.flatten());
        }
        Some(info)
    }

    /// Reads the headers that most proxies send.
    fn from_x_forwarded(req: &Request) -> Option<Self> {
        let senders = header_lines(req, "x-forwarded-for");
        let (scheme, host) =
            (last_element(req, "x-forwarded-proto"), last_element(req, "x-forwarded-host"));
        if senders.is_none() && scheme.is_none() && host.is_none() {
            return None;
        }
        let senders = senders.unwrap_or_default();
        let senders = senders.iter().flat_map(|line| line.split(',')).map(parse_address).collect();
        Some(Self { senders, scheme, host })
    }

    /// Returns the client's address. Each proxy adds the address of its sender, so the last address that is not
    /// a trusted proxy is the client's.
    fn client_address(&self, settings: &Settings) -> Option<IpAddr> {
        let mut client = None;
        for address in self.senders.iter().rev() {
            client = (*address).or(client);
            if address.is_none_or(|address| !is_trusted(address, settings)) {
                break;
            }
        }
        client
    }

    fn agrees_with(&self, other: &Self, settings: &Settings) -> bool {
        let is_same = |one: &Option<String>, other: &Option<String>| match (one, other) {
            (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
            _ => one == other,
        };
        self.client_address(settings) == other.client_address(settings)
            && is_same(&self.scheme, &other.scheme)
            && is_same(&self.host, &other.host)
    }
}

/// Returns the lines of a header, or `None` if there are none.
fn header_lines(req: &Request, name: &str) -> Option<Vec<String>> {
    let lines = req.headers().get_all(name).iter();
    let lines: Vec<_> = lines.map(|line| line.to_str().unwrap_or_default().to_owned()).collect();
    (!lines.is_empty()).then_some(lines)
}

/// Parses an address, with or without a port.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None if text.matches(':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    Some(address.parse::<IpAddr>().ok()?.to_canonical())
}

/// Returns the last element of a list header. The proxy that is connected to the gateway wrote it.
fn last_element(req: &Request, name: &str) -> Option<String> {
    let line = req.headers().get_all(name).iter().next_back()?.to_str().ok()?;
    let element = line.rsplit(',').next()?.trim();
    (!element.is_empty()).then(|| element.to_owned())
}

/// Whether a prefix is only a path. It becomes part of `Location`, where `//host` would lead to another site.
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
            client: None,
            is_local: false,
            forwarded: ForwardedTrust::None,
            control: false,
            host_error: None,
        }
    }

    #[test]
    fn hosts_are_names_or_addresses_with_an_optional_port() {
        for good in ["a", "a:80", "a:", "[::1]:8080", "127.0.0.1", "my_gw.local"] {
            assert!(is_host(good), "{good}");
        }
        for bad in [
            "", " ", ":80", "a@b", "@b", "a:b@c", "a:x", "a:1:2", "a/b", "a b", "a,b c", "::1",
            "[::1", "[::1]x",
        ] {
            assert!(!is_host(bad), "{bad}");
        }
    }

    #[test]
    fn https_only_is_for_names_with_a_certificate_that_browsers_trust() {
        let load = |argument: &str| {
            let arguments = vec![argument.to_owned()];
            let sources = penstock_config::Sources { arguments, ..Default::default() };
            penstock_config::load(&sources).unwrap().settings
        };
        let (own, plain) = (load("--server.ssl.self-signed=true"), load("--server.port=1"));
        let of = |host: &str, scheme: &str, trust| Origin {
            scheme: scheme.to_owned(),
            forwarded: trust,
            ..origin(host)
        };
        for (host, scheme, trust, settings, wanted) in [
            ("gw.example", "https", ForwardedTrust::Trusted, &plain, true),
            ("gw.example:8443", "https", ForwardedTrust::Trusted, &own, true),
            ("gw.example", "https", ForwardedTrust::None, &own, false),
            ("gw.example", "http", ForwardedTrust::Trusted, &plain, false),
            ("192.0.2.1", "https", ForwardedTrust::Trusted, &plain, false),
            ("[2001:db8::1]:8443", "https", ForwardedTrust::Trusted, &plain, false),
            ("localhost:8443", "https", ForwardedTrust::Trusted, &plain, false),
            ("a.LOCALHOST", "https", ForwardedTrust::Trusted, &plain, false),
        ] {
            let found = wants_https_only(&of(host, scheme, trust), settings);
            assert_eq!(found, wanted, "{scheme}://{host} {trust:?}");
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
    fn parses_addresses_with_and_without_a_port() {
        for (text, read) in [
            ("10.0.0.1", Some("10.0.0.1")),
            (" 10.0.0.1:80", Some("10.0.0.1")),
            ("[fd00::1]:80", Some("fd00::1")),
            ("fd00::1", Some("fd00::1")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("unknown", None),
            ("_hidden", None),
        ] {
            assert_eq!(parse_address(text), read.map(|text| text.parse().unwrap()), "{text}");
        }
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
