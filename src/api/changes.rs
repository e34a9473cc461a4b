//! `/api/v1/changes`: changes under review.
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::{self, Members};
use penstock_http::access::MinimumRole::{Contributor, User};
use penstock_http::body::{self, BodyPermit, MediaType, check_media_type};
use penstock_http::call::Call;
use penstock_http::etag::{IfMatchTags, format_etag};
use penstock_http::operation::{Operation, get, post};
use penstock_http::parameters::{After, PageQuery};
use penstock_http::problem::Problem;
use penstock_http::query::{NumbersCursor, UuidCursor, cursor_after};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::changes::{Applicability, ChangeAction, ChangeContent};
use penstock_resources::Page;
use penstock_resources::change::{
    Change, ChangeApplicability, ChangeDetails, ChangeDifference, ChangeRole, ChangeState,
    StepComment,
};
use penstock_service::business_objects::find_business_object_id;
use penstock_service::changes::{self, ChangeFilter, ChangeStep, VisibleChange, VisibleChanges};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::http::header::{CONTENT_TYPE, ETAG};

/// The maximum size of the body of a step.
const MAX_STEP_BYTES: u64 = 64 << 10;
/// The maximum nesting of the body of a step.
const MAX_NESTING: usize = 8;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    let approve = post("/api/v1/changes/{id}/approve", Contributor, approve_change)
        .describe(
            "approveChange",
            "Changes",
            "Approves a change, which publishes it in the same commit.\n\nWhat is published is exactly what the \
             difference shows. If something that it depends on has changed, the answer is 409: rebase the change then, \
             and look at it again. The author cannot approve it, unless `service.review.self-approval` is true.",
        )
        .parameter("If-Match", "The version that was looked at; without it 428.")
        .require("If-Match");
    let submit = post("/api/v1/changes/{id}/submit", User, submit_change).describe(
        "submitChange",
        "Changes",
        "Submits a draft.",
    );
    let reject = post("/api/v1/changes/{id}/reject", Contributor, reject_change).describe(
        "rejectChange",
        "Changes",
        "Rejects a change. It stays as it is, and nothing of it is published.",
    );
    let withdraw = post("/api/v1/changes/{id}/withdraw", User, withdraw_change).describe(
        "withdrawChange",
        "Changes",
        "Withdraws a change. Its author and the change owners may do so.",
    );
    let rebase = post("/api/v1/changes/{id}/rebase", User, rebase_change).describe(
        "rebaseChange",
        "Changes",
        "Computes the difference of a change again, which changes its `ETag`, and submits it.",
    );
    let mut operations = vec![
        get("/api/v1/changes", User, list_changes)
            .describe(
                "listChanges",
                "Changes",
                "Lists the changes that the caller may see, newest first.",
            )
            .answer::<Page<Change>>(200, "A page.")
            .problems(&[400]),
        get("/api/v1/changes/{id}", User, get_change)
            .describe(
                "getChange",
                "Changes",
                "Returns a change with its request and its difference, object by object.\n\nA large difference has \
                 several pages. The first one also says whether the change would still do what the difference shows.",
            )
            .answer::<ChangeDetails>(200, "The change.")
            .etag()
            .problems(&[400, 404, 409, 413]),
        describe_step(approve).problems(&[400, 404, 408, 409, 412, 413, 415, 422, 428, 507]),
    ];
    operations.extend([submit, reject, withdraw, rebase].map(|step| {
        describe_step(step.parameter("If-Match", "Only this version."))
            .problems(&[400, 404, 408, 409, 412, 413, 415, 422, 507])
    }));
    operations
}

/// Adds the body and the answer that all steps have.
fn describe_step(step: Operation) -> Operation {
    step.body::<StepComment>()
        .describe_body("A comment; optional.", false)
        .answer::<Change>(200, "The change.")
        .etag()
}

penstock_http::parameters! {
    /// Which changes are listed.
    struct ChangesQuery {
        "state" => state: Option<ChangeState>, "Only changes in this state.";
        "businessObject" => business_object: Option<String>, "Only changes of the Business Object with this id or name.";
        "role" => role: Option<ChangeRole>, "Only changes to which the caller has this relation.";
        ..page: PageQuery<UuidCursor>
    }
}

async fn list_changes(call: Call<'_>, query: ChangesQuery) -> ReplyResult {
    let ChangesQuery { state, business_object, role, page } = query;
    let gateway = call.gateway()?;
    let business_object = business_object.map(|named| find_business_object_id(&gateway, &named));
    let filter =
        ChangeFilter { state, only_open: false, business_object, relation: role.map(Into::into) };
    let by = call.caller();
    let listed = changes::list_changes(&gateway, by, filter, page.after, page.limit).await?;
    let VisibleChanges { changes, has_more } = listed;
    let items: Vec<_> = changes.into_iter().map(Change::from).collect();
    let next = items.last().filter(|_| has_more).map(|last| cursor_after(&last.id));
    Reply::json(&Page { items, next })
}

