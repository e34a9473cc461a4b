//! Finds the URI of an object of a request: given, of the object with its natural key, linked from its parent, or minted.
use super::Mode;
use super::mapping_namespaces::MappingNamespaces;
use super::node::{GivenObject, GivenValue};
use super::request_writer::{ObjectName, RequestWriter};
use crate::mapping::{Field, KeyScope, Property, Shape};
use crate::natural_key::{self, KeyMatch};
use oxrdf::{NamedNode, NamedNodeRef, Quad, Term};
use penstock_base::error::GatewayError;
use penstock_rdf::MAX_IRI_BYTES;
use penstock_resources::namespace::Generator;
use penstock_store::Read as _;

/// The maximum number of values of `absent` that an error shows.
const MAX_SHOWN_ABSENT: usize = 5;

/// The key that an object of the request gives.
enum GivenKey {
    /// The values of all fields, as the URI of the key.
    Complete(NamedNode),
    /// A field has no value, or the shape has no key.
    Incomplete,
    /// An error was reported.
    Invalid,
}

impl<'m> RequestWriter<'_, '_, 'm> {
    /// Returns the URI of an object. `found` is the object that its parent links to, if that decides. `None` if an error
    /// was reported.
    pub(super) fn resolve_name(
        &mut self,
        node: &GivenObject<'m>,
        found: Option<NamedNode>,
        parent: Option<&ObjectName>,
    ) -> Result<Option<ObjectName>, GatewayError> {
        let parent_uri = parent.map(|parent| parent.uri.as_ref());
        let key_uri = match self.read_given_key(node, parent_uri) {
            GivenKey::Invalid => return Ok(None),
            GivenKey::Incomplete => None,
            GivenKey::Complete(uri) => Some(uri),
        };
        if let Some(uri) = &node.uri {
            if !self.check_given_uri(node, uri, key_uri)? {
                return Ok(None);
            }
            return self.name_keyed(node, parent, uri.clone()).map(Some);
        }
        if let Some(key_uri) = key_uri {
            let uri = self.find_by_key(node, key_uri, parent.is_some())?;
            return uri.map(|uri| self.name_keyed(node, parent, uri)).transpose();
        }
        if let Some(uri) = found {
            return Ok(Some(ObjectName::known(uri)));
        }
        if node.shape.key_fields().is_some() {
            let message = self.describe_missing_key(node, parent.is_none());
            self.findings.add_invalid(&node.pointer, message);
            return Ok(None);
        }
        self.mint_name(node)
    }

    /// Describes which fields of its key an object without a uri lacks, and from where they get their values.
    fn describe_missing_key(&self, node: &GivenObject<'m>, is_root: bool) -> String {
        let has_value = |index: usize| {
            node.given.iter().any(|given| given.field_index == index && !given.values.is_empty())
        };
        let describe = |index: usize| {
            let field = node.shape.fields.get(index)?;
            let mut sources = Vec::new();
            if is_root && let Some((_, outer)) = self.outer.iter().find(|(of, _)| *of == index) {
                sources.push(format!("`outer` is {outer}"));
            }
            let reading = field.property().and_then(|property| property.reading.as_ref());
            if let Some(reading) = reading.filter(|reading| !reading.absent.is_empty()) {
                let absent = reading.absent.iter().take(MAX_SHOWN_ABSENT);
                let absent: Vec<String> = absent.map(|value| value.json().to_string()).collect();
                sources.push(format!("`absent` is {}", absent.join(", ")));
            }
            Some(match sources.as_slice() {
                [] => field.name.clone(),
                sources => format!("{} ({})", field.name, sources.join("; ")),
            })
        };
        let indexes = node.shape.key_fields().map_or(&[][..], |key| &key.indexes);
        let missing = indexes.iter().copied().filter(|index| !has_value(*index));
        let missing: Vec<String> = missing.filter_map(describe).collect();
        if missing.is_empty() {
            let names = node.shape.key_names().join(", ");
            return format!("the object has no uri, and its key ({names}) has no usable value");
        }
        format!(
            "the object has neither a uri nor a value for each field of its key; there is none for {}",
            missing.join(", ")
        )
    }

