//! `/api/v1/business-objects`: the definitions.
use crate::shapes;
use penstock_auth::{Authorized, Caller};
use penstock_base::error::{Finding, GatewayError};
use penstock_http::body;
use penstock_http::caller::caller;
use penstock_http::etag::{format_etag, is_create_only, read_if_match};
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::problem::{self, Problem};
use penstock_http::query::{Query, page_reply};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::{gateway, run_blocking, state};
use penstock_model::catalogue::{Action, Change, IfMatch, Requester};
use penstock_model::resource::{BusinessObject, Compiled};
use penstock_service::audit::change_event;
use penstock_service::gateway::Gateway;
use penstock_store::Transaction;
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, IF_MATCH, LOCATION};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// Returns the Business Object that `{id}` names, by id or by name.
pub fn find_business_object(req: &Request, gateway: &Gateway) -> Result<Arc<Compiled>, Problem> {
    let id = path_parameter(req, "id");
    gateway.catalogue.get(id).ok_or_else(|| unknown_business_object(id))
}

fn unknown_business_object(id: &str) -> Problem {
    Problem::not_found(format!("there is no Business Object with the id or name {id:?}"))
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    object: &'a BusinessObject,
    warnings: Vec<Value>,
}

/// Responds with one Business Object, its warnings and its entity tag. Blocking.
fn business_object_reply(gateway: &Gateway, compiled: &Arc<Compiled>) -> ReplyResult {
    let answers = with_warnings(gateway, std::slice::from_ref(compiled))?;
    Ok(Reply::json(&answers.first())?.with_header(ETAG, &format_etag(compiled.object.version)))
}

/// Returns Business Objects with their warnings. Blocking.
fn with_warnings<'a>(
    gateway: &Gateway,
    of: &'a [Arc<Compiled>],
) -> Result<Vec<Answer<'a>>, GatewayError> {
    let warnings = gateway.catalogue.collect_warnings(of)?;
    let answer = |(compiled, warnings): (&'a Arc<Compiled>, Vec<Finding>)| Answer {
        object: &compiled.object,
        warnings: warnings.iter().map(problem::finding_to_json).collect(),
    };
    Ok(of.iter().zip(warnings).map(answer).collect())
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
    run_blocking(move || {
        let mut all = gateway.catalogue.list();
        if let Some(cursor) = cursor {
            all.retain(|compiled| compiled.object.definition.name > cursor);
        }
        all.truncate(limit + 1);
        let items = with_warnings(&gateway, &all)?;
        page_reply(items, limit, |answer| &answer.object.definition.name)
    })
    .await
}

