//! The number of the stored definitions, which says whether those in memory are still the stored ones.
use penstock_base::collections;
use penstock_base::table::Table;
use penstock_store::{Error, Read, Transaction};
use rand::Rng;

/// A number that differs after each change of a definition.
const WATCHED: Table<(), u64> = Table::new(collections::WATCHED);

/// Reads the number of the stored definitions. Each change of one gives them another number; it is 0 before the first
/// change, and in data of versions that numbered only the watched definitions.
pub(super) fn read_watched_number(read: &dyn Read) -> Result<u64, Error> {
    Ok(WATCHED.get_readable(read, ())?.unwrap_or(0))
}

/// Gives the stored definitions a new random number. It is random and not the next one, because the number of a failed commit
/// may still be in memory. The next commit must not get the same number.
pub(crate) fn change_watched_number(transaction: &mut Transaction<'_>) -> Result<(), Error> {
    let number: u64 = rand::rng().random_range(1..=u64::MAX);
    WATCHED.put(transaction, (), number)
}
