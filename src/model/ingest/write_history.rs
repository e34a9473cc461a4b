//! Finds the ingestions that wrote an object, as far as they are recorded: by the hashes in their records (`written_objects`).
//!
//! If an identifier was minted as a UUID, the time in it shows which ingestion minted it, even a large one. This works
//! because ids of ingestions are UUIDs of the same kind, and writers run one after the other.
use super::record::RECORDS;
use super::written_objects::{WrittenObjects, hash_uri};
use crate::namespace;
use penstock_base::error::GatewayError;
use penstock_base::table::AsJson;
use penstock_resources::ingestion::IngestionRecord;
use penstock_resources::namespace::Generator;
use penstock_store::ReadStore;

/// The number of records that are read at a time.
const RECORDS_PER_READ: usize = 500;
/// The maximum number of ingestions listed for one object.
const MAX_LISTED_INGESTIONS: usize = 20;

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
