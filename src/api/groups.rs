//! `/api/v1/groups`: groups of accounts.
use penstock_auth::groups::NewGroup;
use penstock_base::{IfMatch, Preconditions};
use penstock_http::access::MinimumRole::{Admin, User};
use penstock_http::call::Call;
use penstock_http::etag::format_etag;
use penstock_http::operation::{Operation, delete, get, put};
use penstock_http::parameters::PageQuery;
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::query::TextCursor;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::Page;
use penstock_resources::group::{self, Group};
use penstock_service::gateway::Gateway;
use penstock_service::groups;
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, LOCATION};

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/groups", User, list_groups)
            .describe(
                "listGroups",
                "Users",
                "Lists the groups, ordered by name. Only Admins see their members.",
            )
            .answer::<Page<Group>>(200, "A page.")
            .problems(&[400]),
        get("/api/v1/groups/{name}", User, get_group)
            .describe("getGroup", "Users", "Returns a group. Only Admins see its members.")
            .answer::<Group>(200, "The group.")
            .answer_header("ETag", "The version in quotes, for Admins.")
            .problems(&[400, 404]),
        put("/api/v1/groups/{name}", Admin, put_group)
            .describe("putGroup", "Users", "Creates a group, or replaces the one of the same name.")
            .header("If-Match", "Replace only this version.")
            .header("If-None-Match", "`*`: create only.")
            .body::<group::NewGroup>()
            .answer::<Group>(200, "Replaced, or unchanged.")
            .etag()
            .answer::<Group>(201, "Created.")
            .etag()
            .location()
            .problems(&[400, 408, 409, 412, 413, 415, 422, 507]),
        delete("/api/v1/groups/{name}", Admin, delete_group)
            .describe(
                "deleteGroup",
                "Users",
                "Deletes a group.\n\nIts members lose what they may see and do as members. Definitions and changes that \
                 name it still do.",
            )
            .header("If-Match", "Delete only this version.")
            .empty_answer(204, "Deleted.")
            .problems(&[400, 404, 409, 412, 507]),
    ]
}

async fn list_groups(call: Call<'_>, query: PageQuery<TextCursor>) -> ReplyResult {
    let (gateway, after) = (call.gateway()?, query.after.as_deref());
    let listed = groups::list_groups(&gateway, call.caller(), after, query.limit + 1);
    Reply::json(&query.page(listed, |group| group.name.clone()))
}

async fn get_group(call: Call<'_>) -> ReplyResult {
    group_reply(&groups::find_group(&call.gateway()?, call.caller(), call.path("name"))?)
}

async fn put_group(mut call: Call<'_>) -> ReplyResult {
    let body = call.read_json().await?;
    let gateway = call.gateway()?;
    let (by, name) = (call.caller(), call.path("name"));
    let new = NewGroup::from_json(name, body.bytes())?;
    let Preconditions { if_match, only_if_new } = read_path_preconditions(&call, &gateway)?;
    let (group, created) =
        groups::define_group(&gateway, by, name, new, if_match, only_if_new).await?;
    let location = call.locate(&format!("/api/v1/groups/{}", encode_segment(&group.name)));
    let reply = group_reply(&group)?;
    if !created {
        return Ok(reply);
    }
    Ok(reply.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

async fn delete_group(call: Call<'_>) -> ReplyResult {
    let (gateway, name) = (call.gateway()?, call.path("name"));
    // A group that does not exist is 404, whatever the condition.
    let if_match = match gateway.auth.groups.get(name) {
        Some(_) => read_path_preconditions(&call, &gateway)?.if_match,
        None => IfMatch::Any,
    };
    groups::delete_group(&gateway, call.caller(), name, if_match).await?;
    Ok(Reply::no_content())
}

fn group_reply(group: &Group) -> ReplyResult {
    let reply = Reply::json(group)?;
    Ok(match group.version {
        Some(version) => reply.with_header(ETAG, &format_etag(version)),
        None => reply,
    })
}

/// Returns the preconditions of a change of the group in the path.
///
/// # Errors
/// 412 if one is false.
fn read_path_preconditions(call: &Call<'_>, gateway: &Gateway) -> Result<Preconditions, Problem> {
    let there = gateway.auth.groups.get(call.path("name"));
    call.preconditions(there.map(|there| there.version))
}
