//! Explains error answers and connection errors to the operator.
use crate::cause::DeliveryFailure;
use crate::transport::{HttpAnswer, quote_answer, retry_after, truncate_text};
use penstock_base::time;
use penstock_resources::export::Cause;

/// The permission that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    Read,
    List,
}

impl Access {
    /// Describes what credentials without the permission may not do, up to the bucket.
    fn describe(self) -> &'static str {
        match self {
            Self::Write => "write to",
            Self::Read => "read from",
            Self::List => "list",
        }
    }

    /// Returns what to do about it.
    fn remedy(self) -> &'static str {
        match self {
            Self::Write | Self::List => "fix its policy",
            Self::Read => {
                "fix its policy (without the permission to list, a missing object has the same answer)"
            }
        }
    }
}

/// Converts an error answer to a request that needs this permission into a failure with a cause for the operator.
pub(super) fn explain_answer(
    answer: &HttpAnswer,
    access: Access,
    bucket: &str,
    endpoint: &str,
) -> DeliveryFailure {
    let code = first_element(&answer.body, "Code").unwrap_or_default();
    let (class, cause) = classify_answer(answer, &code, access, bucket, endpoint);
    let element = |name| first_element(&answer.body, name).unwrap_or_default();
    let (message, request) = (element("Message"), element("RequestId"));
    let request =
        if request.is_empty() { request } else { format!("(request {})", truncate_text(&request)) };
    DeliveryFailure {
        retry_after: retry_after(answer),
        answer: Some(quote_answer(
            answer.status,
            [code.as_str(), message.as_str(), request.as_str()],
        )),
        ..DeliveryFailure::new(class, cause)
    }
}

fn classify_answer(
    answer: &HttpAnswer,
    code: &str,
    access: Access,
    bucket: &str,
    endpoint: &str,
) -> (Cause, String) {
    let (status, body) = (answer.status, answer.body.as_str());
    match (status, code) {
        (_, "InvalidAccessKeyId") => (
            Cause::Credentials,
            format!("{endpoint} does not know the `access-key-id` of the target; correct it"),
        ),
        (_, "SignatureDoesNotMatch") => (
            Cause::Credentials,
            format!(
                "{endpoint} refuses the credentials: the `secret-access-key` of the target is wrong; correct it"
            ),
        ),
        (_, "UserSuspended" | "AccountProblem" | "ExpiredToken" | "InvalidToken") => (
            Cause::Credentials,
            format!("{endpoint} refuses the credentials of the target ({code})"),
        ),
        (_, "RequestTimeTooSkewed" | "RequestExpired") => (
            Cause::Clock,
            format!(
                "the clock of this gateway ({}) and that of {endpoint}{} differ too much; set the time",
                time::now_rfc3339(),
                first_element(body, "ServerTime")
                    .map(|at| format!(" ({})", truncate_text(&at)))
                    .unwrap_or_default(),
            ),
        ),
        (_, "NoSuchBucket") => (
            Cause::Bucket,
            format!("the bucket `{bucket}` does not exist at {endpoint}; create it"),
        ),
        (_, "QuotaExceeded" | "EntityTooLargeForQuota") | (507, _) => (
            Cause::Quota,
            format!(
                "the quota of the bucket `{bucket}` at {endpoint} is used up; raise it, or free space there"
            ),
        ),
        (413, _) | (_, "EntityTooLarge") => (
            Cause::Quota,
            format!(
                "{endpoint} accepts no file of this size in the bucket `{bucket}`; check its quota"
            ),
        ),
        (
            _,
            "SlowDown"
            | "ServiceUnavailable"
            | "RequestTimeout"
            | "OperationAborted"
            | "ConditionalRequestConflict",
        )
        | (429 | 503, _) => (
            Cause::Busy,
            format!(
                "{endpoint} is overloaded or unavailable ({status}{}{})",
                leading_space(code),
                truncate_text(code)
            ),
        ),
        (_, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => (
            Cause::Gateway,
            format!(
                "{endpoint} has another region than the target's `region`{}; correct it",
                first_element(body, "Region")
                    .map(|region| format!(", `{}`", truncate_text(&region)))
                    .unwrap_or_default(),
            ),
        ),
        (401 | 403, _) => (
            Cause::Policy,
            format!(
                "the credentials of the target may not {} the bucket `{bucket}` at {endpoint} ({}); {}",
                access.describe(),
                if code.is_empty() { "403" } else { truncate_text(code) },
                access.remedy()
            ),
        ),
        (404, "") => {
            (Cause::Bucket, format!("there is no bucket `{bucket}` at {endpoint}; create it"))
        }
        (300..=399, _) => (
            Cause::Gateway,
            format!(
                "the bucket `{bucket}` is at another address; correct the target's `endpoint` and `region`"
            ),
        ),
        _ => {
            let message = first_element(body, "Message").unwrap_or_default();
            let class = match (status, code) {
                (500..=599, _)
                | (_, "BadDigest" | "XAmzContentSHA256Mismatch" | "IncompleteBody") => Cause::Busy,
                _ => Cause::Refused,
            };
            let text = format!(
                "{endpoint} answered {status} {} {}",
                truncate_text(code),
                truncate_text(&message)
            );
            (class, text.trim_end().to_owned())
        }
    }
}

fn leading_space(text: &str) -> &'static str {
    if text.is_empty() { "" } else { " " }
}

