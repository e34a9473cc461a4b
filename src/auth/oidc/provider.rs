//! The provider: the code for tokens, and what it says of who signed in. With its folder the one place
//! that knows openidconnect.
mod endpoints;
mod id_token;

use super::Failed;
use super::login::Login;
use crate::fetch::{self, Missing};
use crate::mapping;
use endpoints::{Endpoints, undiscovered};
use id_token::{Expected, may_have_a_new_key, nobody, payload, untrusted, without_weak};
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
use penstock_base::fault::Fault;
use penstock_config::{self as config, Security};
use serde_json::{Map, Value};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// What was discovered is looked at anew after this time.
const FRESH: Duration = Duration::from_hours(1);
/// The same after an attempt that failed: those who come meanwhile do not wait for the next.
const AGAIN: Duration = Duration::from_secs(30);
/// Codes that are exchanged at once.
const EXCHANGES: usize = 16;

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
    EndpointNotSet,
>;

/// The provider as this gateway sees it.
#[derive(Debug)]
pub(super) struct Provider {
    http: Http,
    settings: config::Oidc,
    expected: Expected,
    clock: Clock,
    /// What was discovered, and until when it counts as fresh.
    known: Mutex<Option<(Arc<Endpoints>, Instant)>>,
    /// One discovery at a time; with the last failure, which those who waited for it share.
    discovering: tokio::sync::Mutex<Option<(Instant, Failed)>>,
    /// Strangers can have codes exchanged that are none: only so many at once.
    exchanging: Semaphore,
    /// The keys of late; one that is not among them is looked for once more.
    keys: Mutex<Option<CoreJsonWebKeySet>>,
}

/// What goes to the provider with the browser, and what stays.
pub(super) struct AuthorizationRequest {
    pub(super) location: String,
    pub(super) state: String,
    pub(super) nonce: String,
    pub(super) verifier: String,
}

/// What the code was exchanged for.
pub(super) struct Tokens {
    pub(super) id_token: String,
    /// Those of the ID token, and from the userinfo endpoint those that it lacks.
    pub(super) claims: Map<String, Value>,
}

impl Provider {
    pub(super) fn new(
        settings: &config::Oidc,
        security: &Security,
        clock: &Clock,
    ) -> Result<Self, Fault> {
        let issuer = settings.issuer_uri.clone().map(IssuerUrl::new);
        let algorithm = |name: &String| serde_json::from_value(Value::String(name.clone())).ok();
        Ok(Self {
            http: Http(fetch::client(security.ca_file.as_deref())?),
            expected: Expected {
                client_id: ClientId::new(settings.client_id.clone()),
                issuer: issuer.map(|url| url.expect("the configuration takes URLs alone")),
                algorithms: security.algorithms.iter().filter_map(algorithm).collect(),
            },
            settings: settings.clone(),
            clock: clock.clone(),
            known: Mutex::default(),
            discovering: tokio::sync::Mutex::default(),
            exchanging: Semaphore::new(EXCHANGES),
            keys: Mutex::default(),
        })
    }

