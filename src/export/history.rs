//! The history: delivered entries and their files are kept for reading and replay, up to a limit. The oldest
//! are removed first.
use super::queue::Limits;
use super::record;
use super::state::State;
use penstock_store::{Error, Transaction};

/// The entries and files that the next delivery removes from the history.
#[derive(Debug, Default)]
pub(super) struct Fallen {
    /// Orders of records that are removed together with their files.
    records: Vec<u64>,
    /// Orders of records whose file is removed.
    files: Vec<u64>,
    /// The file names of both.
    names: Vec<String>,
}

impl Fallen {
    /// Finds what to remove once `order`, with a file of `bytes`, is delivered.
    pub(super) fn find(state: &State, limits: Limits, order: u64, bytes: u64) -> Self {
        let mut all = state.delivered.clone();
        all.insert(order, bytes);
        let mut total: u64 = all.values().sum();
        let mut fallen = Self::default();
        while all.len() > limits.records.max(1)
            && let Some((oldest, bytes)) = all.pop_first()
        {
            total -= bytes;
            fallen.records.push(oldest);
        }
        for (order, bytes) in all {
            if total <= limits.bytes {
                break;
            }
            if bytes > 0 {
                total -= bytes;
                fallen.files.push(order);
            }
        }
        fallen
    }

    /// Adds the removals to the commit.
    pub(super) fn commit(&mut self, transaction: &mut Transaction<'_>) -> Result<(), Error> {
        for &order in &self.records {
            if let Some(record) = record::by_order(transaction, order)? {
                record::delete(transaction, order, &record.entry.id)?;
                self.names.push(record.file());
            }
        }
        for &order in &self.files {
            if let Some(mut record) = record::by_order(transaction, order)? {
                record.kept = false;
                record::put(transaction, order, &record)?;
                self.names.push(record.file());
            }
        }
        Ok(())
    }

    /// Applies the removals in memory after the commit. Returns the names of the files to remove.
    pub(super) fn apply(self, state: &mut State) -> Vec<String> {
        for order in self.records {
            state.forget(order);
        }
        for order in self.files {
            state.keep(order, 0);
        }
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(entries: &[(u64, u64)]) -> State {
        let mut state = State::default();
        for &(order, bytes) in entries {
            state.keep(order, bytes);
        }
        state
    }

    #[test]
    fn the_oldest_are_removed_first() {
        let state = state(&[(1, 10), (2, 0), (3, 10), (4, 10)]);
        let fallen = Fallen::find(&state, Limits { records: 3, bytes: 15 }, 5, 5);
        assert_eq!(fallen.records, [1, 2]);
        assert_eq!(fallen.files, [3]);
    }

    #[test]
    fn nothing_is_removed_within_the_limits() {
        let state = state(&[(1, 10), (2, 10)]);
        let fallen = Fallen::find(&state, Limits { records: 3, bytes: 25 }, 3, 5);
        assert_eq!((fallen.records.len(), fallen.files.len()), (0, 0));
        let fallen = Fallen::find(&state, Limits { records: 3, bytes: 24 }, 3, 5);
        assert_eq!(fallen.files, [1]);
    }
}
