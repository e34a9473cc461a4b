//! The provider: exchanges the code for tokens, and reads the claims of the person who signed in. Only this file and
//! its folder use openidconnect.
mod endpoints;
mod id_token;

use super::login::LoginState;
use super::sign_in_error::SignInError;
use crate::discovery::{self, Cache, Cached};
use crate::fetch::{self, FetchError};
use crate::mapping;
use endpoints::{Endpoints, discovery_error};
use id_token::{
    ExpectedIdToken, decode_claims, id_token_error, keys_may_have_changed, placeholder_issuer,
    remove_weak_keys,
};
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreErrorResponseType, CoreIdToken, CoreJsonWebKeySet,
};
use openidconnect::{
    AccessToken, AsyncHttpClient, AuthorizationCode, ClientId, ClientSecret, CsrfToken,
    EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IssuerUrl, LogoutRequest, Nonce,
    OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, PostLogoutRedirectUrl, RedirectUrl,
    RequestTokenError, Scope, StandardErrorResponse, TokenResponse,
};
use penstock_base::clock::Clock;
use penstock_base::error::GatewayError;
use penstock_base::network;
use penstock_base::permits::Permits;
use penstock_config::{self as config, Security};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How long discovered endpoints are used before they are discovered again.
const REDISCOVERY_INTERVAL: Duration = Duration::from_hours(1);
/// The interval after a failed rediscovery. Until it ends, sign-ins use the known endpoints and do not wait.
const REDISCOVERY_RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// The maximum number of concurrent code exchanges in total, and for each address (for IPv6 its /64). Behind NAT or a proxy
/// that is not trusted, all people of a plant have one address. So its share, with the wait for it, must suffice for the
/// beginning of a shift.
const MAX_CONCURRENT_EXCHANGES: u64 = 32;
const MAX_CONCURRENT_EXCHANGES_PER_ADDRESS: u64 = 8;
/// The maximum time that a sign-in waits for its exchange.
const EXCHANGE_PERMIT_TIMEOUT: Duration =
    Duration::from_millis(if cfg!(test) { 50 } else { 5_000 });

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
    EndpointNotSet,
>;

/// The configured provider.
#[derive(Debug)]
pub(super) struct Provider {
    http: Http,
    settings: config::Oidc,
    expected: ExpectedIdToken,
    clock: Clock,
    endpoints: Cache<Arc<Endpoints>, SignInError>,
    /// Fetched at each discovery, and for a token with an unknown key.
    keys: Cache<Arc<CoreJsonWebKeySet>, SignInError>,
    /// Limits the concurrent exchanges, because unauthenticated clients can send invalid codes. Each address has a share,
    /// so that one client does not keep the others from signing in.
    exchange_permits: Permits<Option<IpAddr>>,
}

/// An authorization request: the address for the browser, and the state that the gateway needs later.
pub(super) struct AuthorizationRequest {
    pub(super) location: String,
    pub(super) state: String,
    pub(super) nonce: String,
    pub(super) verifier: String,
}

/// The result of a code exchange.
pub(super) struct ExchangedTokens {
    pub(super) id_token: String,
    /// The claims of the ID token, and those of the userinfo endpoint that it lacks.
    pub(super) claims: Map<String, Value>,
}

impl Provider {
    pub(super) fn new(
        settings: &config::Oidc,
        security: &Security,
        clock: &Clock,
    ) -> Result<Self, GatewayError> {
        let issuer = settings.issuer_uri.clone().map(IssuerUrl::new);
        let algorithm = |name: &String| serde_json::from_value(Value::String(name.clone())).ok();
        Ok(Self {
            http: Http(fetch::build_client(security.ca_file.as_deref())?),
            expected: ExpectedIdToken {
                client_id: ClientId::new(settings.client_id.clone()),
                issuer: issuer.map(|url| url.expect("the configuration accepts only URLs")),
                algorithms: security.algorithms.iter().filter_map(algorithm).collect(),
            },
            settings: settings.clone(),
            clock: clock.clone(),
            endpoints: Cache::new(None),
            keys: Cache::new(None),
            exchange_permits: Permits::new(
                MAX_CONCURRENT_EXCHANGES,
                MAX_CONCURRENT_EXCHANGES_PER_ADDRESS,
            ),
        })
    }

