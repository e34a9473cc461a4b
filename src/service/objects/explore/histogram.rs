//! Histograms: how many objects there are in each period, or in each range of numbers.
use super::Explored;
use crate::gateway::Gateway;
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::time_zone::Zone;
use penstock_model::mapping::Property;
use penstock_model::search::{
    self, AxisPeriod, Columns, Distribution, Order, Search, SearchBudget, SummaryPlan,
    SummaryRequest, TimeAxis,
};
use penstock_store::Read;
use serde_json::Value;
use std::collections::HashMap;

/// How many objects there are in each period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// The name of the unit: `minute` to `year`; empty without a value.
    pub unit: &'static str,
    /// The periods, without a gap; none without a value.
    pub bars: Vec<HistogramBar>,
    /// The number of objects without a date or time.
    pub without: u64,
}

/// A period, and how many objects are in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramBar {
    /// The period.
    pub period: AxisPeriod,
    /// How many objects are in it.
    pub count: u64,
}

/// Counts the objects in each period of a field of dates or times, from the first to the last.
///
/// # Errors
/// - `ErrorClass::Invalid` if the field does not fit, or if this would read too many objects or take too long
/// - `ErrorClass::Unavailable` if too many searches and queries are running
pub async fn read_histogram(
    gateway: &Gateway,
    by: &Caller,
    explored: Explored,
    time: String,
    zone: Zone,
) -> Result<Histogram, GatewayError> {
    explored
        .read(gateway, by, move |explored, read, budget| {
            let axis = find_axis(read, explored, &time, &zone, budget)?;
            let axis = axis.unwrap_or_default();
            let group = match axis.unit {
                "" => Vec::new(),
                unit => vec![format!("{time}.{unit}")],
            };
            let request =
                SummaryRequest { groups: group, measures: None, timezone: Some(zone.to_string()) };
            let plan = SummaryPlan::new(&explored.business_object, &request)?;
            let plan = plan.with_max_rows(axis.periods.len() + 1);
            let (business_object, filter) = (&explored.business_object, explored.filter.as_ref());
            budget.begin_next();
            let summary = search::summarize(read, business_object, filter, &plan, budget)?;
            let TimeAxis { unit, periods } = axis.with_offsets(summary.has_offsets);
            let is_complete = summary.is_complete;
            let (mut counts, mut without) = (HashMap::new(), 0);
            for row in summary.rows {
                match row.group.first().and_then(|json| parse_text(json)) {
                    Some(name) => {
                        counts.insert(name, row.count);
                    }
                    None => without += row.count,
                }
            }
            let bars = periods.into_iter().map(|period| HistogramBar {
                count: counts.remove(&period.name).unwrap_or_default(),
                period,
            });
            // The axis of dates with offsets is longer than their days.
            let mut bars: Vec<HistogramBar> =
                bars.skip_while(|bar: &HistogramBar| bar.count == 0).collect();
            if !is_complete || !counts.is_empty() {
                return Err(outside_axis_error(&time));
            }
            let end = bars.iter().rposition(|bar| bar.count > 0).map_or(0, |last| last + 1);
            bars.truncate(end);
            Ok(Histogram { unit, bars, without })
        })
        .await
}

/// Counts the numbers of a field in ranges of equal width.
///
/// # Errors
/// As [`read_histogram`].
pub async fn read_distribution(
    gateway: &Gateway,
    by: &Caller,
    explored: Explored,
    number: String,
) -> Result<Distribution, GatewayError> {
    explored
        .read(gateway, by, move |explored, read, budget| {
            let Explored { business_object, filter, .. } = explored;
            search::count_distribution(read, business_object, filter.as_ref(), &number, budget)
        })
        .await
}

/// Returns the axis from the first date or time of the objects to the last; `None` without one.
pub(super) fn find_axis(
    read: &dyn Read,
    explored: &Explored,
    time: &str,
    zone: &Zone,
    budget: &SearchBudget,
) -> Result<Option<TimeAxis>, GatewayError> {
    let shape = &explored.business_object.mapping.root;
    let columns = Columns::new(shape, [time])?;
    let property = columns.as_slice().first().and_then(|column| column.property);
    let order = property.map(Property::order).filter(|order| order.is_time());
    let order = order.ok_or_else(|| {
        GatewayError::new(ErrorClass::Invalid, format!("the field {time:?} has no dates or times"))
    })?;
    if let Ok(ascending) = Order::by_field(shape, time, false) {
        let descending = Order { descending: true, ..ascending };
        let first = find_first(read, explored, &columns, ascending, budget)?;
        let last = find_first(read, explored, &columns, descending, budget)?;
        let Some((first, last)) = first.zip(last) else { return Ok(None) };
        if let Some(axis) = TimeAxis::new(&first, &last, order, zone) {
            return Ok(Some(axis));
        }
    }
    let measures = Some(format!("min({time}),max({time})"));
    let request = SummaryRequest { measures, ..SummaryRequest::default() };
    let plan = SummaryPlan::new(&explored.business_object, &request)?;
    let (business_object, filter) = (&explored.business_object, explored.filter.as_ref());
    budget.begin_next();
    let summary = search::summarize(read, business_object, filter, &plan, budget)?;
    let measures = summary.rows.into_iter().next().map(|row| row.measures).unwrap_or_default();
    let mut range = measures.iter().flatten().filter_map(|json| parse_text(json));
    let Some((first, last)) = range.next().zip(range.next()) else { return Ok(None) };
    TimeAxis::new(&first, &last, order, zone).map(Some).ok_or_else(|| {
        let detail = format!("{first} and {last} are too far apart for a chart; filter by {time}");
        GatewayError::new(ErrorClass::Invalid, detail)
    })
}

/// Returns the error that there are dates or times in no period of the axis.
pub(super) fn outside_axis_error(time: &str) -> GatewayError {
    let detail = format!("{time} has values outside the periods; filter by {time}");
    GatewayError::new(ErrorClass::Invalid, detail)
}

/// Returns the value of the first object in an order by a field; `None` without one.
fn find_first(
    read: &dyn Read,
    explored: &Explored,
    columns: &Columns<'_>,
    order: Order,
    budget: &SearchBudget,
) -> Result<Option<String>, GatewayError> {
    let filter = explored.filter.as_ref();
    let search = Search { filter, order, limit: 1, ..Search::default() };
    budget.begin_next();
    let page = search::find_page(read, &explored.business_object, &search, budget);
    // Its limits are those of a summary.
    let page = page.map_err(|error| match error.class {
        ErrorClass::TooLarge => GatewayError { class: ErrorClass::Invalid, ..error },
        _ => error,
    })?;
    let Some(found) = page.found.first() else { return Ok(None) };
    let cells = columns.read(read, &found.uri, 1, budget)?;
    Ok(cells.into_iter().next().and_then(|cell| cell.texts.into_iter().next()))
}

/// Returns the text of a value that a summary has written as JSON; `None` for null.
pub(super) fn parse_text(json: &str) -> Option<String> {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => Some(text),
        Ok(Value::Null) | Err(_) => None,
        Ok(other) => Some(other.to_string()),
    }
}
