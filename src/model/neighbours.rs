//! Finds the objects around an object: what it refers to, what refers to it, and the objects that it is nested in.
use crate::list::{List, ListNode, find_element_owners, is_list_node};
use crate::mapping::{FieldKind, Shape};
use crate::resource::Compiled;
use crate::view::{FieldValues, find_label, find_nested_label, find_owning_field};
use crate::{members, namespace};
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_base::error::GatewayError;
use penstock_store::{Pattern, Read, SubjectQuads};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The maximum number of objects that refer to an object and are looked at.
const MAX_INCOMING: usize = 1_000;
/// The maximum number of objects that may contain another one and are looked at.
const MAX_PARENTS: usize = 100;

/// The objects that one property links to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedObjects {
    /// The property.
    pub predicate: NamedNode,
    /// The first of them, ordered by URI.
    pub uris: Vec<NamedNode>,
    /// How many there are.
    pub total: usize,
}

/// The objects around an object, at a distance of one link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neighbours {
    /// What it refers to, by property.
    pub outgoing: Vec<LinkedObjects>,
    /// What refers to it, by property.
    pub incoming: Vec<LinkedObjects>,
    /// Whether everything that refers to it was looked at.
    pub is_complete: bool,
}

/// An object that contains another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Its URI.
    pub uri: NamedNode,
    /// The text by which people recognise it.
    pub label: Option<String>,
    /// The name of its field that leads to the other one.
    pub field: String,
}

/// Finds the neighbours of the object with these quads, for each property and direction the first ones, as many as `limit`
/// says for the property. Types are no neighbours.
///
/// # Errors
/// The errors of the store.
pub fn find_neighbours(
    read: &dyn Read,
    uri: &NamedNode,
    quads: &[Quad],
    limit: impl Fn(&NamedNode) -> usize,
) -> Result<Neighbours, GatewayError> {
    let mut outgoing: BTreeMap<&NamedNode, BTreeSet<NamedNode>> = BTreeMap::new();
    for Quad { predicate, object, .. } in quads {
        let Term::NamedNode(other) = object else { continue };
        if *predicate == rdf::TYPE {
            continue;
        }
        let others = outgoing.entry(predicate).or_default();
        if is_list_node(other) {
            // The elements of an ordered array are neighbours, and not the nodes of its list.
            let list = List::read(read, other.clone())?.unwrap_or_default();
            others.extend(list.values().filter_map(|value| match value {
                Term::NamedNode(element) => Some(element.clone()),
                _ => None,
            }));
        } else {
            others.insert(other.clone());
        }
    }
    outgoing.retain(|_, others| !others.is_empty());
    let mut incoming: BTreeMap<NamedNode, BTreeSet<NamedNode>> = BTreeMap::new();
    let (mut seen, mut is_complete) = (0, true);
    let pattern = Pattern { object: Some(uri.clone().into()), ..Pattern::default() };
    read.for_each(&pattern, &mut |quad| {
        if seen == MAX_INCOMING {
            is_complete = false;
            return ControlFlow::Break(());
        }
        seen += 1;
        if let NamedOrBlankNode::NamedNode(subject) = quad.subject {
            let (predicate, subject) = match ListNode::parse(subject.as_str()) {
                Some(node) => (node.property, node.object),
                None => (quad.predicate, subject),
            };
            incoming.entry(predicate).or_default().insert(subject);
        }
        ControlFlow::Continue(())
    })?;
    let first = |predicate: NamedNode, uris: Vec<NamedNode>, total| LinkedObjects {
        predicate,
        uris,
        total,
    };
    Ok(Neighbours {
        outgoing: outgoing
            .into_iter()
            .map(|(predicate, all)| {
                let (total, limit) = (all.len(), limit(predicate));
                first(predicate.clone(), all.into_iter().take(limit).collect(), total)
            })
            .collect(),
        incoming: incoming
            .into_iter()
            .map(|(predicate, all)| {
                let (total, limit) = (all.len(), limit(&predicate));
                first(predicate, all.into_iter().take(limit).collect(), total)
            })
            .collect(),
        is_complete,
    })
}

/// Finds the objects that an object is nested in, the outermost first. `steps` are the indexes of the fields that lead to it
/// from the objects of the Business Object. If several objects contain it, the first by URI counts.
///
/// # Errors
/// The errors of the store.
pub fn find_ancestors(
    read: &dyn Read,
    business_object: &Compiled,
    steps: &[usize],
    uri: &NamedNode,
) -> Result<Vec<Ancestor>, GatewayError> {
    let mut shapes = vec![&business_object.mapping.root];
    for step in steps {
        let Some(inner) = shapes.last().and_then(|shape| nested_shape(shape, *step)) else { break };
        shapes.push(inner);
    }
    let mut ancestors = Vec::new();
    let mut current = uri.clone();
    for (level, (step, shape)) in steps.iter().zip(&shapes).enumerate().rev() {
        let root = (level == 0).then_some(business_object);
        let Some((parent, field)) = find_parent(read, shape, *step, &current, root)? else { break };
        let mut quads = SubjectQuads::default();
        read.read_subject(parent.as_ref().into(), &mut quads)?;
        let values = FieldValues::from_subject(shape, &quads);
        let label = match root {
            Some(business_object) => find_label(&business_object.mapping, &values),
            None => find_nested_label(shape, &values),
        };
        current = parent.clone();
        ancestors.push(Ancestor { uri: parent, label, field });
    }
    ancestors.reverse();
    Ok(ancestors)
}

/// Returns the shape of the objects nested in the field with this index.
pub fn nested_shape(shape: &Shape, field: usize) -> Option<&Shape> {
    shape.fields.get(field)?.shape()
}

/// Returns the first object of this shape whose field contains an object, and the name of the field. `root` is the
/// Business Object that it must belong to, if it is not nested itself.
fn find_parent(
    read: &dyn Read,
    shape: &Shape,
    step: usize,
    child: &NamedNode,
    root: Option<&Compiled>,
) -> Result<Option<(NamedNode, String)>, GatewayError> {
    let Some(field) = shape.fields.get(step) else { return Ok(None) };
    let FieldKind::Property(property) = &field.kind else { return Ok(None) };
    let predicate = property.predicate.as_ref();
    if find_owning_field(shape, predicate, child.as_ref().into()) != Some(step) {
        return Ok(None);
    }
    let pattern = Pattern {
        predicate: Some(property.predicate.clone()),
        object: Some(child.clone().into()),
        ..Pattern::default()
    };
    let mut candidates = BTreeSet::new();
    let mut add = |parent| {
        candidates.insert(parent);
        if candidates.len() < MAX_PARENTS {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    if property.is_ordered {
        find_element_owners(read, &property.predicate, &child.clone().into(), &mut |parent| {
            parent.map_or(ControlFlow::Continue(()), &mut add)
        })?;
    }
    read.for_each(&pattern, &mut |quad| match quad.subject {
        NamedOrBlankNode::NamedNode(subject) => add(subject),
        NamedOrBlankNode::BlankNode(_) => ControlFlow::Continue(()),
    })?;
    let graph = namespace::get(read, &shape.namespace)?.map(|found| found.graph_name());
    for candidate in candidates {
        let is_parent = match (root, &graph) {
            (Some(business_object), _) => members::is_member(read, business_object, &candidate)?,
            (None, Some(graph)) => read.any(&Pattern {
                subject: Some(candidate.clone().into()),
                graph: Some(GraphName::from(graph.clone())),
                ..Pattern::default()
            })?,
            (None, None) => false,
        };
        if is_parent {
            return Ok(Some((candidate, field.name.clone())));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
