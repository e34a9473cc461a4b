//! Namespaces: a name, a URI base, and a generator of identifiers.
//!
//! A namespace is immutable once it is used: if a mapping names it, its graph holds a quad, or its counter has issued
//! a number. So the meaning of a URI never changes for its users. Only [`moving`] gives a used namespace another base,
//! while the service is stopped, and all its URIs with it.

mod known;
mod minting;
pub mod moving;
mod taken_numbers;

pub use known::KnownNamespaces;
use known::record_change;
pub(crate) use known::{NamespaceCache, Overlaps};
pub use minting::{COUNTERS, RESERVED, mint_identifier};
pub(crate) use minting::{MintingState, is_taken, mint_number, release_identifier};
use minting::{rewrite_counter, rewrite_reserved};
pub(crate) use taken_numbers::TakenNumbers;

use super::list::is_list_node;
use super::{catalogue, natural_key};
use moving::Rebase;
use oxrdf::{GraphName, NamedNode, NamedNodeRef};
use penstock_base::Put;
use penstock_base::collections;
use penstock_base::definition::{self, MAX_NAME_CHARACTERS, missing_error};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::hex::encode_hex;
use penstock_base::json::{self, Json, Members};
use penstock_base::table::{AsJson, Row, Table};
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::namespace::{DefinedNamespace, Generator};
use penstock_store::{Error, Pattern, Read, Transaction};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The namespaces, by name.
const NAMESPACES: Table<String, AsJson<Namespace>> = Table::new(collections::NAMESPACES);

/// The characters of a name that are percent-encoded in a URI: all but the unreserved ones (RFC 3986, 2.3).
const PERCENT_ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The maximum number of namespaces. All of them are in memory.
const MAX_NAMESPACES: usize = if cfg!(test) { 200 } else { 10_000 };

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

/// Creates a namespace, or changes one that is not used yet. Writing the same content again has no effect, even if the
/// namespace is used.
///
/// # Errors
/// - `ErrorClass::Invalid` for an invalid name or base
/// - `ErrorClass::Conflict` for a change of a used namespace, or a base that gives the same identifiers as another
///   namespace
pub fn put(
    transaction: &mut Transaction<'_>,
    namespace: Namespace,
) -> Result<Put<Namespace>, GatewayError> {
    put_with_cache(transaction, &NamespaceCache::default(), namespace)
}

/// As [`put`], with the namespaces in memory.
pub(super) fn put_with_cache(
    transaction: &mut Transaction<'_>,
    cache: &NamespaceCache,
    namespace: Namespace,
) -> Result<Put<Namespace>, GatewayError> {
    put_for_business_object(transaction, cache, namespace, None)
}

/// Creates or changes a namespace that the definition of a Business Object defines. An existing namespace keeps its base
/// and its generator if the definition has none. It may be changed as long as it
/// holds no data and no other Business Object names it.
///
/// # Errors
/// As [`put`].
pub(super) fn define_namespace(
    transaction: &mut Transaction<'_>,
    cache: &NamespaceCache,
    definition: &DefinedNamespace,
    default_base: String,
    business_object: Option<&str>,
) -> Result<Put<Namespace>, GatewayError> {
    let before = get(transaction, &definition.name)?;
    let (base, generator) = before.map_or_else(
        || (default_base, Generator::default()),
        |before| (before.uri_base, before.generator),
    );
    let namespace = Namespace::from_definition(definition.clone(), base, generator);
    put_for_business_object(transaction, cache, namespace, business_object)
}

/// As [`put`], but a reference by the Business Object with the id `business_object` does not count as use.
fn put_for_business_object(
    transaction: &mut Transaction<'_>,
    cache: &NamespaceCache,
    mut namespace: Namespace,
    business_object: Option<&str>,
) -> Result<Put<Namespace>, GatewayError> {
    check_name(&namespace.name).map_err(|why| GatewayError::new(ErrorClass::Invalid, why))?;
    check_base(&namespace.uri_base).map_err(|why| GatewayError::new(ErrorClass::Invalid, why))?;

    let before = get(transaction, &namespace.name)?;
    if let Some(before) = &before {
        if before.uri_base == namespace.uri_base && before.generator == namespace.generator {
            return Ok(Put::Replaced(before.clone()));
        }
        if let Some(why) = unchangeable_reason(transaction, before, business_object)? {
            return Err(GatewayError::new(
                ErrorClass::Conflict,
                format!(
                    "the namespace {:?} is used and cannot be changed ({why}); define another one",
                    namespace.name
                ),
            ));
        }
    }
    let known = cache.current(transaction)?;
    if before.is_none() && known.len() >= MAX_NAMESPACES {
        return Err(GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "the limit of {MAX_NAMESPACES} namespaces is reached; delete some that are not used"
            ),
        ));
    }
    check_base_is_free(&namespace, &known)?;
    natural_key::check_new_base(transaction, &namespace, &known)?;
    // Then the next change need not copy what is in memory.
    drop(known);
    namespace.created_at =
        before.as_ref().map_or_else(penstock_base::time::now_rfc3339, |b| b.created_at.clone());
    NAMESPACES.put(transaction, &namespace.name, &namespace)?;
    record_change(transaction, &namespace.name)?;
    Ok(Put::new(namespace, before.is_some()))
}

