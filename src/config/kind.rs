//! The kinds of values, and how their text is parsed.
use super::graph_template::GraphTemplate;
use super::key_template::KeyTemplate;
use super::mqtt::BrokerUrl;
use super::webhooks::{WebhookSecret, is_webhook_url};
use super::window::Window;
use penstock_base::bucket_name::{BUCKET_NAME_RULE, check_bucket_name};
use penstock_base::events::EventKind;
use penstock_base::topic;
use std::fmt;
use std::net::IpAddr;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// Any text.
    Text,
    /// The path of a file in PEM, or its text.
    Pem,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Whole {
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// A size in bytes.
    Size {
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// A time span in milliseconds.
    Duration {
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of any texts.
    List,
    /// A list of these words.
    Choices(&'static [&'static str]),
    /// A list of profile names.
    Profiles,
    /// An IP address.
    Address,
    /// An `http` or `https` URL.
    Url,
    /// A list of `http` or `https` URLs.
    Urls,
    /// A list of IP addresses or networks.
    Networks,
    /// A list of origins as browsers send them, or `*`.
    Origins,
    /// A filter for the log.
    Filter,
    /// The id of a gateway.
    GatewayId,
    /// The name of an S3 bucket.
    Bucket,
    /// The prefix of keys.
    Prefix,
    /// A template of keys.
    KeyTemplate,
    /// A template of graphs.
    GraphTemplate,
    /// The URL of an identity provider. It is kept unchanged, because issuers are compared exactly.
    Endpoint,
    /// A redirect URI, with `{baseUrl}` and `{registrationId}`.
    RedirectUri,
    /// A registration identifier.
    Registration,
    /// A tenant of a cloud directory.
    Tenant,
    /// The domain of an email address, with its `@`.
    EmailDomain,
    /// Times of day.
    Window,
    /// A time zone.
    TimeZone,
    /// The URL of an MQTT broker.
    Broker,
    /// An MQTT topic filter.
    TopicFilter,
    /// The value of a field, with levels of a topic.
    TopicTemplate,
    /// The URL of a webhook.
    WebhookUrl,
    /// The secret of a webhook.
    WebhookSecret,
    /// A list of types of events, or of their beginnings.
    EventTypes,
}

/// A value as its source has it, not yet parsed.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum RawValue {
    Text(String),
    List(Vec<String>),
}

/// A parsed value.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ParsedValue {
    Text(String),
    Flag(bool),
    Number(u64),
    List(Vec<String>),
    Address(IpAddr),
    Networks(Vec<(IpAddr, u8)>),
}

impl RawValue {
    /// Whether the text is blank or the list is empty; the setting then counts as not set.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::List(items) => items.is_empty(),
        }
    }

    /// Returns the items of a list. A text is split at its commas.
    pub(super) fn split_items(&self) -> Vec<String> {
        let items: Vec<&str> = match self {
            Self::Text(text) => text.split(',').collect(),
            Self::List(items) => items.iter().map(String::as_str).collect(),
        };
        items.into_iter().map(str::trim).filter(|i| !i.is_empty()).map(str::to_owned).collect()
    }
}

impl fmt::Display for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(items) => f.write_str(&items.join(",")),
        }
    }
}

impl SettingKind {
    /// Parses a value.
    ///
    /// # Errors
    /// Describes the expected value, to follow "expected ".
    pub(super) fn parse(self, raw: &RawValue) -> Result<ParsedValue, String> {
        match (self, raw) {
            (Self::KeyTemplate, RawValue::Text(text)) => match text.trim().parse::<KeyTemplate>() {
                Ok(template) => Ok(ParsedValue::Text(template.to_string())),
                Err(error) => Err(format!("{self}; this one {error}")),
            },
            (Self::GraphTemplate, RawValue::Text(text)) => {
                match text.trim().parse::<GraphTemplate>() {
                    Ok(template) => Ok(ParsedValue::Text(template.to_string())),
                    Err(error) => Err(format!("{self}; this one {error}")),
                }
            }
            _ => self.try_parse(raw).ok_or_else(|| self.to_string()),
        }
    }

    /// Whether a text is a valid value of this kind.
    pub fn accepts_text(self, text: &str) -> bool {
        self.parse(&RawValue::Text(text.to_owned())).is_ok()
    }

