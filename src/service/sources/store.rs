//! Stores messages: a batch is one commit and one ingestion record.
use super::require_source;
use crate::gateway::Gateway;
use crate::ingestions::{IngestionRequest, ingest_objects};
use parking_lot::MutexGuard;
use penstock_auth::Authorized;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::telemetry::trace::Trace;
use penstock_base::topic::Template;
use penstock_config::Source;
use penstock_model::ingest::{
    Answer, BatchedMessage, Body, BodyForm, MAX_TOPIC_COPIES_BYTES, MessageBatch, Mode, OnError,
    count_values, measure_document, parse_mode,
};
use penstock_model::messages::Message;
use penstock_model::resource::Compiled;
use penstock_resources::business_object::Review;
use penstock_resources::gateway::MemoryLevel;
use penstock_store::Error;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What became of messages. They are durable, as objects or as dead letters, so they are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stored {
    /// The number of messages, from the first one. The next one could not be stored, unless these are all.
    pub messages: usize,
    /// The number of objects that were stored.
    pub objects: u64,
    /// The number of objects and messages that became dead letters.
    pub dead_letters: u64,
    /// The number of objects and messages that are invalid and could not be kept (`service.limits.rejected.bytes`).
    pub dropped: u64,
}

/// Why messages are not stored. The source keeps them and retries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStored {
    /// The kind of the reason.
    pub code: NotStoredCode,
    /// The reason, as a sentence without its end.
    pub message: String,
}

/// The kind of the reason why messages are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotStoredCode {
    /// The gateway is busy, recovers from a failed disk, or shuts down.
    Unavailable,
    /// The disk is full up to its reserve.
    DiskFull,
    /// The Business Object is not defined.
    NotDefined,
    /// The Business Object is disabled, or being deleted.
    Disabled,
    /// The account of the source is disabled.
    Revoked,
    /// The Business Object requires a review. The source does not connect for it.
    ReviewRequired,
    /// An error within the gateway.
    Internal,
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NotStored {}

impl From<GatewayError> for NotStored {
    fn from(error: GatewayError) -> Self {
        let code = match error.class {
            ErrorClass::Unauthorized | ErrorClass::Forbidden => NotStoredCode::Revoked,
            ErrorClass::NotFound => NotStoredCode::NotDefined,
            ErrorClass::InsufficientStorage => NotStoredCode::DiskFull,
            ErrorClass::Internal | ErrorClass::Damaged => NotStoredCode::Internal,
            _ => NotStoredCode::Unavailable,
        };
        Self { code, message: error.detail }
    }
}

/// The maximum payload that is stored at once while memory is short.
const MAX_BYTES_WHEN_MEMORY_SHORT: usize = 1 << 20;

/// The number of attempts to store messages after which the one at fault for an internal error is given up: its objects
/// become dead letters. The delays between attempts grow, so a cause that passes soon does no harm.
pub(super) const MAX_INTERNAL_ATTEMPTS: u32 = 10;

/// Stores messages of a source for one Business Object, in their order: all of them, or only the first ones if the next
/// one cannot be stored. Returns once they are synced to disk. Blocking.
///
/// # Errors
/// Nothing was stored.
pub fn store_messages(
    gateway: &Arc<Gateway>,
    source: &str,
    business_object: &str,
    messages: &[Message],
) -> Result<Stored, NotStored> {
    let settings = require_source(gateway, source)?;
    let compiled = find_ready(gateway, business_object)?;
    let bytes = messages.iter().map(|message| message.payload.len()).sum();
    let _permit = check_memory(gateway, bytes)?;
    let by = authorize(gateway, source, settings)?;
    let mut failures = 0;
    gateway.sources.update(source, business_object, |state| failures = state.internal_failures);
    let is_last_attempt = failures.saturating_add(1) >= MAX_INTERNAL_ATTEMPTS;
    let mut storing = Storing { gateway, source, compiled, by, is_last_attempt };
    let templates = Templates::parse(settings);
    let messages: Vec<Prepared<'_>> =
        messages.iter().map(|message| storing.prepare(message, settings, &templates)).collect();
    let mut stored = Stored::default();
    let mut batches = storing.split(&messages).into_iter();
    let ended = batches.try_for_each(|batch| -> Result<(), NotStored> {
        storing.store(batch, &mut stored)?;
        // All attempts before failed at the first batch.
        storing.is_last_attempt = false;
        Ok(())
    });
    let is_internal = ended.as_ref().is_err_and(|error| error.code == NotStoredCode::Internal)
        && is_store_writable(gateway);
    gateway.sources.update(source, business_object, |state| {
        if stored.messages > 0 {
            state.internal_failures = 0;
        } else if is_internal {
            state.internal_failures = failures.saturating_add(1);
        }
    });
    match ended {
        Err(error) if stored.messages == 0 => Err(error),
        // The source gets the error when it sends the rest again.
        _ => Ok(stored),
    }
}

