//! The settings of sources, `service.sources.<source>.*`: where they connect, and what they subscribe to.
use super::error::ConfigError;
use super::load::ParsedSetting;
use super::typed::{Values, report_missing};
use penstock_base::topic;
use penstock_resources::source::SourceSubscription;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

const PREFIX: &str = "service.sources.";
const DEFAULT_SESSION_EXPIRY: Duration = Duration::from_hours(7 * 24);
const DEFAULT_RECEIVE_MAXIMUM: u16 = 1000;

/// A source: an MQTT broker, and what the gateway subscribes to there.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    /// The host of `url`, without the brackets of an IPv6 address.
    pub host: String,
    /// The port of `url`; by default 1883, with TLS 8883.
    pub port: u16,
    /// Whether `url` begins with `mqtts://`.
    pub uses_tls: bool,
    /// `client-id`: the beginning of the client ids of all sessions.
    pub client_id: Option<String>,
    /// `username`
    pub username: Option<String>,
    /// `password`
    pub password: Option<String>,
    /// `ca-file`: a file of PEM certificates that are trusted for this broker.
    pub ca_file: Option<PathBuf>,
    /// `client-certificate` and `client-key`, each a file or the PEM text.
    pub client_certificate: Option<(String, String)>,
    /// `session-expiry`: how long the broker keeps a session without a connection.
    pub session_expiry: Duration,
    /// `receive-maximum`: the maximum number of messages of a session that are not acknowledged.
    pub receive_maximum: u16,
    /// `subscriptions`, in their order.
    pub subscriptions: Vec<SourceSubscription>,
}

impl Source {
    /// Returns the names of the Business Objects that it ingests into, each once.
    pub fn business_objects(&self) -> BTreeSet<&str> {
        self.subscriptions.iter().map(|one| one.business_object.as_str()).collect()
    }

    /// Returns the client id of the session for one Business Object, of the source with this name. The last `-` ends the
    /// part that all sessions of the source have in common, so no two of them have the same.
    pub fn session_client_id(
        &self,
        gateway_id: &str,
        source: &str,
        business_object: &str,
    ) -> String {
        let mut id = self.common_client_id(gateway_id, source);
        id.push('-');
        for byte in business_object.bytes() {
            if byte.is_ascii_alphanumeric() {
                id.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                let _ = write!(id, "_{byte:02x}");
            }
        }
        id
    }

    /// Returns the part that the client ids of all sessions begin with.
    pub fn common_client_id(&self, gateway_id: &str, source: &str) -> String {
        self.client_id.clone().unwrap_or_else(|| format!("penstock-{gateway_id}-{source}"))
    }
}

impl std::fmt::Debug for Source {
    /// Omits the password and the private key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("uses_tls", &self.uses_tls)
            .field("subscriptions", &self.subscriptions)
            .finish_non_exhaustive()
    }
}

/// The URL of a broker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BrokerUrl {
    uses_tls: bool,
    host: String,
    port: u16,
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

    fn is_loopback(&self) -> bool {
        self.host == "localhost"
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Whether an unknown name would be a setting of a source.
pub(super) fn is_source_setting(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with(PREFIX)
}

/// Checks the names of sources, and the levels of topics that fields are taken from.
pub(super) fn check_names(typed: &BTreeMap<String, ParsedSetting>, errors: &mut Vec<ConfigError>) {
    let mut seen = BTreeSet::new();
    for (name, ParsedSetting { entry, .. }) in typed {
        let Some(id) = entry.id.as_ref().filter(|_| entry.setting.name.starts_with(PREFIX)) else {
            continue;
        };
        let is_valid = (1..=64).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        if seen.insert(id) && !is_valid {
            let message = "the name of a source has 1 to 64 of A-Z a-z 0-9 _ -".to_owned();
            errors.push(entry.to_error(name, message));
        }
    }
}

/// Builds all sources.
pub(super) fn build_sources(
    values: &Values<'_>,
    errors: &mut Vec<ConfigError>,
) -> BTreeMap<String, Source> {
    let entries = values.0.values().map(|typed| &typed.entry);
    let names: BTreeSet<String> = entries
        .filter(|entry| entry.setting.name.starts_with(PREFIX))
        .filter_map(|entry| entry.id.clone())
        .collect();
    let mut sources = BTreeMap::new();
    for name in names {
        let builder = SourceBuilder { values, name: &name };
        sources.extend(builder.build(errors).map(|source| (name.clone(), source)));
    }
    check_client_ids(&sources, values, errors);
    sources
}

/// Refuses two sources whose sessions would have the same client ids at one broker: each would end the connections of the
/// other, again and again.
fn check_client_ids(
    sources: &BTreeMap<String, Source>,
    values: &Values<'_>,
    errors: &mut Vec<ConfigError>,
) {
    let gateway_id = values.get_text("service.gateway-id").unwrap_or_default();
    let mut seen: BTreeMap<(String, u16, String), &str> = BTreeMap::new();
    for (name, source) in sources {
        let key = (source.host.clone(), source.port, source.common_client_id(&gateway_id, name));
        if let Some(other) = seen.insert(key, name) {
            let setting = format!("{PREFIX}{name}.client-id");
            let message = format!(
                "the source {other:?} has the same client id at the same broker; give each source its own"
            );
            match values.0.get(&setting) {
                Some(ParsedSetting { entry, .. }) => errors.push(entry.to_error(&setting, message)),
                None => report_missing(errors, setting, message),
            }
        }
    }
}

/// Builds one source.
struct SourceBuilder<'a> {
    values: &'a Values<'a>,
    name: &'a str,
}

