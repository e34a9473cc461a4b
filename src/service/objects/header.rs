//! What every page about an object shows.
use super::labels::{cut_label, find_label};
use super::resolve::{PlaceFinder, ShapePlace, find_place};
use crate::gateway::Gateway;
use oxrdf::{NamedNode, Quad};
use penstock_base::error::GatewayError;
use penstock_model::members;
use penstock_model::neighbours::{Ancestor, find_ancestors};
use penstock_model::resource::Compiled;
use penstock_model::view::{self, FieldValues};
use penstock_store::Snapshot;
use std::sync::Arc;

/// What every page about an object shows.
#[derive(Debug)]
pub struct ObjectHeader {
    /// Its URI.
    pub uri: NamedNode,
    /// The text by which people recognise it.
    pub label: Option<String>,
    /// The Business Objects that it belongs to.
    pub business_objects: Vec<Arc<Compiled>>,
    /// Where the mapping is that shows it.
    pub place: Option<ShapePlace>,
    /// The objects that it is nested in, the outermost first.
    pub ancestors: Vec<Ancestor>,
}

/// Collects what every page about an object with these quads shows.
///
/// # Errors
/// The errors of the store.
pub(super) fn collect_header(
    gateway: &Gateway,
    read: &Snapshot,
    uri: NamedNode,
    quads: &[Quad],
    preferred: Option<&str>,
) -> Result<ObjectHeader, GatewayError> {
    let mut business_objects = Vec::new();
    for compiled in gateway.catalogue.list() {
        if members::is_member(read, &compiled, &uri)? {
            business_objects.push(compiled);
        }
    }
    let find = || find_place(gateway, read, &uri, quads, preferred);
    let place = choose_place(&business_objects, preferred, find)?;
    let ancestors = match &place {
        Some(ShapePlace { business_object, steps }) => {
            find_ancestors(read, business_object, steps, &uri)?
        }
        None => Vec::new(),
    };
    let mut label = None;
    for compiled in &business_objects {
        let values = FieldValues::from_quads(&compiled.mapping.root, quads);
        label = label.or_else(|| view::find_label(&compiled.mapping, &values));
    }
    if label.is_none() {
        label = find_label(&mut PlaceFinder::new(gateway, read, preferred), &uri, quads)?;
    }
    let label = label.map(|label| cut_label(&label));
    Ok(ObjectHeader { uri, label, business_objects, place, ancestors })
}

/// Returns where the mapping is that shows an object: that of a Business Object that it belongs to, the preferred one first,
/// even if no quad of it is in the graph of its namespace; otherwise the place that its namespace names.
fn choose_place(
    business_objects: &[Arc<Compiled>],
    preferred: Option<&str>,
    find_place: impl FnOnce() -> Result<Option<ShapePlace>, GatewayError>,
) -> Result<Option<ShapePlace>, GatewayError> {
    let of_member =
        |one: &Arc<Compiled>| ShapePlace { business_object: Arc::clone(one), steps: Vec::new() };
    let wanted = business_objects.iter().find(|one| Some(one.object.id.as_str()) == preferred);
    if let Some(wanted) = wanted {
        return Ok(Some(of_member(wanted)));
    }
    let own = find_place()?.filter(|place| place.steps.is_empty() || business_objects.is_empty());
    Ok(own.or_else(|| business_objects.first().map(of_member)))
}
