//! Writes ordered arrays. Each is one value, a list.
use super::WriteTarget;
use super::stored::{is_same_json, is_value};
use crate::ingest::Mode;
use crate::ingest::codes::find_unlisted;
use crate::ingest::node::{GivenObject, GivenValue};
use crate::ingest::repeats::Mention;
use crate::ingest::request_writer::{ObjectName, RequestWriter};
use crate::list::{
    ElementUris, List, ListNode, ListPlace, remove_quads, remove_unlinked, write_list,
};
use crate::mapping::{Field, Property};
use oxrdf::{NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_base::error::GatewayError;
use penstock_rdf::MAX_IRI_BYTES;
use penstock_store::{FastSet, Pattern, Read as _};
use std::ops::ControlFlow;

impl<'m> RequestWriter<'_, '_, 'm> {
    /// Writes an ordered array, as [`RequestWriter::write_field`] does other fields.
    pub(super) fn write_ordered(
        &mut self,
        target: &WriteTarget<'_>,
        (field, property): (&Field, &'m Property),
        (values, mention): (Vec<GivenValue<'m>>, Mention),
        current: &[&Quad],
        children: &mut Vec<(GivenObject<'m>, ObjectName)>,
    ) -> Result<bool, GatewayError> {
        let adds = self.adds();
        if adds && values.is_empty() {
            return Ok(false);
        }
        let reads_all = property.codes.is_some() || !adds && property.value.shape().is_some();
        let stored = if reads_all {
            self.read_stored_lists(current, usize::MAX)?
        } else if adds {
            // A list with one node more than the array has elements is another one.
            self.read_stored_lists(current, values.len() + 1)?
        } else {
            Vec::new()
        };
        let first_child = children.len();
        let given = (values, mention);
        let Some(wanted) = self.name_elements(target, property, given, &stored, children)? else {
            return Ok(false);
        };
        if mention == Mention::Same {
            return Ok(false);
        }
        if let Some(codes) = &property.codes {
            let stored = stored.iter().flat_map(List::values);
            if let Some(message) = find_unlisted(codes, &property.value, &wanted, stored) {
                self.findings.add_invalid(&field.pointer_in(target.pointer), message);
                return Ok(false);
            }
        }
        if adds {
            if stored.iter().any(|list| is_same_array(list, &wanted)) {
                for (node, name) in children.iter_mut().skip(first_child) {
                    name.is_fixed = is_placed(node);
                }
                return Ok(false);
            }
            if current.iter().any(|quad| is_value(property, &quad.object)) {
                let message = format!(
                    "an ordered array is one value, and {} already has another one; use UPDATE or MERGE to change it",
                    target.name.uri.as_str()
                );
                self.findings.add_conflict(&field.pointer_in(target.pointer), message);
                return Ok(false);
            }
        }
        let changed = self.replace_list(target, (field, property), current, &wanted)?;
        let wanted: FastSet<&Term> = wanted.iter().collect();
        for term in stored.iter().flat_map(List::values).filter(|term| !wanted.contains(term)) {
            if let Term::NamedNode(uri) = term {
                self.suspect(target, (field, property), uri);
            }
        }
        Ok(changed)
    }

    /// Returns whether the mode adds to what is stored, and changes nothing of it.
    fn adds(&self) -> bool {
        matches!(self.mode, Mode::Add | Mode::Validate)
    }

    /// Names the objects in an array, and adds them to `children`. Returns the values of the array, or `None` if an error was
    /// reported. ADD names the elements as those of the stored array, because it may only give the same one.
    fn name_elements(
        &mut self,
        target: &WriteTarget<'_>,
        property: &'m Property,
        (values, mention): (Vec<GivenValue<'m>>, Mention),
        stored: &[List],
        children: &mut Vec<(GivenObject<'m>, ObjectName)>,
    ) -> Result<Option<Vec<Term>>, GatewayError> {
        let given: FastSet<NamedNode> = values
            .iter()
            .filter_map(|value| match value {
                GivenValue::Object(node) => node.uri.clone(),
                GivenValue::Term(_) => None,
            })
            .collect();
        let has_placed =
            values.iter().any(|value| matches!(value, GivenValue::Object(node) if is_placed(node)));
        let uris = property.value.shape().filter(|_| has_placed).map(|shape| {
            let prefix = self.namespaces.namespace_of(shape).0.identifier_prefix();
            let object = self.namespaces.split_iri(&target.name.uri);
            ElementUris::new(&prefix, object, self.namespaces.split_iri(&property.predicate))
        });
        let adds = self.adds();
        let stored = stored.first().filter(|_| adds);
        let stored: Vec<&Term> = stored.into_iter().flat_map(List::values).collect();
        // ADD only gives a stored array again, whose elements have their URIs.
        let is_new = !adds || stored.is_empty();
        let mut next_free = values.len();
        let mut is_complete = true;
        let mut wanted = Vec::with_capacity(values.len());
        for (position, value) in values.into_iter().enumerate() {
            let node = match value {
                GivenValue::Term(term) => {
                    wanted.push(term);
                    continue;
                }
                // An earlier, equal mention has written it already.
                GivenValue::Object(node) if mention == Mention::Same && node.uri.is_none() => {
                    continue;
                }
                GivenValue::Object(node) => node,
            };
            let name = match &uris {
                Some(uris) if is_placed(&node) => match stored.get(position) {
                    Some(Term::NamedNode(uri)) if uris.has(uri) => {
                        Some(ObjectName::known(uri.clone()))
                    }
                    _ => {
                        let mut uri = uris.at(position);
                        while given.contains(&uri)
                            || is_new && self.is_taken(target, property, &uri)?
                        {
                            uri = uris.at(next_free);
                            next_free += 1;
                        }
                        self.create_element(&node, uri)?
                    }
                },
                _ => self.resolve_name(&node, None, Some(target.name))?,
            };
            match name {
                Some(name) => {
                    wanted.push(name.uri.clone().into());
                    children.push((node, name));
                }
                None => is_complete = false,
            }
        }
        Ok(is_complete.then_some(wanted))
    }

    /// Returns whether something else than this array refers to the object with the URI of an element, so that it keeps what it
    /// has.
    fn is_taken(
        &self,
        target: &WriteTarget<'_>,
        property: &Property,
        uri: &NamedNode,
    ) -> Result<bool, GatewayError> {
        let links = Pattern { object: Some(uri.clone().into()), ..Pattern::default() };
        let is_own = |quad: &Quad| {
            let NamedOrBlankNode::NamedNode(subject) = &quad.subject else { return false };
            ListNode::parse(subject.as_str()).is_some_and(|node| {
                node.object == target.name.uri && node.property == property.predicate
            })
        };
        let mut is_taken = false;
        self.transaction.for_each(&links, &mut |quad| {
            is_taken = !is_own(&quad);
            if is_taken { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(is_taken)
    }

    /// Names an element that gets its URI from its place. It is created each time, so what was stored about it is removed,
    /// except in ADD. Returns `None` if an error was reported.
    fn create_element(
        &mut self,
        node: &GivenObject<'m>,
        uri: NamedNode,
    ) -> Result<Option<ObjectName>, GatewayError> {
        if self.adds() {
            return Ok(Some(ObjectName::known(uri)));
        }
        let mut stored = self.transaction.quads_about(&uri.clone().into())?;
        if let Some(why) = self.scope.refusal_reason(self.transaction, &uri, &stored)? {
            self.findings.add_invalid(&node.pointer, why);
            return Ok(None);
        }
        stored.retain(|quad| self.scope.contains(quad));
        self.orphans.suspect_all(&*self.transaction, node.shape, &stored)?;
        remove_quads(self.transaction, &stored)?;
        Ok(Some(ObjectName::new(uri)))
    }

    /// Reads the lists that these quads link to, up to this many nodes of each. Links to other values have none.
    fn read_stored_lists(
        &self,
        links: &[&Quad],
        max_nodes: usize,
    ) -> Result<Vec<List>, GatewayError> {
        let mut lists = Vec::new();
        for quad in links {
            if let Term::NamedNode(head) = &quad.object {
                let list = List::read_beginning(&*self.transaction, head.clone(), max_nodes)?;
                lists.extend(list.ok());
            }
        }
        Ok(lists)
    }

    /// Replaces the stored values by the list of the wanted ones; by none if there are none.
    fn replace_list(
        &mut self,
        target: &WriteTarget<'_>,
        (field, property): (&Field, &Property),
        current: &[&Quad],
        wanted: &[Term],
    ) -> Result<bool, GatewayError> {
        let WriteTarget { name, graph, is_empty, .. } = target;
        let place = ListPlace::new(&name.uri, &property.predicate, graph, *is_empty);
        let bytes = place.node_at(wanted.len()).as_str().len();
        if bytes > MAX_IRI_BYTES && !wanted.is_empty() {
            let message = format!(
                "the nodes of the list would have IRIs of {bytes} bytes, because they contain those of the object and the \
                 property; the maximum is {MAX_IRI_BYTES}, so give the object a shorter uri"
            );
            self.findings.add_invalid(&field.pointer_in(target.pointer), message);
            return Ok(false);
        }
        if let Err(message) = self.derived_iris.add(bytes.saturating_mul(wanted.len())) {
            self.findings.add_invalid(&field.pointer_in(target.pointer), message);
            return Ok(false);
        }
        let head = (!wanted.is_empty()).then(|| Term::from(place.node_at(0)));
        let mut changed = false;
        let mut unlinked = Vec::new();
        for quad in current {
            let is_head = head.as_ref() == Some(&quad.object);
            if is_head && quad.graph_name == *target.graph {
                continue;
            }
            if self.scope.contains(quad) {
                changed |= self.transaction.remove(quad.as_ref())?;
                unlinked.push(&quad.object);
            } else if !is_head {
                self.warn_that_value_stays(&field.pointer_in(target.pointer), &quad.object);
            }
        }
        if let Some(head) = &head {
            changed |= self.insert_terms(target, property, std::slice::from_ref(head))?;
            changed |= write_list(self.transaction, &place, self.scope, wanted)?;
        }
        for term in unlinked {
            if let Term::NamedNode(node) = term {
                remove_unlinked(self.transaction, node.clone())?;
            }
        }
        Ok(changed)
    }
}

/// Returns whether an element gets its URI from its place.
fn is_placed(node: &GivenObject<'_>) -> bool {
    node.uri.is_none() && node.shape.key_fields().is_none()
}

/// Returns whether a list has the same values as an array.
fn is_same_array(list: &List, wanted: &[Term]) -> bool {
    let is_same = |(stored, wanted)| stored == wanted || is_same_json(stored, wanted);
    list.values().len() == wanted.len() && list.values().zip(wanted).all(is_same)
}