    /// Names an object by its URI. If the request unlinked it before, it is new: a member of a map, and an object with a
    /// key in a new parent, which has the URI of an earlier element of an ordered array.
    fn name_keyed(
        &mut self,
        node: &GivenObject<'m>,
        parent: Option<&ObjectName>,
        uri: NamedNode,
    ) -> Result<ObjectName, GatewayError> {
        let is_in_new = node.uri.is_none()
            && is_keyed_in_parent(node.shape)
            && parent.is_some_and(|parent| parent.minted || parent.is_emptied);
        let may_be_new = is_in_new || node.shape.map_member().is_some();
        let is_emptied =
            may_be_new && self.orphans.remove_given(self.transaction, self.scope, &uri)?;
        let mut name = ObjectName::known(uri);
        name.is_emptied = is_emptied;
        Ok(name)
    }

    fn mint_name(&mut self, node: &GivenObject<'m>) -> Result<Option<ObjectName>, GatewayError> {
        let (namespace, _) = self.namespaces.namespace_of(node.shape);
        if namespace.generator == Generator::Manual {
            self.findings.add_invalid(
                &node.pointer,
                format!(
                    "the uri is missing, and the namespace {:?} mints none (its generator is manual)",
                    namespace.name
                ),
            );
            return Ok(None);
        }
        let claimed = &self.claimed;
        let uri =
            self.identifiers.mint(self.transaction, namespace, |uri| claimed.contains(uri))?;
        if namespace.generator == Generator::Counter {
            self.minted.insert(uri.clone(), ());
        }
        Ok(Some(ObjectName::new(uri)))
    }

    /// Returns the URI of the key that the fields of an object give, and reports a value that no key can have.
    fn read_given_key(
        &mut self,
        node: &GivenObject<'m>,
        parent: Option<NamedNodeRef<'_>>,
    ) -> GivenKey {
        // The object is rejected anyway, and thousands of long URIs would take seconds.
        if self.findings.is_full() {
            return GivenKey::Invalid;
        }
        match find_key_uri(self.namespaces, node, parent) {
            Ok(Some(uri)) => {
                let is_derived = is_keyed_in_parent(node.shape);
                let bytes = if is_derived { uri.as_str().len() } else { 0 };
                match self.derived_iris.add(bytes) {
                    Ok(()) => GivenKey::Complete(uri),
                    Err(message) => {
                        self.findings.add_invalid(&node.pointer, message);
                        GivenKey::Invalid
                    }
                }
            }
            Ok(None) => GivenKey::Incomplete,
            Err((field, why)) => {
                let message = format!("the value cannot be in the key of the object: {why}");
                self.findings.add_invalid(&field.pointer_in(&node.pointer), message);
                GivenKey::Invalid
            }
        }
    }

    /// Returns the URI of the object with this key, or of a new one. A nested object is written later than it is named.
    fn find_by_key(
        &mut self,
        node: &GivenObject<'m>,
        key_uri: NamedNode,
        is_nested: bool,
    ) -> Result<Option<NamedNode>, GatewayError> {
        match self.match_key(node.shape, &key_uri)? {
            KeyMatch::None if key_uri.as_str().len() > MAX_IRI_BYTES => {
                let message = format!(
                    "the URI of its key would have more than {MAX_IRI_BYTES} bytes; shorten the values of its key, or \
                     give it a uri"
                );
                self.findings.add_invalid(&node.pointer, message);
                Ok(None)
            }
            KeyMatch::None => {
                if is_nested {
                    self.named_by_key.insert(key_uri.clone(), key_uri.clone());
                }
                Ok(Some(key_uri))
            }
            KeyMatch::One(uri) => Ok(Some(uri)),
            // The links to the members that a map does not show may be outside the write scope.
            KeyMatch::Several(found)
                if matches!(self.mode, Mode::Update | Mode::Replace)
                    && node.shape.map_member().is_some() =>
            {
                Ok(found.into_iter().min())
            }
            KeyMatch::Several(found) => {
                self.findings.add_conflict(&node.pointer, describe_several(&found));
                Ok(None)
            }
            KeyMatch::UriTaken => {
                let message = format!(
                    "the object would get the URI {}, whose object has another key now; give this one a uri",
                    key_uri.as_str()
                );
                self.findings.add_conflict(&node.pointer, message);
                Ok(None)
            }
        }
    }

