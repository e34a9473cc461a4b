//! `/admin/changes`: changes under review. Who may see one looks at its difference, and takes the steps that it may take.
use super::form::{Form, take_form};
use super::frame::{Frame, PageReply, PageResult, Section};
use super::pager::Pager;
use super::words;
use askama::Template;
use difference::ChangedObject;
use penstock_auth::{Caller, Role};
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, cursor_after};
use penstock_http::service::trace;
use penstock_http::state::{gateway, state};
use penstock_model::changes::{
    Applicability, Change, ChangeAction, ChangeCounts, HistoryEntry, State,
};
use penstock_service::changes::{
    self, ChangeDetails, ChangeFilter, Relation, RelationFilter, Step, VisibleChange,
    list_allowed_actions,
};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};

mod difference;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;

/// The tabs of the list: the value of `role`, the state that its link selects, and the words.
const TABS: [(&str, &str, &str); 4] = [
    ("", "", "All"),
    ("approver", "submitted", "To approve"),
    ("author", "", "Mine"),
    ("owner", "", "Shared with me"),
];

#[derive(Template)]
#[template(path = "admin/changes.html")]
struct List {
    frame: Frame,
    tabs: Vec<Tab>,
    role: String,
    states: Vec<Choice>,
    business_objects: Vec<Choice>,
    is_narrowed: bool,
    rows: Vec<ChangeRow>,
    pager: Pager,
}

struct Tab {
    address: String,
    words: &'static str,
    is_current: bool,
}

struct Choice {
    value: String,
    words: String,
    is_chosen: bool,
}

/// A change in a list.
pub(super) struct ChangeRow {
    pub(super) id: String,
    pub(super) business_object: String,
    pub(super) summary: String,
    pub(super) state: &'static str,
    pub(super) class: &'static str,
    pub(super) author: String,
    pub(super) age: String,
}

