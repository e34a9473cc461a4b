//! Tests whether the bucket would accept files, without writing one.
use super::bucket::Bucket;
use super::explain::has_code;
use super::request::S3Request;
use crate::cause::DeliveryFailure;
use penstock_resources::export::Cause;
use reqwest::Method;

/// The key, after the prefix, of an object that does not exist.
const TEST_KEY: &str = "penstock-connection-test";

impl Bucket {
    /// Lists one key. If the credentials may not list, requests an object that does not exist. Either answer
    /// shows problems with the link, the credentials or the bucket. Returns a remark on what could not be
    /// checked.
    pub(crate) async fn test_access(
        &self,
        prefix: &str,
    ) -> Result<Option<&'static str>, DeliveryFailure> {
        let query = [("list-type", "2"), ("max-keys", "1"), ("prefix", prefix)];
        let answer =
            self.send(S3Request { query: &query, ..S3Request::new(Method::GET, "") }).await?;
        if (200..=299).contains(&answer.status) {
            return Ok(None);
        }
        let refused = self.refused_failure(&answer);
        if refused.class != Cause::Policy {
            return Err(refused);
        }
        let answer = self.send(S3Request::new(Method::GET, &format!("{prefix}{TEST_KEY}"))).await?;
        if (200..=299).contains(&answer.status) || has_code(&answer.body, "NoSuchKey") {
            return Ok(Some(
                "the credentials may read but not list; deliveries do not need to list",
            ));
        }
        let refused = self.refused_failure(&answer);
        if refused.class != Cause::Policy {
            return Err(refused);
        }
        Ok(Some(
            "the credentials may neither list nor read; deliveries do not need that. The first delivery shows \
             whether they may write",
        ))
    }
}
