//! Preconditions of requests that store an object (RFC 9110, 13.1), in the forms that servers understand.
#[cfg(test)]
mod tests;

use super::bucket::{Bucket, StoredObject};
use super::explain::Access;
use super::request::S3Request;
use crate::cause::DeliveryFailure;
use crate::delivery::Replaces;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::sync::atomic::Ordering;

/// Which object a request that stores one may overwrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overwrite<'a> {
    /// None.
    Nothing,
    /// The one with this entity tag.
    Tagged(&'a str),
    /// Any.
    Anything,
}

impl<'a> Overwrite<'a> {
    /// Returns what may be overwritten under a key that has this object.
    pub(super) fn of(before: &StoredObject, replaces: Replaces<'a>) -> Self {
        match (before, replaces) {
            (StoredObject::Damaged, Replaces::Damaged | Replaces::Tagged(None)) => Self::Anything,
            (StoredObject::Damaged, Replaces::Tagged(Some(tag))) => Self::Tagged(tag),
            _ => Self::Nothing,
        }
    }
}

/// The precondition of a request, through its attempts.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreCondition<'a> {
    overwrite: Overwrite<'a>,
    /// Whether an entity tag is sent without the quotes that RFC 9110, 8.8.3 has: Ceph 16 compares it so.
    is_bare: bool,
    has_tried_both: bool,
}

impl StoreCondition<'_> {
    /// Returns the header, if there is a precondition.
    pub(super) fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, DeliveryFailure> {
        let (name, value) = match self.overwrite {
            Overwrite::Anything => return Ok(None),
            Overwrite::Nothing => ("if-none-match", "*"),
            Overwrite::Tagged(tag) if self.is_bare => ("if-match", tag.trim_matches('"')),
            Overwrite::Tagged(tag) => ("if-match", tag),
        };
        let value = HeaderValue::from_str(value).map_err(|_| {
            DeliveryFailure::of_gateway(format!("the entity tag {value:?} is not valid"))
        })?;
        Ok(Some((HeaderName::from_static(name), value)))
    }

    /// Changes the form of an entity tag that the server refused although the object has it. Returns false if it
    /// refuses both.
    pub(super) fn try_other_form(&mut self) -> bool {
        self.is_bare = !self.is_bare;
        !std::mem::replace(&mut self.has_tried_both, true)
    }

    /// Changes the form as [`Self::try_other_form`]. A server that refuses both gets no precondition any more, as one
    /// that supports none.
    pub(super) fn change_after_refusal(&mut self) {
        if !self.try_other_form() {
            self.overwrite = Overwrite::Anything;
        }
    }
}

impl Bucket {
    /// Returns the precondition of a first attempt.
    pub(super) fn build_condition<'a>(&self, overwrite: Overwrite<'a>) -> StoreCondition<'a> {
        let is_bare = self.compares_bare_tags.load(Ordering::Relaxed);
        StoreCondition { overwrite, is_bare, has_tried_both: false }
    }

    /// Adds the header that makes the server refuse to overwrite an object. Returns whether it was added: a server that
    /// does not support it gets none.
    pub(super) fn add_precondition(
        &self,
        headers: &mut HeaderMap,
        condition: &StoreCondition<'_>,
    ) -> Result<bool, DeliveryFailure> {
        let header = condition.header()?;
        match header.filter(|_| self.supports_conditional_put.load(Ordering::Relaxed)) {
            Some((name, value)) => {
                headers.insert(name, value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Remembers the form of an entity tag that the server accepted.
    pub(super) fn remember_tag_form(&self, condition: &StoreCondition<'_>) {
        if matches!(condition.overwrite, Overwrite::Tagged(_)) {
            self.compares_bare_tags.store(condition.is_bare, Ordering::Relaxed);
        }
    }

    /// Returns whether an object has the entity tag of a precondition. If the server refused that, it expects another
    /// form, or refuses every one.
    pub(super) async fn has_tag_of(
        &self,
        condition: &StoreCondition<'_>,
        key: &str,
    ) -> Result<bool, DeliveryFailure> {
        let Overwrite::Tagged(tag) = condition.overwrite else { return Ok(false) };
        let answer = self.send(S3Request::new(Method::HEAD, key)).await?;
        match answer.status {
            200..=299 => Ok(answer.header("etag") == Some(tag)),
            404 => Ok(false),
            _ => Err(self.denied_failure(&answer, Access::Read)),
        }
    }
}
