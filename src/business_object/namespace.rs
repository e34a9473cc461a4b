//! Namespaces: a name, a URI base, and how identifiers are made.
use crate::fault::Fault;
use oxrdf::NamedNode;
use penstock_store::{Error, Read, Transaction};
use serde::{Deserialize, Serialize};

/// The collection of documents that holds them: name to JSON.
pub const COLLECTION: &str = "namespaces";

/// A stored namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// Its name, as mappings write it.
    pub name: String,
    /// What every identifier begins with; also the name of the graph.
    pub uri_base: String,
    /// How the local part is made.
    #[serde(default)]
    pub generator: Generator,
    /// When it was created (RFC 3339, UTC).
    #[serde(default)]
    pub created_at: String,
}

/// How the local part of an identifier is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generator {
    /// A UUID, version 7 (RFC 9562).
    #[default]
    Uuid,
    /// 1, 2, 3, ...; a number is never given twice.
    Counter,
    /// Ten random characters of `0-9a-z`.
    Alphanumeric,
    /// None: the caller gives every URI.
    Manual,
}

impl Namespace {
    /// The graph's name, which is the URI base.
    pub fn graph(&self) -> NamedNode {
        NamedNode::new_unchecked(&self.uri_base)
    }
}

/// One namespace by name.
pub fn get(read: &impl Read, name: &str) -> Result<Option<Namespace>, Error> {
    let _ = (read, name);
    todo!()
}

/// All namespaces by name, those after `after`, at most `limit`.
pub fn list(read: &impl Read, after: Option<&str>, limit: usize) -> Result<Vec<Namespace>, Error> {
    let _ = (read, after, limit);
    todo!()
}

/// Creates a namespace, or changes one that is not used yet. True when it was created.
///
/// # Errors
/// `Kind::Invalid` for a bad name or base; `Kind::Conflict` for a change of one in use, or a base
/// another namespace has.
pub fn put(
    transaction: &mut Transaction<'_>,
    namespace: Namespace,
) -> Result<(Namespace, bool), Fault> {
    let _ = (transaction, namespace);
    todo!()
}

/// Deletes a namespace that is not used.
///
/// # Errors
/// `Kind::NotFound`; `Kind::Conflict` when a mapping names it or its graph holds quads.
pub fn delete(transaction: &mut Transaction<'_>, name: &str) -> Result<(), Fault> {
    let _ = (transaction, name);
    todo!()
}

/// The default base of a namespace: `<base-url>/id/<Namespace>/`, or without a base URL
/// `urn:penstock:<gateway-id>:<Namespace>:`; the name percent-encoded.
pub fn default_base(base_url: Option<&str>, gateway_id: &str, name: &str) -> String {
    let _ = (base_url, gateway_id, name);
    todo!()
}

/// Mints an identifier that nothing in the store has yet. A counter's new state is part of the transaction.
///
/// # Errors
/// `Kind::Invalid` for a namespace whose generator is `manual`.
pub fn mint(transaction: &mut Transaction<'_>, namespace: &Namespace) -> Result<NamedNode, Fault> {
    let _ = (transaction, namespace);
    todo!()
}
