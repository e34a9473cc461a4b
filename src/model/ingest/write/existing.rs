//! Reads what is stored about the objects that a request writes.
//!
//! An object can have very many quads, and a request can give it very many times. So the request reads all quads of such
//! an object once, and later only those that it needs.
use super::{ObjectName, RequestWriter};
use crate::ingest::Mode;
use crate::ingest::node::{GivenField, GivenObject};
use crate::mapping::Property;
use oxrdf::{NamedNode, NamedOrBlankNode, Quad};
use penstock_base::error::GatewayError;
use penstock_store::{Error, Pattern, Read as _};
use std::collections::BTreeSet;

/// The maximum number of quads about an object that are all read again each time that the request gives it.
const MAX_QUADS_READ_AGAIN: usize = 100;

/// What is stored about an object.
#[derive(Debug)]
pub(super) struct Existing {
    /// Its quads, or only those that writing the given fields needs, ordered as those of `quads_about`.
    pub(super) quads: Vec<Quad>,
    /// Whether nothing is stored about it.
    pub(super) is_empty: bool,
}

impl RequestWriter<'_, '_, '_> {
    /// Reads what is stored about an object. The inner error is the reason why the request may not change it.
    pub(super) fn read_existing(
        &mut self,
        node: &GivenObject<'_>,
        name: &ObjectName,
    ) -> Result<Result<Existing, String>, GatewayError> {
        if name.minted {
            return Ok(Ok(Existing { quads: Vec::new(), is_empty: true }));
        }
        let subject = NamedOrBlankNode::from(name.uri.clone());
        // The request may change it, and adds no quad that makes it foreign. But it may have removed what made it its own.
        if self.read_objects.contains(&name.uri)
            && self.scope.has_part_of(self.transaction, &name.uri)?
        {
            let quads = self.read_needed(node, name, &subject)?;
            let about = Pattern { subject: Some(subject), ..Pattern::default() };
            let is_empty = quads.is_empty() && !self.transaction.any(&about)?;
            return Ok(Ok(Existing { quads, is_empty }));
        }
        let quads = self.transaction.quads_about(&subject)?;
        if let Some(why) = self.scope.refusal_reason(self.transaction, &name.uri, &quads)? {
            return Ok(Err(why));
        }
        if quads.len() > MAX_QUADS_READ_AGAIN {
            self.read_objects.insert(name.uri.clone());
        }
        Ok(Ok(Existing { is_empty: quads.is_empty(), quads }))
    }

    /// Reads the quads that writing the given fields of an object needs.
    fn read_needed(
        &self,
        node: &GivenObject<'_>,
        name: &ObjectName,
        subject: &NamedOrBlankNode,
    ) -> Result<Vec<Quad>, Error> {
        let mut predicates: BTreeSet<&NamedNode> = BTreeSet::new();
        for (place, _, property) in node.shape.iter_properties() {
            let given = node.given.iter().find(|given| given.field_index == place);
            let is_key = node.shape.key_fields().is_some_and(|key| key.indexes.contains(&place));
            if is_key && given.is_some() || self.needs_stored(name, property, given) {
                predicates.insert(&property.predicate);
            }
        }
        let mut quads = Vec::new();
        for predicate in predicates {
            let pattern = Pattern {
                subject: Some(subject.clone()),
                predicate: Some(predicate.clone()),
                ..Pattern::default()
            };
            quads.extend(self.transaction.matching_quads(&pattern)?);
        }
        Ok(quads)
    }

    /// Returns whether [`Self::write_field`] needs the stored values of a field that is not in the key.
    fn needs_stored(
        &self,
        name: &ObjectName,
        property: &Property,
        given: Option<&GivenField<'_>>,
    ) -> bool {
        match self.mode {
            // Whether it has other values than those of the array.
            Mode::Add | Mode::Validate if name.is_fixed => true,
            Mode::Add | Mode::Validate => match given {
                Some(given) if !given.values.is_empty() => !adds_any_value(property),
                _ => property.required,
            },
            Mode::Merge => given.is_some_and(|given| {
                property.required || given.removes_some() || !given.keeps_others()
            }),
            // A second mention changes nothing.
            Mode::Update => given.is_some() && !self.repeats.has_mention(&name.uri, property),
            Mode::Replace => !self.repeats.has_mention(&name.uri, property),
            Mode::Delete => false,
        }
    }
}

/// Returns whether ADD adds values to those of a field, whatever they are.
fn adds_any_value(property: &Property) -> bool {
    let map = property.value.language_map();
    let holds_several = map.map_or(property.is_array, |map| map.has_arrays);
    holds_several && !property.is_ordered && property.codes.is_none()
}
