//! The key of a backup: objects are encrypted in the age format (<https://age-encryption.org/v1>), and the head has an
//! HMAC. Only this file uses `age`.
use super::chain::from_hex;
use age::secrecy::ExposeSecret as _;
use age::x25519::{Identity, Recipient};
use age::{DecryptError, Decryptor, Encryptor};
use penstock_base::hex::encode_hex;
use ring::hmac;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::cell::Cell;
use std::io::{self, BufReader, Read, Write};
use std::iter;
use std::rc::Rc;

/// What the HMAC key of an identity is derived for.
const HEAD_LABEL: &[u8] = b"penstock backup head";
/// The bytes of a secret of its own.
const SECRET_BYTES: usize = 32;
/// The maximum bytes of an encrypted object's header. With one recipient it has some hundred.
const MAX_HEADER_BYTES: usize = 16 << 10;
/// The bytes of the recipient's SHA-256 that are its fingerprint.
const FINGERPRINT_BYTES: usize = 8;

/// `service.backup.key`
#[derive(Clone)]
pub(super) enum BackupKey {
    /// None: `service.backup.insecure`.
    None,
    /// `AGE-SECRET-KEY-1…`: encrypts and decrypts.
    Identity(Identity),
    /// `age1…`: only encrypts.
    Recipient(Recipient),
}

/// A secret for the head's HMAC, in hex. It is stored as text, and never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct HeadSecret(String);

/// A new key.
#[derive(Clone)]
pub struct GeneratedKey {
    /// `AGE-SECRET-KEY-1…`
    pub identity: String,
    /// `age1…`
    pub recipient: String,
}

/// Creates a random key.
pub fn generate_key() -> GeneratedKey {
    let identity = Identity::generate();
    GeneratedKey {
        recipient: identity.to_public().to_string(),
        identity: identity.to_string().expose_secret().to_owned(),
    }
}

impl std::fmt::Debug for BackupKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BackupKey({:?})", self.fingerprint())
    }
}

impl std::fmt::Debug for HeadSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeadSecret")
    }
}

impl std::fmt::Debug for GeneratedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GeneratedKey").field("recipient", &self.recipient).finish_non_exhaustive()
    }
}

