//! Checks ID tokens (OpenID Connect Core 1.0, 3.1.3.7 and 3.1.3.8).
use super::super::sign_in_error::SignInError;
use crate::roca;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::ClaimsVerificationError::{self, InvalidAudience, Other, SignatureVerification};
use openidconnect::core::{
    CoreIdToken, CoreIdTokenVerifier, CoreJsonWebKey, CoreJsonWebKeySet, CoreJwsSigningAlgorithm,
};
use openidconnect::{
    AccessToken, AccessTokenHash, ClientId, IssuerUrl, Nonce, SignatureVerificationError,
};
use serde_json::{Map, Value};

/// The tolerated difference between the provider's clock and the gateway's.
const CLOCK_LEEWAY: chrono::TimeDelta = chrono::TimeDelta::seconds(60);

/// The expected properties of every ID token.
#[derive(Debug)]
pub(super) struct ExpectedIdToken {
    pub(super) client_id: ClientId,
    /// The issuer; `None` if it is not configured, and then it is not compared.
    pub(super) issuer: Option<IssuerUrl>,
    /// The accepted signature algorithms. None of them needs a shared secret.
    pub(super) algorithms: Vec<CoreJwsSigningAlgorithm>,
}

impl ExpectedIdToken {
    /// Checks the signature and the claims of an ID token. `now` is in seconds since 1970.
    pub(super) fn verify_id_token(
        &self,
        id_token: &CoreIdToken,
        (access_token, nonce, now): (&AccessToken, &Nonce, i64),
        keys: &CoreJsonWebKeySet,
    ) -> Result<(), ClaimsVerificationError> {
        let now = chrono::DateTime::from_timestamp(now, 0).unwrap_or_default() - CLOCK_LEEWAY;
        // Without the client's secret, the verifier accepts no signature with a shared secret.
        let verifier = CoreIdTokenVerifier::new_public_client(
            self.client_id.clone(),
            self.issuer.clone().unwrap_or_else(placeholder_issuer),
            keys.clone(),
        )
        .set_allowed_algs(self.algorithms.iter().cloned())
        .require_issuer_match(self.issuer.is_some())
        .set_time_fn(move || now);
        let claims = id_token.claims(&verifier, nonce)?;
        if claims.authorized_party().is_some_and(|party| *party != self.client_id) {
            return Err(InvalidAudience("it was issued to another client (azp)".to_owned()));
        }
        match claims.access_token_hash() {
            Some(hash) => check_access_token_hash(access_token, id_token, &verifier, hash),
            None => Ok(()),
        }
    }
}

/// Returns a placeholder for an unknown issuer. It is never compared.
pub(super) fn placeholder_issuer() -> IssuerUrl {
    IssuerUrl::new("https://unknown.invalid".to_owned()).expect("it is a URL")
}

fn check_access_token_hash(
    token: &AccessToken,
    id_token: &CoreIdToken,
    verifier: &CoreIdTokenVerifier<'_>,
    expected: &AccessTokenHash,
) -> Result<(), ClaimsVerificationError> {
    let algorithm = id_token.signing_alg().map_err(SignatureVerification)?;
    let key = id_token.signing_key(verifier).map_err(SignatureVerification)?;
    match AccessTokenHash::from_token(token, algorithm, key) {
        Ok(actual) if actual == *expected => Ok(()),
        Ok(_) => Err(Other("it belongs to another access token (at_hash)".to_owned())),
        Err(error) => Err(Other(format!("at_hash cannot be checked: {error}"))),
    }
}

/// Returns the keys without RSA keys that can be factored.
pub(super) fn remove_weak_keys(keys: &CoreJsonWebKeySet) -> CoreJsonWebKeySet {
    let is_weak = |key: &CoreJsonWebKey| {
        roca::is_weak_key(&serde_json::to_value(key).unwrap_or_default(), "provider")
    };
    CoreJsonWebKeySet::new(keys.keys().iter().filter(|key| !is_weak(key)).cloned().collect())
}

/// Returns whether this error can have its cause in keys that have changed since they were fetched.
pub(super) fn keys_may_have_changed(error: &ClaimsVerificationError) -> bool {
    use SignatureVerificationError::{AmbiguousKeyId, CryptoError, NoMatchingKey};
    matches!(error, SignatureVerification(NoMatchingKey | CryptoError(_) | AmbiguousKeyId(_)))
}

/// Converts an error of checking an ID token.
pub(super) fn id_token_error(error: &ClaimsVerificationError) -> SignInError {
    SignInError::Untrusted(match error {
        SignatureVerification(cause) => format!("the signature of the ID token: {cause}"),
        error => format!("the ID token: {error}"),
    })
}

