//! `/api/v1/business-objects`: the definitions.
use super::body;
use super::caller::caller;
use super::etag::{etag, if_match, only_if_new};
use super::problem::Problem;
use super::query::{Query, page};
use super::reply::{Outcome, Reply};
use super::service::origin;
use super::shapes;
use super::state::{blocking, gateway, state};
use crate::auth::Authorized;
use crate::business_object::catalogue::IfMatch;
use crate::business_object::resource::{BusinessObject, Compiled};
use crate::fault::Fault;
use crate::gateway::Gateway;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, IF_MATCH, LOCATION};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use std::sync::Arc;

/// What stays as it is in one segment of a path (RFC 3986, 2.3).
pub(super) const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The Business Object that `{id}` names, by id or by name.
pub(super) fn named(req: &Request, gateway: &Gateway) -> Result<Arc<Compiled>, Problem> {
    let id = path(req, "id");
    gateway.catalogue.get(id).ok_or_else(|| unknown(id))
}

/// A parameter of the path, decoded.
pub(super) fn path<'a>(req: &'a Request, name: &str) -> &'a str {
    req.params().get(name).map_or("", String::as_str)
}

fn unknown(id: &str) -> Problem {
    Problem::not_found(format!("there is no Business Object with the id or name {id:?}"))
}

/// One Business Object with its entity tag.
fn answer(object: &BusinessObject) -> Outcome {
    Ok(Reply::json(object)?.header(ETAG, &etag(object.version)))
}

/// Lists the Business Objects, ordered by name.
#[endpoint(
    operation_id = "listBusinessObjects",
    tags("Business Objects"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the page before."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::BusinessObjects)),
)]
pub(super) async fn list(req: &mut Request, depot: &mut Depot) -> Outcome {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, cursor) = (query.limit()?, query.cursor()?);
    let all = gateway(depot)?.catalogue.list();
    let items: Vec<_> = all
        .iter()
        .map(|compiled| &compiled.object)
        .filter(|object| cursor.as_ref().is_none_or(|cursor| object.definition.name > *cursor))
        .take(limit + 1)
        .collect();
    page(items, limit, |object| &object.definition.name)
}

/// Creates a Business Object, or replaces the one of the same name.
#[endpoint(
    operation_id = "putBusinessObject",
    tags("Business Objects"),
    parameters(
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
pub(super) async fn put(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let (state, gateway) = (state(depot), gateway(depot)?);
    let body = body::json(req, depot).await?;
    let only_if_new = only_if_new(req)?;
    let one_at_a_time = state.defining.lock().await;
    // A body that names nothing is refused by the catalogue, with every fault in it.
    let asked = match name(body.bytes()) {
        Some(name) => {
            let there = gateway.catalogue.get(&name).map(|there| there.object.clone());
            let there = there.filter(|there| there.definition.name == name);
            if only_if_new && there.is_some() {
                return Err(Problem::new(
                    StatusCode::PRECONDITION_FAILED,
                    format!("If-None-Match asks for a new one, and {name:?} is there already"),
                ));
            }
            if_match(req, there.map(|there| there.version))?
        }
        None => IfMatch::Any,
    };
    let by = caller(depot).clone();
    let defined = move || Ok(define(&gateway, &by, body.bytes(), asked)?);
    let (compiled, created) = blocking(defined).await?;
    drop(one_at_a_time);
    let object = &compiled.object;
    let reply = answer(object)?;
    if !created {
        return Ok(reply);
    }
    let prefix = &origin(depot).prefix;
    let id = utf8_percent_encode(&object.id, SEGMENT);
    let location = format!("{prefix}/api/v1/business-objects/{id}");
    Ok(reply.status(StatusCode::CREATED).header(LOCATION, &location))
}

/// Creates the one that a definition names, or replaces it. True when created. Blocks.
pub(super) fn define(
    gateway: &Gateway,
    by: &Authorized,
    body: &[u8],
    asked: IfMatch,
) -> Result<(Arc<Compiled>, bool), Fault> {
    gateway.disk.take_in()?;
    gateway.catalogue.put(by, by.id(), body, asked, &|bucket| gateway.exporter.check_target(bucket))
}

/// Replaces the one of this id or name. Blocks.
pub(super) fn redefine(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    body: &[u8],
    asked: IfMatch,
) -> Result<Arc<Compiled>, Fault> {
    gateway.disk.take_in()?;
    gateway
        .catalogue
        .replace(by, by.id(), id, body, asked, &|bucket| gateway.exporter.check_target(bucket))
}

/// The `name` in a definition, if it can be read that far.
fn name(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_slice::<Named>(body).ok().map(|named| named.name)
}

/// One Business Object.
#[endpoint(
    operation_id = "getBusinessObject",
    tags("Business Objects"),
    parameters(("id" = String, Path, description = "Its id or its name.")),
    responses((status_code = 200, description = "It.", body = shapes::BusinessObject,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    answer(&named(req, &gateway(depot)?)?.object)
}

/// Replaces a Business Object; it may be renamed.
#[endpoint(
    operation_id = "replaceBusinessObject",
    tags("Business Objects"),
    parameters(
        ("id" = String, Path, description = "Its id or its name."),
        ("If-Match" = Option<String>, Header, description = "Replace only this version."),
    ),
    request_body(content = shapes::Definition, content_type = "application/json"),
    responses((status_code = 200, description = "Replaced.", body = shapes::BusinessObject,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn replace(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::json(req, depot).await?;
    let asked = asked(req, &gateway)?;
    let id = path(req, "id").to_owned();
    let by = caller(depot).clone();
    let redefined = move || Ok(redefine(&gateway, &by, &id, body.bytes(), asked)?);
    answer(&blocking(redefined).await?.object)
}

/// Deletes a Business Object; the stored objects stay.
#[endpoint(
    operation_id = "deleteBusinessObject",
    tags("Business Objects"),
    parameters(
        ("id" = String, Path, description = "Its id or its name."),
        ("If-Match" = Option<String>, Header, description = "Delete only this version."),
    ),
    responses((status_code = 204, description = "Deleted.")),
)]
pub(super) async fn delete(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let asked = asked(req, &gateway)?;
    let (by, id) = (caller(depot).clone(), path(req, "id").to_owned());
    blocking(move || Ok(gateway.catalogue.delete(&by, &id, asked)?)).await?;
    Ok(Reply::nothing())
}

/// What `If-Match` asks of the Business Object that the path names.
fn asked(req: &Request, gateway: &Gateway) -> Result<IfMatch, Problem> {
    if !req.headers().contains_key(IF_MATCH) {
        return Ok(IfMatch::Any);
    }
    if_match(req, Some(named(req, gateway)?.object.version))
}
