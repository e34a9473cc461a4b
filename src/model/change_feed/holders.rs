//! Finds the objects that hold an object nested, at any depth of a mapping.
use crate::list::ListNode;
use crate::mapping::Shape;
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, NamedOrBlankNode, Term};
use penstock_base::error::GatewayError;
use penstock_store::{Error, Pattern, Read};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

/// The links of a mapping from nested objects to their holders. Shapes are numbered; the root is 0. The nodes of the lists of an
/// ordered array count as a shape.
#[derive(Debug, Clone, Default)]
pub(crate) struct HolderLinks {
    /// For each property: the nested shapes, each with the shape that holds it.
    by_property: BTreeMap<NamedNode, Vec<(usize, usize)>>,
    /// For the nodes of the lists of each ordered array: its property, and the shape that has it.
    lists: BTreeMap<usize, (NamedNode, usize)>,
}

impl HolderLinks {
    pub(crate) fn of_mapping(root: &Shape) -> Self {
        let mut links = Self::default();
        let mut shapes = 1;
        let mut waiting = vec![(root, 0)];
        while let Some((shape, number)) = waiting.pop() {
            for (_, _, property) in shape.iter_properties() {
                let mut holder = number;
                if property.is_ordered {
                    links.add(&property.predicate, shapes, holder);
                    links.add(&rdf::REST.into_owned(), shapes, shapes);
                    links.lists.insert(shapes, (property.predicate.clone(), holder));
                    holder = shapes;
                    shapes += 1;
                }
                let Some(nested) = property.value.shape() else { continue };
                let first = rdf::FIRST.into_owned();
                let link = if property.is_ordered { &first } else { &property.predicate };
                links.add(link, shapes, holder);
                waiting.push((nested, shapes));
                shapes += 1;
            }
        }
        links
    }

    fn add(&mut self, property: &NamedNode, nested: usize, holder: usize) {
        self.by_property.entry(property.clone()).or_default().push((nested, holder));
    }

    /// Returns the objects that may be of the root shape and hold one of these objects, directly or indirectly.
    /// Returns `None` if there are more than `most`.
    pub(crate) fn find_holders(
        &self,
        read: &dyn Read,
        changed: impl IntoIterator<Item = NamedNode>,
        most: usize,
    ) -> Result<Option<BTreeSet<NamedNode>>, GatewayError> {
        let mut roots = BTreeSet::new();
        let is_complete = self.visit_holders(read, changed, most, &|| Ok(()), &mut |holder| {
            roots.insert(holder);
            let is_full = roots.len() > most;
            Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(Some(roots).filter(|roots| is_complete && roots.len() <= most))
    }

    /// Calls `visit` with each object that may be of the root shape and holds one of these objects, directly or
    /// indirectly, until it breaks. It may get an object more than once. Only the objects between are in memory;
    /// returns false, and has not visited all, if there are more than `max_between` of them. Calls `check` for each link
    /// that it follows, and ends with its error.
    pub(crate) fn visit_holders(
        &self,
        read: &dyn Read,
        changed: impl IntoIterator<Item = NamedNode>,
        max_between: usize,
        check: &dyn Fn() -> Result<(), GatewayError>,
        visit: &mut dyn FnMut(NamedNode) -> Result<ControlFlow<()>, GatewayError>,
    ) -> Result<bool, GatewayError> {
        if self.by_property.is_empty() {
            return Ok(true);
        }
        // A changed object may occur at any position in the mapping.
        let mut waiting: Vec<(NamedNode, Option<usize>)> =
            changed.into_iter().map(|uri| (uri, None)).collect();
        let mut seen: HashSet<(NamedNode, usize)> = HashSet::new();
        let mut visited = Ok(ControlFlow::Continue(()));
        while let Some((uri, place)) = waiting.pop() {
            for (property, leads) in &self.by_property {
                let holding: Vec<usize> = leads
                    .iter()
                    .filter(|(nested, _)| place.is_none_or(|place| place == *nested))
                    .map(|(_, holder)| *holder)
                    .collect();
                if holding.is_empty() {
                    continue;
                }
                let pattern = Pattern {
                    predicate: Some(property.clone()),
                    object: Some(uri.clone().into()),
                    ..Pattern::default()
                };
                read.for_each(&pattern, &mut |quad| {
                    let NamedOrBlankNode::NamedNode(holder) = quad.subject else {
                        return ControlFlow::Continue(());
                    };
                    if let Err(error) = check() {
                        visited = Err(error);
                        return ControlFlow::Break(());
                    }
                    // A node of the gateway names its object and property, so that its list need not be followed.
                    let node = ListNode::parse(holder.as_str());
                    for shape in &holding {
                        let (shape, holder) = match (self.lists.get(shape), &node) {
                            (Some((property, _)), Some(node)) if node.property != *property => {
                                continue;
                            }
                            (Some((_, shape)), Some(node)) => (shape, node.object.clone()),
                            _ => (shape, holder.clone()),
                        };
                        if *shape != 0 {
                            if seen.insert((holder.clone(), *shape)) {
                                waiting.push((holder, Some(*shape)));
                            }
                            continue;
                        }
                        visited = visit(holder);
                        if !matches!(visited, Ok(ControlFlow::Continue(()))) {
                            return ControlFlow::Break(());
                        }
                    }
                    if seen.len() > max_between {
                        return ControlFlow::Break(());
                    }
                    ControlFlow::Continue(())
                })?;
                if visited.clone()?.is_break() {
                    return Ok(true);
                }
                if seen.len() > max_between {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns whether an object refers to this one by a property of a nested object.
    pub(crate) fn has_holder(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, Error> {
        for property in self.by_property.keys() {
            let pattern = Pattern {
                predicate: Some(property.clone()),
                object: Some(uri.clone().into()),
                ..Pattern::default()
            };
            if read.any(&pattern)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the objects nested in these objects of the root shape, at any depth. Calls `check` for each of them, and
    /// ends with its error.
    pub(crate) fn find_nested(
        &self,
        read: &dyn Read,
        roots: &BTreeSet<NamedNode>,
        check: &dyn Fn() -> Result<(), GatewayError>,
    ) -> Result<BTreeSet<NamedNode>, GatewayError> {
        let mut nested: BTreeSet<(NamedNode, usize)> = BTreeSet::new();
        let mut waiting = Vec::new();
        for root in roots {
            waiting.push((root.clone(), 0));
            while let Some((uri, place)) = waiting.pop() {
                for (property, leads) in &self.by_property {
                    let inner: Vec<usize> = leads
                        .iter()
                        .filter(|(_, holder)| *holder == place)
                        .map(|(nested, _)| *nested)
                        .collect();
                    if inner.is_empty() {
                        continue;
                    }
                    let pattern = Pattern {
                        subject: Some(uri.clone().into()),
                        predicate: Some(property.clone()),
                        ..Pattern::default()
                    };
                    let mut checked = Ok(());
                    read.for_each(&pattern, &mut |quad| {
                        checked = check();
                        if checked.is_err() {
                            return ControlFlow::Break(());
                        }
                        if let Term::NamedNode(object) = quad.object {
                            for shape in &inner {
                                if nested.insert((object.clone(), *shape)) {
                                    waiting.push((object.clone(), *shape));
                                }
                            }
                        }
                        ControlFlow::Continue(())
                    })?;
                    checked?;
                }
            }
        }
        let is_object = |(_, shape): &(NamedNode, usize)| !self.lists.contains_key(shape);
        Ok(nested.into_iter().filter(is_object).map(|(uri, _)| uri).collect())
    }
}
