//! Which of several filters hides the objects.
use super::Explored;
use crate::gateway::Gateway;
use crate::objects::search::SharedTime;
use penstock_auth::Caller;
use penstock_base::error::GatewayError;
use penstock_model::resource::Compiled;
use penstock_model::search::{self, Filter, ObjectCount, SearchBudget};
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of objects that are read for one count.
const MAX_READ_OBJECTS: u64 = 10_000;
/// The maximum time of one count.
const COUNT_TIMEOUT: Duration = Duration::from_millis(300);

/// Counts the objects that pass each of these filters, as far as the limits allow.
///
/// # Errors
/// - `ErrorClass::Invalid` if a filter does not fit the Business Object
/// - `ErrorClass::Unavailable` if too many searches and queries are running
pub async fn count_without(
    gateway: &Gateway,
    by: &Caller,
    business_object: Arc<Compiled>,
    filters: Vec<Option<Filter>>,
) -> Result<Vec<ObjectCount>, GatewayError> {
    let explored = Explored { business_object, filter: None, time: SharedTime::default() };
    explored
        .read(gateway, by, move |Explored { business_object, .. }, read, _| {
            let count = |filter: &Option<Filter>| {
                let budget = SearchBudget::new(MAX_READ_OBJECTS, COUNT_TIMEOUT);
                search::count_some(read, business_object, filter.as_ref(), &budget)
            };
            filters.iter().map(count).collect()
        })
        .await
}
