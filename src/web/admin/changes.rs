//! `/admin/changes/{id}`: shows the difference of a change, and takes steps of it.
use super::form::{Form, take_form};
use super::frame::{Frame, PageReply, PageResult};
use super::labels::Labelled as _;
use super::menu::Section;
use super::pager::Pager;
use super::words;
use askama::Template;
use decision::{ActionButton, Refusal, Verdict, is_shown_with_change, is_useful};
use difference::ChangedObject;
use penstock_auth::Caller;
use penstock_base::IfMatch;
use penstock_base::json::unescape_token;
use penstock_base::principal::Principal;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::{NumbersCursor, Query, cursor_after};
use penstock_http::state::{gateway, state};
use penstock_http::trace::trace;
use penstock_model::changes::{Change, ChangeAction, ChangeCounts, HistoryEntry};
use penstock_resources::change::ChangeState;
use penstock_service::changes::{
    self, ChangeDetails, ChangeStep, Relation, VisibleChange, list_allowed_actions,
};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};

mod decision;
pub(super) mod difference;
pub(crate) mod list;
pub(crate) mod to_approve;

/// A change in a list.
pub(super) struct ChangeRow {
    pub(super) change: Change,
    pub(super) summary: String,
    pub(super) author: String,
}

#[derive(Template)]
#[template(path = "admin/change.html")]
struct One {
    frame: Frame,
    progress: Progress,
    /// What happened with the step that this page was sent for.
    refusal: Option<Refusal>,
    warnings: Vec<String>,
    objects: Vec<ChangedObject>,
    /// Nested objects, and objects that nothing refers to any more.
    others: Vec<ChangedObject>,
    /// Whether this is the first page of the difference, which has everything else too.
    is_first: bool,
    verdict: Option<Verdict>,
    actions: Vec<ActionButton>,
    comment: String,
    pager: Pager,
}

/// What changes on the page of a change while somebody looks at it.
struct Progress {
    id: String,
    version: u64,
    business_object: String,
    /// The address of the Business Object, if it still exists.
    business_object_path: Option<String>,
    state: ChangeState,
    summary: String,
    author: String,
    created: String,
    owners: Vec<String>,
    unknown_owners: Vec<String>,
    approvers: Vec<String>,
    history: Vec<HistoryRow>,
}

struct HistoryRow {
    at: String,
    by: String,
    what: &'static str,
    comment: Option<String>,
}

#[derive(Template)]
#[template(path = "admin/change_progress.html")]
struct ProgressPart {
    frame: Frame,
    progress: Progress,
}

impl ChangeRow {
    pub(super) fn new(visible: VisibleChange, gateway: &Gateway, by: &Caller) -> Self {
        let VisibleChange { change, relation, .. } = visible;
        Self {
            summary: describe_counts(change.counts),
            author: describe_author(&change, gateway, by, relation),
            change,
        }
    }
}

fn describe_counts(counts: ChangeCounts) -> String {
    let ChangeCounts { created, updated, unchanged, deleted } = counts;
    let parts = [(created, "new"), (updated, "changed"), (deleted, "removed")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<_> =
        parts.map(|(count, word)| format!("{} {word}", words::format_number(count))).collect();
    if parts.is_empty() {
        parts.push(format!("{} not changed", words::format_number(unchanged)));
    }
    parts.join(", ")
}

/// Returns the name of an account, for those who may know it. Approvers and Admins know which accounts there are, others know
/// only their own.
fn describe_account(gateway: &Gateway, by: &Caller, relation: Relation, id: &str) -> String {
    if id == "local" {
        return "local administration".to_owned();
    }
    if let Some(key) = gateway.auth.keys.get(by, id) {
        return format!("API key {:?}", key.name);
    }
    let may_know = relation.is_approver || relation.is_admin || by.id() == id;
    words::name_account(gateway, id, may_know)
}

fn describe_author(change: &Change, gateway: &Gateway, by: &Caller, relation: Relation) -> String {
    let author = describe_account(gateway, by, relation, &change.author);
    let key = change.api_key.as_ref().filter(|key| **key != change.author);
    match key.and_then(|id| gateway.auth.keys.get(by, id)) {
        Some(key) => format!("{author}, with the API key {:?}", key.name),
        None => author,
    }
}

/// Shows one change.
#[handler]
pub(crate) async fn show_change(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["cursor"])?;
    let place = match query.read_cursor::<NumbersCursor>()? {
        Some((version, last)) => (Some(version), last.saturating_add(1)),
        None => (None, 0),
    };
    build_page(req, depot, place, None, String::new()).await
}

