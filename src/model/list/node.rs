//! The IRIs of the nodes of lists, and of elements that get one from their place.
use crate::namespace::segment::encode_segment;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oxrdf::{NamedNode, NamedNodeRef};
use percent_encoding::percent_decode_str;
use sha2::{Digest as _, Sha256};

/// The beginning of the IRI of each node.
pub(crate) const PREFIX: &str = "urn:penstock:@list:";
/// An IRI after those of all nodes, and before all others that follow them in code point order.
pub(super) const AFTER_NODES: &str = "urn:penstock:@list;";

/// A node of the list of an ordered array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListNode {
    /// The object that has the array.
    pub(crate) object: NamedNode,
    /// The property of the array.
    pub(crate) property: NamedNode,
    /// The position of the element, from 0.
    position: usize,
}

impl ListNode {
    /// Returns the node with this IRI; `None` for another IRI.
    pub(crate) fn parse(iri: &str) -> Option<Self> {
        let mut parts = iri.strip_prefix(PREFIX)?.split(':');
        let mut next_iri = || {
            let decoded = percent_decode_str(parts.next()?).decode_utf8().ok()?;
            NamedNode::new(decoded).ok()
        };
        let (object, property) = (next_iri()?, next_iri()?);
        let position = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self { object, property, position })
    }

    /// Returns its IRI with those of the object and the property rewritten; `None` if both stay.
    pub(crate) fn rewrite(&self, rewrite: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let (object, property) = (rewrite(self.object.as_str()), rewrite(self.property.as_str()));
        if object.is_none() && property.is_none() {
            return None;
        }
        let object = object.as_deref().unwrap_or(self.object.as_str());
        let property = property.as_deref().unwrap_or(self.property.as_str());
        Some(NodeIris::new(object, property).at(self.position).into_string())
    }
}

/// Returns whether an IRI is that of a node.
pub(crate) fn is_list_node<'i>(iri: impl Into<NamedNodeRef<'i>>) -> bool {
    iri.into().as_str().starts_with(PREFIX)
}

/// Returns the object that has the list of a node; `None` for another IRI.
pub(crate) fn find_owner(iri: &NamedNode) -> Option<NamedNode> {
    ListNode::parse(iri.as_str()).map(|node| node.object)
}

/// The IRIs of the nodes of one array.
#[derive(Debug)]
pub(super) struct NodeIris(String);

impl NodeIris {
    pub(super) fn new(object: &str, property: &str) -> Self {
        Self(format!("{PREFIX}{}:{}:", encode_segment(object), encode_segment(property)))
    }

    pub(super) fn at(&self, position: usize) -> NamedNode {
        NamedNode::new_unchecked(format!("{}{position}", self.0))
    }
}

/// What the URI of such an element has after the beginning of its namespace.
const ELEMENT_MARK: &str = "list-";
/// The number of characters of the digest of its object and property, which follows.
const DIGEST_CHARS: usize = 22;

/// The URIs of the objects of one array that have neither a URI nor a key.
#[derive(Debug)]
pub(crate) struct ElementUris(String);

impl ElementUris {
    /// Returns the URIs of the elements of an object's array, in the namespace whose identifiers begin with `prefix`. The
    /// object and the property are given by the name of their namespace and the identifier in it, which no move of a namespace
    /// changes.
    pub(crate) fn new(
        prefix: &str,
        (object_namespace, object): (&str, &str),
        (property_namespace, property): (&str, &str),
    ) -> Self {
        let mut digest = Sha256::new();
        for text in [object_namespace, object, property_namespace, property] {
            digest.update(text);
            digest.update([0]);
        }
        let digest = digest.finalize().first_chunk::<16>().copied().unwrap_or_default();
        Self(format!("{prefix}{ELEMENT_MARK}{}-", URL_SAFE_NO_PAD.encode(digest)))
    }

    /// Returns the URI of the element at a position.
    pub(crate) fn at(&self, position: usize) -> NamedNode {
        NamedNode::new_unchecked(format!("{}{position}", self.0))
    }

    /// Returns whether it is the URI of an element of this array.
    pub(crate) fn has(&self, uri: &NamedNode) -> bool {
        let position = uri.as_str().strip_prefix(&self.0);
        position.is_some_and(|position| position.parse::<usize>().is_ok())
    }

    /// Returns whether an element got a URI in the namespace from its place in an array.
    pub(crate) fn contain(prefix: &str, uri: &NamedNode) -> bool {
        let local = uri.as_str().strip_prefix(prefix);
        let rest = local.and_then(|local| local.strip_prefix(ELEMENT_MARK));
        let Some((digest, position)) = rest.and_then(|rest| rest.split_at_checked(DIGEST_CHARS))
        else {
            return false;
        };
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        digest.bytes().all(is_digit)
            && position.strip_prefix('-').is_some_and(|position| position.parse::<usize>().is_ok())
    }
}
