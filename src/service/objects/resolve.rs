//! What a URI leads to, and where a mapping describes the object.
use crate::gateway::Gateway;
use crate::sparql::collect_prefixes;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad};
use penstock_base::error::GatewayError;
use penstock_base::prefixes::WELL_KNOWN_PREFIXES;
use penstock_model::mapping::Shape;
use penstock_model::neighbours::nested_shape;
use penstock_model::rdf::{self, Format};
use penstock_model::resource::Compiled;
use penstock_model::{members, namespace, view};
use penstock_store::{Read, Snapshot};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

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
    /// The object with this URI, whose page the client prefers, and which a Business Object shows.
    Page(NamedNode),
    /// The object has none of the accepted forms, but these.
    Unaccepted(Vec<ObjectForm>),
}

/// Where a mapping describes an object.
#[derive(Debug, Clone)]
pub struct ShapePlace {
    /// The Business Object of the mapping.
    pub business_object: Arc<Compiled>,
    /// The indexes of the fields that lead from its objects to this one; none if this one belongs to it.
    pub steps: Vec<usize>,
}

impl ShapePlace {
    /// Returns the shape of the object.
    pub fn shape(&self) -> &Shape {
        let root = &self.business_object.mapping.root;
        self.steps.iter().fold(root, |shape, step| nested_shape(shape, *step).unwrap_or(shape))
    }
}

/// Returns the first stored object among these URIs, in the first of the accepted forms that it has; or that it has a page,
/// if the client prefers one.
///
/// # Errors
/// - `ErrorClass::TooLarge` if the object is too large to be shown as JSON
pub async fn resolve_uri(
    gateway: &Gateway,
    candidates: Vec<NamedNode>,
    accepted: Vec<ObjectForm>,
    prefers_page: bool,
) -> Result<Resolution, GatewayError> {
    gateway
        .read(move |gateway| {
            // An object can be large, and commits would wait for a reader of the index.
            let read = gateway.store.snapshot()?;
            for uri in candidates {
                let quads = read.quads_about(&NamedOrBlankNode::from(uri.clone()))?;
                if !quads.is_empty() {
                    if prefers_page && find_place(gateway, &read, &uri, &quads, None)?.is_some() {
                        return Ok(Resolution::Page(uri));
                    }
                    return show_object(gateway, &read, &uri, &quads, &accepted);
                }
            }
            Ok(Resolution::Unknown)
        })
        .await
}

fn show_object(
    gateway: &Gateway,
    read: &Snapshot,
    uri: &NamedNode,
    quads: &[Quad],
    accepted: &[ObjectForm],
) -> Result<Resolution, GatewayError> {
    let place = find_place(gateway, read, uri, quads, None)?;
    for form in accepted {
        let bytes = match (form, &place) {
            (ObjectForm::Json, None) => continue,
            (ObjectForm::Json, Some(place)) => {
                let mut json = Vec::new();
                view::render_object(read, place.shape(), uri, &mut json, &mut Vec::new())?;
                json
            }
            (ObjectForm::Rdf(format), _) => write_rdf(gateway, *format, quads)?,
        };
        return Ok(Resolution::Object(*form, bytes));
    }
    let has_json = place.is_some();
    let offered = ObjectForm::ALL.into_iter().filter(|form| has_json || *form != ObjectForm::Json);
    Ok(Resolution::Unaccepted(offered.collect()))
}

/// Writes the quads of an object in this format, Turtle with the prefixes of the mappings.
pub(super) fn write_rdf(
    gateway: &Gateway,
    format: Format,
    quads: &[Quad],
) -> Result<Vec<u8>, GatewayError> {
    rdf::write_triples(format, quads, &list_prefixes(gateway))
}

