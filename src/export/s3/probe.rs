//! Tests whether the bucket would accept files, without writing one.
use super::Bucket;
use super::request::Ask;
use super::words::element;
use crate::cause::{Class, Failure};
use reqwest::Method;

/// The key of an object that does not exist.
const NOBODYS: &str = "penstock-connection-test";

impl Bucket {
    /// Lists one key. If the credentials may not list, requests an object that does not exist. Either answer
    /// shows problems with the link, the credentials or the bucket. Returns a remark on what could not be
    /// checked.
    pub(crate) async fn probe(&self, prefix: &str) -> Result<Option<&'static str>, Failure> {
        let query = [("list-type", "2"), ("max-keys", "1"), ("prefix", prefix)];
        let answer = self.send(Ask { query: &query, ..Ask::new(Method::GET, "") }).await?;
        if (200..=299).contains(&answer.status) {
            return Ok(None);
        }
        let refused = self.refused(&answer);
        if refused.class != Class::Policy {
            return Err(refused);
        }
        let answer = self.send(Ask::new(Method::GET, &format!("{prefix}{NOBODYS}"))).await?;
        let code = element(&answer.body, "Code");
        if (200..=299).contains(&answer.status) || code.as_deref() == Some("NoSuchKey") {
            return Ok(Some(
                "the credentials may read but not list; deliveries do not need to list",
            ));
        }
        let refused = self.refused(&answer);
        if refused.class != Class::Policy {
            return Err(refused);
        }
        Ok(Some(
            "the credentials may neither list nor read; deliveries do not need that. The first delivery shows \
             whether they may write",
        ))
    }
}
