//! The members of a map: which ones are shown, and in which order.
use super::object::NestingPath;
use super::values::FieldValues;
use crate::list::Lists;
use crate::mapping::{Property, Shape};
use crate::natural_key::OnlyText;
use oxrdf::{NamedNode, NamedNodeRef, Quad, TermRef};
use penstock_store::{Error, Pattern, Read, SubjectQuads};
use std::collections::HashSet;

/// A member of a map, and its name.
pub type NamedMember<'q> = (String, NamedNodeRef<'q>);

/// Reads the names of the members of a map, which lead to objects of this shape, and returns the members that it shows, in
/// the order of their names. Calls `left_out` with each other one, and the reason.
///
/// # Errors
/// The errors of the store.
pub fn read_members<'q>(
    read: &dyn Read,
    shape: &Shape,
    uris: &[NamedNodeRef<'q>],
    left_out: &mut dyn FnMut(&'static str, TermRef<'q>),
) -> Result<Vec<NamedMember<'q>>, Error> {
    let Some(map) = shape.map_member() else { return Ok(Vec::new()) };
    let mut named = Vec::with_capacity(uris.len());
    for uri in uris {
        named.push((read_member_name(read, shape, map.key, *uri)?, *uri));
    }
    Ok(order_members(named, left_out))
}

/// Returns the members that a map shows, in the order of their names. Of those with one name it is the first by URI. Calls
/// `left_out` with each other one, and the reason.
pub fn order_members<'q>(
    named: Vec<(Option<String>, NamedNodeRef<'q>)>,
    left_out: &mut dyn FnMut(&'static str, TermRef<'q>),
) -> Vec<NamedMember<'q>> {
    let mut members = Vec::with_capacity(named.len());
    for (name, uri) in named {
        match name {
            Some(name) => members.push((name, uri)),
            None => left_out("a member of the map without a name", uri.into()),
        }
    }
    members.sort_unstable();
    members.dedup_by(|(name, uri), (first, _)| {
        let is_same = name == first;
        if is_same {
            left_out("a member of the map with the name of another one", (*uri).into());
        }
        is_same
    });
    members
}

/// Reads the names of the next members of a map, in the order of their URIs, and adds them to those of the members before them.
/// Returns whether the map shows the last one, because it is the first with its name. Other objects are always shown.
///
/// # Errors
/// The errors of the store.
pub(crate) fn shows_last_member(
    read: &dyn Read,
    shape: &Shape,
    uris: &[NamedNodeRef<'_>],
    names: &mut HashSet<String>,
) -> Result<bool, Error> {
    let Some(map) = shape.map_member() else { return Ok(true) };
    let mut is_shown = false;
    for uri in uris {
        let name = read_member_name(read, shape, map.key, *uri)?;
        is_shown = name.is_some_and(|name| names.insert(name));
    }
    Ok(is_shown)
}

/// Returns the name of a member of a map with this shape, from the quads about it: the only value of its key. `None` if there is
/// none that can be a name.
pub fn find_member_name(shape: &Shape, about: &[Quad]) -> Option<String> {
    let key = shape.map_member()?.key;
    let mut name = OnlyText::default();
    for quad in about {
        let is_in_graph = shape.name_graph.as_ref().is_none_or(|graph| quad.graph_name == *graph);
        if quad.predicate == key.predicate
            && is_in_graph
            && name.add(&key.value, quad.object.as_ref()).is_break()
        {
            break;
        }
    }
    name.into_usable()
}

fn read_member_name(
    read: &dyn Read,
    shape: &Shape,
    key: &Property,
    uri: NamedNodeRef<'_>,
) -> Result<Option<String>, Error> {
    let pattern = Pattern {
        subject: Some(NamedNode::from(uri).into()),
        predicate: Some(key.predicate.clone()),
        object: None,
        graph: shape.name_graph.clone(),
    };
    let mut name = OnlyText::default();
    read.for_each(&pattern, &mut |quad| name.add(&key.value, quad.object.as_ref()))?;
    Ok(name.into_usable())
}

/// Returns whether a map shows a member with a name and these values, the last object of a path. If its members are values, it
/// shows only those that have one and are not inside themselves. Other objects are always shown.
///
/// # Errors
/// The errors of the store.
pub fn shows_member(
    read: &dyn Read,
    shape: &Shape,
    path: &NestingPath<'_>,
    values: &FieldValues<'_>,
) -> Result<bool, Error> {
    let Some((place, property)) = shape.map_member().and_then(|map| map.value) else {
        return Ok(true);
    };
    if path.is_within_itself() {
        return Ok(false);
    }
    let shown = values.collect_shown(place, property);
    let Some((inner, _)) = property.map() else { return Ok(shown.texts().next().is_some()) };
    let mut names = HashSet::new();
    for uri in shown.iris() {
        if shows_last_member(read, inner, &[uri], &mut names)?
            && shows_value(read, inner, uri, Some(path))?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a member of a map, which has a name. Returns whether the map shows it, as [`shows_member`] does. `above` is the path to
/// the object with the map.
///
/// # Errors
/// The errors of the store.
pub(crate) fn shows_value(
    read: &dyn Read,
    shape: &Shape,
    uri: NamedNodeRef<'_>,
    above: Option<&NestingPath<'_>>,
) -> Result<bool, Error> {
    if shape.map_member().is_none_or(|map| map.value.is_none()) {
        return Ok(true);
    }
    let mut about = SubjectQuads::default();
    read.read_subject(uri.into(), &mut about)?;
    let lists = Lists::of_object(read, shape, about.iter())?;
    let values = FieldValues::from_subject(shape, &about).with_lists(&lists);
    shows_member(read, shape, &NestingPath { uri: &uri.into_owned(), above }, &values)
}
