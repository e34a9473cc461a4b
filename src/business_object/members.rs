//! Which stored objects belong to a Business Object.
use super::namespace;
use super::resource::Compiled;
use crate::fault::{Fault, Kind};
use oxrdf::{GraphName, NamedNode};
use penstock_store::{About, Listed, Pattern, Read, ReadStore, SubjectFilter};

/// The URIs of the objects that belong, in code point order, those after `after`, at most `limit`.
pub fn page(
    read: &impl Read,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<NamedNode>, Fault> {
    Ok(read.subjects(&filter(read, business_object)?, after, limit)?)
}

/// The same of a store that goes on taking commits meanwhile, with the sequence of the newest one when
/// the page was begun: what has changed since then may belong no more.
pub fn page_of(
    store: &ReadStore,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<NamedNode>, u64), Fault> {
    let filter = filter(&store.read(), business_object)?;
    Ok(store.subjects(&filter, after, limit)?)
}

/// As [`page_of`], to be read about.
pub fn listed(
    store: &ReadStore,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Listed>, u64), Fault> {
    let filter = filter(&store.read(), business_object)?;
    Ok(store.listed(&filter, after, limit)?)
}

/// What the subjects that belong satisfy.
pub(super) fn filter(read: &impl Read, business_object: &Compiled) -> Result<SubjectFilter, Fault> {
    Ok(if business_object.conditions.is_empty() {
        SubjectFilter { graph: Some(root_graph(read, business_object)?), having: Vec::new() }
    } else {
        SubjectFilter { graph: None, having: business_object.conditions.clone() }
    })
}

/// Whether this object belongs.
pub fn contains(
    read: &impl Read,
    business_object: &Compiled,
    uri: &NamedNode,
) -> Result<bool, Fault> {
    let subject = Some(uri.clone().into());
    if business_object.conditions.is_empty() {
        let graph = Some(root_graph(read, business_object)?);
        return Ok(read.any(&Pattern { subject, graph, ..Pattern::default() })?);
    }
    for (predicate, value) in &business_object.conditions {
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

/// Whether an object belongs about which this is stored.
pub fn holds(read: &impl Read, business_object: &Compiled, about: &About) -> Result<bool, Fault> {
    if business_object.conditions.is_empty() {
        return Ok(about.is_in(root_graph(read, business_object)?.as_ref()));
    }
    let mut conditions = business_object.conditions.iter();
    Ok(conditions.all(|(predicate, value)| about.says(predicate.as_ref(), value.as_ref())))
}

fn root_graph(read: &impl Read, business_object: &Compiled) -> Result<GraphName, Fault> {
    let name = &business_object.mapping.root.namespace;
    match namespace::get(read, name)? {
        Some(namespace) => Ok(namespace.graph().into()),
        None => Err(Fault::new(
            Kind::Conflict,
            format!(
                "the namespace {name:?} of the Business Object {:?} is not defined; define it with PUT /api/v1/namespaces/{name}",
                business_object.object.definition.name
            ),
        )),
    }
}
