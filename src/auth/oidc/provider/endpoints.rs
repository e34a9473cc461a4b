//! The endpoints of a provider: configured, or discovered (OpenID Connect Discovery 1.0, 4).
use super::super::sign_in_error::SignInError;
use crate::discovery::{self, DiscoveryError};
use crate::fetch::FetchError;
use openidconnect::core::{
    CoreAuthDisplay, CoreClaimName, CoreClaimType, CoreClientAuthMethod, CoreGrantType,
    CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm,
    CoreResponseMode, CoreResponseType, CoreSubjectIdentifierType,
};
use openidconnect::{
    AdditionalProviderMetadata, AuthType, AuthUrl, EndSessionUrl, IssuerUrl, ProviderMetadata,
    TokenUrl,
};
use penstock_config::{self as config, ClientAuthentication, is_endpoint};
use reqwest::Client;
use serde::{Deserialize, Serialize};

type Metadata = ProviderMetadata<
    ExtraMetadata,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

/// Metadata beyond OpenID Connect Discovery 1.0.
#[derive(Debug, Clone, Deserialize, Serialize)]
struct ExtraMetadata {
    /// RP-Initiated Logout 1.0, 2.1
    end_session_endpoint: Option<EndSessionUrl>,
    /// RFC 9207, 3
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for ExtraMetadata {}

/// The endpoints of the provider.
#[derive(Debug)]
pub(super) struct Endpoints {
    pub(super) authorization: AuthUrl,
    pub(super) token: TokenUrl,
    pub(super) keys: String,
    pub(super) user_info: Option<String>,
    pub(super) end_session: Option<EndSessionUrl>,
    /// Whether each answer names the issuer (RFC 9207).
    pub(super) names_issuer: bool,
    /// How the gateway sends the client secret to the token endpoint.
    pub(super) auth_type: AuthType,
}

impl Endpoints {
    /// Returns the configured endpoints, without discovery. The configuration requires them when there is no issuer.
    pub(super) fn from_settings(settings: &config::Oidc) -> Self {
        const URLS: &str =
            "without an issuer the configuration requires them, and accepts only URLs";
        let text = |url: &Option<String>| url.clone().expect(URLS);
        Self {
            authorization: AuthUrl::new(text(&settings.authorization_uri)).expect(URLS),
            token: TokenUrl::new(text(&settings.token_uri)).expect(URLS),
            keys: text(&settings.jwk_set_uri),
            user_info: settings.user_info_uri.clone(),
            end_session: None,
            names_issuer: false,
            auth_type: select_auth_type(settings, ClientAuthentication::Basic),
        }
    }

    /// Discovers the endpoints of an issuer. Configured endpoints take precedence.
    pub(super) async fn discover(
        issuer: &IssuerUrl,
        settings: &config::Oidc,
        client: &Client,
    ) -> Result<Self, SignInError> {
        let fetched = discovery::fetch_openid_metadata(client, issuer).await;
        let metadata: Metadata = fetched.map_err(discovery_error)?;
        let own = |given: &Option<String>, found: Option<&String>| {
            let url = given.as_ref().or(found).cloned();
            url.filter(|url| is_endpoint(url)).ok_or_else(|| {
                let words = "names an endpoint that is not an https URL, or lacks one";
                SignInError::Untrusted(format!("{} {words}", **issuer))
            })
        };
        let url = |error: openidconnect::url::ParseError| SignInError::Untrusted(error.to_string());
        let authorization = Some(&**metadata.authorization_endpoint());
        let token = metadata.token_endpoint().map(|url| &**url);
        let user_info = metadata.userinfo_endpoint().map(|url| &**url);
        let takes = |method| {
            metadata.token_endpoint_auth_methods_supported().is_none_or(|all| all.contains(&method))
        };
        let in_body = !takes(CoreClientAuthMethod::ClientSecretBasic)
            && takes(CoreClientAuthMethod::ClientSecretPost);
        let more = metadata.additional_metadata();
        let end_session = more.end_session_endpoint.clone();
        Ok(Self {
            authorization: AuthUrl::new(own(&settings.authorization_uri, authorization)?)
                .map_err(url)?,
            token: TokenUrl::new(own(&settings.token_uri, token)?).map_err(url)?,
            keys: own(&settings.jwk_set_uri, Some(metadata.jwks_uri()))?,
            user_info: own(&settings.user_info_uri, user_info).ok(),
            end_session: end_session.filter(|url| is_endpoint(url)),
            names_issuer: more.authorization_response_iss_parameter_supported,
            auth_type: select_auth_type(
                settings,
                if in_body { ClientAuthentication::Post } else { ClientAuthentication::Basic },
            ),
        })
    }
}

/// Returns how the gateway sends the client secret to the token endpoint: as configured, or else as `otherwise`.
fn select_auth_type(settings: &config::Oidc, otherwise: ClientAuthentication) -> AuthType {
    match settings.client_authentication.unwrap_or(otherwise) {
        ClientAuthentication::Basic => AuthType::BasicAuth,
        ClientAuthentication::Post => AuthType::RequestBody,
    }
}

/// Converts an error of discovery, or of fetching the keys.
pub(super) fn discovery_error(error: DiscoveryError) -> SignInError {
    match error {
        DiscoveryError::Fetch(error @ FetchError::Unreachable(_)) => {
            SignInError::Unreachable(error.to_string())
        }
        DiscoveryError::Fetch(FetchError::NotFound { url, status }) => {
            SignInError::Untrusted(format!("discovery was answered with {status}: {url}"))
        }
        DiscoveryError::Unreadable { cause, .. } => SignInError::Untrusted(format!(
            "the provider's metadata or keys cannot be read: {cause}"
        )),
        error @ DiscoveryError::WrongIssuer(_) => SignInError::Untrusted(error.to_string()),
    }
}