penstock_http::parameters! {
    /// Which page of a difference is returned.
    struct DifferenceQuery {
        "cursor" => after: After<NumbersCursor>, "The `next` of the previous page of the difference.";
    }
}

async fn get_change(call: Call<'_>, query: DifferenceQuery) -> ReplyResult {
    // A cursor has the version, so that all pages are of the same difference.
    let (version, page) = match query.after.0 {
        Some((version, last)) => (Some(version), last.saturating_add(1)),
        None => (None, 0),
    };
    let gateway = call.gateway()?;
    let id = call.path("id").to_owned();
    let _permit = acquire_memory(&call, &gateway, &id).await?;
    let details = changes::read_change(&gateway, call.caller(), id, version, page).await?;
    let version = details.visible.change.version;
    let etag = format_etag(version);
    let next = details.next_page.map(|_| cursor_after(&format!("{version}-{page}")));
    Ok(Reply::json(&show_details(details, next))?.with_header(ETAG, &etag))
}

/// Returns a change with a page of its difference as an answer. `next` is the cursor of the next page.
fn show_details(details: changes::ChangeDetails, next: Option<String>) -> ChangeDetails {
    let changes::ChangeDetails { visible, content, difference, next_page: _, applicability } =
        details;
    let (request, warnings) = match content {
        Some(ChangeContent { request, warnings }) => {
            (Some(String::from_utf8_lossy(&request).into_owned()), Some(warnings))
        }
        None => (None, None),
    };
    let items = difference.into_iter().map(Into::into).collect();
    ChangeDetails {
        change: visible.into(),
        request,
        warnings,
        applicability: applicability.map(show_applicability),
        difference: ChangeDifference { items, next },
    }
}

fn show_applicability(applicability: Applicability) -> ChangeApplicability {
    match applicability {
        Applicability::Applies => ChangeApplicability { applies: true, problem: None },
        Applicability::Differs => ChangeApplicability { applies: false, problem: None },
        Applicability::Fails(error) => {
            let problem = Problem::from(error).into();
            ChangeApplicability { applies: false, problem: Some(problem) }
        }
    }
}

/// Acquires the memory for reading a change, or for running its request again.
async fn acquire_memory(
    call: &Call<'_>,
    gateway: &Gateway,
    id: &str,
) -> Result<BodyPermit, Problem> {
    let bytes = changes::measure_change(gateway, call.caller(), id.to_owned()).await?;
    call.state().body_quotas.data.try_acquire(bytes)
}

async fn submit_change(call: Call<'_>, if_match: IfMatchTags) -> ReplyResult {
    take_step(call, if_match, ChangeAction::Submit).await
}

async fn approve_change(call: Call<'_>, if_match: IfMatchTags) -> ReplyResult {
    take_step(call, if_match, ChangeAction::Approve).await
}

async fn reject_change(call: Call<'_>, if_match: IfMatchTags) -> ReplyResult {
    take_step(call, if_match, ChangeAction::Reject).await
}

async fn withdraw_change(call: Call<'_>, if_match: IfMatchTags) -> ReplyResult {
    take_step(call, if_match, ChangeAction::Withdraw).await
}

async fn rebase_change(call: Call<'_>, if_match: IfMatchTags) -> ReplyResult {
    take_step(call, if_match, ChangeAction::Rebase).await
}

async fn take_step(mut call: Call<'_>, if_match: IfMatchTags, action: ChangeAction) -> ReplyResult {
    let if_match = find_version(if_match, action)?;
    let comment = read_comment(&mut call).await?;
    let gateway = call.gateway()?;
    let id = call.path("id").to_owned();
    let _permit = match action {
        ChangeAction::Approve | ChangeAction::Rebase => {
            Some(acquire_memory(&call, &gateway, &id).await?)
        }
        ChangeAction::Submit | ChangeAction::Reject | ChangeAction::Withdraw => None,
    };
    let step = ChangeStep { id, action, if_match, comment, trace: call.trace() };
    change_reply(changes::take_step(&gateway, call.caller(), step).await?)
}

fn change_reply(visible: VisibleChange) -> ReplyResult {
    let etag = format_etag(visible.change.version);
    Ok(Reply::json(&Change::from(visible))?.with_header(ETAG, &etag))
}

/// Returns the version that the client has seen.
///
/// # Errors
/// 428 if it approves a change without one.
fn find_version(IfMatchTags(tags): IfMatchTags, action: ChangeAction) -> Result<IfMatch, Problem> {
    let if_match = match tags.as_deref() {
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
        let given = if tags.is_some() { "*" } else { "nothing" };
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
async fn read_comment(call: &mut Call<'_>) -> Result<Option<String>, Problem> {
    let has_media_type = call.req.headers().contains_key(CONTENT_TYPE);
    if has_media_type {
        check_media_type(call.req, &[MediaType::Json])?;
    }
    let body = body::read_body_up_to(call.req, call.depot, MAX_STEP_BYTES).await?;
    if body.bytes().trim_ascii().is_empty() {
        return Ok(None);
    }
    if !has_media_type {
        check_media_type(call.req, &[MediaType::Json])?;
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
