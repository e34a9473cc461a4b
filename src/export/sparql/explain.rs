//! Explains error answers of a SPARQL store to the operator.
use crate::cause::DeliveryFailure;
use crate::transport::{HttpAnswer, quote_answer, retry_after, truncate_text};
use penstock_resources::export::Cause;
use reqwest::header::{GetAll, HeaderValue, WWW_AUTHENTICATE};

/// Converts an error answer into a failure with a cause for the operator.
pub(super) fn explain_answer(answer: &HttpAnswer, endpoint: &str) -> DeliveryFailure {
    let needs_digest =
        answer.status == 401 && lists_only_digest(&answer.headers.get_all(WWW_AUTHENTICATE));
    let (class, cause) = if needs_digest {
        let cause = format!(
            "{endpoint} accepts only HTTP Digest (401), which the gateway does not support; put a proxy before it that \
             accepts Basic or a bearer token, or let the store accept one of these"
        );
        (Cause::Credentials, cause)
    } else {
        classify_answer(answer.status, &answer.body, endpoint)
    };
    DeliveryFailure {
        retry_after: retry_after(answer),
        answer: Some(quote_answer(answer.status, [first_line(&answer.body)])),
        ..DeliveryFailure::new(class, cause)
    }
}

/// Returns the first line of an answer. Virtuoso repeats the update below it.
fn first_line(body: &str) -> &str {
    body.lines().next().unwrap_or_default().trim()
}

/// Returns whether these values of `WWW-Authenticate` (RFC 9110, 11.6.1) ask for Digest and for nothing else.
fn lists_only_digest(challenges: &GetAll<'_, HeaderValue>) -> bool {
    let texts: Vec<String> = challenges
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(str::to_ascii_lowercase)
        .collect();
    let has = |scheme: &str| texts.iter().any(|text| text.contains(scheme));
    has("digest ") && !has("basic ") && !has("bearer")
}

/// Converts a successful answer that no SPARQL store gives into a failure.
pub(super) fn explain_other_answer(answer: &HttpAnswer, endpoint: &str) -> DeliveryFailure {
    let kind = answer.header("content-type").unwrap_or("no type");
    let cause = format!(
        "{endpoint} answered {} with something other than a SPARQL store does ({}); a proxy or a sign-in page may be in \
         its place. Correct the target's `endpoint` or the network",
        answer.status,
        truncate_text(kind)
    );
    DeliveryFailure::new(Cause::Bucket, cause)
}

fn classify_answer(status: u16, body: &str, endpoint: &str) -> (Cause, String) {
    let message = truncate_text(first_line(body));
    match status {
        401 => (
            Cause::Credentials,
            format!(
                "{endpoint} refuses the credentials of the target (401); correct its `username` and `password`, or its \
                 `bearer-token`"
            ),
        ),
        403 => (Cause::Policy, explain_policy(endpoint, status)),
        // Virtuoso: "Virtuoso 42000 Error SR186: No permission to execute procedure …".
        _ if message.contains("SR186") => (Cause::Policy, explain_policy(endpoint, status)),
        // Virtuoso: "SR325: Transaction aborted because its log after image size went above the limit".
        _ if message.contains("SR325") => (
            Cause::Quota,
            format!(
                "{endpoint} cannot write an export of this size in one transaction ({status} {message}); raise \
                 `TransactionAfterImageLimit` in its virtuoso.ini"
            ),
        ),
        404 | 405 | 501 => (
            Cause::Bucket,
            format!(
                "there is no endpoint of this `protocol` at {endpoint} ({status}); create the store there, or correct \
                 the target's `endpoint`"
            ),
        ),
        413 => (
            Cause::Quota,
            format!("{endpoint} accepts no request of this size (413); raise its limit"),
        ),
        507 => (Cause::Quota, format!("{endpoint} has no space left (507); free space there")),
        300..=399 => (
            Cause::Gateway,
            format!(
                "{endpoint} points to another address ({status}); correct the target's `endpoint`"
            ),
        ),
        414 => (
            Cause::Quota,
            format!("{endpoint} accepts no URL of this length (414); raise its limit to 8 KiB"),
        ),
        408 => (
            Cause::Busy,
            format!("{endpoint} gave up waiting for the request (408); raise its timeout"),
        ),
        400 => (
            Cause::Refused,
            format!(
                "{}; the endpoint must accept SPARQL 1.1, and its limits a request of 1 MiB. Its log may say more",
                explain_status(endpoint, status, message)
            ),
        ),
        429 | 503 => (Cause::Busy, format!("{endpoint} is overloaded or unavailable ({status})")),
        409 | 500..=599 => (
            Cause::Busy,
            format!(
                "{}; the log of the store may say more",
                explain_status(endpoint, status, message)
            ),
        ),
        _ => (Cause::Refused, explain_status(endpoint, status, message)),
    }
}

fn explain_policy(endpoint: &str, status: u16) -> String {
    format!(
        "the credentials of the target may not write to {endpoint} ({status}); allow updates there"
    )
}

fn explain_status(endpoint: &str, status: u16, message: &str) -> String {
    format!("{endpoint} answered {status} {message}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_answers_are_explained_and_classified() {
        let denied = "Virtuoso 42000 Error SR186: No permission to execute procedure\nINSERT { x }";
        for (status, body, class, words) in [
            (401, "", Cause::Credentials, "`bearer-token`"),
            (403, "", Cause::Policy, "may not write"),
            (500, denied, Cause::Policy, "may not write"),
            (404, "", Cause::Bucket, "correct the target's `endpoint`"),
            (405, "", Cause::Bucket, "`protocol`"),
            (413, "", Cause::Quota, "size"),
            (507, "", Cause::Quota, "free space"),
            (307, "", Cause::Gateway, "another address"),
            (503, "", Cause::Busy, "unavailable (503)"),
            (409, "", Cause::Busy, "e answered 409"),
            (500, "lost\nDATA", Cause::Busy, "e answered 500 lost"),
            (400, "no\nDATA", Cause::Refused, "e answered 400 no"),
            (408, "", Cause::Busy, "timeout"),
            (414, "", Cause::Quota, "length"),
            (500, "Virtuoso 40005 Error SR325: log", Cause::Quota, "AfterImageLimit"),
        ] {
            let (found, cause) = classify_answer(status, body, "e");
            assert!(found == class && cause.contains(words), "{status}: {found:?} {cause}");
            assert!(!cause.contains("DATA") && !cause.contains("INSERT"), "{cause}");
        }
    }

    #[test]
    fn an_endpoint_that_accepts_only_digest_is_named() {
        for (challenges, is_named) in [
            (&["Digest realm=\"SPARQL\", qop=\"auth\""][..], true),
            (&["Digest realm=\"x\"", "Basic realm=\"x\""], false),
            (&["Digest realm=\"x\", Basic realm=\"x\""], false),
            (&["Bearer"], false),
            (&[], false),
        ] {
            let mut headers = reqwest::header::HeaderMap::new();
            for challenge in challenges {
                headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
            }
            let answer = HttpAnswer { status: 401, headers, body: String::new() };
            let failure = explain_answer(&answer, "e");
            assert_eq!(failure.class, Cause::Credentials);
            assert_eq!(failure.cause.contains("Digest"), is_named, "{challenges:?}");
        }
    }
}
