//! Which stored objects belong to a Business Object.
use super::namespace;
use super::resource::Compiled;
use oxrdf::{GraphName, NamedNode};
use penstock_base::fault::{Fault, Kind};
use penstock_store::{About, Error, Listed, Pattern, Read, ReadStore, SubjectFilter};
use std::fmt;

/// So many lost objects are always too many.
const MANY: usize = 10_000;

/// Objects that are looked at under one read of the store.
const PAGE: usize = 1000;

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

/// Objects that belong to a Business Object and would not with another definition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// How many objects would no longer belong, counted up to [`MANY`].
    lost: usize,
    /// How many belong now, as far as they were counted.
    members: usize,
}

impl Loss {
    /// Whether so many are lost that somebody should confirm it: more than half, or [`MANY`].
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

/// Counts the objects that satisfy one filter and not the other. It reads page by page, so that commits
/// continue meanwhile: an object that one of them changes counts as it was or as it is. Blocks.
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
