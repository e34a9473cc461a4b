//! Decides which stored objects belong to a Business Object.
use super::list::{is_list_node, list_objects};
use super::namespace;
use super::resource::{Compiled, Definition, condition_to_terms};
use oxrdf::{GraphName, NamedNode};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{
    Error, ListedSubject, Pattern, Read, ReadStore, Reader, Snapshot, SubjectFilter, SubjectQuads,
};
use std::fmt;

/// The number of lost objects from which a loss is always large.
const LARGE_LOSS_OBJECTS: usize = 10_000;

/// The number of objects that are checked in one read of the store.
const OBJECTS_PER_READ: usize = 1000;

/// Returns the URIs of the members after `after`, in code point order, at most `limit`.
pub fn list_members(
    read: &dyn Read,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<NamedNode>, GatewayError> {
    let filter = build_member_filter(read, business_object)?;
    Ok(list_filtered(read, &filter, after, limit)?)
}

/// Returns a page of the current members. Commits continue meanwhile, so an object that has changed since then may no
/// longer belong.
pub fn list_current_members(
    store: &ReadStore,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<NamedNode>, GatewayError> {
    let filter = build_member_filter(&store.read(), business_object)?;
    Ok(list_current(store, &filter, after, limit)?)
}

/// Returns a page of the members in a snapshot, in the form that is needed to read the objects there.
pub fn list_members_to_read(
    snapshot: &Snapshot,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<ListedSubject>, GatewayError> {
    let filter = build_member_filter(snapshot, business_object)?;
    Ok(list_objects(
        after,
        limit,
        |listed: &ListedSubject| &listed.iri,
        |after, limit| snapshot.list_with_ids(&filter, after, limit),
    )?)
}

/// Calls `visit` with each page of members and a reader of the store, until it returns false. Commits continue
/// meanwhile. Blocking.
pub fn for_each_page(
    store: &ReadStore,
    business_object: &Compiled,
    mut visit: impl FnMut(&Reader<'_>, &[NamedNode]) -> Result<bool, GatewayError>,
) -> Result<(), GatewayError> {
    let mut after: Option<NamedNode> = None;
    loop {
        let read = store.read();
        let from = after.as_ref().map(NamedNode::as_str);
        let page = list_members(&read, business_object, from, OBJECTS_PER_READ)?;
        if page.is_empty() || !visit(&read, &page)? {
            return Ok(());
        }
        after = page.into_iter().last();
    }
}

/// Returns the objects that satisfy a filter after `after`, in code point order, at most `limit`.
pub(super) fn list_filtered(
    read: &dyn Read,
    filter: &SubjectFilter,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<NamedNode>, Error> {
    list_objects(after, limit, |uri| uri, |after, limit| read.list_subjects(filter, after, limit))
}

/// As [`list_filtered`]. Commits continue meanwhile.
fn list_current(
    store: &ReadStore,
    filter: &SubjectFilter,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<NamedNode>, Error> {
    list_objects(after, limit, |uri| uri, |after, limit| store.list_subjects(filter, after, limit))
}

/// Returns the filter that the members satisfy.
pub(super) fn build_member_filter(
    read: &dyn Read,
    business_object: &Compiled,
) -> Result<SubjectFilter, GatewayError> {
    Ok(if business_object.conditions.is_empty() {
        SubjectFilter {
            graph: Some(find_root_graph(read, business_object)?),
            having: Vec::new(),
            ..SubjectFilter::default()
        }
    } else {
        SubjectFilter {
            graph: None,
            having: business_object.conditions.clone(),
            ..SubjectFilter::default()
        }
    })
}

/// Returns the filters of all objects that may be members of a Business Object that does not compile, or nested in
/// one: what satisfies its stored conditions, and what is in the graph of a namespace that it names.
pub(super) fn build_possible_filters(
    read: &dyn Read,
    stored: &Definition,
    namespaces: &[String],
) -> Result<Vec<SubjectFilter>, GatewayError> {
    let mut filters = Vec::new();
    let having: Result<Vec<_>, _> = stored.conditions.iter().map(condition_to_terms).collect();
    if let Ok(having) = having
        && !having.is_empty()
    {
        filters.push(SubjectFilter { graph: None, having, ..SubjectFilter::default() });
    }
    for name in namespaces {
        if let Some(namespace) = namespace::get(read, name)? {
            let graph = Some(namespace.graph_name().into());
            filters.push(SubjectFilter { graph, having: Vec::new(), ..SubjectFilter::default() });
        }
    }
    Ok(filters)
}

/// Returns whether this object is a member.
pub fn is_member(
    read: &dyn Read,
    business_object: &Compiled,
    uri: &NamedNode,
) -> Result<bool, GatewayError> {
    Ok(satisfies_filter(read, &build_member_filter(read, business_object)?, uri)?)
}

/// Returns whether this object satisfies a filter. A node of a list is no object.
pub(super) fn satisfies_filter(
    read: &dyn Read,
    filter: &SubjectFilter,
    uri: &NamedNode,
) -> Result<bool, Error> {
    if is_list_node(uri) {
        return Ok(false);
    }
    let subject = Some(uri.clone().into());
    if let Some(graph) = filter.graph.clone() {
        let pattern = Pattern { subject, graph: Some(graph), ..Pattern::default() };
        return read.any(&pattern);
    }
    for (predicate, value) in &filter.having {
        let pattern = Pattern {
            subject: subject.clone(),
            predicate: Some(predicate.clone()),
            object: Some(value.clone()),
            graph: None,
        };
        if !read.any(&pattern)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether this object satisfies one of these filters.
pub(super) fn satisfies_any(
    read: &dyn Read,
    filters: &[SubjectFilter],
    uri: &NamedNode,
) -> Result<bool, Error> {
    for filter in filters {
        if satisfies_filter(read, filter, uri)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The number of objects that would no longer belong to a Business Object with another definition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// The number of objects that would no longer belong, counted up to [`LARGE_LOSS_OBJECTS`].
    lost: usize,
    /// The number of current members, as far as they were counted.
    members: usize,
}

impl Loss {
    /// Returns whether the loss needs a confirmation: more than half of the objects, or [`LARGE_LOSS_OBJECTS`].
    pub fn is_large(self) -> bool {
        self.lost >= LARGE_LOSS_OBJECTS || self.lost * 2 > self.members
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, members } = self;
        if *lost >= LARGE_LOSS_OBJECTS {
            write!(f, "at least {LARGE_LOSS_OBJECTS} objects")
        } else {
            write!(f, "{lost} of {members} objects")
        }
    }
}

/// Counts the objects that satisfy one filter and not the other. Reads page by page, so commits continue meanwhile. An
/// object that changes counts in its old or its new state. Blocking.
pub fn count_loss(
    store: &ReadStore,
    before: &SubjectFilter,
    after: &SubjectFilter,
) -> Result<Loss, Error> {
    let mut loss = Loss::default();
    let mut last: Option<String> = None;
    loop {
        let page = list_current(store, before, last.as_deref(), OBJECTS_PER_READ)?;
        let Some(end) = page.last() else { return Ok(loss) };
        last = Some(end.as_str().to_owned());
        let read = store.read();
        for uri in &page {
            loss.members += 1;
            if !satisfies_filter(&read, after, uri)? {
                loss.lost += 1;
            }
            if loss.lost >= LARGE_LOSS_OBJECTS {
                return Ok(loss);
            }
        }
    }
}

/// Returns whether an object with these quads is a member.
pub fn is_member_by_quads(
    read: &dyn Read,
    business_object: &Compiled,
    about: &SubjectQuads,
) -> Result<bool, GatewayError> {
    if business_object.conditions.is_empty() {
        return Ok(about.is_in_graph(find_root_graph(read, business_object)?.as_ref()));
    }
    let mut conditions = business_object.conditions.iter();
    Ok(conditions.all(|(predicate, value)| about.has_value(predicate.as_ref(), value.as_ref())))
}

fn find_root_graph(read: &dyn Read, business_object: &Compiled) -> Result<GraphName, GatewayError> {
    let name = &business_object.mapping.root.namespace;
    match namespace::get(read, name)? {
        Some(namespace) => Ok(namespace.graph_name().into()),
        None => Err(GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "the namespace {name:?} of the Business Object {:?} is not defined; create it with PUT /api/v1/namespaces/{name}",
                business_object.object.definition.name
            ),
        )),
    }
}