/// Checks that no other namespace mints the identifiers of this one.
fn check_base_is_free(namespace: &Namespace, known: &KnownNamespaces) -> Result<(), GatewayError> {
    let Some(owner) = known.find_same_base(namespace) else { return Ok(()) };
    let explanation = if owner.uri_base == namespace.uri_base {
        String::new()
    } else {
        format!(", which gives the same identifiers as {:?}", namespace.uri_base)
    };
    Err(GatewayError::new(
        ErrorClass::Conflict,
        format!(
            "the namespace {:?} has the base {:?} already{explanation}; each namespace needs its own base",
            owner.name, owner.uri_base
        ),
    ))
}

/// Deletes a namespace that is not used. Its counter is kept; a new namespace with the same base continues it.
///
/// # Errors
/// `ErrorClass::NotFound`; `ErrorClass::Conflict` if a mapping names it or its graph holds quads.
pub fn delete(transaction: &mut Transaction<'_>, name: &str) -> Result<(), GatewayError> {
    let namespace =
        get(transaction, name)?.ok_or_else(|| missing_error(DefinitionKind::Namespace, name))?;
    if let Some(why) = undeletable_reason(transaction, &namespace, None)? {
        return Err(GatewayError::new(
            ErrorClass::Conflict,
            format!("the namespace {name:?} is used: {why}"),
        ));
    }
    NAMESPACES.delete(transaction, name)?;
    record_change(transaction, name)?;
    Ok(())
}

/// Percent-encodes every byte outside the unreserved characters (RFC 3986, 2.3).
pub(super) fn encode_segment(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, PERCENT_ENCODED)
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

/// Returns why a namespace can no longer be changed; `None` if it can. Ignores the use by the Business Object with the id
/// `business_object`.
pub fn unchangeable_reason(
    read: &dyn Read,
    namespace: &Namespace,
    business_object: Option<&str>,
) -> Result<Option<String>, Error> {
    if let Some(why) = undeletable_reason(read, namespace, business_object)? {
        return Ok(Some(why));
    }
    let has_counter = COUNTERS.contains(read, &namespace.uri_base)?;
    Ok(has_counter.then(|| "its counter has issued numbers".to_owned()))
}

/// Returns why a namespace cannot be deleted; `None` if it can. Ignores the use by the Business Object with the id
/// `business_object`.
pub fn undeletable_reason(
    read: &dyn Read,
    namespace: &Namespace,
    business_object: Option<&str>,
) -> Result<Option<String>, Error> {
    if let Some(object) = catalogue::find_namespace_user(read, &namespace.name, business_object)? {
        return Ok(Some(format!("the mapping of the Business Object {object:?} names it")));
    }
    Ok(has_data(read, namespace)?.then(|| "its graph holds data".to_owned()))
}

/// Returns whether the graph of a namespace holds a quad.
pub fn has_data(read: &dyn Read, namespace: &Namespace) -> Result<bool, Error> {
    let graph = Some(GraphName::NamedNode(namespace.graph_name()));
    read.any(&Pattern { graph, ..Pattern::default() })
}

/// Gives the stored namespace that moves its new base. Returns whether this changes it.
fn rewrite_namespace(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    row: &Row<String, AsJson<Namespace>>,
) -> Result<bool, GatewayError> {
    let stored = row.value()?;
    if stored.name != rebase.to().name || stored.uri_base == rebase.to().uri_base {
        return Ok(false);
    }
    // No gateway is running that has the namespaces in memory, so their number stays.
    NAMESPACES.put(transaction, &stored.name, rebase.to())?;
    Ok(true)
}

#[cfg(test)]
mod tests;
