//! Small objects: documents that are replaced under a precondition (RFC 9110, 13.1), and deletion.
use super::bucket::{Bucket, StoredObject, is_outcome_unknown};
use super::explain::{Access, has_code};
use super::precondition::Overwrite;
use super::request::{RequestBody, S3Request};
use crate::cause::DeliveryFailure;
use penstock_resources::export::{Cause, Export};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue};

/// What must hold of the object that is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Precondition {
    /// Nothing.
    Always,
    /// There is none.
    Missing,
    /// It has this entity tag.
    Unchanged(String),
}

impl Precondition {
    fn overwrite(&self) -> Overwrite<'_> {
        match self {
            Self::Always => Overwrite::Anything,
            Self::Missing => Overwrite::Nothing,
            Self::Unchanged(etag) => Overwrite::Tagged(etag),
        }
    }
}

/// The result of replacing an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// It is stored, with this entity tag if the server names it.
    Stored(Option<String>),
    /// The precondition does not hold.
    Refused,
    /// The server does not support the precondition. Nothing is stored.
    Unsupported,
}

/// An object with other bytes than those that its key gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherObject {
    /// Its entity tag, if the server names it.
    pub(crate) etag: Option<String>,
}

/// A small object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SmallObject {
    pub(crate) text: String,
    /// Its entity tag, if the server names it.
    pub(crate) etag: Option<String>,
}

impl Bucket {
    /// Reads a small object. Returns `None` if it does not exist.
    pub(crate) async fn get_small(
        &self,
        key: &str,
    ) -> Result<Option<SmallObject>, DeliveryFailure> {
        let answer = self.send(S3Request::new(Method::GET, key)).await?;
        match answer.status {
            200..=299 => {
                let etag = answer.header("etag").map(str::to_owned);
                Ok(Some(SmallObject { text: answer.body, etag }))
            }
            404 if !has_code(&answer.body, "NoSuchBucket") => Ok(None),
            _ => Err(self.denied_failure(&answer, Access::Read)),
        }
    }

    /// Replaces a small object by this JSON text, if the precondition holds.
    pub(crate) async fn put_small(
        &self,
        key: &str,
        text: &str,
        precondition: &Precondition,
    ) -> Result<Replaced, DeliveryFailure> {
        let mut condition = self.build_condition(precondition.overwrite());
        let mut is_first = true;
        loop {
            let header = condition.header()?;
            let is_conditional = header.is_some();
            let mut request = S3Request::new(Method::PUT, key);
            let media_type = HeaderValue::from_static("application/json");
            request.headers.insert(CONTENT_TYPE, media_type);
            request.headers.extend(header);
            request.body = RequestBody::Text(text.to_owned());
            let answer = self.send_storing_request(request).await?;
            match answer.status {
                200..=299 => {
                    self.remember_tag_form(&condition);
                    return Ok(Replaced::Stored(answer.header("etag").map(str::to_owned)));
                }
                // The second attempt is signed with the server's time if the clock is wrong.
                403 if is_first => {}
                // Without the precondition, it could overwrite what another writer has stored meanwhile.
                412 if self.has_tag_of(&condition, key).await? => {
                    if !condition.try_other_form() {
                        return Err(self.refused_tag_failure(key));
                    }
                }
                // An object that was deleted has no entity tag.
                404 | 409 | 412 if is_conditional && !has_code(&answer.body, "NoSuchBucket") => {
                    return Ok(Replaced::Refused);
                }
                501 if is_conditional => return Ok(Replaced::Unsupported),
                status => {
                    let outcome_unknown = is_outcome_unknown(status);
                    return Err(DeliveryFailure {
                        outcome_unknown,
                        ..self.refused_failure(&answer)
                    });
                }
            }
            is_first = false;
        }
    }

    fn refused_tag_failure(&self, key: &str) -> DeliveryFailure {
        let cause = format!(
            "the bucket `{}` refuses to replace `{key}` although `If-Match` has its entity tag, with and without quotes",
            self.name
        );
        DeliveryFailure::new(Cause::Busy, cause)
    }

    /// Returns the object under the key of an entry, if it has other bytes.
    pub(crate) async fn find_other(
        &self,
        entry: &Export,
    ) -> Result<Option<OtherObject>, DeliveryFailure> {
        let answer = self.send(S3Request::new(Method::HEAD, &entry.key)).await?;
        match answer.status {
            200..=299 if self.classify_object(&answer, entry) == StoredObject::SameExport => {
                Ok(None)
            }
            200..=299 => Ok(Some(OtherObject { etag: answer.header("etag").map(str::to_owned) })),
            404 => Ok(None),
            _ => Err(self.denied_failure(&answer, Access::Read)),
        }
    }

    /// Deletes an object. Returns false if the credentials may not.
    pub(crate) async fn delete_object(&self, key: &str) -> Result<bool, DeliveryFailure> {
        let answer = self.send(S3Request::new(Method::DELETE, key)).await?;
        match answer.status {
            200..=299 => Ok(true),
            404 if !has_code(&answer.body, "NoSuchBucket") => Ok(true),
            405 => Ok(false),
            _ => match self.refused_failure(&answer) {
                failure if failure.class == Cause::Policy => Ok(false),
                failure => Err(failure),
            },
        }
    }
}
