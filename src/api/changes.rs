//! `/api/v1/changes`: changes under review.
use crate::shapes;
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::{self, Members};
use penstock_http::body::{self, BodyPermit, MediaType, check_media_type};
use penstock_http::caller::caller;
use penstock_http::etag::{format_etag, read_if_match_tags};
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, cursor_after};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::trace;
use penstock_http::state::{gateway, state};
use penstock_model::changes::{ChangeAction, State};
use penstock_service::business_objects::find_business_object;
use penstock_service::changes::{
    self, ChangeFilter, RelationFilter, Step, VisibleChange, VisibleChanges,
};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::http::header::{CONTENT_TYPE, ETAG, IF_MATCH};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// The maximum size of the body of a step.
const MAX_STEP_BYTES: u64 = 64 << 10;
/// The maximum nesting of the body of a step.
const MAX_NESTING: usize = 8;

/// Lists the changes that the caller may see, newest first.
#[endpoint(
    operation_id = "listChanges",
    tags("Changes"),
    parameters(
        ("state" = Option<shapes::ChangeState>, Query, description = "Only changes in this state."),
        ("businessObject" = Option<String>, Query, description = "Only changes of the Business Object with this id or name."),
        ("role" = Option<shapes::ChangeRole>, Query, description = "Only changes to which the caller has this relation."),
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::Changes)),
)]
pub(super) async fn list_changes(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["state", "businessObject", "role", "limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_uuid_cursor()?);
    let gateway = gateway(depot)?;
    let business_object = query.get("businessObject").map(|id_or_name| {
        // One that was deleted still has changes.
        find_business_object(&gateway, id_or_name)
            .map_or_else(|_| id_or_name.to_owned(), |found| found.object.id.clone())
    });
    let filter = ChangeFilter {
        state: query.get("state").map(State::parse).transpose().map_err(Problem::malformed)?,
        only_open: false,
        business_object,
        relation: query.get("role").map(parse_role).transpose()?,
    };
    let listed = changes::list_changes(&gateway, caller(depot), filter, after, limit).await?;
    let VisibleChanges { changes, has_more } = listed;
    let items: Vec<_> = changes.into_iter().map(shapes::Change::from).collect();
    let next = items.last().filter(|_| has_more).map(|last| cursor_after(&last.id));
    Reply::json(&shapes::Changes { items, next })
}

fn parse_role(name: &str) -> Result<RelationFilter, Problem> {
    match name {
        "author" => Ok(RelationFilter::Author),
        "owner" => Ok(RelationFilter::Owner),
        "approver" => Ok(RelationFilter::Approver),
        _ => Err(Problem::malformed(format!(
            "the query parameter role is {name:?}; it must be author, owner or approver"
        ))),
    }
}

/// Returns a change with its request and its difference, object by object.
///
/// A large difference has several pages. The first one also says whether the change would still do what the difference
/// shows.
#[endpoint(
    operation_id = "getChange",
    tags("Changes"),
    parameters(
        ("id" = String, Path, description = "Its id."),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page of the difference."),
    ),
    responses((status_code = 200, description = "The change.", body = shapes::ChangeDetails,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn get_change(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["cursor"])?;
    // A cursor has the version, so that all pages are of the same difference.
    let (version, page) = match query.read_numbers_cursor()? {
        Some((version, last)) => (Some(version), last.saturating_add(1)),
        None => (None, 0),
    };
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let id = path_parameter(req, "id").to_owned();
    let _permit = acquire_memory(depot, &gateway, &id).await?;
    let details = changes::read_change(&gateway, by, id, version, page).await?;
    let version = details.visible.change.version;
    let etag = format_etag(version);
    let next = details.next_page.map(|_| cursor_after(&format!("{version}-{page}")));
    let reply = Reply::json(&shapes::ChangeDetails::from_details(details, next))?;
    Ok(reply.with_header(ETAG, &etag))
}

/// Acquires the memory for reading a change, or for running its request again.
async fn acquire_memory(depot: &Depot, gateway: &Gateway, id: &str) -> Result<BodyPermit, Problem> {
    let bytes = changes::measure_change(gateway, caller(depot), id.to_owned()).await?;
    state(depot).body_quotas.data.try_acquire(bytes)
}

/// Submits a draft.
#[endpoint(
    operation_id = "submitChange",
    tags("Changes"),
    parameters(
        ("id" = String, Path, description = "Its id."),
        ("If-Match" = Option<String>, Header, description = "Only this version."),
    ),
    request_body(content = shapes::StepComment, content_type = "application/json", description = "A comment; optional."),
    responses((status_code = 200, description = "The change.", body = shapes::Change,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn submit_change(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    take_step(req, depot, ChangeAction::Submit).await
}

/// Approves a change, which publishes it in the same commit.
///
/// What is published is exactly what the difference shows. If something that it depends on has changed, the answer is 409:
/// rebase the change then, and look at it again. The author cannot approve it, unless `service.review.self-approval` is
/// true.
#[endpoint(
    operation_id = "approveChange",
    tags("Changes"),
    parameters(
        ("id" = String, Path, description = "Its id."),
        ("If-Match" = String, Header, description = "The version that was looked at; without it 428."),
    ),
    request_body(content = shapes::StepComment, content_type = "application/json", description = "A comment; optional."),
    responses((status_code = 200, description = "The change.", body = shapes::Change,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn approve_change(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    take_step(req, depot, ChangeAction::Approve).await
}

/// Rejects a change. It stays as it is, and nothing of it is published.
#[endpoint(
    operation_id = "rejectChange",
    tags("Changes"),
    parameters(
        ("id" = String, Path, description = "Its id."),
        ("If-Match" = Option<String>, Header, description = "Only this version."),
    ),
    request_body(content = shapes::StepComment, content_type = "application/json", description = "A comment; optional."),
    responses((status_code = 200, description = "The change.", body = shapes::Change,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn reject_change(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    take_step(req, depot, ChangeAction::Reject).await
}

/// Withdraws a change. Its author and the change owners may do so.
#[endpoint(
    operation_id = "withdrawChange",
    tags("Changes"),
    parameters(
        ("id" = String, Path, description = "Its id."),
        ("If-Match" = Option<String>, Header, description = "Only this version."),
    ),
    request_body(content = shapes::StepComment, content_type = "application/json", description = "A comment; optional."),
    responses((status_code = 200, description = "The change.", body = shapes::Change,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn withdraw_change(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    take_step(req, depot, ChangeAction::Withdraw).await
}

/// Computes the difference of a change again, which changes its `ETag`, and submits it.
#[endpoint(
    operation_id = "rebaseChange",
    tags("Changes"),
    parameters(
        ("id" = String, Path, description = "Its id."),
        ("If-Match" = Option<String>, Header, description = "Only this version."),
    ),
    request_body(content = shapes::StepComment, content_type = "application/json", description = "A comment; optional."),
    responses((status_code = 200, description = "The change.", body = shapes::Change,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn rebase_change(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    take_step(req, depot, ChangeAction::Rebase).await
}

async fn take_step(req: &mut Request, depot: &mut Depot, action: ChangeAction) -> ReplyResult {
    Query::read(req, &[])?;
    let if_match = read_version(req, action)?;
    let comment = read_comment(req, depot).await?;
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let id = path_parameter(req, "id").to_owned();
    let _permit = match action {
        ChangeAction::Approve | ChangeAction::Rebase => {
            Some(acquire_memory(depot, &gateway, &id).await?)
        }
        ChangeAction::Submit | ChangeAction::Reject | ChangeAction::Withdraw => None,
    };
    let step = Step { id, action, if_match, comment, trace: trace(depot) };
    change_reply(changes::take_step(&gateway, by, step).await?)
}

fn change_reply(visible: VisibleChange) -> ReplyResult {
    let etag = format_etag(visible.change.version);
    Ok(Reply::json(&shapes::Change::from(visible))?.with_header(ETAG, &etag))
}

/// Returns the version that the client has seen.
///
/// # Errors
/// 428 if it approves a change without one.
fn read_version(req: &Request, action: ChangeAction) -> Result<IfMatch, Problem> {
    let if_match = match read_if_match_tags(req)?.as_deref() {
        None => IfMatch::Any,
        Some([]) => IfMatch::Exists,
        Some([tag]) => {
            // No change has the version 0.
            IfMatch::Version(tag.trim_matches('"').parse().unwrap_or_default())
        }
        Some(_) => {
            return Err(Problem::malformed(
                "If-Match must name one version of the change: the ETag that was seen",
            ));
        }
    };
    if action == ChangeAction::Approve && !matches!(if_match, IfMatch::Version(_)) {
        let given = if req.headers().contains_key(IF_MATCH) { "*" } else { "nothing" };
        return Err(Problem::new(
            StatusCode::PRECONDITION_REQUIRED,
            format!(
                "approving a change needs the ETag that was seen as If-Match, so that what was seen is what is published; the request has {given}"
            ),
        ));
    }
    Ok(if_match)
}

/// Reads the comment in the body, which may be absent.
async fn read_comment(req: &mut Request, depot: &mut Depot) -> Result<Option<String>, Problem> {
    let has_media_type = req.headers().contains_key(CONTENT_TYPE);
    if has_media_type {
        check_media_type(req, &[MediaType::Json])?;
    }
    let body = body::read_body_up_to(req, depot, MAX_STEP_BYTES).await?;
    if body.bytes().trim_ascii().is_empty() {
        return Ok(None);
    }
    if !has_media_type {
        check_media_type(req, &[MediaType::Json])?;
    }
    let mut findings = Vec::new();
    let mut comment = None;
    let value = json::parse(body.bytes(), MAX_NESTING)?;
    if let Some(mut members) = Members::of_object(value, "", &mut findings) {
        comment = members.take_string("comment");
        members.report_unknown();
    }
    if findings.is_empty() {
        return Ok(comment.filter(|comment| !comment.is_empty()));
    }
    let detail = "the body of the step is not valid; it may have a comment";
    Err(GatewayError::with_findings(ErrorClass::Invalid, detail, findings).into())
}
