//! `/api/v1/business-objects`: the definitions.
use crate::shapes;
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
use penstock_model::resource::{Compiled, NewDefinition};
use penstock_service::business_objects::{self, SaveConditions, find_business_object};
use penstock_service::deletions;
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;
use std::sync::Arc;

/// Responds with one Business Object, its warnings and its entity tag.
async fn business_object_reply(gateway: &Gateway, compiled: Arc<Compiled>) -> ReplyResult {
    let checked = business_objects::collect_warnings(gateway, compiled).await?;
    let etag = format_etag(checked.compiled.object.version);
    Ok(Reply::json(&shapes::BusinessObject::from(checked))?.with_header(ETAG, &etag))
}

/// Lists the Business Objects, ordered by name.
#[endpoint(
    operation_id = "listBusinessObjects",
    tags("Business Objects"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::BusinessObjects)),
)]
pub(super) async fn list_business_objects(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, cursor) = (query.read_limit()?, query.read_cursor()?);
    let gateway = gateway(depot)?;
    let found = business_objects::list_business_objects(&gateway, cursor, limit + 1).await?;
    let mut items: Vec<shapes::BusinessObject> = found.into_iter().map(Into::into).collect();
    let next = truncate_page(&mut items, limit, |item| &item.name);
    Reply::json(&shapes::BusinessObjects { items, next })
}

