//! Reading a bucket: its keys in order, and its objects, for whoever checks them.
use super::Bucket;
use super::request::Ask;
use super::words::{element, elements};
use crate::cause::Failure;
use reqwest::{Method, Response};
use std::collections::VecDeque;

/// One page of keys.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// In order.
    pub(crate) keys: VecDeque<String>,
    /// What the next page is asked for with.
    pub(crate) next: Option<String>,
}

impl Bucket {
    /// The keys with this prefix, a page at a time.
    pub(crate) async fn page(&self, prefix: &str, after: Option<&str>) -> Result<Page, Failure> {
        let mut query = vec![("encoding-type", "url"), ("list-type", "2"), ("prefix", prefix)];
        query.extend(after.map(|after| ("continuation-token", after)));
        query.sort_unstable();
        let mut ask = Ask::new(Method::GET, "");
        ask.query = &query;
        let answer = self.send(ask).await?;
        if answer.status != 200 {
            return Err(self.refused(&answer));
        }
        let encoded = is_encoded(&answer.body);
        let keys = elements(&answer.body, "Contents")
            .filter_map(|object| Some(decoded(&element(object, "Key")?, encoded)))
            .collect();
        let truncated = element(&answer.body, "IsTruncated").as_deref() == Some("true");
        let next = element(&answer.body, "NextContinuationToken").filter(|_| truncated);
        Ok(Page { keys, next })
    }

    /// An object, whose body is left to be read; `None` when it is not there.
    pub(crate) async fn object(&self, key: &str) -> Result<Option<Response>, Failure> {
        let response = self.requests.get(key).await.map_err(|lost| self.lost(&lost))?;
        if response.status().is_success() {
            return Ok(Some(response));
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.text().await.unwrap_or_default();
        if element(&body, "Code").as_deref() == Some("NoSuchKey") {
            return Ok(None);
        }
        Err(self.refused(&super::Answer { status, headers, body }))
    }
}

/// Whether a listing has its keys encoded, as it was asked to.
fn is_encoded(body: &str) -> bool {
    element(body, "EncodingType").as_deref() == Some("url")
}

/// A key of a listing.
fn decoded(key: &str, encoded: bool) -> String {
    if !encoded {
        return key.to_owned();
    }
    let spaced = key.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}