#[derive(Template)]
#[template(path = "admin/change.html")]
struct One {
    frame: Frame,
    progress: Progress,
    /// What happened with the step that this page was sent for.
    refusal: Option<Refusal>,
    findings: Vec<String>,
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
    state: &'static str,
    class: &'static str,
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

/// A step that was refused: what happened, why, and what to do.
struct Refusal {
    status: StatusCode,
    heading: &'static str,
    detail: String,
    findings: Vec<String>,
    remedy: &'static str,
}

/// Whether a change still applies.
struct Verdict {
    class: &'static str,
    mark: &'static str,
    heading: &'static str,
    words: String,
}

/// A button of a step.
struct ActionButton {
    name: &'static str,
    words: &'static str,
    class: &'static str,
}

impl ChangeRow {
    pub(super) fn from_visible(visible: &VisibleChange, gateway: &Gateway, by: &Caller) -> Self {
        let change = &visible.change;
        let (state, class) = describe_state(change.state);
        Self {
            id: change.id.clone(),
            business_object: change.business_object_name.clone(),
            summary: describe_counts(change.counts),
            state,
            class,
            author: describe_author(change, gateway, by, visible.relation),
            age: words::format_age(&change.created_at),
        }
    }
}

/// Returns the state in words, and its class.
fn describe_state(state: State) -> (&'static str, &'static str) {
    match state {
        State::Draft => ("draft", ""),
        State::Submitted => ("waits for approval", "warn"),
        State::Approved => ("approved and published", "good"),
        State::Rejected => ("rejected", "bad"),
        State::Withdrawn => ("withdrawn", ""),
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

/// Returns the name of an account, for those who may know it; otherwise its id. Approvers and Admins know which accounts
/// there are, others know only their own.
fn describe_account(gateway: &Gateway, by: &Caller, relation: Relation, id: &str) -> String {
    if id == "local" {
        return "local administration".to_owned();
    }
    if let Some(key) = gateway.auth.keys.get(by, id) {
        return format!("API key {:?}", key.name);
    }
    let account = gateway.auth.accounts.get(id);
    let may_know = relation.is_approver || relation.is_admin || by.id() == id;
    account
        .filter(|_| may_know)
        .map_or_else(|| id.to_owned(), |account| words::display_name(&account))
}

fn describe_author(change: &Change, gateway: &Gateway, by: &Caller, relation: Relation) -> String {
    let author = describe_account(gateway, by, relation, &change.author);
    let key = change.api_key.as_ref().filter(|key| **key != change.author);
    match key.and_then(|id| gateway.auth.keys.get(by, id)) {
        Some(key) => format!("{author}, with the API key {:?}", key.name),
        None => author,
    }
}

/// Lists the changes that the viewer may see.
#[handler]
pub(crate) async fn list_changes(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["role", "state", "businessObject", "cursor"])?.without_empty();
    let after = query.read_uuid_cursor()?;
    let parameters = ["role", "state", "businessObject"].map(|name| (name, query.get(name)));
    let [role, state, business_object] = parameters.map(|(_, value)| value);
    let relation = match role {
        None => None,
        Some("author") => Some(RelationFilter::Author),
        Some("owner") => Some(RelationFilter::Owner),
        Some("approver") => Some(RelationFilter::Approver),
        Some(other) => return Err(Problem::malformed(format!("there is no role {other:?}"))),
    };
    let filter = ChangeFilter {
        state: state.map(State::parse).transpose().map_err(Problem::malformed)?,
        only_open: false,
        business_object: business_object.map(str::to_owned),
        relation,
    };
    let (gateway, by, is_first) = (gateway(depot)?, caller(depot), after.is_none());
    let listed = changes::list_changes(&gateway, by, filter, after, ROWS_PER_PAGE).await?;
    let last = listed.changes.last().filter(|_| listed.has_more);
    let next = last.map(|last| cursor_after(&last.change.id));
    let frame = Frame::new(req, depot, Section::Changes);
    let choose = |value: String, words: String, chosen: Option<&str>| Choice {
        is_chosen: chosen.unwrap_or_default() == value,
        value,
        words,
    };
    let states = State::ALL.map(|one| (one.name().to_owned(), describe_state(one).0.to_owned()));
    let objects = gateway.catalogue.list();
    let objects =
        objects.iter().map(|one| (one.object.id.clone(), one.object.definition.name.clone()));
    let any = |words: &str| std::iter::once((String::new(), words.to_owned()));
    Ok(PageReply::show(&List {
        tabs: TABS.iter().map(|tab| Tab::new(&frame, tab, role.unwrap_or_default())).collect(),
        role: role.unwrap_or_default().to_owned(),
        states: any("Any").chain(states).map(|(v, words)| choose(v, words, state)).collect(),
        business_objects: any("All")
            .chain(objects)
            .map(|(id, name)| choose(id, name, business_object))
            .collect(),
        is_narrowed: parameters.iter().any(|(_, value)| value.is_some()),
        rows: listed
            .changes
            .iter()
            .map(|visible| ChangeRow::from_visible(visible, &gateway, by))
            .collect(),
        pager: Pager::new(&frame, "/admin/changes", &parameters, is_first, next.as_deref()),
        frame,
    }))
}

impl Tab {
    fn new(frame: &Frame, (role, state, words): &(&str, &str, &'static str), chosen: &str) -> Self {
        let query = match (*role, *state) {
            ("", _) => String::new(),
            (role, "") => format!("?role={role}"),
            (role, state) => format!("?role={role}&state={state}"),
        };
        let address = format!("{}/admin/changes{query}", frame.prefix);
        Self { address, words, is_current: *role == chosen }
    }
}

/// Shows one change.
#[handler]
pub(crate) async fn show_change(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["cursor"])?;
    let place = match query.read_numbers_cursor()? {
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

/// Submits a draft.
#[handler]
pub(crate) async fn submit_change(req: &mut Request, depot: &mut Depot) -> PageResult {
    take_step(req, depot, ChangeAction::Submit).await
}

/// Approves a change, as it was when the page was rendered.
#[handler]
pub(crate) async fn approve_change(req: &mut Request, depot: &mut Depot) -> PageResult {
    take_step(req, depot, ChangeAction::Approve).await
}

/// Rejects a change.
#[handler]
pub(crate) async fn reject_change(req: &mut Request, depot: &mut Depot) -> PageResult {
    take_step(req, depot, ChangeAction::Reject).await
}

/// Withdraws a change.
#[handler]
pub(crate) async fn withdraw_change(req: &mut Request, depot: &mut Depot) -> PageResult {
    take_step(req, depot, ChangeAction::Withdraw).await
}

/// Computes the difference of a change again.
#[handler]
pub(crate) async fn rebase_change(req: &mut Request, depot: &mut Depot) -> PageResult {
    take_step(req, depot, ChangeAction::Rebase).await
}

async fn take_step(req: &mut Request, depot: &mut Depot, action: ChangeAction) -> PageResult {
    let form = take_form(depot);
    let comment = form.trimmed("comment");
    let id = path_parameter(req, "id").to_owned();
    let step = Step {
        id: id.clone(),
        action,
        if_match: read_version(&form, action),
        comment: comment.clone(),
        trace: trace(depot),
    };
    match changes::take_step(&gateway(depot)?, caller(depot), step).await {
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
            let version = form.trimmed("version").and_then(|version| version.parse().ok());
            IfMatch::Version(version.unwrap_or_default())
        }
    }
}

/// Whether the page of the change shows an error of a step. Others have the error page.
fn is_shown_with_change(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Conflict
            | ErrorClass::PreconditionFailed
            | ErrorClass::Invalid
            | ErrorClass::TooManyRequests(_)
    )
}

impl Refusal {
    fn from_error(error: GatewayError, action: ChangeAction) -> Self {
        let class = error.class;
        let problem = Problem::from(error);
        Self {
            status: problem.status(),
            heading: match action {
                ChangeAction::Submit => "The change was not submitted.",
                ChangeAction::Approve => "The change was not approved, and nothing was published.",
                ChangeAction::Reject => "The change was not rejected.",
                ChangeAction::Withdraw => "The change was not withdrawn.",
                ChangeAction::Rebase => "The difference was not computed again.",
            },
            detail: match class {
                ErrorClass::PreconditionFailed => {
                    "It has changed since you opened this page.".to_owned()
                }
                _ => problem.detail().to_owned(),
            },
            findings: problem.errors().iter().map(ToString::to_string).collect(),
            remedy: match class {
                ErrorClass::PreconditionFailed => {
                    "This page shows it as it is now. Look at it again, and decide then."
                }
                _ => "This page shows the change as it is now, and what you can do.",
            },
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
    let state = state(depot);
    let bytes = changes::measure_change(&gateway, by, id.clone()).await?;
    // A single change must fit, whatever its size.
    let bytes = bytes.min(state.settings().limits.in_flight_bytes);
    let _permit = state.body_quotas.data.try_acquire(bytes)?;
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
        let label = label.map(|(_, field)| field.name.as_str());
        let (is_published, nesting) =
            (change.state == State::Approved, gateway.settings.limits.nesting);
        let (requested, nested): (Vec<_>, Vec<_>) =
            difference.into_iter().partition(|item| item.index.is_some());
        let show = |item| ChangedObject::from_item(item, label, is_published, nesting, &frame);
        let objects: Vec<_> = requested.into_iter().map(show).collect();
        let warnings = content.map(|content| content.warnings).unwrap_or_default();
        let findings = warnings.into_iter().map(|warning| {
            let place = describe_place(&warning.pointer, &objects);
            if place.is_empty() { warning.message } else { format!("{place}: {}", warning.message) }
        });
        let findings = findings.collect();
        let path = format!("/admin/changes/{}", change.id);
        let next = next_page.map(|_| cursor_after(&format!("{}-{page}", visible.change.version)));
        let is_open = change.state.is_open() && page == 0;
        let actions = list_allowed_actions(gateway, by, &visible);
        let actions =
            actions.into_iter().filter(|action| is_useful(*action, applicability.as_ref()));
        Self {
            progress: Progress::from_visible(&visible, gateway, by),
            refusal: None,
            findings,
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

/// Returns the name in a token of a JSON Pointer (RFC 6901, section 4).
fn unescape_token(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Returns whether a step can succeed as things are now.
fn is_useful(action: ChangeAction, applicability: Option<&Applicability>) -> bool {
    match (action, applicability) {
        (ChangeAction::Approve, Some(found)) => *found == Applicability::Applies,
        // A draft is submitted as it is.
        (ChangeAction::Rebase, Some(found)) => *found == Applicability::Differs,
        _ => true,
    }
}

impl From<ChangeAction> for ActionButton {
    fn from(action: ChangeAction) -> Self {
        let (words, class) = match action {
            ChangeAction::Submit => ("Submit for approval", ""),
            ChangeAction::Approve => ("Approve and publish", ""),
            ChangeAction::Reject => ("Reject", "danger plain"),
            ChangeAction::Withdraw => ("Withdraw", "danger plain"),
            ChangeAction::Rebase => ("Rebase: compute the difference again", "plain"),
        };
        Self { name: action.name(), words, class }
    }
}

impl Verdict {
    fn from_applicability(found: Option<&Applicability>) -> Self {
        match found {
            Some(Applicability::Applies) => Self {
                class: "good",
                mark: "✓",
                heading: "It still applies.",
                words: "Approving it does exactly what this page shows.".to_owned(),
            },
            Some(Applicability::Differs) => Self {
                class: "warn",
                mark: "!",
                heading: "It would do something else now.",
                words: "Data that it depends on has changed since the difference was computed, so it cannot be approved. Rebase it: the gateway computes the difference again, and then look at it again."
                    .to_owned(),
            },
            Some(Applicability::Fails(error)) => {
                let findings = error.findings.iter().map(|finding| format!(" {finding}."));
                Self {
                    class: "bad",
                    mark: "✗",
                    heading: "It cannot be published as things are now.",
                    words: format!(
                        "The gateway would refuse it: {}.{} Correct the cause, or reject or withdraw the change and send a corrected one.",
                        error.detail,
                        findings.collect::<String>()
                    ),
                }
            }
            None => Self {
                class: "warn",
                mark: "!",
                heading: "Whether it still applies is not known now.",
                words: "The gateway cannot compute it at the moment. Open the page again later.".to_owned(),
            },
        }
    }
}

impl Progress {
    fn from_visible(visible: &VisibleChange, gateway: &Gateway, by: &Caller) -> Self {
        let VisibleChange { change, relation, approvers, unknown_owners } = visible;
        let (state, class) = describe_state(change.state);
        let show = |one: &HistoryEntry, is_first| HistoryRow {
            at: words::format_utc(&one.at),
            by: match &one.by {
                Some(id) => describe_account(gateway, by, *relation, id),
                None => "the gateway".to_owned(),
            },
            what: describe_step(one, is_first),
            comment: one.comment.clone(),
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
            state,
            class,
            summary: describe_counts(change.counts),
            author: describe_author(change, gateway, by, *relation),
            created: words::format_utc(&change.created_at),
            owners: change.owners.iter().map(ToString::to_string).collect(),
            unknown_owners: unknown.map(ToString::to_string).collect(),
            approvers: approvers.iter().map(ToString::to_string).collect(),
            history: history.map(|(at, one)| show(one, at == 0)).collect(),
        }
    }
}

fn describe_step(entry: &HistoryEntry, is_first: bool) -> &'static str {
    match entry.state {
        State::Draft if is_first => "sent it as a draft",
        State::Submitted if is_first => "sent it",
        _ if entry.rebased => "rebased it",
        State::Draft => "changed it to a draft",
        State::Submitted => "submitted it",
        State::Approved => "approved it, which published it",
        State::Rejected => "rejected it",
        State::Withdrawn => "withdrew it",
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
