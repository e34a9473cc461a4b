//! The public keys of a provider: a parsed JSON Web Key Set (RFC 7517).
use crate::roca;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

/// The maximum number of keys that are read from a set. Providers have only a few.
const MAX_KEYS: usize = 64;
/// The maximum number of keys that are tried for a token without a key id.
const MAX_TRIED_KEYS: usize = 8;

/// The usable keys of a provider.
#[derive(Debug, Clone, Default)]
pub(super) struct PublicKeys(Vec<PublicKey>);

#[derive(Debug, Clone)]
struct PublicKey {
    id: Option<String>,
    /// The algorithms that the key may be used with.
    algorithms: Vec<Algorithm>,
    decoding: DecodingKey,
}

impl PublicKeys {
    /// Reads a set. Keys for other purposes and keys of unsupported types are ignored.
    ///
    /// # Errors
    /// The reason as text.
    pub(super) fn parse_set(text: &[u8]) -> Result<Self, String> {
        let set: Value =
            serde_json::from_slice(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let keys = set.get("keys").and_then(Value::as_array).ok_or("it has no list \"keys\"")?;
        let keys: Vec<_> = keys.iter().take(MAX_KEYS).filter_map(PublicKey::parse_key).collect();
        if keys.is_empty() {
            return Err("it contains no usable key for checking signatures".to_owned());
        }
        Ok(Self(keys))
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Lists the keys that a token with this `kid` and `alg` can be signed with.
    pub(super) fn matching_keys<'a>(
        &'a self,
        id: Option<&'a str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'a DecodingKey> {
        let named = move |key: &&PublicKey| id.is_none() || key.id.as_deref() == id;
        let fitting =
            self.0.iter().filter(named).filter(move |key| key.algorithms.contains(&algorithm));
        fitting.take(MAX_TRIED_KEYS).map(|key| &key.decoding)
    }

    /// Returns whether the set has a key with this `kid`, for any algorithm.
    pub(super) fn has_key_id(&self, id: &str) -> bool {
        self.0.iter().any(|key| key.id.as_deref() == Some(id))
    }
}

impl PublicKey {
    fn parse_key(value: &Value) -> Option<Self> {
        let key: Jwk = serde_json::from_value(value.clone()).ok()?;
        if roca::is_weak_key(value, "token issuer") {
            return None;
        }
        let of_key_type = supported_algorithms(&key.algorithm)?;
        let common = &key.common;
        let is_for_signatures = common
            .public_key_use
            .as_ref()
            .is_none_or(|of| *of == PublicKeyUse::Signature)
            && common.key_operations.as_ref().is_none_or(|of| of.contains(&KeyOperations::Verify));
        if !is_for_signatures {
            return None;
        }
        let algorithms = match value.get("alg").and_then(Value::as_str) {
            Some(name) => {
                let algorithm: Algorithm = name.parse().ok()?;
                of_key_type.contains(&algorithm).then(|| vec![algorithm])?
            }
            None => of_key_type.to_vec(),
        };
        let decoding = DecodingKey::from_jwk(&key).ok()?;
        Some(Self { id: common.key_id.clone(), algorithms, decoding })
    }
}

/// Lists the algorithms that a key of this type can be used with. Returns `None` for unsupported types.
fn supported_algorithms(parameters: &AlgorithmParameters) -> Option<&'static [Algorithm]> {
    match parameters {
        AlgorithmParameters::RSA(_) => Some(&[
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ]),
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => Some(&[Algorithm::ES256]),
            EllipticCurve::P384 => Some(&[Algorithm::ES384]),
            _ => None,
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            Some(&[Algorithm::EdDSA])
        }
        // A symmetric key in a public set is not secret.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rsa_key(more: &Value) -> Value {
        let mut key =
            json!({"kty": "RSA", "n": "u1W-pj_S_pQ", "e": "AQAB", "kid": "a", "n_extra": 12.5});
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    }

    fn parse_keys(keys: &[Value]) -> Result<PublicKeys, String> {
        PublicKeys::parse_set(json!({"keys": keys}).to_string().as_bytes())
    }

    #[test]
    fn only_keys_for_signatures_are_kept() {
        let keys = [
            rsa_key(&json!({"kid": "plain"})),
            rsa_key(&json!({"kid": "ps", "alg": "PS256", "use": "sig", "key_ops": ["verify"]})),
            rsa_key(&json!({"kid": "enc", "use": "enc"})),
            rsa_key(&json!({"kid": "oaep", "alg": "RSA-OAEP"})),
            rsa_key(&json!({"kid": "hmac", "alg": "HS256"})),
            json!({"kty": "oct", "k": "c2VjcmV0", "kid": "oct"}),
            json!({"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA", "kid": "p521"}),
            json!({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA", "kid": "k1"}),
            json!({"kty": "AKP", "kid": "new"}),
            json!("no key"),
        ];
        let keys = parse_keys(&keys).unwrap();
        assert_eq!(keys.len(), 2);
        assert!(keys.has_key_id("plain") && keys.has_key_id("ps") && !keys.has_key_id("enc"));
        let count = |id, algorithm| keys.matching_keys(id, algorithm).count();
        assert_eq!(count(Some("plain"), Algorithm::RS256), 1);
        assert_eq!(count(Some("ps"), Algorithm::RS256), 0);
        assert_eq!(count(Some("plain"), Algorithm::HS256), 0);
        assert_eq!(count(None, Algorithm::PS256), 2);
        assert_eq!(count(Some("other"), Algorithm::RS256), 0);
    }

    #[test]
    fn a_key_that_can_be_factored_is_ignored() {
        let weak = rsa_key(&json!({"kid": "weak", "n": roca::WEAK}));
        let keys = parse_keys(&[weak.clone(), rsa_key(&json!({"kid": "sound"}))]).unwrap();
        assert!(keys.has_key_id("sound") && !keys.has_key_id("weak"));
        assert!(parse_keys(&[weak]).is_err());
    }

    #[test]
    fn a_set_without_keys_is_an_error() {
        for bad in ["", "[]", "{}", r#"{"keys": {}}"#, r#"{"keys": []}"#, "\u{feff}{}"] {
            assert!(PublicKeys::parse_set(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