/// Checks that a message of this many bytes of a source for one Business Object could be stored now. Blocking.
///
/// # Errors
/// Why it could not.
pub fn check_storable(
    gateway: &Gateway,
    source: &str,
    business_object: &str,
    bytes: usize,
) -> Result<(), NotStored> {
    let settings = require_source(gateway, source)?;
    find_ready(gateway, business_object)?;
    authorize(gateway, source, settings)?;
    if let Some(cause) = gateway.store.poison_cause() {
        return Err(GatewayError::from(Error::Poisoned { cause }).into());
    }
    check_memory(gateway, bytes).map(drop)
}

fn authorize(gateway: &Gateway, source: &str, settings: &Source) -> Result<Authorized, NotStored> {
    let ids = list_ids(gateway, settings);
    Ok(gateway.auth.authorize_source(source, ids).map_err(GatewayError::from)?)
}

/// Checks that there is memory for messages of this many bytes. While memory is short, only some are stored, one batch at
/// a time; the result is the permit for that.
fn check_memory(gateway: &Gateway, bytes: usize) -> Result<Option<MutexGuard<'_, ()>>, NotStored> {
    if gateway.memory.current_level() < MemoryLevel::Short {
        return Ok(None);
    }
    let permit = gateway.sources.try_store_while_memory_short();
    let permit = permit.filter(|_| bytes <= MAX_BYTES_WHEN_MEMORY_SHORT);
    permit.map(Some).ok_or_else(|| {
        gateway.memory.request_relief();
        let message =
            "memory is short (service.limits.memory, or the limit of the gateway's control group)";
        NotStored { code: NotStoredCode::Unavailable, message: message.to_owned() }
    })
}

/// Checks that a source may connect for this Business Object: it must not require a review.
///
/// # Errors
/// `NotStoredCode::ReviewRequired`
pub fn check_connectable(gateway: &Gateway, business_object: &str) -> Result<(), NotStored> {
    match gateway.catalogue.get(business_object) {
        Some(compiled) if compiled.object.definition.review() == Review::Required => {
            Err(NotStored {
                code: NotStoredCode::ReviewRequired,
                message: format!(
                    "the Business Object {business_object:?} requires a review, and no source writes to such a one; set \
                     its review to \"optional\", or remove the subscription"
                ),
            })
        }
        _ => Ok(()),
    }
}

/// Returns the Business Object as it is now, if messages can be ingested into it.
fn find_ready(gateway: &Gateway, business_object: &str) -> Result<Arc<Compiled>, NotStored> {
    let compiled = gateway.catalogue.get(business_object).ok_or_else(|| NotStored {
        code: NotStoredCode::NotDefined,
        message: format!("the Business Object {business_object:?} is not defined yet"),
    })?;
    if !is_enabled(&compiled) {
        let message = format!("the Business Object {business_object:?} is disabled");
        return Err(NotStored { code: NotStoredCode::Disabled, message });
    }
    check_connectable(gateway, business_object)?;
    Ok(compiled)
}

fn is_enabled(compiled: &Compiled) -> bool {
    compiled.object.definition.enabled && compiled.object.deleting.is_none()
}

/// Returns the ids of the Business Objects of a source that are defined.
fn list_ids(gateway: &Gateway, source: &Source) -> Vec<String> {
    let find = |name: &str| Some(gateway.catalogue.get(name)?.object.id.clone());
    source.business_objects().into_iter().filter_map(find).collect()
}

/// The templates of the fields of each subscription.
struct Templates(Vec<Vec<(String, Template)>>);

impl Templates {
    fn parse(source: &Source) -> Self {
        let parse = |(field, text): (&String, &String)| {
            // The settings were checked at the start.
            Some((field.clone(), text.parse().ok()?))
        };
        let fields =
            |one: &penstock_config::Subscription| one.fields.iter().filter_map(parse).collect();
        Self(source.subscriptions.iter().map(fields).collect())
    }

    fn fill(&self, message: &Message) -> Result<BTreeMap<String, String>, GatewayError> {
        let mut fields = BTreeMap::new();
        let Some(subscription) = message.subscription else {
            let detail =
                format!("no subscription of the source matches the topic {:?}", message.topic);
            return Err(GatewayError::new(ErrorClass::Invalid, detail));
        };
        for (field, template) in self.0.get(subscription).into_iter().flatten() {
            let value = template.fill(&message.topic).map_err(|level| {
                let detail = format!(
                    "the topic {:?} has no level {level}, which the field {field:?} is taken from",
                    message.topic
                );
                GatewayError::new(ErrorClass::Invalid, detail)
            })?;
            fields.insert(field.clone(), value);
        }
        Ok(fields)
    }
}

