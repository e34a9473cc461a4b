//! The capacity of the spool, and the exports that wait for it.
//!
//! The capacity is checked before an export is created, so one export of each Business Object may exceed it.
//! Otherwise an export larger than the capacity could never be created. An export in progress leaves half of
//! the disk reserve free.
use super::queue::ExportQueue;
use parking_lot::Mutex;
use penstock_base::disk::Disk;
use penstock_base::time;
use penstock_model::resource::Compiled;
use penstock_resources::export::{Export, ExportKind, ExportStatus};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exports that wait for spool capacity. Their content is not decided yet. They are only in memory: after a
/// restart, the stored schedules and changes make them due again.
#[derive(Debug, Default)]
pub(super) struct WaitingExports {
    /// One entry for each target, by Business Object id.
    rows: Mutex<BTreeMap<String, Vec<Export>>>,
    /// Whether a retry was requested.
    retry_requested: AtomicBool,
}

/// Returns why the spool is full, or `None` if it has capacity. `limit` is `service.export.spool`.
pub(super) fn spool_full_reason(queue: &ExportQueue, limit: u64) -> Option<String> {
    let state = queue.lock_state();
    let undelivered = state.undelivered_bytes();
    if undelivered < limit {
        return None;
    }
    let parked = match state.parked.len() {
        0 => String::new(),
        parked => format!(" ({parked} of these exports are parked)"),
    };
    Some(format!(
        "the spool is full: undelivered exports take {} MiB of the disk{parked}, and service.export.spool is {} MiB; \
         space becomes free when targets take them",
        undelivered >> 20,
        limit >> 20
    ))
}

/// Returns why no automatic export may be created now, or `None` if one may. Besides the limit of the spool,
/// automatic exports must not use the disk reserve while other exports are undelivered.
pub(super) fn automatic_block_reason(
    queue: &ExportQueue,
    limit: u64,
    disk: &Disk,
) -> Option<String> {
    spool_full_reason(queue, limit).or_else(|| {
        let piles_up = queue.lock_state().undelivered_bytes() > 0;
        (piles_up && disk.is_in_reserve()).then(|| {
            "the disk is full up to its reserve (service.limits.disk-reserve), and other exports still wait for \
             their targets; free disk space or fix the targets"
                .to_owned()
        })
    })
}

impl WaitingExports {
    /// Adds the exports of a Business Object. Returns whether they are new.
    pub(super) fn add(&self, business_object: &Compiled, kind: ExportKind, cause: &str) -> bool {
        let definition = &business_object.object.definition;
        let mut rows = self.rows.lock();
        let before = rows.get(&business_object.object.id).and_then(|rows| rows.first());
        let since = before.map_or_else(time::now_rfc3339, |row| row.created_at.clone());
        let is_new = before.is_none();
        let row = |target: &str| Export {
            id: temporary_id(&business_object.object.id, target),
            business_object: business_object.object.id.clone(),
            business_object_name: definition.name.clone(),
            target: target.to_owned(),
            sequence: 0,
            kind,
            status: ExportStatus::Waiting,
            object_count: 0,
            bytes: 0,
            data_checksum: String::new(),
            sha256: String::new(),
            key: String::new(),
            created_at: since.clone(),
            clock: None,
            commit: None,
            delivered_at: None,
            attempts: 0,
            last_error: Some(cause.to_owned()),
            pushed_by: None,
            traceparent: None,
            warnings: Vec::new(),
        };
        let targets = definition.push_targets.iter();
        let waiting = targets.map(|target| row(&target.bucket_name)).collect();
        rows.insert(business_object.object.id.clone(), waiting);
        is_new
    }

    /// Removes the exports of a Business Object. Returns whether there were any.
    pub(super) fn remove(&self, business_object: &str) -> bool {
        self.rows.lock().remove(business_object).is_some()
    }

    /// Keeps only the exports of Business Objects for which `keep` returns true.
    pub(super) fn retain(&self, keep: impl Fn(&str) -> bool) {
        self.rows.lock().retain(|id, _| keep(id));
    }

    /// Requests a retry of all waiting exports in the next round.
    pub(super) fn request_retry(&self) {
        self.retry_requested.store(true, Ordering::Relaxed);
    }

    /// Returns whether a retry was requested, and resets the request.
    pub(super) fn take_retry_request(&self) -> bool {
        self.retry_requested.swap(false, Ordering::Relaxed)
    }

    /// Returns whether any export waits.
    pub(super) fn has_any(&self) -> bool {
        !self.rows.lock().is_empty()
    }

    /// Returns whether an export of this Business Object waits.
    pub(super) fn has_export_of(&self, business_object: &str) -> bool {
        self.rows.lock().contains_key(business_object)
    }

    /// Returns the waiting exports of one Business Object.
    pub(super) fn exports_of(&self, business_object: &str) -> Vec<Export> {
        self.rows.lock().get(business_object).cloned().unwrap_or_default()
    }

    /// Returns all waiting exports as entries.
    pub(super) fn list_entries(&self) -> Vec<Export> {
        self.rows.lock().values().flatten().cloned().collect()
    }

    /// Returns the waiting export with this id.
    pub(super) fn find_entry(&self, id: &str) -> Option<Export> {
        self.rows.lock().values().flatten().find(|entry| entry.id == id).cloned()
    }

    /// Returns the number of waiting exports for this target.
    pub(super) fn count_for_target(&self, target: &str) -> u64 {
        self.rows.lock().values().flatten().filter(|entry| entry.target == target).count() as u64
    }
}

/// Returns an id that stays the same while the export waits: a UUID of version 8 (custom), derived from the
/// Business Object and the target.
fn temporary_id(business_object: &str, target: &str) -> String {
    let digest = Sha256::digest(format!("{business_object}\0{target}"));
    let bytes: [u8; 16] =
        std::array::from_fn(|place| digest.get(place).copied().unwrap_or_default());
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}
