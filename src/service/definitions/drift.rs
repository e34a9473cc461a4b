//! Finds definitions that are no longer as their files define them.
use crate::blocking::run_in_place;
use crate::gateway::Gateway;
use penstock_base::error::GatewayError;
use penstock_base::managed::{find_managed, list_managed};
use penstock_model::namespace;
use penstock_resources::definitions::{DefinitionId, DefinitionKind};
use penstock_resources::gateway::{Drift, DriftState};
use penstock_store::Read;

/// Returns the number of definitions in files, and each definition that differs from its file. Blocking.
///
/// # Errors
/// The errors of the store.
pub fn find_drift(gateway: &Gateway) -> Result<(usize, Vec<Drift>), GatewayError> {
    let read = gateway.store.read();
    let (mut managed, mut drifts) = (0, Vec::new());
    for record in list_managed(&read)? {
        let id = DefinitionId { kind: record.kind, name: record.name };
        let stored = find_fingerprint(gateway, &read, &id)?;
        managed += usize::from(!record.is_unmanaged);
        let state = match stored {
            // It is deleted, and the next run forgets it.
            None if record.is_unmanaged => continue,
            Some(_) if record.is_unmanaged => DriftState::Unmanaged,
            None => DriftState::Deleted,
            Some(stored) if stored == record.fingerprint => continue,
            Some(_) => DriftState::Changed,
        };
        drifts.push(Drift { kind: id.kind, name: id.name, file: record.file, state });
    }
    Ok((managed, drifts))
}

/// Returns the name of the file of `service.definitions.dir` that has a definition, so that it cannot be changed elsewhere.
pub fn find_source_file(gateway: &Gateway, kind: DefinitionKind, name: &str) -> Option<String> {
    let found = run_in_place(|| find_managed(&gateway.store.read(), kind, name));
    let managed = found.ok().flatten().filter(|managed| managed.is_read_only);
    managed.map(|managed| managed.file)
}

/// Returns a text that every change of a definition changes; `None` if it does not exist. Namespaces are in the store, and
/// the other definitions in memory.
pub(super) fn find_fingerprint(
    gateway: &Gateway,
    read: &impl Read,
    DefinitionId { kind, name }: &DefinitionId,
) -> Result<Option<String>, GatewayError> {
    Ok(match kind {
        DefinitionKind::Namespace => {
            namespace::get(read, name)?.map(|namespace| namespace.fingerprint())
        }
        DefinitionKind::Shapes => {
            gateway.catalogue.get_shapes_graph(name).map(|graph| graph.metadata.fingerprint())
        }
        DefinitionKind::Group => gateway.auth.groups.get(name).map(|group| group.fingerprint()),
        DefinitionKind::BusinessObject => {
            gateway.catalogue.find_saved(name).map(|saved| saved.fingerprint())
        }
    })
}
