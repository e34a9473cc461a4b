//! The bound of the spool, and the exports that wait for room in it.
//!
//! It is looked at before an export is made, so one export of each Business Object may go beyond it: else one
//! that is larger than the bound could never be made. Of the disk's reserve one that is being made leaves half.
use super::Inner;
use super::entry::{Entry, Kind, Status};
use penstock_base::time;
use penstock_model::resource::Compiled;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The exports that wait for room: what they will hold is not settled yet. In memory alone: why they are
/// due is durable.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// By the Business Object's id.
    rows: Mutex<BTreeMap<String, Vec<Entry>>>,
    /// Whether somebody wants them tried now.
    asked: AtomicBool,
}

/// Why no file may be put into the spool, if so.
pub(super) fn spool(inner: &Inner) -> Option<String> {
    let state = inner.queue.state();
    let (held, bound) = (state.held(), inner.options.spool);
    if held < bound {
        return None;
    }
    let parked = match state.parked.len() {
        0 => String::new(),
        parked => format!(" ({parked} of these exports are parked)"),
    };
    Some(format!(
        "the spool is full: {} MiB of exports wait for their targets{parked}, and service.export.spool is {} MiB; \
         there is room again as soon as targets take them",
        held >> 20,
        bound >> 20
    ))
}

/// Why no export is made by itself now, if so: besides the spool's own bound, exports that would only pile
/// up do not take the reserve of the disk.
pub(super) fn by_itself(inner: &Inner) -> Option<String> {
    spool(inner).or_else(|| {
        let piles_up = inner.queue.state().held() > 0;
        (piles_up && inner.options.disk.is_in_reserve()).then(|| {
            "the disk is full up to its reserve (service.limits.disk-reserve), and exports wait for their \
             targets already"
                .to_owned()
        })
    })
}

impl Waiting {
    /// Lets an export wait; true when it did not yet.
    pub(super) fn add(&self, business_object: &Compiled, kind: Kind, cause: &str) -> bool {
        let definition = &business_object.object.definition;
        let mut rows = self.rows();
        let before = rows.get(&business_object.object.id).and_then(|rows| rows.first());
        let since = before.map_or_else(time::rfc3339, |row| row.created_at.clone());
        let is_new = before.is_none();
        let row = |target: &str| Entry {
            id: id(&business_object.object.id, target),
            business_object: business_object.object.id.clone(),
            business_object_name: definition.name.clone(),
            target: target.to_owned(),
            sequence: 0,
            kind,
            status: Status::Waiting,
            object_count: 0,
            bytes: 0,
            data_checksum: String::new(),
            sha256: String::new(),
            key: String::new(),
            created_at: since.clone(),
            clock: None,
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

    /// Nothing of this Business Object waits any more; true when something did.
    pub(super) fn remove(&self, business_object: &str) -> bool {
        self.rows().remove(business_object).is_some()
    }

    /// Lets only those wait whose Business Objects are named.
    pub(super) fn retain(&self, keep: impl Fn(&str) -> bool) {
        self.rows().retain(|id, _| keep(id));
    }

    /// Lets all that wait be tried at the next turn.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether that is wanted, once.
    pub(super) fn take_asked(&self) -> bool {
        self.asked.swap(false, Ordering::Relaxed)
    }

    /// Whether anything waits.
    pub(super) fn any(&self) -> bool {
        !self.rows().is_empty()
    }

    /// Whether an export of this Business Object waits.
    pub(super) fn has(&self, business_object: &str) -> bool {
        self.rows().contains_key(business_object)
    }

    /// What waits of one Business Object.
    pub(super) fn of(&self, business_object: &str) -> Vec<Entry> {
        self.rows().get(business_object).cloned().unwrap_or_default()
    }

    /// What waits, as entries.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.rows().values().flatten().cloned().collect()
    }

    /// One of them.
    pub(super) fn entry(&self, id: &str) -> Option<Entry> {
        self.rows().values().flatten().find(|entry| entry.id == id).cloned()
    }

    /// How many wait that are for this target, too.
    pub(super) fn for_target(&self, target: &str) -> u64 {
        self.rows().values().flatten().filter(|entry| entry.target == target).count() as u64
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Entry>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same for as long as it waits. A UUID like that of an entry, of version 8: made in a way of our own.
fn id(business_object: &str, target: &str) -> String {
    let digest = Sha256::digest(format!("{business_object}\0{target}"));
    let bytes: [u8; 16] =
        std::array::from_fn(|place| digest.get(place).copied().unwrap_or_default());
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}
