//! Parses tokens (RFC 7519) and checks them. The checks are the same for clients and persons.
//!
//! jsonwebtoken's own checks use the system's clock, accept duplicate claims, and do not tell an ID token from an
//! access token. Checked tokens are not cached: checking costs less than what follows, and a cache would have to know
//! every change of an account.
use crate::AuthError;
use crate::keys::ApiKeys;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The maximum length of a token in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;
/// The tolerated difference between the issuer's clock and the gateway's, in seconds.
const CLOCK_SKEW_SECONDS: f64 = 60.0;
/// Header parameters with which a token names or contains the key that it is signed with.
const OWN_KEY_PARAMETERS: [&str; 3] = ["jwk", "jku", "x5u"];
/// Claims that only ID tokens have (OpenID Connect Core 1.0, 2 and 3.1.3.6), and those of logout tokens.
const NON_ACCESS_TOKEN_CLAIMS: [&str; 5] = ["nonce", "at_hash", "c_hash", "s_hash", "events"];

/// Claims that name the client application that a token was issued to.
pub(super) const CLIENT_ID_CLAIMS: [&str; 4] = ["azp", "appid", "client_id", "cid"];
/// Claims that only access tokens have, and ID tokens do not.
const ACCESS_TOKEN_CLAIMS: [&str; 6] = ["scp", "scope", "idtyp", "gty", "appid", "client_id"];

/// The expected properties of a token.
#[derive(Debug)]
pub(super) struct ExpectedToken {
    pub(super) issuer: String,
    pub(super) audiences: Vec<String>,
    /// An audience that is accepted only for tokens with `azp`.
    pub(super) client_id_audience: Option<String>,
    /// The client ids of the registrations, which are the audiences of ID tokens.
    pub(super) client_ids: Vec<String>,
    pub(super) algorithms: Vec<Algorithm>,
}

/// A token whose signature has not been checked yet.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    pub(super) claims: Map<String, Value>,
    /// The signed part: header, dot, claims.
    message: &'a [u8],
    signature: &'a str,
}

