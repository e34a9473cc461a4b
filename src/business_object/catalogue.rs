//! The catalogue: every Business Object, stored as a document and held compiled in memory.
use super::resource::Compiled;
use crate::fault::Fault;
use penstock_store::Store;
use std::sync::Arc;

/// The collection of documents that holds them: id to JSON.
pub const COLLECTION: &str = "business-objects";

/// What the catalogue takes from the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defaults {
    /// `service.base-url`, without a slash at its end.
    pub base_url: Option<String>,
    /// `service.gateway-id`.
    pub gateway_id: String,
    /// `service.namespace.auto-create`.
    pub auto_create_namespaces: bool,
}

/// Every Business Object of the gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalogue {
    // PLACEHOLDER
    store: Store,
    defaults: Arc<Defaults>,
}

/// What a change of the catalogue asks of the version that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfMatch {
    /// Nothing.
    #[default]
    Any,
    /// That there is one (`If-Match: *`).
    Exists,
    /// That it has this version.
    Version(u64),
}

impl Catalogue {
    /// Reads all definitions from the store and compiles them.
    pub fn open(store: Store, defaults: Defaults) -> Result<Self, Fault> {
        Ok(Self { store, defaults: Arc::new(defaults) })
    }

    /// One by id or name.
    pub fn get(&self, id_or_name: &str) -> Option<Arc<Compiled>> {
        let _ = (id_or_name, &self.store, &self.defaults);
        todo!()
    }

    /// All, ordered by name.
    pub fn list(&self) -> Vec<Arc<Compiled>> {
        todo!()
    }

    /// Creates or replaces the one of the same name, and creates the namespaces it lacks. True when created.
    /// `check_target` says why a bucketName leads nowhere.
    ///
    /// # Errors
    /// As `Definition::read`; `Kind::Invalid` for a target that leads nowhere or an unknown namespace;
    /// `Kind::PreconditionFailed`.
    pub fn put(
        &self,
        body: &[u8],
        if_match: IfMatch,
        check_target: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<(Arc<Compiled>, bool), Fault> {
        let _ = (body, if_match, check_target);
        todo!()
    }

    /// Replaces the one of this id or name; it may be renamed, unless another has the name (409).
    ///
    /// # Errors
    /// As [`Self::put`], and `Kind::NotFound`.
    pub fn replace(
        &self,
        id_or_name: &str,
        body: &[u8],
        if_match: IfMatch,
        check_target: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<Arc<Compiled>, Fault> {
        let _ = (id_or_name, body, if_match, check_target);
        todo!()
    }

    /// Deletes the definition; the objects stay in the graph.
    ///
    /// # Errors
    /// `Kind::NotFound`, `Kind::PreconditionFailed`.
    pub fn delete(&self, id_or_name: &str, if_match: IfMatch) -> Result<(), Fault> {
        let _ = (id_or_name, if_match);
        todo!()
    }
}

/// The name of a Business Object whose mapping names this namespace.
pub(super) fn user_of_namespace(
    read: &impl penstock_store::Read,
    namespace: &str,
) -> Result<Option<String>, penstock_store::Error> {
    let _ = (read, namespace);
    Ok(None)
}
