//! The objects around an object, for a drawing.
use super::header::ObjectHeader;
use super::labels::{IriNames, read_labels};
use super::resolve::ShapePlace;
use crate::gateway::Gateway;
use oxrdf::{NamedNode, Quad};
use penstock_base::error::GatewayError;
use penstock_model::neighbours::{LinkedObjects, find_neighbours};
use penstock_store::Snapshot;
use std::collections::{BTreeSet, HashMap};

/// The maximum number of objects of a drawing for each property and direction.
const MAX_DRAWN_OBJECTS: usize = 6;
/// The same for a property that is expanded.
const MAX_EXPANDED_OBJECTS: usize = 100;
/// The maximum number of properties of a drawing for each direction.
const MAX_DRAWN_PROPERTIES: usize = 8;

/// The objects around an object.
#[derive(Debug)]
pub struct ObjectGraph {
    /// What refers to it.
    pub incoming: GraphSide,
    /// What it refers to.
    pub outgoing: GraphSide,
    /// Whether everything that refers to it was looked at.
    pub is_complete: bool,
}

/// The objects on one side of a drawing.
#[derive(Debug)]
pub struct GraphSide {
    /// The links, by property.
    pub groups: Vec<LinkGroup>,
    /// How many properties are not shown.
    pub omitted_properties: usize,
}

/// The objects that one property links.
#[derive(Debug)]
pub struct LinkGroup {
    /// The property.
    pub predicate: String,
    /// The name of the property: that of its field, or a short form of its IRI.
    pub name: String,
    /// The name of the field, if the mapping has one for it.
    pub field: Option<String>,
    /// The first objects.
    pub objects: Vec<GraphObject>,
    /// How many there are.
    pub total: usize,
}

/// An object in a drawing.
#[derive(Debug)]
pub struct GraphObject {
    /// Its URI.
    pub uri: String,
    /// Its label; a short form of its URI without one.
    pub label: String,
    /// Whether something is stored about it.
    pub is_stored: bool,
}

/// Finds the objects around an object. Of the property `expanded` it returns more objects.
///
/// # Errors
/// The errors of the store.
pub(super) fn read_graph(
    gateway: &Gateway,
    read: &Snapshot,
    header: &ObjectHeader,
    quads: &[Quad],
    expanded: Option<&str>,
) -> Result<ObjectGraph, GatewayError> {
    let found = find_neighbours(read, &header.uri, quads, |predicate| {
        if Some(predicate.as_str()) == expanded { MAX_EXPANDED_OBJECTS } else { MAX_DRAWN_OBJECTS }
    })?;
    let drawn = |side: &[LinkedObjects]| -> BTreeSet<NamedNode> {
        let groups = side.iter().take(MAX_DRAWN_PROPERTIES);
        groups.flat_map(|group| group.uris.iter().cloned()).collect()
    };
    let mut iris = drawn(&found.outgoing);
    iris.extend(drawn(&found.incoming));
    let naming = GraphNaming {
        labels: read_labels(gateway, read, iris.into_iter())?,
        names: IriNames::new(gateway),
        place: header.place.as_ref(),
    };
    Ok(ObjectGraph {
        incoming: naming.name_side(found.incoming, false),
        outgoing: naming.name_side(found.outgoing, true),
        is_complete: found.is_complete,
    })
}

/// What is needed to name objects and properties.
struct GraphNaming<'n> {
    labels: HashMap<String, String>,
    names: IriNames,
    /// Where the mapping of the object in the middle is.
    place: Option<&'n ShapePlace>,
}

impl GraphNaming<'_> {
    fn name_side(&self, side: Vec<LinkedObjects>, is_outgoing: bool) -> GraphSide {
        let omitted_properties = side.len().saturating_sub(MAX_DRAWN_PROPERTIES);
        let groups = side.into_iter().take(MAX_DRAWN_PROPERTIES).map(|group| {
            let field = self.find_field(&group.predicate).filter(|_| is_outgoing);
            LinkGroup {
                name: field.clone().unwrap_or_else(|| self.shorten(group.predicate.as_str())),
                field,
                objects: group
                    .uris
                    .into_iter()
                    .map(|uri| GraphObject {
                        label: self.name_object(uri.as_str()),
                        is_stored: self.labels.contains_key(uri.as_str()),
                        uri: uri.into_string(),
                    })
                    .collect(),
                total: group.total,
                predicate: group.predicate.into_string(),
            }
        });
        GraphSide { groups: groups.collect(), omitted_properties }
    }

    /// Returns the name of the first field with this property.
    fn find_field(&self, predicate: &NamedNode) -> Option<String> {
        let field = self.place?.shape().find_field_of(predicate)?;
        Some(field.name.clone())
    }

    /// Returns the label of an object; a short form of its URI without one.
    fn name_object(&self, uri: &str) -> String {
        let label = self.labels.get(uri).filter(|label| *label != uri);
        label.cloned().unwrap_or_else(|| self.shorten(uri))
    }

    /// Shortens an IRI by a prefix, otherwise to its last part.
    fn shorten(&self, iri: &str) -> String {
        self.names.shorten(iri).unwrap_or_else(|| {
            let mut parts = iri.rsplit(['/', '#', ':']);
            parts.find(|part| !part.is_empty()).unwrap_or(iri).to_owned()
        })
    }
}
