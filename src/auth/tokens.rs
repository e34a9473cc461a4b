//! Bearer tokens: access tokens of an authorization server (specification, 5.7), and the service accounts that they
//! create.
//!
//! - `token`: parsing a token, and checking the claims that say whether it is for this gateway and valid now
//! - `bearer`: the bearer of a token: a client application or a person
//! - `log`: log messages about refused tokens
//! - `keys`, `jwks`: the issuer's keys: parsing, and the cached set
//! - `crypto`: signature checks by ring
//!
//! **Invariant:** before its signature is checked, no content of a token has an effect, and the gateway creates nothing
//! for it. The gateway sends requests to the provider only for tokens that are for this gateway and valid now.

mod bearer;
mod crypto;
mod jwks;
mod keys;
mod log;
mod token;

use super::accounts::Accounts;
use super::{Account, AuthError, Caller, Credential, Identity, Profile, mapping};
use bearer::Bearer;
use jsonwebtoken::Algorithm;
use jwks::Jwks;
use log::RefusalLog;
use penstock_base::blocking::spawn_blocking;
use penstock_base::clock::Clock;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::shared::Shared;
use penstock_config::{Claims, ResourceServer, RoleValues, Settings};
use penstock_resources::account::AccountSource;
use penstock_resources::role::Role;
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::sync::Arc;
use token::{ExpectedToken, Token, refuse_token};

/// The access tokens of one issuer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tokens(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    expected: ExpectedToken,
    resource_server: ResourceServer,
    claims: Claims,
    role_values: RoleValues,
    /// The claim that identifies a person at sign-in.
    user_name_attribute: Option<String>,
    jwks: Jwks,
    accounts: Accounts,
    clock: Clock,
    log: RefusalLog,
}

impl Tokens {
    /// Loads the cached keys. Without `issuer-uri`, returns `None` and logs that access tokens are refused. Blocking.
    pub fn open(
        settings: &Settings,
        accounts: &Accounts,
        clock: &Clock,
    ) -> Result<Option<Self>, GatewayError> {
        let security = &settings.security;
        let Some(resource_server) = &security.resource_server else {
            tracing::info!(
                "Access tokens are refused, because framework.security.oauth2.resourceserver.jwt.issuer-uri is not set. \
                 API keys are accepted."
            );
            return Ok(None);
        };
        crypto::install_provider();
        let jwks = Jwks::open(settings, resource_server, clock.clone())?;
        Ok(Some(Self(Shared::new(Inner {
            expected: ExpectedToken {
                issuer: resource_server.issuer_uri.clone(),
                audiences: resource_server.audiences.clone(),
                client_id_audience: resource_server.client_id_audience.clone(),
                client_ids: security.client_ids.clone(),
                algorithms: parse_algorithms(&security.algorithms)?,
            },
            resource_server: resource_server.clone(),
            claims: security.claims.clone(),
            role_values: security.role_values.clone(),
            user_name_attribute: security
                .oidc
                .as_ref()
                .map(|oidc| oidc.user_name_attribute.clone()),
            jwks,
            accounts: accounts.clone(),
            clock: clock.clone(),
            log: RefusalLog::default(),
        }))))
    }

    /// Refreshes the issuer's keys until this is dropped.
    pub async fn refresh_keys(self) {
        self.0.jwks.clone().refresh_keys().await;
    }

    /// Authenticates the caller that sent this token. The first token of a client application creates its service
    /// account. Each later token updates the role of the account.
    ///
    /// # Errors
    /// `AuthError::Invalid` for a malformed or forged token, and for one that is not for this gateway or not valid now.
    /// `AuthError::Forbidden` for a valid one without a role, of a disabled account, or of a person without an account.
    /// `AuthError::Unavailable` when the issuer's keys are not available.
    pub async fn authenticate_token(
        &self,
        token: &str,
        from: Option<IpAddr>,
    ) -> Result<Caller, AuthError> {
        let checked = self.check_token(token, from).await;
        if let Err(refusal) = &checked {
            tracing::debug!(?from, %refusal, "An access token was refused.");
        }
        let claims = checked?;
        let (account, role) = self.authenticate_bearer(&claims).await?;
        let credential = Credential::Bearer { expires_at: token::expires_at(&claims) };
        Ok(Caller { account: Some(account), role, credential, from: None })
    }

    /// Checks a token and returns its claims.
    async fn check_token(
        &self,
        text: &str,
        from: Option<IpAddr>,
    ) -> Result<Map<String, Value>, AuthError> {
        let token = Token::parse(text, &self.0.expected)?;
        if let Err(refusal) = self.verify_token(&token).await {
            self.0.log.log_refused(&token, &self.0.expected, from, &refusal);
            return Err(refusal);
        }
        Ok(token.claims)
    }

