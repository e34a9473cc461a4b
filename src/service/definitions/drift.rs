//! Finds definitions that are no longer as their files define them.
use super::kind::{Result, StoredKind as _};
use crate::blocking::run_in_place;
use crate::gateway::Gateway;
use penstock_base::managed::{find_managed, list_managed};
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::gateway::{Drift, DriftState};

/// Returns the number of definitions in files, and each definition that differs from its file. Blocking.
///
/// # Errors
/// The errors of the store.
pub fn find_drift(gateway: &Gateway) -> Result<(usize, Vec<Drift>)> {
    let read = gateway.store.read();
    let (mut managed, mut drifts) = (0, Vec::new());
    for record in list_managed(&read)? {
        let (kind, name) = (record.kind, record.name);
        let stored = of_kind!(kind, K => K::find_fingerprint(gateway, &read, &name))?;
        managed += usize::from(!record.is_unmanaged);
        let state = match stored {
            // It is deleted, and the next run forgets it.
            None if record.is_unmanaged => continue,
            Some(_) if record.is_unmanaged => DriftState::Unmanaged,
            None => DriftState::Deleted,
            Some(stored) if stored == record.fingerprint => continue,
            Some(_) => DriftState::Changed,
        };
        drifts.push(Drift { kind, name, file: record.file, state });
    }
    Ok((managed, drifts))
}

/// Returns the name of the file of `service.definitions.dir` that has a definition, so that it cannot be changed elsewhere.
pub fn find_source_file(gateway: &Gateway, kind: DefinitionKind, name: &str) -> Option<String> {
    let found = run_in_place(|| find_managed(&gateway.store.read(), kind, name));
    let managed = found.ok().flatten().filter(|managed| managed.is_read_only);
    managed.map(|managed| managed.file)
}
