//! Detects RSA keys that can be factored because a broken generator created them: ROCA (CVE-2017-15361).
//!
//! Each prime of the generator is `k * M + 65537^a mod M`, where M is the product of the first primes. So the modulus
//! of such a key is a power of 65537 modulo every small prime. By chance, that also holds for about one sound key in
//! 2^27 (M. Nemec et al., "The Return of Coppersmith's Attack", 2017, section 5).
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// The primes that divide the generator's M for every key length, without 2, because every modulus is odd.
const PRIMES: [u32; 38] = [
    3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
    101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
];
const GENERATOR: u32 = 65_537;

/// Returns whether an RSA key has the fingerprint of the broken generator, by its modulus (big-endian).
fn is_weak(modulus: &[u8]) -> bool {
    PRIMES.iter().all(|prime| {
        let rest = modulus.iter().fold(0, |rest, byte| (rest * 256 + u32::from(*byte)) % prime);
        is_power(rest, *prime)
    })
}

/// Returns whether this JSON Web Key is an RSA key with the fingerprint, and logs it as a key of `owner`.
pub(super) fn is_weak_key(key: &Value, owner: &str) -> bool {
    let text = |name| key.get(name).and_then(Value::as_str);
    let modulus = text("n").and_then(|modulus| URL_SAFE_NO_PAD.decode(modulus).ok());
    let is_weak = modulus.is_some_and(|modulus| is_weak(&modulus));
    if is_weak {
        let kid = text("kid");
        tracing::warn!(
            kid,
            "An RSA key of the {owner} is not used, because its private key can be computed from it (ROCA, CVE-2017-15361). \
             Replace it there."
        );
    }
    is_weak
}

/// Returns whether a number is a power of the generator modulo a prime.
fn is_power(number: u32, prime: u32) -> bool {
    let mut power = 1;
    // The powers repeat after the order of the group.
    (1..prime).any(|_| {
        power = power * GENERATOR % prime;
        power == number
    })
}

/// The modulus (base64url) of a key of 2,048 bits that was generated in the same way as by the broken generator.
#[cfg(test)]
pub(crate) const WEAK: &str = "1iaSc8BBafw7n3dyqTYoqBTH_kbemivZ2cvUYz--0q-Yk2LxHvg6kD-D8o1kmVStHqft-3RW8prh_2q6Nar10GkqBaxqtesyo6oC1V5TgsKgxcTFtJgC2JRzr57L8Bt_dk-i3etaJAntFHuXKGoIa0GSuIrowcMo4c25VJZYwEu6g657KHt-CBrIqM4xIhoT18iqikcCUj-yaM-Ed_60bmHIAQoO_ORgZagwm6WE-VybfFhmvJpTW05gb9n2b_NtNOGQYTTVt_dwhCQI_lbrBtVXEMXdjCibnzeQ78FsvkzddyvFWWNXHkU1GqVcz9Kc0CVcNWk5xm7g8ljQVybNpQ";

#[cfg(test)]
mod tests {
    use super::*;

    /// The modulus of a key that openssl generated.
    const SOUND: &str = "39bqP3mkfyhctKqzDZQ1cbmiLOgThNV2dD5pqMnbXlve7sK_sV0ButLHAu53dpC322hRzCPhk_83gGelQXbtHSURFFVTan6oC5CnFY9bgpghIBUZ-KtJRXvm_P49Q3PO9SkHI-s5WoRM8xEx_FQ4EpAif_kbblXZ6ckUfCM4oZcVh5JQ7GHx8cEmPyMVKqEVhHAkvE7Zydg4F3TlydRHQtJwYQd-IYdyk8cgM_DHv2YxbjoOcL8qnnjbpQZhgjll6AKEDuymBztq24QQTmaVkkUWxQoazhs9Ic0gSc78mz4tqGnTRlshiUi-g2VQ5HDqmHrESMPOezkO3zD0QgJz_w";

    fn decode_modulus(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    #[test]
    fn a_key_of_the_broken_generator_is_distinguished_from_others() {
        assert!(is_weak(&decode_modulus(WEAK)));
        assert!(is_weak(&[&[0], decode_modulus(WEAK).as_slice()].concat()));
        assert!(!is_weak(&decode_modulus(SOUND)));
        // The next odd number after a weak modulus is not weak.
        let mut other = decode_modulus(WEAK);
        *other.last_mut().unwrap() += 2;
        assert!(!is_weak(&other));
        assert!(!is_weak(&[]));
    }
}
