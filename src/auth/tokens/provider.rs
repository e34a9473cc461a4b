//! Fetches the keys of an issuer, from a discovered (OpenID Connect Discovery 1.0, RFC 8414) or configured address.
use super::keys::PublicKeys;
use crate::fetch::{self, FetchError};
use penstock_base::error::GatewayError;
use penstock_config::ResourceServer;
use reqwest::{Client, Url};
use serde::Deserialize;
use std::path::Path;

/// The provider that issues the tokens.
#[derive(Debug)]
pub(super) struct Provider {
    client: Client,
    pub(super) issuer: String,
    pub(super) jwk_set_uri: Option<String>,
}

/// The members of an issuer's metadata that the gateway reads.
#[derive(Debug, Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl Provider {
    pub(super) fn new(
        settings: &ResourceServer,
        ca_file: Option<&Path>,
    ) -> Result<Self, GatewayError> {
        Ok(Self {
            client: fetch::build_client(ca_file)?,
            issuer: settings.issuer_uri.clone(),
            jwk_set_uri: settings.jwk_set_uri.clone(),
        })
    }

    /// Fetches the keys. Returns the set as it was sent, and its usable keys.
    ///
    /// # Errors
    /// The reason as text for the operator.
    pub(super) async fn fetch_keys(&self) -> Result<(Vec<u8>, PublicKeys), String> {
        let uri = match &self.jwk_set_uri {
            Some(uri) => uri.clone(),
            None => self.discover_jwks_uri().await?,
        };
        let text =
            fetch::fetch_document(&self.client, &uri).await.map_err(|error| error.to_string())?;
        let keys =
            PublicKeys::parse_set(&text).map_err(|why| format!("the keys at {uri}: {why}"))?;
        Ok((text, keys))
    }

    async fn discover_jwks_uri(&self) -> Result<String, String> {
        let mut first = None;
        for url in metadata_urls(&self.issuer)? {
            match fetch::fetch_document(&self.client, &url).await {
                Ok(text) => return self.parse_metadata(&url, &text),
                Err(error @ FetchError::NotFound { .. }) => {
                    first.get_or_insert(error);
                }
                Err(error @ FetchError::Unreachable(_)) => return Err(error.to_string()),
            }
        }
        let first = first.map_or_else(String::new, |error| error.to_string());
        Err(format!("{first}; check issuer-uri, or set jwk-set-uri"))
    }

    fn parse_metadata(&self, url: &str, text: &[u8]) -> Result<String, String> {
        let metadata: Metadata = serde_json::from_slice(text)
            .map_err(|error| format!("the answer of {url} cannot be read: {error}"))?;
        if metadata.issuer != self.issuer {
            return Err(format!(
                "{url} names the issuer {:?}, but issuer-uri is {:?}; they must be identical",
                metadata.issuer, self.issuer
            ));
        }
        if self.issuer.starts_with("https://") && !metadata.jwks_uri.starts_with("https://") {
            return Err(format!("{url} names a jwks_uri that is not an https address"));
        }
        Ok(metadata.jwks_uri)
    }
}

/// Lists the possible addresses of an issuer's metadata. OpenID Connect appends its well-known name to the issuer. RFC
/// 8414 inserts another name before the issuer's path. Some providers insert OpenID Connect's name there (RFC 8414, 5).
fn metadata_urls(issuer: &str) -> Result<Vec<String>, String> {
    let url = Url::parse(issuer).map_err(|error| format!("issuer-uri {issuer:?}: {error}"))?;
    let path = url.path().trim_end_matches('/');
    let trimmed = issuer.trim_end_matches('/');
    let origin = trimmed.strip_suffix(path).unwrap_or(trimmed);
    let mut urls = vec![
        format!("{trimmed}/.well-known/openid-configuration"),
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}/.well-known/openid-configuration{path}"));
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_searched_where_either_standard_puts_it() {
        assert_eq!(
            metadata_urls("https://idp.example/realms/plant").unwrap(),
            [
                "https://idp.example/realms/plant/.well-known/openid-configuration",
                "https://idp.example/.well-known/oauth-authorization-server/realms/plant",
                "https://idp.example/.well-known/openid-configuration/realms/plant",
            ]
        );
        for issuer in ["http://127.0.0.1:5710", "http://127.0.0.1:5710/"] {
            assert_eq!(
                metadata_urls(issuer).unwrap(),
                [
                    "http://127.0.0.1:5710/.well-known/openid-configuration",
                    "http://127.0.0.1:5710/.well-known/oauth-authorization-server",
                ]
            );
        }
        assert!(metadata_urls("plant").is_err());
    }

    #[test]
    fn metadata_of_another_issuer_is_refused() {
        let settings =
            ResourceServer { issuer_uri: "https://a/".into(), ..ResourceServer::default() };
        let provider = Provider::new(&settings, None).unwrap();
        let read = |issuer, uri| {
            let text = format!(r#"{{"issuer": "{issuer}", "jwks_uri": "{uri}", "x": 1}}"#);
            provider.parse_metadata("u", text.as_bytes())
        };
        assert_eq!(read("https://a/", "https://a/jwks").unwrap(), "https://a/jwks");
        // The slash counts.
        assert!(read("https://a", "https://a/jwks").is_err());
        assert!(read("https://a/", "http://a/jwks").is_err());
    }
}
