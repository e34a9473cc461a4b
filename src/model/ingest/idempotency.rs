//! `Idempotency-Key`: a request that is sent twice is executed once.
//!
//! The first answer is stored in the commit that it describes, so neither exists without the other. The gateway looks
//! it up inside the transaction, so a concurrent duplicate waits for the first request. A refused request stores no
//! answer: the client may correct it and send it again with the same key. VALIDATE stores nothing, so it ignores the
//! key.
//!
//! Each chunk of a stream has an answer of its own, by its place. The answer to a request with one body has another place,
//! so a key that was used for a stream is also looked for there, and the other way round.
//!
//! A stream is one request, so that its own answers do not evict each other: of its chunks, only the first counts towards
//! the number of answers. All count towards their bytes.
//!
//! The 24 h are elapsed time (`Clock::elapsed`): setting a clock ahead does not cause a second execution.
use super::bounded::{BoundedLog, MAX_REMOVALS};
use super::{Answer, Body, BodyForm, Limits, Request, ReviewStep, Submission};
use crate::dead_letters::{count_error_bytes, find_letter, not_stored_error};
use crate::namespace::moving::rebase::Rebase;
use penstock_base::collections;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::table::{AsJson, Row, Table};
use penstock_resources::dead_letter::RejectedObject;
use penstock_resources::ingestion::IngestedObject;
use penstock_store::{Error, Read, Transaction};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The first answers, by the digest of scope and key.
pub(crate) const ANSWERS: Table<[u8; 32], AsJson<StoredAnswer>> =
    Table::new(collections::IDEMPOTENCY);
/// The time and the digest of each answer.
pub(super) type AnswerOrder = BoundedLog<(u64, [u8; 32])>;
/// The order of the answers whose number is limited. Earlier versions kept those of all chunks in it.
pub(super) const REQUEST_ORDER: AnswerOrder = BoundedLog::new(collections::IDEMPOTENCY_ORDER);
/// The order of the answers of chunks after the first ones of their streams.
const CHUNK_ORDER: AnswerOrder = BoundedLog::new(collections::IDEMPOTENCY_CHUNKS);
/// The time for which an answer is kept, in milliseconds.
const RETENTION_MS: u64 = 24 * 60 * 60 * 1000;

/// The maximum bytes of errors in a stored answer; only dead letters have those of further objects. Otherwise a few requests
/// with many errors would evict the answers of all other clients.
const MAX_STORED_ERROR_BYTES: usize = 16 << 10;

/// The place of the answer to a request with one body, and that of the first chunk of a stream.
const WHOLE: &str = "whole";
const FIRST_CHUNK: &str = "0";

/// The idempotency key of one request, within its scope.
#[derive(Debug)]
pub(super) struct IdempotencyKey {
    /// The digest of caller, Business Object, mode, position in the stream and key.
    scope: [u8; 32],
    /// That of the other kind of request that this one could have been: a stream, or one body.
    other_scope: Option<[u8; 32]>,
    /// The digest of the body, in hexadecimal.
    body: String,
    /// Where its answer has its place.
    order: &'static AnswerOrder,
    /// The elapsed time, in milliseconds.
    now: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredAnswer {
    pub(super) body: String,
    pub(super) at: u64,
    pub(super) sequence: u64,
    pub(super) answer: Answer,
}

impl IdempotencyKey {
    /// Creates the key of a request.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` unless the key has 1 to 255 visible ASCII characters.
    pub(super) fn new(request: &Request<'_>, key: &str) -> Result<Self, GatewayError> {
        if key.is_empty() || key.len() > 255 || !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(GatewayError::new(
                ErrorClass::Malformed,
                "the Idempotency-Key must have 1 to 255 visible ASCII characters",
            ));
        }
        // The chunks of one stream share its key, but each is a separate ingestion.
        let (text, place, other_place) = match request.body {
            Body::Json(text) => (text, WHOLE.to_owned(), Some(FIRST_CHUNK)),
            Body::Lines { text, first, .. } | Body::Records { text, first, .. } => {
                (text, first.to_string(), (first == 0).then_some(WHOLE))
            }
            Body::Object { text, .. } => (text, "object".to_owned(), None),
            Body::Messages(batch) => (batch.text, "messages".to_owned(), None),
        };
        let order = match request.body {
            Body::Lines { first: 1.., .. } | Body::Records { first: 1.., .. } => &CHUNK_ORDER,
            _ => &REQUEST_ORDER,
        };
        let mut body = Sha256::new();
        if let Body::Records { header, .. } = request.body {
            body.update(format!("{:?}{}\n", header.format, header.text));
        }
        body.update(text);
        if request.form == BodyForm::Document {
            body.update("\0document");
        }
        if let ReviewStep::Submit(Submission { owners, is_draft }) = request.review {
            // As a part of the request, so that a corrected one is not answered as the first one.
            body.update(format!("\0{is_draft}\0{owners:?}"));
        }
        Ok(Self {
            scope: digest_scope(request, &place, key),
            other_scope: other_place.map(|place| digest_scope(request, place, key)),
            body: format!("{:x}", body.finalize()),
            order,
            now: request.watch.elapsed(),
        })
    }

