//! Facets: the most frequent values of the fields of objects.
use super::Explored;
use crate::gateway::Gateway;
use crate::objects::labels::read_labels;
use oxrdf::NamedNode;
use penstock_auth::Caller;
use penstock_base::error::GatewayError;
use penstock_model::mapping::Property;
use penstock_model::search::{self, Facet, FacetContent};
use std::collections::HashMap;

/// A facet, and the labels of the objects that its values name.
#[derive(Debug)]
pub struct FoundFacet {
    /// The facet.
    pub facet: Facet,
    /// The labels, by URI.
    pub labels: HashMap<String, String>,
}

/// Counts the values of fields. Without `fields`, of those that are worth it.
///
/// # Errors
/// - `ErrorClass::Invalid` if a field does not fit, or if this would read too many objects or take too long
/// - `ErrorClass::Unavailable` if too many searches and queries are running
pub async fn read_facets(
    gateway: &Gateway,
    by: &Caller,
    explored: Explored,
    fields: Option<Vec<String>>,
) -> Result<Vec<FoundFacet>, GatewayError> {
    let (all, has_labels) = (gateway.clone(), by.business_objects().is_none());
    explored
        .read(gateway, by, move |explored, read, budget| {
            let Explored { business_object, filter, .. } = explored;
            let mapping = &business_object.mapping;
            let fields = fields.unwrap_or_else(|| search::list_facet_fields(mapping));
            let facets =
                search::count_facets(read, business_object, filter.as_ref(), &fields, budget)?;
            let with_labels = facets.into_iter().map(|facet| {
                let property = search::find_search_property(&mapping.root, &facet.field);
                let holds_iris = property.is_some_and(Property::holds_iris);
                let labels = match &facet.content {
                    FacetContent::Values(values, _) if holds_iris && has_labels => {
                        let iris = values.iter().filter_map(|one| NamedNode::new(&one.text).ok());
                        read_labels(&all, read.unlimited(), iris)?
                    }
                    _ => HashMap::new(),
                };
                Ok(FoundFacet { facet, labels })
            });
            with_labels.collect()
        })
        .await
}
