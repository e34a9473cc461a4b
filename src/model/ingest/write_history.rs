//! Finds the ingestions that wrote an object, as far as they are recorded.
//!
//! If an ingestion wrote up to [`MAX_HASHED_OBJECTS`] objects, including nested ones, its record has 40 bits of a hash
//! of each. The chance that two URIs have the same 40 bits is 1 in 10^12. The record of a larger ingestion has no
//! hashes.
//!
//! If an identifier was minted as a UUID, the time in it shows which ingestion minted it, even a large one. This works
//! because ids of ingestions are UUIDs of the same kind, and writers run one after the other.
use super::answer::Answer;
use super::record::RECORDS;
use crate::namespace;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use penstock_base::error::GatewayError;
use penstock_base::table::AsJson;
use penstock_resources::ingestion::{IngestedStatus, IngestionRecord};
use penstock_resources::namespace::Generator;
use penstock_store::ReadStore;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The maximum number of objects that a record has hashes of. So many hashes take about as many bytes as the rest of
/// the record.
const MAX_HASHED_OBJECTS: usize = 100;
/// The number of bytes kept of a hash.
const HASH_BYTES: usize = 5;
/// The number of records that are read at a time.
const RECORDS_PER_READ: usize = 500;
/// The maximum number of ingestions listed for one object.
const MAX_LISTED_INGESTIONS: usize = 20;

/// The objects that an ingestion wrote, as its record names them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WrittenObjects {
    /// The hashes in base64; `None` if there are too many objects, or if an older version wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wrote: Option<String>,
}

/// The ingestions that wrote an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteHistory {
    /// The ingestion that minted its URI.
    pub minted_by: Option<IngestionRecord>,
    /// The newest 20 ingestions that wrote it or the object that it is nested in, newest first.
    pub named_by: Vec<IngestionRecord>,
    /// The number of ingestions whose records have no hashes; they may have written it.
    pub without_hashes: u64,
    /// The time of the oldest recorded ingestion (RFC 3339).
    pub since: Option<String>,
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
    fn names_object(&self, wanted: &[([u8; HASH_BYTES], u64)], sequence: u64) -> Option<bool> {
        let hashes = STANDARD_NO_PAD.decode(self.wrote.as_ref()?).ok()?;
        let (hashes, _) = hashes.as_chunks::<HASH_BYTES>();
        let is_named =
            |(hash, until): &([u8; HASH_BYTES], u64)| sequence < *until && hashes.contains(hash);
        Some(wanted.iter().any(is_named))
    }
}

fn hash_uri(uri: &str) -> [u8; HASH_BYTES] {
    let digest = Sha256::digest(uri);
    digest.first_chunk().copied().expect("SHA-256 has 32 bytes")
}

/// Finds the ingestions that wrote the object with this URI, among the recorded ones.
pub fn find_write_history(store: &ReadStore, uri: &str) -> Result<WriteHistory, GatewayError> {
    // Each hash counts in records before this sequence: an object that was moved had another URI before.
    let mut wanted = vec![(hash_uri(uri), u64::MAX)];
    for (earlier, until) in namespace::moving::list_earlier_iris(&store.read(), uri)? {
        wanted.push((hash_uri(&earlier), until));
    }
    let minted = find_minted_uuid(store, uri)?;
    let mut history = WriteHistory::default();
    for row in RECORDS.scan().reverse().pages(|| store.read(), RECORDS_PER_READ) {
        let row = row?;
        let (_, record) = row.value()?;
        // The ingestion that minted the identifier is the newest one that began before it.
        if let Some(id) = &minted
            && record.id < *id
            // A change is recorded when it is published, but minted when it was sent.
            && history.minted_by.as_ref().is_none_or(|known| known.id < record.id)
        {
            history.minted_by = Some(record.clone());
        }
        history.since = Some(record.at.clone());
        let wrote = row.value_as::<(u64, AsJson<WrittenObjects>)>().unwrap_or_default().1;
        match wrote.names_object(&wanted, record.sequence) {
            Some(true) if history.named_by.len() < MAX_LISTED_INGESTIONS => {
                history.named_by.push(record);
            }
            Some(_) => {}
            None => history.without_hashes += 1,
        }
    }
    // An ingestion that ended before the identifier was created cannot have minted it. Then the one that did is no
    // longer recorded.
    let time = minted.as_deref().and_then(uuid_time_ms);
    let is_plausible = |record: &IngestionRecord| {
        let ended: Option<jiff::Timestamp> = record.at.parse().ok();
        time.zip(ended).is_some_and(|(time, ended)| time <= ended.as_millisecond())
    };
    history.minted_by = history.minted_by.filter(is_plausible);
    Ok(history)
}

/// Returns the UUID at the end of a URI, if a namespace of this gateway mints such URIs.
fn find_minted_uuid(store: &ReadStore, uri: &str) -> Result<Option<String>, GatewayError> {
    let Some(at) = uri.len().checked_sub(36) else { return Ok(None) };
    let (Some(base), Some(id)) = (uri.get(..at), uri.get(at..)) else { return Ok(None) };
    if uuid::Uuid::parse_str(id).is_ok_and(|id| id.get_version_num() == 7) {
        let all = namespace::list(&store.read(), None, usize::MAX)?;
        let mints = |namespace: &namespace::Namespace| {
            namespace.generator == Generator::Uuid
                && namespace.uri_base.trim_end_matches('/') == base.trim_end_matches('/')
        };
        if all.iter().any(mints) {
            return Ok(Some(id.to_owned()));
        }
    }
    Ok(None)
}

/// Returns the creation time of a UUID of version 7, in milliseconds since 1970.
fn uuid_time_ms(id: &str) -> Option<i64> {
    let (seconds, nanoseconds) = uuid::Uuid::parse_str(id).ok()?.get_timestamp()?.to_unix();
    Some(i64::try_from(seconds).ok()? * 1000 + i64::from(nanoseconds / 1_000_000))
}
