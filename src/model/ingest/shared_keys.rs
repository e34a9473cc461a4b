//! Finds the objects of a request that would share their natural key with another object.
//!
//! While a request is applied, an object is looked up only if it gives all values of its key. It can also get a key in
//! parts: by one more value, or by a link from another parent. So the keys that the request gave are checked at its end.
use super::Answer;
use crate::natural_key::{GainedKey, KeyMatch};
use oxrdf::NamedNode;
use penstock_base::error::Finding;
use penstock_store::{Error, Transaction};
use std::collections::{BTreeMap, HashMap};

/// The objects with one key.
struct Sharing {
    all: Vec<NamedNode>,
    /// Those that got it in this request.
    gained: Vec<NamedNode>,
}

/// Returns a finding for each object that must not get its key, with the index of the object in the request: for all but
/// the first one, or for all if another object was stored with the key. The index of keys must be up to date.
pub(super) fn find_shared_keys(
    transaction: &Transaction<'_>,
    gained: Vec<GainedKey<'_>>,
    answer: &Answer,
) -> Result<Vec<(usize, Finding)>, Error> {
    let mut by_key: BTreeMap<NamedNode, Sharing> = BTreeMap::new();
    let mut last = None;
    for GainedKey { key, key_uri, uri } in gained {
        let is_indexed = match last {
            Some((last, is_indexed)) if std::ptr::eq(last, key) => is_indexed,
            _ => key.has_entries(transaction)?,
        };
        last = Some((key, is_indexed));
        if let Some(sharing) = by_key.get_mut(&key_uri) {
            sharing.gained.push(uri);
        } else if is_indexed
            && let KeyMatch::Several(all) = key.find_objects(transaction, &key_uri, true)?
        {
            by_key.insert(key_uri, Sharing { all, gained: vec![uri] });
        }
    }
    if by_key.is_empty() {
        return Ok(Vec::new());
    }
    let places = find_last_mentions(answer);
    let mut findings = Vec::new();
    for Sharing { all, gained } in by_key.into_values() {
        let has_stored = all.iter().any(|uri| !gained.contains(uri));
        let mut mentions: Vec<_> =
            gained.iter().filter_map(|uri| Some((places.get(uri.as_str())?, uri))).collect();
        mentions.sort_unstable();
        for ((index, pointer), uri) in mentions.into_iter().skip(usize::from(!has_stored)) {
            let others: Vec<&str> =
                all.iter().filter(|other| *other != uri).map(NamedNode::as_str).collect();
            let message = format!(
                "{} would have the same key as {}; change its key values, or use the uri of the other object",
                uri.as_str(),
                others.join(", ")
            );
            findings.push((*index, Finding::at_pointer(pointer, message)));
        }
    }
    Ok(findings)
}

/// Returns where the request mentions each object for the last time: the index in the request, and the JSON Pointer.
fn find_last_mentions(answer: &Answer) -> HashMap<&str, (usize, String)> {
    let mut places = HashMap::new();
    for object in &answer.objects {
        places.insert(object.uri.as_str(), (object.index, format!("/data/{}", object.index)));
        for nested in &object.nested {
            places.insert(nested.uri.as_str(), (object.index, nested.pointer.clone()));
        }
    }
    places
}
