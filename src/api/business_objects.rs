//! `/api/v1/business-objects`: the definitions.
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
use penstock_model::resource::{Compiled, NewDefinition};
use penstock_resources::Page;
use penstock_resources::business_object::{
    BusinessObject, BusinessObjectDefinition, DeletionCount,
};
use penstock_service::business_objects::{
    self, SaveConditions, find_business_object, show_business_object,
};
use penstock_service::deletions;
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION};
use std::sync::Arc;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/business-objects", User, list_business_objects)
            .describe(
                "listBusinessObjects",
                "Business Objects",
                "Lists the Business Objects, ordered by name.",
            )
            .answer::<Page<BusinessObject>>(200, "A page.")
            .problems(&[400]),
        put("/api/v1/business-objects", Admin, put_business_object)
            .describe(
                "putBusinessObject",
                "Business Objects",
                "Creates a Business Object, or replaces the one of the same name.",
            )
            .header("If-Match", "Replace only this version.")
            .header("If-None-Match", "`*`: create only.")
            .body::<BusinessObjectDefinition>()
            .answer::<BusinessObject>(200, "Replaced.")
            .etag()
            .answer::<BusinessObject>(201, "Created.")
            .etag()
            .location()
            .problems(&[400, 408, 409, 412, 413, 415, 422, 507]),
        get("/api/v1/business-objects/{id}", User, get_business_object)
            .describe("getBusinessObject", "Business Objects", "Returns one Business Object.")
            .parameter("id", "Its id or its name.")
            .answer::<BusinessObject>(200, "The Business Object.")
            .etag()
            .problems(&[400, 404]),
        put("/api/v1/business-objects/{id}", Admin, replace_business_object)
            .describe(
                "replaceBusinessObject",
                "Business Objects",
                "Replaces a Business Object. Its name may change.",
            )
            .parameter("id", "Its id or its name.")
            .header("If-Match", "Replace only this version.")
            .body::<BusinessObjectDefinition>()
            .answer::<BusinessObject>(200, "Replaced.")
            .etag()
            .problems(&[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        delete("/api/v1/business-objects/{id}", Admin, delete_business_object)
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
            .header("If-Match", "Delete only this version.")
            .answer::<DeletionCount>(200, "The result of the dry run.")
            .answer::<BusinessObject>(202, "The deletion with its objects has begun.")
            .etag()
            .empty_answer(204, "Deleted.")
            .problems(&[400, 404, 409, 412, 507]),
    ]
}

penstock_http::parameters! {
    /// The query of a replacement.
    struct ReplacementQuery {
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

/// Responds with one Business Object, its warnings and its entity tag.
async fn business_object_reply(gateway: &Gateway, compiled: Arc<Compiled>) -> ReplyResult {
    let shown = show_business_object(gateway, compiled).await?;
    Ok(Reply::json(&shown)?.with_header(ETAG, &format_etag(shown.version)))
}

async fn list_business_objects(call: Call<'_>, query: PageQuery<TextCursor>) -> ReplyResult {
    let (gateway, after) = (call.gateway()?, query.after.clone());
    let found = business_objects::list_business_objects(&gateway, after, query.limit + 1).await?;
    Reply::json(&query.page(found, |one| one.definition.name.clone()))
}

async fn put_business_object(mut call: Call<'_>, query: ReplacementQuery) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_json().await?;
    let new = NewDefinition::from_json(body.bytes())?;
    let name = &new.definition.name;
    let there = gateway.catalogue.get(name).filter(|there| there.object.definition.name == *name);
    let Preconditions { if_match, only_if_new } = if name.is_empty() {
        // The use case refuses the definition.
        Preconditions::default()
    } else {
        call.preconditions(there.map(|there| there.object.version))?
    };
    let conditions = SaveConditions { if_match, only_if_new, force: query.force };
    let by = call.caller();
    let (compiled, created) =
        business_objects::define_business_object(&gateway, by, new, conditions).await?;
    let path = format!("/api/v1/business-objects/{}", encode_segment(&compiled.object.id));
    let reply = business_object_reply(&gateway, compiled).await?;
    if !created {
        return Ok(reply);
    }
    Ok(reply.with_status(StatusCode::CREATED).with_header(LOCATION, &call.locate(&path)))
}

async fn get_business_object(call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let compiled = find_business_object(&gateway, call.path("id"))?;
    business_object_reply(&gateway, compiled).await
}

async fn replace_business_object(mut call: Call<'_>, query: ReplacementQuery) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_json().await?;
    let if_match = read_path_if_match(&call, &gateway)?;
    let new = NewDefinition::from_json(body.bytes())?;
    let (by, id, force) = (call.caller(), call.path("id"), query.force);
    let compiled =
        business_objects::redefine_business_object(&gateway, by, id, new, if_match, force).await?;
    business_object_reply(&gateway, compiled).await
}

async fn delete_business_object(call: Call<'_>, query: DeletionQuery) -> ReplyResult {
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
        let if_match = read_path_if_match(&call, &gateway)?;
        business_objects::delete_business_object(&gateway, by, id, if_match).await?;
        return Ok(Reply::no_content());
    }
    let there = find_business_object(&gateway, id)?;
    // A repeated request has the version from before the first one.
    let if_match = match &there.object.deleting {
        Some(_) => IfMatch::Any,
        None => read_path_if_match(&call, &gateway)?,
    };
    if is_dry_run {
        return Reply::json(&deletions::count_deletion(&gateway, by, there, u64::MAX).await?);
    }
    let compiled = deletions::begin_deletion(&gateway, by, id, if_match, bypass).await?;
    Ok(business_object_reply(&gateway, compiled).await?.with_status(StatusCode::ACCEPTED))
}

/// Returns the version of the Business Object in the path that may be changed.
///
/// # Errors
/// 404 if it does not exist; 412 if a precondition is false.
fn read_path_if_match(call: &Call<'_>, gateway: &Gateway) -> Result<IfMatch, Problem> {
    let has_condition = |name| call.req.headers().contains_key(name);
    // A definition that cannot be read is not in the catalogue, and can be deleted.
    if !has_condition(IF_MATCH) && !has_condition(IF_NONE_MATCH) {
        return Ok(IfMatch::Any);
    }
    let there = find_business_object(gateway, call.path("id"))?;
    Ok(call.preconditions(Some(there.object.version))?.if_match)
}
