//! The settings of webhooks, `service.webhooks.<webhook>.*`: where events are sent, and which.
use super::error::ConfigError;
use super::load::ParsedSetting;
use super::typed::{Values, is_on_loopback, report_missing};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_base::events::EventKind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

const PREFIX: &str = "service.webhooks.";
/// The maximum number of webhooks. Each event is stored for each of them.
const MAX_WEBHOOKS: usize = 32;
/// What a secret begins with.
const SECRET_PREFIX: &str = "whsec_";
/// The lengths of a secret in bytes that Standard Webhooks allows.
const SECRET_BYTES: RangeInclusive<usize> = 24..=64;

/// A webhook: where events are sent, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// `url`
    pub url: String,
    /// `secret`
    pub secret: WebhookSecret,
    /// The kinds that `events` selects.
    pub events: Vec<EventKind>,
    /// `ca-file`: a file of PEM certificates that are trusted for this webhook.
    pub ca_file: Option<PathBuf>,
}

/// The key that signs the requests of a webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    /// Returns the bytes of the key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The text is no secret of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not {SECRET_PREFIX} and the Base64 of 24 to 64 bytes")]
pub struct WebhookSecretError;

impl FromStr for WebhookSecret {
    type Err = WebhookSecretError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let encoded = text.strip_prefix(SECRET_PREFIX).ok_or(WebhookSecretError)?;
        let key = STANDARD.decode(encoded).map_err(|_| WebhookSecretError)?;
        if SECRET_BYTES.contains(&key.len()) { Ok(Self(key)) } else { Err(WebhookSecretError) }
    }
}

impl std::fmt::Debug for WebhookSecret {
    /// Omits the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret")
    }
}

/// Returns the scheme, host and port of a webhook's URL. The rest may have a token.
pub fn display_origin(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url.origin().ascii_serialization(),
        _ => "******".to_owned(),
    }
}

/// Whether a text is the URL of a webhook. It may have a query, which receivers use for tokens.
pub(super) fn is_webhook_url(text: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(text) else { return false };
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
        && !text.contains(char::is_whitespace)
}

/// Checks the names of webhooks.
pub(super) fn check_names(typed: &BTreeMap<String, ParsedSetting>, errors: &mut Vec<ConfigError>) {
    let mut seen = BTreeSet::new();
    for (name, ParsedSetting { entry, .. }) in typed {
        let Some(id) = entry.id.as_ref().filter(|_| entry.setting.name.starts_with(PREFIX)) else {
            continue;
        };
        let is_valid = (1..=64).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let is_new = seen.insert(id);
        if is_new && !is_valid {
            let message = "the name of a webhook has 1 to 64 of A-Z a-z 0-9 _ -".to_owned();
            errors.push(entry.to_error(name, message));
        }
        // The set has this name, if it is new, and the earlier ones.
        if is_new && seen.len() == MAX_WEBHOOKS + 1 {
            let message = format!("a gateway has at most {MAX_WEBHOOKS} webhooks");
            errors.push(entry.to_error(name, message));
        }
    }
}

/// Builds all webhooks.
pub(super) fn build_webhooks(
    values: &Values<'_>,
    errors: &mut Vec<ConfigError>,
) -> BTreeMap<String, Webhook> {
    let entries = values.0.values().map(|typed| &typed.entry);
    let names: BTreeSet<String> = entries
        .filter(|entry| entry.setting.name.starts_with(PREFIX))
        .filter_map(|entry| entry.id.clone())
        .collect();
    let mut webhooks = BTreeMap::new();
    for name in names {
        let built = build_webhook(values, &format!("{PREFIX}{name}."), errors);
        webhooks.extend(built.map(|webhook| (name, webhook)));
    }
    webhooks
}

/// Builds the webhook whose properties begin with `prefix`. Returns `None` if one is missing or has an error.
fn build_webhook(
    values: &Values<'_>,
    prefix: &str,
    errors: &mut Vec<ConfigError>,
) -> Option<Webhook> {
    let text = |property: &str| values.get_text(&format!("{prefix}{property}"));
    let mut report = |property: &str, message: String| {
        let name = format!("{prefix}{property}");
        match values.0.get(&name) {
            Some(ParsedSetting { entry, .. }) => errors.push(entry.to_error(&name, message)),
            None => report_missing(errors, name, message),
        }
    };
    let (url, secret) = (text("url"), text("secret"));
    let patterns = values.get_list(&format!("{prefix}events"));
    for (property, is_missing) in
        [("url", url.is_none()), ("secret", secret.is_none()), ("events", patterns.is_empty())]
    {
        if is_missing && !values.0.contains_key(&format!("{prefix}{property}")) {
            let message = "it is missing: a webhook needs url, secret and events";
            report(property, message.to_owned());
        }
    }
    let url = url?;
    let is_plain = url.starts_with("http://");
    if is_plain && !is_on_loopback(&url) && !values.get_flag(&format!("{prefix}insecure")) {
        let message = "the events would go over the network in the clear; use https://, or set insecure=true beside it";
        report("url", message.to_owned());
    }
    let ca_file = text("ca-file").map(PathBuf::from);
    if let Some(path) = &ca_file {
        if is_plain {
            report("ca-file", "it has no effect without TLS; use https:// in url".to_owned());
        } else if let Err(error) = std::fs::File::open(path) {
            report("ca-file", format!("it cannot be read: {error}"));
        }
    }
    let selected: Vec<EventKind> =
        patterns.iter().flat_map(|pattern| EventKind::select_for_webhooks(pattern)).collect();
    let events = EventKind::FOR_WEBHOOKS.into_iter().filter(|kind| selected.contains(kind));
    Some(Webhook { url, secret: secret?.parse().ok()?, events: events.collect(), ca_file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_the_form_of_standard_webhooks() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert_eq!(secret.parse::<WebhookSecret>().unwrap().as_bytes().len(), 24);
        let of_length = |length| format!("{SECRET_PREFIX}{}", STANDARD.encode(vec![7; length]));
        for (length, is_valid) in [(23, false), (24, true), (64, true), (65, false), (0, false)] {
            assert_eq!(of_length(length).parse::<WebhookSecret>().is_ok(), is_valid, "{length}");
        }
        for text in
            ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_a secret that is long"]
        {
            assert_eq!(text.parse::<WebhookSecret>(), Err(WebhookSecretError), "{text}");
        }
        assert!(!format!("{:?}", secret.parse::<WebhookSecret>()).contains("MfKQ"));
    }

    #[test]
    fn only_the_origin_of_a_url_is_shown() {
        for (url, shown) in [
            ("https://a.example/hook/T0KEN?token=1", "https://a.example"),
            ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
            ("https://[::1]:8443/T0KEN", "https://[::1]:8443"),
            ("ftp://a.example/T0KEN", "******"),
            ("T0KEN", "******"),
        ] {
            assert_eq!(display_origin(url), shown);
        }
    }

    #[test]
    fn a_url_may_have_a_query_and_no_user() {
        for url in ["https://a.example/hook?token=1", "http://127.0.0.1:9/", "https://[::1]"] {
            assert!(is_webhook_url(url), "{url}");
        }
        for url in
            ["ftp://a.example", "https://u:p@a.example", "https://a.example/#x", "a.example", ""]
        {
            assert!(!is_webhook_url(url), "{url}");
        }
    }
}
