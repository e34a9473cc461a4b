//! Finds the objects of a request that refer to rejected ones.
//!
//! A reference is only a link, so a reference to a rejected object would be stored and lead nowhere. Therefore an object
//! that refers to an object of the same request is rejected with it, unless the other one is stored already or another
//! accepted object gives it. This continues from object to object, also through cycles. Each message of a source counts
//! as a request, because what becomes of it must not depend on the messages that happen to be in its batch.
use super::answer::Warnings;
use super::convert::{Converter, IgnoredFields};
use super::derived_iris::DerivedIris;
use super::findings::Findings;
use super::mapping_namespaces::MappingNamespaces;
use super::node::{GivenField, GivenObject, GivenValue};
use super::objects::{ObjectReader, read_objects};
use super::rejections::{Rejection, Rejections};
use super::resolve::{find_key_uri, is_keyed_in_parent};
use super::{Limits, Mode, Request};
use crate::dead_letters::keep_error;
use crate::mapping::Shape;
use oxrdf::{NamedNode, Term};
use penstock_base::error::{Finding, GatewayError};
use penstock_base::json::Json;
use penstock_store::{Pattern, Read, Transaction};
use std::collections::HashMap;
use std::ops::Range;

/// The URIs that one object of the request mentions.
#[derive(Debug, Default)]
struct Mentions {
    /// The objects that it gives: itself and the nested ones with values, by their URIs or the URIs of their keys.
    given: Vec<NamedNode>,
    /// What it refers to, and where (JSON Pointer).
    referred: Vec<(NamedNode, String)>,
}

/// The objects that refer to one URI, by their message: the place of each in the list of accepted objects, and where it
/// refers to it (JSON Pointer).
type Referrers<'a> = HashMap<Option<usize>, Vec<(usize, &'a str)>>;

/// An accepted object, as long as nothing rejects it.
#[derive(Debug)]
struct Accepted {
    index: usize,
    line: Option<u64>,
    range: Range<usize>,
    mentions: Mentions,
}

/// Rejects the objects that refer to rejected ones, directly or through others.
pub(super) fn reject_dependents(
    transaction: &Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
    rejections: &mut Rejections,
) -> Result<(), GatewayError> {
    if request.mode == Mode::Delete {
        return Ok(());
    }
    let mapping = &request.business_object.mapping;
    let definitions = request.watch.current_definitions(transaction)?;
    let namespaces = &MappingNamespaces::read(transaction, mapping, &definitions)?;
    let mut missing = find_new(transaction, limits, request, rejections, namespaces)?;
    if missing.is_empty() {
        return Ok(());
    }
    let accepted = collect_accepted(limits, request, rejections, namespaces)?;
    let mut providers: HashMap<&NamedNode, usize> = HashMap::new();
    // By message: only objects of the same message are rejected.
    let mut referrers: HashMap<&NamedNode, Referrers<'_>> = HashMap::new();
    for (place, Accepted { mentions, range, .. }) in accepted.iter().enumerate() {
        let message = request.body.find_message(range.start);
        for uri in &mentions.given {
            *providers.entry(uri).or_default() += 1;
        }
        for (uri, pointer) in &mentions.referred {
            let by_message = referrers.entry(uri).or_default();
            by_message.entry(message).or_default().push((place, pointer));
        }
    }
    missing.retain(|(uri, ..)| !providers.contains_key(uri));
    while let Some((uri, index, message)) = missing.pop() {
        let own = referrers.get_mut(&uri).and_then(|by_message| by_message.remove(&message));
        for (place, pointer) in own.unwrap_or_default() {
            let Some(dependent) = accepted.get(place) else { continue };
            if rejections.contains(dependent.index) {
                continue;
            }
            let record_line = request.body.record_line(dependent.index);
            rejections.add(dependent.index, dependent.reject(pointer, &uri, index, record_line));
            for given in &dependent.mentions.given {
                let left = providers.entry(given).or_default();
                *left = left.saturating_sub(1);
                if *left == 0 && !is_stored(&transaction.prior_state(), given)? {
                    missing.push((given.clone(), dependent.index, message));
                }
            }
        }
    }
    Ok(())
}

impl Accepted {
    fn reject(
        &self,
        pointer: &str,
        uri: &NamedNode,
        index: usize,
        record_line: Option<u64>,
    ) -> Rejection {
        let message = format!(
            "{} is not stored, because object {index} of the request, which gives it, was rejected",
            uri.as_str()
        );
        let finding = Finding { record_line, ..Finding::at_pointer(pointer, message) };
        let errors = vec![keep_error(finding)];
        Rejection { line: self.line, range: self.range.clone(), errors }
    }
}

