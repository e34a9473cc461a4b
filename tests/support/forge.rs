//! Keys, and valid and forged tokens signed with them.
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature as signing;
use ring::signature::KeyPair;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// A key pair of an issuer.
pub struct Key {
    pub id: String,
    pair: Pair,
}

enum Pair {
    Rsa(signing::RsaKeyPair),
    P256(signing::EcdsaKeyPair),
    Ed(signing::Ed25519KeyPair),
}

impl Key {
    /// Generates an RSA key of 2,048 bits with openssl, because ring cannot.
    pub fn rsa(id: &str) -> Self {
        let output = Command::new("openssl")
            .args(["genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
            .args(["-outform", "DER"])
            .output()
            .expect("openssl is installed by tests/run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let pair = signing::RsaKeyPair::from_pkcs8(&output.stdout)
            .or_else(|_| signing::RsaKeyPair::from_der(&output.stdout))
            .unwrap();
        Self { id: id.to_owned(), pair: Pair::Rsa(pair) }
    }

    /// Generates a key on the curve P-256.
    pub fn p256(id: &str) -> Self {
        let (random, kind) = (SystemRandom::new(), &signing::ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = signing::EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = signing::EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap();
        Self { id: id.to_owned(), pair: Pair::P256(pair) }
    }

    /// Generates a key on the curve Ed25519.
    pub fn ed25519(id: &str) -> Self {
        let document = signing::Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = signing::Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        Self { id: id.to_owned(), pair: Pair::Ed(pair) }
    }

    /// Returns the public key as a JWK.
    pub fn public(&self) -> Value {
        let mut key = match &self.pair {
            Pair::Rsa(pair) => {
                let public: signing::RsaPublicKeyComponents<Vec<u8>> = pair.public().into();
                json!({"kty": "RSA", "n": encode(&public.n), "e": encode(&public.e)})
            }
            Pair::P256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y)})
            }
            Pair::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref())})
            }
        };
        key["kid"] = json!(self.id);
        key["use"] = json!("sig");
        key
    }

    /// Returns the algorithm that [`Self::token`] signs with.
    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
            Pair::Ed(_) => "EdDSA",
        }
    }

    /// Creates the header of a valid token.
    pub fn header(&self) -> Value {
        json!({"alg": self.algorithm(), "typ": "at+jwt", "kid": self.id})
    }

    /// Signs a token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        self.sign(&self.header(), claims)
    }

    /// Signs a token with this header and these claims.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// Signs a token with these texts, which need not be JSON.
    pub fn sign_text(&self, header: &str, claims: &str) -> String {
        self.sign_bytes(header.as_bytes(), claims.as_bytes())
    }

    /// Signs a token with these bytes, which need not be text.
    pub fn sign_bytes(&self, header: &[u8], claims: &[u8]) -> String {
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature = self.signature(message.as_bytes(), &signing::RSA_PKCS1_SHA256);
        format!("{message}.{}", encode(&signature))
    }

    /// Signs a message; `padding` has an effect only for RSA.
    pub fn signature(&self, message: &[u8], padding: &'static dyn signing::RsaEncoding) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, message, &mut signature).unwrap();
                signature
            }
            Pair::P256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }
}

/// Encodes as base64url without padding.
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the current time in seconds since 1970.
pub fn now() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(passed.as_secs()).unwrap()
}

/// Creates the claims of a valid token of a client application.
pub fn claims(issuer: &str, audience: &str) -> Value {
    json!({
        "iss": issuer,
        "aud": audience,
        "sub": "plant-7",
        "azp": "plant-7",
        "exp": now() + 300,
        "nbf": now() - 5,
        "iat": now() - 5,
        "jti": "x",
        "roles": ["ACCURIDS_USER"],
    })
}

/// Returns the claims, with those in `others` replaced or added. `null` removes a claim.
pub fn with(claims: &Value, others: &Value) -> Value {
    let mut claims = claims.clone();
    for (name, value) in others.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}
