//! What a URI leads to.
use crate::blocking::run_blocking;
use crate::gateway::Gateway;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad};
use penstock_base::error::GatewayError;
use penstock_model::mapping::{FieldKind, Property, Shape, Value};
use penstock_model::rdf::{self, Format};
use penstock_model::{members, namespace, view};
use penstock_store::Read;

/// A form in which an object is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectForm {
    /// JSON, in the view of a Business Object.
    Json,
    /// Its triples.
    Rdf(Format),
}

impl ObjectForm {
    /// All forms, the preferred one first.
    pub const ALL: [Self; 4] = [
        Self::Json,
        Self::Rdf(Format::Turtle),
        Self::Rdf(Format::NTriples),
        Self::Rdf(Format::JsonLd),
    ];
}

/// What a URI leads to.
#[derive(Debug)]
pub enum Resolution {
    /// No object with this URI is stored.
    Unknown,
    /// The object, in the first accepted form that it has.
    Object(ObjectForm, Vec<u8>),
    /// The object has none of the accepted forms, but these.
    Unaccepted(Vec<ObjectForm>),
}

/// Returns the first stored object among these URIs, in the first of the accepted forms that it has.
///
/// # Errors
/// - `ErrorClass::TooLarge` if the object is too large to be shown as JSON
pub async fn resolve_uri(
    gateway: &Gateway,
    candidates: Vec<NamedNode>,
    accepted: Vec<ObjectForm>,
) -> Result<Resolution, GatewayError> {
    let gateway = gateway.clone();
    run_blocking(move || {
        let read = gateway.store.read();
        for uri in candidates {
            let quads = read.quads_about(&NamedOrBlankNode::from(uri.clone()))?;
            if !quads.is_empty() {
                return show_object(&gateway, &read, &uri, &quads, &accepted);
            }
        }
        Ok(Resolution::Unknown)
    })
    .await
}

fn show_object(
    gateway: &Gateway,
    read: &impl Read,
    uri: &NamedNode,
    quads: &[Quad],
    accepted: &[ObjectForm],
) -> Result<Resolution, GatewayError> {
    let shape = find_shape(gateway, read, uri, quads)?;
    for form in accepted {
        let bytes = match (form, &shape) {
            (ObjectForm::Json, None) => continue,
            (ObjectForm::Json, Some(shape)) => {
                let mut json = Vec::new();
                view::render_object(read, shape, uri, &mut json, &mut Vec::new())?;
                json
            }
            (ObjectForm::Rdf(format), _) => rdf::write_triples(*format, quads)?,
        };
        return Ok(Resolution::Object(*form, bytes));
    }
    let has_json = shape.is_some();
    let offered = ObjectForm::ALL.into_iter().filter(|form| has_json || *form != ObjectForm::Json);
    Ok(Resolution::Unaccepted(offered.collect()))
}

/// Returns the shape through which an object is shown: that of a Business Object that it belongs to, otherwise a
/// nested one of its namespace.
pub(super) fn find_shape(
    gateway: &Gateway,
    read: &impl Read,
    uri: &NamedNode,
    quads: &[Quad],
) -> Result<Option<Shape>, GatewayError> {
    let mut nested = None;
    for business_object in gateway.catalogue.list() {
        let root = &business_object.mapping.root;
        if is_in_namespace(read, &root.namespace, quads)?
            && members::is_member(read, &business_object, uri)?
        {
            return Ok(Some(root.clone()));
        }
        if nested.is_none() {
            nested = find_nested_shape(read, root, quads)?;
        }
    }
    Ok(nested)
}

fn find_nested_shape(
    read: &impl Read,
    shape: &Shape,
    quads: &[Quad],
) -> Result<Option<Shape>, GatewayError> {
    for field in &shape.fields {
        let FieldKind::Property(Property { value: Value::Object(inner), .. }) = &field.kind else {
            continue;
        };
        if is_in_namespace(read, &inner.namespace, quads)? {
            return Ok(Some(inner.clone()));
        }
        if let Some(found) = find_nested_shape(read, inner, quads)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether any of these quads is in the graph of this namespace.
fn is_in_namespace(read: &impl Read, name: &str, quads: &[Quad]) -> Result<bool, GatewayError> {
    let Some(namespace) = namespace::get(read, name)? else { return Ok(false) };
    let graph = GraphName::from(namespace.graph_name());
    Ok(quads.iter().any(|quad| quad.graph_name == graph))
}
