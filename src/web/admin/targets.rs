//! The targets and, for Admins, the webhooks: their state, and tests of them.
use super::configured::{SettingGroup, SettingRow};
use super::frame::{Frame, PageReply, PageResult};
use super::labels::{self, Labelled as _};
use super::menu::Section;
use super::remedy::Remedy;
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_resources::export::{Export, Target, TargetTest};
use penstock_resources::webhook::{Webhook, WebhookTest};
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

#[derive(Template)]
#[template(path = "admin/target.html")]
struct One {
    frame: Frame,
    target: Target,
    /// What to do about its failure.
    remedy: Option<Remedy>,
    /// The export that is delivered next.
    first: Option<Export>,
    /// The Business Objects that name the target: id and name.
    used_by: Vec<(String, String)>,
    /// `None` if the viewer may not see settings.
    settings: Option<SettingGroup>,
}

impl One {
    /// Returns the settings to check after the failure.
    fn suspects(&self) -> Vec<&SettingRow> {
        match (&self.settings, self.remedy) {
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
    let webhooks = if frame.may(Role::Admin) {
        webhooks::list_webhooks(&gateway(depot)?, caller(depot)).await?
    } else {
        Vec::new()
    };
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
    let mut target = targets::find_target(&gateway, path_parameter(req, "bucketName")).await?;
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
    // The answer of a server may name its accounts, paths and internal hosts.
    target.answer = target.answer.filter(|_| is_admin);
    Ok(PageReply::show(&One {
        remedy: target.blocked_by.map(|class| Remedy::of_failure(class, target.kind)),
        first: queued.into_iter().next(),
        used_by,
        target,
        settings,
        frame,
    }))
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