    /// Creates an authorization request for the browser.
    pub(super) async fn create_authorization(
        &self,
        redirect_uri: &str,
    ) -> Result<AuthorizationRequest, SignInError> {
        let endpoints = self.current_endpoints().await?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let scopes = self.settings.scopes.iter().cloned().map(Scope::new);
        let (url, state, nonce) = self
            .build_client(&endpoints, redirect_uri)?
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                CsrfToken::new_random,
                Nonce::new_random,
            )
            .add_scopes(scopes)
            .set_pkce_challenge(challenge)
            .url();
        Ok(AuthorizationRequest {
            location: url.to_string(),
            state: state.secret().clone(),
            nonce: nonce.secret().clone(),
            verifier: verifier.secret().clone(),
        })
    }

    /// Checks the issuer that an answer names (RFC 9207, 2.4), if the issuer is configured.
    pub(super) async fn check_issuer(&self, named: Option<&str>) -> Result<(), SignInError> {
        let Some(issuer) = &self.expected.issuer else { return Ok(()) };
        match named {
            Some(named) if named == issuer.as_str() => Ok(()),
            Some(_) => Err(SignInError::Untrusted("the answer names another issuer (iss)".into())),
            None if self.current_endpoints().await?.names_issuer => {
                Err(SignInError::Untrusted("the answer does not name its issuer (iss)".into()))
            }
            None => Ok(()),
        }
    }

    /// Exchanges the code that a client at the address `from` sent, and checks the ID token. Each item of `wanted` has
    /// alternative claims for one field. If a field has none of its claims, queries the userinfo endpoint too.
    pub(super) async fn exchange_code(
        &self,
        login: &LoginState,
        code: String,
        wanted: &[Vec<String>],
        from: Option<IpAddr>,
    ) -> Result<ExchangedTokens, SignInError> {
        let permit = self.exchange_permits.acquire(from.map(network::network_of));
        let Ok(_exchange) = tokio::time::timeout(EXCHANGE_PERMIT_TIMEOUT, permit).await else {
            return Err(SignInError::Busy { waited: EXCHANGE_PERMIT_TIMEOUT });
        };
        let endpoints = self.current_endpoints().await?;
        let response = self
            .build_client(&endpoints, &login.redirect_uri)?
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(login.verifier.clone()))
            .request_async(&self.http)
            .await
            .map_err(token_endpoint_error)?;
        let id_token = response.id_token().ok_or_else(|| {
            SignInError::Untrusted("the token endpoint returned no ID token".into())
        })?;
        self.check_id_token(id_token, response.access_token(), &login.nonce, &endpoints).await?;
        let id_token = id_token.to_string();
        let mut claims = decode_claims(&id_token)?;
        if let Some(url) = &endpoints.user_info
            && wanted.iter().any(|names| !mapping::has_claim(names, &claims))
        {
            match self.fetch_user_info(url, response.access_token(), claims.get("sub")).await {
                Ok(more) => add_missing_claims(&mut claims, more),
                // The caller checks whether the claims of the ID token suffice.
                Err(reason) => tracing::warn!(reason, "The userinfo endpoint returned no claims."),
            }
        }
        Ok(ExchangedTokens { id_token, claims })
    }

    /// Returns the address that ends the session at the provider.
    pub(super) async fn sign_out_url(&self, id_token: Option<&str>, after: &str) -> Option<String> {
        let url = self.current_endpoints().await.ok()?.end_session.clone()?;
        let mut request = LogoutRequest::from(url)
            .set_client_id(self.expected.client_id.clone())
            .set_post_logout_redirect_uri(PostLogoutRedirectUrl::new(after.to_owned()).ok()?);
        if let Some(token) = id_token.and_then(|token| token.parse::<CoreIdToken>().ok()) {
            request = request.set_id_token_hint(&token);
        }
        Some(request.http_get_url().to_string())
    }

    /// Returns the origin of the address of [`Self::sign_out_url`], if the provider has been discovered.
    pub(super) fn sign_out_origin(&self) -> Option<String> {
        let known = self.endpoints.current();
        let endpoints = known.value.as_ref()?;
        Some(endpoints.end_session.as_ref()?.url().origin().ascii_serialization())
    }

    fn build_client(
        &self,
        endpoints: &Endpoints,
        redirect_uri: &str,
    ) -> Result<Client, SignInError> {
        let redirect_uri = RedirectUrl::new(redirect_uri.to_owned()).map_err(|error| {
            SignInError::Untrusted(format!("the redirect URI is not a URL: {error}"))
        })?;
        // `ExpectedIdToken` checks ID tokens, so the client needs neither the issuer nor keys.
        let issuer = self.expected.issuer.clone().unwrap_or_else(placeholder_issuer);
        let no_keys = CoreJsonWebKeySet::new(Vec::new());
        Ok(CoreClient::new(self.expected.client_id.clone(), issuer, no_keys)
            .disable_openid_scope()
            .set_client_secret(ClientSecret::new(self.settings.client_secret.clone()))
            .set_auth_type(endpoints.auth_type.clone())
            .set_redirect_uri(redirect_uri)
            .set_auth_uri(endpoints.authorization.clone())
            .set_token_uri(endpoints.token.clone()))
    }

    /// Checks an ID token. Fetches the keys again if it is signed with an unknown one.
    async fn check_id_token(
        &self,
        id_token: &CoreIdToken,
        access_token: &AccessToken,
        nonce: &str,
        endpoints: &Endpoints,
    ) -> Result<(), SignInError> {
        let nonce = Nonce::new(nonce.to_owned());
        let with = (access_token, &nonce, self.clock.now().as_second());
        let known = self.keys.current();
        if let Some(keys) = &known.value {
            match self.expected.verify_id_token(id_token, with, keys) {
                Err(error) if keys_may_have_changed(&error) => {}
                checked => return checked.map_err(|error| id_token_error(&error)),
            }
        }
        let keys = self.fetch_keys(&known, endpoints).await?;
        self.expected.verify_id_token(id_token, with, &keys).map_err(|error| id_token_error(&error))
    }

    /// Fetches the keys, unless another sign-in has fetched them since `known` was read.
    async fn fetch_keys(
        &self,
        known: &Cached<Arc<CoreJsonWebKeySet>, SignInError>,
        endpoints: &Endpoints,
    ) -> Result<Arc<CoreJsonWebKeySet>, SignInError> {
        let fetching = async {
            let fetched = discovery::fetch_json(&self.http.0, &endpoints.keys).await;
            Ok(Arc::new(remove_weak_keys(&fetched.map_err(discovery_error)?)))
        };
        self.keys.refresh(known, fetching).await
    }

    async fn fetch_user_info(
        &self,
        url: &str,
        token: &AccessToken,
        subject: Option<&Value>,
    ) -> Result<Map<String, Value>, String> {
        let request =
            self.http.0.get(url).bearer_auth(token.secret()).header("accept", "application/json");
        let request = request.build().map_err(|error| error.to_string())?;
        let answer =
            fetch::send_request(&self.http.0, request).await.map_err(|error| error.to_string())?;
        if !answer.status.is_success() {
            return Err(format!("{url} answered {}", answer.status));
        }
        let claims: Map<String, Value> = serde_json::from_slice(&answer.body)
            .map_err(|_| format!("{url} did not answer with a JSON object"))?;
        // OpenID Connect Core 1.0, 5.3.2
        if claims.get("sub") != subject {
            return Err(format!("{url} has another subject (sub) than the ID token"));
        }
        Ok(claims)
    }

    /// Returns the endpoints, discovered if there is an issuer. If the provider becomes unreachable later, the last
    /// known endpoints are used.
    async fn current_endpoints(&self) -> Result<Arc<Endpoints>, SignInError> {
        let seen = self.endpoints.current();
        let wait = seen.time_to_refresh(REDISCOVERY_INTERVAL, REDISCOVERY_RETRY_INTERVAL);
        let known = seen.value.clone();
        if let Some(endpoints) = known.clone().filter(|_| !wait.is_zero()) {
            return Ok(endpoints);
        }
        let discovering = async {
            let discovered = self.discover_endpoints().await;
            if let (Err(failed), Some(_)) = (&discovered, &known) {
                tracing::warn!(%failed, "Rediscovering the provider failed; the gateway uses the endpoints discovered before.");
            }
            discovered
        };
        match (self.endpoints.refresh(&seen, discovering).await, known) {
            (Err(_), Some(known)) => Ok(known),
            (discovered, _) => discovered,
        }
    }

    async fn discover_endpoints(&self) -> Result<Arc<Endpoints>, SignInError> {
        let Some(issuer) = &self.expected.issuer else {
            return Ok(Arc::new(Endpoints::from_settings(&self.settings)));
        };
        let endpoints = Endpoints::discover(issuer, &self.settings, &self.http.0).await?;
        if self.settings.jwk_set_uri.is_none() {
            self.fetch_keys(&self.keys.current(), &endpoints).await?;
        }
        Ok(Arc::new(endpoints))
    }
}