/// Shows the part of a change's page that is kept up to date.
#[handler]
pub(crate) async fn show_progress(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let id = path_parameter(req, "id").to_owned();
    let visible = changes::read_visible_change(&gateway, by, id).await?;
    let progress = Progress::from_visible(&visible, &gateway, by);
    let frame = Frame::new(req, depot, Section::Changes);
    Ok(PageReply::show_fragment(&ProgressPart { frame, progress }))
}

/// Takes a step of a change: what a button of its page asks for.
pub(crate) struct StepForm(pub(crate) ChangeAction);

#[handler]
impl StepForm {
    async fn handle(&self, req: &mut Request, depot: &mut Depot) -> PageResult {
        take_step(req, depot, self.0).await
    }
}

async fn take_step(req: &Request, depot: &mut Depot, action: ChangeAction) -> PageResult {
    let form = take_form(depot);
    let comment = Some(form.text("comment").trim().to_owned()).filter(|it| !it.is_empty());
    let id = path_parameter(req, "id").to_owned();
    let step = ChangeStep {
        id: id.clone(),
        action,
        if_match: read_version(&form, action),
        comment: comment.clone(),
        trace: trace(depot),
    };
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let permit = match action {
        ChangeAction::Approve | ChangeAction::Rebase => {
            let bytes = changes::measure_change(&gateway, by, id.clone()).await?;
            Some(state(depot).body_quotas.data.try_acquire(bytes)?)
        }
        ChangeAction::Submit | ChangeAction::Reject | ChangeAction::Withdraw => None,
    };
    let taken = changes::take_step(&gateway, by, step).await;
    drop(permit);
    match taken {
        Ok(_) => {
            let words = match action {
                ChangeAction::Submit => "The change was submitted. It waits for approval now.",
                ChangeAction::Approve => "The change was approved and published.",
                ChangeAction::Reject => "The change was rejected. Nothing of it is published.",
                ChangeAction::Withdraw => "The change was withdrawn. Nothing of it is published.",
                ChangeAction::Rebase => {
                    "The difference was computed again. It shows what the change would do now."
                }
            };
            Ok(PageReply::redirect(format!("/admin/changes/{id}"), words))
        }
        Err(error) if is_shown_with_change(error.class) => {
            let refusal = Refusal::from_error(error, action);
            build_page(req, depot, (None, 0), Some(refusal), comment.unwrap_or_default()).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the version that the viewer has seen. Withdrawing and rebasing do not depend on what was seen.
fn read_version(form: &Form, action: ChangeAction) -> IfMatch {
    match action {
        ChangeAction::Withdraw | ChangeAction::Rebase => IfMatch::Any,
        ChangeAction::Submit | ChangeAction::Approve | ChangeAction::Reject => {
            // No change has the version 0.
            IfMatch::Version(form.version().unwrap_or_default())
        }
    }
}

/// Builds the page of a change, with a page of its difference.
async fn build_page(
    req: &Request,
    depot: &Depot,
    (version, page): (Option<u64>, u32),
    refusal: Option<Refusal>,
    comment: String,
) -> PageResult {
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let id = path_parameter(req, "id").to_owned();
    let bytes = changes::measure_change(&gateway, by, id.clone()).await?;
    let _permit = state(depot).body_quotas.data.try_acquire(bytes)?;
    let details = changes::read_change(&gateway, by, id, version, page).await?;
    let frame = Frame::new(req, depot, Section::Changes);
    let status = refusal.as_ref().map_or(StatusCode::OK, |refusal| refusal.status);
    let page = One {
        refusal,
        comment,
        is_first: page == 0,
        ..One::from_details(frame, &gateway, by, details, page)
    };
    Ok(PageReply::show_with_status(status, &page))
}

impl One {
    fn from_details(
        frame: Frame,
        gateway: &Gateway,
        by: &Caller,
        details: ChangeDetails,
        page: u32,
    ) -> Self {
        let ChangeDetails { visible, content, difference, next_page, applicability } = details;
        let change = &visible.change;
        let compiled = gateway.catalogue.get(&change.business_object);
        let label = compiled.as_ref().and_then(|one| one.mapping.find_label_field());
        let label = label.map(|(_, field)| field);
        let (is_published, nesting) =
            (change.state == ChangeState::Approved, gateway.settings.limits.nesting);
        let (requested, nested): (Vec<_>, Vec<_>) =
            difference.into_iter().partition(|item| item.index.is_some());
        let show = |item| ChangedObject::from_item(item, label, is_published, nesting, &frame);
        let objects: Vec<_> = requested.into_iter().map(show).collect();
        let warnings = content.map(|content| content.warnings).unwrap_or_default();
        let warnings = warnings.into_iter().map(|warning| {
            let place = describe_place(&warning.pointer, &objects);
            if place.is_empty() { warning.message } else { format!("{place}: {}", warning.message) }
        });
        let warnings = warnings.collect();
        let path = format!("/admin/changes/{}", change.id);
        let next = next_page.map(|_| cursor_after(&format!("{}-{page}", visible.change.version)));
        let is_open = change.state.is_open() && page == 0;
        let actions = list_allowed_actions(gateway, by, &visible);
        let actions =
            actions.into_iter().filter(|action| is_useful(*action, applicability.as_ref()));
        Self {
            progress: Progress::from_visible(&visible, gateway, by),
            refusal: None,
            warnings,
            objects,
            others: nested.into_iter().map(show).collect(),
            is_first: true,
            verdict: is_open.then(|| Verdict::from_applicability(applicability.as_ref())),
            actions: actions.filter(|_| is_open).map(ActionButton::from).collect(),
            comment: String::new(),
            pager: Pager::new(&frame, &path, &[], page == 0, next.as_deref()),
            frame,
        }
    }
}

/// Formats a JSON Pointer into `{"data": [...]}` for people: `P-101 › flow`.
fn describe_place(pointer: &str, objects: &[ChangedObject]) -> String {
    let mut names = pointer.split('/').skip(2).map(unescape_token);
    let index = names.next().and_then(|index| index.parse::<usize>().ok());
    let Some(index) = index else { return String::new() };
    let object = objects.iter().find(|object| object.index == Some(index));
    let object =
        object.map_or_else(|| format!("object {}", index + 1), |found| found.label.clone());
    let names = names.map(|name| match name.parse::<usize>() {
        Ok(index) => (index + 1).to_string(),
        Err(_) => name,
    });
    std::iter::once(object).chain(names).collect::<Vec<_>>().join(" › ")
}

impl Progress {
    fn from_visible(visible: &VisibleChange, gateway: &Gateway, by: &Caller) -> Self {
        let VisibleChange { change, relation, approvers, unknown_owners } = visible;
        let show = |one: &HistoryEntry, is_first| HistoryRow {
            at: words::format_utc(&one.at),
            by: match &one.by {
                Some(id) => describe_account(gateway, by, *relation, id),
                None => "the gateway".to_owned(),
            },
            what: describe_step(one, is_first),
            comment: one.comment.clone(),
        };
        let name = |principal: &Principal| {
            let may_know = relation.is_approver || relation.is_admin;
            words::name_principal(gateway, by, principal, may_know)
        };
        let history = change.history.iter().enumerate();
        let unknown = unknown_owners.iter().flatten();
        let is_there = gateway.catalogue.get(&change.business_object).is_some();
        Self {
            id: change.id.clone(),
            version: change.version,
            business_object: change.business_object_name.clone(),
            business_object_path: is_there
                .then(|| format!("/admin/business-objects/{}", change.business_object)),
            state: change.state,
            summary: describe_counts(change.counts),
            author: describe_author(change, gateway, by, *relation),
            created: words::format_utc(&change.created_at),
            owners: change.owners.iter().map(name).collect(),
            unknown_owners: unknown.map(name).collect(),
            approvers: approvers.iter().map(name).collect(),
            history: history.map(|(at, one)| show(one, at == 0)).collect(),
        }
    }
}

fn describe_step(entry: &HistoryEntry, is_first: bool) -> &'static str {
    match entry.state {
        ChangeState::Draft if is_first => "sent it as a draft",
        ChangeState::Submitted if is_first => "sent it",
        _ if entry.rebased => "rebased it",
        ChangeState::Draft => "changed it to a draft",
        ChangeState::Submitted => "submitted it",
        ChangeState::Approved => "approved it, which published it",
        ChangeState::Rejected => "rejected it",
        ChangeState::Withdrawn => "withdrew it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_name_fields_and_count_from_one() {
        assert_eq!(describe_place("/data/0/parts/1/in~1out", &[]), "object 1 › parts › 2 › in/out");
        assert_eq!(describe_place("/data/11", &[]), "object 12");
        assert_eq!(describe_place("/data", &[]), "");
        assert_eq!(describe_place("", &[]), "");
    }
}
