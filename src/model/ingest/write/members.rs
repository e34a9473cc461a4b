//! Writes maps: their members are objects that their parent's key identifies.
use super::WriteTarget;
use crate::ingest::node::{GivenField, GivenValue, Partial};
use crate::ingest::request_writer::RequestWriter;
use crate::mapping::{Property, Shape};
use crate::view::{find_owning_field, read_members};
use oxrdf::{NamedNode, NamedNodeRef, Quad, Term};
use penstock_base::error::GatewayError;
use penstock_store::{Pattern, Read as _};
use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;

impl<'m> RequestWriter<'_, '_, 'm> {
    /// Finds the stored objects of the members that a MERGE removes from a map. Leaves out those without a stored object of which
    /// it only removes something.
    pub(super) fn find_removed_members(
        &mut self,
        given: &mut GivenField<'m>,
        target: &WriteTarget<'_>,
    ) -> Result<(), GatewayError> {
        let Some(Partial::Members(removed)) = given.partial.as_deref_mut() else { return Ok(()) };
        let parent = target.name.uri.as_ref();
        for member in &removed.keys {
            removed.uris.extend(self.find_member(member, parent)?);
        }
        for value in std::mem::take(&mut given.values) {
            let is_missing = match &value {
                GivenValue::Object(member) if member.only_removes() => {
                    self.find_member(member, parent)?.is_none()
                }
                _ => false,
            };
            if !is_missing {
                given.values.push(value);
            }
        }
        Ok(())
    }

    /// Splits the links of a map into those to members that it does not show, which have no name of their own, and the others.
    pub(super) fn split_members<'q>(
        &self,
        shape: &Shape,
        links: &[&'q Quad],
    ) -> Result<(Vec<&'q Quad>, Vec<&'q Quad>), GatewayError> {
        let uris: BTreeSet<NamedNodeRef<'q>> = links
            .iter()
            .filter_map(|quad| match &quad.object {
                Term::NamedNode(uri) => Some(uri.as_ref()),
                _ => None,
            })
            .collect();
        let uris: Vec<NamedNodeRef<'q>> = uris.into_iter().collect();
        let mut hidden = HashSet::new();
        read_members(&*self.transaction, shape, &uris, &mut |_, member| {
            hidden.insert(member);
        })?;
        Ok(links.iter().copied().partition(|quad| hidden.contains(&quad.object.as_ref())))
    }

    /// Unlinks a member of a map if a MERGE has removed everything in it. Returns the index of the map if it lost a link.
    pub(super) fn unlink_emptied(
        &mut self,
        target: &WriteTarget<'_>,
        parent: &'m Shape,
        (shape, value): (&'m Shape, &Property),
        uri: &NamedNode,
    ) -> Result<Option<usize>, GatewayError> {
        let values = Pattern {
            subject: Some(uri.clone().into()),
            predicate: Some(value.predicate.clone()),
            ..Pattern::default()
        };
        if self.transaction.any(&values)? {
            return Ok(None);
        }
        let is_map =
            |map: &Property| map.value.shape().is_some_and(|members| std::ptr::eq(members, shape));
        let Some((place, field, map)) = parent.iter_properties().find(|(.., map)| is_map(map))
        else {
            return Ok(None);
        };
        // A map can have many members, so only the links to this one are read.
        let pattern = Pattern {
            subject: Some(target.subject.clone()),
            predicate: Some(map.predicate.clone()),
            object: Some(uri.clone().into()),
            graph: None,
        };
        let mut links = Vec::new();
        self.transaction.for_each(&pattern, &mut |quad| {
            links.push(quad);
            ControlFlow::Continue(())
        })?;
        links.retain(|quad| self.scope.contains(quad));
        if links.is_empty() {
            return Ok(None);
        }
        for quad in &links {
            self.transaction.remove(quad.as_ref())?;
        }
        self.suspect(target, (field, map), uri);
        Ok(Some(place))
    }

    /// Reports the map at this index of the object, which lost members, if it is required and has no other one.
    pub(super) fn check_members_left(
        &mut self,
        target: &WriteTarget<'_>,
        parent: &Shape,
        place: usize,
    ) -> Result<(), GatewayError> {
        let Some(field) = parent.fields.get(place) else { return Ok(()) };
        let Some(map) = field.property().filter(|map| map.required) else { return Ok(()) };
        let links = Pattern {
            subject: Some(target.subject.clone()),
            predicate: Some(map.predicate.clone()),
            ..Pattern::default()
        };
        let mut is_left = false;
        self.transaction.for_each(&links, &mut |quad| {
            let owner = find_owning_field(parent, quad.predicate.as_ref(), quad.object.as_ref());
            is_left = owner == Some(place);
            if is_left { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if !is_left {
            self.report_missing(target, field);
        }
        Ok(())
    }
}
