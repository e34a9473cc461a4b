//! Minted URIs whose address is this gateway: they return their object in the form that the client accepts.
use crate::shapes;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer};
use penstock_http::accept::{MediaRange, accepted_ranges, media_type_weight};
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::{gateway, run_blocking};
use penstock_model::mapping::{FieldKind, Property, Shape, Value};
use penstock_model::{members, namespace, view};
use penstock_service::gateway::Gateway;
use penstock_store::Read;
use salvo::http::StatusCode;
use salvo::http::header::VARY;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// A form in which the gateway offers an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectForm {
    Json,
    Turtle,
    NTriples,
    JsonLd,
}

impl ObjectForm {
    /// All forms, the preferred one first.
    const ALL: [Self; 4] = [Self::Json, Self::Turtle, Self::NTriples, Self::JsonLd];

    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Turtle => "text/turtle",
            Self::NTriples => "application/n-triples",
            Self::JsonLd => "application/ld+json",
        }
    }
}

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
            ("application/n-triples" = String), ("application/ld+json" = serde_json::Value)))),
)]
pub(super) async fn resolve_identifier(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Ok(find_object(req, depot).await?.with_header(VARY, "Accept"))
}

async fn find_object(req: &Request, depot: &Depot) -> ReplyResult {
    let gateway = gateway(depot)?;
    let path = req.uri().path().to_owned();
    let accepted = accepted_ranges(req.headers());
    let candidates = candidate_uris(&path, depot, &gateway);
    run_blocking(move || {
        let read = gateway.store.read();
        for uri in candidates {
            let quads = read.quads_about(&NamedOrBlankNode::from(uri.clone()))?;
            if !quads.is_empty() {
                return negotiate_reply(&gateway, &read, &uri, &quads, &accepted);
            }
        }
        Err(Problem::not_found(format!(
            "there is nothing at {path}: no route of /api-doc/openapi.json, and no stored object"
        )))
    })
    .await
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

fn negotiate_reply(
    gateway: &Gateway,
    read: &impl Read,
    uri: &NamedNode,
    quads: &[Quad],
    accepted: &[MediaRange],
) -> ReplyResult {
    let shape = find_shape(gateway, read, uri, quads)?;
    let offered =
        ObjectForm::ALL.into_iter().filter(|form| *form != ObjectForm::Json || shape.is_some());
    let mut best: Option<(u16, ObjectForm)> = None;
    for form in offered.clone() {
        let quality = media_type_weight(accepted, form.media_type());
        if quality > best.map_or(0, |(quality, _)| quality) {
            best = Some((quality, form));
        }
    }
    let Some((_, form)) = best else {
        let offered: Vec<_> = offered.map(ObjectForm::media_type).collect();
        return Err(Problem::new(
            StatusCode::NOT_ACCEPTABLE,
            format!("Accept allows none of the offered media types: {}", offered.join(", ")),
        )
        .with_header(VARY, salvo::http::header::HeaderValue::from_static("Accept")));
    };
    let bytes = match (form, shape) {
        (ObjectForm::Json, Some(shape)) => {
            let mut out = Vec::new();
            view::render_object(read, &shape, uri, &mut out, &mut Vec::new())?;
            out
        }
        (ObjectForm::NTriples, _) => write_rdf(RdfFormat::NTriples, quads)?,
        (ObjectForm::JsonLd, _) => {
            write_rdf(RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() }, quads)?
        }
        (ObjectForm::Turtle | ObjectForm::Json, _) => write_rdf(RdfFormat::Turtle, quads)?,
    };
    Ok(Reply::bytes(form.media_type(), bytes))
}

/// Returns the shape through which an object is shown: that of a Business Object that it belongs to,
/// otherwise a nested one of its namespace.
pub fn find_shape(
    gateway: &Gateway,
    read: &impl Read,
    uri: &NamedNode,
    quads: &[Quad],
) -> Result<Option<Shape>, Problem> {
    let mut nested = None;
    for business_object in gateway.catalogue.list() {
        let root = &business_object.mapping.root;
        if is_in_namespace(read, &root.namespace, quads)?
            && members::is_member(read, &business_object, uri)?
        {
            return Ok(Some(root.clone()));
        }
        if nested.is_none() {
            nested = nested_shape(read, root, quads)?;
        }
    }
    Ok(nested)
}

fn nested_shape(read: &impl Read, shape: &Shape, quads: &[Quad]) -> Result<Option<Shape>, Problem> {
    for field in &shape.fields {
        let FieldKind::Property(Property { value: Value::Object(inner), .. }) = &field.kind else {
            continue;
        };
        if is_in_namespace(read, &inner.namespace, quads)? {
            return Ok(Some(inner.clone()));
        }
        if let Some(found) = nested_shape(read, inner, quads)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether any of these quads is in the graph of this namespace.
fn is_in_namespace(read: &impl Read, name: &str, quads: &[Quad]) -> Result<bool, Problem> {
    let Some(namespace) = namespace::get(read, name)? else { return Ok(false) };
    let graph = GraphName::from(namespace.graph_name());
    Ok(quads.iter().any(|quad| quad.graph_name == graph))
}

/// Writes these quads as Turtle.
pub fn to_turtle(quads: &[Quad]) -> Result<String, Problem> {
    // The serialiser writes UTF-8.
    Ok(String::from_utf8_lossy(&write_rdf(RdfFormat::Turtle, quads)?).into_owned())
}

fn write_rdf(format: RdfFormat, quads: &[Quad]) -> Result<Vec<u8>, Problem> {
    let mut writer = RdfSerializer::from_format(format).for_writer(Vec::new());
    // These formats have no graphs, so the triples of all graphs are merged, as in the views.
    let written = quads.iter().try_for_each(|quad| {
        writer.serialize_triple(oxrdf::TripleRef::new(
            quad.subject.as_ref(),
            quad.predicate.as_ref(),
            quad.object.as_ref(),
        ))
    });
    written.and_then(|()| writer.finish()).map_err(|error| {
        tracing::error!(%error, "An object could not be written as RDF.");
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the object could not be written; the gateway's log says why",
        )
    })
}
