//! Writes objects over existing data: ADD, UPDATE, REPLACE and MERGE.
//!
//! An object's own quads, including its links, are written before its nested objects. Each object is read again before
//! it is written. So several mentions of one object in a request see each other, as if they were separate requests.
mod existing;
mod members;
mod ordered;
mod stored;

use super::Mode;
use super::codes::find_unlisted;
use super::convert::Converter;
use super::findings::MISSING_VALUE;
use super::node::{GivenField, GivenObject, GivenValue};
use super::repeats::Mention;
use super::request_writer::{ObjectName, RequestWriter};
use super::resolve::keep_stored_value;
use super::shown_term::{format_both, format_value};
use crate::list::ElementUris;
use crate::mapping::{self, Field, Form, Property, Shape};
use crate::view::find_owning_field;
use existing::Existing;
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, QuadRef, Term};
use penstock_base::error::GatewayError;
use penstock_base::json::Json;
use penstock_resources::ingestion::{IngestedObject, IngestedStatus, NestedObject};
use penstock_store::FastSet;
use std::collections::BTreeSet;
use stored::{find_conflict, find_linked_object, has_fewer_values, is_same_json, is_value};

/// The object whose own quads are being written.
struct WriteTarget<'t> {
    pointer: &'t str,
    name: &'t ObjectName,
    subject: NamedOrBlankNode,
    graph: &'t GraphName,
    /// Whether nothing was stored about it before.
    new: bool,
    /// Whether nothing is stored about it yet, not even by this request.
    is_empty: bool,
    /// Its shape, if it gets the defaults of the mapping, because it is created now.
    default_shape: Option<&'t Shape>,
}

/// What writing one object changed.
#[derive(Debug, Clone, Copy)]
struct ObjectChange {
    /// Whether nothing was stored about it before.
    new: bool,
    /// Whether a quad about it or about an object nested in it was added or removed.
    changed: bool,
}

impl<'m> RequestWriter<'_, '_, 'm> {
    /// Writes one object of the request. Returns `None` if the object has an error.
    pub(super) fn write_root(
        &mut self,
        index: usize,
        node: GivenObject<'m>,
    ) -> Result<Option<IngestedObject>, GatewayError> {
        let before = self.findings.count();
        self.nested.clear();
        if node.uri.is_none() && node.shape.key_fields().is_none() {
            let missing = match self.mode {
                Mode::Update => "the uri is missing; UPDATE changes only existing objects",
                Mode::Merge => {
                    "the uri is missing, and the mapping has no key that identifies the object; send the uri, or add a \
                     `key` to the mapping"
                }
                _ => "",
            };
            if !missing.is_empty() {
                self.findings.add_invalid(&node.pointer, missing);
                return Ok(None);
            }
        }
        let Some(name) = self.resolve_name(&node, None, None)? else { return Ok(None) };
        self.check_condition(node.shape, &name.uri)?;
        let change = self.write_object(node, &name, true)?;
        if self.findings.count() > before {
            return Ok(None);
        }
        let status = match change {
            ObjectChange { new: true, .. } => IngestedStatus::Created,
            ObjectChange { changed: true, .. } => IngestedStatus::Updated,
            ObjectChange { .. } => IngestedStatus::Unchanged,
        };
        let uri = name.uri.into_string();
        Ok(Some(IngestedObject { index, uri, status, nested: std::mem::take(&mut self.nested) }))
    }

