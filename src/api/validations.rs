//! `/api/v1/validations`: validations of everything that a Business Object has.
use crate::negotiation::negotiate;
use crate::sparql::{WriteLimit, stream_answer};
use penstock_http::accept::AcceptedTypes;
use penstock_http::access::MinimumRole::{Contributor, User};
use penstock_http::call::Call;
use penstock_http::operation::{Operation, delete, get, post};
use penstock_http::parameters::PageQuery;
use penstock_http::problem::Problem;
use penstock_http::query::{NumberCursor, UuidCursor};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::rdf::Format;
use penstock_resources::Page;
use penstock_resources::validation::{Validation, ValidationReport};
use penstock_service::business_objects::{find_business_object, find_business_object_id};
use penstock_service::sparql::acquire_graph_permit;
use penstock_service::validations::{self, Report};
use salvo::Request;
use salvo::http::header::{LOCATION, VARY};
use salvo::http::{Method, ResBody, StatusCode};

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        post("/api/v1/business-objects/{id}/validation", Contributor, start_validation)
            .describe(
                "startValidation",
                "Shapes",
                "Validates all members of a Business Object by its shapes graphs, in the background.\n\nIt validates \
                 the state at the beginning of its run, whatever the `mode` of the Business Object. One validation \
                 runs, and 16 wait; further ones get 503.",
            )
            .parameter("id", "The Business Object's id or name.")
            .answer::<Validation>(202, "Queued.")
            .answer_header("Location", "The path of the validation.")
            .problems(&[400, 404, 409, 507]),
        get("/api/v1/validations", User, list_validations)
            .describe(
                "listValidations",
                "Shapes",
                "Lists the validations, newest first. The last 100 that have ended are kept.",
            )
            .answer::<Page<Validation>>(200, "A page.")
            .problems(&[400]),
        get("/api/v1/validations/{id}", User, get_validation)
            .describe(
                "getValidation",
                "Shapes",
                "Returns a validation, with its counts and a page of its violations, or as an \
                 `sh:ValidationReport`.\n\nThe answer is JSON, unless `Accept` prefers an RDF format. Such a report has \
                 all listed violations, and exists when the validation is finished (409 before).",
            )
            .parameter("limit", "Violations of a page, 1 to 1000; 100 when absent.")
            .answer::<ValidationReport>(200, "The validation.")
            .answer_as_rdf()
            .problems(&[400, 404, 406, 409]),
        delete("/api/v1/validations/{id}", Contributor, cancel_validation)
            .describe("cancelValidation", "Shapes", "Cancels a validation that waits or runs.")
            .answer::<Validation>(200, "Cancelled.")
            .problems(&[400, 404, 409]),
    ]
}

async fn start_validation(call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let business_object = find_business_object(&gateway, call.path("id"))?;
    let by = call.caller();
    let queued = validations::start_validation(&gateway, by, business_object).await?;
    let location = call.locate(&format!("/api/v1/validations/{}", queued.id));
    Ok(Reply::json(&queued)?.with_status(StatusCode::ACCEPTED).with_header(LOCATION, &location))
}

penstock_http::parameters! {
    /// Which validations are listed.
    struct ValidationsQuery {
        "businessObject" => business_object: Option<String>, "Only those of the Business Object with this id or name.";
        ..page: PageQuery<UuidCursor>
    }
}

async fn list_validations(call: Call<'_>, query: ValidationsQuery) -> ReplyResult {
    let ValidationsQuery { business_object, page } = query;
    let gateway = call.gateway()?;
    let wanted = business_object.map(|named| find_business_object_id(&gateway, &named));
    let (wanted, after) = (wanted.as_deref(), page.after.as_deref());
    let by = call.caller();
    let found = validations::list_validations(&gateway, by, wanted, after, page.limit + 1);
    Reply::json(&page.page(found, |one| one.id.clone()))
}

penstock_http::parameters! {
    /// The form of a validation, and which of its violations are listed.
    struct ReportQuery {
        "format" => format: Option<String>, "The RDF format in place of Accept: ttl, nt, nq, trig, rdf or jsonld.";
        ..page: PageQuery<NumberCursor>
    }
}

async fn get_validation(call: Call<'_>, query: ReportQuery) -> ReplyResult {
    let ReportQuery { format, page } = query;
    let (gateway, id) = (call.gateway()?, call.path("id"));
    let Some(format) = read_format(call.req, format.as_deref())? else {
        let report = validations::find_validation(&gateway, id).await?;
        let skipped = usize::try_from(page.after.unwrap_or_default()).unwrap_or(usize::MAX);
        let (by, most) = (call.caller(), page.limit + 1);
        let listed = validations::list_violations(&gateway, by, id, skipped, most).await?;
        let Page { items, next } =
            page.page(listed, |_| skipped.saturating_add(page.limit).to_string());
        let Report { validation, constraints, other_count } = report;
        let report = ValidationReport { validation, constraints, other_count, items, next };
        return Ok(Reply::json(&report)?.with_header(VARY, "Accept"));
    };
    validations::check_finished(&gateway, id)?;
    let media_type = format.media_type();
    let reply = if *call.req.method() == Method::HEAD {
        Reply::stream(media_type, ResBody::None)
    } else {
        let permit = acquire_graph_permit(&gateway, call.caller()).await?;
        let (by, id) = (call.caller().clone(), id.to_owned());
        stream_answer(call.req, WriteLimit::Rate, move |writer| {
            let _permit = permit;
            writer.set_media_type(media_type);
            Ok(validations::write_report(&gateway, &by, &id, format, writer)?)
        })
        .await?
    };
    Ok(reply.with_header(VARY, "Accept"))
}

/// Returns the RDF format that the request wants; `None` for JSON.
fn read_format(req: &Request, given: Option<&str>) -> Result<Option<Format>, Problem> {
    if let Some(name) = given {
        return name.parse().map(Some).map_err(Problem::malformed);
    }
    let mut offered = vec![("application/json", None)];
    offered.extend(Format::ALL.map(|format| (format.media_type(), Some(format))));
    let accepted = AcceptedTypes::from_headers(req.headers());
    Ok(negotiate(&accepted, &offered)?.1)
}

async fn cancel_validation(call: Call<'_>) -> ReplyResult {
    let (gateway, id) = (call.gateway()?, call.path("id"));
    Reply::json(&validations::cancel_validation(&gateway, call.caller(), id).await?)
}
