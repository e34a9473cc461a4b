//! Reads lists, and finds the objects that have an element in one.
use super::node::{AFTER_NODES, ListNode, PREFIX, find_owner, is_list_node};
use crate::mapping::Shape;
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, NamedNodeRef, NamedOrBlankNode, Quad, Term, TermRef};
use penstock_store::{Error, Pattern, Read, Transaction};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

/// The maximum number of nodes of a list that other software wrote: that it may have, and that are followed from an element to
/// its beginning.
const MAX_FOREIGN_NODES: usize = 10_000;

/// A list: its nodes in order, each with its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct List {
    nodes: Vec<(NamedNode, Term)>,
}

impl List {
    /// Reads the list that begins with this node. The inner error says what it is instead.
    pub(crate) fn read(
        read: &dyn Read,
        head: NamedNode,
    ) -> Result<Result<Self, &'static str>, Error> {
        Self::read_beginning(read, head, usize::MAX)
    }

    /// As [`Self::read`], but at most this many nodes. What follows them is not looked at.
    pub(crate) fn read_beginning(
        read: &dyn Read,
        head: NamedNode,
        max_nodes: usize,
    ) -> Result<Result<Self, &'static str>, Error> {
        let mut list = Self::default();
        let mut seen = HashSet::new();
        let mut foreign_nodes = 0;
        let mut node = head;
        while node != rdf::NIL && list.nodes.len() < max_nodes {
            if !seen.insert(node.clone()) {
                return Ok(Err("a cyclic list"));
            }
            foreign_nodes += usize::from(!is_list_node(&node));
            if foreign_nodes > MAX_FOREIGN_NODES {
                return Ok(Err("a list of more than 10,000 nodes that other software wrote"));
            }
            let quads = read.quads_about(&node.clone().into())?;
            let parts = [rdf::FIRST, rdf::REST].map(|predicate| find_only_value(&quads, predicate));
            let (value, next) = match parts {
                [Err(why), _] | [_, Err(why)] => return Ok(Err(why)),
                [Ok(None), Ok(None)] if list.nodes.is_empty() => return Ok(Err("not a list")),
                [Ok(Some(value)), Ok(Some(Term::NamedNode(next)))] => (value, next),
                _ => return Ok(Err("an unfinished list")),
            };
            list.nodes.push((node, value.clone()));
            node = next.clone();
        }
        Ok(Ok(list))
    }

    /// Returns the values in order.
    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = &Term> {
        self.nodes.iter().map(|(_, value)| value)
    }

    /// Returns the quads of the list, without their graphs: node, predicate and object.
    pub(crate) fn triples(
        &self,
    ) -> impl Iterator<Item = (&NamedNode, NamedNodeRef<'static>, TermRef<'_>)> {
        let rests = self.nodes.iter().skip(1).map(|(node, _)| node.as_ref());
        self.nodes.iter().zip(rests.chain([rdf::NIL])).flat_map(|((node, value), rest)| {
            [(node, rdf::FIRST, value.as_ref()), (node, rdf::REST, rest.into())]
        })
    }
}

/// Returns the value of a property; `None` without one.
///
/// # Errors
/// A node with several is part of a branched list.
fn find_only_value<'q>(
    quads: &'q [Quad],
    predicate: NamedNodeRef<'_>,
) -> Result<Option<&'q Term>, &'static str> {
    let mut values =
        quads.iter().filter(|quad| quad.predicate == predicate).map(|quad| &quad.object);
    let first = values.next();
    let is_other = |value: &Term| first.is_some_and(|first| first != value);
    if values.any(is_other) { Err("a branched list") } else { Ok(first) }
}

/// The lists in the ordered arrays of some objects.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// The IRI of the first node of each, and the list, or what it is instead.
    by_head: HashMap<String, Result<List, &'static str>>,
}

impl Lists {
    /// Reads the lists of an object with these properties and values.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn of_object<'q>(
        read: &dyn Read,
        shape: &Shape,
        about: impl Iterator<Item = (NamedNodeRef<'q>, TermRef<'q>)>,
    ) -> Result<Self, Error> {
        let mut lists = Self::default();
        lists.add_object(read, shape, about)?;
        Ok(lists)
    }

    /// Adds the lists of an object with these properties and values. Returns how many nodes were read.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn add_object<'q>(
        &mut self,
        read: &dyn Read,
        shape: &Shape,
        about: impl Iterator<Item = (NamedNodeRef<'q>, TermRef<'q>)>,
    ) -> Result<usize, Error> {
        if !shape.has_ordered {
            return Ok(0);
        }
        let ordered = shape.iter_properties().filter(|(_, _, property)| property.is_ordered);
        let ordered: Vec<NamedNodeRef<'_>> =
            ordered.map(|(_, _, property)| property.predicate.as_ref()).collect();
        let mut count = 0;
        for (predicate, value) in about {
            if let TermRef::NamedNode(head) = value
                && ordered.contains(&predicate)
                && !self.by_head.contains_key(head.as_str())
            {
                let list = List::read(read, head.into_owned())?;
                count += list.as_ref().map_or(0, |list| list.nodes.len());
                self.by_head.insert(head.as_str().to_owned(), list);
            }
        }
        Ok(count)
    }

    /// Returns the list that begins with this node.
    ///
    /// # Errors
    /// Returns what it is instead.
    pub(crate) fn find(&self, head: NamedNodeRef<'_>) -> Result<&List, &'static str> {
        match self.by_head.get(head.as_str()) {
            Some(Ok(list)) => Ok(list),
            Some(Err(what)) => Err(what),
            None => Err("not a list"),
        }
    }
}