    fn try_parse(self, raw: &RawValue) -> Option<ParsedValue> {
        match self {
            Self::List => return Some(ParsedValue::List(raw.split_items())),
            Self::Profiles => return parse_list(raw, is_profile),
            Self::Origins => return parse_list(raw, is_origin),
            Self::Urls => return parse_list(raw, is_url),
            Self::EventTypes => return parse_list(raw, is_event_pattern),
            Self::Choices(words) => {
                let items = raw.split_items();
                let valid = items.iter().all(|item| words.contains(&item.as_str()));
                return valid.then_some(ParsedValue::List(items));
            }
            Self::Networks => {
                return raw
                    .split_items()
                    .iter()
                    .map(|i| parse_network(i))
                    .collect::<Option<_>>()
                    .map(ParsedValue::Networks);
            }
            _ => {}
        }
        let RawValue::Text(text) = raw else { return None };
        let text = text.trim();
        let whole = |valid: bool| valid.then(|| ParsedValue::Text(text.to_owned()));
        match self {
            Self::Flag if text.eq_ignore_ascii_case("true") => Some(ParsedValue::Flag(true)),
            Self::Flag if text.eq_ignore_ascii_case("false") => Some(ParsedValue::Flag(false)),
            Self::Whole { min, max } => {
                text.parse().ok().filter(|n| (min..=max).contains(n)).map(ParsedValue::Number)
            }
            Self::Size { min, max } => {
                parse_size(text).filter(|n| (min..=max).contains(n)).map(ParsedValue::Number)
            }
            Self::Duration { min, max } => {
                parse_duration(text).filter(|n| (min..=max).contains(n)).map(ParsedValue::Number)
            }
            Self::Choice(words) => words
                .iter()
                .find(|word| word.eq_ignore_ascii_case(text))
                .map(|word| ParsedValue::Text((*word).to_owned())),
            Self::Address if text == "localhost" => {
                Some(ParsedValue::Address([127, 0, 0, 1].into()))
            }
            Self::Address => text.parse().ok().map(ParsedValue::Address),
            Self::Url => {
                is_url(text).then(|| ParsedValue::Text(text.trim_end_matches('/').to_owned()))
            }
            Self::Filter => whole(is_filter(text)),
            Self::GatewayId => whole(is_gateway_id(text)),
            Self::Bucket => whole(check_bucket_name(text).is_ok()),
            Self::Prefix => whole(is_prefix(text)),
            Self::Endpoint => whole(is_endpoint(text)),
            Self::RedirectUri => whole(is_redirect_uri(text)),
            Self::Registration => whole(is_registration(text)),
            Self::Tenant => whole(is_tenant(text)),
            Self::EmailDomain => whole(is_email_domain(text)),
            Self::Window => whole(text.parse::<Window>().is_ok()),
            Self::TimeZone => whole(text.parse::<penstock_base::time_zone::Zone>().is_ok()),
            Self::Broker => whole(BrokerUrl::parse(text).is_some()),
            Self::TopicFilter => whole(topic::check_filter(text).is_ok()),
            Self::TopicTemplate => whole(text.parse::<topic::Template>().is_ok()),
            Self::WebhookUrl => whole(is_webhook_url(text)),
            Self::WebhookSecret => whole(text.parse::<WebhookSecret>().is_ok()),
            Self::Text => whole(!text.contains(|c: char| c.is_control())),
            Self::Pem => whole(
                text.trim_start().starts_with("-----BEGIN ")
                    || !text.contains(|c: char| c.is_control()),
            ),
            Self::Flag
            | Self::KeyTemplate
            | Self::GraphTemplate
            | Self::List
            | Self::Choices(_)
            | Self::Profiles
            | Self::Origins
            | Self::Urls
            | Self::EventTypes
            | Self::Networks => None,
        }
    }
}

