//! Explains connection errors to the operator.
use super::answer::{HttpAnswer, LostRequest, RequestError};
use crate::cause::{DeliveryFailure, unreadable_file_failure};
use chrono::{DateTime, Utc};
use penstock_base::time;
use penstock_resources::export::Cause;
use std::time::Duration;

/// Returns the `Retry-After` of an answer: seconds, or the time until a date (RFC 9110, 10.2.3).
pub(crate) fn retry_after(answer: &HttpAnswer) -> Option<Duration> {
    let text = answer.header("retry-after")?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    Some((parse_date(text)? - Utc::now()).to_std().unwrap_or_default())
}

/// Parses a date in a header (RFC 9110, 5.6.7).
pub(crate) fn parse_date(text: &str) -> Option<DateTime<Utc>> {
    Some(DateTime::parse_from_rfc2822(text).ok()?.with_timezone(&Utc))
}

/// Quotes an error answer: the status, and the texts of it that are not empty.
pub(crate) fn quote_answer<const N: usize>(status: u16, texts: [&str; N]) -> String {
    let texts = texts.into_iter().map(truncate_text).filter(|text| !text.is_empty());
    texts.fold(status.to_string(), |quoted, text| format!("{quoted} {text}"))
}

/// Converts a request without an answer into a failure.
pub(crate) fn explain_lost(lost: &LostRequest, endpoint: &str) -> DeliveryFailure {
    match &lost.why {
        RequestError::NotCreated(cause) => DeliveryFailure::of_gateway(cause.clone()),
        RequestError::Source(cause) => unreadable_file_failure(cause),
        RequestError::Stalled(silent) => DeliveryFailure::new(
            Cause::Broken,
            format!("{endpoint} accepted no data and sent no answer for {} s", silent.as_secs()),
        ),
        RequestError::Http(error) => {
            let why = join_causes(error);
            let stage =
                if error.is_connect() { RequestStage::Connecting } else { RequestStage::Connected };
            let (class, cause) = classify_connection_error(&why, stage, error.is_timeout());
            DeliveryFailure::new(class, format!("{endpoint} {cause}"))
        }
    }
}

/// How far a request came before it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestStage {
    /// The connection was not established.
    Connecting,
    /// The request was being sent, or the gateway waited for its answer.
    Connected,
}

/// Classifies a connection error. The returned text continues a sentence that starts with the endpoint.
fn classify_connection_error(why: &str, stage: RequestStage, is_timeout: bool) -> (Cause, String) {
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
            "has a TLS certificate for another name; correct the address in the settings".to_owned()
        } else {
            format!(
                "has a TLS certificate that is not trusted; add its authority to the `ca-file` ({why})"
            )
        };
        return (Cause::Certificate, cause);
    }
    if stage == RequestStage::Connecting {
        let cause = if has(&["dns error", "lookup"]) {
            format!("cannot be reached: its name cannot be resolved ({why})")
        } else if has(&["refused"]) {
            "cannot be reached: the connection was refused, no server listens there".to_owned()
        } else if is_timeout {
            "cannot be reached: no connection in time".to_owned()
        } else {
            format!("cannot be reached: {why}")
        };
        return (Cause::Unreachable, cause);
    }
    if is_timeout {
        return (Cause::Broken, "did not answer in time".to_owned());
    }
    (Cause::Broken, format!("closed or lost the connection: {why}"))
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

/// Returns the beginning of a text of the server, at most 300 bytes.
pub(crate) fn truncate_text(text: &str) -> &str {
    let end = (0..=300).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_errors_are_explained_and_classified() {
        for (why, connecting, class, words) in [
            ("invalid peer certificate: Expired", true, Cause::Certificate, "has expired"),
            (
                "invalid peer certificate: certificate expired: verified at",
                true,
                Cause::Certificate,
                "has expired",
            ),
            ("invalid peer certificate: NotValidYet", true, Cause::Certificate, "not valid yet"),
            (
                "invalid peer certificate: certificate not valid for name \"x\"",
                true,
                Cause::Certificate,
                "another name",
            ),
            ("invalid peer certificate: UnknownIssuer", true, Cause::Certificate, "`ca-file`"),
            (
                "dns error: failed to lookup address information",
                true,
                Cause::Unreachable,
                "cannot be resolved",
            ),
            (
                "tcp connect error: Connection refused (os error 111)",
                true,
                Cause::Unreachable,
                "refused",
            ),
            ("tcp connect error: No route to host", true, Cause::Unreachable, "No route"),
            ("connection reset by peer", false, Cause::Broken, "lost"),
        ] {
            let stage = if connecting { RequestStage::Connecting } else { RequestStage::Connected };
            let (found, cause) = classify_connection_error(why, stage, false);
            assert!(found == class && cause.contains(words), "{why}: {found:?} {cause}");
        }
    }

    #[test]
    fn a_server_asks_for_a_delay_in_seconds_or_until_a_date() {
        let asked = |value: &str| {
            let mut headers = reqwest::header::HeaderMap::new();
            headers.insert("retry-after", value.parse().unwrap());
            let answer = HttpAnswer { status: 503, headers, body: String::new() };
            retry_after(&answer)
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(asked("7"), seconds(7));
        assert_eq!(asked("900"), seconds(900));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:37 GMT"), seconds(0));
        assert!(asked("Fri, 06 Nov 2093 08:49:37 GMT") > seconds(86_400));
        assert_eq!(asked("soon"), None);
    }

    #[test]
    fn long_answers_are_cut_between_characters() {
        assert_eq!(truncate_text(&"ü".repeat(400)).len(), 300);
        assert_eq!(truncate_text("x"), "x");
    }
}
