//! The objects that an ingestion wrote, as hashes in its record.
//!
//! If an ingestion wrote up to [`MAX_HASHED_OBJECTS`] objects, including nested ones, its record has 40 bits of a hash
//! of each. The chance that two URIs have the same 40 bits is 1 in 10^12. The record of a larger ingestion has no
//! hashes.
use super::answer::Answer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use penstock_resources::ingestion::IngestedStatus;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The maximum number of objects that a record has hashes of. So many hashes take about as many bytes as the rest of
/// the record.
const MAX_HASHED_OBJECTS: usize = 100;
/// The number of bytes kept of a hash.
const HASH_BYTES: usize = 5;

/// The objects that an ingestion wrote, as its record names them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WrittenObjects {
    /// The hashes in base64; `None` if there are too many objects, or if an older version wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wrote: Option<String>,
}

impl WrittenObjects {
    /// Returns the objects that an answer reports as changed.
    pub(crate) fn from_answer(answer: &Answer) -> Self {
        let changed = answer.objects.iter().filter(|object| {
            !matches!(object.status, IngestedStatus::Unchanged | IngestedStatus::Absent)
        });
        Self::from_uris(changed.flat_map(|object| {
            let nested = object.nested.iter().map(|nested| nested.uri.as_str());
            std::iter::once(object.uri.as_str()).chain(nested)
        }))
    }

    /// Returns the hashes of these objects.
    pub(super) fn from_uris<'u>(uris: impl Iterator<Item = &'u str>) -> Self {
        Self { wrote: Some(String::new()) }.with_uris(uris)
    }

    /// Returns these objects and further ones.
    pub(super) fn with_uris<'u>(self, uris: impl Iterator<Item = &'u str>) -> Self {
        let decode = |wrote: String| STANDARD_NO_PAD.decode(wrote).ok();
        let Some(mut hashes) = self.wrote.and_then(decode) else { return Self::default() };
        for uri in uris {
            hashes.extend(hash_uri(uri));
            if hashes.len() > MAX_HASHED_OBJECTS * HASH_BYTES {
                return Self::default();
            }
        }
        Self { wrote: Some(STANDARD_NO_PAD.encode(hashes)) }
    }

    /// Returns whether the record with this sequence names the object with one of these hashes, or `None` if it has no
    /// hashes.
    pub(super) fn names_object(
        &self,
        wanted: &[([u8; HASH_BYTES], u64)],
        sequence: u64,
    ) -> Option<bool> {
        let hashes = STANDARD_NO_PAD.decode(self.wrote.as_ref()?).ok()?;
        let (hashes, _) = hashes.as_chunks::<HASH_BYTES>();
        let is_named =
            |(hash, until): &([u8; HASH_BYTES], u64)| sequence < *until && hashes.contains(hash);
        Some(wanted.iter().any(is_named))
    }
}

/// Returns the hash of a URI in a record.
pub(super) fn hash_uri(uri: &str) -> [u8; HASH_BYTES] {
    let digest = Sha256::digest(uri);
    digest.first_chunk().copied().expect("SHA-256 has 32 bytes")
}
