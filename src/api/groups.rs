//! `/api/v1/groups`: groups of accounts.
use crate::definitions::{
    Served, delete_definition, get_definition, list_definitions, put_definition,
};
use penstock_auth::groups::NewGroup;
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::etag::PutConditions;
use penstock_http::operation::{Operation, delete, get, put};
use penstock_http::reply::ReplyResult;
use penstock_resources::Page;
use penstock_resources::group::{self, Group};
use penstock_service::definitions::Kind as _;
use penstock_service::groups::Groups;

impl Served for Groups {
    const PATH: &'static str = "/api/v1/groups";
}

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/groups", User, list_definitions::<Groups>)
            .describe(
                "listGroups",
                "Users",
                "Lists the groups, ordered by name. Only Admins see their members.",
            )
            .answer::<Page<Group>>(200, "A page.")
            .problems(&[400]),
        get("/api/v1/groups/{name}", User, get_definition::<Groups>)
            .describe("getGroup", "Users", "Returns a group. Only Admins see its members.")
            .answer::<Group>(200, "The group.")
            .answer_header("ETag", "The version in quotes, for Admins.")
            .problems(&[400, 404]),
        put("/api/v1/groups/{name}", Groups::MIN_ROLE.into(), put_group)
            .describe("putGroup", "Users", "Creates a group, or replaces the one of the same name.")
            .body::<group::NewGroup>()
            .answer::<Group>(200, "Replaced, or unchanged.")
            .etag()
            .answer::<Group>(201, "Created.")
            .etag()
            .location()
            .problems(&[400, 408, 409, 412, 413, 415, 422, 507]),
        delete("/api/v1/groups/{name}", Groups::MIN_ROLE.into(), delete_definition::<Groups>)
            .describe(
                "deleteGroup",
                "Users",
                "Deletes a group.\n\nIts members lose what they may see and do as members. Definitions and changes that \
                 name it still do.",
            )
            .parameter("If-Match", "Delete only this version.")
            .empty_answer(204, "Deleted.")
            .problems(&[400, 404, 409, 412, 507]),
    ]
}

async fn put_group(mut call: Call<'_>, conditions: PutConditions) -> ReplyResult {
    let body = call.read_json().await?;
    let name = call.path("name");
    let new = NewGroup::from_json(name, body.bytes())?;
    put_definition::<Groups>(&call, name, new, &conditions).await
}