/// Returns the URIs that rejected objects give and that were not stored before the request, each with the index of such
/// an object, and the message that has it.
fn find_new(
    transaction: &Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
    rejections: &Rejections,
    namespaces: &MappingNamespaces,
) -> Result<Vec<(NamedNode, usize, Option<usize>)>, GatewayError> {
    let reader = ObjectReader::new(request, limits)?;
    let root = &request.business_object.mapping.root;
    let mut mentions = MentionReader::new(limits, root, namespaces);
    let mut new = Vec::new();
    for (index, rejection) in rejections.iter() {
        let Ok(json) = reader.read(rejection.range.clone()) else { continue };
        let message = request.body.find_message(rejection.range.start);
        for uri in mentions.read(index, json).given {
            if !is_stored(&transaction.prior_state(), &uri)? {
                new.push((uri, index, message));
            }
        }
    }
    Ok(new)
}

fn is_stored(read: &dyn Read, uri: &NamedNode) -> Result<bool, GatewayError> {
    let about = Pattern { subject: Some(uri.clone().into()), ..Pattern::default() };
    Ok(read.any(&about)?)
}

/// Collects what the accepted objects of the request mention.
fn collect_accepted(
    limits: &Limits,
    request: &Request<'_>,
    rejections: &Rejections,
    namespaces: &MappingNamespaces,
) -> Result<Vec<Accepted>, GatewayError> {
    let mut accepted = Vec::new();
    let root = &request.business_object.mapping.root;
    let mut reader = MentionReader::new(limits, root, namespaces);
    read_objects(request, limits, &mut |object| {
        if let Ok(json) = object.json
            && !rejections.contains(object.index)
        {
            let mentions = reader.read(object.index, json);
            let (index, line, range) = (object.index, object.line, object.range);
            accepted.push(Accepted { index, line, range, mentions });
        }
        Ok(())
    })?;
    Ok(accepted)
}

/// Reads the URIs that objects of a request mention.
struct MentionReader<'r> {
    shape: &'r Shape,
    namespaces: &'r MappingNamespaces,
    derived_iris: DerivedIris,
}

impl<'r> MentionReader<'r> {
    fn new(limits: &Limits, shape: &'r Shape, namespaces: &'r MappingNamespaces) -> Self {
        Self { shape, namespaces, derived_iris: DerivedIris::new(limits.values) }
    }

    /// Reads what the object with this index mentions.
    fn read(&mut self, index: usize, json: Json) -> Mentions {
        let mut converter = Converter {
            findings: &mut Findings::default(),
            warnings: &mut Warnings::default(),
            ignored_fields: Some(&mut IgnoredFields::default()),
            null_clears: false,
            pointer: format!("/data/{index}"),
        };
        let mut mentions = Mentions::default();
        if let Some(node) = converter.convert_object(self.shape, json) {
            self.add_object(&node, None, &mut mentions);
        }
        mentions
    }

    /// Adds what an object and the objects nested in it mention. Returns false at an object whose URI is past the limit:
    /// the object of the request is rejected, and the rest of it is not read.
    fn add_object(
        &mut self,
        node: &GivenObject<'_>,
        parent: Option<&NamedNode>,
        mentions: &mut Mentions,
    ) -> bool {
        let by_key =
            || find_key_uri(self.namespaces, node, parent.map(NamedNode::as_ref)).ok().flatten();
        let uri = node.uri.clone().or_else(by_key);
        let is_derived = node.uri.is_none() && is_keyed_in_parent(node.shape);
        let derived = uri.as_ref().filter(|_| is_derived).map_or(0, |uri| uri.as_str().len());
        if self.derived_iris.add(derived).is_err() {
            return false;
        }
        mentions.given.extend(uri.clone());
        for GivenField { field_index, values, .. } in &node.given {
            for value in values {
                match value {
                    GivenValue::Object(nested) if nested.is_reference() => {
                        let uri = nested.uri.clone();
                        mentions.referred.extend(uri.map(|uri| (uri, nested.pointer.clone())));
                    }
                    GivenValue::Object(nested) => {
                        if !self.add_object(nested, uri.as_ref(), mentions) {
                            return false;
                        }
                    }
                    GivenValue::Term(Term::NamedNode(uri)) => {
                        let field = node.shape.fields.get(*field_index);
                        let pointer = field.map_or_else(
                            || node.pointer.clone(),
                            |field| field.pointer_in(&node.pointer),
                        );
                        mentions.referred.push((uri.clone(), pointer));
                    }
                    GivenValue::Term(_) => {}
                }
            }
        }
        true
    }
}
