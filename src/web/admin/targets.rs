//! The targets and, for Admins, the webhooks: their state, and tests of them.
use super::configured::{SettingGroup, SettingRow};
use super::exports::StatusLabel;
use super::frame::{Frame, PageReply, PageResult, Section};
use super::target_state::{Remedy, StateLabel, describe_kind};
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_resources::export::{self, Export, TargetTest};
use penstock_resources::webhook::{self, WebhookTest};
use penstock_service::{exports, targets, webhooks};
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
    state: StateLabel,
    blocked: Option<Blocked>,
    waiting: String,
    oldest: Option<String>,
    last: Option<String>,
    dropped: u64,
}

#[derive(Template)]
#[template(path = "admin/target.html")]
struct One {
    frame: Frame,
    target: Target,
    /// The export that is delivered next.
    first: Option<First>,
    /// The Business Objects that name the target: id and name.
    used_by: Vec<(String, String)>,
    /// `None` if the viewer may not see settings.
    settings: Option<SettingGroup>,
}

/// One target.
struct Target {
    name: String,
    kind: &'static str,
    state: StateLabel,
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
    answer: Option<String>,
    remedy: Option<Remedy>,
    since: Option<String>,
    attempts: String,
    next: Option<String>,
}

/// The first export of a queue.
struct First {
    id: String,
    words: String,
    state: StatusLabel,
}

impl One {
    /// Returns the settings to check after the failure.
    fn suspects(&self) -> Vec<&SettingRow> {
        let remedy = self.target.blocked.as_ref().and_then(|blocked| blocked.remedy);
        match (&self.settings, remedy) {
            (Some(settings), Some(remedy)) => settings.find_rows(remedy.settings),
            _ => Vec::new(),
        }
    }
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

/// Shows one target.
#[handler]
pub(crate) async fn show_target(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::Targets);
    let gateway = gateway(depot)?;
    let target = targets::find_target(&gateway, path_parameter(req, "bucketName")).await?;
    let (queued, _) = exports::list_queue(&gateway, &target.name, 1).await?;
    let is_admin = frame.may(Role::Admin);
    let settings = is_admin
        .then(|| SettingGroup::of_target(state(depot).settings(), &target.name, target.kind));
    let all = gateway.catalogue.list();
    let users = all.iter().map(|compiled| &compiled.object).filter(|object| {
        let mut names = object.definition.push_targets.iter().map(|one| &one.bucket_name);
        names.any(|name| *name == target.name)
    });
    let used_by = users.map(|object| (object.id.clone(), object.definition.name.clone())).collect();
    let mut target = Target::from_state(target);
    // The answer of a server may name its accounts, paths and internal hosts.
    if let Some(blocked) = target.blocked.as_mut().filter(|_| !is_admin) {
        blocked.answer = None;
    }
    let page =
        One { used_by, first: queued.into_iter().next().map(First::from), target, settings, frame };
    Ok(PageReply::show(&page))
}

/// Tests one target.
#[handler]
pub(crate) async fn test_target(req: &mut Request, depot: &mut Depot) -> PageResult {
    let name = path_parameter(req, "bucketName");
    let TargetTest { target, kind, ok, cause, caused_by, answer, milliseconds, .. } =
        targets::test_target(&gateway(depot)?, caller(depot), name).await?;
    let page = format!("/admin/targets/{target}");
    let cause = cause.unwrap_or_default();
    Ok(if ok {
        let remark = if cause.is_empty() { cause } else { format!(" Note: {cause}.") };
        let words = format!(
            "{target} responded in {milliseconds} ms, and nothing was found that would prevent a delivery.{remark}"
        );
        PageReply::redirect(page, words)
    } else {
        let answer = answer.map(|answer| format!(" The server answered: {answer}."));
        let remedy = caused_by.map(|class| format!(" {}", Remedy::of_failure(class, kind).words));
        let words = format!(
            "{target} would not accept exports: {cause}.{}{}",
            answer.unwrap_or_default(),
            remedy.unwrap_or_default()
        );
        PageReply::redirect_with_error(page, words)
    })
}

impl Target {
    fn from_state(target: export::Target) -> Self {
        let label = StateLabel::of_target(&target);
        let remedy = target.blocked_by.map(|class| Remedy::of_failure(class, target.kind));
        let blocked = target.blocked.map(|cause| Blocked {
            cause,
            answer: target.answer,
            remedy,
            since: target.blocked_since.as_deref().map(words::format_age),
            attempts: words::format_count(target.attempts, "attempt", "attempts"),
            next: target.next_attempt.as_deref().map(words::format_utc),
        });
        let size = words::format_size(target.bytes);
        Self {
            kind: describe_kind(target.kind),
            state: label,
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
    fn from_state(webhook: webhook::Webhook) -> Self {
        let state = StateLabel::of_webhook(&webhook);
        let blocked = webhook.blocked.map(|cause| Blocked {
            cause,
            answer: None,
            remedy: None,
            since: webhook.blocked_since.as_deref().map(words::format_age),
            attempts: words::format_count(webhook.attempts, "attempt", "attempts"),
            next: webhook.next_attempt.as_deref().map(words::format_utc),
        });
        let size = words::format_size(webhook.bytes);
        Self {
            url: webhook.url,
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

impl From<Export> for First {
    fn from(entry: Export) -> Self {
        Self {
            words: format!("Export {} of {}", entry.sequence, entry.business_object_name),
            state: StatusLabel::from_status(entry.status),
            id: entry.id,
        }
    }
}
