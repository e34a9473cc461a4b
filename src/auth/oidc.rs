//! Sign-in at an OpenID provider: the authorization code flow (OpenID Connect Core 1.0, 3.1) with PKCE
//! (RFC 7636), state, nonce, and the issuer of the answer (RFC 9207).
//!
//! [`Oidc::begin_sign_in`] returns the provider's address for the browser and the encrypted login state (`login`),
//! which the browser keeps and only this process can read. The gateway keeps no state of a sign-in in progress, so
//! unauthenticated clients that start many use no memory. [`Oidc::complete_sign_in`] takes the provider's answer from
//! the browser, exchanges the code (`provider`), and returns the person's identity and role.

mod login;
mod provider;
mod sign_in_error;

pub use sign_in_error::SignInError;

use super::account::MAX_TEXT_CHARS;
use super::line_limit::LineLimit;
use super::{Identity, Profile, mapping};
use login::{LoginCipher, LoginState};
use penstock_base::characters;
use penstock_base::clock::Clock;
use penstock_base::error::GatewayError;
use penstock_base::shared::Shared;
use penstock_config::{self as config, Claims, RoleValues, Security};
use penstock_resources::account::AccountSource;
use penstock_resources::role::Role;
use provider::Provider;
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::time::Instant;
use subtle::ConstantTimeEq;

/// Sign-in at the configured provider. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Oidc(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    settings: config::Oidc,
    claims: Claims,
    roles: RoleValues,
    provider: Provider,
    login_cipher: LoginCipher,
    clock: Clock,
    failure_lines: LineLimit,
}

/// A sign-in in progress.
#[derive(Debug)]
pub struct SignInStart {
    /// The address at the provider for the browser.
    pub location: String,
    /// The encrypted login state. The browser keeps it in a cookie and sends it back.
    pub login: String,
    /// The number of the cookie for it, below [`Oidc::MAX_CONCURRENT_SIGN_INS`]. So one browser can have several
    /// sign-ins in progress.
    pub slot: u8,
}

/// The provider's answer, which the browser brings back (RFC 6749, 4.1.2; RFC 9207, 2).
#[derive(Clone, Default)]
pub struct AuthorizationResponse {
    /// `code`
    pub code: Option<String>,
    /// `state`
    pub state: Option<String>,
    /// `iss`
    pub issuer: Option<String>,
    /// `error`
    pub error: Option<String>,
    /// `error_description`
    pub description: Option<String>,
}

/// A completed sign-in.
pub struct CompletedSignIn {
    /// The identity of the account.
    pub identity: Identity,
    /// The provider's claims about it.
    pub profile: Profile,
    /// The highest of the mapped roles.
    pub role: Role,
    /// The ID token, for the sign-out at the provider.
    pub id_token: String,
    /// The return address, as given to [`Oidc::begin_sign_in`].
    pub return_to: String,
}

fn denied_error(error: String, description: Option<String>) -> SignInError {
    let reason = match description {
        Some(description) => format!("{error} ({description})"),
        None => error,
    };
    // The text comes from outside, and is written to the log and the audit trail.
    SignInError::Denied(
        reason.chars().filter(|c| !characters::is_deceptive(*c)).take(300).collect(),
    )
}

impl Oidc {
    /// The maximum number of sign-ins in progress in one browser.
    pub const MAX_CONCURRENT_SIGN_INS: u8 = 4;

    /// Creates the configured sign-in. Does not contact the provider.
    ///
    /// # Errors
    /// If the certificates of `service.security.ca-file` cannot be used.
    pub fn open(security: &Security, clock: &Clock) -> Result<Option<Self>, GatewayError> {
        let Some(settings) = security.oidc.clone() else { return Ok(None) };
        let provider = Provider::new(&settings, security, clock)?;
        if settings.issuer_uri.is_none() {
            tracing::warn!(
                registration = settings.registration,
                "The provider has no issuer-uri, so the issuer of ID tokens and of its answers is not checked, and nothing is discovered; signature, audience, expiry, nonce and state are checked."
            );
        }
        Ok(Some(Self(Shared::new(Inner {
            provider,
            settings,
            claims: security.claims.clone(),
            roles: security.role_values.clone(),
            login_cipher: LoginCipher::new(),
            clock: clock.clone(),
            failure_lines: LineLimit::default(),
        }))))
    }

    /// Returns the registration identifier.
    pub fn registration(&self) -> &str {
        &self.0.settings.registration
    }

    /// Begins a sign-in. `base_url` is the gateway's address as the browser knows it. `back` is the address to which
    /// the browser returns at the end.
    ///
    /// # Errors
    /// `SignInError::Unreachable` or `SignInError::Untrusted` if the provider's metadata cannot be discovered.
    pub async fn begin_sign_in(
        &self,
        base_url: &str,
        back: &str,
    ) -> Result<SignInStart, SignInError> {
        let redirect_uri = self.0.settings.redirect_uri.replace("{baseUrl}", base_url);
        let request = self.0.provider.create_authorization(&redirect_uri).await?;
        let login = LoginState {
            state: request.state,
            nonce: request.nonce,
            verifier: request.verifier,
            redirect_uri,
            back: back.to_owned(),
            begun: self.0.clock.elapsed(),
        };
        let slot = Self::cookie_slot(&login.state);
        Ok(SignInStart {
            location: request.location,
            login: self.0.login_cipher.encrypt_login(&login),
            slot,
        })
    }

    /// Returns the number of the cookie for the sign-in with this state.
    pub fn cookie_slot(state: &str) -> u8 {
        state.bytes().fold(0, u8::wrapping_add) % Self::MAX_CONCURRENT_SIGN_INS
    }

