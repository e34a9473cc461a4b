//! Decides which stored objects belong to a Business Object.
use super::namespace;
use super::resource::Compiled;
use oxrdf::{GraphName, NamedNode};
use penstock_base::fault::{Fault, Kind};
use penstock_store::{About, Error, Listed, Pattern, Read, ReadStore, SubjectFilter};
use std::fmt;

/// The number of lost objects that is always too large.
const MANY: usize = 10_000;

/// The number of objects that are checked in one read of the store.
const PAGE: usize = 1000;

/// Returns the URIs of the members after `after`, in code point order, at most `limit`.
pub fn page(
    read: &impl Read,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<NamedNode>, Fault> {
    Ok(read.subjects(&filter(read, business_object)?, after, limit)?)
}

/// Returns a page of members while the store takes commits, and the sequence of the newest commit when the page was
/// begun. An object that has changed since then may no longer belong.
pub fn page_of(
    store: &ReadStore,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<NamedNode>, u64), Fault> {
    let filter = filter(&store.read(), business_object)?;
    Ok(store.subjects(&filter, after, limit)?)
}

/// Returns the same page as [`page_of`], in the form that is needed to read the objects.
pub fn listed(
    store: &ReadStore,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Listed>, u64), Fault> {
    let filter = filter(&store.read(), business_object)?;
    Ok(store.listed(&filter, after, limit)?)
}

/// Returns the filter that the members satisfy.
pub(super) fn filter(read: &impl Read, business_object: &Compiled) -> Result<SubjectFilter, Fault> {
    Ok(if business_object.conditions.is_empty() {
        SubjectFilter { graph: Some(root_graph(read, business_object)?), having: Vec::new() }
    } else {
        SubjectFilter { graph: None, having: business_object.conditions.clone() }
    })
}

/// Returns whether this object is a member.
pub fn contains(
    read: &impl Read,
    business_object: &Compiled,
    uri: &NamedNode,
) -> Result<bool, Fault> {
    Ok(satisfies(read, &filter(read, business_object)?, uri)?)
}

fn satisfies(read: &impl Read, filter: &SubjectFilter, uri: &NamedNode) -> Result<bool, Error> {
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

/// The objects that belong to a Business Object and would not with another definition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// The number of objects that would no longer belong, counted up to [`MANY`].
    lost: usize,
    /// The number of present members, as far as they were counted.
    members: usize,
}

impl Loss {
    /// Returns whether the loss needs a confirmation: more than half of the objects, or [`MANY`].
    pub fn is_large(self) -> bool {
        self.lost >= MANY || self.lost * 2 > self.members
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, members } = self;
        if *lost >= MANY {
            write!(f, "at least {MANY} objects")
        } else {
            write!(f, "{lost} of {members} objects")
        }
    }
}

/// Counts the objects that satisfy one filter and not the other. Reads page by page, so commits continue meanwhile. An
/// object that changes counts in its old or its new state. Blocking.
pub fn loss(
    store: &ReadStore,
    before: &SubjectFilter,
    after: &SubjectFilter,
) -> Result<Loss, Error> {
    let mut loss = Loss::default();
    let mut last: Option<String> = None;
    loop {
        let (page, _) = store.subjects(before, last.as_deref(), PAGE)?;
        let Some(end) = page.last() else { return Ok(loss) };
        last = Some(end.as_str().to_owned());
        let read = store.read();
        for uri in &page {
            loss.members += 1;
            if !satisfies(&read, after, uri)? {
                loss.lost += 1;
            }
            if loss.lost >= MANY {
                return Ok(loss);
            }
        }
    }
}

/// Returns whether an object with these quads is a member.
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
                "the namespace {name:?} of the Business Object {:?} is not defined; create it with PUT /api/v1/namespaces/{name}",
                business_object.object.definition.name
            ),
        )),
    }
}