impl fmt::Display for SettingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text without control characters"),
            Self::Pem => f.write_str("the path of a file in PEM, or its text, which begins with -----BEGIN"),
            Self::Flag => f.write_str("true or false"),
            Self::Whole { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Size { min, max } => write!(
                f,
                "a size in bytes from {} to {}, such as 16777216 or 16MiB",
                format_size(*min),
                format_size(*max)
            ),
            Self::Duration { min, max } => write!(
                f,
                "a time from {} to {}, such as 90s, 30m, 12h or 7d",
                format_duration(*min),
                format_duration(*max)
            ),
            Self::Choice([word]) => f.write_str(word),
            Self::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Self::List => f.write_str("a list, or text with commas"),
            Self::Choices(words) => write!(f, "some of {}, with commas", words.join(", ")),
            Self::Profiles => f.write_str("names of profiles (letters, digits, - and _) with commas"),
            Self::Address => f.write_str("an IP address, such as 127.0.0.1 or ::1"),
            Self::Url => f.write_str(
                "an http or https URL without user, query and fragment, such as https://gateway.example",
            ),
            Self::Urls => f.write_str(
                "http or https URLs without user, query and fragment, such as https://data.example/sparql, with commas",
            ),
            Self::Networks => f.write_str("IP addresses or networks, such as 10.0.0.0/8, with commas"),
            Self::Origins => f.write_str("origins, such as https://app.example:8443, or *, with commas"),
            Self::Filter => f.write_str(
                "error, warn, info, debug, trace or off, also per part, such as info,penstock_http=debug",
            ),
            Self::GatewayId => f.write_str("1 to 64 of A-Z a-z 0-9 . _ -"),
            Self::Bucket => f.write_str(BUCKET_NAME_RULE),
            Self::Prefix => f.write_str(
                "a prefix of keys: at most 512 bytes, no / at its beginning, no part of it empty, . or .., no control characters",
            ),
            Self::KeyTemplate => write!(f, "a template of keys, such as {}", KeyTemplate::default()),
            Self::GraphTemplate => {
                write!(f, "an absolute IRI with placeholders, such as {}", GraphTemplate::default())
            }
            Self::Endpoint => f.write_str(
                "an https URL (http only on loopback) without user and fragment, such as https://login.example/realms/plant",
            ),
            Self::RedirectUri => f.write_str(
                "{baseUrl}/login/oauth2/code/{registrationId}, or a URL with this ending, with no other placeholders",
            ),
            Self::Registration => f.write_str("1 to 64 lowercase letters (a-z)"),
            Self::Tenant => f.write_str(
                "the identifier or the domain of one tenant, not common, organizations or consumers",
            ),
            Self::EmailDomain => f.write_str("a domain that starts with @, such as @machines.example"),
            Self::Window => f.write_str(
                "times of day from beginning to end, such as 22:00-06:00, with commas; not the same time twice",
            ),
            Self::Broker => f.write_str(
                "the URL of a broker without user and path, such as mqtts://broker.example or mqtt://127.0.0.1:1883",
            ),
            Self::TopicFilter => f.write_str(
                "a topic filter, such as plant/+/pumps/#: + is a whole level, # the last one",
            ),
            Self::TopicTemplate => f.write_str(
                "text in which {1} is the first level of the topic, such as {2} or line-{3}",
            ),
            Self::WebhookUrl => f.write_str(
                "an http or https URL without user and fragment, such as https://alerts.example/penstock",
            ),
            Self::WebhookSecret => f.write_str(
                "whsec_ and the Base64 of 24 to 64 bytes, such as the output of: echo whsec_$(openssl rand -base64 32)",
            ),
            Self::EventTypes => write!(
                f,
                "types of events with commas, such as penstock.change.* or *; the types are {}",
                EventKind::FOR_WEBHOOKS.map(EventKind::name).join(", ")
            ),
            Self::TimeZone => f.write_str("a time zone of the IANA database, such as Europe/Berlin or UTC"),
        }
    }
}

fn parse_list(raw: &RawValue, valid: fn(&str) -> bool) -> Option<ParsedValue> {
    let items = raw.split_items();
    items.iter().all(|item| valid(item)).then_some(ParsedValue::List(items))
}

