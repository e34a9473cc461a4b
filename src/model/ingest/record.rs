//! The records of ingestions: what was ingested, who sent it, and the counts. A record is part of the ingestion's
//! commit. It is stored as it is shown.
use super::bounded::{BoundedLog, MAX_REMOVALS};
use super::written_objects::WrittenObjects;
use super::{Answer, Request};
use crate::change_feed::Watch;
use crate::list::changed_objects;
use penstock_base::collections;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::table::{AsJson, Table};
use penstock_resources::ingestion::{IngestionRecord, QuadCounts, RecordMode};
use penstock_store::{Error, Format, ReadStore, Transaction};
use serde::Serialize;

/// The records with the objects that the ingestions wrote, by sequence.
const INGESTIONS: BoundedLog<Vec<u8>> = BoundedLog::new(collections::INGESTIONS);
/// The records without the objects.
pub(super) const RECORDS: Table<u64, (u64, AsJson<IngestionRecord>)> =
    INGESTIONS.entries().with_values();
/// The sequences, by id.
const INGESTION_IDS: Table<String, u64> = Table::new(collections::INGESTION_IDS);

/// The number of records that are read at once.
const RECORDS_PER_READ: usize = 100;

/// An update of quads to record: who sent it, and what it changed.
#[derive(Debug, Clone, Copy)]
pub struct UpdateToRecord<'a> {
    /// The client's account.
    pub caller: &'a str,
    /// The id of the API key of the request.
    pub api_key: Option<&'a str>,
    /// The trace of the request, as in the header `traceparent`.
    pub traceparent: &'a str,
    /// The size of the body in bytes.
    pub bytes: u64,
    /// What it changed.
    pub quads: QuadCounts,
}

/// A record in its stored form. It is read as an [`IngestionRecord`] or as a [`WrittenObjects`].
#[derive(Serialize)]
struct StoredRecord<'r> {
    #[serde(flatten)]
    record: &'r IngestionRecord,
    #[serde(flatten)]
    wrote: &'r WrittenObjects,
}

/// Builds the record of an ingestion that this transaction commits.
pub(crate) fn new_record(
    transaction: &Transaction<'_>,
    request: &Request<'_>,
    answer: &Answer,
) -> IngestionRecord {
    let stamp = request.watch.stamp();
    let object = &request.business_object.object;
    IngestionRecord {
        id: answer.ingestion_id.clone(),
        business_object: Some(object.id.clone()),
        business_object_name: Some(object.definition.name.clone()),
        mode: RecordMode::Ingestion(answer.mode),
        caller: request.caller.to_owned(),
        api_key: request.api_key.map(str::to_owned),
        author: None,
        approved_by: None,
        traceparent: request.traceparent.map(str::to_owned),
        at: stamp.to_rfc3339(),
        clock: stamp.doubt,
        sequence: transaction.sequence(),
        bytes: request.body.byte_len(),
        created: answer.created,
        updated: answer.updated,
        unchanged: answer.unchanged,
        deleted: answer.deleted,
        rejected: answer.rejected.len() as u64,
        quads: None,
    }
}

/// Stores the record of an update of quads, with the objects that its transaction changed, and returns it. Removes the
/// oldest records beyond `max_records`.
pub fn store_update_record(
    transaction: &mut Transaction<'_>,
    update: &UpdateToRecord<'_>,
    watch: &Watch,
    max_records: usize,
) -> Result<IngestionRecord, GatewayError> {
    let changed = changed_objects(transaction)?;
    let wrote = WrittenObjects::from_uris(changed.iter().map(|(iri, _)| iri.as_str()));
    let stamp = watch.stamp();
    let record = IngestionRecord {
        id: uuid::Uuid::now_v7().to_string(),
        business_object: None,
        business_object_name: None,
        mode: RecordMode::Sparql,
        caller: update.caller.to_owned(),
        api_key: update.api_key.map(str::to_owned),
        author: None,
        approved_by: None,
        traceparent: Some(update.traceparent.to_owned()),
        at: stamp.to_rfc3339(),
        clock: stamp.doubt,
        sequence: transaction.sequence(),
        bytes: update.bytes,
        created: 0,
        updated: 0,
        unchanged: 0,
        deleted: 0,
        rejected: 0,
        quads: Some(update.quads),
    };
    if max_records > 0 {
        // An older program would fail to list the records.
        transaction.require_format(Format::V3);
    }
    store_record(transaction, &record, &wrote, max_records)?;
    Ok(record)
}

