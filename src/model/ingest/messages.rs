//! Messages of a source: one batch of them is one ingestion. Objects with errors are rejected, and their neighbours are
//! stored.
//!
//! A message has one object, an array of objects, or `{"data": [...]}`; or it is a document (`documents`). A message that
//! cannot be read is rejected as a whole.
use super::Limits;
use super::read_object::ReadObject;
use crate::csv::TextField;
use crate::dead_letters::MessageForm;
use crate::mapping::Mapping;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{self, Json, MessageObjects, join_pointer};
use std::collections::BTreeMap;
use std::ops::Range;

/// The maximum bytes of the copies of topics, and of the fields from them, in one batch. Each object may get one copy, as
/// a dead letter or as values of its own, so a small message with a long topic could take very much memory.
pub const MAX_TOPIC_COPIES_BYTES: usize = 4 << 20;

/// Messages of a source in their order.
#[derive(Debug, Clone, Copy)]
pub struct MessageBatch<'a> {
    /// The name of the source.
    pub source: &'a str,
    /// The payloads of all messages, each followed by a line break.
    pub text: &'a [u8],
    /// The messages, by their places in `text`.
    pub messages: &'a [BatchedMessage],
}

/// A message in a batch.
#[derive(Debug, Clone)]
pub struct BatchedMessage {
    /// Where its payload is in the text of the batch, in bytes.
    pub range: Range<usize>,
    /// The topic that it was published to.
    pub topic: String,
    /// The values of fields from the topic.
    pub fields: BTreeMap<String, String>,
    /// The length of the whole payload in bytes, if only its beginning is there.
    pub whole_bytes: Option<u64>,
    /// Why it is rejected without being read.
    pub error: Option<GatewayError>,
    /// The internal error because of which it is given up. Its objects are rejected although they may be valid, each for
    /// itself, so that each can be retried.
    pub internal_error: Option<GatewayError>,
}