    /// Returns the URI of the object with the key that the fields of an object give, for DELETE. If no object has the key, it
    /// is the URI of the key. `None` if an error was reported.
    pub(super) fn find_keyed_object(
        &mut self,
        node: &GivenObject<'m>,
    ) -> Result<Option<NamedNode>, GatewayError> {
        let GivenKey::Complete(key_uri) = self.read_given_key(node, None) else { return Ok(None) };
        match self.match_key(node.shape, &key_uri)? {
            KeyMatch::One(uri) => Ok(Some(uri)),
            // An object with this URI that lost its key values is not the one that is meant.
            KeyMatch::None
                if self.absent.contains(&key_uri)
                    || self.transaction.quads_about(&key_uri.clone().into())?.is_empty() =>
            {
                Ok(Some(key_uri))
            }
            KeyMatch::Several(found) => {
                self.findings.add_conflict(&node.pointer, describe_several(&found));
                Ok(None)
            }
            KeyMatch::None | KeyMatch::UriTaken => {
                let message = format!(
                    "no object has this key, and {} has another key now, or none; give the uri of the object",
                    key_uri.as_str()
                );
                self.findings.add_conflict(&node.pointer, message);
                Ok(None)
            }
        }
    }

    /// Returns the URI of a member of a map with this key; `None` if there is none, or if an error was reported.
    pub(super) fn find_member(
        &mut self,
        node: &GivenObject<'m>,
        parent: NamedNodeRef<'_>,
    ) -> Result<Option<NamedNode>, GatewayError> {
        let GivenKey::Complete(key_uri) = self.read_given_key(node, Some(parent)) else {
            return Ok(None);
        };
        match self.match_key(node.shape, &key_uri)? {
            KeyMatch::None | KeyMatch::UriTaken => Ok(None),
            KeyMatch::One(uri) => Ok(Some(uri)),
            KeyMatch::Several(found) => {
                self.findings.add_conflict(&node.pointer, describe_several(&found));
                Ok(None)
            }
        }
    }

    /// Finds the objects with this key. One of this request that has it may not be written yet.
    fn match_key(&mut self, shape: &Shape, key_uri: &NamedNode) -> Result<KeyMatch, GatewayError> {
        if let Some(uri) = self.named_by_key.get(key_uri) {
            return Ok(KeyMatch::One(uri.clone()));
        }
        let Some(key) = self.namespaces.key_of(shape) else { return Ok(KeyMatch::None) };
        let is_indexed = self.namespaces.is_key_indexed(shape);
        Ok(key.find_objects(self.transaction, key_uri, is_indexed)?)
    }

