//! Charts of a number over time: its least, average and greatest value in each period.
use super::Explored;
use super::histogram::{find_axis, outside_axis_error, parse_text};
use crate::gateway::Gateway;
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::time_zone::Zone;
use penstock_model::search::{self, AxisPeriod, SummaryPlan, SummaryRequest, SummaryRow, TimeAxis};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The maximum number of lines.
const MAX_LINES: usize = 8;
/// The maximum number of points that are computed, of all lines together.
const MAX_POINTS: usize = 20_000;

/// What a chart shows.
#[derive(Debug, Clone)]
pub struct ChartRequest {
    /// The field of dates or times.
    pub time: String,
    /// The field of numbers.
    pub number: String,
    /// The field with a line for each of its most frequent values.
    pub lines: Option<String>,
    /// The time zone of the periods.
    pub zone: Zone,
}

/// A number over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chart {
    /// The name of the unit: `minute` to `year`; empty without a value.
    pub unit: &'static str,
    /// The periods, without a gap; none without a value.
    pub periods: Vec<AxisPeriod>,
    /// The lines, those of the most frequent values first.
    pub lines: Vec<ChartLine>,
    /// The number of values that have no line.
    pub others: usize,
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartLine {
    /// The value that it is for; `None` for objects without one, or if there is only one line.
    pub value: Option<String>,
    /// A point for each period; `None` for one without a number.
    pub points: Vec<Option<ChartPoint>>,
}

/// The numbers of a period, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartPoint {
    /// The least.
    pub least: String,
    /// The average.
    pub average: String,
    /// The greatest.
    pub greatest: String,
}

/// Computes a number over time, from the first date or time to the last.
///
/// # Errors
/// - `ErrorClass::Invalid` if a field does not fit, or if this would read too many objects, take too long, or have too many
///   groups
/// - `ErrorClass::Unavailable` if too many searches and queries are running
pub async fn read_chart(
    gateway: &Gateway,
    by: &Caller,
    explored: Explored,
    request: ChartRequest,
) -> Result<Chart, GatewayError> {
    explored
        .read(gateway, by, move |explored, read, budget| {
            let ChartRequest { time, number, lines, zone } = request;
            let Some(axis) = find_axis(read, explored, &time, &zone, budget)? else {
                return Ok(Chart::default());
            };
            let period = format!("{time}.{}", axis.unit);
            let plan = SummaryRequest {
                groups: std::iter::once(period).chain(lines).collect(),
                measures: Some(format!("min({number}),avg({number}),max({number})")),
                timezone: Some(zone.to_string()),
            };
            let plan = SummaryPlan::new(&explored.business_object, &plan)?;
            let plan = plan.with_max_rows(MAX_POINTS);
            let (business_object, filter) = (&explored.business_object, explored.filter.as_ref());
            budget.begin_next();
            let summary = search::summarize(read, business_object, filter, &plan, budget)?;
            if !summary.is_complete {
                let detail = "there are too many values for a line each; choose another field for the lines, or filter";
                return Err(GatewayError::new(ErrorClass::Invalid, detail));
            }
            draw_lines(axis.with_offsets(summary.has_offsets), summary.rows, &time)
        })
        .await
}

/// Puts the groups of a summary on the lines of a chart over a field.
fn draw_lines(axis: TimeAxis, rows: Vec<SummaryRow>, time: &str) -> Result<Chart, GatewayError> {
    let TimeAxis { unit, periods } = axis;
    let names = periods.iter().enumerate();
    let places: HashMap<&str, usize> = names.map(|(at, one)| (one.name.as_str(), at)).collect();
    // By the JSON of their values.
    let mut by_value: HashMap<Option<String>, (u64, ChartLine)> = HashMap::new();
    for row in rows {
        let SummaryRow { group, count, measures } = row;
        let mut group = group.into_iter();
        let Some(name) = group.next().and_then(|json| parse_text(&json)) else { continue };
        let place = places.get(name.as_str()).copied();
        let place = place.ok_or_else(|| outside_axis_error(time))?;
        let [Some(least), Some(average), Some(greatest)] = measures.as_slice() else { continue };
        let json = group.next();
        let (sum, line) = by_value.entry(json).or_insert_with_key(|json| {
            let value = json.as_ref().and_then(|json| parse_text(json));
            (0, ChartLine { value, points: vec![None; periods.len()] })
        });
        *sum += count;
        if let Some(point) = line.points.get_mut(place) {
            let (least, average, greatest) = (least.clone(), average.clone(), greatest.clone());
            *point = Some(ChartPoint { least, average, greatest });
        }
    }
    let mut lines: Vec<(u64, ChartLine)> = by_value.into_values().collect();
    lines.sort_by(|(count, line), (other_count, other)| {
        (Reverse(count), &line.value).cmp(&(Reverse(other_count), &other.value))
    });
    let others = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    let lines = lines.into_iter().map(|(_, line)| line).collect();
    Ok(Chart { unit, periods, lines, others })
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::mapping::{Property, compile};

    #[test]
    fn the_most_frequent_values_have_a_line() {
        let mapping = "type: object\npath: A:.\nfields:\n  day: {type: date, path: <urn:d>}\n";
        let mapping = compile(mapping).unwrap();
        let order = mapping.root.property_at(0).map(Property::order).unwrap();
        let axis = TimeAxis::new("2024-01-01", "2024-01-03", order, &Zone::UTC).unwrap();
        let row = |day: &str, line: &str, count, number: Option<&str>| SummaryRow {
            group: vec![day.to_owned(), line.to_owned()],
            count,
            measures: vec![number.map(str::to_owned); 3],
        };
        let mut rows: Vec<SummaryRow> = (0..9)
            .map(|line| row("\"2024-01-02\"", &format!("\"L{line}\""), 9 - line, Some("1")))
            .collect();
        rows.push(row("\"2024-01-03\"", "\"L8\"", 100, Some("2.5")));
        rows.push(row("\"2024-01-01\"", "\"L0\"", 1, None));
        rows.push(row("null", "\"L0\"", 1, Some("7")));
        let chart = draw_lines(axis.clone(), rows, "day").unwrap();
        assert_eq!((chart.unit, chart.lines.len(), chart.others), ("day", 8, 1));
        let first = &chart.lines[0];
        assert_eq!(first.value.as_deref(), Some("L8"));
        let averages: Vec<Option<&str>> = first
            .points
            .iter()
            .map(|point| point.as_ref().map(|point| point.average.as_str()))
            .collect();
        assert_eq!(averages, [None, Some("1"), Some("2.5")]);
        let outside = draw_lines(axis, vec![row("\"2024-01-04\"", "null", 1, Some("1"))], "day");
        assert_eq!(outside.unwrap_err().class, ErrorClass::Invalid);
    }
}
