//! Minted URIs whose address is this gateway: they return their object in the form that the client accepts.
use crate::shapes;
use oxrdf::NamedNode;
use penstock_auth::Credential;
use penstock_http::accept::AcceptedTypes;
use penstock_http::caller::caller;
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::gateway;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{self, ObjectForm, Resolution};
use salvo::http::StatusCode;
use salvo::http::header::{HeaderValue, LOCATION, VARY};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;
use std::cmp::Reverse;

/// Returns the object whose URI is the address of the request.
///
/// Every minted URI that leads to this gateway works, whatever its path. This is the path of URIs with the
/// default base.
#[endpoint(
    operation_id = "resolve",
    tags("Objects"),
    parameters(
        ("namespace" = String, Path, description = "The namespace's name."),
        ("local" = String, Path, description = "The local identifier."),
    ),
    responses((status_code = 200, description = "The object in the form that Accept prefers.",
        headers(("Vary" = String, description = "`Accept`")),
        content(("application/json" = shapes::ViewedObject), ("text/turtle" = String),
            ("application/n-triples" = String), ("application/ld+json" = serde_json::Value))),
        (status_code = 303, description = "For a session that prefers `text/html`: the object's page.",
            headers(("Location" = String, description = "The path of the page.")))),
)]
pub(super) async fn resolve_identifier(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Ok(find_object(req, depot).await?.with_header(VARY, "Accept"))
}

async fn find_object(req: &Request, depot: &Depot) -> ReplyResult {
    let gateway = gateway(depot)?;
    let path = req.uri().path();
    let candidates = candidate_uris(path, depot, &gateway);
    let prefers_page = prefers_page(req, depot);
    match objects::resolve_uri(&gateway, candidates, accepted_forms(req), prefers_page).await? {
        Resolution::Object(form, bytes) => Ok(Reply::bytes(media_type(form), bytes)),
        Resolution::Page(uri) => {
            let prefix = &origin(depot).prefix;
            let page = format!("{prefix}/admin/object?uri={}", encode_segment(uri.as_str()));
            Ok(Reply::no_content().with_status(StatusCode::SEE_OTHER).with_header(LOCATION, &page))
        }
        Resolution::Unaccepted(forms) => {
            let offered: Vec<_> = forms.into_iter().map(media_type).collect();
            Err(Problem::new(
                StatusCode::NOT_ACCEPTABLE,
                format!("Accept allows none of the offered media types: {}", offered.join(", ")),
            )
            .with_header(VARY, HeaderValue::from_static("Accept")))
        }
        Resolution::Unknown => Err(Problem::not_found(format!(
            "there is nothing at {path}: no route of /api-doc/openapi.json, and no stored object"
        ))),
    }
}

/// Whether a signed-in person asks for a page rather than for data, as browsers do. Only sessions may use pages.
fn prefers_page(req: &Request, depot: &Depot) -> bool {
    let accepted = AcceptedTypes::from_headers(req.headers());
    let weight = accepted.weight_of("text/html");
    matches!(caller(depot).credential, Credential::Session(_))
        && accepted.has_named("text/html")
        && ObjectForm::ALL.iter().all(|form| accepted.weight_of(media_type(*form)) < weight)
}

/// Returns the forms that the request accepts, the preferred one first.
fn accepted_forms(req: &Request) -> Vec<ObjectForm> {
    let accepted = AcceptedTypes::from_headers(req.headers());
    let weight = |form: &ObjectForm| accepted.weight_of(media_type(*form));
    let mut forms = ObjectForm::ALL.to_vec();
    forms.retain(|form| weight(form) > 0);
    // The sort is stable: of forms with the same weight, the gateway's order counts.
    forms.sort_by_key(|form| Reverse(weight(form)));
    forms
}

fn media_type(form: ObjectForm) -> &'static str {
    match form {
        ObjectForm::Json => "application/json",
        ObjectForm::Rdf(format) => format.media_type(),
    }
}

/// Returns the URIs that a request to this path may mean. The path stays percent-encoded, as minted URIs are
/// stored.
fn candidate_uris(path: &str, depot: &Depot, gateway: &Gateway) -> Vec<NamedNode> {
    let origin = origin(depot);
    let mut texts = Vec::new();
    if let Some(base) = &gateway.settings.base_url {
        texts.push(format!("{base}{path}"));
        let server = base.len() - penstock_http::origin::base_path(Some(base)).len();
        texts.push(format!("{}{path}", base.get(..server).unwrap_or(base)));
    }
    if let Some(host) = &origin.host {
        texts.push(format!("{}://{host}{}{path}", origin.scheme, origin.prefix));
        texts.push(format!("{}://{host}{path}", origin.scheme));
    }
    let mut nodes: Vec<NamedNode> = Vec::new();
    for node in texts.into_iter().filter_map(|text| NamedNode::new(text).ok()) {
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    nodes
}
