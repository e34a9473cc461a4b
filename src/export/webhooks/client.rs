//! One signed request with an event, by Standard Webhooks 1.0.
use crate::backoff::DeliveryTimings;
use crate::cause::DeliveryFailure;
use crate::transport::{
    self, HttpAnswer, Progress, bytes_body, explain_lost, parse_date, retry_after, truncate_text,
};
use crate::uplink::Uplink;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use penstock_base::time;
use penstock_config::{Webhook, WebhookSecret, display_origin};
use penstock_resources::export::Cause;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use reqwest::{Client, Url};
use ring::hmac;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The maximum bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 4 << 10;
/// The time that a receiver may take in addition to the idle timeout of deliveries.
const PROCESSING_TIME: Duration = Duration::from_secs(20);
/// The maximum difference between the clocks of both sides. Libraries of Standard Webhooks refuse more.
const MAX_CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(5);
/// The product and version in requests (RFC 9110, 10.1.5).
const PRODUCT: &str = concat!("Penstock/", env!("CARGO_PKG_VERSION"));

/// Why an event was not accepted.
#[derive(Debug)]
pub(super) struct SendFailure {
    pub(super) failure: DeliveryFailure,
    /// Whether the receiver wants no more events (410).
    pub(super) is_gone: bool,
}

impl From<DeliveryFailure> for SendFailure {
    fn from(failure: DeliveryFailure) -> Self {
        Self { failure, is_gone: false }
    }
}

/// Sends requests to one webhook.
pub(super) struct WebhookClient {
    client: Client,
    url: Url,
    secret: WebhookSecret,
    timings: DeliveryTimings,
    uplink: Arc<Uplink>,
}

impl fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookClient({})", display_origin(self.url.as_str()))
    }
}

impl WebhookClient {
    /// Prepares requests. Sends nothing.
    pub(super) fn open(
        webhook: &Webhook,
        timings: &DeliveryTimings,
        uplink: &Arc<Uplink>,
    ) -> Result<Self, SendFailure> {
        let url = Url::parse(&webhook.url)
            .map_err(|error| DeliveryFailure::of_gateway(format!("the `url` is none: {error}")))?;
        let client = transport::build_client(webhook.ca_file.as_deref(), timings)
            .map_err(DeliveryFailure::of_gateway)?;
        let (secret, uplink) = (webhook.secret.clone(), Arc::clone(uplink));
        Ok(Self { client, url, secret, timings: *timings, uplink })
    }

    /// Sends an event. Returns once the receiver has accepted it.
    pub(super) async fn send(&self, id: &str, json: String) -> Result<(), SendFailure> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let signature = sign(&self.secret, id, seconds, &json);
        let length = json.len() as u64;
        let progress = Arc::new(Progress::begin(&self.timings, length, PROCESSING_TIME));
        let body = bytes_body(Bytes::from(json), Arc::clone(&self.uplink), Arc::clone(&progress));
        let request = self
            .client
            .post(self.url.clone())
            .header(USER_AGENT, PRODUCT)
            .header(CONTENT_TYPE, "application/json")
            .header(CONTENT_LENGTH, length)
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signature)
            .body(body);
        let sent = transport::send_for_status(request, &progress, MAX_ANSWER_BYTES);
        let receiver = display_origin(self.url.as_str());
        let answer = sent.await.map_err(|lost| explain_lost(&lost, &receiver))?;
        check_answer(&answer, &receiver, Utc::now())
    }
}

/// Returns the value of `webhook-signature`.
fn sign(secret: &WebhookSecret, id: &str, seconds: u64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signed = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(signed))
}