impl<'a> Token<'a> {
    /// Parses a token, and checks its format and header.
    pub(super) fn parse(text: &'a str, expected: &ExpectedToken) -> Result<Self, AuthError> {
        if text.len() > MAX_TOKEN_BYTES {
            return refuse_token("it is longer than 16 KiB");
        }
        let mut parts = text.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return refuse_token(&format!(
                "it is not a signed JSON Web Token, which has three parts, and no API key, which begins with {}",
                ApiKeys::PREFIX
            ));
        };
        let header = decode_members("header", header)?;
        let algorithm =
            header.get("alg").and_then(Value::as_str).and_then(|name| name.parse().ok());
        let Some(algorithm) = algorithm.filter(|found| expected.algorithms.contains(found)) else {
            return refuse_token(
                "its algorithm (alg) is none of those in service.security.jwt.algorithms",
            );
        };
        if !header.get("typ").is_none_or(is_access_token_type) {
            return refuse_token("its type (typ) is not that of an access token");
        }
        if header.contains_key("crit") || header.contains_key("b64") {
            return refuse_token("it requires an extension (crit) that is not supported");
        }
        if OWN_KEY_PARAMETERS.iter().any(|name| header.contains_key(*name)) {
            return refuse_token(
                "it brings a key of its own (jwk, jku or x5u); only its issuer's keys count",
            );
        }
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return refuse_token("its key id (kid) is not a string"),
        };
        let message = text.len().saturating_sub(signature.len() + 1);
        let message = text.as_bytes().get(..message).unwrap_or_default();
        Ok(Self {
            algorithm,
            key_id,
            claims: decode_members("claims", claims)?,
            message,
            signature,
        })
    }

    /// Checks the issuer, the audience, the times and the kind of token.
    pub(super) fn check_claims(
        &self,
        expected: &ExpectedToken,
        now: Timestamp,
    ) -> Result<(), AuthError> {
        if self.claims.get("iss").and_then(Value::as_str) != Some(&expected.issuer) {
            return refuse_token(
                "its issuer (iss) is not identical to \
                 framework.security.oauth2.resourceserver.jwt.issuer-uri; use a token of that issuer, or change the setting",
            );
        }
        let audiences = self.audiences();
        let is_expected = audiences.iter().any(|audience| {
            expected.audiences.iter().any(|one| one == audience)
                || (expected.client_id_audience.as_deref() == Some(*audience)
                    && self.text_claim("azp").is_some())
        });
        if !is_expected {
            return refuse_token(
                "its audience (aud) is not in framework.security.oauth2.resourceserver.jwt.audiences; \
                 get a token for one of these, or add it to the setting",
            );
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "seconds are exact for the next millions of years"
        )]
        let now = now.as_millisecond() as f64 / 1000.0;
        match self.time_claim("exp")? {
            None => return refuse_token("it has no expiry (exp)"),
            Some(expiry) if now >= expiry + CLOCK_SKEW_SECONDS => {
                return refuse_token(
                    "it has expired (exp); get a new token from its issuer; if it is new, the gateway's clock is ahead: \
                     see `penstock clock`",
                );
            }
            Some(_) => {}
        }
        if self.time_claim("nbf")?.is_some_and(|begin| now + CLOCK_SKEW_SECONDS < begin) {
            return refuse_token(
                "it is not valid yet (nbf); if it should be, the gateway's clock is behind: see `penstock clock`",
            );
        }
        self.time_claim("iat")?;
        let is_other_kind =
            NON_ACCESS_TOKEN_CLAIMS.iter().any(|name| self.claims.contains_key(*name))
                || self.claims.get("token_use").is_some_and(|of| of.as_str() != Some("access"))
                || !self.claims.get("typ").is_none_or(is_access_token_type)
                || expected.client_ids.iter().any(|client_id| {
                    audiences.contains(&client_id.as_str()) && self.may_be_id_token_of(client_id)
                });
        if is_other_kind {
            return refuse_token("it is an ID token or one for another use, not an access token");
        }
        if self.claims.contains_key("cnf") {
            return refuse_token(
                "it is bound to a key or certificate of its sender (cnf), which the gateway does not check; \
                 ask the issuer for a bearer token",
            );
        }
        Ok(())
    }

    /// Returns the audiences; none if one of them is not a string.
    fn audiences(&self) -> Vec<&str> {
        match self.claims.get("aud") {
            Some(Value::String(audience)) => vec![audience],
            Some(Value::Array(audiences)) => {
                audiences.iter().map(Value::as_str).collect::<Option<_>>().unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether a token with this client as its audience may be an ID token. The audience of an ID token is the
    /// client that it was issued to, and some ID tokens contain no client id.
    fn may_be_id_token_of(&self, client_id: &str) -> bool {
        match CLIENT_ID_CLAIMS.iter().find_map(|name| self.text_claim(name)) {
            None => true,
            Some(issued_to) => {
                issued_to == client_id
                    && self.text_claim("sub") != Some(client_id)
                    && !ACCESS_TOKEN_CLAIMS.iter().any(|name| self.claims.contains_key(*name))
            }
        }
    }

    /// Returns a claim that is a non-empty string.
    fn text_claim(&self, name: &str) -> Option<&str> {
        self.claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Returns whether this key has signed the token.
    pub(super) fn is_signed_by(&self, key: &DecodingKey) -> bool {
        crypto::verify(self.signature, self.message, key, self.algorithm).unwrap_or(false)
    }

    /// Returns a time claim, in seconds since 1970 (RFC 7519, `NumericDate`).
    fn time_claim(&self, name: &str) -> Result<Option<f64>, AuthError> {
        match self.claims.get(name) {
            None => Ok(None),
            Some(value) => match value.as_f64().filter(|seconds| seconds.is_finite()) {
                Some(seconds) => Ok(Some(seconds)),
                None => refuse_token(&format!("its {name} is not a number of seconds")),
            },
        }
    }
}

/// Returns when a token with these claims stops being accepted; `None` if that is later than any representable time.
pub(super) fn expires_at(claims: &Map<String, Value>) -> Option<Timestamp> {
    let expiry = claims.get("exp").and_then(Value::as_f64)? + CLOCK_SKEW_SECONDS;
    Timestamp::UNIX_EPOCH.checked_add(SignedDuration::try_from_secs_f64(expiry).ok()?).ok()
}

/// Returns the error (401) for a refused token.
pub(super) fn refuse_token<T>(what: &str) -> Result<T, AuthError> {
    Err(AuthError::Invalid(format!("the access token is refused: {what}")))
}

/// Returns whether a `typ` is `JWT` (RFC 7519), `at+jwt` (RFC 9068), or `Bearer` (Keycloak's value of the claim `typ`).
fn is_access_token_type(value: &Value) -> bool {
    let Some(name) = value.as_str() else { return false };
    let name = name.to_ascii_lowercase();
    matches!(name.strip_prefix("application/").unwrap_or(&name), "jwt" | "at+jwt" | "bearer")
}

fn decode_members(what: &str, part: &str) -> Result<Map<String, Value>, AuthError> {
    let Ok(text) = URL_SAFE_NO_PAD.decode(part) else {
        return refuse_token(&format!("its {what} cannot be read as base64url"));
    };
    match serde_json::from_slice(&text) {
        Ok(Members(members)) => Ok(members),
        Err(error) if error.is_data() => {
            refuse_token(&format!("its {what} is not a JSON object, or has a duplicate member"))
        }
        Err(_) => refuse_token(&format!("its {what} is not JSON")),
    }
}

/// The members of an object. Duplicates are an error, because RFC 7519, 4 leaves open which of two counts.
struct Members(Map<String, Value>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Map::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if members.insert(name, value).is_some() {
                        return Err(Error::custom("duplicate member"));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Read)
    }
}
