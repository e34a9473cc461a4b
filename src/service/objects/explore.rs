//! What the page of a Business Object shows around the table of its objects: `histogram` and `chart` over time, `facets`,
//! `suggestions` for a value that somebody types, and `removed`, which filters hide the objects. Each reads one snapshot as the
//! caller sees it, with one of the permits of GraphQL queries.
mod chart;
mod facets;
mod histogram;
mod removed;
mod suggestions;

pub use chart::{Chart, ChartLine, ChartPoint, ChartRequest, read_chart};
pub use facets::{FoundFacet, read_facets};
pub use histogram::{Histogram, HistogramBar, read_distribution, read_histogram};
pub use removed::count_without;
pub use suggestions::{Suggestion, suggest_field_values};

use super::open_visible;
use super::search::{SharedTime, acquire_permit};
use crate::gateway::Gateway;
use crate::ingestions::find_write_scope;
use penstock_auth::Caller;
use penstock_base::error::GatewayError;
use penstock_model::resource::Compiled;
use penstock_model::search::{self, Filter, Order, SearchBudget};
use penstock_model::visible::VisibleObjects;
use penstock_store::Snapshot;
use std::sync::Arc;

/// The objects of a Business Object that are explored: those that pass the filter.
#[derive(Debug, Clone)]
pub struct Explored {
    /// The Business Object.
    pub business_object: Arc<Compiled>,
    /// What an object must have.
    pub filter: Option<Filter>,
    /// The time for reading them.
    pub time: SharedTime,
}

impl Explored {
    /// Reads the objects of one snapshot as the caller sees them, with the limits of one search.
    async fn read<T: Send + 'static>(
        self,
        gateway: &Gateway,
        by: &Caller,
        work: impl FnOnce(
            &Self,
            &VisibleObjects<'_, Snapshot>,
            &SearchBudget,
        ) -> Result<T, GatewayError>
        + Send
        + 'static,
    ) -> Result<T, GatewayError> {
        let scope = find_write_scope(gateway, by, &self.business_object);
        let permit = acquire_permit(gateway, by).await?;
        gateway
            .read(move |gateway| {
                let _permit = permit;
                let visible = open_visible(gateway, scope.as_deref())?;
                self.time.run(|budget| work(&self, &visible, budget))
            })
            .await
    }
}

/// Writes a search as a query in SPARQL for the first `limit` objects, with the values of these fields.
///
/// # Errors
/// - `ErrorClass::Invalid` if the filter or the order does not fit the Business Object
/// - `ErrorClass::Conflict` if the namespace of the Business Object is not defined
pub async fn write_sparql(
    gateway: &Gateway,
    explored: Explored,
    order: Order,
    columns: Vec<String>,
    limit: usize,
) -> Result<String, GatewayError> {
    gateway
        .read(move |gateway| {
            let Explored { business_object, filter, .. } = &explored;
            let search = (filter.as_ref(), order);
            let read = gateway.store.read();
            search::write_sparql(&read, business_object, search, &columns, limit)
        })
        .await
}
