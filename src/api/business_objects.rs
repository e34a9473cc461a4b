//! `/api/v1/business-objects`: the definitions.
use crate::definitions::{
    Served, get_definition, list_definitions, put_definition, show_definition,
};
use penstock_base::Preconditions;
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::etag::{ChangeConditions, PutConditions};
use penstock_http::operation::{Operation, delete, get, put};
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::resource::NewDefinition;
use penstock_resources::Page;
use penstock_resources::business_object::{
    BusinessObject, BusinessObjectDefinition, DeletionCount,
};
use penstock_service::business_objects::{
    BusinessObjects, NewBusinessObject, find_business_object, show_business_object,
};
use penstock_service::definitions::Kind as _;
use penstock_service::gateway::Gateway;
use penstock_service::{definitions, deletions};
use salvo::http::StatusCode;

impl Served for BusinessObjects {
    const PATH: &'static str = "/api/v1/business-objects";
    const PARAMETER: &'static str = "id";

    fn segment(shown: &BusinessObject) -> &str {
        &shown.id
    }
}

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/business-objects", User, list_definitions::<BusinessObjects>)
            .describe(
                "listBusinessObjects",
                "Business Objects",
                "Lists the Business Objects, ordered by name.",
            )
            .answer::<Page<BusinessObject>>(200, "A page.")
            .problems(&[400]),
        put("/api/v1/business-objects", BusinessObjects::MIN_ROLE.into(), put_business_object)
            .describe(
                "putBusinessObject",
                "Business Objects",
                "Creates a Business Object, or replaces the one of the same name.",
            )
            .body::<BusinessObjectDefinition>()
            .answer::<BusinessObject>(200, "Replaced.")
            .etag()
            .answer::<BusinessObject>(201, "Created.")
            .etag()
            .location()
            .problems(&[400, 408, 409, 412, 413, 415, 422, 507]),
        get("/api/v1/business-objects/{id}", User, get_definition::<BusinessObjects>)
            .describe("getBusinessObject", "Business Objects", "Returns one Business Object.")
            .parameter("id", "Its id or its name.")
            .answer::<BusinessObject>(200, "The Business Object.")
            .etag()
            .problems(&[400, 404]),
        put("/api/v1/business-objects/{id}", BusinessObjects::MIN_ROLE.into(), replace_business_object)
            .describe(
                "replaceBusinessObject",
                "Business Objects",
                "Replaces a Business Object. Its name may change.",
            )
            .parameter("id", "Its id or its name.")
            .parameter("If-Match", "Replace only this version.")
            .body::<BusinessObjectDefinition>()
            .answer::<BusinessObject>(200, "Replaced.")
            .etag()
            .problems(&[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        delete("/api/v1/business-objects/{id}", BusinessObjects::MIN_ROLE.into(), delete_business_object)
            .describe(
                "deleteBusinessObject",
                "Business Objects",
                "Deletes a Business Object, and withdraws its open changes. The stored objects stay, unless `data` is \
                 `true`.\n\nWith `data=true` the gateway also deletes the objects that belong to it, in the background \
                 and also after a restart. Objects that belong to another Business Object stay, and so do objects that \
                 others refer to and that are nested in a deleted one. Meanwhile the Business Object is disabled, \
                 `deleting` shows the progress, and it cannot be replaced. No export follows, so that the targets keep \
                 what they have. Repeating the request answers 202 again, and 404 when the Business Object is gone.",
            )
            .parameter("id", "Its id or its name.")
            .parameter("If-Match", "Delete only this version.")
            .answer::<DeletionCount>(200, "The result of the dry run.")
            .answer::<BusinessObject>(202, "The deletion with its objects has begun.")
            .etag()
            .empty_answer(204, "Deleted.")
            .problems(&[400, 404, 409, 412, 507]),
    ]
}

penstock_http::parameters! {
    /// How a definition is saved.
    struct SaveQuery {
        "force" => force: bool, "Replace it even if many objects would no longer belong to it, or if the definition leaves out `key`, `validation`, `review` or `approvers`.";
    }
}

penstock_http::parameters! {
    /// The query of a deletion.
    struct DeletionQuery {
        "data" => with_data: bool, "Delete its objects too.";
        "dryRun" => is_dry_run: bool, "Only count the objects; needs `data=true`.";
        "bypass" => bypass: bool, "With `data=true`: delete the objects although they require a review.";
    }
}

async fn put_business_object(
    mut call: Call<'_>,
    (query, conditions): (SaveQuery, PutConditions),
) -> ReplyResult {
    let body = call.read_json().await?;
    let new = NewDefinition::from_json(body.bytes())?;
    let name = new.definition.name.clone();
    // An empty name is refused, whatever the conditions.
    let conditions = if name.is_empty() { PutConditions::default() } else { conditions };
    let new = NewBusinessObject { new, replaced: None, force: query.force };
    put_definition::<BusinessObjects>(&call, &name, new, &conditions).await
}

async fn replace_business_object(
    mut call: Call<'_>,
    (query, conditions): (SaveQuery, ChangeConditions),
) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_json().await?;
    let id = call.path("id");
    let preconditions = check_conditions(&gateway, id, &conditions)?;
    let new = NewDefinition::from_json(body.bytes())?;
    let new = NewBusinessObject { new, replaced: Some(id.to_owned()), force: query.force };
    let by = call.caller();
    let put = definitions::save::<BusinessObjects>(&gateway, by, new, preconditions).await?;
    show_definition::<BusinessObjects>(put.value())
}

async fn delete_business_object(
    call: Call<'_>,
    (query, conditions): (DeletionQuery, ChangeConditions),
) -> ReplyResult {
    let DeletionQuery { with_data, is_dry_run, bypass } = query;
    if is_dry_run && !with_data {
        return Err(Problem::malformed(
            "dryRun counts the objects that data=true would delete; send ?data=true&dryRun=true",
        ));
    }
    if bypass && !with_data {
        return Err(Problem::malformed(
            "bypass deletes objects that require a review, which only data=true deletes; send ?data=true&bypass=true, or leave it out",
        ));
    }
    let gateway = call.gateway()?;
    let (by, id) = (call.caller(), call.path("id"));
    if !with_data {
        let preconditions = check_conditions(&gateway, id, &conditions)?;
        definitions::delete::<BusinessObjects>(&gateway, by, id, preconditions).await?;
        return Ok(Reply::no_content());
    }
    let there = find_business_object(&gateway, id)?;
    // A repeated request has the version from before the first one.
    let preconditions = match &there.object.deleting {
        Some(_) => Preconditions::default(),
        None => check_conditions(&gateway, id, &conditions)?,
    };
    if is_dry_run {
        return Reply::json(&deletions::count_deletion(&gateway, by, there, u64::MAX).await?);
    }
    let if_match = preconditions.if_match;
    let compiled = deletions::begin_deletion(&gateway, by, id, if_match, bypass).await?;
    let shown = show_business_object(&gateway, compiled).await?;
    Ok(show_definition::<BusinessObjects>(&shown)?.with_status(StatusCode::ACCEPTED))
}

/// Returns the preconditions of a change of this Business Object.
///
/// # Errors
/// 404 if it does not exist; 412 if a condition is false.
fn check_conditions(
    gateway: &Gateway,
    id: &str,
    conditions: &ChangeConditions,
) -> Result<Preconditions, Problem> {
    // A definition that cannot be read is not in the catalogue, and can be deleted.
    if conditions.is_empty() {
        return Ok(Preconditions::default());
    }
    conditions.check(Some(find_business_object(gateway, id)?.object.version))
}
