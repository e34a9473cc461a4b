//! Writes maps: their members are objects that their parent's key identifies.
use super::{RequestWriter, WriteTarget};
use crate::ingest::node::{GivenField, GivenValue, Partial};
use crate::mapping::{Property, Shape};
use crate::view::{find_owning_field, read_members};
use oxrdf::{NamedNode, NamedNodeRef, Quad, Term};
use penstock_base::error::GatewayError;
use penstock_store::{Pattern, Read as _};
use std::collections::{BTreeSet, HashSet};

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

    /// Unlinks a member of a map if a MERGE has removed everything in it. A required map needs another one.
    pub(super) fn unlink_emptied(
        &mut self,
        target: &WriteTarget<'_>,
        parent: &'m Shape,
        (shape, value): (&'m Shape, &Property),
        uri: &NamedNode,
    ) -> Result<bool, GatewayError> {
        let values = Pattern {
            subject: Some(uri.clone().into()),
            predicate: Some(value.predicate.clone()),
            ..Pattern::default()
        };
        if self.transaction.any(&values)? {
            return Ok(false);
        }
        let is_map =
            |map: &Property| map.value.shape().is_some_and(|members| std::ptr::eq(members, shape));
        let Some((place, field, map)) = parent.iter_properties().find(|(.., map)| is_map(map))
        else {
            return Ok(false);
        };
        let mut links = self.transaction.quads_about(&target.subject)?;
        links.retain(|quad| {
            quad.predicate == map.predicate
                && find_owning_field(parent, quad.predicate.as_ref(), quad.object.as_ref())
                    == Some(place)
        });
        let (links, others): (Vec<Quad>, Vec<Quad>) = links.into_iter().partition(|quad| {
            quad.object.as_ref() == uri.as_ref().into() && self.scope.contains(quad)
        });
        for quad in &links {
            self.transaction.remove(quad.as_ref())?;
        }
        self.suspect(target, (field, map), uri);
        if map.required && others.is_empty() {
            self.report_missing(target, field);
        }
        Ok(!links.is_empty())
    }
}
