//! `/api/v1/groups`: groups of accounts.
use crate::shapes;
use penstock_auth::groups::NewGroup;
use penstock_base::{IfMatch, Preconditions};
use penstock_http::body;
use penstock_http::caller::caller;
use penstock_http::etag::{format_etag, read_preconditions};
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::problem::Problem;
use penstock_http::query::{Query, truncate_page};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::gateway;
use penstock_service::gateway::Gateway;
use penstock_service::groups::{self, VisibleGroup};
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, LOCATION};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// Lists the groups, ordered by name. Only Admins see their members.
#[endpoint(
    operation_id = "listGroups",
    tags("Users"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::Groups)),
)]
pub(super) async fn list_groups(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_cursor()?);
    let listed = groups::list_groups(&gateway(depot)?, caller(depot), after.as_deref(), limit + 1);
    let mut items: Vec<_> = listed.into_iter().map(shapes::Group::from).collect();
    let next = truncate_page(&mut items, limit, |group| &group.name);
    Reply::json(&shapes::Groups { items, next })
}

/// Returns a group. Only Admins see its members.
#[endpoint(
    operation_id = "getGroup",
    tags("Users"),
    parameters(("name" = String, Path, description = "Its name.")),
    responses((status_code = 200, description = "The group.", body = shapes::Group,
        headers(("ETag" = String, description = "The version in quotes, for Admins.")))),
)]
pub(super) async fn get_group(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    group_reply(groups::find_group(&gateway(depot)?, caller(depot), name)?)
}

/// Creates a group, or replaces the one of the same name.
#[endpoint(
    operation_id = "putGroup",
    tags("Users"),
    parameters(
        ("name" = String, Path, description = "Its name."),
        ("If-Match" = Option<String>, Header, description = "Replace only this version."),
        ("If-None-Match" = Option<String>, Header, description = "`*`: create only."),
    ),
    request_body(content = shapes::NewGroup, content_type = "application/json"),
    responses(
        (status_code = 200, description = "Replaced, or unchanged.", body = shapes::Group,
            headers(("ETag" = String, description = "The version in quotes."))),
        (status_code = 201, description = "Created.", body = shapes::Group,
            headers(("ETag" = String, description = "The version in quotes."),
                    ("Location" = String, description = "Its path."))),
    ),
)]
pub(super) async fn put_group(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let body = body::read_json_body(req, depot).await?;
    let gateway = gateway(depot)?;
    let name = path_parameter(req, "name");
    let new = NewGroup::from_json(name, body.bytes())?;
    let Preconditions { if_match, only_if_new } = read_path_preconditions(req, &gateway)?;
    let (group, created) =
        groups::define_group(&gateway, caller(depot), name, new, if_match, only_if_new).await?;
    let location =
        format!("{}/api/v1/groups/{}", origin(depot).prefix, encode_segment(&group.name));
    let reply = group_reply(group)?;
    if !created {
        return Ok(reply);
    }
    Ok(reply.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

/// Deletes a group.
///
/// Its members lose what they may see and do as members. Definitions and changes that name it still do.
#[endpoint(
    operation_id = "deleteGroup",
    tags("Users"),
    parameters(
        ("name" = String, Path, description = "Its name."),
        ("If-Match" = Option<String>, Header, description = "Delete only this version."),
    ),
    responses((status_code = 204, description = "Deleted.")),
)]
pub(super) async fn delete_group(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let (gateway, name) = (gateway(depot)?, path_parameter(req, "name"));
    // A group that does not exist is 404, whatever the condition.
    let if_match = match gateway.auth.groups.get(name) {
        Some(_) => read_path_preconditions(req, &gateway)?.if_match,
        None => IfMatch::Any,
    };
    groups::delete_group(&gateway, caller(depot), name, if_match).await?;
    Ok(Reply::no_content())
}

fn group_reply(group: VisibleGroup) -> ReplyResult {
    let etag = group.details.as_ref().map(|details| format_etag(details.group.version));
    let reply = Reply::json(&shapes::Group::from(group))?;
    Ok(match etag {
        Some(etag) => reply.with_header(ETAG, &etag),
        None => reply,
    })
}

/// Returns the preconditions of a change of the group in the path.
///
/// # Errors
/// 412 if one is false.
fn read_path_preconditions(req: &Request, gateway: &Gateway) -> Result<Preconditions, Problem> {
    let there = gateway.auth.groups.get(path_parameter(req, "name"));
    read_preconditions(req, there.map(|there| there.version))
}
