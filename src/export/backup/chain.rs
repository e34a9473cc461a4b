//! The checksum over all frames of an era. It does not depend on how they are divided into segments, and continues from
//! its 32 bytes.
use penstock_base::hex::encode_hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The checksum over the frames of an era up to one of them. As text it is in lowercase hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct Checksum([u8; 32]);

impl Checksum {
    /// Returns the checksum of an era without frames.
    pub(super) fn of_era(era: &str) -> Self {
        Self(Sha256::digest(format!("penstock backup\n{era}\n")).into())
    }

    /// Adds the bytes of the next frame.
    pub(super) fn add_frame(&mut self, frame: &[u8]) {
        self.0 = Sha256::new().chain_update(self.0).chain_update(frame).finalize().into();
    }
}

impl std::fmt::Display for Checksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&encode_hex(&self.0))
    }
}

impl From<Checksum> for String {
    fn from(checksum: Checksum) -> Self {
        checksum.to_string()
    }
}

impl TryFrom<String> for Checksum {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const WRONG: &str = "a checksum is not 64 hexadecimal digits";
        let bytes = from_hex(&text).ok_or(WRONG)?;
        Ok(Self(bytes.try_into().map_err(|_| WRONG)?))
    }
}

/// Decodes lowercase or uppercase hex.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().map(|c| c.to_digit(16)).collect::<Option<Vec<_>>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let byte = |[high, low]: &[u32; 2]| u8::try_from(high << 4 | low).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_continues_and_comes_back_from_text() {
        let (mut whole, mut first) = (Checksum::of_era("a"), Checksum::of_era("a"));
        whole.add_frame(b"one");
        whole.add_frame(b"two");
        first.add_frame(b"one");
        let mut rest = Checksum::try_from(first.to_string()).unwrap();
        rest.add_frame(b"two");
        assert_eq!(rest, whole);
        // Frames have their lengths, so the border between two of them counts.
        let mut other = Checksum::of_era("a");
        other.add_frame(b"onetwo");
        assert_ne!(other, whole);
        assert_ne!(Checksum::of_era("a"), Checksum::of_era("b"));
        assert!(Checksum::try_from("00".to_owned()).is_err());
        assert_eq!(from_hex("0fA0"), Some(vec![0x0f, 0xa0]));
        assert_eq!((from_hex("0"), from_hex("0g")), (None, None));
    }
}