/// Checks that the receiver has accepted the event.
fn check_answer(
    answer: &HttpAnswer,
    receiver: &str,
    now: DateTime<Utc>,
) -> Result<(), SendFailure> {
    let status = answer.status;
    let (class, cause) = match status {
        200..=299 => return Ok(()),
        300..=399 => (
            Cause::Gateway,
            format!(
                "{receiver} points to another address ({status}), which is not followed; correct the `url`"
            ),
        ),
        400 | 401 | 403 if has_other_time(answer, now) => (
            Cause::Clock,
            format!(
                "{receiver} refuses the event ({status}); the clock of this gateway ({}) and that of the receiver \
                 ({}) differ too much, set the time",
                time::now_rfc3339(),
                answer.header("date").unwrap_or_default(),
            ),
        ),
        401 | 403 => (
            Cause::Credentials,
            format!(
                "{receiver} refuses the event ({status}); compare the `secret` and the clocks of both sides"
            ),
        ),
        404 | 405 => (
            Cause::Gateway,
            format!("there is no receiver at {receiver} ({status}); correct the `url`"),
        ),
        410 => (
            Cause::Gateway,
            format!(
                "{receiver} wants no more events (410); remove the webhook, or test it once the receiver accepts events again"
            ),
        ),
        429 | 503 => (Cause::Busy, format!("{receiver} is overloaded or unavailable ({status})")),
        408 | 500..=599 => (Cause::Busy, describe_answer(answer, receiver)),
        _ => (Cause::Refused, describe_answer(answer, receiver)),
    };
    let failure =
        DeliveryFailure { retry_after: retry_after(answer), ..DeliveryFailure::new(class, cause) };
    Err(SendFailure { failure, is_gone: status == 410 })
}

/// Returns whether the time of the receiver differs too much from the gateway's.
fn has_other_time(answer: &HttpAnswer, now: DateTime<Utc>) -> bool {
    let date = answer.header("date").and_then(parse_date);
    date.is_some_and(|date| (date - now).abs() > MAX_CLOCK_DIFFERENCE)
}

fn describe_answer(answer: &HttpAnswer, receiver: &str) -> String {
    let line = answer.body.lines().next().unwrap_or_default().trim();
    let line: String = truncate_text(line).chars().filter(|c| !c.is_control()).collect();
    format!("{receiver} answered {} {line}", answer.status).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderMap, HeaderValue};

    /// The example of the specification (standard-webhooks, spec/standard-webhooks.md), which its libraries test too.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let signature =
            sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn answers_are_explained_and_classified() {
        for (status, class, words) in [
            (301, Cause::Gateway, "not followed"),
            (400, Cause::Refused, "answered 400 first line"),
            (401, Cause::Credentials, "`secret`"),
            (404, Cause::Gateway, "no receiver"),
            (410, Cause::Gateway, "no more events"),
            (429, Cause::Busy, "overloaded"),
            (500, Cause::Busy, "answered 500 first line"),
            (503, Cause::Busy, "overloaded"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", HeaderValue::from_static("86400"));
            let body = "first line\u{7}\nsecond line".to_owned();
            let answer = HttpAnswer { status, headers, body };
            let SendFailure { failure, is_gone } =
                check_answer(&answer, "https://a.example", Utc::now()).unwrap_err();
            assert!(failure.class == class && failure.cause.contains(words), "{failure:?}");
            assert!(!failure.cause.contains("second"), "{failure:?}");
            assert_eq!(failure.retry_after, Some(Duration::from_hours(24)));
            assert_eq!(is_gone, status == 410);
        }
        let accepted = HttpAnswer { status: 204, headers: HeaderMap::new(), body: String::new() };
        assert!(check_answer(&accepted, "x", Utc::now()).is_ok());
    }

    #[test]
    fn a_refusal_by_a_receiver_with_another_time_is_explained() {
        let now = parse_date("Sun, 01 Mar 2026 12:00:00 GMT").unwrap();
        let class_of = |status, date: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("date", HeaderValue::from_static(date));
            let answer = HttpAnswer { status, headers, body: String::new() };
            check_answer(&answer, "x", now).unwrap_err().failure.class
        };
        for status in [400, 401, 403] {
            assert_eq!(class_of(status, "Sun, 01 Mar 2026 12:05:01 GMT"), Cause::Clock);
            assert_eq!(class_of(status, "Sun, 01 Mar 2026 11:54:59 GMT"), Cause::Clock);
            assert_ne!(class_of(status, "Sun, 01 Mar 2026 12:05:00 GMT"), Cause::Clock);
            assert_ne!(class_of(status, "no date"), Cause::Clock);
        }
        assert_eq!(class_of(500, "Sun, 01 Mar 2026 13:00:00 GMT"), Cause::Busy);
    }
}
