//! Places the violations of shapes in the request.
use super::Request;
use super::answer::Answer;
use super::findings::quote_excerpt;
use crate::mapping::{Entry, Shape};
use crate::protection::FoundViolation;
use crate::visible::VisibleObjects;
use crate::write_scope::WriteScope;
use oxrdf::{NamedNode, Term};
use penstock_base::error::{Finding, GatewayError};
use penstock_base::json::unescape_token;
use penstock_shapes::Violation;
use penstock_store::Transaction;
use std::collections::HashMap;

/// Where the request mentions each object for the last time.
pub(super) struct Places<'a> {
    by_uri: HashMap<&'a str, LastMention<'a>>,
    root: &'a Shape,
    request: &'a Request<'a>,
}

/// The last mention of an object.
struct LastMention<'a> {
    /// The index of the object of the request that it is in.
    index: usize,
    /// The JSON Pointer, if it is nested.
    pointer: Option<&'a str>,
    /// Whether several messages mention the object, so that not the last one may violate the shape.
    is_in_several_messages: bool,
}

/// A place in the request.
#[derive(Default)]
struct FoundPlace {
    /// The index of the object of the request, unless it is in several messages.
    index: Option<usize>,
    pointer: String,
    /// Whether it is a field.
    is_field: bool,
}

/// A violation, placed in the request.
pub(super) struct PlacedViolation {
    /// The index of the object of the request that has it; `None` if the violating object is not in the request, or in
    /// several messages of a source.
    pub(super) index: Option<usize>,
    /// What the answer says.
    pub(super) finding: Finding,
    /// Whether it prevents the commit.
    pub(super) is_refused: bool,
}

impl<'a> Places<'a> {
    /// Collects the mentions of the objects in `answer`. `message_of` returns the message of an object of the request.
    pub(super) fn new(
        answer: &'a Answer,
        root: &'a Shape,
        request: &'a Request<'a>,
        message_of: impl Fn(usize) -> Option<usize>,
    ) -> Self {
        let mut places = Self { by_uri: HashMap::new(), root, request };
        for object in &answer.objects {
            let nested = object.nested.iter();
            let nested = nested.map(|one| (one.uri.as_str(), Some(one.pointer.as_str())));
            for (uri, pointer) in std::iter::once((object.uri.as_str(), None)).chain(nested) {
                places.add(uri, object.index, pointer, &message_of);
            }
        }
        places
    }

    fn add(
        &mut self,
        uri: &'a str,
        index: usize,
        pointer: Option<&'a str>,
        message_of: impl Fn(usize) -> Option<usize>,
    ) {
        let is_in_several_messages = self.by_uri.get(uri).is_some_and(|earlier| {
            earlier.is_in_several_messages || message_of(earlier.index) != message_of(index)
        });
        self.by_uri.insert(uri, LastMention { index, pointer, is_in_several_messages });
    }

    /// Places a violation at the field of the request that has its value, or else at its object. A violation of a value that
    /// is no object of the request is at each field of the request that has it. There is none if the request has neither,
    /// and the violation existed before.
    pub(super) fn place(&self, found: &FoundViolation) -> Vec<PlacedViolation> {
        let FoundViolation { violation, is_old, holders, .. } = found;
        let mention = match &violation.focus_node {
            Term::NamedNode(node) => self.by_uri.get(node.as_str()),
            _ => None,
        };
        if let Some(mention) = mention {
            let place = self.find_place(mention, violation.predicate.as_ref());
            return vec![self.describe(found, Some(place))];
        }
        let holders = holders.iter().filter_map(|holder| {
            let mention = self.by_uri.get(holder.uri.as_str())?;
            // What the value has itself is no field of the request.
            let is_own = violation.path.is_none();
            let place = self.find_place(mention, Some(&holder.property));
            Some(FoundPlace { is_field: place.is_field && is_own, ..place })
        });
        let mut placed: Vec<_> = holders.map(|place| self.describe(found, Some(place))).collect();
        if placed.is_empty() && !is_old {
            placed.push(self.describe(found, None));
        }
        placed
    }

