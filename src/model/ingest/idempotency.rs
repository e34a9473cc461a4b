//! `Idempotency-Key`: the same request twice is done once.
//!
//! The first answer is kept in the commit it answers for, so there is no moment at which one is there
//! without the other. It is looked up inside the transaction, so a concurrent double waits for the first.
//! A refused request keeps nothing and may be mended and sent again under its key; VALIDATE stores
//! nothing, so it has no use for a key and does not look at it.
//!
//! The 24 h are of elapsed time (`Clock::elapsed`): a clock that is set ahead makes nothing be done twice.
use super::bounded::Bounded;
use super::{Answer, Body, Limits, Request};
use penstock_base::fault::{Fault, Kind};
use penstock_store::{Read, Transaction};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Digest of scope and key to the first answer.
const ANSWERS: &str = "idempotency";
/// Sequence to that digest and the time, oldest first.
const ORDER: Bounded = Bounded("idempotency-order");
/// How long an answer is kept.
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;

/// The key of one request, within its scope.
#[derive(Debug)]
pub(super) struct Key {
    /// Of caller, Business Object, mode, place in the stream and key.
    scope: [u8; 32],
    /// Of the body.
    body: String,
    /// The elapsed time.
    now: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    body: String,
    at: u64,
    sequence: u64,
    answer: Answer,
}

impl Key {
    /// # Errors
    /// `Kind::Malformed` unless the key has 1 to 255 visible ASCII characters.
    pub(super) fn new(request: &Request<'_>, key: &str) -> Result<Self, Fault> {
        if key.is_empty() || key.len() > 255 || !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Fault::new(
                Kind::Malformed,
                "the Idempotency-Key must have 1 to 255 visible ASCII characters",
            ));
        }
        // The chunks of one stream share its key, and each is an ingestion of its own.
        let (text, place) = match request.body {
            Body::Json(text) => (text, "whole".to_owned()),
            Body::Lines { text, first } => (text, first.to_string()),
        };
        let mut scope = Sha256::new();
        let mode = request.mode.name();
        for part in [request.caller, &request.business_object.object.id, mode, &place, key] {
            scope.update((part.len() as u64).to_be_bytes());
            scope.update(part);
        }
        Ok(Self {
            scope: scope.finalize().into(),
            body: format!("{:x}", Sha256::digest(text)),
            now: request.watch.elapsed(),
        })
    }

    /// The first answer, if this request has been done.
    ///
    /// # Errors
    /// `Kind::Conflict` when the key was used with another body.
    pub(super) fn replay(&self, transaction: &Transaction<'_>) -> Result<Option<Answer>, Fault> {
        match self.kept(transaction)? {
            Some(kept) if self.has_expired(kept.at) => Ok(None),
            Some(kept) if kept.body == self.body => Ok(Some(kept.answer)),
            Some(kept) => Err(Fault::new(
                Kind::Conflict,
                format!(
                    "the Idempotency-Key was used for another body, in the ingestion {}; give each request a key of its own",
                    kept.answer.ingestion_id
                ),
            )),
            None => Ok(None),
        }
    }

    /// Keeps the answer, and lets go of those past the time, the number or the bytes.
    pub(super) fn keep(
        &self,
        transaction: &mut Transaction<'_>,
        answer: &Answer,
        limits: &Limits,
    ) -> Result<(), Fault> {
        if limits.idempotency_keys == 0 {
            return Ok(());
        }
        if let Some(old) = self.kept(transaction)? {
            ORDER.remove(transaction, &Bounded::key(old.sequence))?;
        }
        let (at, sequence) = (self.now, transaction.sequence());
        let kept = Kept { body: self.body.clone(), at, sequence, answer: answer.clone() };
        let value = serde_json::to_vec(&kept).map_err(|error| {
            Fault::new(Kind::Internal, format!("writing an answer failed: {error}"))
        })?;
        transaction.put(ANSWERS, &self.scope, &value)?;
        let entry = [at.to_be_bytes().as_slice(), &self.scope].concat();
        ORDER.add(transaction, sequence, &entry, value.len() as u64)?;
        while let Some(oldest) = ORDER.oldest(transaction)? {
            let Some((at, scope)) = oldest.value.split_first_chunk::<8>() else { break };
            let sum = ORDER.sum(transaction)?;
            let fits = sum.entries <= limits.idempotency_keys as u64
                && (sum.bytes <= limits.idempotency_bytes || sum.entries == 1);
            if fits && !self.has_expired(u64::from_be_bytes(*at)) {
                break;
            }
            transaction.delete(ANSWERS, scope)?;
            ORDER.remove(transaction, &oldest.key)?;
        }
        Ok(())
    }

    fn kept(&self, read: &impl Read) -> Result<Option<Kept>, Fault> {
        let Some(value) = read.document(ANSWERS, &self.scope)? else { return Ok(None) };
        serde_json::from_slice(&value).map(Some).map_err(|error| {
            tracing::error!(%error, "A kept answer could not be read.");
            Fault::new(Kind::Internal, "a kept answer could not be read; the log says why")
        })
    }

    fn has_expired(&self, at: u64) -> bool {
        self.now.saturating_sub(at) > KEPT_MS
    }
}
