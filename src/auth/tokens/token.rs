//! A token (RFC 7519) as it came, and what is checked of it whoever it is for.
use crate::Refusal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Bytes of a token that are looked at.
const LONGEST: usize = 16 << 10;
/// Seconds that the issuer's clock and ours may be apart.
const SKEW: f64 = 60.0;
/// Header parameters that name a key of the token's own choice.
const OWN_KEYS: [&str; 3] = ["jwk", "jku", "x5u"];
/// Claims that ID tokens have and access tokens do not (OpenID Connect Core 1.0, 2 and 3.1.3.6), and those of
/// logout tokens.
const NOT_OF_ACCESS_TOKENS: [&str; 5] = ["nonce", "at_hash", "c_hash", "s_hash", "events"];

/// Claims that say which client application a token was issued to.
pub(super) const CLIENT_ID_CLAIMS: [&str; 4] = ["azp", "appid", "client_id", "cid"];
/// Claims that access tokens have and ID tokens do not.
const OF_ACCESS_TOKENS: [&str; 6] = ["scp", "scope", "idtyp", "gty", "appid", "client_id"];

/// What a token must say.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) issuer: String,
    pub(super) audiences: Vec<String>,
    /// An audience of tokens that have `azp`.
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
    /// What is signed: header, dot, claims.
    message: &'a [u8],
    signature: &'a str,
}

