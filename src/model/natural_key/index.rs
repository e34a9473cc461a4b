//! The index of objects whose URI is not the URI of their key.
//!
//! An entry is verified when it is used, so one that is out of date does no harm. Entries of a key that no definition has
//! any more are removed after the definitions change.
use super::{KeyDigest, NaturalKey};
use crate::mapping::{Detail, Value};
use oxrdf::NamedNode;
use oxrdf::vocab::rdf;
use penstock_base::collections;
use penstock_base::error::GatewayError;
use penstock_base::table::Table;
use penstock_store::{Error, Pattern, Read, Store, Transaction};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The entries: digest of namespace, properties and scope, digest of the key's URI, URI of the object.
pub(crate) const ENTRIES: Table<(KeyDigest, [u8; 16], String), ()> =
    Table::new(collections::NATURAL_KEYS);
/// The number of entries that one commit removes.
const ENTRIES_PER_CLEANUP: usize = 1000;
/// The maximum number of objects with the same key that are found.
const MAX_FOUND: usize = 10;

/// The objects with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyMatch {
    /// No object has it. A new one gets the key's URI.
    None,
    /// One object has it.
    One(NamedNode),
    /// Several objects have it: up to ten of them.
    Several(Vec<NamedNode>),
    /// No object has it, but the object with the key's URI has another key.
    UriTaken,
}

/// An object that got a key in a commit.
#[derive(Debug)]
pub(crate) struct GainedKey<'k> {
    pub(crate) key: &'k NaturalKey,
    /// The URI of the key.
    pub(crate) key_uri: NamedNode,
    /// The URI of the object.
    pub(crate) uri: NamedNode,
}

impl NaturalKey {
    /// Returns the objects with the key of this URI. With `is_indexed` false the index has no entries of this key.
    pub(crate) fn find_objects(
        &self,
        read: &dyn Read,
        key_uri: &NamedNode,
        is_indexed: bool,
    ) -> Result<KeyMatch, Error> {
        let texts = self.read_texts(read, key_uri)?;
        let mut found = Vec::new();
        if let Some(texts) = &texts
            && self.gives_key_uri(read, (key_uri, texts), key_uri)?
        {
            found.push(key_uri.clone());
        }
        if let Some(earlier) = self.earlier_uri(key_uri)
            && self.has_key_uri(read, &earlier, key_uri)?
        {
            found.push(earlier);
        }
        if is_indexed {
            self.find_indexed(read, key_uri, &mut found)?;
        }
        Ok(match found.len() {
            0 if texts.is_some() && self.is_linked(read, key_uri, None)? => KeyMatch::UriTaken,
            0 => KeyMatch::None,
            1 => KeyMatch::One(found.swap_remove(0)),
            _ => KeyMatch::Several(found),
        })
    }

    /// Adds the objects that the index has for this URI of the key, and that still have it.
    fn find_indexed(
        &self,
        read: &dyn Read,
        key_uri: &NamedNode,
        found: &mut Vec<NamedNode>,
    ) -> Result<(), Error> {
        let prefix = (self.digest, digest_uri(key_uri));
        let rows = ENTRIES.scan().prefix::<(KeyDigest, [u8; 16])>(prefix);
        for row in rows.pages(|| read, MAX_FOUND) {
            if found.len() >= MAX_FOUND {
                break;
            }
            let Ok((_, _, uri)) = row?.key() else { continue };
            let uri = NamedNode::new_unchecked(uri);
            if !found.contains(&uri) && self.has_key_uri(read, &uri, key_uri)? {
                found.push(uri);
            }
        }
        Ok(())
    }

    /// Returns whether the index has an entry of this key.
    pub(crate) fn has_entries(&self, read: &dyn Read) -> Result<bool, Error> {
        Ok(ENTRIES.scan().prefix::<KeyDigest>(self.digest).first(read)?.is_some())
    }

