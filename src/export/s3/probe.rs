//! Whether the bucket would take files, asked without writing one.
use super::Bucket;
use super::request::Ask;
use super::words::element;
use crate::cause::{Class, Failure};
use reqwest::Method;

/// An object that nobody has.
const NOBODYS: &str = "penstock-connection-test";

impl Bucket {
    /// Lists one key, or, where these credentials may not list, asks for an object that nobody has: what is
    /// wrong with the link, the credentials or the bucket is told by either answer. What could not be told is
    /// said in words.
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
            return Ok(Some("the credentials may read; that they may not list is no fault"));
        }
        let refused = self.refused(&answer);
        if refused.class != Class::Policy {
            return Err(refused);
        }
        Ok(Some(
            "the credentials may neither list nor read, which is no fault: whether they may write is told by \
             the first delivery",
        ))
    }
}
