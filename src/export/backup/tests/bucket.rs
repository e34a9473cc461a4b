//! A bucket in memory, which fails.
use crate::backup::place::{
    ListedObject, Listing, ObjectBody, Objects, OtherObject, Place, Precondition, Replaced,
    SmallObject, Upload,
};
use crate::cause::DeliveryFailure;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use penstock_base::hex::encode_hex;
use penstock_resources::export::Cause;
use penstock_store::{Error, Store};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How the next request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It does not fail.
    None,
    /// The request does not arrive.
    Lost,
    /// The answer does not arrive.
    AnswerLost,
    /// If it reads the head, it gets the one before.
    OldHead,
}

#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) bytes: Vec<u8>,
    pub(super) etag: String,
    pub(super) modified: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct BucketState {
    pub(super) objects: BTreeMap<String, Stored>,
    pub(super) old_heads: BTreeMap<String, Stored>,
    pub(super) faults: VecDeque<Fault>,
    pub(super) writes: u64,
    pub(super) ahead: SignedDuration,
    pub(super) ignores_if_match: bool,
    /// Whether it answers 412 to each head.
    pub(super) refuses_heads: bool,
    /// Whether its policy denies each write of a head.
    pub(super) denies_heads: bool,
    /// The key of an object that is listed, and that nobody can open.
    pub(super) unreadable: Option<String>,
    /// A part of the keys whose uploads never end.
    pub(super) hanging_uploads: Option<&'static str>,
    /// A store that gets a commit during each upload.
    pub(super) busy: Option<Store>,
}

/// A bucket in memory.
#[derive(Debug, Clone, Default)]
pub(super) struct MemoryBucket(pub(super) Arc<Mutex<BucketState>>);

impl BucketState {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::now() + self.ahead
    }

    pub(super) fn store(&mut self, key: &str, bytes: Vec<u8>) -> String {
        self.writes += 1;
        let etag = format!("\"{}\"", self.writes);
        let stored = Stored { bytes, etag: etag.clone(), modified: self.now() };
        if let Some(before) = self.objects.insert(key.to_owned(), stored) {
            self.old_heads.insert(key.to_owned(), before);
        }
        etag
    }
}

impl MemoryBucket {
    /// Runs a request, with the next fault.
    pub(super) fn request<T>(
        &self,
        work: impl FnOnce(&mut BucketState, bool) -> T,
    ) -> Result<T, DeliveryFailure> {
        let mut state = self.0.lock();
        let fault = state.faults.pop_front().unwrap_or(Fault::None);
        if fault == Fault::Lost {
            return Err(DeliveryFailure::new(Cause::Unreachable, "the request was lost"));
        }
        let answer = work(&mut state, fault == Fault::OldHead);
        if fault == Fault::AnswerLost {
            return Err(DeliveryFailure {
                outcome_unknown: true,
                ..DeliveryFailure::new(Cause::Broken, "the answer was lost")
            });
        }
        Ok(answer)
    }

    pub(super) fn keys(&self, part: &str) -> Vec<String> {
        self.0.lock().objects.keys().filter(|key| key.contains(part)).cloned().collect()
    }

    pub(super) fn change(&self, key: &str, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.0.lock().objects.get_mut(key).unwrap().bytes);
    }

    pub(super) fn advance(&self, hours: i64) {
        self.0.lock().ahead += SignedDuration::from_hours(hours);
    }
}

impl Objects for MemoryBucket {
    async fn get(&self, key: &str) -> Result<Option<SmallObject>, DeliveryFailure> {
        self.request(|state, old| {
            let of = if old { &state.old_heads } else { &state.objects };
            let found = of.get(key).or_else(|| state.objects.get(key))?;
            let text = String::from_utf8(found.bytes.clone()).unwrap();
            Some(SmallObject { text, etag: Some(found.etag.clone()) })
        })
    }

    async fn put(
        &self,
        key: &str,
        text: &str,
        precondition: &Precondition,
    ) -> Result<Replaced, DeliveryFailure> {
        if self.0.lock().denies_heads && key.ends_with("head.json") {
            return Err(DeliveryFailure::new(Cause::Policy, "the bucket answered 403"));
        }
        self.request(|state, _| {
            if state.refuses_heads && key.ends_with("head.json") {
                return Replaced::Refused;
            }
            let found = state.objects.get(key).map(|found| &found.etag);
            let holds = match precondition {
                Precondition::Always => true,
                Precondition::Missing => found.is_none(),
                Precondition::Unchanged(etag) => found == Some(etag),
            };
            if holds || state.ignores_if_match {
                Replaced::Stored(Some(state.store(key, text.as_bytes().to_vec())))
            } else {
                Replaced::Refused
            }
        })
    }

    async fn find_other(&self, upload: &Upload) -> Result<Option<OtherObject>, DeliveryFailure> {
        self.request(|state, _| {
            let found = state.objects.get(&upload.key)?;
            let is_same = encode_hex(&Sha256::digest(&found.bytes)) == upload.sha256;
            (!is_same).then(|| OtherObject { etag: Some(found.etag.clone()) })
        })
    }

    async fn upload(
        &self,
        upload: &Upload,
        leftover: Option<&OtherObject>,
    ) -> Result<(), DeliveryFailure> {
        // As the code that delivers exports.
        let bytes = std::fs::read(&upload.path).unwrap_or_default();
        if encode_hex(&Sha256::digest(&bytes)) != upload.sha256 {
            return Err(DeliveryFailure::of_gateway("the file is damaged"));
        }
        let hanging = self.0.lock().hanging_uploads;
        if hanging.is_some_and(|part| upload.key.contains(part)) {
            std::future::pending::<()>().await;
        }
        let busy = self.0.lock().busy.clone();
        if let Some(store) = busy {
            let number = rand::random::<u64>().to_be_bytes();
            store
                .transact::<_, Error>(|change| change.put_document("busy", b"n", &number))
                .unwrap();
        }
        let is_stored = self.request(|state, _| {
            let may_store = match state.objects.get(&upload.key) {
                None => true,
                Some(found) => leftover.map_or(found.bytes == bytes, |leftover| {
                    leftover.etag.as_ref() == Some(&found.etag)
                }),
            };
            if may_store {
                state.store(&upload.key, bytes);
            }
            may_store
        });
        let conflict = || Err(DeliveryFailure::new(Cause::Conflict, "there is another object"));
        if is_stored? { Ok(()) } else { conflict() }
    }

    async fn list(&self, prefix: &str) -> Result<Listing, DeliveryFailure> {
        self.request(|state, _| {
            let below = state.objects.iter().filter(|(key, _)| key.starts_with(prefix));
            let list = |(key, stored): (&String, &Stored)| ListedObject {
                key: key.clone(),
                bytes: stored.bytes.len() as u64,
                modified: Some(stored.modified),
            };
            Listing { objects: below.map(list).collect(), date: Some(state.now()) }
        })
    }

    async fn delete(&self, key: &str) -> Result<bool, DeliveryFailure> {
        self.request(|state, _| {
            state.objects.remove(key);
            true
        })
    }

    async fn open(&self, key: &str) -> Result<Option<ObjectBody>, DeliveryFailure> {
        let state = self.0.lock();
        let found = state.objects.get(key).filter(|_| state.unreadable.as_deref() != Some(key));
        Ok(found.map(|found| ObjectBody::Bytes(found.bytes.clone())))
    }

    fn has_preconditions(&self) -> bool {
        true
    }

    fn place(&self) -> Place {
        let location = "the bucket of the test".to_owned();
        Place { target: "vault".to_owned(), location }
    }
}
