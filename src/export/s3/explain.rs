//! Explains error answers and connection errors to the operator.
use super::request::{LostRequest, RequestError, S3Response};
use crate::cause::{DeliveryFailure, FailureClass};
use penstock_base::time;
use std::time::Duration;

/// The maximum `Retry-After` in seconds that is respected.
const MAX_RETRY_AFTER_SECONDS: u64 = 300;

/// Converts an error answer into a failure with a cause for the operator.
pub(super) fn explain_answer(answer: &S3Response, bucket: &str, endpoint: &str) -> DeliveryFailure {
    let code = first_element(&answer.body, "Code").unwrap_or_default();
    let (class, cause) = classify_answer(answer.status, &code, &answer.body, bucket, endpoint);
    let seconds = answer.header("retry-after").and_then(|seconds| seconds.trim().parse().ok());
    let retry_after =
        seconds.map(|seconds: u64| Duration::from_secs(seconds.min(MAX_RETRY_AFTER_SECONDS)));
    DeliveryFailure { retry_after, ..DeliveryFailure::new(class, cause) }
}

fn classify_answer(
    status: u16,
    code: &str,
    body: &str,
    bucket: &str,
    endpoint: &str,
) -> (FailureClass, String) {
    match (status, code) {
        (_, "InvalidAccessKeyId") => (
            FailureClass::Credentials,
            format!("{endpoint} does not know the `access-key-id` of the target; correct it"),
        ),
        (_, "SignatureDoesNotMatch") => (
            FailureClass::Credentials,
            format!(
                "{endpoint} refuses the credentials: the `secret-access-key` of the target is wrong; correct it"
            ),
        ),
        (_, "UserSuspended" | "AccountProblem" | "ExpiredToken" | "InvalidToken") => (
            FailureClass::Credentials,
            format!("{endpoint} refuses the credentials of the target ({code})"),
        ),
        (_, "RequestTimeTooSkewed" | "RequestExpired") => (
            FailureClass::Clock,
            format!(
                "the clock of this gateway ({}) and that of {endpoint}{} differ too much; set the time",
                time::now_rfc3339(),
                first_element(body, "ServerTime")
                    .map(|at| format!(" ({})", truncate_text(&at)))
                    .unwrap_or_default(),
            ),
        ),
        (_, "NoSuchBucket") => (
            FailureClass::Bucket,
            format!("the bucket `{bucket}` does not exist at {endpoint}; create it"),
        ),
        (_, "QuotaExceeded" | "EntityTooLargeForQuota") | (507, _) => (
            FailureClass::Quota,
            format!(
                "the quota of the bucket `{bucket}` at {endpoint} is used up; raise it, or free space there"
            ),
        ),
        (413, _) | (_, "EntityTooLarge") => (
            FailureClass::Quota,
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
            FailureClass::Busy,
            format!(
                "{endpoint} is overloaded or unavailable ({status}{}{})",
                leading_space(code),
                truncate_text(code)
            ),
        ),
        (_, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => (
            FailureClass::Gateway,
            format!(
                "{endpoint} has another region than the target's `region`{}; correct it",
                first_element(body, "Region")
                    .map(|region| format!(", `{}`", truncate_text(&region)))
                    .unwrap_or_default(),
            ),
        ),
        (401 | 403, _) => (
            FailureClass::Policy,
            format!(
                "the credentials of the target may not write to the bucket `{bucket}` at {endpoint} ({}); fix its policy",
                if code.is_empty() { "403" } else { truncate_text(code) }
            ),
        ),
        (404, "") => (
            FailureClass::Bucket,
            format!("there is no bucket `{bucket}` at {endpoint}; create it"),
        ),
        (300..=399, _) => (
            FailureClass::Gateway,
            format!(
                "the bucket `{bucket}` is at another address; correct the target's `endpoint` and `region`"
            ),
        ),
        _ => {
            let message = first_element(body, "Message").unwrap_or_default();
            let class = match (status, code) {
                (500..=599, _)
                | (_, "BadDigest" | "XAmzContentSHA256Mismatch" | "IncompleteBody") => {
                    FailureClass::Busy
                }
                _ => FailureClass::Refused,
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

/// Converts a request without an answer into a failure.
pub(super) fn explain_lost(lost: &LostRequest, endpoint: &str) -> DeliveryFailure {
    match &lost.why {
        RequestError::NotCreated(cause) => DeliveryFailure::of_gateway(cause.clone()),
        RequestError::Source(cause) => {
            DeliveryFailure::of_gateway(format!("the file in the spool cannot be read: {cause}"))
        }
        RequestError::Stalled(silent) => DeliveryFailure::new(
            FailureClass::Broken,
            format!("{endpoint} accepted no data and sent no answer for {} s", silent.as_secs()),
        ),
        RequestError::Http(error) => {
            let why = join_causes(error);
            let (class, cause) =
                classify_connection_error(&why, error.is_connect(), error.is_timeout());
            DeliveryFailure::new(class, format!("{endpoint} {cause}"))
        }
    }
}

/// Classifies a connection error. The returned text continues a sentence that starts with the endpoint.
fn classify_connection_error(why: &str, connecting: bool, timeout: bool) -> (FailureClass, String) {
    let has = |words: &[&str]| words.iter().any(|word| why.contains(word));
    if has(&["certificate"]) {
        let cause = if has(&["xpired"]) {
            format!(
                "has a TLS certificate that has expired; renew it there, or set the clock of this gateway, \
                 which says {}",
                time::now_rfc3339()
            )
        } else if has(&["NotValidYet", "not valid yet"]) {
            format!(
                "has a TLS certificate that is not valid yet; is the clock of this gateway right? It says {}",
                time::now_rfc3339()
            )
        } else if has(&["NotValidForName", "not valid for name"]) {
            "has a TLS certificate for another name; correct the target's `endpoint`".to_owned()
        } else {
            format!(
                "has a TLS certificate that is not trusted; add its authority to the target's `ca-file` ({why})"
            )
        };
        return (FailureClass::Certificate, cause);
    }
    if connecting {
        let cause = if has(&["dns error", "lookup"]) {
            format!("cannot be reached: its name cannot be resolved ({why})")
        } else if has(&["refused"]) {
            "cannot be reached: the connection was refused, no server listens there".to_owned()
        } else if timeout {
            "cannot be reached: no connection in time".to_owned()
        } else {
            format!("cannot be reached: {why}")
        };
        return (FailureClass::Unreachable, cause);
    }
    if timeout {
        return (FailureClass::Broken, "did not answer in time".to_owned());
    }
    (FailureClass::Broken, format!("closed or lost the connection: {why}"))
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

/// Joins the causes of an error, without the URL: the message names the endpoint already.
fn join_causes(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        next = error.source();
        let this = error.to_string();
        let this = this.split(" for url (").next().unwrap_or_default();
        if !text.contains(this) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(this);
        }
    }
    truncate_text(&text).to_owned()
}

fn truncate_text(text: &str) -> &str {
    let end = (0..=300).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderMap, HeaderValue};

    fn error_answer(status: u16, code: &str) -> S3Response {
        let body = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>m</Message></Error>"
        );
        S3Response { status, headers: HeaderMap::new(), body }
    }

    #[test]
    fn error_answers_are_explained_and_classified() {
        for (status, code, class, words) in [
            (403, "SignatureDoesNotMatch", FailureClass::Credentials, "`secret-access-key`"),
            (403, "InvalidAccessKeyId", FailureClass::Credentials, "`access-key-id`"),
            (403, "UserSuspended", FailureClass::Credentials, "UserSuspended"),
            (403, "AccessDenied", FailureClass::Policy, "may not write"),
            (403, "QuotaExceeded", FailureClass::Quota, "quota"),
            (403, "RequestTimeTooSkewed", FailureClass::Clock, "set the time"),
            (404, "NoSuchBucket", FailureClass::Bucket, "`plant` does not exist"),
            (503, "SlowDown", FailureClass::Busy, "503 SlowDown"),
            (503, "", FailureClass::Busy, "overloaded or unavailable (503)"),
            (
                500,
                "InternalError",
                FailureClass::Busy,
                "https://s3.example answered 500 InternalError m",
            ),
            (400, "InvalidRequest", FailureClass::Refused, "answered 400 InvalidRequest m"),
            (400, "AuthorizationHeaderMalformed", FailureClass::Gateway, "`region`"),
            (301, "PermanentRedirect", FailureClass::Gateway, "`endpoint` and `region`"),
        ] {
            let failure =
                explain_answer(&error_answer(status, code), "plant", "https://s3.example");
            assert!(failure.class == class && failure.cause.contains(words), "{code}: {failure:?}");
        }
        let mut busy = error_answer(503, "SlowDown");
        busy.headers.insert("retry-after", HeaderValue::from_static("7"));
        let failure = explain_answer(&busy, "plant", "e");
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn connection_errors_are_explained_and_classified() {
        for (why, connecting, class, words) in [
            ("invalid peer certificate: Expired", true, FailureClass::Certificate, "has expired"),
            (
                "invalid peer certificate: certificate expired: verified at",
                true,
                FailureClass::Certificate,
                "has expired",
            ),
            (
                "invalid peer certificate: NotValidYet",
                true,
                FailureClass::Certificate,
                "not valid yet",
            ),
            (
                "invalid peer certificate: certificate not valid for name \"x\"",
                true,
                FailureClass::Certificate,
                "another name",
            ),
            (
                "invalid peer certificate: UnknownIssuer",
                true,
                FailureClass::Certificate,
                "`ca-file`",
            ),
            (
                "dns error: failed to lookup address information",
                true,
                FailureClass::Unreachable,
                "cannot be resolved",
            ),
            (
                "tcp connect error: Connection refused (os error 111)",
                true,
                FailureClass::Unreachable,
                "refused",
            ),
            ("tcp connect error: No route to host", true, FailureClass::Unreachable, "No route"),
            ("connection reset by peer", false, FailureClass::Broken, "lost"),
        ] {
            let (found, cause) = classify_connection_error(why, connecting, false);
            assert!(found == class && cause.contains(words), "{why}: {found:?} {cause}");
        }
    }

    #[test]
    fn elements_are_found_one_after_the_other() {
        let xml = "<L><C><Key>a&amp;b</Key></C><C><Key>&lt;&quot;</Key></C><C></L>";
        let keys: Vec<_> =
            list_elements(xml, "C").map(|c| first_element(c, "Key").unwrap()).collect();
        assert_eq!(keys, ["a&b", "<\""]);
        assert_eq!(first_element(xml, "Code"), None);
    }

    #[test]
    fn long_answers_are_cut_between_characters() {
        assert_eq!(truncate_text(&"ü".repeat(400)).len(), 300);
        assert_eq!(truncate_text("x"), "x");
    }
}