/// Returns the claims of a token that has been checked.
pub(super) fn decode_claims(token: &str) -> Result<Map<String, Value>, SignInError> {
    let part = token.split('.').nth(1).unwrap_or_default();
    let bytes = URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
    serde_json::from_slice(&bytes)
        .map_err(|_| SignInError::Untrusted("the ID token's claims are not a JSON object".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use openidconnect::core::{CoreEdDsaPrivateSigningKey, CoreHmacKey};
    use openidconnect::{JsonWebKeyId, PrivateSigningKey as _};
    use serde_json::json;

    const NOW: i64 = 1_800_000_000;
    const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIH639TKHwRWr5QvuDFjN3ntRyaEyA6MdzRj2bwJ5Daoa\n-----END PRIVATE KEY-----";

    fn signing_key(id: &str) -> CoreEdDsaPrivateSigningKey {
        CoreEdDsaPrivateSigningKey::from_ed25519_pem(PEM, Some(JsonWebKeyId::new(id.into())))
            .unwrap()
    }

    fn expected() -> ExpectedIdToken {
        ExpectedIdToken {
            client_id: ClientId::new("web".into()),
            issuer: Some(IssuerUrl::new("https://issuer.example/".into()).unwrap()),
            algorithms: vec![CoreJwsSigningAlgorithm::EdDsa],
        }
    }

    /// Creates a token with these claims beside the usual ones. `null` removes a claim.
    fn sign_token(header: &Value, change: &Value) -> CoreIdToken {
        let mut claims = json!({"iss": "https://issuer.example/", "aud": "web", "sub": "alice", "iat": NOW, "exp": NOW + 300, "nonce": "n", "updated_at": 1.5, "x": 7});
        for (name, value) in change.as_object().unwrap() {
            match value {
                Value::Null => claims.as_object_mut().unwrap().remove(name),
                value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
            };
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(&claims));
        let signature = match header["alg"].as_str().unwrap() {
            "HS256" => CoreHmacKey::new("web-secret")
                .sign(&CoreJwsSigningAlgorithm::HmacSha256, signed.as_bytes())
                .unwrap(),
            "none" => Vec::new(),
            _ => signing_key("k").sign(&CoreJwsSigningAlgorithm::EdDsa, signed.as_bytes()).unwrap(),
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)).parse().unwrap()
    }

    fn check_token(header: &Value, change: &Value) -> Result<(), ClaimsVerificationError> {
        let keys: Vec<CoreJsonWebKey> = vec![signing_key("k").as_verification_key()];
        let with = (&AccessToken::new("access".into()), &Nonce::new("n".into()), NOW);
        expected().verify_id_token(&sign_token(header, change), with, &CoreJsonWebKeySet::new(keys))
    }

    #[test]
    fn a_valid_token_is_accepted() {
        let header = json!({"alg": "EdDSA", "kid": "k", "typ": "JWT"});
        for change in [
            json!({}),
            json!({"aud": ["web"]}),
            json!({"azp": "web"}),
            json!({"exp": NOW - 59}),
            json!({"at_hash": null, "acr": "1", "amr": ["pwd"], "auth_time": NOW}),
        ] {
            assert_eq!(check_token(&header, &change), Ok(()), "{change}");
        }
        assert_eq!(
            check_token(&json!({"alg": "EdDSA"}), &json!({})),
            Ok(()),
            "there is only one key"
        );
        let claims = decode_claims(&sign_token(&header, &json!({})).to_string()).unwrap();
        assert_eq!((&claims["sub"], &claims["x"]), (&json!("alice"), &json!(7)));
    }

    #[test]
    fn an_invalid_token_is_refused() {
        let header = json!({"alg": "EdDSA", "kid": "k"});
        for (header, change) in [
            (&header, json!({"iss": "https://issuer.example"})),
            (&header, json!({"iss": "https://evil.example/"})),
            (&header, json!({"aud": "other"})),
            (&header, json!({"aud": ["web", "other"]})),
            (&header, json!({"aud": null})),
            (&header, json!({"azp": "other"})),
            (&header, json!({"exp": NOW - 61})),
            (&header, json!({"nonce": "other"})),
            (&header, json!({"nonce": null})),
            (&header, json!({"at_hash": "b3RoZXIgdG9rZW4"})),
            (&json!({"alg": "EdDSA", "kid": "other"}), json!({})),
            (&json!({"alg": "EdDSA", "kid": "k", "typ": "at+jwt"}), json!({})),
            (&json!({"alg": "EdDSA", "kid": "k", "crit": ["x"]}), json!({})),
            (&json!({"alg": "HS256", "kid": "k"}), json!({})),
            (&json!({"alg": "none"}), json!({})),
        ] {
            assert!(check_token(header, &change).is_err(), "{header} {change}");
        }
    }

    #[test]
    fn a_key_that_can_be_factored_is_ignored() {
        let weak = json!({"kty": "RSA", "kid": "weak", "n": roca::WEAK, "e": "AQAB"});
        let sound = json!({"kty": "RSA", "kid": "sound", "n": "u1W-pj_S_pQ", "e": "AQAB"});
        let keys = json!({"keys": [weak, sound]});
        let keys = remove_weak_keys(&serde_json::from_value(keys).unwrap());
        let kept = serde_json::to_value(keys.keys()).unwrap();
        assert_eq!((kept.as_array().unwrap().len(), &kept[0]["kid"]), (1, &json!("sound")));
    }

    #[test]
    fn an_unknown_key_causes_the_keys_to_be_fetched_again() {
        let error = check_token(&json!({"alg": "EdDSA", "kid": "new"}), &json!({})).unwrap_err();
        assert!(keys_may_have_changed(&error), "{error}");
        let error =
            check_token(&json!({"alg": "EdDSA", "kid": "k"}), &json!({"aud": "x"})).unwrap_err();
        assert!(!keys_may_have_changed(&error), "{error}");
        let words = id_token_error(&error).to_string();
        assert!(words.contains("audience"), "{words}");
    }
}
