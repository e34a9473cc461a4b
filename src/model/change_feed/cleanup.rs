//! Removes the records of changes that are no longer needed.
use super::cursor::read_cursor;
use super::watch::Watch;
use super::{AGES, CHANGES};
use crate::natural_key;
use penstock_base::error::GatewayError;
use penstock_base::table::Table;
use penstock_store::{Error, Store};

/// The maximum number of documents that one cleanup commit removes.
const CLEANUP_BATCH_DOCUMENTS: usize = 1000;

/// Removes the records of generations that are done, and all records of a Business Object that is not watched, in
/// small commits. Blocking.
pub fn clean_up(store: &Store, id: &str) -> Result<(), Error> {
    loop {
        let (removed, _) = store.transact::<_, Error>(|t| {
            let cursor = read_cursor(t, id)?;
            let mut removed = 0;
            for row in CHANGES.scan().prefix::<String>(id).read(t, CLEANUP_BATCH_DOCUMENTS)? {
                let is_after =
                    |done: u64| row.key().is_ok_and(|(_, generation, _)| generation > done);
                if cursor.as_ref().is_some_and(|cursor| is_after(cursor.done)) {
                    break;
                }
                row.delete(t)?;
                removed += 1;
            }
            if cursor.is_none() && removed < CLEANUP_BATCH_DOCUMENTS {
                removed += AGES.scan().prefix::<String>(id).delete(t, CLEANUP_BATCH_DOCUMENTS)?;
            }
            Ok(removed)
        })?;
        if removed < CLEANUP_BATCH_DOCUMENTS {
            return Ok(());
        }
    }
}

/// Runs [`clean_up`] for every Business Object with records, including deleted ones, and removes the entries of unused
/// natural keys. Blocking.
pub fn clean_up_all(store: &Store, watch: &Watch) -> Result<(), GatewayError> {
    natural_key::remove_unused_entries(store, watch)?;
    for collection in [CHANGES.collection(), AGES.collection()] {
        let table = Table::<(String, Vec<u8>), Vec<u8>>::new(collection);
        let mut after = Vec::new();
        loop {
            let row = table.scan().after_bytes(after).first(&store.read())?;
            let Some(row) = row else { break };
            let Some((id, _)) = row.key_or_log() else {
                after = row.key_bytes().to_vec();
                continue;
            };
            clean_up(store, &id)?;
            // An id is followed by 0, so this sorts after all of its keys.
            after = [id.as_bytes(), &[1]].concat();
        }
    }
    Ok(())
}