    fn write_object(
        &mut self,
        node: GivenObject<'m>,
        name: &ObjectName,
        root: bool,
    ) -> Result<ObjectChange, GatewayError> {
        let subject: NamedOrBlankNode = name.uri.clone().into();
        if !root {
            // The object that it is nested in is rejected anyway.
            if self.findings.is_full() {
                return Ok(ObjectChange { new: false, changed: false });
            }
            self.nested.push(NestedObject {
                pointer: node.pointer.clone(),
                uri: name.uri.as_str().to_owned(),
            });
            // A member of a map gets its key even so.
            if node.is_reference() && node.given.is_empty() {
                return Ok(ObjectChange { new: false, changed: false });
            }
        }
        let is_reference = !root && node.is_reference();
        let (existing, is_empty) = match self.read_existing(&node, name)? {
            Ok(Existing { quads, is_empty }) => (quads, is_empty),
            Err(why) => {
                self.findings.add_invalid(&node.pointer, why);
                return Ok(ObjectChange { new: false, changed: false });
            }
        };
        let mut new = is_empty;
        // The view shows a reference as an object without a value, so that gets no defaults.
        let is_bare = is_empty && node.uri.is_some() && !node.has_values();
        let gets_defaults = is_empty && !is_bare && self.mode != Mode::Update;
        let default_shape = gets_defaults.then_some(node.shape);
        if root {
            new |= self.created_nested.remove(&name.uri);
        } else if new && !name.minted {
            self.created_nested.insert(name.uri.clone());
        }
        if root && !self.accepts_root(&node, new) {
            return Ok(ObjectChange { new, changed: false });
        }
        let shape = node.shape;
        let (_, graph) = self.namespaces.namespace_of(shape);
        let pointer = &node.pointer;
        let target = WriteTarget { pointer, name, subject, graph, new, is_empty, default_shape };
        let owner =
            |quad: &Quad| find_owning_field(shape, quad.predicate.as_ref(), quad.object.as_ref());
        let owned: Vec<(usize, Quad)> =
            existing.into_iter().filter_map(|quad| Some((owner(&quad)?, quad))).collect();
        let mut children = Vec::new();
        let (mut changed, mut lacks_values) = (false, false);
        let mut given = node.given.into_iter().peekable();
        for (place, field, property) in shape.iter_properties() {
            let mut given = given.next_if(|given| given.field_index == place);
            if is_reference && given.is_none() || is_bare && property.default_value().is_some() {
                continue;
            }
            let current: Vec<&Quad> =
                owned.iter().filter(|(owner, _)| *owner == place).map(|(_, quad)| quad).collect();
            if shape.key_fields().is_some_and(|key| key.indexes.contains(&place))
                && let Some(given) = &mut given
                && let Err(stored) = keep_stored_value(property, &mut given.values, &current)
            {
                let message = format!(
                    "the value {} is part of the key of {} and cannot be changed; delete the object and create another one",
                    format_value(&stored),
                    name.uri.as_str()
                );
                self.findings.add_invalid(&field.pointer_in(&node.pointer), message);
                continue;
            }
            lacks_values |= name.is_fixed && has_fewer_values(property, given.as_ref(), &current);
            changed |=
                self.write_field(&target, (field, property), given, &current, &mut children)?;
        }
        let mut changed_types = false;
        for rdf_type in shape.types.iter().filter(|_| !is_reference) {
            changed_types |= self.transaction.insert(QuadRef::new(
                target.subject.as_ref(),
                rdf::TYPE,
                rdf_type.as_ref(),
                graph.as_ref(),
            ))?;
        }
        let mut emptied = BTreeSet::new();
        for (child, name) in children {
            let value = child.find_partial_value();
            let child_shape = child.shape;
            changed |= self.write_object(child, &name, false)?.changed;
            if let Some(value) = value {
                let map = self.unlink_emptied(&target, shape, (child_shape, value), &name.uri)?;
                changed |= map.is_some();
                emptied.extend(map);
            }
        }
        for map in emptied {
            self.check_members_left(&target, shape, map)?;
        }
        if name.is_fixed && (changed || lacks_values) {
            let message = format!(
                "an ordered array is one value, and its element {} has other values already; use UPDATE or MERGE to change \
                 the array",
                name.uri.as_str()
            );
            self.findings.add_conflict(&node.pointer, message);
        }
        Ok(ObjectChange { new, changed: changed || changed_types })
    }

    /// Checks whether the mode accepts this object of the request.
    fn accepts_root(&mut self, node: &GivenObject<'m>, new: bool) -> bool {
        let wrong = match self.mode {
            Mode::Update if new && node.uri.is_none() => {
                "no object has this key, and UPDATE changes only existing ones; ADD, REPLACE and MERGE create objects"
            }
            Mode::Update if new => {
                "no object with this uri exists, and UPDATE changes only existing ones; ADD, REPLACE and MERGE create objects"
            }
            Mode::Replace if !node.has_values() => {
                "the object has no value, so there is nothing to store; DELETE removes objects"
            }
            Mode::Add | Mode::Merge | Mode::Validate if new && !node.has_values() => {
                "the object has no value, so there is nothing to store"
            }
            _ => return true,
        };
        self.findings.add_invalid(&node.pointer, wrong);
        false
    }

