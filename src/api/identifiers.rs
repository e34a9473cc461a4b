//! Minted URIs whose address is this gateway: they return their object in the form that the client accepts.
use oxrdf::NamedNode;
use penstock_auth::Credential;
use penstock_http::accept::AcceptedTypes;
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::origin::{Origin, base_path, origin};
use penstock_http::parameters::AnyQuery;
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::object::ViewedObject;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{self, ObjectForm, Resolution};
use salvo::http::StatusCode;
use salvo::http::header::{HeaderValue, LOCATION, VARY};
use salvo::{Handler, Request};
use std::cmp::Reverse;
use std::sync::Arc;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![resolve_operation()]
}

/// Returns the handler that resolves the address of any request.
pub(super) fn object_handler() -> Arc<dyn Handler> {
    resolve_operation().route.handler()
}

fn resolve_operation() -> Operation {
    get("/id/{namespace}/{local}", User, resolve_identifier)
        .describe(
            "resolve",
            "Objects",
            "Returns the object whose URI is the address of the request.\n\nEvery minted URI that leads to this \
             gateway works, whatever its path. This is the path of URIs with the default base.",
        )
        .parameter("namespace", "The namespace's name.")
        .parameter("local", "The local identifier.")
        .answer::<ViewedObject>(200, "The object in the form that Accept prefers.")
        .answer_as::<String>("text/turtle")
        .answer_as::<String>("application/n-triples")
        .answer_as::<serde_json::Value>("application/ld+json")
        .answer_header("Vary", "`Accept`")
        .empty_answer(303, "For a session that prefers `text/html`: the object's page.")
        .answer_header("Location", "The path of the page.")
        .problems(&[404, 406, 413])
}

async fn resolve_identifier(call: Call<'_>, _query: AnyQuery) -> ReplyResult {
    Ok(find_object(&call).await?.with_header(VARY, "Accept"))
}

async fn find_object(call: &Call<'_>) -> ReplyResult {
    let (gateway, req) = (call.gateway()?, &*call.req);
    let path = req.uri().path();
    let candidates = candidate_uris(path, origin(call.depot), &gateway);
    let prefers_page = prefers_page(call);
    match objects::resolve_uri(&gateway, candidates, accepted_forms(req), prefers_page).await? {
        Resolution::Object(form, bytes) => Ok(Reply::bytes(media_type(form), bytes)),
        Resolution::Page(uri) => {
            let uri = encode_segment(uri.as_str());
            let page = call.locate(&format!("/admin/object?uri={uri}"));
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
fn prefers_page(call: &Call<'_>) -> bool {
    let accepted = AcceptedTypes::from_headers(call.req.headers());
    let weight = accepted.weight_of("text/html");
    matches!(call.caller().credential, Credential::Session(_))
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
fn candidate_uris(path: &str, origin: &Origin, gateway: &Gateway) -> Vec<NamedNode> {
    let mut texts = Vec::new();
    if let Some(base) = &gateway.settings.base_url {
        texts.push(format!("{base}{path}"));
        let server = base.len() - base_path(Some(base)).len();
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
