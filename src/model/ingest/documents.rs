//! Documents around the objects (`form=document`). They become a body of objects, each with what it takes from around it.
//! The ingestion continues with that body, so dead letters and changes under review need no document.

mod finder;
mod walk;

use super::places::DocumentPlaces;
use super::value_limit::{check_value_count, count_values, too_many_values_error};
use super::{BatchedMessage, Body, Limits, MessageBatch, Mode, Request};
use crate::mapping::Mapping;
use finder::ObjectFinder;
use penstock_base::error::GatewayError;
use penstock_base::json;
use penstock_resources::ingestion::BodyForm;

/// The objects of documents as a body.
#[derive(Debug)]
struct ExpandedBody {
    text: Vec<u8>,
    /// The lines of the documents of a stream, one for each object.
    line_numbers: Vec<u64>,
    /// The messages of a source, with their places in `text`.
    messages: Vec<BatchedMessage>,
    /// Where the objects are in what was sent.
    places: DocumentPlaces,
    /// The levels of JSON that `text` can have more than what was sent.
    added_levels: usize,
}

impl ExpandedBody {
    /// Finds the objects in the documents of a request; `None` if its body has no documents.
    ///
    /// # Errors
    /// - `ErrorClass::Malformed` if a JSON body cannot be read
    /// - `ErrorClass::TooLarge` past `service.limits.body`, `service.limits.objects` or `service.limits.values`
    fn of_request(request: &Request<'_>, limits: &Limits) -> Result<Option<Self>, GatewayError> {
        if request.form == BodyForm::Data {
            return Ok(None);
        }
        let mapping = &request.business_object.mapping;
        let mut finder = ObjectFinder::new(mapping, request.mode, limits);
        let mut messages = Vec::new();
        match request.body {
            Body::Json(text) => {
                let json = json::parse(text, limits.nesting)?;
                finder.taken_bytes = text.len() as u64;
                finder.text.extend_from_slice(b"{\"data\":[");
                finder.add_body(&json)?;
                finder.close(b"]}");
                check_value_count(&finder.text, limits.values)?;
            }
            Body::Lines { text, line_numbers, .. } => {
                finder.taken_bytes = text.len() as u64;
                finder.max_objects = usize::MAX;
                finder.separator = b'\n';
                finder.add_lines(text, line_numbers)?;
            }
            Body::Messages(batch) => messages = finder.add_messages(batch),
            Body::Records { .. } | Body::Object { .. } => return Ok(None),
        }
        let added_levels = match request.body {
            // A line that cannot be read must stay so, and the others are objects without anything around them.
            Body::Lines { .. } => 0,
            _ => finder.count_added_levels(),
        };
        let ObjectFinder { text, line_numbers, places, .. } = finder;
        Ok(Some(Self { text, line_numbers, messages, places, added_levels }))
    }

    /// Returns the limits of a request whose body is the objects. What was sent has been compared with the limits.
    fn limits(&self, sent: &Limits) -> Limits {
        Limits { nesting: sent.nesting.saturating_add(self.added_levels), ..*sent }
    }

    /// Returns the request with the objects as its body.
    fn to_request<'e>(&'e self, sent: &Request<'e>) -> Request<'e> {
        let text = &self.text;
        let body = match sent.body {
            Body::Lines { .. } => Body::Lines { text, first: 0, line_numbers: &self.line_numbers },
            Body::Messages(batch) => {
                Body::Messages(MessageBatch { text, messages: &self.messages, ..batch })
            }
            Body::Json(_) | Body::Records { .. } | Body::Object { .. } => Body::Json(text),
        };
        Request { body, ..*sent }
    }
}

/// Runs this with the objects of a request, whose documents become a body of objects, and with the places of the objects in
/// what was sent. It is for a transaction, so that only one request at a time has the objects of its documents in memory.
///
/// # Errors
/// Those of [`ExpandedBody::of_request`] and of `run`.
pub(super) fn with_objects<T>(
    sent: &Request<'_>,
    limits: &Limits,
    run: impl FnOnce(&Request<'_>, &Limits, Option<&DocumentPlaces>) -> Result<T, GatewayError>,
) -> Result<T, GatewayError> {
    match ExpandedBody::of_request(sent, limits)? {
        Some(expanded) => {
            run(&expanded.to_request(sent), &expanded.limits(limits), Some(&expanded.places))
        }
        None => run(sent, limits, None),
    }
}

/// Returns the bytes and the number of JSON values of the objects of a document, with what they take from around them. The
/// number is at most `service.limits.values` + 1. A document that cannot be read counts as it is.
///
/// # Errors
/// `ErrorClass::TooLarge` past `service.limits.body` or `service.limits.objects`.
pub fn measure_document(
    mapping: &Mapping,
    mode: Mode,
    payload: &[u8],
    limits: &Limits,
) -> Result<(u64, usize), GatewayError> {
    let mut finder = ObjectFinder::new(mapping, mode, limits);
    finder.taken_bytes = payload.len() as u64;
    let text = match json::parse(payload, limits.nesting) {
        Ok(json) => {
            finder.add_body(&json)?;
            finder.text.as_slice()
        }
        Err(_) => payload,
    };
    Ok((text.len() as u64, count_values(text, limits.values)))
}

impl ObjectFinder<'_> {
    /// Adds the objects of the document in each line. A line that cannot be read stays as it is, and is one object.
    fn add_lines(&mut self, text: &[u8], line_numbers: &[u64]) -> Result<(), GatewayError> {
        let mut numbers = line_numbers.iter();
        let mut values_left = self.limits.values;
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let number = numbers.next().copied();
            self.line = number;
            let start = self.text.len();
            if let Ok(json) = json::parse(line, self.limits.nesting) {
                self.add_body(&json)?;
            } else {
                self.text.extend_from_slice(line);
                self.text.push(b'\n');
                self.places.push(None);
            }
            self.line_numbers.resize(self.places.len(), number.unwrap_or_default());
            let added = self.text.get(start..).unwrap_or_default();
            values_left = values_left
                .checked_sub(count_values(added, values_left))
                .ok_or_else(|| self.name_line(too_many_values_error(self.limits.values)))?;
        }
        Ok(())
    }

    /// Adds the objects of the document in each message. A message that cannot be read, or is too large with what its objects
    /// take, stays as it is.
    fn add_messages(&mut self, batch: MessageBatch<'_>) -> Vec<BatchedMessage> {
        let add = |message: &BatchedMessage| {
            let payload = batch.text.get(message.range.clone()).unwrap_or_default();
            let (start, objects) = (self.text.len(), self.places.len());
            let mut message = message.clone();
            let json = match &message.error {
                None => json::parse(payload, self.limits.nesting),
                Some(error) => Err(error.clone()),
            };
            let json = json.map_err(|error| message.error = Some(error));
            let added = json.is_ok_and(|json| {
                self.text.push(b'[');
                self.taken_bytes = payload.len() as u64;
                self.max_objects = objects.saturating_add(self.limits.objects);
                let added = self.add_body(&json);
                let count = self.places.len() - objects;
                let added = added.and_then(|()| message.check_copies(count));
                self.close(b"]");
                message.error = added.err();
                message.error.is_none()
            });
            if !added {
                self.text.truncate(start);
                self.text.extend_from_slice(payload);
                self.places.truncate(objects);
                self.places.push(None);
            }
            message.range = start..self.text.len();
            self.text.push(b'\n');
            message
        };
        batch.messages.iter().map(add).collect()
    }
}
