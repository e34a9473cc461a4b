//! Changes under review: ingestions that are stored with their difference, and published once they are approved.
//!
//! A change is computed by the ingestion itself, in the transaction that stores it; what it changes in the graph is then
//! discarded. Approving runs the same request again, with the identifiers that were minted first, and commits only if the
//! difference is still the same. So what was approved is exactly what is stored.
//!
//! `record` has the stored form, `difference` what a change would do. `read` reads the parts of a change, `storage` keeps
//! changes within their limits, and `open` has the index of the open ones. `submit` and `review` have the steps, `list` finds
//! and lists changes.
//!
//! A change whose Business Object is not stored any more counts as withdrawn, also before
//! [`withdraw_abandoned`] stores that.

mod compression;
mod difference;
mod list;
mod open;
mod read;
mod record;
mod review;
mod storage;
mod submit;
#[cfg(test)]
mod tests;

pub(crate) use difference::for_each_item;
pub use difference::{DifferenceItem, read_difference};
pub use list::{
    ChangePage, ListedChanges, Selection, current_approvers, find_change, list_changes,
};
pub use open::{OpenChange, SubjectHashes, is_touched, iter_open_changes};
pub use read::{ChangeContent, read_content};
pub use record::{Change, ChangeAction, ChangeCounts, HistoryEntry};
pub use review::{
    Applicability, Decision, Review, StepCheck, StepHook, check_applicability,
    missing_change_error, publish_change, rebase_change, take_step, withdraw_abandoned,
};
pub use storage::{ChangeTotals, expire_changes, read_totals};
pub(crate) use submit::store_submission;
