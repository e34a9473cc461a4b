//! Namespaces: a name, a URI base, and a generator of identifiers.
//!
//! A namespace is immutable once it is used: if a mapping names it, its graph holds a quad, or its counter has issued
//! a number. So the meaning of a URI never changes for its users. Only [`moving`] gives a used namespace another base,
//! while the service is stopped, and all its URIs with it.

mod change;
mod known;
mod minting;
pub mod moving;
pub(crate) mod segment;
mod taken_numbers;

pub(crate) use change::{define_namespace, put_with_cache};
pub use change::{delete, put, unchangeable_reason, undeletable_reason};
pub use known::KnownNamespaces;
pub(crate) use known::{NamespaceCache, Overlaps};
pub use minting::{COUNTERS, RESERVED, mint_identifier};
pub(crate) use minting::{MintingState, is_taken, mint_number, release_identifier};
pub(crate) use taken_numbers::TakenNumbers;

use super::list::is_list_node;
use oxrdf::{GraphName, NamedNode, NamedNodeRef};
use penstock_base::collections;
use penstock_base::definition::{self, MAX_NAME_CHARACTERS};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::hex::encode_hex;
use penstock_base::json::{self, Json, Members};
use penstock_base::table::{AsJson, Table};
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::namespace::{DefinedNamespace, Generator};
use penstock_store::{Error, Pattern, Read};
use segment::encode_segment;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The namespaces, by name.
const NAMESPACES: Table<String, AsJson<Namespace>> = Table::new(collections::NAMESPACES);

/// The maximum length of a base in bytes.
const MAX_BASE_BYTES: usize = 1024;

/// A stored namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// Its name, as mappings write it.
    pub name: String,
    /// The beginning of every identifier; also the name of the graph.
    pub uri_base: String,
    /// The generator of the local part of identifiers.
    #[serde(default)]
    pub generator: Generator,
    /// When it was created (RFC 3339, UTC).
    #[serde(default)]
    pub created_at: String,
}

impl Namespace {
    /// Creates the defined namespace, with this base and this generator if the definition has none.
    #[must_use]
    pub fn from_definition(
        definition: DefinedNamespace,
        default_base: String,
        default_generator: Generator,
    ) -> Self {
        Self {
            name: definition.name,
            uri_base: definition.uri_base.unwrap_or(default_base),
            generator: definition.generator.unwrap_or(default_generator),
            created_at: String::new(),
        }
    }

    /// Returns whether it already matches this definition.
    pub(super) fn matches(&self, definition: &DefinedNamespace) -> bool {
        definition.uri_base.as_ref().is_none_or(|base| *base == self.uri_base)
            && definition.generator.is_none_or(|generator| generator == self.generator)
    }

    /// Returns the name of its graph, which is the URI base.
    pub fn graph_name(&self) -> NamedNode {
        NamedNode::new_unchecked(&self.uri_base)
    }

    /// Returns the identifier with this local part. A `/` separates it from the base, unless the base ends in `/`, `#`
    /// or `:`.
    fn build_identifier(&self, local: &str) -> NamedNode {
        NamedNode::new_unchecked(format!("{}{local}", self.identifier_prefix()))
    }

    fn separator(&self) -> &'static str {
        if self.uri_base.ends_with(['/', '#', ':']) { "" } else { "/" }
    }

    /// Returns the beginning of every identifier.
    pub fn identifier_prefix(&self) -> String {
        format!("{}{}", self.uri_base, self.separator())
    }

    /// Returns whether a URI is in this namespace: it is the base, or begins like the identifiers.
    pub fn contains(&self, uri: NamedNodeRef<'_>) -> bool {
        uri.as_str()
            .strip_prefix(&self.uri_base)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(self.separator()))
    }

    /// Returns a text that another base or generator changes.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::new()
            .chain_update(self.generator.name())
            .chain_update([0])
            .chain_update(&self.uri_base)
            .finalize();
        encode_hex(&digest)
    }
}

/// Reads the body of a PUT of the namespace `name`. The body may contain the read-only members of an answer; they have no
/// effect.
///
/// # Errors
/// `ErrorClass::Malformed` as [`json::parse`]; `ErrorClass::Invalid` with every finding.
pub fn parse_definition(name: &str, body: &[u8]) -> Result<DefinedNamespace, GatewayError> {
    read_definition(name, json::parse(body, 8)?)
}

