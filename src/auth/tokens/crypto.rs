//! Lets ring check the signatures for jsonwebtoken. The program already uses ring for TLS, so it needs no second
//! implementation of RSA and elliptic curves.
use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature as checks;
use ring::signature::VerificationAlgorithm;
use ring::signature::{RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};

static PROVIDER: CryptoProvider = CryptoProvider {
    // Penstock signs nothing.
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: create_verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes jsonwebtoken use ring. Only the first call has an effect.
pub(super) fn install_provider() {
    // Only a second call fails, which would install the same provider.
    let _ = PROVIDER.install_default();
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "jsonwebtoken asks for this signature")]
fn create_verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let method = verification_method(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
    if method.family() != key.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(SignatureCheck { algorithm: *algorithm, method, key: key.clone() }))
}

/// How ring checks the signatures of an algorithm.
#[derive(Clone, Copy)]
enum Method {
    Rsa(&'static RsaParameters),
    Ec(&'static dyn VerificationAlgorithm),
    Ed(&'static dyn VerificationAlgorithm),
}

impl Method {
    fn family(self) -> AlgorithmFamily {
        match self {
            Self::Rsa(_) => AlgorithmFamily::Rsa,
            Self::Ec(_) => AlgorithmFamily::Ec,
            Self::Ed(_) => AlgorithmFamily::Ed,
        }
    }
}

/// Returns how to check an algorithm's signatures; `None` for HMAC, because the keys of a provider are public.
fn verification_method(algorithm: Algorithm) -> Option<Method> {
    Some(match algorithm {
        Algorithm::RS256 => Method::Rsa(&checks::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Method::Rsa(&checks::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Method::Rsa(&checks::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Method::Rsa(&checks::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Method::Rsa(&checks::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Method::Rsa(&checks::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Method::Ec(&checks::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Method::Ec(&checks::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Method::Ed(&checks::ED25519),
        _ => return None,
    })
}

struct SignatureCheck {
    algorithm: Algorithm,
    method: Method,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for SignatureCheck {
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), signature::Error> {
        let checked = match (self.method, self.key.kind()) {
            (Method::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                // ring accepts no leading zeroes; some providers write them.
                RsaPublicKeyComponents { n: trim_leading_zeroes(n), e: trim_leading_zeroes(e) }
                    .verify(parameters, message, signature)
            }
            (Method::Ec(method) | Method::Ed(method), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(method, point).verify(message, signature)
            }
            _ => return Err(signature::Error::new()),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for SignatureCheck {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn trim_leading_zeroes(bytes: &[u8]) -> &[u8] {
    let zeroes = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeroes..).unwrap_or_default()
}