/// Returns the prefixes of all mappings, and the well-known ones that they do not declare.
pub(super) fn list_prefixes(gateway: &Gateway) -> BTreeMap<String, String> {
    let mut prefixes = collect_prefixes(&gateway.catalogue);
    for (name, iri) in WELL_KNOWN_PREFIXES {
        let is_declared = prefixes.values().any(|declared| declared == iri);
        if !is_declared {
            prefixes.entry((*name).to_owned()).or_insert_with(|| (*iri).to_owned());
        }
    }
    prefixes
}

/// Returns where the mapping is through which an object is shown, as [`PlaceFinder::find_place`].
pub(super) fn find_place(
    gateway: &Gateway,
    read: &dyn Read,
    uri: &NamedNode,
    quads: &[Quad],
    preferred: Option<&str>,
) -> Result<Option<ShapePlace>, GatewayError> {
    PlaceFinder::new(gateway, read, preferred).find_place(uri, quads)
}

/// Finds the mappings of objects. It reads the graph of each namespace only once.
pub(super) struct PlaceFinder<'f> {
    read: &'f dyn Read,
    /// All Business Objects, the preferred one first.
    all: Vec<Arc<Compiled>>,
    /// The graphs of the namespaces that were read, by their names.
    graphs: HashMap<String, Option<GraphName>>,
}

impl<'f> PlaceFinder<'f> {
    /// `preferred` is the id of the Business Object that should show an object, if it can.
    pub(super) fn new(gateway: &Gateway, read: &'f dyn Read, preferred: Option<&str>) -> Self {
        let mut all = gateway.catalogue.list();
        all.sort_by_key(|one| Some(one.object.id.as_str()) != preferred);
        Self { read, all, graphs: HashMap::new() }
    }

    /// Returns where the mapping is through which an object is shown: that of a Business Object that it belongs to, otherwise
    /// a nested one of its namespace.
    pub(super) fn find_place(
        &mut self,
        uri: &NamedNode,
        quads: &[Quad],
    ) -> Result<Option<ShapePlace>, GatewayError> {
        let graphs: HashSet<&GraphName> = quads.iter().map(|quad| &quad.graph_name).collect();
        let mut nested = None;
        for index in 0..self.all.len() {
            let Some(business_object) = self.all.get(index).cloned() else { break };
            let root = &business_object.mapping.root;
            if self.is_in_namespace(&root.namespace, &graphs)?
                && members::is_member(self.read, &business_object, uri)?
            {
                return Ok(Some(ShapePlace { business_object, steps: Vec::new() }));
            }
            if nested.is_none() {
                let mut steps = Vec::new();
                if self.find_nested_steps(root, &graphs, &mut steps)? {
                    nested = Some(ShapePlace { business_object, steps });
                }
            }
        }
        Ok(nested)
    }

    /// Adds the indexes of the fields that lead to a nested object in the namespace of these graphs. Returns whether there is
    /// one.
    fn find_nested_steps(
        &mut self,
        shape: &Shape,
        graphs: &HashSet<&GraphName>,
        steps: &mut Vec<usize>,
    ) -> Result<bool, GatewayError> {
        for index in 0..shape.fields.len() {
            let Some(inner) = nested_shape(shape, index) else { continue };
            steps.push(index);
            if self.is_in_namespace(&inner.namespace, graphs)?
                || self.find_nested_steps(inner, graphs, steps)?
            {
                return Ok(true);
            }
            steps.pop();
        }
        Ok(false)
    }

    /// Whether one of these graphs is that of this namespace.
    fn is_in_namespace(
        &mut self,
        name: &str,
        graphs: &HashSet<&GraphName>,
    ) -> Result<bool, GatewayError> {
        if !self.graphs.contains_key(name) {
            let found = namespace::get(self.read, name)?;
            let graph = found.map(|namespace| GraphName::from(namespace.graph_name()));
            self.graphs.insert(name.to_owned(), graph);
        }
        let graph = self.graphs.get(name).and_then(Option::as_ref);
        Ok(graph.is_some_and(|graph| graphs.contains(graph)))
    }
}
