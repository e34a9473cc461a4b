//! Summaries of the objects of a Business Object. They may read many objects, so they wait for one of the permits of GraphQL
//! queries.
use super::open_visible;
use super::search::{acquire_permit, new_budget};
use crate::gateway::Gateway;
use crate::ingestions::find_write_scope;
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::resource::Compiled;
use penstock_model::search::{self, Filter, SummaryPlan, SummaryRequest};
use penstock_resources::summary::{Summary, SummaryRow};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Summarizes the objects that pass the filter, as the caller sees them.
///
/// # Errors
/// - `ErrorClass::Invalid` if the filter or the request does not fit the Business Object, or if the summary would read too many
///   objects, take too long or have too many groups
/// - `ErrorClass::Unavailable` if too many searches and queries are running
pub async fn summarize_objects(
    gateway: &Gateway,
    by: &Caller,
    business_object: Arc<Compiled>,
    filter: Option<Filter>,
    request: SummaryRequest,
) -> Result<Summary, GatewayError> {
    let scope = find_write_scope(gateway, by, &business_object);
    let permit = acquire_permit(gateway, by).await?;
    gateway
        .read(move |gateway| {
            let _permit = permit;
            let plan = SummaryPlan::new(&business_object, &request)?;
            let visible = open_visible(gateway, scope.as_deref())?;
            let (filter, budget) = (filter.as_ref(), new_budget());
            let found = search::summarize(&visible, &business_object, filter, &plan, &budget)?;
            let names: Vec<&str> = plan.measure_names().collect();
            let rows = found.rows.iter().map(|row| show_row(row, &names));
            Ok(Summary {
                rows: rows.collect::<Result<_, GatewayError>>()?,
                complete: found.is_complete,
            })
        })
        .await
}

fn show_row(row: &search::SummaryRow, names: &[&str]) -> Result<SummaryRow, GatewayError> {
    let mut group = row.group.iter().map(|json| parse(json)).collect::<Result<Vec<_>, _>>()?;
    let group = match group.len() {
        0 => None,
        1 => group.pop(),
        _ => Some(Value::Array(group)),
    };
    let mut measures = Map::new();
    for (name, json) in names.iter().zip(&row.measures) {
        let value = json.as_ref().map_or(Ok(Value::Null), |json| parse(json))?;
        measures.insert((*name).to_owned(), value);
    }
    Ok(SummaryRow { group, count: row.count, measures })
}

/// Parses JSON that the summary has written. Numbers keep their digits.
fn parse(json: &str) -> Result<Value, GatewayError> {
    serde_json::from_str(json).map_err(|error| {
        GatewayError::new(ErrorClass::Internal, format!("a summary is not JSON: {error}"))
    })
}