/// A message with what the settings say about it.
#[derive(Clone)]
struct Prepared<'m> {
    message: &'m Message,
    mode: Mode,
    form: BodyForm,
    fields: BTreeMap<String, String>,
    /// The number of its JSON values. A document has those of its objects, with what they take from around them.
    values: usize,
    /// The bytes of these values.
    bytes: u64,
    /// Why it is rejected without being read.
    error: Option<GatewayError>,
    /// Why it is given up.
    internal_error: Option<GatewayError>,
}

impl Prepared<'_> {
    /// Returns the maximum bytes that its objects copy from its topic. Each object has a value.
    fn max_copied_bytes(&self) -> usize {
        let copied = BatchedMessage::copied_bytes(&self.message.topic, &self.fields);
        copied.saturating_mul(self.values)
    }
}

/// The messages of one call.
struct Storing<'g> {
    gateway: &'g Gateway,
    source: &'g str,
    compiled: Arc<Compiled>,
    by: Authorized,
    /// Whether the first message of the next batch that fails with an internal error is given up.
    is_last_attempt: bool,
}

impl Storing<'_> {
    fn prepare<'m>(
        &self,
        message: &'m Message,
        settings: &Source,
        templates: &Templates,
    ) -> Prepared<'m> {
        let subscription = message.subscription.and_then(|index| settings.subscriptions.get(index));
        let mode = subscription.and_then(|one| parse_mode(one.mode).ok()).unwrap_or(Mode::Merge);
        let form = match subscription {
            Some(one) if one.is_document => BodyForm::Document,
            _ => BodyForm::Data,
        };
        let limits = &self.gateway.settings.limits;
        let mut bytes = message.payload.len() as u64;
        let mut values = count_values(&message.payload, limits.values);
        let too_large = |detail| GatewayError::new(ErrorClass::TooLarge, detail);
        let (fields, mut error) = match templates.fill(message) {
            Ok(fields) => (fields, None),
            Err(error) => (BTreeMap::new(), Some(error)),
        };
        if let Some(bytes) = message.truncated {
            error = Some(too_large(format!(
                "the message has {bytes} bytes; service.limits.body is {}, and service.limits.sources, which all sources \
                 share, is {}; only its beginning is kept",
                limits.body_bytes, limits.source_bytes
            )));
        } else if values > limits.values {
            error = Some(too_large(format!(
                "the message has more than {} JSON values (service.limits.values)",
                limits.values
            )));
        }
        if form == BodyForm::Document && error.is_none() {
            let mapping = &self.compiled.mapping;
            match measure_document(mapping, mode, &message.payload, limits) {
                Ok((_, found)) if found > limits.values => {
                    error = Some(too_large(format!(
                        "the objects of the message have more than {} JSON values with what they take from around them \
                         (service.limits.values)",
                        limits.values
                    )));
                }
                Ok(measured) => (bytes, values) = measured,
                Err(found) => error = Some(found),
            }
        }
        let values = if error.is_some() { 1 } else { values };
        Prepared { message, mode, form, fields, values, bytes, error, internal_error: None }
    }

    /// Splits messages where the mode or the form changes, or where a batch would exceed the limits of a request.
    fn split<'p, 'm>(&self, messages: &'p [Prepared<'m>]) -> Vec<&'p [Prepared<'m>]> {
        let limits = &self.gateway.settings.limits;
        let (mut batches, mut start) = (Vec::new(), 0);
        let (mut values, mut bytes, mut copies) = (0_usize, 0_u64, 0_usize);
        for (index, one) in messages.iter().enumerate() {
            let copied = one.max_copied_bytes();
            let is_other = messages
                .get(start)
                .is_some_and(|first| (first.mode, first.form) != (one.mode, one.form));
            let is_full = values.saturating_add(one.values) > limits.values
                || bytes.saturating_add(one.bytes) > limits.body_bytes
                || copies.saturating_add(copied) > MAX_TOPIC_COPIES_BYTES;
            if index > start && (is_other || is_full) {
                batches.extend(messages.get(start..index));
                (start, values, bytes, copies) = (index, 0, 0, 0);
            }
            copies = copies.saturating_add(copied);
            values = values.saturating_add(one.values);
            bytes = bytes.saturating_add(one.bytes);
        }
        batches.extend(messages.get(start..).filter(|rest| !rest.is_empty()));
        batches
    }

    /// Stores one batch, and adds what became of it to `stored`. If an error cannot be assigned to one of its messages, it
    /// is halved, so that such an error never blocks a session.
    fn store(&self, messages: &[Prepared<'_>], stored: &mut Stored) -> Result<(), NotStored> {
        let error = match self.ingest(messages) {
            Ok(None) => {
                stored.messages += messages.len();
                return Ok(());
            }
            Ok(Some(answer)) => {
                let Answer { created, updated, unchanged, deleted, rejected, .. } = answer;
                let kept = rejected.iter().filter(|rejected| rejected.id.is_some()).count();
                stored.messages += messages.len();
                stored.objects += created + updated + unchanged + deleted;
                stored.dead_letters += kept as u64;
                stored.dropped += (rejected.len() - kept) as u64;
                return Ok(());
            }
            Err(error) => error,
        };
        let is_given_up = self.is_last_attempt
            && error.class == ErrorClass::Internal
            && is_store_writable(self.gateway);
        if !is_permanent(&error) && !is_given_up {
            return Err(error.into());
        }
        // A commit that disabled the Business Object may have come before.
        find_ready(self.gateway, &self.compiled.object.id)?;
        match messages {
            [] => Ok(()),
            [one] if is_given_up && one.error.is_none() && one.internal_error.is_none() => {
                let internal_error = Some(describe_given_up(&error));
                self.store(&[Prepared { internal_error, ..one.clone() }], stored)?;
                tracing::error!(
                    source = self.source,
                    business_object = self.compiled.object.definition.name,
                    topic = one.message.topic,
                    cause = error.detail,
                    "A message of a source was given up because of an internal error; its objects became dead letters."
                );
                // The next such message gets its own attempts: the cause may concern all of them.
                Err(error.into())
            }
            [one] if !is_given_up && one.error.is_none() => {
                self.store(&[Prepared { error: Some(error), ..one.clone() }], stored)
            }
            [_] => Err(NotStored { code: NotStoredCode::Internal, message: error.detail }),
            several => {
                let (first, second) = several.split_at(several.len() / 2);
                self.store(first, stored)?;
                self.store(second, stored)
            }
        }
    }

    /// Ingests messages. Returns `None` if all of them are empty.
    fn ingest(&self, messages: &[Prepared<'_>]) -> Result<Option<Answer>, GatewayError> {
        let (text, batched) = join_messages(messages);
        if batched.is_empty() {
            return Ok(None);
        }
        let object = &self.compiled.object;
        let mode = messages.first().map_or(Mode::Merge, |first| first.mode);
        let trace = Trace::from_header(None);
        let request = IngestionRequest {
            form: messages.first().map_or(BodyForm::Data, |first| first.form),
            on_error: OnError::Skip,
            lists_objects: false,
            ..IngestionRequest::new(object, mode, trace)
        };
        let batch = MessageBatch { source: self.source, text: &text, messages: &batched };
        ingest_objects(self.gateway, &self.by, &request, Body::Messages(batch)).map(Some)
    }
}

/// Joins the payloads, each followed by a line break. Empty ones are left out: they are no data, and a publisher sends one to
/// clear a retained message.
fn join_messages(messages: &[Prepared<'_>]) -> (Vec<u8>, Vec<BatchedMessage>) {
    let bytes = messages.iter().map(|one| one.message.payload.len() + 1).sum();
    let mut text = Vec::with_capacity(bytes);
    let mut batched = Vec::with_capacity(messages.len());
    for Prepared { message, fields, error, internal_error, .. } in messages {
        if message.payload.is_empty() && message.truncated.is_none() {
            continue;
        }
        let start = text.len();
        text.extend_from_slice(&message.payload);
        batched.push(BatchedMessage {
            range: start..text.len(),
            topic: message.topic.clone(),
            fields: fields.clone(),
            whole_bytes: message.truncated,
            error: error.clone(),
            internal_error: internal_error.clone(),
        });
        text.push(b'\n');
    }
    (text, batched)
}

/// Returns whether the store accepts commits. Otherwise no message is at fault for an internal error: a write to the disk
/// failed, and the store is reopened once the disk accepts writes again.
fn is_store_writable(gateway: &Gateway) -> bool {
    gateway.store.poison_cause().is_none()
}

/// Returns the error of the dead letters of a message that failed with this internal error in every attempt.
fn describe_given_up(error: &GatewayError) -> GatewayError {
    let detail = format!(
        "{}. It is an internal error, and {MAX_INTERNAL_ATTEMPTS} attempts failed; correct its cause, then retry the dead \
         letter",
        error.detail
    );
    GatewayError::new(ErrorClass::Internal, detail)
}

/// Returns whether storing the same messages later would fail in the same way.
fn is_permanent(error: &GatewayError) -> bool {
    matches!(
        error.class,
        ErrorClass::Malformed
            | ErrorClass::Conflict
            | ErrorClass::Unconfirmed
            | ErrorClass::PreconditionFailed
            | ErrorClass::TooLarge
            | ErrorClass::UnsupportedMediaType
            | ErrorClass::Invalid
    )
}