    /// A new request for the browser to take along.
    pub(super) async fn authorize(
        &self,
        redirect_uri: &str,
    ) -> Result<AuthorizationRequest, Failed> {
        let endpoints = self.endpoints().await?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let scopes = self.settings.scopes.iter().cloned().map(Scope::new);
        let (url, state, nonce) = self
            .client(&endpoints, redirect_uri)?
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

    /// Checks the issuer that an answer names (RFC 9207, 2.4), as far as it is known.
    pub(super) async fn check_issuer(&self, named: Option<&str>) -> Result<(), Failed> {
        let Some(issuer) = &self.expected.issuer else { return Ok(()) };
        match named {
            Some(named) if named == issuer.as_str() => Ok(()),
            Some(_) => Err(Failed::Untrusted("the answer names another issuer (iss)".into())),
            None if self.endpoints().await?.names_issuer => {
                Err(Failed::Untrusted("the answer does not name its issuer (iss)".into()))
            }
            None => Ok(()),
        }
    }

    /// Exchanges the code, checks the ID token, and asks the userinfo endpoint for what is missing of
    /// the `wanted` pieces.
    pub(super) async fn exchange(
        &self,
        login: &Login,
        code: String,
        wanted: &[Vec<String>],
    ) -> Result<Tokens, Failed> {
        let Ok(_exchange) = self.exchanging.try_acquire() else {
            return Err(Failed::OutOfReach("too many sign-ins are under way at once".into()));
        };
        let endpoints = self.endpoints().await?;
        let response = self
            .client(&endpoints, &login.redirect_uri)?
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(login.verifier.clone()))
            .request_async(&self.http)
            .await
            .map_err(refused)?;
        let id_token = response
            .id_token()
            .ok_or_else(|| Failed::Untrusted("the token endpoint gave no ID token".into()))?;
        self.check(id_token, response.access_token(), &login.nonce, &endpoints).await?;
        let id_token = id_token.to_string();
        let mut claims = payload(&id_token)?;
        if let Some(url) = &endpoints.user_info
            && wanted.iter().any(|names| !mapping::is_there(names, &claims))
        {
            match self.user_info(url, response.access_token(), claims.get("sub")).await {
                Ok(more) => {
                    for (name, value) in more {
                        claims.entry(name).or_insert(value);
                    }
                }
                // Whether the claims of the ID token are enough shows where they are needed.
                Err(reason) => tracing::warn!(reason, "The userinfo endpoint told nothing."),
            }
        }
        Ok(Tokens { id_token, claims })
    }

    /// The address that ends the session at the provider.
    pub(super) async fn sign_out(&self, id_token: Option<&str>, after: &str) -> Option<String> {
        let url = self.endpoints().await.ok()?.end_session.clone()?;
        let mut request = LogoutRequest::from(url)
            .set_client_id(self.expected.client_id.clone())
            .set_post_logout_redirect_uri(PostLogoutRedirectUrl::new(after.to_owned()).ok()?);
        if let Some(token) = id_token.and_then(|token| token.parse::<CoreIdToken>().ok()) {
            request = request.set_id_token_hint(&token);
        }
        Some(request.http_get_url().to_string())
    }

