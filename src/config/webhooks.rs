//! The secrets and URLs of webhooks.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// What a secret begins with.
const SECRET_PREFIX: &str = "whsec_";
/// The lengths of a secret in bytes that Standard Webhooks allows.
const SECRET_BYTES: RangeInclusive<usize> = 24..=64;

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
