//! Reads what is stored about the objects that a request writes.
//!
//! An object can have very many quads, and a request can give it very many times. So the request reads all quads of such
//! an object once, and later only those that it needs. A language map needs all of its texts each time, so the number of quads
//! that are read again is limited.
use super::stored::is_value;
use crate::ingest::Mode;
use crate::ingest::node::{GivenField, GivenObject};
use crate::ingest::request_writer::{ObjectName, RequestWriter};
use crate::mapping::Property;
use crate::view::find_owning_field;
use oxrdf::{NamedNode, NamedOrBlankNode, Quad};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{Pattern, Read as _};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The maximum number of quads about an object that are all read again each time that the request gives it.
const MAX_QUADS_READ_AGAIN: usize = 100;
/// The maximum number of quads about larger objects that one request reads again. Other commits wait meanwhile: about a second
/// on a server, and some seconds on a small machine.
const MAX_ALL_READ_AGAIN: usize = if cfg!(test) { 20_000 } else { 2_000_000 };

/// What is stored about an object.
#[derive(Debug)]
pub(super) struct Existing {
    /// Its quads, or only those that writing the given fields needs, ordered as those of `quads_about`.
    pub(super) quads: Vec<Quad>,
    /// Whether nothing is stored about it.
    pub(super) is_empty: bool,
}

/// Which stored values of a field are needed to write it.
#[derive(Debug, Clone, Copy)]
enum Needed {
    Nothing,
    /// Whether there is one.
    One,
    All,
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
        // What was removed may be back, if the object that removed it is rejected.
        if let Some(why) = self.refused_objects.get(&name.uri) {
            return Ok(Err(why.clone()));
        }
        let quads = self.transaction.quads_about(&subject)?;
        if let Some(why) = self.scope.refusal_reason(self.transaction, &name.uri, &quads)? {
            if quads.len() > MAX_QUADS_READ_AGAIN {
                self.refused_objects.insert(name.uri.clone(), why.clone());
            }
            return Ok(Err(why));
        }
        if quads.len() > MAX_QUADS_READ_AGAIN {
            self.read_objects.insert(name.uri.clone());
        }
        Ok(Ok(Existing { is_empty: quads.is_empty(), quads }))
    }

    /// Counts quads about an object that are read again.
    ///
    /// # Errors
    /// `ErrorClass::TooLarge` if they are too many. So a source sends fewer messages at once: what becomes of one must not
    /// depend on the others.
    fn count_read_again(&mut self, uri: &NamedNode, quads: usize) -> Result<(), GatewayError> {
        self.read_again = self.read_again.saturating_add(quads);
        if self.read_again <= MAX_ALL_READ_AGAIN {
            return Ok(());
        }
        let message = format!(
            "the request gives objects that have many values again and again, such as {}: it would have to read more \
             than {MAX_ALL_READ_AGAIN} stored values another time; give each object once, or send less at once",
            uri.as_str()
        );
        Err(GatewayError::new(ErrorClass::TooLarge, message))
    }

    /// Reads the quads that writing the given fields of an object needs.
    ///
    /// # Errors
    /// Those of [`Self::count_read_again`].
    fn read_needed(
        &mut self,
        node: &GivenObject<'_>,
        name: &ObjectName,
        subject: &NamedOrBlankNode,
    ) -> Result<Vec<Quad>, GatewayError> {
        let mut predicates: BTreeSet<&NamedNode> = BTreeSet::new();
        let mut with_one = Vec::new();
        for (place, _, property) in node.shape.iter_properties() {
            let given = node.given.iter().find(|given| given.field_index == place);
            let is_key = node.shape.key_fields().is_some_and(|key| key.indexes.contains(&place));
            let needed = if is_key && given.is_some() {
                Needed::All
            } else {
                self.find_needed(name, property, given)
            };
            match needed {
                Needed::Nothing => {}
                Needed::One => with_one.push((place, &property.predicate)),
                Needed::All => {
                    predicates.insert(&property.predicate);
                }
            }
        }
        let pattern_of = |predicate: &NamedNode| Pattern {
            subject: Some(subject.clone()),
            predicate: Some(predicate.clone()),
            ..Pattern::default()
        };
        let mut quads = Vec::new();
        for predicate in &predicates {
            quads.extend(self.transaction.matching_quads(&pattern_of(predicate))?);
        }
        let mut count = quads.len();
        with_one.retain(|(_, predicate)| !predicates.contains(predicate));
        for (place, predicate) in with_one {
            self.transaction.for_each(&pattern_of(predicate), &mut |quad| {
                // It may be a value of another field with this property.
                count += 1;
                let (shape, object) = (node.shape, quad.object.as_ref());
                let is_own = find_owning_field(shape, predicate.as_ref(), object) == Some(place)
                    && shape.property_at(place).is_some_and(|field| is_value(field, &quad.object));
                if is_own {
                    quads.push(quad);
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })?;
        }
        self.count_read_again(&name.uri, count)?;
        Ok(quads)
    }

    /// Returns which stored values of a field that is not in the key [`Self::write_field`] needs.
    fn find_needed(
        &self,
        name: &ObjectName,
        property: &Property,
        given: Option<&GivenField<'_>>,
    ) -> Needed {
        let all_if = |is_needed| if is_needed { Needed::All } else { Needed::Nothing };
        let one_if = |is_needed| if is_needed { Needed::One } else { Needed::Nothing };
        match self.mode {
            // Whether it has other values than those of the array.
            Mode::Add | Mode::Validate if name.is_fixed => Needed::All,
            Mode::Add | Mode::Validate => match given {
                Some(given) if !given.values.is_empty() => all_if(!adds_any_value(property)),
                _ => one_if(property.required),
            },
            Mode::Merge => match given {
                None => Needed::Nothing,
                Some(given) if given.removes_some() || !given.keeps_others() => Needed::All,
                Some(given) => one_if(property.required && !given.adds_some()),
            },
            // A second mention changes nothing.
            Mode::Update => {
                all_if(given.is_some() && !self.repeats.has_mention(&name.uri, property))
            }
            Mode::Replace => all_if(!self.repeats.has_mention(&name.uri, property)),
            Mode::Delete => Needed::Nothing,
        }
    }
}

/// Returns whether ADD adds values to those of a field, whatever they are.
fn adds_any_value(property: &Property) -> bool {
    let map = property.value.language_map();
    let holds_several = map.map_or(property.is_array, |map| map.has_arrays);
    holds_several && !property.is_ordered && property.codes.is_none()
}