impl MessageBatch<'_> {
    /// Passes each object of the messages to `each`.
    ///
    /// # Errors
    /// Returns the first error of `each`.
    pub(super) fn read_objects(
        &self,
        mapping: &Mapping,
        limits: &Limits,
        each: &mut dyn FnMut(ReadObject) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        let mut index = 0;
        for message in self.messages {
            let start = message.range.start;
            let text = self.text.get(message.range.clone()).unwrap_or_default();
            let mut pass = |range: Range<usize>, json: Result<Json, GatewayError>| {
                let json = json.and_then(|json| message.add_fields(mapping, index, json));
                let json = match &message.internal_error {
                    Some(error) => json.and_then(|_| Err(error.clone())),
                    None => json,
                };
                let range = start + range.start..start + range.end;
                each(ReadObject { index, line: None, range, json })?;
                index += 1;
                Ok::<_, GatewayError>(())
            };
            let objects = match &message.error {
                Some(error) => Err(error.clone()),
                None => {
                    json::parse_message(text, limits.nesting, limits.objects).and_then(|objects| {
                        if let MessageObjects::Several(ranges) = &objects {
                            message.check_copies(ranges.len())?;
                        }
                        Ok(objects)
                    })
                }
            };
            match objects {
                Err(error) => pass(0..text.len(), Err(error))?,
                Ok(MessageObjects::One(range, json)) => pass(range, Ok(json))?,
                Ok(MessageObjects::Several(ranges)) => {
                    for range in ranges {
                        let text = text.get(range.clone()).unwrap_or_default();
                        pass(range, json::parse(text, limits.nesting))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the fields from the topic to an object whose text begins at this place.
    ///
    /// # Errors
    /// As [`Self::read_objects`] passes them.
    pub(super) fn add_fields_at(
        &self,
        mapping: &Mapping,
        start: usize,
        json: Json,
    ) -> Result<Json, GatewayError> {
        match self.find_message(start) {
            Some(message) => message.add_fields(mapping, 0, json),
            None => Ok(json),
        }
    }

    /// Returns what a dead letter keeps of the message that has this place of the text.
    pub(super) fn describe_message(&self, start: usize) -> Option<MessageForm> {
        let message = self.find_message(start)?;
        Some(MessageForm {
            topic: message.topic.clone(),
            fields: message.fields.clone(),
            whole_bytes: message.whole_bytes,
        })
    }

    /// Returns whether the message that has this place of the text is given up because of an internal error. It must not be
    /// dropped.
    pub(super) fn must_keep(&self, start: usize) -> bool {
        self.find_message(start).is_some_and(|message| message.internal_error.is_some())
    }

    fn find_message(&self, start: usize) -> Option<&BatchedMessage> {
        self.messages.get(self.find_index(start)?)
    }

    /// Returns the index of the message that has this place of the text.
    pub(super) fn find_index(&self, start: usize) -> Option<usize> {
        self.messages.partition_point(|message| message.range.start <= start).checked_sub(1)
    }
}

impl BatchedMessage {
    /// Returns the bytes that each object of the message copies from its topic.
    pub fn copied_bytes(topic: &str, fields: &BTreeMap<String, String>) -> usize {
        topic.len() + fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
    }

    /// Checks that not too many objects of the message would copy its topic.
    pub(super) fn check_copies(&self, objects: usize) -> Result<(), GatewayError> {
        let copied = Self::copied_bytes(&self.topic, &self.fields);
        if copied.saturating_mul(objects) <= MAX_TOPIC_COPIES_BYTES {
            return Ok(());
        }
        Err(GatewayError::new(
            ErrorClass::TooLarge,
            format!(
                "the message has {objects} objects, and each copies {copied} bytes of its topic, together more than \
                 {MAX_TOPIC_COPIES_BYTES}; send fewer objects at once, or use a shorter topic"
            ),
        ))
    }

    fn add_fields(
        &self,
        mapping: &Mapping,
        index: usize,
        json: Json,
    ) -> Result<Json, GatewayError> {
        let Json::Object(mut members) = json else { return Ok(json) };
        let mut findings = Vec::new();
        for (name, text) in &self.fields {
            let added = TextField::find(mapping, name)
                .map(|field| field.add_to(&mut members, text))
                .and_then(|is_added| {
                    is_added.then_some(()).ok_or_else(|| {
                        format!("the field {name:?} is in the payload and in the topic; send it in one of them")
                    })
                });
            if let Err(message) = added {
                let pointer = join_pointer(&format!("/data/{index}"), name);
                findings.push(Finding::at_pointer(pointer, message));
            }
        }
        let has_id =
            members.iter().any(|(name, value)| mapping.root.is_id(name) && *value != Json::Null);
        if !has_id && mapping.root.key_fields().is_none() {
            let message = "the object has no uri, and the mapping has no key, so a message that is delivered again would be \
                           stored twice; send the uri, or define a key";
            findings.push(Finding::at_pointer(format!("/data/{index}"), message));
        }
        match findings.first() {
            None => Ok(Json::Object(members)),
            Some(first) => {
                let detail = first.message.clone();
                Err(GatewayError::with_findings(ErrorClass::Invalid, detail, findings))
            }
        }
    }
}

/// Adds the fields from a topic that an object does not have.
///
/// # Errors
/// `ErrorClass::Invalid` if a field holds objects.
pub(super) fn add_missing_fields(
    mapping: &Mapping,
    fields: &BTreeMap<String, String>,
    json: Json,
) -> Result<Json, GatewayError> {
    let Json::Object(mut members) = json else { return Ok(json) };
    for (name, text) in fields {
        let field = TextField::find(mapping, name)
            .map_err(|message| GatewayError::new(ErrorClass::Invalid, message))?;
        // The sender of a corrected object decides about its values.
        field.add_to(&mut members, text);
    }
    Ok(Json::Object(members))
}