/// Parses a size in bytes: a number and a unit. As in Spring, MB means MiB.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn format_size(bytes: u64) -> String {
    [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
        .into_iter()
        .find(|(shift, _)| bytes >= 1 << shift && bytes.trailing_zeros() >= *shift)
        .map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// The units of time in milliseconds, the longest first.
const TIME_UNITS: [(u64, &str); 5] =
    [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];

/// Parses a time span: a number and its unit. Returns milliseconds.
fn parse_duration(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let (milliseconds, _) = TIME_UNITS.into_iter().find(|(_, name)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(milliseconds)
}

fn format_duration(milliseconds: u64) -> String {
    TIME_UNITS
        .into_iter()
        .find(|(unit, _)| milliseconds >= *unit && milliseconds.is_multiple_of(*unit))
        .map_or_else(|| "0s".to_owned(), |(unit, name)| format!("{}{name}", milliseconds / unit))
}

fn parse_network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|b| *b <= most))?;
    Some((address, bits))
}

fn is_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    !authority.is_empty()
        && !authority.starts_with(':')
        && !text.contains(['?', '#', '@'])
        && oxrdf::NamedNode::new(text).is_ok()
}

/// Whether this is an `https` URL, or an `http` URL on loopback. With plain HTTP, anyone on the network path could read
/// the client secret and forge the provider's keys.
fn is_endpoint(text: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(text) else { return false };
    let is_loopback = url.host_str().is_some_and(|host| {
        host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    });
    (url.scheme() == "https" || (url.scheme() == "http" && is_loopback))
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
        && !text.contains(char::is_whitespace)
}

fn is_event_pattern(text: &str) -> bool {
    !EventKind::select_for_webhooks(text).is_empty()
}

fn is_redirect_uri(text: &str) -> bool {
    let filled =
        text.strip_prefix("{baseUrl}").map(|rest| format!("https://gateway.example{rest}"));
    let filled = filled.as_deref().unwrap_or(text).replacen("{registrationId}", "registration", 1);
    is_url(&filled)
        && filled.rsplit_once('/').is_some_and(|(before, id)| {
            before.ends_with("/login/oauth2/code") && is_registration(id)
        })
}

fn is_registration(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase())
}

/// Whether this names one tenant. The three refused words are the endpoints for several tenants, whose tokens name
/// another issuer.
fn is_tenant(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-')
        && !["common", "organizations", "consumers"].iter().any(|w| w.eq_ignore_ascii_case(text))
}

fn is_email_domain(text: &str) -> bool {
    text.strip_prefix('@').is_some_and(|domain| {
        !domain.is_empty()
            && !domain.contains(|c: char| c == '@' || c.is_whitespace() || c.is_control())
    })
}

fn is_origin(text: &str) -> bool {
    text == "*" || (is_url(text) && text.matches('/').count() == 2)
}

fn is_profile(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

fn is_gateway_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Whether this is a valid filter. A single word must be a level, because `EnvFilter` reads any other word as the name
/// of a module, and then logs nothing else.
fn is_filter(text: &str) -> bool {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    text.split(',').all(|part| {
        let part = part.trim();
        part.contains(['=', '[']) || LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part))
    }) && tracing_subscriber::EnvFilter::try_new(text).is_ok()
}

