//! The state of a sign-in in progress. The browser keeps it in a cookie, encrypted with a key that only this process
//! has. So a restart ends the sign-ins in progress.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The maximum time from the start of a sign-in to the provider's answer.
pub(super) const LOGIN_LIFETIME: Duration = Duration::from_mins(10);

/// The state that is needed when the browser comes back.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoginState {
    /// Binds the answer to the browser that sent the request.
    pub(super) state: String,
    /// Binds the ID token to this sign-in.
    pub(super) nonce: String,
    /// Binds the code to this sign-in (PKCE).
    pub(super) verifier: String,
    /// The redirect URI of the request, which is sent again with the code.
    pub(super) redirect_uri: String,
    /// The address to which the browser returns after the sign-in.
    pub(super) back: String,
    /// When the sign-in began, in elapsed time of the clock.
    pub(super) begun: u64,
}

/// Encrypts login states with authenticated encryption (ChaCha20-Poly1305, RFC 8439).
pub(super) struct LoginCipher(LessSafeKey);

impl LoginCipher {
    /// Creates a cipher with a random key.
    pub(super) fn new() -> Self {
        let key: [u8; 32] = rand::random();
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).expect("the key has the right length");
        Self(LessSafeKey::new(key))
    }

    /// Encrypts a login state into characters that a cookie can contain.
    pub(super) fn encrypt_login(&self, login: &LoginState) -> String {
        // Random nonces of 96 bits repeat only after billions of sign-ins; a process has far fewer.
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut text = serde_json::to_vec(login).expect("a login is plain data");
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut text)
            .expect("a login is far shorter than what can be sealed");
        URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat())
    }

    /// Decrypts a login state. Returns `None` for text that this cipher has not encrypted.
    pub(super) fn decrypt_login(&self, sealed: &str) -> Option<LoginState> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let text = self.0.open_in_place(nonce, Aad::empty(), &mut text).ok()?;
        serde_json::from_slice(text).ok()
    }
}

impl std::fmt::Debug for LoginState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoginState(..)")
    }
}

impl std::fmt::Debug for LoginCipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoginCipher(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_login() -> LoginState {
        LoginState {
            state: "s".into(),
            nonce: "n".into(),
            verifier: "v-is-secret".into(),
            redirect_uri: "https://gw.example/login/oauth2/code/kc".into(),
            back: "/swagger-ui/?a=b&c".into(),
            begun: 12,
        }
    }

    #[test]
    fn an_encrypted_login_is_unreadable_and_can_be_decrypted() {
        let cipher = LoginCipher::new();
        let sealed = cipher.encrypt_login(&sample_login());
        assert!(sealed.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
        assert!(
            !String::from_utf8_lossy(&URL_SAFE_NO_PAD.decode(&sealed).unwrap()).contains("secret")
        );
        assert_eq!(cipher.decrypt_login(&sealed), Some(sample_login()));
        assert_ne!(cipher.encrypt_login(&sample_login()), sealed);
        assert!(!format!("{:?}", sample_login()).contains("secret"));
    }

    #[test]
    fn a_modified_or_foreign_login_is_refused() {
        let cipher = LoginCipher::new();
        let sealed = cipher.encrypt_login(&sample_login());
        assert_eq!(LoginCipher::new().decrypt_login(&sealed), None);
        let mut bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for at in [0, NONCE_LEN, bytes.len() - 1] {
            bytes[at] ^= 1;
            assert_eq!(cipher.decrypt_login(&URL_SAFE_NO_PAD.encode(&bytes)), None, "{at}");
            bytes[at] ^= 1;
        }
        for text in
            ["", "x", "AAAA", "AAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "ä="]
        {
            assert_eq!(cipher.decrypt_login(text), None, "{text}");
        }
    }
}
