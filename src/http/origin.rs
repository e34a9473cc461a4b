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
    /// The client's address: that of the connection, or the one that trusted proxies name.
    pub(super) client: Option<IpAddr>,
    /// Whether a program on this machine sent it: over loopback, and no proxy has a hand in it.
    pub(super) is_local: bool,
    /// Whether a trusted proxy told `host` and `scheme`.
    word: Word,
    /// Whether it came through the control socket.
    pub(super) control: bool,
}

/// What a trusted proxy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// There is none.
    None,
    /// It is believed.
    Believed,
    /// Different things by `Forwarded` and `X-Forwarded-*`, so that one of them is the client's own: neither is
    /// believed.
    Contradictory,
}

impl Origin {
    /// Reads it from a request.
    pub(super) fn of(req: &Request, settings: &Settings) -> Self {
        // HTTP/1.0 has no Host, and HTTP/2 has it in the URI.
        let host = req.headers().get(HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| req.uri().authority().map(Authority::as_str));
        let peer = req.remote_addr().ip().map(|address| address.to_canonical());
        let mut origin = Self {
            scheme: req.scheme().to_string(),
            host: host.map(str::to_owned),
            prefix: base_path(settings.base_url.as_deref()).to_owned(),
            client: peer,
            is_local: peer.is_some_and(|peer| peer.is_loopback()) && !is_forwarded(req),
            word: Word::None,
            control: req.remote_addr().is_unix(),
        };
        if peer.is_some_and(|peer| is_trusted(peer, settings)) {
            origin.believe(req, settings);
        }
        origin
    }

    fn believe(&mut self, req: &Request, settings: &Settings) {
        let (standard, usual) = (Told::standard(req), Told::usual(req));
        // A proxy that writes one passes on what a client wrote into the other.
        if let (Some(standard), Some(usual)) = (&standard, &usual)
            && !standard.agrees(usual, settings)
        {
            self.word = Word::Contradictory;
            return;
        }
        self.word = Word::Believed;
        if let Some(told) = standard.or(usual) {
            self.client = told.client(settings).or(self.client);
            self.scheme = told.scheme.unwrap_or_else(|| self.scheme.clone());
            self.host = told.host.or_else(|| self.host.take());
        }
        // RFC 7239 has no word for it.
        if let Some(prefix) = last(req, "x-forwarded-prefix")
            && is_path(&prefix)
        {
            prefix.trim_end_matches('/').clone_into(&mut self.prefix);
        }
        self.scheme.make_ascii_lowercase();
    }

    /// Whether the headers of a trusted proxy tell different things.
    pub(super) fn is_contradictory(&self) -> bool {
        self.word == Word::Contradictory
    }

    /// The origin as browsers write it (RFC 6454, 6.1).
    pub(super) fn url(&self) -> Option<String> {
        Some(format!("{}://{}", self.scheme, self.host.as_deref()?))
    }