    /// Writes the quads of one field. `current` are its stored quads. Adds the nested objects to `children`, which the
    /// caller writes later. Returns true if a quad changed.
    fn write_field(
        &mut self,
        target: &WriteTarget<'_>,
        (field, property): (&Field, &'m Property),
        mut given: Option<GivenField<'m>>,
        current: &[&Quad],
        children: &mut Vec<(GivenObject<'m>, ObjectName)>,
    ) -> Result<bool, GatewayError> {
        let default = match (target.default_shape, property.default_value()) {
            (Some(shape), Some(default))
                if given.as_ref().is_none_or(|given| given.values.is_empty()) =>
            {
                self.convert_default(target, shape, property, default)
            }
            _ => None,
        };
        if let Some(given) = &mut given {
            self.find_removed_members(given, target)?;
        }
        let mention = self.check_mention(target, field, property, given.as_ref());
        // An equal mention that created the object has written the default already.
        if mention != Mention::Same || property.default_value().is_none() {
            let given = default.as_ref().or(given.as_ref());
            self.check_required(target, field, property, given, current);
        }
        if mention == Mention::Different {
            return Ok(false);
        }
        let Some(given) = default
            .or(given)
            .or_else(|| (self.mode == Mode::Replace).then(|| GivenField::new(0, Vec::new())))
        else {
            return Ok(false);
        };
        if property.is_ordered {
            let given = (given.values, mention);
            return self.write_ordered(target, (field, property), given, current, children);
        }
        let mut has_unlinked = false;
        let replaced: Vec<&Quad>;
        let current = if given.keeps_others() {
            replaced = current.iter().filter(|quad| !given.keeps(&quad.object)).copied().collect();
            replaced.as_slice()
        } else if mention != Mention::Same
            && !given.values.is_empty()
            && matches!(self.mode, Mode::Update | Mode::Replace)
            && let Some((shape, _)) = property.map()
        {
            let hidden;
            (hidden, replaced) = self.split_members(shape, current)?;
            has_unlinked = self.replace_values(target, field, property, &hidden, &[])?;
            replaced.as_slice()
        } else {
            current
        };
        let mut wanted = Vec::with_capacity(given.values.len());
        for value in given.values {
            match value {
                GivenValue::Term(term) => {
                    wanted.push(term);
                }
                // An earlier, equal mention has minted its URI already.
                GivenValue::Object(node) if mention == Mention::Same && node.uri.is_none() => {}
                GivenValue::Object(node) => {
                    let found = if property.is_array { None } else { find_linked_object(current) };
                    if let Some(name) = self.resolve_name(&node, found, Some(target.name))? {
                        wanted.push(name.uri.clone().into());
                        children.push((node, name));
                    }
                }
            }
        }
        if mention == Mention::Same {
            return Ok(false);
        }
        if let Some(codes) = &property.codes {
            let stored = current.iter().map(|quad| &quad.object);
            if let Some(message) = find_unlisted(codes, &property.value, &wanted, stored) {
                self.findings.add_invalid(&field.pointer_in(target.pointer), message);
                return Ok(false);
            }
        }
        if matches!(self.mode, Mode::Replace | Mode::Update | Mode::Merge) {
            let has_replaced = self.replace_values(target, field, property, current, &wanted)?;
            return Ok(has_replaced || has_unlinked);
        }
        if property.value.kind().form == Form::Json {
            let is_stored =
                |term: &Term| current.iter().any(|quad| is_same_json(&quad.object, term));
            wanted.retain(|term| !is_stored(term));
        }
        if let Some((stored, term)) = find_conflict(property, current, &wanted) {
            let pointer = field.pointer_in(target.pointer);
            let (has, given) = format_both(stored, term);
            let holds = match property.value.language_map() {
                Some(_) => "one text in each language",
                None => "one value",
            };
            let message = format!(
                "the field holds {holds}, and {} already has {has}, not {given}; use UPDATE or MERGE to change it",
                target.name.uri.as_str(),
            );
            self.findings.add_conflict(&pointer, message);
            return Ok(false);
        }
        self.insert_terms(target, property, &wanted)
    }

    /// Records that a nested object lost its link from a field. UPDATE removes only what the field owns: the members of a map, and
    /// the elements of an ordered array that got their URI from their place.
    fn suspect(
        &mut self,
        target: &WriteTarget<'_>,
        (field, property): (&Field, &'m Property),
        uri: &NamedNode,
    ) {
        let mapping::Value::Object(shape) = &property.value else { return };
        let can_orphan = match self.mode {
            Mode::Replace | Mode::Merge => true,
            Mode::Update if property.is_ordered => {
                let prefix = self.namespaces.namespace_of(shape).0.identifier_prefix();
                ElementUris::contain(&prefix, uri)
            }
            Mode::Update => property.map().is_some(),
            Mode::Add | Mode::Validate | Mode::Delete => false,
        };
        if !can_orphan {
            return;
        }
        self.orphans.suspect(uri.clone(), shape);
        if self.mode == Mode::Merge {
            let link = Quad::new(
                target.subject.clone(),
                property.predicate.clone(),
                uri.clone(),
                target.graph.clone(),
            );
            self.unlinked.push((field.pointer_in(target.pointer), link));
        }
    }

    /// Converts the default of a field.
    fn convert_default(
        &mut self,
        target: &WriteTarget<'_>,
        shape: &Shape,
        property: &'m Property,
        default: &Json,
    ) -> Option<GivenField<'m>> {
        let (place, field, _) =
            shape.iter_properties().find(|(_, _, other)| std::ptr::eq(*other, property))?;
        let mut converter = Converter {
            findings: &mut self.findings,
            warnings: &mut self.warnings,
            ignored_fields: self.ignored_fields.as_mut(),
            null_clears: false,
            pointer: field.pointer_in(target.pointer),
        };
        converter.convert_given(shape, (place, property), default.clone())
    }

    fn insert_terms(
        &mut self,
        target: &WriteTarget<'_>,
        property: &Property,
        wanted: &[Term],
    ) -> Result<bool, GatewayError> {
        let mut changed = false;
        for term in wanted {
            changed |= self.transaction.insert(QuadRef::new(
                target.subject.as_ref(),
                property.predicate.as_ref(),
                term.as_ref(),
                target.graph.as_ref(),
            ))?;
        }
        Ok(changed)
    }

    /// Replaces the current values by the wanted ones in all graphs of the write scope. Changes only the quads that
    /// differ.
    fn replace_values(
        &mut self,
        target: &WriteTarget<'_>,
        field: &Field,
        property: &'m Property,
        current: &[&Quad],
        wanted: &[Term],
    ) -> Result<bool, GatewayError> {
        let mut changed = false;
        let kept: FastSet<&Term> = wanted.iter().collect();
        for quad in current {
            if quad.graph_name == *target.graph && kept.contains(&quad.object) {
                continue;
            }
            if !self.scope.contains(quad) {
                if !kept.contains(&quad.object) {
                    self.warn_that_value_stays(&field.pointer_in(target.pointer), &quad.object);
                }
                continue;
            }
            changed |= self.transaction.remove(quad.as_ref())?;
            if let Term::NamedNode(uri) = &quad.object {
                self.suspect(target, (field, property), uri);
            }
        }
        Ok(self.insert_terms(target, property, wanted)? || changed)
    }

    fn warn_that_value_stays(&mut self, pointer: &str, value: &Term) {
        let message = format!(
            "the value {} stays, because this API key cannot change data outside the graphs of its namespaces",
            format_value(value)
        );
        self.warnings.push(pointer, message);
    }

    fn check_required(
        &mut self,
        target: &WriteTarget<'_>,
        field: &Field,
        property: &Property,
        given: Option<&GivenField<'_>>,
        current: &[&Quad],
    ) {
        if !property.required || given.is_some_and(|given| !given.values.is_empty()) {
            return;
        }
        let mut stored = current.iter().filter(|quad| is_value(property, &quad.object));
        let lacking = match self.mode {
            Mode::Update | Mode::Merge => {
                given.map_or(target.new, |given| !stored.any(|quad| given.keeps(&quad.object)))
            }
            Mode::Replace => true,
            Mode::Add | Mode::Validate | Mode::Delete => stored.next().is_none(),
        };
        if lacking {
            self.report_missing(target, field);
        }
    }

    fn report_missing(&mut self, target: &WriteTarget<'_>, field: &Field) {
        let pointer = field.pointer_in(target.pointer);
        self.findings.add_invalid(&pointer, MISSING_VALUE);
    }

    /// Compares the field with an earlier mention of the same object in a REPLACE or UPDATE.
    fn check_mention(
        &mut self,
        target: &WriteTarget<'_>,
        field: &Field,
        property: &Property,
        given: Option<&GivenField<'_>>,
    ) -> Mention {
        let values = given.map(|given| given.values.as_slice());
        let values = match self.mode {
            Mode::Replace => Some(values.unwrap_or_default()),
            Mode::Update => values,
            Mode::Add | Mode::Merge | Mode::Validate | Mode::Delete => return Mention::First,
        };
        if target.name.minted {
            return Mention::First;
        }
        let mention = self.repeats.record_mention(&target.name.uri, property, values);
        if mention == Mention::Different {
            let message = format!(
                "the request gives {} twice with different values; give its values once, and only {{\"uri\": ...}} elsewhere",
                target.name.uri.as_str()
            );
            self.findings.add_invalid(&field.pointer_in(target.pointer), message);
        }
        mention
    }
}
