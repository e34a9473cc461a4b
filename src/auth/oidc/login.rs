//! A sign-in that is under way. The browser keeps it in a cookie, sealed with a key that only this
//! process has: a restart ends those that are under way.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long somebody has to sign in at the provider.
pub(super) const LIFETIME: Duration = Duration::from_mins(10);

/// What has to be known when the browser comes back.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Login {
    /// Ties the answer to the browser that asked.
    pub(super) state: String,
    /// Ties the ID token to this sign-in.
    pub(super) nonce: String,
    /// Ties the code to this sign-in (PKCE).
    pub(super) verifier: String,
    /// The redirect URI that was sent, which is sent again with the code.
    pub(super) redirect_uri: String,
    /// Where the browser wanted to go.
    pub(super) back: String,
    /// When it was begun, on the clock's line of elapsed time.
    pub(super) begun: u64,
}

/// Seals logins: authenticated encryption (RFC 8439).
pub(super) struct Seal(LessSafeKey);

impl Seal {
    /// One with a random key.
    pub(super) fn new() -> Self {
        let key: [u8; 32] = rand::random();
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).expect("the key has the right length");
        Self(LessSafeKey::new(key))
    }

    /// The login, sealed, in characters that a cookie can hold.
    pub(super) fn close(&self, login: &Login) -> String {
        // Random nonces of 96 bits repeat after some billions of sign-ins; a process sees far fewer.
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut text = serde_json::to_vec(login).expect("a login is plain data");
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut text)
            .expect("a login is far shorter than what can be sealed");
        URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat())
    }

    /// The login in what was sealed; `None` for anything else.
    pub(super) fn open(&self, sealed: &str) -> Option<Login> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let text = self.0.open_in_place(nonce, Aad::empty(), &mut text).ok()?;
        serde_json::from_slice(text).ok()
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> Login {
        Login {
            state: "s".into(),
            nonce: "n".into(),
            verifier: "v-is-secret".into(),
            redirect_uri: "https://gw.example/login/oauth2/code/kc".into(),
            back: "/swagger-ui/?a=b&c".into(),
            begun: 12,
        }
    }

    #[test]
    fn what_is_sealed_comes_back_and_is_not_readable() {
        let seal = Seal::new();
        let sealed = seal.close(&login());
        assert!(sealed.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
        assert!(
            !String::from_utf8_lossy(&URL_SAFE_NO_PAD.decode(&sealed).unwrap()).contains("secret")
        );
        assert_eq!(seal.open(&sealed), Some(login()));
        assert_ne!(seal.close(&login()), sealed);
    }

    #[test]
    fn what_was_changed_or_sealed_by_another_process_is_nothing() {
        let seal = Seal::new();
        let sealed = seal.close(&login());
        assert_eq!(Seal::new().open(&sealed), None);
        let mut bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for at in [0, NONCE_LEN, bytes.len() - 1] {
            bytes[at] ^= 1;
            assert_eq!(seal.open(&URL_SAFE_NO_PAD.encode(&bytes)), None, "{at}");
            bytes[at] ^= 1;
        }
        for text in
            ["", "x", "AAAA", "AAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "ä="]
        {
            assert_eq!(seal.open(text), None, "{text}");
        }
    }
}