    /// Adds entries for an object with these keys.
    pub(super) fn add_entries<'k>(
        &self,
        transaction: &mut Transaction<'_>,
        uri: &NamedNode,
        key_uris: impl IntoIterator<Item = &'k NamedNode>,
    ) -> Result<(), Error> {
        for key_uri in key_uris {
            if key_uri != uri {
                ENTRIES.put(transaction, self.entry_key(key_uri, uri), ())?;
            }
        }
        Ok(())
    }

    /// Returns the digest that the entries of this key begin with. The links from parents are not part of it: entries of
    /// a link that no definition has any more are out of date, and those of the others stay valid.
    pub(super) fn compute_digest(&self) -> KeyDigest {
        let mut digest = Sha256::new();
        let mut add = |text: &str| {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        };
        add(&self.namespace.uri_base);
        add(self.parent.as_ref().map_or("", |parent| &parent.prefix));
        for part in &self.parts {
            add(part.predicate.as_str());
            add(&describe_value(&part.value));
        }
        digest.finalize().first_chunk().copied().unwrap_or_default()
    }

    fn entry_key<'u>(
        &self,
        key_uri: &NamedNode,
        uri: &'u NamedNode,
    ) -> (KeyDigest, [u8; 16], &'u str) {
        (self.digest, digest_uri(key_uri), uri.as_str())
    }

    /// Returns the objects whose key the uncommitted change may affect: those with a changed value of the key, and those
    /// with a changed link from a parent. The flag says whether the store knew an object before.
    pub(super) fn find_affected(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> Result<BTreeMap<NamedNode, bool>, Error> {
        let mut affected = BTreeMap::new();
        for part in &self.parts {
            let pattern = Pattern {
                predicate: Some(part.predicate.clone()),
                graph: Some(self.graph.clone()),
                ..Pattern::default()
            };
            affected.extend(transaction.find_changed_subjects(&pattern)?);
        }
        for link in self.parent.iter().flat_map(|parent| &parent.links) {
            let pattern = Pattern { predicate: Some(link.clone()), ..Pattern::default() };
            affected.extend(transaction.find_changed_objects(&pattern)?);
        }
        if self.parent.as_ref().is_some_and(|parent| parent.has_lists) {
            let first = Some(rdf::FIRST.into_owned());
            let pattern = Pattern { predicate: first, ..Pattern::default() };
            affected.extend(transaction.find_changed_objects(&pattern)?);
        }
        Ok(affected)
    }

    /// Updates the index in a commit that changed the graph. Returns the objects that got a key.
    pub(crate) fn update_entries(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> Result<Vec<GainedKey<'_>>, Error> {
        let mut gained = Vec::new();
        for (uri, is_known) in self.find_affected(transaction)? {
            let after = self.read_key_uris(transaction, &uri)?;
            let before = if is_known {
                self.read_key_uris(&transaction.prior_state(), &uri)?
            } else {
                BTreeSet::new()
            };
            self.add_entries(transaction, &uri, after.difference(&before))?;
            for key_uri in before.difference(&after).filter(|key_uri| **key_uri != uri) {
                ENTRIES.delete(transaction, self.entry_key(key_uri, &uri))?;
            }
            let new = after.difference(&before).cloned();
            gained.extend(new.map(|key_uri| GainedKey { key: self, key_uri, uri: uri.clone() }));
        }
        Ok(gained)
    }
}

fn digest_uri(uri: &NamedNode) -> [u8; 16] {
    Sha256::digest(uri.as_str()).first_chunk().copied().unwrap_or_default()
}

/// Returns a name of the kind of value. It is part of stored digests, so it never changes.
pub(super) fn describe_value(value: &Value) -> Cow<'_, str> {
    match value.detail() {
        Detail::Datatype(datatype) => format!("datatype {}", datatype.as_str()).into(),
        Detail::Language(tag) => format!("language {tag}").into(),
        _ if value.kind().key_text.is_some() => value.kind().name.into(),
        // No key has them.
        _ => "".into(),
    }
}

/// Removes all entries that begin with a digest, until `is_used` returns true in a commit.
pub(super) fn remove_entries(
    store: &Store,
    digest: &[u8],
    is_used: &dyn Fn(&Transaction<'_>) -> Result<bool, GatewayError>,
) -> Result<(), GatewayError> {
    loop {
        let (removed, _) = store.transact::<_, GatewayError>(|transaction| {
            if is_used(transaction)? {
                return Ok(0);
            }
            Ok(ENTRIES.scan().prefix::<Vec<u8>>(digest).delete(transaction, ENTRIES_PER_CLEANUP)?)
        })?;
        if removed < ENTRIES_PER_CLEANUP {
            return Ok(());
        }
    }
}