/// Stores a record. Removes the oldest ones beyond `max_records`.
pub(crate) fn store_record(
    transaction: &mut Transaction<'_>,
    record: &IngestionRecord,
    wrote: &WrittenObjects,
    max_records: usize,
) -> Result<(), Error> {
    if max_records == 0 {
        return Ok(());
    }
    put_entry(transaction, record, wrote)?;
    INGESTION_IDS.put(transaction, &record.id, record.sequence)?;
    for _ in 0..MAX_REMOVALS {
        if INGESTIONS.read_totals(transaction)?.0 <= max_records as u64 {
            break;
        }
        let Some(oldest) = RECORDS.scan().first(transaction)? else { break };
        let (sequence, (_, record)) = oldest.entry()?;
        INGESTION_IDS.delete(transaction, &record.id)?;
        INGESTIONS.remove(transaction, sequence)?;
    }
    Ok(())
}

/// Stores the new counts of the record of a deletion in several commits, and the URIs of further objects that it names.
/// A record that was removed since stays removed.
pub(super) fn update_record<'u>(
    transaction: &mut Transaction<'_>,
    record: &IngestionRecord,
    uris: impl Iterator<Item = &'u str>,
) -> Result<(), Error> {
    let entry = INGESTIONS.entries().get(transaction, record.sequence)?;
    let Some((_, stored)) = entry else { return Ok(()) };
    let wrote = serde_json::from_slice::<WrittenObjects>(&stored).unwrap_or_default();
    INGESTIONS.remove(transaction, record.sequence)?;
    put_entry(transaction, record, &wrote.with_uris(uris))
}

fn put_entry(
    transaction: &mut Transaction<'_>,
    record: &IngestionRecord,
    wrote: &WrittenObjects,
) -> Result<(), Error> {
    let value = serde_json::to_vec(&StoredRecord { record, wrote });
    let value = value.expect("a record has only texts as names of members");
    INGESTIONS.add(transaction, record.sequence, &value, value.len() as u64)
}

/// Returns the record with this id.
pub fn read_record(store: &ReadStore, id: &str) -> Result<Option<IngestionRecord>, GatewayError> {
    let read = store.read();
    let Some(sequence) = INGESTION_IDS.get(&read, id)? else { return Ok(None) };
    Ok(RECORDS.get(&read, sequence)?.map(|(_, record)| record))
}

/// Lists records in the order of [`iter_records`].
///
/// # Errors
/// As [`iter_records`].
pub fn list_records(
    store: &ReadStore,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<IngestionRecord>, GatewayError> {
    iter_records(store, after)?.take(limit).collect()
}

/// Iterates over the records, newest first: those older than the one with the id `after`.
///
/// # Errors
/// `ErrorClass::Malformed` if there is no record `after`, for example because it was removed.
pub fn iter_records(
    store: &ReadStore,
    after: Option<&str>,
) -> Result<impl Iterator<Item = Result<IngestionRecord, GatewayError>>, GatewayError> {
    let after = match after {
        None => None,
        Some(id) => Some(INGESTION_IDS.get(&store.read(), id)?.ok_or_else(|| {
            GatewayError::new(
                ErrorClass::Malformed,
                "the cursor names an unknown ingestion, or one that is no longer recorded; start again without it",
            )
        })?),
    };
    let rows = RECORDS.scan().after(after).reverse().pages(move || store.read(), RECORDS_PER_READ);
    Ok(rows.map(|row| -> Result<IngestionRecord, GatewayError> { Ok(row?.value()?.1) }))
}