/// Creates a Business Object, or replaces the one of the same name.
#[endpoint(
    operation_id = "putBusinessObject",
    tags("Business Objects"),
    parameters(
        ("force" = Option<bool>, Query, description = "Replace it even if many objects would no longer belong to it."),
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
    let (state, gateway) = (state(depot), gateway(depot)?);
    let body = body::read_json_body(req, depot).await?;
    let only_if_new = is_create_only(req)?;
    let one_at_a_time = state.creation_lock.lock().await;
    // The catalogue refuses a body without a name, and reports all errors in it.
    let if_match = match read_definition_name(body.bytes()) {
        Some(name) => {
            let there = gateway.catalogue.get(&name).map(|there| there.object.clone());
            let there = there.filter(|there| there.definition.name == name);
            if only_if_new && there.is_some() {
                return Err(Problem::new(
                    StatusCode::PRECONDITION_FAILED,
                    format!(
                        "If-None-Match requires a new Business Object, and {name:?} already exists"
                    ),
                ));
            }
            read_if_match(req, there.map(|there| there.version))?
        }
        None => IfMatch::Any,
    };
    let by = caller(depot).clone();
    let defined = move || {
        let (compiled, created) =
            define_business_object(&gateway, &by, force, body.bytes(), if_match)?;
        Ok((business_object_reply(&gateway, &compiled)?, compiled, created))
    };
    let (reply, compiled, created) = run_blocking(defined).await?;
    drop(one_at_a_time);
    if !created {
        return Ok(reply);
    }
    let prefix = &origin(depot).prefix;
    let id = encode_segment(&compiled.object.id);
    let location = format!("{prefix}/api/v1/business-objects/{id}");
    Ok(reply.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

/// Creates the Business Object of this definition, or replaces the one of the same name. Returns whether it was
/// created. Blocking.
pub fn define_business_object(
    gateway: &Gateway,
    by: &Authorized,
    force: bool,
    body: &[u8],
    if_match: IfMatch,
) -> Result<(Arc<Compiled>, bool), GatewayError> {
    gateway.disk.check_reserve()?;
    gateway.auth.audit.flush();
    let audited = audit_hook(gateway, by);
    let by = Requester { force, on_commit: Some(&audited), ..Requester::new(by, by.id()) };
    gateway.catalogue.put(by, body, if_match, &|bucket| gateway.exporter.check_target(bucket))
}

/// Replaces the Business Object of this id or name. Blocking.
pub fn redefine_business_object(
    gateway: &Gateway,
    by: &Authorized,
    force: bool,
    id: &str,
    body: &[u8],
    if_match: IfMatch,
) -> Result<Arc<Compiled>, GatewayError> {
    gateway.disk.check_reserve()?;
    gateway.auth.audit.flush();
    let audited = audit_hook(gateway, by);
    let by = Requester { force, on_commit: Some(&audited), ..Requester::new(by, by.id()) };
    gateway
        .catalogue
        .replace(by, id, body, if_match, &|bucket| gateway.exporter.check_target(bucket))
}

/// Deletes the Business Object of this id or name. Its objects stay. Blocking.
pub fn remove_business_object(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    if_match: IfMatch,
) -> Result<(), GatewayError> {
    gateway.auth.audit.flush();
    let audited = audit_hook(gateway, by);
    let by = Requester { on_commit: Some(&audited), ..Requester::new(by, by.id()) };
    gateway.catalogue.delete(by, id, if_match)
}

/// Returns the hook that adds the audit events of a change to its commit: one for the Business Object, one for
/// all created namespaces and one for all changed ones. A mapping may name a thousand namespaces, so they have
/// no events of their own.
fn audit_hook<'a>(
    gateway: &'a Gateway,
    by: &'a Caller,
) -> impl Fn(&mut Transaction<'_>, &Change<'_>) -> Result<(), GatewayError> + 'a {
    move |transaction, change| {
        let audit = &gateway.auth.audit;
        for (what, is_new) in [("namespace.created", true), ("namespace.replaced", false)] {
            let of_kind = change.namespaces.iter().filter(|(_, created)| *created == is_new);
            let named: Vec<String> = of_kind
                .map(|(namespace, _)| format!("{:?} <{}>", namespace.name, namespace.uri_base))
                .collect();
            if !named.is_empty() {
                let detail =
                    format!("{}, for the Business Object {:?}", named.join(", "), change.name);
                audit.add_event(transaction, &change_event(by, what, detail))?;
            }
        }
        let what = match change.action {
            Action::Created => "business-object.created",
            Action::Replaced => "business-object.replaced",
            Action::Deleted => "business-object.deleted",
        };
        let forced = change.forced.map_or_else(String::new, |loss| {
            format!(", force=true: {loss} no longer belong to it")
        });
        let detail =
            format!("{:?} ({}), version {}{forced}", change.name, change.id, change.version);
        audit.add_event(transaction, &change_event(by, what, detail))
    }
}

/// Returns the `name` in a definition, if the definition can be parsed that far.
fn read_definition_name(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_slice::<Named>(body).ok().map(|named| named.name)
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
    let compiled = find_business_object(req, &gateway)?;
    run_blocking(move || business_object_reply(&gateway, &compiled)).await
}

/// Replaces a Business Object. Its name may change.
#[endpoint(
    operation_id = "replaceBusinessObject",
    tags("Business Objects"),
    parameters(
        ("id" = String, Path, description = "Its id or its name."),
        ("force" = Option<bool>, Query, description = "Replace it even if many objects would no longer belong to it."),
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
    let id = path_parameter(req, "id").to_owned();
    let by = caller(depot).clone();
    let redefined = move || {
        let compiled = redefine_business_object(&gateway, &by, force, &id, body.bytes(), if_match)?;
        business_object_reply(&gateway, &compiled)
    };
    run_blocking(redefined).await
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
pub(super) async fn delete_business_object(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let if_match = read_path_if_match(req, &gateway)?;
    let id = path_parameter(req, "id").to_owned();
    let by = caller(depot).clone();
    run_blocking(move || Ok(remove_business_object(&gateway, &by, &id, if_match)?)).await?;
    Ok(Reply::no_content())
}

/// Returns the condition of `If-Match` for the Business Object in the path.
///
/// # Errors
/// 404 if it does not exist; 412 if it has another version.
fn read_path_if_match(req: &Request, gateway: &Gateway) -> Result<IfMatch, Problem> {
    if !req.headers().contains_key(IF_MATCH) {
        return Ok(IfMatch::Any);
    }
    read_if_match(req, Some(find_business_object(req, gateway)?.object.version))
}
