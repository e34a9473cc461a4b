//! The format of an API key: `penstock_`, 43 random letters and digits (256 bits), and a checksum of 6 characters. With
//! the checksum, a mistyped or truncated key is detected without a lookup.
use penstock_base::hex::encode_hex;
use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

pub(super) const PREFIX: &str = "penstock_";
/// The number of random characters: 62^43 is slightly more than 2^256.
const RANDOM_CHARS: usize = 43;
const CHECKSUM_CHARS: usize = 6;

/// The text of a key, which is shown only once.
pub(super) struct Secret(String);

impl Secret {
    /// Generates a key and its digest.
    pub(super) fn new() -> (Self, String) {
        let random = Alphanumeric.sample_string(&mut rand::rng(), RANDOM_CHARS);
        let key = format!("{PREFIX}{random}{}", compute_checksum(&random));
        let digest = digest_key(&key);
        (Self(key), digest)
    }

    /// Returns the digest of a well-formed key; `None` for any other text.
    pub(super) fn digest_of(key: &str) -> Option<String> {
        let rest = key.strip_prefix(PREFIX)?;
        let (random, given) = rest.split_at_checked(RANDOM_CHARS)?;
        (compute_checksum(random) == given).then(|| digest_key(key))
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// Compares two digests in a time that does not depend on where they differ.
pub(super) fn is_same_digest(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

fn digest_key(key: &str) -> String {
    encode_hex(&Sha256::digest(key))
}

/// Computes the checksum: 32 bits of the digest in base 62.
fn compute_checksum(random: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let digest: [u8; 32] = Sha256::digest(random).into();
    let [a, b, c, d, ..] = digest;
    let mut number = u32::from_be_bytes([a, b, c, d]);
    let mut text = String::with_capacity(CHECKSUM_CHARS);
    for _ in 0..CHECKSUM_CHARS {
        let digit = DIGITS.get((number % 62) as usize).expect("a remainder of 62");
        text.push(char::from(*digit));
        number /= 62;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_distinguished_from_other_texts() {
        let (secret, digest) = Secret::new();
        let key = secret.into_text();
        assert_eq!(key.len(), PREFIX.len() + RANDOM_CHARS + CHECKSUM_CHARS);
        assert_eq!(Secret::digest_of(&key), Some(digest.clone()));
        assert!(is_same_digest(&digest, &digest));
        assert!(!is_same_digest(&digest, &Secret::new().1));
        let without_the_last = &key[..key.len() - 1];
        let swapped: String = {
            let mut characters: Vec<char> = key.chars().collect();
            let other = if characters[12] == 'x' { 'y' } else { 'x' };
            characters[12] = other;
            characters.into_iter().collect()
        };
        for bad in [
            "",
            PREFIX,
            without_the_last,
            &format!("{key}0"),
            &swapped,
            &key.to_uppercase(),
            "penstock_üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü",
        ] {
            assert_eq!(Secret::digest_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn checksums_stay_as_they_are() {
        // Keys that were issued earlier must stay valid.
        assert_eq!(compute_checksum(&"0".repeat(RANDOM_CHARS)), "AIx9O3");
        assert_eq!(compute_checksum("penstock").len(), CHECKSUM_CHARS);
    }
}
