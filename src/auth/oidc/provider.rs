//! The provider: its endpoints and keys, the code for tokens, and whether an ID token holds. The one
//! file that knows openidconnect.
use super::Failed;
use super::login::Login;
use crate::auth::{fetch, mapping};
use crate::clock::Clock;
use crate::config::{self, Security};
use crate::fault::Fault;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fetch::Missing;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthenticationFlow, CoreClaimName, CoreClaimType, CoreClient,
    CoreClientAuthMethod, CoreErrorResponseType, CoreGrantType, CoreIdToken, CoreIdTokenVerifier,
    CoreJsonWebKey, CoreJsonWebKeySet, CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm, CoreJwsSigningAlgorithm, CoreResponseMode, CoreResponseType,
    CoreSubjectIdentifierType, CoreTokenResponse,
};
use openidconnect::{
    AccessToken, AccessTokenHash, AdditionalProviderMetadata, AsyncHttpClient, AuthType, AuthUrl,
    AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken, DiscoveryError,
    EndSessionUrl, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IssuerUrl,
    JsonWebKeySetUrl, LogoutRequest, Nonce, OAuth2TokenResponse, PkceCodeChallenge,
    PkceCodeVerifier, PostLogoutRedirectUrl, ProviderMetadata, RedirectUrl, RequestTokenError,
    Scope, SignatureVerificationError, TokenResponse, TokenUrl,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What was discovered is looked at anew after this time.
const FRESH: Duration = Duration::from_hours(1);
/// How far the provider's clock and this one may be apart.
const LEEWAY: chrono::TimeDelta = chrono::TimeDelta::seconds(60);

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
    EndpointNotSet,
>;
type Metadata = ProviderMetadata<
    More,
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

/// What discovery gives beyond OpenID Connect Discovery 1.0.
#[derive(Debug, Clone, Deserialize, Serialize)]
struct More {
    /// RP-Initiated Logout 1.0, 2.1
    end_session_endpoint: Option<EndSessionUrl>,
    /// RFC 9207, 3
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for More {}

/// The provider as this gateway sees it.
#[derive(Debug)]
pub(super) struct Provider {
    http: Http,
    settings: config::Oidc,
    issuer: Option<IssuerUrl>,
    algorithms: Vec<CoreJwsSigningAlgorithm>,
    clock: Clock,
    known: Mutex<Option<(Arc<Endpoints>, Instant)>>,
    /// One discovery at a time; with the last failure, which those who waited for it share.
    discovering: tokio::sync::Mutex<Option<(Instant, Failed)>>,
    /// The keys of late; one that is not among them is looked for once more.
    keys: Mutex<Option<CoreJsonWebKeySet>>,
}

/// Where the provider answers what.
#[derive(Debug)]
struct Endpoints {
    authorization: AuthUrl,
    token: TokenUrl,
    keys: JsonWebKeySetUrl,
    user_info: Option<String>,
    end_session: Option<EndSessionUrl>,
    /// Whether each answer names the issuer (RFC 9207).
    names_issuer: bool,
    /// How the token endpoint wants the secret.
    auth_type: AuthType,
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
        let algorithm = |name: &String| serde_json::from_value(Value::String(name.clone())).ok();
        Ok(Self {
            http: Http(fetch::client(security.ca_file.as_deref())?),
            issuer: settings
                .issuer_uri
                .clone()
                .map(|url| IssuerUrl::new(url).expect("the configuration takes URLs alone")),
            algorithms: security.algorithms.iter().filter_map(algorithm).collect(),
            settings: settings.clone(),
            clock: clock.clone(),
            known: Mutex::default(),
            discovering: tokio::sync::Mutex::default(),
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
        let Some(issuer) = &self.issuer else { return Ok(()) };
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
        let endpoints = self.endpoints().await?;
        let client = self.client(&endpoints, &login.redirect_uri)?;
        let response = client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(login.verifier.clone()))
            .request_async(&self.http)
            .await
            .map_err(refused)?;
        let id_token = response
            .id_token()
            .ok_or_else(|| Failed::Untrusted("the token endpoint gave no ID token".into()))?;
        let nonce = Nonce::new(login.nonce.clone());
        let keys = self.keys(&endpoints, false).await?;
        if let Err(error) = self.check(&response, id_token, &nonce, keys) {
            if !may_be_a_new_key(&error) {
                return Err(Failed::Untrusted(words(&error)));
            }
            let keys = self.keys(&endpoints, true).await?;
            let checked = self.check(&response, id_token, &nonce, keys);
            checked.map_err(|error| Failed::Untrusted(words(&error)))?;
        }
        let id_token = id_token.to_string();
        let mut claims = payload(&id_token)?;
        let lacks = |names: &Vec<String>| !mapping::is_there(names, &claims);
        if let Some(url) = &endpoints.user_info
            && wanted.iter().any(lacks)
        {
            match self.user_info(url, response.access_token(), claims.get("sub")).await {
                Ok(more) => {
                    for (name, value) in more {
                        claims.entry(name).or_insert(value);
                    }
                }
                // Whether the claims of the ID token are enough shows where they are needed.
                Err(error) => tracing::warn!(%error, "The userinfo endpoint told nothing."),
            }
        }
        Ok(Tokens { id_token, claims })
    }

    /// The address that ends the session at the provider.
    pub(super) async fn sign_out(&self, id_token: Option<&str>, after: &str) -> Option<String> {
        let url = self.endpoints().await.ok()?.end_session.clone()?;
        let mut request = LogoutRequest::from(url)
            .set_client_id(ClientId::new(self.settings.client_id.clone()))
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
        // ID tokens are checked by `verifier`; the client itself needs neither issuer nor keys.
        let issuer = self.issuer.clone().unwrap_or_else(nobody);
        Ok(CoreClient::new(
            ClientId::new(self.settings.client_id.clone()),
            issuer,
            CoreJsonWebKeySet::new(Vec::new()),
        )
        .disable_openid_scope()
        .set_client_secret(ClientSecret::new(self.settings.client_secret.clone()))
        .set_auth_type(endpoints.auth_type.clone())
        .set_redirect_uri(redirect_uri)
        .set_auth_uri(endpoints.authorization.clone())
        .set_token_uri(endpoints.token.clone()))
    }

    /// Checks an ID token (OpenID Connect Core 1.0, 3.1.3.7 and 3.1.3.8).
    fn check(
        &self,
        response: &CoreTokenResponse,
        id_token: &CoreIdToken,
        nonce: &Nonce,
        keys: CoreJsonWebKeySet,
    ) -> Result<(), ClaimsVerificationError> {
        let client_id = ClientId::new(self.settings.client_id.clone());
        let now = self.clock.now().as_second();
        let now = chrono::DateTime::from_timestamp(now, 0).unwrap_or_default() - LEEWAY;
        // Without the client's secret the verifier takes no signature by a shared secret.
        let verifier = CoreIdTokenVerifier::new_public_client(
            client_id.clone(),
            self.issuer.clone().unwrap_or_else(nobody),
            keys,
        )
        .set_allowed_algs(self.algorithms.iter().cloned())
        .require_issuer_match(self.issuer.is_some())
        .set_time_fn(move || now);
        let claims = id_token.claims(&verifier, nonce)?;
        if claims.authorized_party().is_some_and(|party| *party != client_id) {
            let words = "it was made for another client (azp)";
            return Err(ClaimsVerificationError::InvalidAudience(words.to_owned()));
        }
        if let Some(expected) = claims.access_token_hash() {
            check_hash(response.access_token(), id_token, &verifier, expected)?;
        }
        Ok(())
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

    /// The keys; `anew` when a token is signed with one that is not among them.
    async fn keys(&self, endpoints: &Endpoints, anew: bool) -> Result<CoreJsonWebKeySet, Failed> {
        if !anew && let Some(keys) = &*self.keys.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(keys.clone());
        }
        let keys = CoreJsonWebKeySet::fetch_async(&endpoints.keys, &self.http)
            .await
            .map_err(undiscovered)?;
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys.clone());
        Ok(keys)
    }

    /// Where the provider answers what, discovered when there is an issuer. A provider that is out of
    /// reach later on is taken to be as it was.
    async fn endpoints(&self) -> Result<Arc<Endpoints>, Failed> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let fresh = |(endpoints, since): (Arc<Endpoints>, Instant)| {
            (since.elapsed() < FRESH).then_some(endpoints)
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
        let discovered = match &self.issuer {
            Some(issuer) => self.discover(issuer).await,
            None => Ok(self.given()),
        };
        match discovered {
            Ok(endpoints) => {
                let endpoints = Arc::new(endpoints);
                let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                *known = Some((endpoints.clone(), Instant::now()));
                Ok(endpoints)
            }
            Err(failed) => match known() {
                Some((endpoints, _)) => {
                    tracing::warn!(%failed, "The provider was not discovered anew.");
                    Ok(endpoints)
                }
                None => {
                    *last = Some((Instant::now(), failed.clone()));
                    Err(failed)
                }
            },
        }
    }

    /// The endpoints of the configuration alone, which requires them when there is no issuer.
    fn given(&self) -> Endpoints {
        const URLS: &str =
            "without an issuer the configuration requires them, and takes URLs alone";
        let settings = &self.settings;
        let text = |url: &Option<String>| url.clone().expect(URLS);
        Endpoints {
            authorization: AuthUrl::new(text(&settings.authorization_uri)).expect(URLS),
            token: TokenUrl::new(text(&settings.token_uri)).expect(URLS),
            keys: JsonWebKeySetUrl::new(text(&settings.jwk_set_uri)).expect(URLS),
            user_info: settings.user_info_uri.clone(),
            end_session: None,
            names_issuer: false,
            auth_type: AuthType::BasicAuth,
        }
    }

    async fn discover(&self, issuer: &IssuerUrl) -> Result<Endpoints, Failed> {
        let metadata =
            Metadata::discover_async(issuer.clone(), &self.http).await.map_err(undiscovered)?;
        let own = |given: &Option<String>, found: Option<&String>| {
            let url = given.as_ref().or(found).cloned();
            let url = url.filter(|url| config::Kind::Endpoint.accepts(url));
            url.ok_or_else(|| {
                Failed::Untrusted(format!(
                    "{} names an endpoint that is no https URL, or lacks one",
                    **issuer
                ))
            })
        };
        let settings = &self.settings;
        let url = |error: openidconnect::url::ParseError| Failed::Untrusted(error.to_string());
        let authorization =
            own(&settings.authorization_uri, Some(metadata.authorization_endpoint()))?;
        let token = own(&settings.token_uri, metadata.token_endpoint().map(|url| &**url))?;
        let keys = own(&settings.jwk_set_uri, Some(metadata.jwks_uri()))?;
        let found = metadata.userinfo_endpoint().map(|url| &**url);
        let user_info = own(&settings.user_info_uri, found).ok();
        let takes = |method| {
            metadata.token_endpoint_auth_methods_supported().is_none_or(|all| all.contains(&method))
        };
        let auth_type = if takes(CoreClientAuthMethod::ClientSecretBasic)
            || !takes(CoreClientAuthMethod::ClientSecretPost)
        {
            AuthType::BasicAuth
        } else {
            AuthType::RequestBody
        };
        if settings.jwk_set_uri.is_none() {
            *self.keys.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(metadata.jwks().clone());
        }
        let more = metadata.additional_metadata();
        Ok(Endpoints {
            authorization: AuthUrl::new(authorization).map_err(url)?,
            token: TokenUrl::new(token).map_err(url)?,
            keys: JsonWebKeySetUrl::new(keys).map_err(url)?,
            user_info,
            end_session: more
                .end_session_endpoint
                .clone()
                .filter(|url| config::Kind::Endpoint.accepts(url)),
            names_issuer: more.authorization_response_iss_parameter_supported,
            auth_type,
        })
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

/// Stands for an issuer that is not known, where one has to stand; it is never compared.
fn nobody() -> IssuerUrl {
    IssuerUrl::new("https://unknown.invalid".to_owned()).expect("it is a URL")
}

fn check_hash(
    token: &AccessToken,
    id_token: &CoreIdToken,
    verifier: &CoreIdTokenVerifier<'_>,
    expected: &AccessTokenHash,
) -> Result<(), ClaimsVerificationError> {
    use ClaimsVerificationError::{Other, SignatureVerification};
    let algorithm = id_token.signing_alg().map_err(SignatureVerification)?;
    let key = id_token.signing_key(verifier).map_err(SignatureVerification)?;
    match AccessTokenHash::from_token(token, algorithm, key) {
        Ok(actual) if actual == *expected => Ok(()),
        Ok(_) => Err(Other("it belongs to another access token (at_hash)".to_owned())),
        Err(error) => Err(Other(format!("at_hash cannot be checked: {error}"))),
    }
}

/// Whether the keys may have been changed since they were fetched.
fn may_be_a_new_key(error: &ClaimsVerificationError) -> bool {
    use SignatureVerificationError::{AmbiguousKeyId, CryptoError, NoMatchingKey};
    matches!(
        error,
        ClaimsVerificationError::SignatureVerification(
            NoMatchingKey | CryptoError(_) | AmbiguousKeyId(_)
        )
    )
}

fn words(error: &ClaimsVerificationError) -> String {
    match error {
        ClaimsVerificationError::SignatureVerification(cause) => {
            format!("the signature of the ID token: {cause}")
        }
        error => format!("the ID token: {error}"),
    }
}

/// The claims of a token that has been checked.
fn payload(token: &str) -> Result<Map<String, Value>, Failed> {
    let part = token.split('.').nth(1).unwrap_or_default();
    let bytes = URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
    serde_json::from_slice(&bytes)
        .map_err(|_| Failed::Untrusted("the ID token's claims are no JSON object".into()))
}

fn undiscovered(error: DiscoveryError<Missing>) -> Failed {
    match error {
        DiscoveryError::Request(missing @ Missing::OutOfReach(_)) => {
            Failed::OutOfReach(missing.to_string())
        }
        DiscoveryError::Request(missing) => Failed::Untrusted(missing.to_string()),
        DiscoveryError::Parse(error) => {
            Failed::Untrusted(format!("what was discovered cannot be read: {error}"))
        }
        DiscoveryError::Response(status, _, words) => {
            Failed::Untrusted(format!("discovery was answered with {status}: {words}"))
        }
        error => Failed::Untrusted(error.to_string()),
    }
}

/// Why the token endpoint gave no tokens. What it answered is not repeated: there may be tokens in it.
fn refused(
    error: RequestTokenError<Missing, openidconnect::StandardErrorResponse<CoreErrorResponseType>>,
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