/// Reads the value of such a body, or the fields of a form with the same names.
///
/// # Errors
/// `ErrorClass::Invalid` with every finding.
pub fn read_definition(name: &str, value: Json) -> Result<DefinedNamespace, GatewayError> {
    let mut findings = Vec::new();
    let mut definition = DefinedNamespace { name: name.to_owned(), ..DefinedNamespace::default() };
    if let Err(why) = check_name(name) {
        findings.push(Finding::at_pointer("", why));
    }
    if let Some(mut members) = Members::of_object(value, "", &mut findings) {
        if let Some(given) = members.take_string("name")
            && given != name
        {
            members.add_finding("name", format!("the body names {given:?}, the path {name:?}"));
        }
        definition.uri_base = read_base(&mut members);
        definition.generator = read_generator(&mut members);
        members.take("createdAt");
        members.take("warnings");
        members.report_unknown();
    }
    if findings.is_empty() {
        Ok(definition)
    } else {
        Err(GatewayError::with_findings(
            ErrorClass::Invalid,
            format!("the namespace {name:?} is not valid"),
            findings,
        ))
    }
}

/// Reads one element of the `namespaces` of a Business Object's definition.
pub(super) fn read_defined(members: &mut Members<'_>) -> DefinedNamespace {
    let name = members.take_string("name");
    if name.is_none() {
        members.report_missing("name", "expected the name of a namespace");
    }
    DefinedNamespace {
        name: name.unwrap_or_default(),
        uri_base: members.take_string("uriBase"),
        generator: read_generator(members),
    }
}

fn read_base(members: &mut Members<'_>) -> Option<String> {
    let base = members.take_string("uriBase")?;
    if let Err(why) = check_base(&base) {
        members.add_finding("uriBase", why);
    }
    Some(base)
}

fn read_generator(members: &mut Members<'_>) -> Option<Generator> {
    let parsed = Generator::parse(&members.take_string("generator")?);
    parsed.map_err(|why| members.add_finding("generator", why)).ok()
}

/// Reads a namespace by name.
pub fn get(read: &dyn Read, name: &str) -> Result<Option<Namespace>, Error> {
    NAMESPACES.get(read, name)
}

/// Reads up to `limit` namespaces after the name `after`, ordered by name.
pub fn list(read: &dyn Read, after: Option<&str>, limit: usize) -> Result<Vec<Namespace>, Error> {
    let rows = NAMESPACES.scan().after(after).read(read, limit)?;
    rows.iter().map(|row| Ok(row.value()?)).collect()
}

/// The beginning of default bases without a base URL.
pub(crate) const BASE_WITHOUT_URL: &str = "urn:penstock:";

/// Returns the default base of a namespace: `<base-url>/id/<Namespace>/`, or without a base URL
/// `urn:penstock:<gateway-id>:<Namespace>:`. The name is percent-encoded.
pub fn default_base(base_url: Option<&str>, gateway_id: &str, name: &str) -> String {
    let name = encode_segment(name);
    match base_url {
        Some(base_url) => format!("{}/id/{name}/", base_url.trim_end_matches('/')),
        None => {
            format!("{BASE_WITHOUT_URL}{}:{name}:", encode_segment(gateway_id))
        }
    }
}

/// Checks the name of a namespace.
///
/// # Errors
/// Returns the reason why the name is not valid.
pub fn check_name(name: &str) -> Result<(), String> {
    const FORBIDDEN: &[char] = &['<', '>', ':', '/', '"', '{', '}', '|', '^', '`', '\\'];
    definition::check_name(DefinitionKind::Namespace, name, MAX_NAME_CHARACTERS, FORBIDDEN)
}

/// Checks the URI base of a namespace.
///
/// # Errors
/// Returns the reason why the base is not valid.
pub(super) fn check_base(base: &str) -> Result<(), String> {
    if base.len() > MAX_BASE_BYTES {
        return Err(format!("the URI base is longer than {MAX_BASE_BYTES} bytes"));
    }
    match NamedNode::new(base) {
        Ok(base) if is_list_node(&base) => {
            Err(format!("{base} begins as the nodes of lists do; choose another base"))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "{base:?} is not an absolute IRI ({error}); a URI base looks like http://example.com/id/Plant/"
        )),
    }
}

/// Returns whether the graph of a namespace holds a quad.
pub fn has_data(read: &dyn Read, namespace: &Namespace) -> Result<bool, Error> {
    let graph = Some(GraphName::NamedNode(namespace.graph_name()));
    read.any(&Pattern { graph, ..Pattern::default() })
}

#[cfg(test)]
mod tests;
