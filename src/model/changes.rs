//! Changes under review: ingestions that are stored with their difference, and published once they are approved.
//!
//! A change is computed by the ingestion itself, in the transaction that stores it; what it changes in the graph is then
//! discarded. Approving runs the same request again, with the identifiers that were minted first, and commits only if the
//! difference is still the same. So what was approved is exactly what is stored.
//!
//! `record` has the stored form, `difference` what a change would do, `storage` the documents and their limits. `open` has
//! the index of the open changes, `submit` and `review` the steps, `read` lists and pages.
//!
//! A change whose Business Object is not stored any more counts as withdrawn, also before
//! [`withdraw_abandoned`] stores that.

mod compression;
mod difference;
mod open;
mod read;
mod record;
mod review;
mod storage;
mod submit;
#[cfg(test)]
mod tests;

pub use difference::DifferenceItem;
pub(crate) use difference::for_each_item;
pub use open::{OpenChange, SubjectHashes, is_touched, iter_open_changes};
pub use read::{
    ChangeContent, ChangePage, ListedChanges, Selection, current_approvers, find_change,
    list_changes, read_content, read_difference,
};
pub use record::{Change, ChangeAction, ChangeCounts, HistoryEntry};
pub use review::{
    Applicability, Decision, Review, StepCheck, StepHook, check_applicability,
    missing_change_error, publish_change, rebase_change, take_step, withdraw_abandoned,
};
pub use storage::{ChangeTotals, expire_changes, read_totals};
pub(crate) use submit::store_submission;

use penstock_base::collections;
use penstock_base::table::{AsJson, Table};
use uuid::Uuid;

/// The changes, by id.
const CHANGES: Table<Uuid, AsJson<Change>> = Table::new(collections::REVIEWED_CHANGES);
/// The open changes, by id.
const OPEN: Table<Uuid, AsJson<OpenChange>> = Table::new(collections::REVIEWED_CHANGES_OPEN);
/// The compressed parts ([`storage::Part`]), by the id of the change, their kind and their number.
const PARTS: Table<(Uuid, u8, u32), Vec<u8>> = Table::new(collections::REVIEWED_CHANGES_PARTS);
/// The elapsed milliseconds when a change was closed, by account, kind (0 if it was withdrawn, 1 if it was decided),
/// sequence of the commit, and id.
const CLOSED: Table<(String, u8, u64, Uuid), u64> =
    Table::new(collections::REVIEWED_CHANGES_CLOSED);
/// The totals, by account; those of all together have an empty name.
const TOTALS: Table<String, ChangeTotals> = Table::new(collections::REVIEWED_CHANGES_TOTALS);
