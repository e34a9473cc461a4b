//! The targets and, for Admins, the webhooks: their state, and tests of them.
use super::frame::{Frame, PageReply, PageResult, Section};
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_export::{ProbeResult, TargetState, WebhookState, WebhookTest};
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_service::{targets, webhooks};
use salvo::{Depot, Request, handler};

#[derive(Template)]
#[template(path = "admin/targets.html")]
struct List {
    frame: Frame,
    targets: Vec<Target>,
    /// None unless the caller is an Admin.
    webhooks: Vec<Webhook>,
}

/// One webhook.
struct Webhook {
    name: String,
    url: String,
    class: &'static str,
    state: &'static str,
    blocked: Option<Blocked>,
    waiting: String,
    oldest: Option<String>,
    last: Option<String>,
    dropped: u64,
}

/// One target.
struct Target {
    name: String,
    kind: &'static str,
    class: &'static str,
    state: &'static str,
    blocked: Option<Blocked>,
    paused: Option<String>,
    remark: Option<String>,
    waiting: String,
    oldest: Option<String>,
    last: Option<String>,
    /// The number of Business Objects whose exports wait for space in the spool.
    without_capacity: u64,
}

/// Why and since when a target is blocked.
struct Blocked {
    cause: String,
    since: Option<String>,
    attempts: String,
    next: Option<String>,
}

/// Shows all targets.
#[handler]
pub(crate) async fn list_targets(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::Targets);
    let targets = targets::list_targets(&gateway(depot)?).await?;
    let targets = targets.into_iter().map(Target::from_state).collect();
    let webhooks = if frame.may(Role::Admin) {
        webhooks::list_webhooks(&gateway(depot)?, caller(depot)).await?
    } else {
        Vec::new()
    };
    let webhooks = webhooks.into_iter().map(Webhook::from_state).collect();
    Ok(PageReply::show(&List { frame, targets, webhooks }))
}

/// Tests one webhook.
#[handler]
pub(crate) async fn test_webhook(req: &mut Request, depot: &mut Depot) -> PageResult {
    let name = path_parameter(req, "name");
    let WebhookTest { webhook, cause, milliseconds, .. } =
        webhooks::test_webhook(&gateway(depot)?, caller(depot), name).await?;
    Ok(match cause {
        None => {
            let words = format!("{webhook} accepted a test event after {milliseconds} ms.");
            PageReply::redirect("/admin/targets", words)
        }
        Some(cause) => {
            let words = format!("{webhook} did not accept a test event: {cause}");
            PageReply::redirect_with_error("/admin/targets", words)
        }
    })
}

/// Tests one target.
#[handler]
pub(crate) async fn test_target(req: &mut Request, depot: &mut Depot) -> PageResult {
    let name = path_parameter(req, "bucketName");
    let ProbeResult { target, ok, cause, milliseconds, .. } =
        targets::test_target(&gateway(depot)?, caller(depot), name).await?;
    let cause = cause.unwrap_or_default();
    Ok(if ok {
        let remark = if cause.is_empty() { cause } else { format!(" Note: {cause}.") };
        let words = format!(
            "{target} responded in {milliseconds} ms, and nothing was found that would prevent a delivery.{remark}"
        );
        PageReply::redirect("/admin/targets", words)
    } else {
        let words = format!("{target} would not accept exports: {cause}");
        PageReply::redirect_with_error("/admin/targets", words)
    })
}

impl Target {
    fn from_state(target: TargetState) -> Self {
        let (class, state) = match (&target.blocked, &target.paused, target.reachable) {
            (Some(_), ..) => ("bad", "blocked"),
            (None, Some(_), _) if target.depth > 0 => ("warn", "paused"),
            (None, _, Some(true)) => ("good", "reachable"),
            (None, _, Some(false)) => ("warn", "unreachable"),
            (None, _, None) => ("", "not tried yet"),
        };
        let blocked = target.blocked.map(|cause| Blocked {
            cause,
            since: target.blocked_since.as_deref().map(words::format_age),
            attempts: words::format_count(target.attempts, "attempt", "attempts"),
            next: target.next_attempt.as_deref().map(words::format_utc),
        });
        let size = words::format_size(target.bytes);
        Self {
            kind: match target.kind {
                "s3" => "S3 bucket",
                "sparql" => "SPARQL store",
                _ => "directory",
            },
            class,
            state,
            blocked,
            paused: target.paused,
            remark: target.remark,
            waiting: match target.depth {
                0 => "none".to_owned(),
                depth => format!("{}, {size}", words::format_count(depth, "export", "exports")),
            },
            oldest: target.oldest.as_deref().map(words::format_age),
            last: target.last_delivery.as_deref().map(words::format_age),
            without_capacity: target.waiting,
            name: target.name,
        }
    }
}

impl Webhook {
    fn from_state(webhook: WebhookState) -> Self {
        let (class, state) = match (&webhook.disabled_since, &webhook.blocked) {
            (Some(_), _) => ("bad", "disabled"),
            (None, Some(_)) => ("bad", "blocked"),
            (None, None) if webhook.last_delivery.is_some() => ("good", "delivering"),
            (None, None) => ("", "nothing delivered yet"),
        };
        let blocked = webhook.blocked.map(|cause| Blocked {
            cause,
            since: webhook.blocked_since.as_deref().map(words::format_age),
            attempts: words::format_count(webhook.attempts, "attempt", "attempts"),
            next: webhook.next_attempt.as_deref().map(words::format_utc),
        });
        let size = words::format_size(webhook.bytes);
        Self {
            url: webhook.url,
            class,
            state,
            blocked,
            waiting: match webhook.waiting {
                0 => "none".to_owned(),
                count => format!("{}, {size}", words::format_count(count, "event", "events")),
            },
            oldest: webhook.oldest.as_deref().map(words::format_age),
            last: webhook.last_delivery.as_deref().map(words::format_age),
            dropped: webhook.dropped,
            name: webhook.name,
        }
    }
}