fn is_prefix(text: &str) -> bool {
    let whole = text.strip_suffix('/').unwrap_or(text);
    text.len() <= 512
        && !text.contains(|c: char| c.is_control())
        && whole.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_valid(kind: SettingKind, text: &str) -> bool {
        kind.parse(&RawValue::Text(text.to_owned())).is_ok()
    }

    #[test]
    fn sizes_have_units_and_do_not_overflow() {
        for (text, bytes) in [
            ("16777216", 1 << 24),
            ("16MiB", 1 << 24),
            ("16MB", 1 << 24),
            ("16 mb", 1 << 24),
            ("1k", 1024),
            ("0", 0),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in
            ["", "MiB", "1.5MiB", "-1", "16 megs", "99999999999999TiB", "99999999999999999999"]
        {
            assert_eq!(parse_size(text), None, "{text}");
        }
        assert_eq!(format_size(16 << 20), "16MiB");
        assert_eq!(format_size(1500), "1500");
    }

    #[test]
    fn times_have_a_unit() {
        for (text, milliseconds) in [
            ("30m", 1_800_000),
            ("12 h", 43_200_000),
            ("7d", 604_800_000),
            ("5S", 5000),
            ("0ms", 0),
        ] {
            assert_eq!(parse_duration(text), Some(milliseconds), "{text}");
        }
        for text in ["", "30", "m", "1.5h", "-1s", "1w", "99999999999999999d"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        assert_eq!(format_duration(1_800_000), "30m");
        assert_eq!(format_duration(90_000), "90s");
        assert_eq!(format_duration(0), "0s");
    }

    #[test]
    fn each_kind_rejects_invalid_values() {
        assert!(is_valid(SettingKind::Url, "https://gateway.example/penstock/"));
        for url in
            ["gateway.example", "ftp://x", "http://", "http://u:p@x", "http://x?y", "http://x y"]
        {
            assert!(!is_valid(SettingKind::Url, url), "{url}");
        }
        assert!(is_valid(SettingKind::Filter, "info,penstock_http=debug"));
        assert!(!is_valid(SettingKind::Filter, "verbose"));
        assert!(is_valid(SettingKind::Networks, "10.0.0.0/8, ::1"));
        assert!(!is_valid(SettingKind::Networks, "10.0.0.0/33"));
        assert!(is_valid(SettingKind::Origins, "https://a.example:8443,*"));
        assert!(!is_valid(SettingKind::Origins, "https://a.example/"));
        assert!(is_valid(SettingKind::Urls, "https://a.example/sparql,http://b.example/"));
        assert!(!is_valid(SettingKind::Urls, "https://a.example/sparql,ftp://b.example"));
        assert!(is_valid(SettingKind::Prefix, "plant/1/"));
        for prefix in ["/a", "a/../b", "a//b", "a\u{7}", "..", "/"] {
            assert!(!is_valid(SettingKind::Prefix, prefix), "{prefix}");
        }
        assert!(!is_valid(SettingKind::Profiles, "../../etc"));
        for url in [
            "https://sts.windows.net/t/",
            "http://127.0.0.1:5710",
            "https://x.example/a?p=1",
            "http://[::1]/",
            "http://localhost:1",
        ] {
            assert!(is_valid(SettingKind::Endpoint, url), "{url}");
        }
        for url in [
            "http://login.example",
            "https://u@x",
            "https://x#f",
            "x.example",
            "ftp://x",
            "https://",
            "http://127.0.0.1.example",
        ] {
            assert!(!is_valid(SettingKind::Endpoint, url), "{url}");
        }
        for uri in [
            "{baseUrl}/login/oauth2/code/{registrationId}",
            "{baseUrl}/login/oauth2/code/azure",
            "https://gw.example/a/login/oauth2/code/azure",
        ] {
            assert!(is_valid(SettingKind::RedirectUri, uri), "{uri}");
        }
        for uri in [
            "{baseUrl}/callback",
            "{baseScheme}://x/login/oauth2/code/a",
            "/login/oauth2/code/a",
            "https://gw.example/login/oauth2/code/a?b",
            "{baseUrl}x/login/oauth2/code/{registrationId}{registrationId}",
        ] {
            assert!(!is_valid(SettingKind::RedirectUri, uri), "{uri}");
        }
        assert!(is_valid(SettingKind::Registration, "keycloak"));
        for id in ["Azure", "a1", "a-b", "", "ä"] {
            assert!(!is_valid(SettingKind::Registration, id), "{id}");
        }
        assert!(is_valid(SettingKind::Tenant, "9188040d-6c67-4c5b-b112-36a304b66dad"));
        for tenant in ["common", "Organizations", "a/b", "a b"] {
            assert!(!is_valid(SettingKind::Tenant, tenant), "{tenant}");
        }
        assert!(is_valid(SettingKind::EmailDomain, "@machines.example"));
        for domain in ["machines.example", "@", "@a@b", "@a b"] {
            assert!(!is_valid(SettingKind::EmailDomain, domain), "{domain}");
        }
        assert!(!is_valid(SettingKind::GatewayId, "a b"));
        assert!(!is_valid(SettingKind::Flag, "yes"));
        assert!(!is_valid(SettingKind::Whole { min: 1, max: 2 }, "3"));
        assert!(SettingKind::Text.parse(&RawValue::List(vec!["a".into()])).is_err());
    }
}
