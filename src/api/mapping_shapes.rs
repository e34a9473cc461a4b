//! `/api/v1/business-objects/{id}/shapes`: what a mapping requires of the stored objects.
use crate::negotiation::negotiate;
use penstock_http::accept::AcceptedTypes;
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::mapping::{build_shacl, write_shex};
use penstock_model::rdf::{Format, write_document};
use penstock_service::business_objects::find_business_object;
use salvo::http::header::VARY;

/// The media type of the compact syntax of ShEx.
const SHEX_MEDIA_TYPE: &str = "text/shex";

/// A language of shapes.
#[derive(Debug, Clone, Copy)]
enum Language {
    Shacl(Format),
    ShEx,
}

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/business-objects/{id}/shapes", User, get_shapes)
            .describe(
                "getShapes",
                "Business Objects",
                "Returns what the mapping requires of the stored objects, as SHACL or ShEx.\n\n`Accept` chooses the \
                 format: SHACL as Turtle (the default), N-Triples, N-Quads, TriG, RDF/XML or JSON-LD, or ShEx in its \
                 compact syntax. The shape of the members is `urn:penstock:<id>:shape`.",
            )
            .parameter("id", "The Business Object's id or name.")
            .empty_answer(200, "The shapes in the format that Accept prefers.")
            .answer_as_rdf()
            .answer_as::<String>(SHEX_MEDIA_TYPE)
            .answer_header("Vary", "`Accept`")
            .problems(&[400, 404, 406, 422]),
    ]
}

async fn get_shapes(call: Call<'_>) -> ReplyResult {
    let business_object = find_business_object(&call.gateway()?, call.path("id"))?;
    let mut offered =
        Format::ALL.map(|format| (format.media_type(), Language::Shacl(format))).to_vec();
    offered.push((SHEX_MEDIA_TYPE, Language::ShEx));
    let accepted = AcceptedTypes::from_headers(call.req.headers());
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
