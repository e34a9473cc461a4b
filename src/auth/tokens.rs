//! Bearer tokens: access tokens of an authorization server (specification, 5.7), and the service accounts that they
//! create.
//!
//! - `token`: parsing of a token, and the claims that say whether it is valid for this gateway and time
//! - `bearer`: the bearer of a token: a client application or a person
//! - `log`: log messages about refused tokens
//! - `keys`, `provider`, `jwks`: the issuer's keys: parsing, fetching, caching
//! - `crypto`: signature checks by ring
//!
//! **Invariant:** no content of a token has an effect, and the gateway creates nothing for it, before its signature
//! is checked. Requests to the provider are sent only for tokens that are for this gateway and time.

mod bearer;
mod crypto;
mod jwks;
mod keys;
mod log;
mod provider;
mod token;

use super::accounts::Accounts;
use super::{Account, Caller, Credential, Identity, Profile, Refusal, Role, Source, mapping};
use bearer::Bearer;
use jsonwebtoken::Algorithm;
use jwks::Jwks;
use log::Log;
use penstock_base::clock::Clock;
use penstock_base::fault::{Fault, Kind};
use penstock_config::{Claims, ResourceServer, RoleValues, Settings};
use provider::Provider;
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::sync::Arc;
use token::{Expected, Token, refuse};

/// The access tokens of one issuer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tokens(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    expected: Expected,
    resource_server: ResourceServer,
    claims: Claims,
    role_values: RoleValues,
    /// The claim that identifies a person at sign-in.
    user_name_attribute: Option<String>,
    jwks: Jwks,
    accounts: Accounts,
    clock: Clock,
    log: Log,
}

