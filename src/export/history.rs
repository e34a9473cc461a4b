//! The history: delivered entries and their files are kept for reading and replay, up to a limit. The oldest
//! are removed first. Parked entries whose files are gone or damaged are removed once a full export replaces them.
use super::queue::HistoryLimits;
use super::record::{EXPORT_IDS, EXPORTS};
use super::state::QueueState;
use penstock_store::{Error, Transaction};

/// The maximum number of entries of the history that a delivery removes or changes. Later deliveries remove the rest.
const MAX_REMOVALS: usize = 500;
/// The maximum number of parked entries that one commit removes because a delivery replaces them.
pub(super) const MAX_REPLACED_PER_COMMIT: usize = if cfg!(test) { 2 } else { 500 };

/// The entries and files that the next delivery removes from the history.
#[derive(Debug, Default)]
pub(super) struct HistoryRemovals {
    /// Orders of records that are removed together with their files.
    records: Vec<u64>,
    /// Orders of records whose file is removed.
    files: Vec<u64>,
    /// The file names of both.
    file_names: Vec<String>,
}

impl HistoryRemovals {
    /// Finds what to remove once `order`, with a file of `bytes`, is delivered.
    pub(super) fn find_removals(
        state: &QueueState,
        limits: HistoryLimits,
        order: u64,
        bytes: u64,
    ) -> Self {
        let mut all = state.delivered.clone();
        all.insert(order, bytes);
        let mut total: u64 = all.values().sum();
        let mut removals = Self::default();
        while all.len() > limits.records.max(1)
            && removals.records.len() < MAX_REMOVALS
            && let Some((oldest, bytes)) = all.pop_first()
        {
            total -= bytes;
            removals.records.push(oldest);
        }
        for (order, bytes) in all {
            if total <= limits.bytes
                || removals.records.len() + removals.files.len() >= MAX_REMOVALS
            {
                break;
            }
            if bytes > 0 {
                total -= bytes;
                removals.files.push(order);
            }
        }
        removals
    }

    /// Adds parked records that the delivery replaces.
    pub(super) fn add_replaced(&mut self, orders: &[u64]) {
        self.records.extend_from_slice(orders);
    }

    /// Adds the removals to the commit.
    pub(super) fn add_to_commit(&mut self, transaction: &mut Transaction<'_>) -> Result<(), Error> {
        for &order in &self.records {
            if let Some(record) = EXPORTS.get_or_log(transaction, order)? {
                EXPORTS.delete(transaction, order)?;
                EXPORT_IDS.delete(transaction, &record.entry.id)?;
                self.file_names.push(record.spool_file_name());
            }
        }
        for &order in &self.files {
            if let Some(mut record) = EXPORTS.get_or_log(transaction, order)? {
                record.kept = false;
                EXPORTS.put(transaction, order, &record)?;
                self.file_names.push(record.spool_file_name());
            }
        }
        Ok(())
    }

    /// Removes the same entries and files from the state in memory, after the commit. Returns the names of the files
    /// to remove.
    pub(super) fn apply_in_memory(self, state: &mut QueueState) -> Vec<String> {
        for order in self.records {
            state.delivered.remove(&order);
            state.parked.remove(&order);
        }
        for order in self.files {
            state.delivered.insert(order, 0);
        }
        self.file_names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history_state(entries: &[(u64, u64)]) -> QueueState {
        let mut state = QueueState::default();
        for &(order, bytes) in entries {
            state.delivered.insert(order, bytes);
        }
        state
    }

    #[test]
    fn the_oldest_are_removed_first() {
        let state = history_state(&[(1, 10), (2, 0), (3, 10), (4, 10)]);
        let removals =
            HistoryRemovals::find_removals(&state, HistoryLimits { records: 3, bytes: 15 }, 5, 5);
        assert_eq!(removals.records, [1, 2]);
        assert_eq!(removals.files, [3]);
    }

    #[test]
    fn a_lowered_limit_is_reached_over_several_deliveries() {
        let entries: Vec<(u64, u64)> = (1..=1_200).map(|order| (order, 10)).collect();
        let state = history_state(&entries);
        let count = |records, bytes| {
            let limits = HistoryLimits { records, bytes };
            let removals = HistoryRemovals::find_removals(&state, limits, 1_201, 5);
            (removals.records.len(), removals.files.len())
        };
        assert_eq!(count(1, 1 << 20), (MAX_REMOVALS, 0));
        assert_eq!(count(5_000, 0), (0, MAX_REMOVALS));
        assert_eq!(count(1_000, 0), (201, MAX_REMOVALS - 201));
    }

    #[test]
    fn nothing_is_removed_within_the_limits() {
        let state = history_state(&[(1, 10), (2, 10)]);
        let removals =
            HistoryRemovals::find_removals(&state, HistoryLimits { records: 3, bytes: 25 }, 3, 5);
        assert_eq!((removals.records.len(), removals.files.len()), (0, 0));
        let removals =
            HistoryRemovals::find_removals(&state, HistoryLimits { records: 3, bytes: 24 }, 3, 5);
        assert_eq!(removals.files, [1]);
    }
}
