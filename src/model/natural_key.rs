//! Natural keys: the fields of a mapping whose values identify an object.
//!
//! A new object gets the URI of its key: the base of its namespace, and the values of the key, percent-encoded and joined
//! by `/`. So the same data leads to the same object, whatever its order and source. An object that has its key values but
//! another URI keeps that URI. An index finds such objects: `index` maintains it in every commit that changes the graph.
//! `definition` has the keys of a mapping, and `agreement` checks that all mappings agree on the key of a namespace.
//! `build` creates the index of one key that a definition adds to a namespace with objects. `builds` does so for all keys of a
//! commit, and removes the entries of keys that no definition has any more. `text` has the texts of values in keys.
//!
//! A key belongs to its namespace: it covers all objects with quads in the namespace's graph, whatever wrote them.

mod agreement;
mod build;
mod builds;
mod definition;
mod index;
#[cfg(test)]
mod tests;
mod text;

pub(super) use agreement::{
    OtherKeys, check_keys, check_moved_base, check_new_base, check_omitted_key,
};
pub(super) use build::KeyBuild;
pub(super) use builds::{KeyBuilds, build_index, rebuild_index, remove_unused_entries};
pub(super) use definition::{collect_keys, merge_key};
pub(super) use index::{GainedKey, KeyMatch};
pub(super) use text::{OnlyText, is_same_key_value, key_text, unusable_reason};

use crate::list::find_element_owners;
use crate::mapping::Value;
use crate::namespace::Namespace;
use crate::namespace::segment::encode_segment;
use oxrdf::{GraphName, NamedNode, NamedNodeRef, NamedOrBlankNode, Term};
use penstock_store::{Error, Pattern, Read};
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Precedes a parent outside the parents' namespace in the URI of a key. No encoded identifier contains it, so a parent
/// `urn:a` and one in the namespace whose identifier is `urn:a` give different URIs.
const OUTSIDE_PARENT: char = '@';

/// Identifies the natural key of an entry.
type KeyDigest = [u8; 8];

/// The natural key of the objects of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NaturalKey {
    namespace: Namespace,
    /// The beginning of the URIs.
    prefix: String,
    graph: GraphName,
    parts: Vec<KeyPart>,
    /// If the key is unique only in the parent.
    parent: Option<KeyParent>,
    /// The beginning of its entries in the index.
    digest: KeyDigest,
}

/// One property of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyPart {
    predicate: NamedNode,
    value: Value,
}

/// The parents of objects whose key is unique only in their parent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyParent {
    /// The name of the parents' namespace.
    namespace: String,
    /// The beginning of the parents' URIs.
    prefix: String,
    /// The properties that lead from a parent to its objects.
    links: BTreeSet<NamedNode>,
    /// Whether one of them is that of an ordered array, so that it leads to a list of objects.
    has_lists: bool,
}

impl NaturalKey {
    /// Returns the namespace of the objects.
    pub(super) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Returns the URI of the key with these texts of values, and, if the key needs one, this parent.
    pub(super) fn build_uri<T: AsRef<str>>(
        &self,
        parent: Option<NamedNodeRef<'_>>,
        texts: impl IntoIterator<Item = T>,
    ) -> NamedNode {
        let mut uri = self.prefix.clone();
        let mut is_first = true;
        if let (Some(parents), Some(parent)) = (&self.parent, parent) {
            let uri_in_namespace = parent.as_str().strip_prefix(parents.prefix.as_str());
            let local = uri_in_namespace.filter(|local| !local.is_empty());
            if local.is_none() {
                uri.push(OUTSIDE_PARENT);
            }
            uri.extend(encode_segment(local.unwrap_or(parent.as_str())));
            is_first = false;
        }
        for text in texts {
            if !is_first {
                uri.push('/');
            }
            is_first = false;
            uri.extend(encode_segment(text.as_ref()));
        }
        NamedNode::new_unchecked(uri)
    }

    /// Returns the URI that earlier versions gave an object with this URI of a key, if it was another one: they wrote a
    /// parent outside its namespace without [`OUTSIDE_PARENT`].
    fn earlier_uri(&self, key_uri: &NamedNode) -> Option<NamedNode> {
        self.parent.as_ref()?;
        let rest = key_uri.as_str().strip_prefix(&self.prefix)?.strip_prefix(OUTSIDE_PARENT)?;
        Some(NamedNode::new_unchecked(format!("{}{rest}", self.prefix)))
    }