    fn find_place(&self, mention: &LastMention<'_>, predicate: Option<&NamedNode>) -> FoundPlace {
        let LastMention { index, pointer, is_in_several_messages } = mention;
        let object = pointer.map_or_else(|| format!("/data/{index}"), str::to_owned);
        let field = predicate
            .zip(find_shape(self.root, &object))
            .and_then(|(predicate, shape)| shape.find_field_of(predicate));
        let index = (!is_in_several_messages).then_some(*index);
        match field {
            Some(field) => FoundPlace { index, pointer: field.pointer_in(&object), is_field: true },
            None => FoundPlace { index, pointer: object, is_field: false },
        }
    }

    /// Returns a violation at a place, or at none.
    fn describe(&self, found: &FoundViolation, place: Option<FoundPlace>) -> PlacedViolation {
        let FoundViolation { violation, business_object, is_refused, .. } = found;
        let FoundPlace { index, pointer, is_field } = place.unwrap_or_default();
        // A field of the request is the client's own; other values need the right to read them.
        if !is_field && !self.request.may_see(business_object) {
            let message = "an object of another Business Object, which this credential is not for, would violate its shapes";
            let finding = Finding::at_pointer(pointer, message);
            return PlacedViolation { index, finding, is_refused: *is_refused };
        }
        let mut finding = Finding::at_pointer(
            pointer,
            describe(violation, business_object, self.request.languages),
        );
        finding.violation = Some(Box::new(violation.into()));
        finding.record_line = index.and_then(|index| self.request.body.record_line(index));
        PlacedViolation { index, finding, is_refused: *is_refused }
    }
}

/// Removes from violations what a credential with this write scope may not see.
pub(super) fn withhold_values(
    found: &mut [FoundViolation],
    transaction: &Transaction<'_>,
    scope: &WriteScope<'_>,
) -> Result<(), GatewayError> {
    let visible = VisibleObjects::with_scope(transaction, scope.clone());
    for FoundViolation { violation, holders, .. } in found {
        visible.withhold_values(violation, holders.iter().map(|holder| &holder.uri))?;
    }
    Ok(())
}

/// Returns the shape of the object at a pointer `/data/<index>/...`.
fn find_shape<'m>(root: &'m Shape, pointer: &str) -> Option<&'m Shape> {
    let (mut shape, mut level) = (root, root.level());
    let mut is_name = false;
    for token in pointer.split('/').skip(3) {
        if std::mem::take(&mut is_name) {
            // The name of a member of a map, whose value can be a map again.
            let value = shape.map_member().and_then(|map| map.value);
            if let Some((nested, _)) = value.and_then(|(_, value)| value.map()) {
                (shape, level, is_name) = (nested, nested.level(), true);
            }
            continue;
        }
        let entry = level.find(&unescape_token(token));
        if let Some(Entry::Group(inner)) = entry {
            level = inner;
        } else if let Some(Entry::Field(_, field)) = entry
            && let Some(nested) = field.shape()
        {
            (shape, level, is_name) = (nested, nested.level(), nested.map_member().is_some());
        } else if !token.bytes().all(|byte| byte.is_ascii_digit()) {
            // Digits are the index of an element.
            return None;
        }
    }
    Some(shape)
}

/// Says which value of which object violates what.
fn describe(violation: &Violation, business_object: &str, languages: &[String]) -> String {
    let focus = show(&violation.focus_node);
    let what = match (&violation.path, &violation.value) {
        (Some(path), Some(value)) => format!("{} as {path} of {focus}", show(value)),
        (Some(path), None) => format!("{path} of {focus}"),
        (None, Some(value)) if *value != violation.focus_node => {
            format!("{} of {focus}", show(value))
        }
        (None, _) => focus,
    };
    format!(
        "{what}: {} (shape {} of the Business Object {business_object:?})",
        violation.message(languages),
        violation.shape
    )
}

fn show(term: &Term) -> String {
    match term {
        Term::NamedNode(node) => node.as_str().to_owned(),
        Term::Literal(literal) => quote_excerpt(literal.value()),
        other => other.to_string(),
    }
}