    /// The address that the outside knows the service by: by the word of a trusted proxy, or else
    /// `service.base-url`, or else as the request was sent.
    pub(super) fn base_url(&self, settings: &Settings) -> Option<String> {
        match &settings.base_url {
            Some(url) if self.word != Word::Believed => Some(url.clone()),
            _ => Some(format!("{}{}", self.url()?, self.prefix)),
        }
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

/// Whether the request was sent to this gateway under a name of its own. A page of another site can
/// make its name lead here (DNS rebinding), never an address or a loopback name. What the names are,
/// `service.base-url` says or a trusted proxy; a gateway beyond loopback that was told none takes any.
pub(super) fn is_ours(origin: &Origin, settings: &Settings) -> bool {
    if origin.control || origin.word == Word::Believed {
        return true;
    }
    let Some(name) = origin.host_name() else { return false };
    let base =
        settings.base_url.as_deref().and_then(|url| url.parse::<salvo::http::uri::Uri>().ok());
    name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok()
        || match base.as_ref().and_then(|url| url.host()) {
            Some(host) => host.trim_matches(['[', ']']).eq_ignore_ascii_case(name),
            None => !settings.server.address.is_loopback(),
        }
}

/// The path of `service.base-url`, without a slash at its end.
pub(super) fn base_path(base_url: Option<&str>) -> &str {
    let after_scheme = base_url.and_then(|url| url.split_once("://")).map_or("", |(_, rest)| rest);
    after_scheme.find('/').map_or("", |at| &after_scheme[at..]).trim_end_matches('/')
}

fn is_trusted(address: IpAddr, settings: &Settings) -> bool {
    settings.server.forward_headers == ForwardHeaders::Trusted
        && settings.server.is_trusted_proxy(address)
}

/// Whether some proxy has had the request in its hands.
fn is_forwarded(req: &Request) -> bool {
    req.headers().keys().any(|name| {
        let name = name.as_str();
        name.starts_with("x-forwarded-") || matches!(name, "forwarded" | "x-real-ip" | "via")
    })
}

/// What the proxies tell of the request as the client sent it.
#[derive(Debug, Default)]
struct Told {
    /// Whom they were asked by, the first proxy's word first; `None` for what is no address.
    asked_by: Vec<Option<IpAddr>>,
    scheme: Option<String>,
    host: Option<String>,
}

impl Told {
    /// By the standard header (RFC 7239); of scheme and host the nearest proxy's word counts, the last one.
    fn standard(req: &Request) -> Option<Self> {
        let lines = lines(req, FORWARDED.as_str())?;
        let mut told = Self::default();
        for element in lines.iter().flat_map(|line| line.split(',')) {
            (told.scheme, told.host) = (None, None);
            let mut client = None;
            for pair in element.split(';') {
                let Some((name, value)) = pair.split_once('=') else { continue };
                let value = value.trim().trim_matches('"');
                match name.trim().to_ascii_lowercase().as_str() {
                    "for" if client.is_none() => client = Some(address(value)),
                    "proto" => told.scheme = Some(value.to_owned()),
                    "host" => told.host = Some(value.to_owned()),
                    _ => {}
                }
            }
            told.asked_by.push(client.flatten());
        }
        Some(told)
    }

    /// By the headers that most proxies send.
    fn usual(req: &Request) -> Option<Self> {
        let asked_by = lines(req, "x-forwarded-for");
        let (scheme, host) = (last(req, "x-forwarded-proto"), last(req, "x-forwarded-host"));
        if asked_by.is_none() && scheme.is_none() && host.is_none() {
            return None;
        }
        let asked_by = asked_by.unwrap_or_default();
        let asked_by = asked_by.iter().flat_map(|line| line.split(',')).map(address).collect();
        Some(Self { asked_by, scheme, host })
    }

    /// Each proxy adds whom it was asked by: the last one that is no proxy of ours is the client.
    fn client(&self, settings: &Settings) -> Option<IpAddr> {
        let mut client = None;
        for address in self.asked_by.iter().rev() {
            client = (*address).or(client);
            if address.is_none_or(|address| !is_trusted(address, settings)) {
                break;
            }
        }
        client
    }

    fn agrees(&self, other: &Self, settings: &Settings) -> bool {
        let is_same = |one: &Option<String>, other: &Option<String>| match (one, other) {
            (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
            _ => one == other,
        };
        self.client(settings) == other.client(settings)
            && is_same(&self.scheme, &other.scheme)
            && is_same(&self.host, &other.host)
    }
}

/// The lines of a header, `None` without any.
fn lines(req: &Request, name: &str) -> Option<Vec<String>> {
    let lines = req.headers().get_all(name).iter();
    let lines: Vec<_> = lines.map(|line| line.to_str().unwrap_or_default().to_owned()).collect();
    (!lines.is_empty()).then_some(lines)
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None if text.matches(':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    Some(address.parse::<IpAddr>().ok()?.to_canonical())
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
            client: None,
            is_local: false,
            word: Word::None,
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
    fn addresses_are_read_with_and_without_a_port() {
        for (text, read) in [
            ("10.0.0.1", Some("10.0.0.1")),
            (" 10.0.0.1:80", Some("10.0.0.1")),
            ("[fd00::1]:80", Some("fd00::1")),
            ("fd00::1", Some("fd00::1")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("unknown", None),
            ("_hidden", None),
        ] {
            assert_eq!(address(text), read.map(|text| text.parse().unwrap()), "{text}");
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