    /// Returns the first answer if this request was executed before.
    ///
    /// # Errors
    /// `ErrorClass::Conflict` when the key was used with another request.
    pub(super) fn find_answer(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<Option<Answer>, GatewayError> {
        if let Some(kept) = self.read_answer(transaction, self.scope)? {
            if kept.body != self.body {
                return Err(used_key_error(&kept));
            }
            let mut answer = kept.answer;
            add_errors(transaction, &mut answer.rejected)?;
            return Ok(Some(answer));
        }
        match self.other_scope {
            Some(scope) => match self.read_answer(transaction, scope)? {
                Some(kept) => Err(used_key_error(&kept)),
                None => Ok(None),
            },
            None => Ok(None),
        }
    }

    /// Returns the answer of this scope, unless it has expired.
    fn read_answer(&self, read: &dyn Read, scope: [u8; 32]) -> Result<Option<StoredAnswer>, Error> {
        Ok(ANSWERS.get(read, scope)?.filter(|kept| !self.has_expired(kept.at)))
    }

    /// Stores the answer, and removes the oldest answers beyond the limits of age, number and bytes.
    pub(super) fn store_answer(
        &self,
        transaction: &mut Transaction<'_>,
        answer: &Answer,
        limits: &Limits,
    ) -> Result<(), GatewayError> {
        if limits.idempotency_keys == 0 {
            return Ok(());
        }
        if let Some(old) = ANSWERS.get(transaction, self.scope)? {
            find_order(transaction, old.sequence)?.remove(transaction, old.sequence)?;
        }
        let (at, sequence) = (self.now, transaction.sequence());
        let mut answer = answer.clone();
        drop_errors(&mut answer.rejected);
        let kept = StoredAnswer { body: self.body.clone(), at, sequence, answer };
        put_answer(transaction, self.order, self.scope, &kept)?;
        for _ in 0..MAX_REMOVALS {
            let Some(excess) = self.find_excess(transaction, limits)? else { break };
            ANSWERS.delete(transaction, excess.scope)?;
            excess.order.remove(transaction, excess.sequence)?;
        }
        Ok(())
    }

    /// Returns the next answer to remove, or `None` if all fit.
    fn find_excess(&self, read: &dyn Read, limits: &Limits) -> Result<Option<KeptAnswer>, Error> {
        let (requests, request_bytes) = REQUEST_ORDER.read_totals(read)?;
        let (chunks, chunk_bytes) = CHUNK_ORDER.read_totals(read)?;
        let is_too_many = requests > limits.idempotency_keys as u64;
        let is_too_large = request_bytes.saturating_add(chunk_bytes) > limits.idempotency_bytes
            && requests.saturating_add(chunks) > 1;
        let request = KeptAnswer::oldest_of(read, &REQUEST_ORDER)?;
        let oldest = match KeptAnswer::oldest_of(read, &CHUNK_ORDER)? {
            Some(chunk)
                if !is_too_many
                    && request.as_ref().is_none_or(|request| chunk.sequence < request.sequence) =>
            {
                Some(chunk)
            }
            _ => request,
        };
        Ok(oldest.filter(|oldest| is_too_many || is_too_large || self.has_expired(oldest.at)))
    }

    fn has_expired(&self, at: u64) -> bool {
        self.now.saturating_sub(at) > RETENTION_MS
    }
}

/// Returns the digest of the scope of a key at this place of a stream.
fn digest_scope(request: &Request<'_>, place: &str, key: &str) -> [u8; 32] {
    let mut scope = Sha256::new();
    let mode = request.mode.name();
    for part in [request.caller, &request.business_object.object.id, mode, place, key] {
        scope.update((part.len() as u64).to_be_bytes());
        scope.update(part);
    }
    scope.finalize().into()
}

/// The error of a key that was used with another request, which has this answer.
fn used_key_error(kept: &StoredAnswer) -> GatewayError {
    GatewayError::new(
        ErrorClass::Conflict,
        format!(
            "the Idempotency-Key was already used with another request, in the ingestion {}; use a new key for each request",
            kept.answer.ingestion_id
        ),
    )
}

/// Removes the errors beyond [`MAX_STORED_ERROR_BYTES`]. Dead letters have them too.
fn drop_errors(rejected: &mut [RejectedObject]) {
    let mut bytes = 0;
    for RejectedObject { errors, .. } in rejected {
        bytes += errors.iter().map(count_error_bytes).sum::<usize>();
        if bytes > MAX_STORED_ERROR_BYTES {
            errors.clear();
        }
    }
}

/// Adds the errors that [`drop_errors`] removed, as far as there are dead letters.
fn add_errors(read: &dyn Read, rejected: &mut [RejectedObject]) -> Result<(), GatewayError> {
    for RejectedObject { id, errors, .. } in rejected {
        if !errors.is_empty() {
            continue;
        }
        let letter = match id {
            Some(id) => find_letter(read, id)?,
            None => None,
        };
        *errors = letter.map_or_else(|| vec![not_stored_error()], |letter| letter.errors);
    }
    Ok(())
}

/// Rewrites the URIs in the stored answer with this key. The texts of its warnings stay. Returns whether this changes
/// it.
pub(crate) fn rewrite_stored_answer(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    row: &Row<[u8; 32], AsJson<StoredAnswer>>,
) -> Result<bool, GatewayError> {
    let (scope, mut stored) = row.entry()?;
    let mut changed = false;
    for IngestedObject { index: _, uri, status: _, nested } in &mut stored.answer.objects {
        for uri in std::iter::once(uri).chain(nested.iter_mut().map(|nested| &mut nested.uri)) {
            if let Some(rewritten) = rebase.rewrite(uri) {
                *uri = rewritten;
                changed = true;
            }
        }
    }
    if !changed {
        return Ok(false);
    }
    // Its entry has the number of bytes that count against the limit.
    let order = find_order(transaction, stored.sequence)?;
    order.remove(transaction, stored.sequence)?;
    put_answer(transaction, order, scope, &stored)?;
    Ok(true)
}

/// An entry of an order.
struct KeptAnswer {
    order: &'static AnswerOrder,
    sequence: u64,
    at: u64,
    scope: [u8; 32],
}

impl KeptAnswer {
    fn oldest_of(read: &dyn Read, order: &'static AnswerOrder) -> Result<Option<Self>, Error> {
        let oldest = order.read_oldest(read)?;
        Ok(oldest.map(|(sequence, (at, scope))| Self { order, sequence, at, scope }))
    }
}

/// Returns the order that has the answer of this sequence.
fn find_order(read: &dyn Read, sequence: u64) -> Result<&'static AnswerOrder, Error> {
    let is_chunk = CHUNK_ORDER.entries().contains(read, sequence)?;
    Ok(if is_chunk { &CHUNK_ORDER } else { &REQUEST_ORDER })
}

/// Stores an answer, and its entry in the order.
pub(super) fn put_answer(
    transaction: &mut Transaction<'_>,
    order: &AnswerOrder,
    scope: [u8; 32],
    stored: &StoredAnswer,
) -> Result<(), Error> {
    let bytes = ANSWERS.put_sized(transaction, scope, stored)?;
    order.add(transaction, stored.sequence, (stored.at, scope), bytes)
}