    /// Returns the texts of the key values of a stored object: of each property the only value. `None` if a value is
    /// missing, or if it cannot be in a key.
    pub(super) fn read_texts(
        &self,
        read: &dyn Read,
        uri: &NamedNode,
    ) -> Result<Option<Vec<String>>, Error> {
        let mut texts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let mut text = OnlyText::default();
            let pattern = Pattern {
                subject: Some(uri.clone().into()),
                predicate: Some(part.predicate.clone()),
                object: None,
                graph: Some(self.graph.clone()),
            };
            read.for_each(&pattern, &mut |quad| text.add(&part.value, quad.object.as_ref()))?;
            let Some(text) = text.into_usable() else { return Ok(None) };
            texts.push(text);
        }
        Ok(Some(texts))
    }

    /// Returns the URIs of the key of a stored object: one, or one for each parent if the key is
    /// unique only in the parent.
    fn read_key_uris(
        &self,
        read: &dyn Read,
        uri: &NamedNode,
    ) -> Result<BTreeSet<NamedNode>, Error> {
        let Some(texts) = self.read_texts(read, uri)? else { return Ok(BTreeSet::new()) };
        let Some(KeyParent { links, has_lists, .. }) = &self.parent else {
            return Ok([self.build_uri(None, texts)].into());
        };
        let mut uris = BTreeSet::new();
        for link in links {
            let pattern = Pattern {
                predicate: Some(link.clone()),
                object: Some(uri.clone().into()),
                ..Pattern::default()
            };
            read.for_each(&pattern, &mut |quad| {
                if let NamedOrBlankNode::NamedNode(parent) = &quad.subject {
                    uris.insert(self.build_uri(Some(parent.as_ref()), &texts));
                }
                ControlFlow::Continue(())
            })?;
            if *has_lists {
                find_element_owners(read, link, &uri.clone().into(), &mut |parent| {
                    let build = |parent: NamedNode| self.build_uri(Some(parent.as_ref()), &texts);
                    uris.extend(parent.map(build));
                    ControlFlow::Continue(())
                })?;
            }
        }
        Ok(uris)
    }

    /// Returns whether a stored object has the key with this URI. It can have many parents, so only the one in the URI
    /// is looked for.
    fn has_key_uri(
        &self,
        read: &dyn Read,
        uri: &NamedNode,
        key_uri: &NamedNode,
    ) -> Result<bool, Error> {
        match self.read_texts(read, uri)? {
            Some(texts) => self.gives_key_uri(read, (uri, &texts), key_uri),
            None => Ok(false),
        }
    }

    /// As [`Self::has_key_uri`], with the texts of the key values of the object.
    fn gives_key_uri(
        &self,
        read: &dyn Read,
        (uri, texts): (&NamedNode, &[String]),
        key_uri: &NamedNode,
    ) -> Result<bool, Error> {
        let parent = self.find_parent(key_uri);
        Ok(parent.is_some() == self.parent.is_some()
            && self.build_uri(parent.as_ref().map(NamedNode::as_ref), texts) == *key_uri
            && self.is_linked(read, uri, parent.as_ref())?)
    }

    /// Returns whether this parent links to an object, or any parent without one. An object whose key counts in the whole
    /// namespace needs none.
    fn is_linked(
        &self,
        read: &dyn Read,
        uri: &NamedNode,
        parent: Option<&NamedNode>,
    ) -> Result<bool, Error> {
        let Some(KeyParent { links, has_lists, .. }) = &self.parent else { return Ok(true) };
        let object = Term::from(uri.clone());
        for link in links {
            let pattern = Pattern {
                subject: parent.map(|parent| parent.clone().into()),
                predicate: Some(link.clone()),
                object: Some(object.clone()),
                graph: None,
            };
            let mut is_linked = read.any(&pattern)?;
            if *has_lists && !is_linked {
                find_element_owners(read, link, &object, &mut |owner| {
                    is_linked =
                        owner.is_some_and(|owner| parent.is_none_or(|parent| *parent == owner));
                    if is_linked { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
            }
            if is_linked {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the parent in the URI of a key that is unique only in the parent.
    fn find_parent(&self, key_uri: &NamedNode) -> Option<NamedNode> {
        let parents = self.parent.as_ref()?;
        let (segment, _) = key_uri.as_str().strip_prefix(&self.prefix)?.split_once('/')?;
        let (prefix, segment) = match segment.strip_prefix(OUTSIDE_PARENT) {
            Some(outside) => ("", outside),
            None => (parents.prefix.as_str(), segment),
        };
        let local = percent_decode_str(segment).decode_utf8().ok()?;
        Some(NamedNode::new_unchecked(format!("{prefix}{local}")))
    }

    /// Returns whether the graph of the namespace has a quad about this object.
    fn covers(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, Error> {
        read.any(&Pattern {
            subject: Some(uri.clone().into()),
            graph: Some(self.graph.clone()),
            ..Pattern::default()
        })
    }
}
