//! Finds documents around the objects: samples that are no objects themselves, but hold a list of them.
use super::name::{find_name_problem, is_identifier_name, is_name_of_object, is_time_name};
use super::seen::{Content, SeenValues};
use penstock_base::json::{Json, push_pointer};

/// The objects in documents, and what is around them.
pub(super) struct Documents<'j> {
    /// `items` of the mapping.
    pub(super) items: String,
    pub(super) objects: Vec<&'j Json>,
    /// The members around the objects that become fields with `outer`.
    pub(super) outer: Vec<(&'j str, SeenValues<'j>)>,
    /// The names of the other members around the objects.
    pub(super) left_out: Vec<&'j str>,
}

/// The names of members that hold the objects of a document.
const CONTAINERS: &[&str] = &[
    "data",
    "entities",
    "entity",
    "eventlist",
    "events",
    "features",
    "measurements",
    "member",
    "messages",
    "metrics",
    "observations",
    "points",
    "readings",
    "records",
    "result",
    "results",
    "rows",
    "series",
    "signals",
];
/// The names of members that hold the objects of a document, or parts of an object. They count only if nothing beside them
/// identifies an object.
const AMBIGUOUS_CONTAINERS: &[&str] = &["elements", "items", "list", "objects", "value", "values"];
/// The maximum number of objects around the list.
const MAX_LEVELS: usize = 3;

/// Returns the documents, if all samples are documents of one form.
pub(super) fn find_documents(samples: &[Json]) -> Option<Documents<'_>> {
    let path = find_list(&SeenValues::new(samples), MAX_LEVELS)?;
    let (mut here, mut items) = (SeenValues::new(samples), String::new());
    let (mut around, mut left_out): (Vec<(&str, SeenValues<'_>)>, _) = (Vec::new(), Vec::new());
    for step in path {
        push_pointer(&mut items, step);
        let members = here.members();
        here = SeenValues::new(members.find(step).into_iter().flat_map(SeenValues::iter));
        for (name, seen) in members.into_values().filter(|(name, _)| *name != step) {
            if can_be_outer(name, &seen) {
                // The nearest one counts.
                around.retain(|(other, _)| *other != name);
                around.push((name, seen));
            } else {
                left_out.push(name);
            }
        }
    }
    items.push_str("/*");
    let objects = here.elements();
    let own = objects.members();
    left_out.extend(around.iter().map(|(name, _)| *name).filter(|name| own.find(name).is_some()));
    around.retain(|(name, _)| own.find(name).is_none());
    Some(Documents { items, objects: objects.iter().collect(), outer: around, left_out })
}

/// Returns whether objects take a member from around them: it is a time, or names something.
fn can_be_outer(name: &str, seen: &SeenValues<'_>) -> bool {
    let is_single = matches!(
        seen.content(),
        Content::Booleans | Content::Numbers(_) | Content::Texts(_) | Content::Scalars
    );
    is_single
        && (is_time_name(name) || is_identifier_name(name))
        && !name.starts_with(['/', '*'])
        && find_name_problem(name).is_none()
}

/// Returns the names that lead to the only list of objects in documents, through at most this many levels.
fn find_list<'j>(documents: &SeenValues<'j>, levels: usize) -> Option<Vec<&'j str>> {
    let members = documents.members();
    if levels == 0 || members.id_member().is_some() {
        return None;
    }
    let is_identified = members.iter().any(|(name, seen)| {
        is_name_of_object(name) && matches!(seen.content(), Content::Numbers(_) | Content::Texts(_))
    });
    let is_list = |name: &str, seen: &SeenValues<'_>| {
        let name = name.to_ascii_lowercase();
        let is_container = CONTAINERS.contains(&&*name)
            || !is_identified && AMBIGUOUS_CONTAINERS.contains(&&*name);
        is_container
            && matches!(seen.content(), Content::Arrays(_))
            && matches!(seen.elements().content(), Content::Objects)
    };
    let mut lists = members.iter().filter(|(name, seen)| is_list(name, seen));
    match (lists.next(), lists.next()) {
        (Some((name, _)), None) => return Some(vec![name]),
        (Some(_), Some(_)) => return None,
        // A list further inside is a part of an object.
        (None, _) if is_identified => return None,
        (None, _) => {}
    }
    let inner = members
        .iter()
        .filter(|(name, seen)| *name != "*" && matches!(seen.content(), Content::Objects));
    let mut found = inner.filter_map(|(name, seen)| {
        let mut path = find_list(seen, levels - 1)?;
        path.insert(0, name);
        Some(path)
    });
    found.next().filter(|_| found.next().is_none())
}