impl BackupKey {
    /// Parses the setting. The error does not have its value.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text.map(str::trim) else { return Ok(Self::None) };
        if let Ok(recipient) = text.parse() {
            return Ok(Self::Recipient(recipient));
        }
        text.parse().map(Self::Identity).map_err(|why| {
            format!(
                "service.backup.key is neither an age identity (AGE-SECRET-KEY-1…) nor a recipient (age1…): {why}; \
                 penstock offsite-backup new-key prints both"
            )
        })
    }

    /// Returns the fingerprint of its recipient; `None` without a key.
    pub(super) fn fingerprint(&self) -> Option<String> {
        let recipient = match self {
            Self::None => return None,
            Self::Identity(identity) => identity.to_public(),
            Self::Recipient(recipient) => recipient.clone(),
        };
        let digest = Sha256::digest(recipient.to_string());
        Some(encode_hex(digest.get(..FINGERPRINT_BYTES).unwrap_or_default()))
    }

    /// Returns whether the HMAC needs a secret of its own.
    pub(super) fn needs_secret(&self) -> bool {
        matches!(self, Self::Recipient(_))
    }

    /// Returns whether it can decrypt what it encrypts.
    pub(super) fn can_decrypt(&self) -> bool {
        !matches!(self, Self::Recipient(_))
    }

    /// Returns whether objects are encrypted.
    pub(super) fn encrypts(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Encrypts what is written to the result, and writes it to `out`.
    pub(super) fn encrypt<W: Write>(&self, out: W) -> io::Result<EncryptedWriter<W>> {
        let recipient = match self {
            Self::None => return Ok(EncryptedWriter::Plain(out)),
            Self::Identity(identity) => identity.to_public(),
            Self::Recipient(recipient) => recipient.clone(),
        };
        let encryptor = Encryptor::with_recipients(iter::once(&recipient as &dyn age::Recipient))
            .map_err(|error| io::Error::other(error.to_string()))?;
        encryptor.wrap_output(out).map(|stream| EncryptedWriter::Age(Box::new(stream)))
    }

    /// Decrypts a stream. A cut or changed stream fails while it is read.
    ///
    /// # Errors
    /// Why it cannot be decrypted, or the error of the stream.
    pub(super) fn decrypt<'a>(
        &self,
        input: impl Read + 'a,
    ) -> Result<Box<dyn Read + 'a>, DecryptionError> {
        let identity = match self {
            Self::None => return Ok(Box::new(input)),
            Self::Recipient(_) => return Err(DecryptionError::NeedsIdentity),
            Self::Identity(identity) => identity,
        };
        let left = Rc::new(Cell::new(Some(MAX_HEADER_BYTES)));
        let input = HeaderLimit { input, left: Rc::clone(&left) };
        let opened = Decryptor::new_buffered(BufReader::with_capacity(1 << 16, input))
            .inspect(|_| left.set(None))
            .and_then(|file| file.decrypt(iter::once(identity as &dyn age::Identity)));
        let is_damage =
            |kind| matches!(kind, io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData);
        match opened {
            Ok(stream) => Ok(Box::new(stream)),
            Err(DecryptError::Io(error)) if !is_damage(error.kind()) => {
                Err(DecryptionError::Io(error))
            }
            Err(DecryptError::NoMatchingKeys) => Err(DecryptionError::OtherKey),
            Err(error) => Err(DecryptionError::Damaged(error.to_string())),
        }
    }

    /// Computes the HMAC of a head, in hex. `secret` is the secret of its own. Returns `None` without a key, and for a
    /// recipient without that secret.
    pub(super) fn compute_mac(&self, secret: Option<&HeadSecret>, bytes: &[u8]) -> Option<String> {
        Some(encode_hex(hmac::sign(&self.head_key(secret)?, bytes).as_ref()))
    }

    /// Returns whether this is the HMAC of a head.
    pub(super) fn is_mac_right(
        &self,
        secret: Option<&HeadSecret>,
        bytes: &[u8],
        mac: &str,
    ) -> bool {
        let (Some(key), Some(mac)) = (self.head_key(secret), from_hex(mac)) else { return false };
        hmac::verify(&key, bytes, &mac).is_ok()
    }

    /// A secret in a base counts also for an identity, because the gateway may have only its recipient.
    fn head_key(&self, secret: Option<&HeadSecret>) -> Option<hmac::Key> {
        match (self, secret) {
            (Self::None, _) | (Self::Recipient(_), None) => None,
            (_, Some(secret)) => Some(hmac::Key::new(hmac::HMAC_SHA256, &from_hex(&secret.0)?)),
            (Self::Identity(identity), None) => {
                let text = identity.to_string();
                let key = hmac::Key::new(hmac::HMAC_SHA256, text.expose_secret().as_bytes());
                let derived = hmac::sign(&key, HEAD_LABEL);
                Some(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
            }
        }
    }
}

/// Returns a random secret.
pub(super) fn random_secret() -> HeadSecret {
    HeadSecret(encode_hex(&rand::random::<[u8; SECRET_BYTES]>()))
}

/// Why a stream cannot be decrypted.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecryptionError {
    /// The stream cannot be read.
    #[error(transparent)]
    Io(io::Error),
    /// Only the recipient is known.
    #[error(
        "service.backup.key is a recipient, which cannot decrypt; set the identity (AGE-SECRET-KEY-1…)"
    )]
    NeedsIdentity,
    /// It was encrypted for another key.
    #[error("it is encrypted for another key than service.backup.key")]
    OtherKey,
    /// It is no age file, or not a whole one.
    #[error("it is no valid age file: {0}")]
    Damaged(String),
}

/// Refuses a stream whose header is too long: age reads a whole header into memory, and parses it again with each line.
struct HeaderLimit<R> {
    input: R,
    /// How many bytes may still be read; `None` after the header.
    left: Rc<Cell<Option<usize>>>,
}

impl<R: Read> Read for HeaderLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(left) = self.left.get() else { return self.input.read(buffer) };
        if left == 0 {
            let what = format!("its header has more than {MAX_HEADER_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let length = buffer.len().min(left);
        let read = self.input.read(buffer.get_mut(..length).unwrap_or_default())?;
        self.left.set(Some(left - read));
        Ok(read)
    }
}

