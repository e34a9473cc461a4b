//! What writing the objects of a request needs: its transaction and rules, and what it has read, named and minted so far.
use super::Mode;
use super::answer::Warnings;
use super::condition::ObjectCondition;
use super::convert::IgnoredFields;
use super::derived_iris::DerivedIris;
use super::findings::Findings;
use super::identifiers::Identifiers;
use super::mapping_namespaces::MappingNamespaces;
use super::orphans::Orphans;
use super::repeats::RepeatedObjects;
use super::request_uris::RequestUris;
use crate::mapping::{Outer, Shape};
use crate::namespace::moving::rebase::Rebase;
use crate::visible::VisibleObjects;
use crate::write_scope::WriteScope;
use oxrdf::{NamedNode, Quad};
use penstock_base::error::GatewayError;
use penstock_resources::ingestion::NestedObject;
use penstock_store::{FastMap, FastSet, Transaction};

/// Writes the objects of one request, one after the other.
#[derive(Debug)]
pub(super) struct RequestWriter<'w, 's, 'm> {
    pub(super) transaction: &'w mut Transaction<'s>,
    pub(super) namespaces: &'w MappingNamespaces,
    pub(super) scope: &'w WriteScope<'w>,
    pub(super) mode: Mode,
    /// The state that the object of the request must have.
    pub(super) condition: Option<&'w ObjectCondition>,
    /// The moves of namespaces since the request was received, if it runs again.
    pub(super) moves: Vec<Rebase>,
    pub(super) findings: Findings,
    pub(super) warnings: Warnings,
    pub(super) orphans: Orphans<'m>,
    pub(super) repeats: RepeatedObjects,
    pub(super) identifiers: Identifiers,
    pub(super) minted: RequestUris<()>,
    /// The URIs given in this request, perhaps not written yet, which counters must skip.
    pub(super) claimed: FastSet<NamedNode>,
    /// The objects with many quads that the request has read and may change.
    pub(super) read_objects: FastSet<NamedNode>,
    /// The number of quads about such objects that were read again.
    pub(super) read_again: usize,
    /// The objects with many quads that the request may not change, each with the reason.
    pub(super) refused_objects: FastMap<NamedNode, String>,
    /// The bytes of the IRIs that contain the URI of an object.
    pub(super) derived_iris: DerivedIris,
    /// For the URI of a key: the object of this request that has it, if it has another URI or may not be written yet.
    pub(super) named_by_key: RequestUris<NamedNode>,
    /// The links to nested objects that a MERGE removed, each with the field that had it.
    pub(super) unlinked: Vec<(String, Quad)>,
    /// What fields of the objects of the request take from documents around them.
    pub(super) outer: &'m [(usize, Outer)],
    /// The fields that the mapping does not have, if they are left out.
    pub(super) ignored_fields: Option<IgnoredFields>,
    /// The objects that DELETE has found absent.
    pub(super) absent: FastSet<NamedNode>,
    /// The nested objects with given URIs that this request created. If they follow as objects of the request itself,
    /// they count as created too.
    pub(super) created_nested: FastSet<NamedNode>,
    pub(super) nested: Vec<NestedObject>,
}

/// A URI, and whether it was just minted. An object with a new URI has no quads yet.
#[derive(Debug, Clone)]
pub(super) struct ObjectName {
    pub(super) uri: NamedNode,
    pub(super) minted: bool,
    /// Whether this request removed what was stored about it.
    pub(super) is_emptied: bool,
    /// Whether it is an element of a stored ordered array, which ADD does not change.
    pub(super) is_fixed: bool,
}

impl ObjectName {
    /// Creates the name of an object whose URI is given or was found.
    pub(super) fn known(uri: NamedNode) -> Self {
        Self { uri, minted: false, is_emptied: false, is_fixed: false }
    }

    /// Creates the name of an object about which nothing is stored.
    pub(super) fn new(uri: NamedNode) -> Self {
        Self { uri, minted: true, is_emptied: false, is_fixed: false }
    }
}

impl RequestWriter<'_, '_, '_> {
    /// Sets a savepoint before an object that may be rejected.
    pub(super) fn set_savepoint(&mut self) {
        self.transaction.set_savepoint();
        self.repeats.set_savepoint();
        self.minted.set_savepoint();
        self.named_by_key.set_savepoint();
        self.orphans.set_savepoint();
        self.identifiers.set_savepoint();
    }

    /// Undoes what the rejected object changed, as far as it affects later objects.
    pub(super) fn roll_back_to_savepoint(&mut self) -> Result<(), GatewayError> {
        self.repeats.roll_back_to_savepoint();
        self.minted.roll_back_to_savepoint();
        self.named_by_key.roll_back_to_savepoint();
        self.orphans.roll_back_to_savepoint();
        self.transaction.roll_back_to_savepoint()?;
        let Self { identifiers, transaction, claimed, .. } = self;
        identifiers.roll_back_to_savepoint(&**transaction, |uri| claimed.contains(uri))
    }

    /// Checks the condition of the request for its object. One that the credential may not see does not exist for it.
    ///
    /// # Errors
    /// `ErrorClass::PreconditionFailed` if it is in another state.
    pub(super) fn check_condition(
        &self,
        shape: &Shape,
        uri: &NamedNode,
    ) -> Result<(), GatewayError> {
        let Some(condition) = self.condition else { return Ok(()) };
        let visible = VisibleObjects::with_scope(&*self.transaction, self.scope.clone());
        condition.check_object(&visible, shape, uri)
    }
}
