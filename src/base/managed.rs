//! Which definitions come from files: a record for each, so that what `service.definitions.dir` holds is changed only there.
//!
//! A record is written in the commit that applies its file. It stays when the file is gone (`is_unmanaged`), because
//! `penstock apply --prune` deletes only what files created.
use crate::collections;
use crate::error::{ErrorClass, GatewayError};
use crate::table::{AsJson, Table};
use penstock_resources::definitions::DefinitionKind;
use penstock_store::{Error, Format, Read, Transaction};
use serde::{Deserialize, Serialize};

/// The records, by the kind, a slash and the name.
const DEFINITIONS: Table<String, AsJson<ManagedDefinition>> =
    Table::new(collections::MANAGED_DEFINITIONS);

/// A definition that comes from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedDefinition {
    /// Its kind.
    pub kind: DefinitionKind,
    /// Its name.
    pub name: String,
    /// The name of the file.
    pub file: String,
    /// The folder of the file, as it was given.
    pub folder: String,
    /// Whether the folder is that of `service.definitions.dir`, so that nothing else changes the definition.
    pub is_read_only: bool,
    /// Whether the file created the definition, so that `--prune` may delete it.
    pub is_created: bool,
    /// Whether no file has it any more.
    pub is_unmanaged: bool,
    /// Identifies the definition as it was stored when the file was applied.
    pub fingerprint: String,
}

impl ManagedDefinition {
    /// Returns whether the stored definition with this fingerprint is the one that the file was applied to, perhaps changed
    /// since. Otherwise that one was deleted, and another one created under its name. A namespace does not show which of both
    /// it is.
    pub fn is_record_of(&self, fingerprint: &str) -> bool {
        // Behind the space is the version, before it what stays the same. Namespaces have no space.
        match (self.fingerprint.rsplit_once(' '), fingerprint.rsplit_once(' ')) {
            (Some((own, _)), Some((other, _))) => own == other,
            _ => true,
        }
    }

    /// Stores the record. Returns whether it was another one before.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn store(&self, transaction: &mut Transaction<'_>) -> Result<bool, GatewayError> {
        let key = document_key(self.kind, &self.name);
        if DEFINITIONS.get_readable(transaction, &key)?.as_ref() == Some(self) {
            return Ok(false);
        }
        // An older version would ignore it, and let clients change what only a file may change.
        transaction.require_format(Format::V3);
        DEFINITIONS.put(transaction, &key, self)?;
        Ok(true)
    }
}

/// Reads all records, ordered by kind and name. One that this version cannot read is left out.
///
/// # Errors
/// The errors of the store.
pub fn list_managed(read: &dyn Read) -> Result<Vec<ManagedDefinition>, Error> {
    let rows = DEFINITIONS.scan().read_all(read)?;
    let mut all: Vec<ManagedDefinition> = rows.iter().filter_map(|row| row.value().ok()).collect();
    all.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    Ok(all)
}

/// Reads the record of a definition; `None` if there is none that this version can read.
///
/// # Errors
/// The errors of the store.
pub fn find_managed(
    read: &dyn Read,
    kind: DefinitionKind,
    name: &str,
) -> Result<Option<ManagedDefinition>, Error> {
    DEFINITIONS.get_readable(read, &document_key(kind, name))
}

/// Removes the record of a definition.
///
/// # Errors
/// The errors of the store.
pub fn forget_managed(
    transaction: &mut Transaction<'_>,
    kind: DefinitionKind,
    name: &str,
) -> Result<(), Error> {
    DEFINITIONS.delete(transaction, &document_key(kind, name))
}

/// Checks that a definition may be changed by other means than a file of `service.definitions.dir`. A commit calls it for
/// each definition that it changes on behalf of a client.
///
/// # Errors
/// `ErrorClass::Conflict`, which names the file.
pub fn check_editable(
    read: &dyn Read,
    kind: DefinitionKind,
    name: &str,
) -> Result<(), GatewayError> {
    match find_managed(read, kind, name)? {
        Some(managed) if managed.is_read_only => Err(read_only_error(&managed)),
        _ => Ok(()),
    }
}

fn read_only_error(managed: &ManagedDefinition) -> GatewayError {
    let ManagedDefinition { kind, name, file, .. } = managed;
    GatewayError::new(
        ErrorClass::Conflict,
        format!(
            "the {} {name:?} is defined by the file {file} of service.definitions.dir, and cannot be changed here; change \
             the file, then send SIGHUP to the service (systemctl reload penstock)",
            kind.label()
        ),
    )
}

fn document_key(kind: DefinitionKind, name: &str) -> String {
    format!("{}/{name}", kind.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_store::{Options, Store};

    #[test]
    fn a_record_protects_its_definition_until_it_is_released() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let mut managed = ManagedDefinition {
            kind: DefinitionKind::Group,
            name: "leaders".to_owned(),
            file: "groups.yaml".to_owned(),
            folder: "/etc/penstock/definitions".to_owned(),
            is_read_only: true,
            is_created: true,
            is_unmanaged: false,
            fingerprint: "1".to_owned(),
        };
        let save = |managed: &ManagedDefinition| {
            store.transact::<_, GatewayError>(|change| managed.store(change)).unwrap().0
        };
        assert!(save(&managed));
        assert!(!save(&managed));
        assert_eq!(store.format(), Format::V3);
        let check = |name| check_editable(&store.read(), DefinitionKind::Group, name);
        let error = check("leaders").unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict);
        assert!(error.detail.contains("the file groups.yaml"), "{error}");
        check("others").unwrap();
        check_editable(&store.read(), DefinitionKind::Namespace, "leaders").unwrap();
        managed.is_read_only = false;
        save(&managed);
        check("leaders").unwrap();
        assert_eq!(list_managed(&store.read()).unwrap(), [managed]);
    }
}
