//! Reading a bucket: its keys in order, and its objects, to check them.
use super::Bucket;
use super::explain::{first_element, has_code, list_elements};
use super::request::S3Request;
use crate::cause::DeliveryFailure;
use crate::transport::parse_date;
use jiff::Timestamp;
use reqwest::{Method, Response};

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedObject {
    pub(crate) key: String,
    /// Its length in bytes.
    pub(crate) bytes: u64,
    /// When it was stored, by the server's clock.
    pub(crate) modified: Option<Timestamp>,
}

/// A page of a listing.
#[derive(Debug, Default)]
pub(crate) struct ObjectPage {
    /// The objects in the order of their keys.
    pub(crate) objects: Vec<ListedObject>,
    /// The continuation token of the next page.
    pub(crate) next: Option<String>,
    /// The time of the server's clock.
    pub(crate) date: Option<Timestamp>,
}

impl Bucket {
    /// Lists a page of the objects whose keys have this prefix.
    pub(crate) async fn list_page(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<ObjectPage, DeliveryFailure> {
        let mut query = vec![("encoding-type", "url"), ("list-type", "2"), ("prefix", prefix)];
        query.extend(after.map(|after| ("continuation-token", after)));
        query.sort_unstable();
        let mut request = S3Request::new(Method::GET, "");
        request.query = &query;
        let answer = self.send(request).await?;
        if answer.status != 200 {
            return Err(self.refused_failure(&answer));
        }
        let encoded = is_encoded(&answer.body);
        let read_object = |object: &str| {
            let modified = first_element(object, "LastModified");
            Some(ListedObject {
                key: decode_key(&first_element(object, "Key")?, encoded),
                bytes: first_element(object, "Size")
                    .and_then(|size| size.parse().ok())
                    .unwrap_or(0),
                modified: modified.and_then(|at| at.parse().ok()),
            })
        };
        let objects = list_elements(&answer.body, "Contents").filter_map(read_object).collect();
        let truncated = first_element(&answer.body, "IsTruncated").as_deref() == Some("true");
        let next = first_element(&answer.body, "NextContinuationToken").filter(|_| truncated);
        let date = answer.header("date").and_then(parse_date);
        let date = date.and_then(|date| Timestamp::from_second(date.timestamp()).ok());
        Ok(ObjectPage { objects, next, date })
    }

    /// Requests an object. The caller reads the body. Returns `None` if the object does not exist.
    pub(crate) async fn get_object(&self, key: &str) -> Result<Option<Response>, DeliveryFailure> {
        let response = self.client.get(key).await.map_err(|lost| self.lost_failure(&lost))?;
        if response.status().is_success() {
            return Ok(Some(response));
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.text().await.unwrap_or_default();
        if has_code(&body, "NoSuchKey") {
            return Ok(None);
        }
        Err(self.refused_failure(&crate::transport::HttpAnswer { status, headers, body }))
    }
}

/// Returns whether the keys of a listing are URL-encoded, as requested.
fn is_encoded(body: &str) -> bool {
    first_element(body, "EncodingType").as_deref() == Some("url")
}

/// Decodes a key of a listing.
fn decode_key(key: &str, encoded: bool) -> String {
    if !encoded {
        return key.to_owned();
    }
    let spaced = key.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}
