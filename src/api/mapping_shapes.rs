//! `/api/v1/business-objects/{id}/shapes`: what a mapping requires of the stored objects.
use crate::negotiation::negotiate;
use penstock_http::accept::AcceptedTypes;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_model::mapping::{build_shacl, write_shex};
use penstock_model::rdf::{Format, write_document};
use penstock_service::business_objects::find_business_object;
use salvo::http::header::VARY;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// The media type of the compact syntax of ShEx.
const SHEX_MEDIA_TYPE: &str = "text/shex";

/// A language of shapes.
#[derive(Debug, Clone, Copy)]
enum Language {
    Shacl(Format),
    ShEx,
}

/// Returns what the mapping requires of the stored objects, as SHACL or ShEx.
///
/// `Accept` chooses the format: SHACL as Turtle (the default), N-Triples, N-Quads, TriG, RDF/XML or JSON-LD, or ShEx in
/// its compact syntax. The shape of the members is `urn:penstock:<id>:shape`.
#[endpoint(
    operation_id = "getShapes",
    tags("Business Objects"),
    parameters(("id" = String, Path, description = "The Business Object's id or name.")),
    responses((status_code = 200, description = "The shapes in the format that Accept prefers.",
        headers(("Vary" = String, description = "`Accept`")),
        content(("text/turtle" = String), ("application/n-triples" = String), ("application/n-quads" = String),
            ("application/trig" = String), ("application/rdf+xml" = String),
            ("application/ld+json" = serde_json::Value), ("text/shex" = String)))),
)]
pub(super) async fn get_shapes(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let business_object = find_business_object(&gateway(depot)?, path_parameter(req, "id"))?;
    let mut offered =
        Format::ALL.map(|format| (format.media_type(), Language::Shacl(format))).to_vec();
    offered.push((SHEX_MEDIA_TYPE, Language::ShEx));
    let accepted = AcceptedTypes::from_headers(req.headers());
    let (media_type, language) = negotiate(&accepted, &offered)?;
    let source = business_object.shape_source();
    let bytes = match language {
        Language::Shacl(format) => {
            write_document(format, &build_shacl(&source), &source.prefixes())?
        }
        Language::ShEx => write_shex(&source).into_bytes(),
    };
    Ok(Reply::bytes(media_type, bytes).with_header(VARY, "Accept"))
}