    /// The origin of that address, as far as the provider has been discovered.
    pub(super) fn sign_out_origin(&self) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (endpoints, _) = known.as_ref()?;
        Some(endpoints.end_session.as_ref()?.url().origin().ascii_serialization())
    }

    fn client(&self, endpoints: &Endpoints, redirect_uri: &str) -> Result<Client, Failed> {
        let redirect_uri = RedirectUrl::new(redirect_uri.to_owned())
            .map_err(|error| Failed::Untrusted(format!("the redirect URI is no URL: {error}")))?;
        // ID tokens are checked by `Expected`; the client itself needs neither issuer nor keys.
        let issuer = self.expected.issuer.clone().unwrap_or_else(nobody);
        let no_keys = CoreJsonWebKeySet::new(Vec::new());
        Ok(CoreClient::new(self.expected.client_id.clone(), issuer, no_keys)
            .disable_openid_scope()
            .set_client_secret(ClientSecret::new(self.settings.client_secret.clone()))
            .set_auth_type(endpoints.auth_type.clone())
            .set_redirect_uri(redirect_uri)
            .set_auth_uri(endpoints.authorization.clone())
            .set_token_uri(endpoints.token.clone()))
    }

    /// Checks an ID token, with new keys when it is signed with one that is not known.
    async fn check(
        &self,
        id_token: &CoreIdToken,
        access_token: &AccessToken,
        nonce: &str,
        endpoints: &Endpoints,
    ) -> Result<(), Failed> {
        let nonce = Nonce::new(nonce.to_owned());
        let with = (access_token, &nonce, self.clock.now().as_second());
        let known = self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(keys) = known {
            match self.expected.check(id_token, with, keys) {
                Err(error) if may_have_a_new_key(&error) => {}
                checked => return checked.map_err(|error| untrusted(&error)),
            }
        }
        let fetched = CoreJsonWebKeySet::fetch_async(&endpoints.keys, &self.http).await;
        let keys = without_weak(&fetched.map_err(undiscovered)?);
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys.clone());
        self.expected.check(id_token, with, keys).map_err(|error| untrusted(&error))
    }

    async fn user_info(
        &self,
        url: &str,
        token: &AccessToken,
        subject: Option<&Value>,
    ) -> Result<Map<String, Value>, String> {
        let request =
            self.http.0.get(url).bearer_auth(token.secret()).header("accept", "application/json");
        let request = request.build().map_err(|error| error.to_string())?;
        let answer =
            fetch::send(&self.http.0, request).await.map_err(|missing| missing.to_string())?;
        if !answer.status.is_success() {
            return Err(format!("{url} answered {}", answer.status));
        }
        let claims: Map<String, Value> = serde_json::from_slice(&answer.body)
            .map_err(|_| format!("{url} answered something else than a JSON object"))?;
        // OpenID Connect Core 1.0, 5.3.2
        if claims.get("sub") != subject {
            return Err(format!("{url} speaks of another subject than the ID token"));
        }
        Ok(claims)
    }

    /// Where the provider answers what, discovered when there is an issuer. A provider that is out of
    /// reach later on is taken to be as it was.
    async fn endpoints(&self) -> Result<Arc<Endpoints>, Failed> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let keep = |endpoints: Arc<Endpoints>, time| {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            *known = Some((endpoints.clone(), Instant::now() + time));
            endpoints
        };
        let fresh = |(endpoints, until): (Arc<Endpoints>, Instant)| {
            (Instant::now() < until).then_some(endpoints)
        };
        if let Some(endpoints) = known().and_then(fresh) {
            return Ok(endpoints);
        }
        let asked = Instant::now();
        let mut last = self.discovering.lock().await;
        if let Some(endpoints) = known().and_then(fresh) {
            return Ok(endpoints);
        }
        if let Some((failed_at, failed)) = &*last
            && *failed_at >= asked
        {
            return Err(failed.clone());
        }
        match self.discover().await {
            Ok(endpoints) => Ok(keep(Arc::new(endpoints), FRESH)),
            Err(failed) => {
                let Some((endpoints, _)) = known() else {
                    *last = Some((Instant::now(), failed.clone()));
                    return Err(failed);
                };
                tracing::warn!(%failed, "The provider was not discovered anew.");
                Ok(keep(endpoints, AGAIN))
            }
        }
    }

    async fn discover(&self) -> Result<Endpoints, Failed> {
        let Some(issuer) = &self.expected.issuer else {
            return Ok(Endpoints::given(&self.settings));
        };
        let (endpoints, keys) = Endpoints::discover(issuer, &self.settings, &self.http).await?;
        if self.settings.jwk_set_uri.is_none() {
            *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = Some(without_weak(&keys));
        }
        Ok(endpoints)
    }
}

/// What openidconnect sends its requests with: the bounds of `fetch` hold for them, too.
#[derive(Debug)]
struct Http(reqwest::Client);

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = Missing;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Missing>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(async move {
            let unable = |error: &dyn std::fmt::Display| Missing::OutOfReach(error.to_string());
            let request = request.try_into().map_err(|error: reqwest::Error| unable(&error))?;
            let answer = fetch::send(&self.0, request).await?;
            let mut response = openidconnect::http::Response::builder().status(answer.status);
            if let Some(media_type) = answer.media_type {
                response = response.header("content-type", media_type);
            }
            response.body(answer.body).map_err(|error| unable(&error))
        })
    }
}

/// Why the token endpoint gave no tokens. What it answered is not repeated: there may be tokens in it.
fn refused(
    error: RequestTokenError<Missing, StandardErrorResponse<CoreErrorResponseType>>,
) -> Failed {
    match error {
        RequestTokenError::Request(missing) => Failed::OutOfReach(missing.to_string()),
        RequestTokenError::ServerResponse(answer) => match answer.error() {
            CoreErrorResponseType::InvalidGrant => {
                Failed::Stale("the provider does not take its code")
            }
            error => Failed::Untrusted(format!(
                "the token endpoint refuses this gateway: {}; check the client id and secret",
                error.as_ref()
            )),
        },
        RequestTokenError::Parse(error, _) => Failed::Untrusted(format!(
            "the token endpoint's answer cannot be read at {}",
            error.path()
        )),
        RequestTokenError::Other(words) => {
            Failed::Untrusted(format!("the token endpoint: {words}"))
        }
    }
}

#[cfg(test)]
mod tests;