/// Returns whether the store has or had a list, so that a commit may unlink one.
pub(crate) fn may_have_lists(read: &dyn Read) -> Result<bool, Error> {
    read.any(&Pattern { predicate: Some(rdf::REST.into_owned()), ..Pattern::default() })
}

/// Calls `visit` with each object that has an element in an ordered array with this property, until it breaks. An object that
/// has it several times may be visited several times. It also calls it with `None` for each place of the element elsewhere, so
/// that it can end a walk that finds nothing.
pub(crate) fn find_element_owners(
    read: &dyn Read,
    property: &NamedNode,
    element: &Term,
    visit: &mut dyn FnMut(Option<NamedNode>) -> ControlFlow<()>,
) -> Result<(), Error> {
    // The nodes of lists that other software wrote: those that have the element, then the ones before them.
    let mut waiting: Vec<NamedNode> = Vec::new();
    let mut flow = ControlFlow::Continue(());
    visit_subjects(read, rdf::FIRST, element, &mut |node| {
        let own = node.as_ref().and_then(|node| ListNode::parse(node.as_str()));
        let owner = match own {
            Some(own) if own.property == *property => Some(own.object),
            Some(_) => None,
            None => {
                let is_followed = waiting.len() < MAX_FOREIGN_NODES;
                waiting.extend(node.filter(|_| is_followed));
                None
            }
        };
        flow = visit(owner);
        flow
    })?;
    let mut seen = HashSet::new();
    while let (Some(node), true) = (waiting.pop(), flow.is_continue()) {
        if seen.len() == MAX_FOREIGN_NODES || !seen.insert(node.clone()) {
            continue;
        }
        let node = Term::from(node);
        visit_subjects(read, property.as_ref(), &node, &mut |owner| {
            flow = visit(owner);
            flow
        })?;
        if flow.is_break() {
            break;
        }
        visit_subjects(read, rdf::REST, &node, &mut |before| {
            waiting.extend(before);
            flow = visit(None);
            if waiting.len() < MAX_FOREIGN_NODES { flow } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(())
}

/// Calls `visit` with each subject, and with `None` for a hidden one.
fn visit_subjects(
    read: &dyn Read,
    predicate: NamedNodeRef<'_>,
    object: &Term,
    visit: &mut dyn FnMut(Option<NamedNode>) -> ControlFlow<()>,
) -> Result<(), Error> {
    let pattern = Pattern {
        predicate: Some(predicate.into_owned()),
        object: Some(object.clone()),
        ..Pattern::default()
    };
    let mut failed = None;
    read.for_each_with_hidden(&pattern, &mut |quad| {
        let NamedOrBlankNode::NamedNode(subject) = quad.subject else {
            return ControlFlow::Continue(());
        };
        match read.is_hidden(subject.as_ref().into()) {
            Ok(is_hidden) => visit((!is_hidden).then_some(subject)),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// As [`Transaction::changed_subjects`], with the object of each node of a list in place of the node.
pub(crate) fn changed_objects(
    transaction: &mut Transaction<'_>,
) -> Result<Vec<(NamedNode, bool)>, Error> {
    let changed = transaction.changed_subjects()?;
    if !changed.iter().any(|(uri, _)| is_list_node(uri)) {
        return Ok(changed);
    }
    let mut objects = BTreeMap::new();
    for (uri, is_known) in changed {
        match find_owner(&uri) {
            // If it is among the changed subjects itself, that says whether the store knew it.
            Some(object) => {
                objects.entry(object).or_insert(true);
            }
            None => {
                objects.insert(uri, is_known);
            }
        }
    }
    Ok(objects.into_iter().collect())
}

/// Lists subjects in code point order without the nodes of lists. `list` returns a page of all subjects after an IRI, with a
/// maximum length, and `iri_of` the IRI of one.
///
/// # Errors
/// The errors of `list`.
pub(crate) fn list_objects<T, E>(
    after: Option<&str>,
    limit: usize,
    iri_of: impl Fn(&T) -> &NamedNode,
    list: impl Fn(Option<&str>, usize) -> Result<Vec<T>, E>,
) -> Result<Vec<T>, E> {
    let mut page = list(after, limit)?;
    let is_full = page.len() == limit;
    let begin = page.partition_point(|one| iri_of(one).as_str() < PREFIX);
    let end = page.partition_point(|one| iri_of(one).as_str() < AFTER_NODES);
    if begin < end {
        let is_last = end == page.len();
        page.drain(begin..end);
        if is_full {
            let next = if is_last {
                Some(AFTER_NODES)
            } else {
                page.last().map(|one| iri_of(one).as_str())
            };
            let next = next.map(str::to_owned);
            page.extend(list(next.as_deref(), limit - page.len())?);
        }
    }
    Ok(page)
}