/// Returns whether an error answer has this code.
pub(super) fn has_code(body: &str, code: &str) -> bool {
    first_element(body, "Code").as_deref() == Some(code)
}

/// Returns the text of the first XML element with this name.
pub(super) fn first_element(xml: &str, name: &str) -> Option<String> {
    let text = list_elements(xml, name).next()?;
    Some(
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&apos;", "'")
            .replace("&#34;", "\"")
            .replace("&#39;", "'")
            .replace("&amp;", "&"),
    )
}

/// Returns the raw content of each XML element with this name. Elements with the same name do not nest in S3
/// answers.
pub(super) fn list_elements<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let (_, from) = rest.split_once(&open)?;
        let (inner, after) = from.split_once(&close)?;
        rest = after;
        Some(inner)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderMap, HeaderValue};
    use std::time::Duration;

    fn error_answer(status: u16, code: &str) -> HttpAnswer {
        let body = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>m</Message></Error>"
        );
        HttpAnswer { status, headers: HeaderMap::new(), body }
    }

    #[test]
    fn error_answers_are_explained_and_classified() {
        for (status, code, class, words) in [
            (403, "SignatureDoesNotMatch", Cause::Credentials, "`secret-access-key`"),
            (403, "InvalidAccessKeyId", Cause::Credentials, "`access-key-id`"),
            (403, "UserSuspended", Cause::Credentials, "UserSuspended"),
            (403, "AccessDenied", Cause::Policy, "may not write"),
            (403, "QuotaExceeded", Cause::Quota, "quota"),
            (403, "RequestTimeTooSkewed", Cause::Clock, "set the time"),
            (404, "NoSuchBucket", Cause::Bucket, "`plant` does not exist"),
            (503, "SlowDown", Cause::Busy, "503 SlowDown"),
            (503, "", Cause::Busy, "overloaded or unavailable (503)"),
            (500, "InternalError", Cause::Busy, "https://s3.example answered 500 InternalError m"),
            (400, "InvalidRequest", Cause::Refused, "answered 400 InvalidRequest m"),
            (400, "AuthorizationHeaderMalformed", Cause::Gateway, "`region`"),
            (301, "PermanentRedirect", Cause::Gateway, "`endpoint` and `region`"),
        ] {
            let answer = error_answer(status, code);
            let failure = explain_answer(&answer, Access::Write, "plant", "https://s3.example");
            assert!(failure.class == class && failure.cause.contains(words), "{code}: {failure:?}");
        }
        let denied = error_answer(403, "AccessDenied");
        for (access, words) in [
            (Access::Read, "may not read from the bucket"),
            (Access::List, "may not list the bucket"),
        ] {
            let failure = explain_answer(&denied, access, "plant", "e");
            assert!(failure.class == Cause::Policy && failure.cause.contains(words), "{failure:?}");
        }
        let failure = explain_answer(&denied, Access::Write, "plant", "e");
        assert_eq!(failure.answer.as_deref(), Some("403 AccessDenied m"));
        let mut busy = error_answer(503, "SlowDown");
        busy.headers.insert("retry-after", HeaderValue::from_static("7"));
        let failure = explain_answer(&busy, Access::Write, "plant", "e");
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn elements_are_found_one_after_the_other() {
        let xml = "<L><C><Key>a&amp;b</Key></C><C><Key>&lt;&quot;</Key></C><C></L>";
        let keys: Vec<_> =
            list_elements(xml, "C").map(|c| first_element(c, "Key").unwrap()).collect();
        assert_eq!(keys, ["a&b", "<\""]);
        assert_eq!(first_element(xml, "Code"), None);
    }
}