    /// Completes a sign-in with the provider's answer and the encrypted login that the browser at the address `from` kept.
    ///
    /// # Errors
    /// Any [`SignInError`].
    pub async fn complete_sign_in(
        &self,
        answer: AuthorizationResponse,
        login: Option<&str>,
        from: Option<IpAddr>,
    ) -> Result<CompletedSignIn, SignInError> {
        let login = self.open_login(answer.state.as_deref(), login)?;
        let provider = &self.0.provider;
        provider.check_issuer(answer.issuer.as_deref()).await?;
        if let Some(error) = answer.error {
            return Err(denied_error(error, answer.description));
        }
        let code = answer.code.ok_or(SignInError::Stale("it has neither a code nor an error"))?;
        let tokens = provider.exchange_code(&login, code, &self.wanted_claims(), from).await?;
        let (identity, role) = self.identify_person(&tokens.claims)?;
        Ok(CompletedSignIn {
            identity,
            profile: self.read_profile(&tokens.claims),
            role,
            id_token: tokens.id_token,
            return_to: login.back,
        })
    }

    /// Logs why a sign-in failed, for some failures in each minute: any client can cause them.
    pub fn log_failure(&self, error: &SignInError) {
        if self.0.failure_lines.take_permit(Instant::now()) {
            tracing::warn!(reason = %error, "A sign-in at the provider failed.");
        }
    }

    /// Decrypts the login, and checks that the answer with this state belongs to it.
    fn open_login(
        &self,
        state: Option<&str>,
        login: Option<&str>,
    ) -> Result<LoginState, SignInError> {
        let inner = &self.0;
        let state = state.ok_or(SignInError::Stale("it has no state"))?;
        let login = login
            .and_then(|sealed| inner.login_cipher.decrypt_login(sealed))
            .filter(|login| login.state.as_bytes().ct_eq(state.as_bytes()).into())
            .ok_or(SignInError::Stale(
                "this browser did not start it, or has already completed it",
            ))?;
        if inner.clock.elapsed_since(login.begun) > login::LOGIN_LIFETIME {
            return Err(SignInError::Stale("it was started too long ago"));
        }
        Ok(login)
    }

    /// Reads the identity and the role from the claims.
    fn identify_person(
        &self,
        claims: &Map<String, Value>,
    ) -> Result<(Identity, Role), SignInError> {
        let inner = &self.0;
        let attribute = inner.settings.user_name_attribute.clone();
        let Some(name) = mapping::find_text(std::slice::from_ref(&attribute), claims) else {
            return Err(SignInError::MissingClaim { claim: attribute });
        };
        if let Some(why) = characters::describe_deceptive(&name, characters::is_deceptive_in_id) {
            return Err(SignInError::Untrusted(format!("the claim {attribute}: {why}")));
        }
        let role_claims = &inner.claims.roles;
        let Some(role) = mapping::map_role(&inner.roles, role_claims, claims) else {
            let is_missing = !mapping::has_claim(role_claims, claims);
            let missing = is_missing.then(|| role_claims.join(" or "));
            return Err(SignInError::NoRole { name, missing });
        };
        let issuer = inner.settings.identity_issuer().to_owned();
        Ok((Identity { source: AccountSource::OpenIdConnect, issuer, name }, role))
    }

    fn read_profile(&self, claims: &Map<String, Value>) -> Profile {
        let text = |names: &[String]| find_field(names, claims);
        let names = &self.0.claims;
        Profile {
            given_name: text(&names.first_name),
            family_name: text(&names.last_name),
            email: text(&names.email),
            organization: text(&names.organization),
            client_id: None,
            group_claims: mapping::list_groups(&names.groups, claims),
        }
    }

    /// Returns the provider's address that ends the session there and redirects to `after`, if it offers one.
    pub async fn sign_out_url(&self, id_token: Option<&str>, after: &str) -> Option<String> {
        self.0.provider.sign_out_url(id_token, after).await
    }

    /// Returns the origin of the address of [`Oidc::sign_out_url`], if it is known.
    pub fn sign_out_origin(&self) -> Option<String> {
        self.0.provider.sign_out_origin()
    }

    /// Lists for each field of an account the claims that can contain it.
    fn wanted_claims(&self) -> Vec<Vec<String>> {
        let claims = &self.0.claims;
        vec![
            vec![self.0.settings.user_name_attribute.clone()],
            claims.roles.clone(),
            claims.email.clone(),
            claims.first_name.clone(),
            claims.last_name.clone(),
            claims.organization.clone(),
            claims.groups.clone(),
        ]
    }
}

/// Returns the text of the first of these claims that has one, as a field of an account.
fn find_field(names: &[String], claims: &Map<String, Value>) -> Option<String> {
    let text = mapping::find_text(names, claims)?;
    let shown = text.chars().filter(|c| !characters::is_deceptive(*c)).take(MAX_TEXT_CHARS);
    Some(shown.collect::<String>()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_of_the_provider_are_short_and_do_not_deceive() {
        let claims =
            json!({"name": format!("A\u{202e}da {}", "x".repeat(1000)), "none": "\u{200b}"});
        let find = |name: &str| find_field(&[name.to_owned()], claims.as_object().unwrap());
        let name = find("name").unwrap();
        assert!(name.starts_with("Ada xx") && name.chars().count() == MAX_TEXT_CHARS, "{name}");
        assert_eq!(find("none"), None);
        let denied = denied_error("no\n".to_owned(), Some("a\u{202e}b".to_owned()));
        assert_eq!(denied, SignInError::Denied("no (ab)".to_owned()));
    }
}
