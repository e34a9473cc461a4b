//! Reading a bucket: its keys in order, and its objects, to check them.
use super::Bucket;
use super::explain::{first_element, has_code, list_elements};
use super::request::S3Request;
use crate::cause::DeliveryFailure;
use reqwest::{Method, Response};
use std::collections::VecDeque;

/// A page of keys.
#[derive(Debug, Default)]
pub(crate) struct KeyPage {
    /// The keys in order.
    pub(crate) keys: VecDeque<String>,
    /// The continuation token of the next page.
    pub(crate) next: Option<String>,
}

impl Bucket {
    /// Lists a page of the keys with this prefix.
    pub(crate) async fn list_page(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<KeyPage, DeliveryFailure> {
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
        let keys = list_elements(&answer.body, "Contents")
            .filter_map(|object| Some(decode_key(&first_element(object, "Key")?, encoded)))
            .collect();
        let truncated = first_element(&answer.body, "IsTruncated").as_deref() == Some("true");
        let next = first_element(&answer.body, "NextContinuationToken").filter(|_| truncated);
        Ok(KeyPage { keys, next })
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