    /// Checks the URI that the request gives an object, whose fields may give its key too, and records it for the objects
    /// that follow. Returns false if an error was reported.
    fn check_given_uri(
        &mut self,
        node: &GivenObject<'m>,
        uri: &NamedNode,
        key_uri: Option<NamedNode>,
    ) -> Result<bool, GatewayError> {
        if self.minted.contains(uri) {
            self.findings.add_invalid(
                &node.pointer,
                format!(
                    "the URI {} was just minted for another object of this request; place objects with URIs first",
                    uri.as_str()
                ),
            );
            return Ok(false);
        }
        if self.namespaces.may_mint_later(uri) {
            self.claimed.insert(uri.clone());
        }
        let Some(key_uri) = key_uri else { return Ok(true) };
        let Some(key) = self.namespaces.key_of(node.shape) else { return Ok(true) };
        if key.read_texts(self.transaction, uri)?.is_some() {
            // It has a key already, and writing its fields checks that the request does not change it.
            return Ok(true);
        }
        let other = match self.match_key(node.shape, &key_uri)? {
            KeyMatch::None | KeyMatch::UriTaken => None,
            KeyMatch::One(other) => Some(other),
            KeyMatch::Several(found) => {
                self.findings.add_conflict(&node.pointer, describe_several(&found));
                return Ok(false);
            }
        };
        if let Some(other) = other.filter(|other| other != uri) {
            let message = format!(
                "the uri {} cannot be given to this object, because {} has its key ({}) already; leave out the uri",
                uri.as_str(),
                other.as_str(),
                node.shape.key_names().join(", ")
            );
            self.findings.add_invalid(&node.pointer, message);
            return Ok(false);
        }
        self.named_by_key.insert(key_uri, uri.clone());
        Ok(true)
    }
}

/// Returns the URI of the key that the fields of an object give; `None` if they do not give all of it.
///
/// # Errors
/// Returns the field whose value no key can have, and why.
pub(super) fn find_key_uri<'m>(
    namespaces: &MappingNamespaces,
    node: &GivenObject<'m>,
    parent: Option<NamedNodeRef<'_>>,
) -> Result<Option<NamedNode>, (&'m Field, &'static str)> {
    let Some(fields) = node.shape.key_fields() else { return Ok(None) };
    let Some(key) = namespaces.key_of(node.shape) else { return Ok(None) };
    let mut texts = Vec::with_capacity(fields.indexes.len());
    for index in &fields.indexes {
        let given = node.given.iter().find(|given| given.field_index == *index);
        let (Some(GivenValue::Term(term)), Some(property)) =
            (given.and_then(|given| given.values.first()), node.shape.property_at(*index))
        else {
            return Ok(None);
        };
        let Some(text) = natural_key::key_text(&property.value, term.as_ref()) else {
            return Ok(None);
        };
        if let Some(why) = natural_key::unusable_reason(&text)
            && let Some(field) = node.shape.fields.get(*index)
        {
            return Err((field, why));
        }
        texts.push(text);
    }
    Ok(Some(key.build_uri(parent, &texts)))
}

/// Returns whether the key of such objects counts only in their parent, whose URI is part of theirs.
pub(super) fn is_keyed_in_parent(shape: &Shape) -> bool {
    shape.key_fields().is_some_and(|key| key.scope == KeyScope::Parent)
}

fn describe_several(found: &[NamedNode]) -> String {
    let names: Vec<&str> = found.iter().map(NamedNode::as_str).collect();
    format!("several objects have this key: {}; correct or delete them first", names.join(", "))
}

/// Gives a key field the stored form of its value, if both are equal as keys.
///
/// # Errors
/// Returns the stored value if the request gives another one.
pub(super) fn keep_stored_value(
    property: &Property,
    given: &mut [GivenValue<'_>],
    current: &[&Quad],
) -> Result<(), Term> {
    let Some(GivenValue::Term(given)) = given.first_mut() else { return Ok(()) };
    let is_key_value =
        |quad: &&&Quad| natural_key::key_text(&property.value, quad.object.as_ref()).is_some();
    let mut stored = current.iter().filter(is_key_value).map(|quad| &quad.object).peekable();
    let Some(first) = stored.peek().copied() else { return Ok(()) };
    match stored.find(|stored| natural_key::is_same_key_value(&property.value, stored, given)) {
        Some(same) => {
            *given = same.clone();
            Ok(())
        }
        None => Err(first.clone()),
    }
}
