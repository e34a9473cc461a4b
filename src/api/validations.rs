//! `/api/v1/validations`: validations of everything that a Business Object has.
use crate::negotiation::negotiate;
use crate::shapes;
use crate::sparql::{WriteLimit, stream_answer};
use penstock_http::accept::AcceptedTypes;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, cursor_after, truncate_page};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::gateway;
use penstock_model::rdf::Format;
use penstock_service::business_objects::find_business_object;
use penstock_service::sparql::acquire_graph_permit;
use penstock_service::validations;
use salvo::http::header::{LOCATION, VARY};
use salvo::http::{Method, ResBody, StatusCode};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// Validates all members of a Business Object by its shapes graphs, in the background.
///
/// It validates the state at the beginning of its run, whatever the `mode` of the Business Object. One validation runs,
/// and 16 wait; further ones get 503.
#[endpoint(
    operation_id = "startValidation",
    tags("Shapes"),
    parameters(("id" = String, Path, description = "The Business Object's id or name.")),
    responses((status_code = 202, description = "Queued.", body = shapes::Validation,
        headers(("Location" = String, description = "The path of the validation.")))),
)]
pub(super) async fn start_validation(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let business_object = find_business_object(&gateway, path_parameter(req, "id"))?;
    let queued = validations::start_validation(&gateway, caller(depot), &business_object)?;
    let location = format!("{}/api/v1/validations/{}", origin(depot).prefix, queued.id);
    Ok(Reply::json(&shapes::Validation::from(queued))?
        .with_status(StatusCode::ACCEPTED)
        .with_header(LOCATION, &location))
}

/// Lists the validations, newest first. The last 100 that have ended are kept.
#[endpoint(
    operation_id = "listValidations",
    tags("Shapes"),
    parameters(
        ("businessObject" = Option<String>, Query, description = "Only those of the Business Object with this id or name."),
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::Validations)),
)]
pub(super) async fn list_validations(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["businessObject", "limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_uuid_cursor()?);
    let gateway = gateway(depot)?;
    // The validations of a deleted Business Object are found by its id.
    let wanted = query.get("businessObject").map(|wanted| {
        let compiled = gateway.catalogue.get(wanted);
        compiled.map_or_else(|| wanted.to_owned(), |compiled| compiled.object.id.clone())
    });
    let after = after.as_deref();
    let mut found = validations::list_validations(&gateway, wanted.as_deref(), after, limit + 1);
    let next = truncate_page(&mut found, limit, |one| &one.id);
    let items = found.into_iter().map(Into::into).collect();
    Reply::json(&shapes::Validations { items, next })
}

/// Returns a validation, with its counts and a page of its violations, or as an `sh:ValidationReport`.
///
/// The answer is JSON, unless `Accept` prefers an RDF format. Such a report has all listed violations, and exists when
/// the validation is finished (409 before).
#[endpoint(
    operation_id = "getValidation",
    tags("Shapes"),
    parameters(
        ("id" = String, Path, description = "Its id."),
        ("format" = Option<String>, Query, description = "The RDF format in place of Accept: ttl, nt, nq, trig, rdf or jsonld."),
        ("limit" = Option<u32>, Query, description = "Violations of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "The validation.",
        content(("application/json" = shapes::ValidationReport), ("text/turtle" = String),
            ("application/n-triples" = String), ("application/n-quads" = String), ("application/trig" = String),
            ("application/rdf+xml" = String), ("application/ld+json" = serde_json::Value)))),
)]
pub(super) async fn get_validation(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["format", "limit", "cursor"])?;
    let (limit, skipped) = (query.read_limit()?, query.read_number_cursor()?.unwrap_or_default());
    let (gateway, id) = (gateway(depot)?, path_parameter(req, "id"));
    let Some(format) = read_format(req, &query)? else {
        let report = validations::find_validation(&gateway, id).await?;
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let mut page = validations::list_violations(&gateway, id, skipped, limit + 1).await?;
        let next =
            (page.len() > limit).then(|| cursor_after(&skipped.saturating_add(limit).to_string()));
        page.truncate(limit);
        let report = shapes::ValidationReport::new(report, page, next);
        return Ok(Reply::json(&report)?.with_header(VARY, "Accept"));
    };
    validations::check_finished(&gateway, id)?;
    let media_type = format.media_type();
    let reply = if *req.method() == Method::HEAD {
        Reply::stream(media_type, ResBody::None)
    } else {
        let permit = acquire_graph_permit(&gateway, caller(depot)).await?;
        let id = id.to_owned();
        stream_answer(req, WriteLimit::Rate, move |writer| {
            let _permit = permit;
            writer.set_media_type(media_type);
            Ok(validations::write_report(&gateway, &id, format, writer)?)
        })
        .await?
    };
    Ok(reply.with_header(VARY, "Accept"))
}

/// Returns the RDF format that the request wants; `None` for JSON.
fn read_format(req: &Request, query: &Query) -> Result<Option<Format>, Problem> {
    if let Some(name) = query.get("format") {
        return name.parse().map(Some).map_err(Problem::malformed);
    }
    let mut offered = vec![("application/json", None)];
    offered.extend(Format::ALL.map(|format| (format.media_type(), Some(format))));
    let accepted = AcceptedTypes::from_headers(req.headers());
    Ok(negotiate(&accepted, &offered)?.1)
}

/// Cancels a validation that waits or runs.
#[endpoint(
    operation_id = "cancelValidation",
    tags("Shapes"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "Cancelled.", body = shapes::Validation)),
)]
pub(super) async fn cancel_validation(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let (gateway, id) = (gateway(depot)?, path_parameter(req, "id"));
    let cancelled = validations::cancel_validation(&gateway, caller(depot), id).await?;
    Reply::json(&shapes::Validation::from(cancelled))
}