    async fn verify_token(&self, token: &Token<'_>) -> Result<(), AuthError> {
        let Inner { expected, jwks, clock, .. } = &*self.0;
        token.check_claims(expected, clock.now())?;
        let current = jwks.current_keys().await?;
        if is_signed_by_any(token, &current) {
            return Ok(());
        }
        let newer = jwks.fetch_newer(current).await?;
        if is_signed_by_any(token, &newer) {
            return Ok(());
        }
        if !newer.is_up_to_date()
            && token.key_id.as_ref().is_some_and(|id| !newer.keys.has_key_id(id))
        {
            return Err(AuthError::Unavailable(
                "the access token cannot be checked now: it is signed with a key that has not been fetched \
                 yet, and its issuer is unreachable"
                    .into(),
            ));
        }
        refuse_token("its signature matches none of its issuer's keys")
    }

    /// Returns the account of a token's bearer, and the token's role.
    async fn authenticate_bearer(
        &self,
        claims: &Map<String, Value>,
    ) -> Result<(Arc<Account>, Role), AuthError> {
        let role = mapping::map_role(&self.0.role_values, &self.0.claims.roles, claims);
        let group_claims = mapping::list_groups(&self.0.claims.groups, claims);
        match Bearer::from_claims(claims)? {
            // A subject that is known as a person is not a client, even if the token has no claims of a person.
            Bearer::Client { subject, client_id } if self.find_person(claims).is_none() => {
                let profile = Profile { client_id, group_claims, ..Profile::default() };
                self.authenticate_client(subject, profile, role).await
            }
            Bearer::Client { .. } | Bearer::Person => self.authenticate_person(claims, role),
        }
    }

    async fn authenticate_client(
        &self,
        subject: String,
        profile: Profile,
        role: Option<Role>,
    ) -> Result<(Arc<Account>, Role), AuthError> {
        let Some(role) = role.or(self.0.resource_server.default_role) else {
            return Err(AuthError::Forbidden(
                "the access token is valid, but it gives its client application no role here; assign it one \
                 at the identity provider, or set service.security.defaultServiceAccountRole"
                    .into(),
            ));
        };
        let domain = self.0.resource_server.email_domain.as_deref().unwrap_or_default();
        let profile = Profile { email: Some(format!("{subject}{domain}")), ..profile };
        let identity = Identity {
            source: AccountSource::ServiceAccount,
            issuer: self.0.expected.issuer.clone(),
            name: subject,
        };
        let accounts = &self.0.accounts;
        let account =
            if let Some(signed_in) = accounts.sign_in_if_unchanged(&identity, &profile, role) {
                signed_in?
            } else {
                let accounts = accounts.clone();
                let signing_in =
                    spawn_blocking(move || accounts.sign_in_identity(&identity, &profile, role));
                signing_in.await.unwrap_or_else(|error| {
                    tracing::error!(%error, "Creating a service account was interrupted.");
                    Err(AuthError::Unavailable(
                        "the service account could not be created now; try again".into(),
                    ))
                })?
            };
        Ok((account, role))
    }

    /// Returns the account of the person that the claims identify.
    fn find_person(&self, claims: &Map<String, Value>) -> Option<Arc<Account>> {
        let issuer = self.0.resource_server.sign_in_issuer.clone()?;
        let name = mapping::find_text(self.0.user_name_attribute.as_slice(), claims)?;
        self.0.accounts.find_by_identity(&Identity {
            source: AccountSource::OpenIdConnect,
            issuer,
            name,
        })
    }

    /// Authenticates a person's token as the account that the person's sign-in created. Its role is the lower one of
    /// the token's and the account's.
    fn authenticate_person(
        &self,
        claims: &Map<String, Value>,
        role: Option<Role>,
    ) -> Result<(Arc<Account>, Role), AuthError> {
        let forbidden = |why: &str| {
            Err(AuthError::Forbidden(format!(
                "the access token was delegated by a person, and is not a client application's own: {why}"
            )))
        };
        if self.0.resource_server.sign_in_issuer.is_none() {
            return forbidden("the gateway has no sign-in through its issuer");
        }
        if mapping::find_text(self.0.user_name_attribute.as_slice(), claims).is_none() {
            return forbidden("it lacks the claim that provider.<id>.user-name-attribute names");
        }
        match self.find_person(claims) {
            Some(account) if !account.enabled => forbidden("that person's account is disabled"),
            Some(account) => {
                let Some(role) = role else {
                    return forbidden(
                        "it gives that person no role here; assign the application's tokens one at the \
                         identity provider",
                    );
                };
                let role = role.min(account.role);
                Ok((account, role))
            }
            None => forbidden("that person has no account here; sign in once in a browser first"),
        }
    }
}

fn is_signed_by_any(token: &Token<'_>, current: &jwks::CurrentKeys) -> bool {
    current
        .keys
        .matching_keys(token.key_id.as_deref(), token.algorithm)
        .any(|key| token.is_signed_by(key))
}

fn parse_algorithms(names: &[String]) -> Result<Vec<Algorithm>, GatewayError> {
    let read = |name: &String| match name.parse() {
        Ok(Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) | Err(_) => {
            Err(GatewayError::new(
                ErrorClass::Invalid,
                format!(
                    "service.security.jwt.algorithms has {name:?}, which is not supported; use RS256, RS384, RS512, PS256, PS384, \
                 PS512, ES256, ES384 or EdDSA"
                ),
            ))
        }
        Ok(algorithm) => Ok(algorithm),
    };
    names.iter().map(read).collect()
}
