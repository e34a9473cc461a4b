//! Changes under review: ingestions that are stored with their difference, and published once they are approved.
//!
//! A change is computed by the ingestion itself, in the transaction that stores it; what it changes in the graph is then
//! discarded. Approving runs the same request again, with the identifiers that were minted first, and commits only if the
//! difference is still the same. So what was approved is exactly what is stored.
//!
//! `record` has the stored form, `difference` what a change would do, `storage` the documents and their limits. `open` has
//! the index of the open changes, `submit` and `review` the steps, `read` lists and pages.
//!
//! | collection | key | value |
//! |---|---|---|
//! | `reviewed-changes` | id (16 bytes) | [`Change`] as JSON |
//! | `reviewed-changes.open` | id of an open change | its Business Object, state and author ([`OpenChange`]) as JSON |
//! | `reviewed-changes.parts` | id, kind (1 byte), number (u32) | a part ([`storage::Part`]), compressed |
//! | `reviewed-changes.closed` | account, 0, 0 if it was withdrawn or 1 if it was decided, sequence of the commit that closed it (u64), id | elapsed milliseconds then (u64) |
//! | `reviewed-changes.totals` | account; empty for all together | open changes, their bytes, closed changes, their bytes (u64 each) |
//!
//! Numbers are big endian. A change whose Business Object is not stored any more counts as withdrawn, also before
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
pub use open::{OpenChange, SubjectHashes, is_touched, list_open_changes};
pub use read::{
    ChangeContent, ListedChanges, Selection, current_approvers, find_change, list_changes,
    read_content, read_difference,
};
pub use record::{Change, ChangeAction, ChangeCounts, HistoryEntry};
pub use review::{
    Applicability, Decision, Review, StepCheck, StepHook, check_applicability,
    missing_change_error, publish_change, rebase_change, take_step, withdraw_abandoned,
};
pub use storage::{ChangeTotals, expire_changes, read_totals};
pub(crate) use submit::store_submission;

const CHANGES: &str = "reviewed-changes";
const OPEN: &str = "reviewed-changes.open";
const PARTS: &str = "reviewed-changes.parts";
const CLOSED: &str = "reviewed-changes.closed";
const TOTALS: &str = "reviewed-changes.totals";

/// The bytes of an id: a UUID of version 7.
type IdBytes = [u8; 16];

/// Returns the bytes of an id, or `None` if the text is not one.
fn parse_id(id: &str) -> Option<IdBytes> {
    uuid::Uuid::parse_str(id).ok().map(uuid::Uuid::into_bytes)
}