/// Encrypts what is written to it.
pub(super) enum EncryptedWriter<W: Write> {
    /// With a key.
    Age(Box<age::stream::StreamWriter<W>>),
    /// Without one.
    Plain(W),
}

impl<W: Write> EncryptedWriter<W> {
    /// Writes the end. Without it the stream is refused.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Self::Age(stream) => stream.finish(),
            Self::Plain(out) => Ok(out),
        }
    }
}

impl<W: Write> Write for EncryptedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Age(stream) => stream.write(bytes),
            Self::Plain(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Age(stream) => stream.flush(),
            Self::Plain(out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> (BackupKey, BackupKey) {
        let generated = generate_key();
        let parse = |text: &str| BackupKey::parse(Some(text)).unwrap();
        (parse(&generated.identity), parse(&generated.recipient))
    }

    fn encrypt(key: &BackupKey, text: &[u8]) -> Vec<u8> {
        let mut writer = key.encrypt(Vec::new()).unwrap();
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn decrypt(key: &BackupKey, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut text = Vec::new();
        let mut stream = key.decrypt(bytes).map_err(|error| error.to_string())?;
        stream.read_to_end(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    #[test]
    fn an_identity_opens_what_its_recipient_encrypted_and_nothing_else() {
        let (identity, recipient) = keys();
        assert_eq!(identity.fingerprint(), recipient.fingerprint());
        let text = vec![7; 200_000];
        let bytes = encrypt(&recipient, &text);
        assert!(bytes.starts_with(b"age-encryption.org/v1\n"));
        assert_eq!(decrypt(&identity, &bytes).unwrap(), text);
        assert!(decrypt(&recipient, &bytes).unwrap_err().contains("recipient"));
        assert!(decrypt(&keys().0, &bytes).unwrap_err().contains("another key"));
        for cut in [0, 30, 100, 70_000, bytes.len() - 1] {
            assert!(decrypt(&identity, &bytes[..cut]).is_err(), "cut at {cut}");
        }
        let mut harmed = bytes;
        harmed[150_000] ^= 1;
        assert!(decrypt(&identity, &harmed).is_err());
        assert_eq!(encrypt(&BackupKey::None, b"text"), b"text");
        assert_eq!(decrypt(&BackupKey::None, b"text").unwrap(), b"text");
    }

    #[test]
    fn an_endless_header_is_refused() {
        const STANZA: &str = "-> X25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc\n\
                              EmECAEcKN+n/Vs9SbWiV+Hu0r+E8R77DdWYyd83nw7U\n";
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("it was read too far"))
            }
        }
        let text = format!("age-encryption.org/v1\n{}", STANZA.repeat(1_000));
        let refused = keys().0.decrypt(text.as_bytes().chain(Broken)).err();
        assert!(matches!(refused, Some(DecryptionError::Damaged(_))), "{refused:?}");
    }

    #[test]
    fn a_head_has_the_hmac_of_its_key() {
        let (identity, recipient) = keys();
        let secret = random_secret();
        assert_eq!(recipient.compute_mac(None, b"head"), None);
        assert_eq!(BackupKey::None.compute_mac(None, b"head"), None);
        let by_secret = recipient.compute_mac(Some(&secret), b"head").unwrap();
        assert!(identity.is_mac_right(Some(&secret), b"head", &by_secret));
        assert!(!identity.is_mac_right(None, b"head", &by_secret));
        let own = identity.compute_mac(None, b"head").unwrap();
        assert!(identity.is_mac_right(None, b"head", &own));
        assert!(!identity.is_mac_right(None, b"Head", &own));
        assert!(!keys().0.is_mac_right(None, b"head", &own));
    }

    #[test]
    fn a_wrong_key_is_refused_without_its_value() {
        let refused = BackupKey::parse(Some("AGE-SECRET-KEY-1QQ")).unwrap_err();
        assert!(refused.contains("new-key") && !refused.contains("1QQ"), "{refused}");
        assert!(!format!("{:?}", keys().0).contains("AGE"));
        let secret = random_secret();
        assert!(!format!("{secret:?}").contains(&secret.0));
    }
}
