//! Reading a bucket: its keys in order, and its objects, to check them.
use super::bucket::Bucket;
use super::explain::{Access, first_element, has_code, list_elements};
use super::request::S3Request;
use crate::cause::DeliveryFailure;
use crate::transport::{HttpAnswer, parse_date, read_beginning};
use jiff::Timestamp;
use penstock_resources::export::Cause;
use reqwest::{Method, Response};

/// The maximum bytes of an error that are read.
const MAX_ERROR_BYTES: usize = 64 << 10;

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
            return Err(self.denied_failure(&answer, Access::List));
        }
        ObjectPage::read(&answer, after).ok_or_else(|| {
            let cause = format!(
                "the bucket `{}` answered with no list, or with a part that does not say how it continues; the server \
                 must support ListObjectsV2",
                self.name
            );
            DeliveryFailure::new(Cause::Broken, cause)
        })
    }

    /// Requests an object. The caller reads the body. Returns `None` if the object does not exist.
    pub(crate) async fn get_object(&self, key: &str) -> Result<Option<Response>, DeliveryFailure> {
        let response = self.client.get(key).await.map_err(|lost| self.lost_failure(&lost))?;
        if response.status().is_success() {
            return Ok(Some(response));
        }
        let answer = read_beginning(response, MAX_ERROR_BYTES).await;
        if has_code(&answer.body, "NoSuchKey") {
            return Ok(None);
        }
        Err(self.denied_failure(&answer, Access::Read))
    }
}

impl ObjectPage {
    /// Reads the page after this continuation token. Returns `None` if it is no list, or a part that does not say how
    /// it continues: neither may be taken for the whole.
    fn read(answer: &HttpAnswer, after: Option<&str>) -> Option<Self> {
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
        let is_list = answer.body.contains("<ListBucketResult");
        if !is_list || truncated && (next.is_none() || next.as_deref() == after) {
            return None;
        }
        let date = answer.header("date").and_then(parse_date);
        let date = date.and_then(|date| Timestamp::from_second(date.timestamp()).ok());
        Some(Self { objects, next, date })
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

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderMap;

    #[test]
    fn a_list_that_ends_early_is_not_taken_for_the_whole() {
        let read_body = |body: String, after| {
            ObjectPage::read(&HttpAnswer { status: 200, headers: HeaderMap::new(), body }, after)
        };
        let read = |end: &str, after| {
            let object = "<Contents><Key>a</Key><Size>2</Size></Contents>";
            read_body(format!("<ListBucketResult>{object}{end}</ListBucketResult>"), after)
        };
        let next = |token: &str| {
            format!(
                "<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
            )
        };
        let page = read(&next("b"), Some("a")).unwrap();
        assert_eq!((page.objects[0].bytes, page.next.as_deref()), (2, Some("b")));
        assert_eq!(read("<IsTruncated>false</IsTruncated>", Some("b")).unwrap().next, None);
        // A server that lists by markers, and one that begins again.
        assert!(read("<IsTruncated>true</IsTruncated><NextMarker>b</NextMarker>", None).is_none());
        assert!(read(&next("b"), Some("b")).is_none());
        // A proxy that answers for the server.
        assert!(read_body("<html>Please sign in</html>".to_owned(), None).is_none());
    }
}
