//! What identity providers publish: the metadata of an issuer, found by OpenID Connect Discovery 1.0 or RFC 8414, and
//! the [`cache`] that keeps it and the issuer's keys. Sign-in and bearer tokens use both.
mod cache;

pub(super) use cache::{Cache, Cached};

use super::fetch::{self, FetchError};
use reqwest::{Client, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The error of fetching metadata or keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DiscoveryError {
    /// The document could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The document is not JSON, or lacks a member.
    #[error("the answer of {url} cannot be read: {cause}")]
    Unreadable {
        /// The requested address.
        url: String,
        /// The cause as text.
        cause: String,
    },
    /// The issuer is not a URL, or the metadata belongs to another issuer.
    #[error("{0}")]
    WrongIssuer(String),
}

/// The member of metadata that says to whom it belongs.
#[derive(Deserialize)]
struct Owner {
    issuer: String,
}

/// Fetches the metadata of an issuer from the address of OpenID Connect Discovery.
pub(super) async fn fetch_openid_metadata<M: DeserializeOwned>(
    client: &Client,
    issuer: &str,
) -> Result<M, DiscoveryError> {
    fetch_metadata_at(client, issuer, &openid_metadata_url(issuer)).await
}

/// Fetches the metadata of an issuer from the first address that has it.
///
/// # Errors
/// The error of the address of OpenID Connect Discovery if no address has it.
pub(super) async fn fetch_metadata<M: DeserializeOwned>(
    client: &Client,
    issuer: &str,
) -> Result<M, DiscoveryError> {
    let not_found = match fetch_openid_metadata(client, issuer).await {
        Err(error @ DiscoveryError::Fetch(FetchError::NotFound { .. })) => error,
        fetched => return fetched,
    };
    for url in oauth_metadata_urls(issuer)? {
        match fetch_metadata_at(client, issuer, &url).await {
            Err(DiscoveryError::Fetch(FetchError::NotFound { .. })) => {}
            fetched => return fetched,
        }
    }
    Err(not_found)
}

/// Fetches a JSON document, such as a JSON Web Key Set.
pub(super) async fn fetch_json<T: DeserializeOwned>(
    client: &Client,
    url: &str,
) -> Result<T, DiscoveryError> {
    parse_json(url, &fetch::fetch_document(client, url).await?)
}

async fn fetch_metadata_at<M: DeserializeOwned>(
    client: &Client,
    issuer: &str,
    url: &str,
) -> Result<M, DiscoveryError> {
    parse_metadata(issuer, url, &fetch::fetch_document(client, url).await?)
}

/// Parses metadata, and checks that it belongs to the issuer.
fn parse_metadata<M: DeserializeOwned>(
    issuer: &str,
    url: &str,
    text: &[u8],
) -> Result<M, DiscoveryError> {
    let metadata = parse_json(url, text)?;
    let owner: Owner = parse_json(url, text)?;
    if owner.issuer == issuer {
        return Ok(metadata);
    }
    Err(DiscoveryError::WrongIssuer(format!(
        "{url} names the issuer {:?}, but issuer-uri is {issuer:?}; they must be identical",
        owner.issuer
    )))
}

fn parse_json<T: DeserializeOwned>(url: &str, text: &[u8]) -> Result<T, DiscoveryError> {
    serde_json::from_slice(text).map_err(|error| DiscoveryError::Unreadable {
        url: url.to_owned(),
        cause: error.to_string(),
    })
}

/// Returns the address to which OpenID Connect Discovery 1.0, 4.1 appends its well-known name.
fn openid_metadata_url(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

/// Lists the addresses of RFC 8414, 3.1, which inserts a well-known name before the issuer's path. Some providers
/// insert OpenID Connect's name there (RFC 8414, 5).
fn oauth_metadata_urls(issuer: &str) -> Result<Vec<String>, DiscoveryError> {
    let url = Url::parse(issuer)
        .map_err(|error| DiscoveryError::WrongIssuer(format!("issuer-uri {issuer:?}: {error}")))?;
    let path = url.path().trim_end_matches('/');
    let trimmed = issuer.trim_end_matches('/');
    let origin = trimmed.strip_suffix(path).unwrap_or(trimmed);
    let mut urls = vec![format!("{origin}/.well-known/oauth-authorization-server{path}")];
    if !path.is_empty() {
        urls.push(format!("{origin}/.well-known/openid-configuration{path}"));
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn metadata_urls(issuer: &str) -> Vec<String> {
        [vec![openid_metadata_url(issuer)], oauth_metadata_urls(issuer).unwrap()].concat()
    }

    #[test]
    fn metadata_is_searched_where_either_standard_puts_it() {
        assert_eq!(
            metadata_urls("https://idp.example/realms/plant"),
            [
                "https://idp.example/realms/plant/.well-known/openid-configuration",
                "https://idp.example/.well-known/oauth-authorization-server/realms/plant",
                "https://idp.example/.well-known/openid-configuration/realms/plant",
            ]
        );
        for issuer in ["http://127.0.0.1:5710", "http://127.0.0.1:5710/"] {
            assert_eq!(
                metadata_urls(issuer),
                [
                    "http://127.0.0.1:5710/.well-known/openid-configuration",
                    "http://127.0.0.1:5710/.well-known/oauth-authorization-server",
                ]
            );
        }
        assert!(oauth_metadata_urls("plant").is_err());
    }

    #[test]
    fn metadata_of_another_issuer_is_refused() {
        let read = |issuer| {
            let text = format!(r#"{{"issuer": "{issuer}", "x": 1}}"#);
            parse_metadata::<Value>("https://a/", "u", text.as_bytes())
        };
        assert!(read("https://a/").is_ok());
        // The slash counts.
        assert!(read("https://a").is_err());
    }
}