/// Creates a Business Object, or replaces the one of the same name.
#[endpoint(
    operation_id = "putBusinessObject",
    tags("Business Objects"),
    parameters(
        ("force" = Option<bool>, Query, description = "Replace it even if many objects would no longer belong to it, or if the definition leaves out `key`, `validation`, `review` or `approvers`."),
        ("If-Match" = Option<String>, Header, description = "Replace only this version."),
        ("If-None-Match" = Option<String>, Header, description = "`*`: create only."),
    ),
    request_body(content = shapes::Definition, content_type = "application/json"),
    responses(
        (status_code = 200, description = "Replaced.", body = shapes::BusinessObject,
            headers(("ETag" = String, description = "The version in quotes."))),
        (status_code = 201, description = "Created.", body = shapes::BusinessObject,
            headers(("ETag" = String, description = "The version in quotes."),
                    ("Location" = String, description = "Its path."))),
    ),
)]
pub(super) async fn put_business_object(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let force = Query::read(req, &["force"])?.read_flag("force")?;
    let gateway = gateway(depot)?;
    let body = body::read_json_body(req, depot).await?;
    let new = NewDefinition::from_json(body.bytes())?;
    let name = &new.definition.name;
    let there = gateway.catalogue.get(name).filter(|there| there.object.definition.name == *name);
    let Preconditions { if_match, only_if_new } = if name.is_empty() {
        // The use case refuses the definition.
        Preconditions::default()
    } else {
        read_preconditions(req, there.map(|there| there.object.version))?
    };
    let conditions = SaveConditions { if_match, only_if_new, force };
    let by = caller(depot);
    let (compiled, created) =
        business_objects::define_business_object(&gateway, by, new, conditions).await?;
    let path = format!("/api/v1/business-objects/{}", encode_segment(&compiled.object.id));
    let reply = business_object_reply(&gateway, compiled).await?;
    if !created {
        return Ok(reply);
    }
    let location = format!("{}{path}", origin(depot).prefix);
    Ok(reply.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

/// Returns one Business Object.
#[endpoint(
    operation_id = "getBusinessObject",
    tags("Business Objects"),
    parameters(("id" = String, Path, description = "Its id or its name.")),
    responses((status_code = 200, description = "The Business Object.", body = shapes::BusinessObject,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn get_business_object(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
    business_object_reply(&gateway, compiled).await
}

/// Replaces a Business Object. Its name may change.
#[endpoint(
    operation_id = "replaceBusinessObject",
    tags("Business Objects"),
    parameters(
        ("id" = String, Path, description = "Its id or its name."),
        ("force" = Option<bool>, Query, description = "Replace it even if many objects would no longer belong to it, or if the definition leaves out `key`, `validation`, `review` or `approvers`."),
        ("If-Match" = Option<String>, Header, description = "Replace only this version."),
    ),
    request_body(content = shapes::Definition, content_type = "application/json"),
    responses((status_code = 200, description = "Replaced.", body = shapes::BusinessObject,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn replace_business_object(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let force = Query::read(req, &["force"])?.read_flag("force")?;
    let gateway = gateway(depot)?;
    let body = body::read_json_body(req, depot).await?;
    let if_match = read_path_if_match(req, &gateway)?;
    let new = NewDefinition::from_json(body.bytes())?;
    let (by, id) = (caller(depot), path_parameter(req, "id"));
    let compiled =
        business_objects::redefine_business_object(&gateway, by, id, new, if_match, force).await?;
    business_object_reply(&gateway, compiled).await
}

/// Deletes a Business Object, and withdraws its open changes. The stored objects stay, unless `data` is `true`.
///
/// With `data=true` the gateway also deletes the objects that belong to it, in the background and also after a restart.
/// Objects that belong to another Business Object stay, and so do objects that others refer to and that are nested in a
/// deleted one. Meanwhile the Business Object is disabled, `deleting` shows the progress, and it cannot be replaced.
/// No export follows, so that the targets keep what they have. Repeating the request answers 202 again, and 404 when the
/// Business Object is gone.
#[endpoint(
    operation_id = "deleteBusinessObject",
    tags("Business Objects"),
    parameters(
        ("id" = String, Path, description = "Its id or its name."),
        ("data" = Option<bool>, Query, description = "Delete its objects too."),
        ("dryRun" = Option<bool>, Query, description = "Only count the objects; needs `data=true`."),
        ("bypass" = Option<bool>, Query, description = "With `data=true`: delete the objects although they require a review."),
        ("If-Match" = Option<String>, Header, description = "Delete only this version."),
    ),
    responses(
        (status_code = 200, description = "The result of the dry run.", body = shapes::DeletionCount),
        (status_code = 202, description = "The deletion with its objects has begun.", body = shapes::BusinessObject,
            headers(("ETag" = String, description = "The version in quotes."))),
        (status_code = 204, description = "Deleted."),
    ),
)]
pub(super) async fn delete_business_object(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["data", "dryRun", "bypass"])?;
    let bypass = query.read_flag("bypass")?;
    let (with_data, is_dry_run) = (query.read_flag("data")?, query.read_flag("dryRun")?);
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
    let gateway = gateway(depot)?;
    let (by, id) = (caller(depot), path_parameter(req, "id"));
    if !with_data {
        let if_match = read_path_if_match(req, &gateway)?;
        business_objects::delete_business_object(&gateway, by, id, if_match).await?;
        return Ok(Reply::no_content());
    }
    let there = find_business_object(&gateway, id)?;
    // A repeated request has the version from before the first one.
    let if_match = match &there.object.deleting {
        Some(_) => IfMatch::Any,
        None => read_path_if_match(req, &gateway)?,
    };
    if is_dry_run {
        let count = deletions::count_deletion(&gateway, by, there, u64::MAX).await?;
        return Reply::json(&shapes::DeletionCount::from(count));
    }
    let compiled = deletions::begin_deletion(&gateway, by, id, if_match, bypass).await?;
    Ok(business_object_reply(&gateway, compiled).await?.with_status(StatusCode::ACCEPTED))
}

/// Returns the version of the Business Object in the path that may be changed.
///
/// # Errors
/// 404 if it does not exist; 412 if a precondition is false.
fn read_path_if_match(req: &Request, gateway: &Gateway) -> Result<IfMatch, Problem> {
    let has_condition = |name| req.headers().contains_key(name);
    // A definition that cannot be read is not in the catalogue, and can be deleted.
    if !has_condition(IF_MATCH) && !has_condition(IF_NONE_MATCH) {
        return Ok(IfMatch::Any);
    }
    let there = find_business_object(gateway, path_parameter(req, "id"))?;
    Ok(read_preconditions(req, Some(there.object.version))?.if_match)
}