/// Adds the claims of the userinfo endpoint that the ID token lacks, also inside claims that are objects. A claim that is
/// `null` in the ID token is missing.
fn add_missing_claims(claims: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (claims.entry(name).or_insert(Value::Null), value) {
            (Value::Object(known), Value::Object(more)) => add_missing_claims(known, more),
            (known, value) if known.is_null() => *known = value,
            _ => {}
        }
    }
}

/// The HTTP client of openidconnect, with the same limits as `fetch`.
#[derive(Debug)]
struct Http(reqwest::Client);

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = FetchError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, FetchError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(async move {
            let unable = |error: &dyn std::fmt::Display| FetchError::Unreachable(error.to_string());
            let request = request.try_into().map_err(|error: reqwest::Error| unable(&error))?;
            let answer = fetch::send_request(&self.0, request).await?;
            let mut response = openidconnect::http::Response::builder().status(answer.status);
            if let Some(media_type) = answer.media_type {
                response = response.header("content-type", media_type);
            }
            response.body(answer.body).map_err(|error| unable(&error))
        })
    }
}

/// Converts an error of the token endpoint. Its answer is not quoted, because it may contain tokens.
fn token_endpoint_error(
    error: RequestTokenError<FetchError, StandardErrorResponse<CoreErrorResponseType>>,
) -> SignInError {
    match error {
        RequestTokenError::Request(error) => SignInError::Unreachable(error.to_string()),
        RequestTokenError::ServerResponse(answer) => match answer.error() {
            CoreErrorResponseType::InvalidGrant => {
                SignInError::Stale("the provider rejects its code")
            }
            error => SignInError::Untrusted(format!(
                "the token endpoint rejects this gateway: {}; check the client id and secret",
                error.as_ref()
            )),
        },
        RequestTokenError::Parse(error, _) => SignInError::Untrusted(format!(
            "the token endpoint's answer cannot be read at {}",
            error.path()
        )),
        RequestTokenError::Other(detail) => {
            SignInError::Untrusted(format!("the token endpoint: {detail}"))
        }
    }
}

#[cfg(test)]
mod tests;