impl SourceBuilder<'_> {
    fn setting(&self, property: &str) -> String {
        format!("{PREFIX}{}.{property}", self.name)
    }

    fn text(&self, property: &str) -> Option<String> {
        self.values.get_text(&self.setting(property))
    }

    fn report(&self, errors: &mut Vec<ConfigError>, property: &str, message: &str) {
        let name = self.setting(property);
        match self.values.0.get(&name) {
            Some(ParsedSetting { entry, .. }) => {
                errors.push(entry.to_error(&name, message.to_owned()));
            }
            None => report_missing(errors, name, message.to_owned()),
        }
    }

    fn build(&self, errors: &mut Vec<ConfigError>) -> Option<Source> {
        if self.text("type").is_none() {
            self.report(errors, "type", "it is missing: mqtt");
        }
        let subscriptions = self.build_subscriptions(errors);
        if subscriptions.is_empty() {
            self.report(
                errors,
                "subscriptions[0].topic",
                "it is missing: a source needs a subscription with topic and business-object",
            );
        }
        let Some(url) = self.text("url").and_then(|url| BrokerUrl::parse(&url)) else {
            self.report(errors, "url", "it is missing: the URL of the broker");
            return None;
        };
        if !url.uses_tls && !url.is_loopback() && !self.values.get_flag(&self.setting("insecure")) {
            let message = "the password and all messages would go over the network in the clear; use mqtts://, or \
                           set insecure=true beside it";
            self.report(errors, "url", message);
        }
        for property in ["ca-file", "client-certificate", "client-key"] {
            if !url.uses_tls && self.text(property).is_some() {
                self.report(errors, property, "it has no effect without TLS; use mqtts:// in url");
            }
        }
        let (certificate, key) = (self.text("client-certificate"), self.text("client-key"));
        if certificate.is_some() != key.is_some() {
            let property = if key.is_some() { "client-certificate" } else { "client-key" };
            self.report(errors, property, "it is missing: certificate and key belong together");
        }
        if self.text("password").is_some() && self.text("username").is_none() {
            let message = "it is missing: MQTT 3.1.1 sends no password without a user name";
            self.report(errors, "username", message);
        }
        let ca_file = self.text("ca-file").map(PathBuf::from);
        for property in ["ca-file", "client-certificate", "client-key"] {
            let is_file = |text: &String| property == "ca-file" || !text.contains("-----BEGIN");
            if let Some(path) = self.text(property).filter(is_file)
                && let Err(error) = std::fs::File::open(path)
            {
                self.report(errors, property, &format!("it cannot be read: {error}"));
            }
        }
        let receive_maximum = self.values.get_number(&self.setting("receive-maximum"));
        let expiry = self.values.get_duration(&self.setting("session-expiry"));
        Some(Source {
            host: url.host,
            port: url.port,
            uses_tls: url.uses_tls,
            client_id: self.text("client-id"),
            username: self.text("username"),
            password: self.text("password"),
            ca_file,
            client_certificate: certificate.zip(key),
            session_expiry: if expiry.is_zero() { DEFAULT_SESSION_EXPIRY } else { expiry },
            receive_maximum: match u16::try_from(receive_maximum) {
                Ok(0) | Err(_) => DEFAULT_RECEIVE_MAXIMUM,
                Ok(maximum) => maximum,
            },
            subscriptions,
        })
    }

    fn build_subscriptions(&self, errors: &mut Vec<ConfigError>) -> Vec<SourceSubscription> {
        let own = self.values.0.values().map(|typed| &typed.entry).filter(|entry| {
            entry.setting.name.starts_with(PREFIX) && entry.id.as_deref() == Some(self.name)
        });
        let indexes: BTreeSet<u16> =
            own.filter_map(|entry| entry.rest.first()?.parse().ok()).collect();
        indexes.into_iter().filter_map(|index| self.build_subscription(index, errors)).collect()
    }

    fn build_subscription(
        &self,
        index: u16,
        errors: &mut Vec<ConfigError>,
    ) -> Option<SourceSubscription> {
        let property = |name: &str| format!("subscriptions[{index}].{name}");
        let (topic, business_object) =
            (self.text(&property("topic")), self.text(&property("business-object")));
        for (name, value) in [("topic", &topic), ("business-object", &business_object)] {
            if value.is_none() {
                let message = "it is missing: a subscription needs topic and business-object";
                self.report(errors, &property(name), message);
            }
        }
        let (topic, business_object) = (topic?, business_object?);
        Some(SourceSubscription {
            fields: self.build_fields(index, &topic, errors),
            topic,
            business_object,
            mode: self.text(&property("mode")).unwrap_or_else(|| "MERGE".to_owned()),
        })
    }

    fn build_fields(
        &self,
        index: u16,
        filter: &str,
        errors: &mut Vec<ConfigError>,
    ) -> BTreeMap<String, String> {
        let mut fields = BTreeMap::new();
        for (name, ParsedSetting { entry, .. }) in self.values.0 {
            let [of, field] = entry.rest.as_slice() else { continue };
            if entry.id.as_deref() != Some(self.name)
                || !entry.setting.name.starts_with(PREFIX)
                || of.parse() != Ok(index)
            {
                continue;
            }
            let Some(text) = self.values.get_text(name) else { continue };
            let levels = topic::max_levels(filter);
            let last = text.parse::<topic::Template>().map_or(0, |template| template.last_level());
            if levels.is_some_and(|levels| last > levels) {
                let message = format!("the topic filter {filter:?} has no level {last}");
                errors.push(entry.to_error(name, message));
            }
            fields.insert(field.clone(), text);
        }
        fields
    }
}

#[cfg(test)]
mod tests;
