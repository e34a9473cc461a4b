//! The targets: their state, and a test of whether they would accept files.
use super::frame::{Frame, PageReply, PageResult, Section};
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_export::{ProbeResult, TargetState};
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_service::targets;
use salvo::{Depot, Request, handler};

#[derive(Template)]
#[template(path = "admin/targets.html")]
struct List {
    frame: Frame,
    targets: Vec<Target>,
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
    Ok(PageReply::show(&List { frame, targets }))
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
