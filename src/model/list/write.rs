//! Writes and removes the nodes of lists.
use super::node::{NodeIris, PREFIX, is_list_node};
use super::read::may_have_lists;
use crate::write_scope::WriteScope;
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, QuadRef, Term, TermRef};
use penstock_store::{Error, Pattern, Read as _, Transaction};

/// The place of an ordered array.
#[derive(Debug)]
pub(crate) struct ListPlace<'p> {
    iris: NodeIris,
    /// The graph of the object that has it.
    graph: &'p GraphName,
    /// Whether the object is new, so that it has no list.
    is_new: bool,
}

impl<'p> ListPlace<'p> {
    /// Returns the place of an object's array with this property. `graph` is the graph of the object.
    pub(crate) fn new(
        object: &NamedNode,
        property: &NamedNode,
        graph: &'p GraphName,
        is_new: bool,
    ) -> Self {
        Self { iris: NodeIris::new(object.as_str(), property.as_str()), graph, is_new }
    }

    /// Returns the node of its list at a position.
    pub(crate) fn node_at(&self, position: usize) -> NamedNode {
        self.iris.at(position)
    }
}

/// Writes the list of an array with these values, and changes only the quads that differ. The link to it must have been
/// written. Nodes that it had after its last one are removed. Returns whether a quad changed.
pub(crate) fn write_list(
    transaction: &mut Transaction<'_>,
    place: &ListPlace<'_>,
    scope: &WriteScope<'_>,
    values: &[Term],
) -> Result<bool, Error> {
    let iris = &place.iris;
    let mut changed = false;
    for (position, value) in values.iter().enumerate() {
        let subject = NamedOrBlankNode::from(iris.at(position));
        let next = match position + 1 {
            end if end == values.len() => rdf::NIL.into_owned(),
            next => iris.at(next),
        };
        let wanted = [(rdf::FIRST, value.as_ref()), (rdf::REST, TermRef::from(next.as_ref()))];
        let stored = if place.is_new { Vec::new() } else { transaction.quads_about(&subject)? };
        for quad in stored {
            let is_wanted = quad.graph_name == *place.graph
                && wanted.contains(&(quad.predicate.as_ref(), quad.object.as_ref()));
            if !is_wanted && scope.contains(&quad) {
                changed |= transaction.remove(quad.as_ref())?;
            }
        }
        for (predicate, value) in wanted {
            let graph = place.graph.as_ref();
            changed |=
                transaction.insert(QuadRef::new(subject.as_ref(), predicate, value, graph))?;
        }
    }
    if !place.is_new {
        remove_unlinked(transaction, iris.at(values.len()))?;
    }
    Ok(changed)
}

/// Removes quads, and the lists to which they were the last links. What a transaction both adds and removes is no change, so
/// that [`remove_unlinked_lists`] would not find such lists.
pub(crate) fn remove_quads(transaction: &mut Transaction<'_>, quads: &[Quad]) -> Result<(), Error> {
    for quad in quads {
        transaction.remove(quad.as_ref())?;
    }
    for quad in quads {
        if let Term::NamedNode(node) = &quad.object
            && is_list_node(node)
        {
            remove_unlinked(transaction, node.clone())?;
        }
    }
    Ok(())
}

/// Removes a node, and those that follow it, as long as nothing refers to them. Other IRIs stay.
pub(crate) fn remove_unlinked(
    transaction: &mut Transaction<'_>,
    node: NamedNode,
) -> Result<(), Error> {
    let mut next = Some(node).filter(|node| is_list_node(node));
    while let Some(node) = next.take() {
        let link = Pattern { object: Some(node.clone().into()), ..Pattern::default() };
        if transaction.any(&link)? {
            break;
        }
        for quad in transaction.quads_about(&node.into())? {
            transaction.remove(quad.as_ref())?;
            if quad.predicate == rdf::REST
                && let Term::NamedNode(rest) = quad.object
            {
                next = Some(rest).filter(|rest| is_list_node(rest));
            }
        }
    }
    Ok(())
}

/// Removes the lists to which the transaction removes the last link.
pub(crate) fn remove_unlinked_lists(transaction: &mut Transaction<'_>) -> Result<(), Error> {
    if transaction.removed_quads() == 0 || !may_have_lists(&transaction.prior_state())? {
        return Ok(());
    }
    for iri in transaction.find_removed_objects(PREFIX) {
        remove_unlinked(transaction, iri)?;
    }
    Ok(())
}
