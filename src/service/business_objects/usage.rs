//! What depends on a Business Object: its exports, its objects and its API keys.
use crate::gateway::Gateway;
use penstock_auth::Caller;
use penstock_auth::keys::Key;
use penstock_base::error::GatewayError;
use penstock_model::resource::Compiled;
use penstock_resources::business_object::DeletionCount;
use penstock_resources::export::{Export, ExportStatus};
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum number of exports that are read, the newest first.
const MAX_READ_EXPORTS: usize = 1000;
/// The maximum number of objects that are counted before a deletion.
pub const MAX_COUNTED_OBJECTS: u64 = 200_000;

/// What the deletion of a Business Object affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionEffects {
    /// The numbers of its objects, together more than [`MAX_COUNTED_OBJECTS`] if there are more; or why they are
    /// unknown, so that the objects cannot be deleted.
    pub objects: Result<DeletionCount, GatewayError>,
    /// The number of its exports that are not delivered yet; they still are.
    pub waiting_export_count: usize,
    /// The number of API keys for it that the caller may manage. A key that names no other becomes useless.
    pub key_count: usize,
}

/// Collects what the deletion of a Business Object affects.
///
/// # Errors
/// The errors of the store.
pub async fn collect_deletion_effects(
    gateway: &Gateway,
    by: &Caller,
    compiled: Arc<Compiled>,
) -> Result<DeletionEffects, GatewayError> {
    let by = by.clone();
    let collect = move |gateway: &Gateway| {
        let id = &compiled.object.id;
        let mut waiting_export_count = 0;
        for entry in gateway.exporter.iterate(None).take(MAX_READ_EXPORTS) {
            let entry = entry?;
            let is_waiting =
                entry.business_object == *id && entry.status != ExportStatus::Delivered;
            waiting_export_count += usize::from(is_waiting);
        }
        let keys = gateway.auth.keys.list(&by, None, usize::MAX);
        Ok(DeletionEffects {
            objects: gateway.catalogue.count_deletion(&compiled, MAX_COUNTED_OBJECTS),
            waiting_export_count,
            key_count: keys.iter().filter(|key| names_business_object(key, id)).count(),
        })
    };
    gateway.read(collect).await
}

fn names_business_object(key: &Key, id: &String) -> bool {
    key.business_objects.as_ref().is_some_and(|ids| ids.contains(id))
}

/// Returns the newest export of each Business Object, by its id. Only the newest thousand exports are read.
///
/// # Errors
/// The errors of the store.
pub async fn list_last_exports(gateway: &Gateway) -> Result<HashMap<String, Export>, GatewayError> {
    let list = |gateway: &Gateway| {
        let mut last = HashMap::new();
        for entry in gateway.exporter.iterate(None).take(MAX_READ_EXPORTS) {
            let entry = entry?;
            last.entry(entry.business_object.clone()).or_insert(entry);
        }
        Ok(last)
    };
    gateway.read(list).await
}
