//! The URL of an MQTT broker.

/// The URL of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerUrl {
    /// Whether it begins with `mqtts://`.
    pub uses_tls: bool,
    /// The host, without the brackets of an IPv6 address.
    pub host: String,
    /// The port; by default 1883, with TLS 8883.
    pub port: u16,
}

impl BrokerUrl {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let uses_tls = match scheme {
            "mqtts" => true,
            "mqtt" => false,
            _ => return None,
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // A port of http would be left out.
        let url = reqwest::Url::parse(&format!("mqtt://{rest}")).ok()?;
        let has_more = !matches!(url.path(), "" | "/")
            || url.query().is_some()
            || url.fragment().is_some()
            || rest.contains(['/', '@'])
            || rest.contains(char::is_whitespace);
        let host = url.host_str().filter(|host| !host.is_empty() && !has_more)?;
        let port = url.port().unwrap_or(if uses_tls { 8883 } else { 1883 });
        Some(Self { uses_tls, host: host.trim_matches(['[', ']']).to_owned(), port })
    }
}