impl<'a> Token<'a> {
    /// Takes a token apart. Whatever is wrong with its form is found here.
    pub(super) fn read(text: &'a str, expected: &Expected) -> Result<Self, Refusal> {
        if text.len() > LONGEST {
            return refuse("it is longer than 16 KiB");
        }
        let mut parts = text.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return refuse("it is not a signed JSON Web Token, which has three parts");
        };
        let header = members("header", header)?;
        let algorithm =
            header.get("alg").and_then(Value::as_str).and_then(|name| name.parse().ok());
        let Some(algorithm) = algorithm.filter(|found| expected.algorithms.contains(found)) else {
            return refuse(
                "its algorithm (alg) is none of those in service.security.jwt.algorithms",
            );
        };
        if !header.get("typ").is_none_or(is_access_token_type) {
            return refuse("its type (typ) is not that of an access token");
        }
        if header.contains_key("crit") || header.contains_key("b64") {
            return refuse("it needs an extension (crit) that is not known here");
        }
        if OWN_KEYS.iter().any(|name| header.contains_key(*name)) {
            return refuse(
                "it brings a key of its own (jwk, jku or x5u); only its issuer's keys count",
            );
        }
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return refuse("the name of its key (kid) is no string"),
        };
        let message = text.len().saturating_sub(signature.len() + 1);
        let message = text.as_bytes().get(..message).unwrap_or_default();
        Ok(Self { algorithm, key_id, claims: members("claims", claims)?, message, signature })
    }

    /// Checks who issued it, for whom, and until when.
    pub(super) fn check(&self, expected: &Expected, now: Timestamp) -> Result<(), Refusal> {
        if self.claims.get("iss").and_then(Value::as_str) != Some(&expected.issuer) {
            return refuse(
                "its issuer (iss) is not, to the letter, the one that is configured here",
            );
        }
        let audiences = self.audiences();
        let is_expected = audiences.iter().any(|audience| {
            expected.audiences.iter().any(|one| one == audience)
                || (expected.client_id_audience.as_deref() == Some(*audience)
                    && self.text("azp").is_some())
        });
        if !is_expected {
            return refuse("its audience (aud) is not this gateway");
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "seconds are exact for the next millions of years"
        )]
        let now = now.as_millisecond() as f64 / 1000.0;
        match self.time("exp")? {
            None => return refuse("it has no expiry (exp)"),
            Some(expiry) if now >= expiry + SKEW => return refuse("it has expired (exp)"),
            Some(_) => {}
        }
        if self.time("nbf")?.is_some_and(|begin| now + SKEW < begin) {
            return refuse(
                "it is not valid yet (nbf); if it should be, the gateway's clock is behind: see `penstock clock`",
            );
        }
        self.time("iat")?;
        let is_other_kind = NOT_OF_ACCESS_TOKENS.iter().any(|name| self.claims.contains_key(*name))
            || self.claims.get("token_use").is_some_and(|of| of.as_str() != Some("access"))
            || !self.claims.get("typ").is_none_or(is_access_token_type)
            || expected.client_ids.iter().any(|client_id| {
                audiences.contains(&client_id.as_str()) && self.may_be_id_token_of(client_id)
            });
        if is_other_kind {
            return refuse("it is an ID token or one for another use, not an access token");
        }
        if self.claims.contains_key("cnf") {
            return refuse(
                "it is bound to a key or certificate of its sender (cnf), which is not checked here; ask the issuer for \
                 a bearer token",
            );
        }
        Ok(())
    }

    /// The audiences; none where one of them is no text.
    fn audiences(&self) -> Vec<&str> {
        match self.claims.get("aud") {
            Some(Value::String(audience)) => vec![audience],
            Some(Value::Array(audiences)) => {
                audiences.iter().map(Value::as_str).collect::<Option<_>>().unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a token whose audience is this client may be an ID token: those are issued to the very client
    /// that they are for, and some name no other.
    fn may_be_id_token_of(&self, client_id: &str) -> bool {
        match CLIENT_ID_CLAIMS.iter().find_map(|name| self.text(name)) {
            None => true,
            Some(issued_to) => {
                issued_to == client_id
                    && self.text("sub") != Some(client_id)
                    && !OF_ACCESS_TOKENS.iter().any(|name| self.claims.contains_key(*name))
            }
        }
    }

    /// A claim that is a text, and not an empty one.
    fn text(&self, name: &str) -> Option<&str> {
        self.claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Whether this key has signed it.
    pub(super) fn is_signed_by(&self, key: &DecodingKey) -> bool {
        crypto::verify(self.signature, self.message, key, self.algorithm).unwrap_or(false)
    }

    /// A moment, in seconds since 1970 (RFC 7519, `NumericDate`).
    fn time(&self, name: &str) -> Result<Option<f64>, Refusal> {
        match self.claims.get(name) {
            None => Ok(None),
            Some(value) => match value.as_f64().filter(|seconds| seconds.is_finite()) {
                Some(seconds) => Ok(Some(seconds)),
                None => refuse(&format!("its {name} is no number of seconds")),
            },
        }
    }
}

/// When a token with these claims is no longer accepted; `None` where that is later than any time.
pub(super) fn expiry(claims: &Map<String, Value>) -> Option<Timestamp> {
    let expiry = claims.get("exp").and_then(Value::as_f64)? + SKEW;
    Timestamp::UNIX_EPOCH.checked_add(SignedDuration::try_from_secs_f64(expiry).ok()?).ok()
}

/// 401 for a token of which this is true.
pub(super) fn refuse<T>(what: &str) -> Result<T, Refusal> {
    Err(Refusal::Invalid(format!("the access token is refused: {what}")))
}

/// `JWT` of RFC 7519, `at+jwt` of RFC 9068, and what Keycloak has in a claim of the same name.
fn is_access_token_type(value: &Value) -> bool {
    let Some(name) = value.as_str() else { return false };
    let name = name.to_ascii_lowercase();
    matches!(name.strip_prefix("application/").unwrap_or(&name), "jwt" | "at+jwt" | "bearer")
}

fn members(what: &str, part: &str) -> Result<Map<String, Value>, Refusal> {
    let Ok(text) = URL_SAFE_NO_PAD.decode(part) else {
        return refuse(&format!("its {what} cannot be read as base64url"));
    };
    match serde_json::from_slice(&text) {
        Ok(Members(members)) => Ok(members),
        Err(error) if error.is_data() => {
            refuse(&format!("its {what} is no JSON object, or has a member twice"))
        }
        Err(_) => refuse(&format!("its {what} is not JSON")),
    }
}

/// The members of an object, each once: which of two would count is open (RFC 7519, 4).
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
                        return Err(Error::custom("a member is there twice"));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Read)
    }
}