impl Tokens {
    /// Loads the cached keys. Without `issuer-uri`, logs so once and returns `None`. Blocking.
    pub fn open(
        settings: &Settings,
        accounts: &Accounts,
        clock: &Clock,
    ) -> Result<Option<Self>, Fault> {
        let security = &settings.security;
        let Some(resource_server) = &security.resource_server else {
            tracing::info!(
                "Access tokens are refused, because framework.security.oauth2.resourceserver.jwt.issuer-uri is not set. \
                 API keys are accepted."
            );
            return Ok(None);
        };
        crypto::install();
        let provider = Provider::new(resource_server, security.ca_file.as_deref())?;
        let max_stale = resource_server.max_stale;
        let jwks = Jwks::open(provider, &settings.data_dir, clock.clone(), max_stale);
        Ok(Some(Self(Arc::new(Shared {
            expected: Expected {
                issuer: resource_server.issuer_uri.clone(),
                audiences: resource_server.audiences.clone(),
                client_id_audience: resource_server.client_id_audience.clone(),
                client_ids: security.client_ids.clone(),
                algorithms: algorithms(&security.algorithms)?,
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
            log: Log::default(),
        }))))
    }

    /// Refreshes the issuer's keys until this is dropped.
    pub async fn run(self) {
        self.0.jwks.clone().run().await;
    }

    /// Authenticates the caller that sent this token. The first token of a client application creates its service
    /// account. Each token updates its role.
    ///
    /// # Errors
    /// `Refusal::Invalid` for a malformed or forged token, and for one that is not for this gateway and time.
    /// `Refusal::Forbidden` for a valid one without a role, of a disabled account, or of a person without an account.
    /// `Refusal::Unavailable` when the issuer's keys are not available.
    pub async fn caller(&self, token: &str, from: Option<IpAddr>) -> Result<Caller, Refusal> {
        let checked = self.check(token, from).await;
        if let Err(refusal) = &checked {
            tracing::debug!(?from, %refusal, "An access token was refused.");
        }
        let claims = checked?;
        let expires_at = token::expiry(&claims);
        let caller = self.account(claims).await?;
        Ok(Caller { credential: Credential::Bearer { expires_at }, ..caller })
    }

    /// Checks a token and returns its claims.
    async fn check(&self, text: &str, from: Option<IpAddr>) -> Result<Map<String, Value>, Refusal> {
        let token = Token::read(text, &self.0.expected)?;
        if let Err(refusal) = self.verify(&token).await {
            self.0.log.refused(&token, &self.0.expected, from, &refusal);
            return Err(refusal);
        }
        Ok(token.claims)
    }

    async fn verify(&self, token: &Token<'_>) -> Result<(), Refusal> {
        let Shared { expected, jwks, clock, .. } = &*self.0;
        token.check(expected, clock.now())?;
        let current = jwks.current().await?;
        if is_signed(token, &current) {
            return Ok(());
        }
        let (newer, was_asked) = jwks.newer(&current).await?;
        if is_signed(token, &newer) {
            return Ok(());
        }
        if !was_asked && token.key_id.as_ref().is_some_and(|id| !newer.keys.has(id)) {
            return Err(Refusal::Unavailable(
                "the access token cannot be checked now: it is signed with a key that has not been fetched \
                 yet, and its issuer is unreachable"
                    .into(),
            ));
        }
        refuse("its signature matches none of its issuer's keys")
    }

    async fn account(&self, claims: Map<String, Value>) -> Result<Caller, Refusal> {
        let role = mapping::role(&self.0.role_values, &self.0.claims.roles, &claims);
        match Bearer::of(&claims)? {
            // Even without a person's claims: a subject that is known as a person is not a client.
            Bearer::Client { subject, client_id } if self.find_person(&claims).is_none() => {
                self.service_account(subject, client_id, role).await
            }
            Bearer::Client { .. } | Bearer::Person => self.person(&claims, role),
        }
    }

    async fn service_account(
        &self,
        subject: String,
        client_id: Option<String>,
        role: Option<Role>,
    ) -> Result<Caller, Refusal> {
        let Some(role) = role.or(self.0.resource_server.default_role) else {
            return Err(Refusal::Forbidden(
                "the access token is valid, but it gives its client application no role here; assign it one \
                 at the identity provider, or set service.security.defaultServiceAccountRole"
                    .into(),
            ));
        };
        let domain = self.0.resource_server.email_domain.as_deref().unwrap_or_default();
        let profile =
            Profile { email: Some(format!("{subject}{domain}")), client_id, ..Profile::default() };
        let identity = Identity {
            source: Source::ServiceAccount,
            issuer: self.0.expected.issuer.clone(),
            name: subject,
        };
        let accounts = &self.0.accounts;
        let account = if let Some(recognised) = accounts.recognised(&identity, &profile, role) {
            recognised?
        } else {
            let accounts = accounts.clone();
            let signing_in =
                tokio::task::spawn_blocking(move || accounts.signed_in(&identity, &profile, role));
            signing_in.await.unwrap_or_else(|error| {
                tracing::error!(%error, "Creating a service account was interrupted.");
                Err(Refusal::Unavailable(
                    "the service account could not be created now; try again".into(),
                ))
            })?
        };
        Ok(bearer(account, role))
    }

    /// Returns the account of the person that the claims identify.
    fn find_person(&self, claims: &Map<String, Value>) -> Option<Arc<Account>> {
        let issuer = self.0.resource_server.sign_in_issuer.clone()?;
        let name = mapping::text(self.0.user_name_attribute.as_slice(), claims)?;
        self.0.accounts.find(&Identity { source: Source::OpenIdConnect, issuer, name })
    }

    /// Authenticates a person's token as the account that the person's sign-in created. Its role is the lower one of
    /// the token's and the account's.
    fn person(&self, claims: &Map<String, Value>, role: Option<Role>) -> Result<Caller, Refusal> {
        let forbidden = |why: &str| {
            Err(Refusal::Forbidden(format!(
                "the access token was delegated by a person, and is not a client application's own: {why}"
            )))
        };
        if self.0.resource_server.sign_in_issuer.is_none() {
            return forbidden("the gateway has no sign-in through its issuer");
        }
        if mapping::text(self.0.user_name_attribute.as_slice(), claims).is_none() {
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
                Ok(bearer(account, role))
            }
            None => forbidden("that person has no account here; sign in once in a browser first"),
        }
    }
}

fn bearer(account: Arc<Account>, role: Role) -> Caller {
    let credential = Credential::Bearer { expires_at: None };
    Caller { account: Some(account), role, credential, from: None }
}

fn is_signed(token: &Token<'_>, current: &jwks::Current) -> bool {
    current
        .keys
        .fitting(token.key_id.as_deref(), token.algorithm)
        .any(|key| token.is_signed_by(key))
}

fn algorithms(names: &[String]) -> Result<Vec<Algorithm>, Fault> {
    let read = |name: &String| match name.parse() {
        Ok(Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) | Err(_) => Err(Fault::new(
            Kind::Invalid,
            format!(
                "service.security.jwt.algorithms has {name:?}, which is not supported; use RS256, RS384, RS512, PS256, PS384, \
                 PS512, ES256, ES384 or EdDSA"
            ),
        )),
        Ok(algorithm) => Ok(algorithm),
    };
    names.iter().map(read).collect()
}
