//! The bars above the table: how many objects each period has, otherwise each range of a number, otherwise the most frequent
//! values of a field.
use super::conditions::remove_limits;
use super::facets::{ShownContent, ShownFacet};
use super::part_request::{PartRequest, explain};
use crate::admin::plot::{Plot, Series};
use crate::admin::words;
use askama::Template;
use penstock_http::problem::Problem;
use penstock_model::mapping::{Property, Shape};
use penstock_model::search::{
    Distribution, find_search_property, join_parameter, list_facet_fields, list_search_fields,
};
use penstock_resources::view::ViewFilter;
use penstock_service::objects::{
    Histogram, HistogramBar, read_distribution, read_facets, read_histogram,
};
use std::collections::HashMap;

/// The number of labels below the bars.
const TICKS: usize = 5;

#[derive(Template)]
#[template(path = "admin/objects/bars.html")]
pub(super) struct BarsPart {
    content: Content,
}

/// What is drawn.
enum Content {
    Bars(Box<Bars>),
    /// The most frequent values of a field.
    Values(ShownFacet),
    /// There is nothing to draw.
    Nothing(String),
    /// Why it cannot be drawn.
    Fault(String),
}

/// Bars of periods or of ranges of a number.
struct Bars {
    plot: Plot,
    ticks: [String; TICKS],
    /// Where each bar begins and the last one ends, separated by spaces.
    limits: String,
    /// The names of the parameters with the lower and the upper limit.
    least: String,
    before: String,
    /// The address of the page without parameters.
    path: String,
    /// The parameters of the page without limits of the field.
    free: String,
    /// Whether two dates narrow it.
    has_dates: bool,
    /// What follows the day in the limits of dates with offsets.
    offset: Option<String>,
    /// The bars that are not empty: what it is, the number, and the address of the page with only its objects.
    rows: Vec<(String, u64, String)>,
    /// The objects without a value in words, and the address of the page with only them.
    without: Option<(String, String)>,
}

/// Builds the bars.
pub(super) async fn build(request: &PartRequest) -> Result<BarsPart, Problem> {
    let shape = request.shape();
    let content = if let Some(time) = request.state.time_field(shape) {
        draw_histogram(request, &time).await?
    } else if let Some(number) = find_number(request, shape) {
        draw_distribution(request, &number).await?
    } else if let Some(field) = find_value_field(request) {
        draw_values(request, &field).await?
    } else {
        Content::Nothing("No field has times, numbers or values that repeat.".to_owned())
    };
    Ok(BarsPart { content })
}

/// Returns the chosen number, otherwise the first of the mapping.
fn find_number(request: &PartRequest, shape: &Shape) -> Option<String> {
    let is_number = |property: &Property| property.order().is_number() && property.codes.is_none();
    let first = || {
        let mut fields = list_search_fields(shape).into_iter();
        fields.find(|field| field.is_single && is_number(field.property)).map(|field| field.name)
    };
    request.state.chart.number.clone().or_else(first)
}

/// Returns the field whose values are counted: the chosen one, otherwise the first of the mapping.
fn find_value_field(request: &PartRequest) -> Option<String> {
    let first = || list_facet_fields(&request.compiled.mapping).into_iter().next();
    request.state.chart.lines.clone().or_else(first)
}

async fn draw_histogram(request: &PartRequest, time: &str) -> Result<Content, Problem> {
    let (zone, field) = (request.zone.clone(), time.to_owned());
    let found = match request.explore() {
        Ok(explored) => read_histogram(&request.gateway, &request.by, explored, field, zone).await,
        Err(error) => Err(error),
    };
    Ok(match explain(found)? {
        Err(fault) => Content::Fault(fault),
        Ok(Histogram { bars, .. }) if bars.is_empty() => {
            Content::Nothing(format!("No object has a date or time in {time}."))
        }
        Ok(Histogram { unit, bars, without }) => {
            let begins = bars.iter().map(|bar| bar.period.begin.clone());
            let last = bars.iter().next_back().map(|bar| bar.period.end.clone());
            let limits = begins.chain(last).collect();
            let names = bars.iter().map(|bar| bar.period.name.as_str());
            let labels = format_periods(names).into_iter();
            let bars = labels.zip(bars).map(|(label, HistogramBar { count, .. })| (label, count));
            let heading = format!("Objects per {unit}, by {time}");
            let what = "objects";
            let counted = Counted { heading, what, bars: bars.collect(), limits, without };
            Content::Bars(Box::new(Bars::new(request, time, counted)))
        }
    })
}

async fn draw_distribution(request: &PartRequest, number: &str) -> Result<Content, Problem> {
    let field = number.to_owned();
    let found = match request.explore() {
        Ok(explored) => read_distribution(&request.gateway, &request.by, explored, field).await,
        Err(error) => Err(error),
    };
    Ok(match explain(found)? {
        Err(fault) => Content::Fault(fault),
        Ok(Distribution { ranges, .. }) if ranges.is_empty() => {
            Content::Nothing(format!("No object has a number in {number}."))
        }
        Ok(Distribution { ranges, without }) => {
            let begins = ranges.iter().map(|range| range.begin.clone());
            let last = ranges.iter().next_back().map(|range| range.end.clone());
            let limits = begins.chain(last).collect();
            let bars = ranges.into_iter().map(|range| (range.begin, range.count));
            let heading = format!("Values of {number}");
            let what = "values";
            let counted = Counted { heading, what, bars: bars.collect(), limits, without };
            Content::Bars(Box::new(Bars::new(request, number, counted)))
        }
    })
}

async fn draw_values(request: &PartRequest, field: &str) -> Result<Content, Problem> {
    let fields = Some(vec![field.to_owned()]);
    let found = match request.explore() {
        Ok(explored) => read_facets(&request.gateway, &request.by, explored, fields).await,
        Err(error) => Err(error),
    };
    Ok(match explain(found)? {
        Err(fault) => Content::Fault(fault),
        Ok(facets) => match facets.into_iter().next() {
            Some(facet) => Content::Values(ShownFacet::new(request, facet)),
            None => Content::Nothing(format!("No object has a value in {field}.")),
        },
    })
}

/// What was counted.
struct Counted {
    heading: String,
    /// What the numbers count.
    what: &'static str,
    /// The label of each bar, and its number.
    bars: Vec<(String, u64)>,
    /// Where each bar begins and the last one ends.
    limits: Vec<String>,
    /// The number of objects without a value.
    without: u64,
}

impl Bars {
    fn new(request: &PartRequest, field: &str, counted: Counted) -> Self {
        let Counted { heading, what, bars, limits, without } = counted;
        let (shape, state) = (request.shape(), &request.state);
        let ticks = choose_ticks(&bars);
        let values = bars.iter().map(|(_, count)| Some(*count)).collect();
        let series = vec![Series { class: "up", label: what, values }];
        let mut free = state.clone();
        remove_limits(&mut free.conditions, field);
        let condition = |test: &str, value: &str| ViewFilter {
            field: field.to_owned(),
            test: test.to_owned(),
            value: value.to_owned(),
        };
        let rows = bars.into_iter().zip(limits.windows(2)).filter_map(|((words, count), range)| {
            let [begin, end] = range else { return None };
            let only = free.with_condition(condition("atLeast", begin));
            let only = only.with_condition(condition("before", end));
            (count > 0).then(|| (words, count, request.address_of(&only)))
        });
        let rows = rows.collect();
        let has_none = (without > 0).then(|| {
            let objects = words::format_count(without, "object", "objects");
            let only = state.with_condition(condition("exists", "false"));
            (format!("{objects} without a value"), request.address_of(&only))
        });
        let property = find_search_property(shape, field);
        let has_dates = property.is_some_and(|property| property.order().is_time());
        let has_days = has_dates && !property.is_some_and(Property::is_date_time);
        let first = limits.first().filter(|_| has_days);
        let offset = first.and_then(|day| day.find('+').and_then(|at| day.get(at..)));
        Self {
            offset: offset.map(str::to_owned),
            plot: Plot::of_rates(heading, series, 1),
            ticks,
            limits: limits.join(" "),
            least: join_parameter(shape, field, "atLeast"),
            before: join_parameter(shape, field, "before"),
            path: request.path(),
            free: free.to_form(shape),
            has_dates,
            rows,
            without: has_none,
        }
    }
}

/// Returns the labels below bars: of the first, the last and those between. Few bars have only the first and the last one.
fn choose_ticks(bars: &[(String, u64)]) -> [String; TICKS] {
    std::array::from_fn(|tick| {
        let is_end = tick == 0 || tick + 1 == TICKS;
        if bars.len() < TICKS && !is_end || bars.len() == 1 && tick > 0 {
            return String::new();
        }
        let place = tick * bars.len().saturating_sub(1) / (TICKS - 1);
        bars.get(place).map(|(words, _)| words.clone()).unwrap_or_default()
    })
}

/// Returns the names of the periods of an axis as labels. In the hour that the end of daylight saving time repeats, a label
/// has the offset.
pub(super) fn format_periods<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for name in names.clone() {
        *counts.entry(format_period(name)).or_insert(0) += 1;
    }
    let label = |name: &str| {
        let label = format_period(name);
        let is_repeated = counts.get(&label).is_some_and(|count| *count > 1);
        let offset = name.split_once('T').and_then(|(_, time)| time.get(5..));
        match offset.filter(|_| is_repeated) {
            Some(offset) => format!("{label} {offset}"),
            None => label,
        }
    };
    names.map(label).collect()
}

/// Returns the name of a period as a label: `2024-03-31 14:00` without the offset and the `T`.
fn format_period(name: &str) -> String {
    match name.split_once('T') {
        Some((date, time)) => format!("{date} {}", time.get(..5).unwrap_or(time)),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labels_are_spread_over_the_bars() {
        let ticks = |count: u64| {
            choose_ticks(&(0..count).map(|bar| (bar.to_string(), 1)).collect::<Vec<_>>())
        };
        assert_eq!(ticks(9), ["0", "2", "4", "6", "8"]);
        assert_eq!(ticks(3), ["0", "", "", "", "2"]);
        assert_eq!(ticks(1), ["0", "", "", "", ""]);
    }

    #[test]
    fn a_period_is_named_in_local_time() {
        assert_eq!(format_period("2024-03-31T14:00+02:00"), "2024-03-31 14:00");
        assert_eq!(format_period("2024-W13"), "2024-W13");
    }

    #[test]
    fn the_labels_of_a_repeated_hour_have_the_offset() {
        let names = ["2024-10-27T01:00+02:00", "2024-10-27T02:00+02:00", "2024-10-27T02:00+01:00"];
        assert_eq!(
            format_periods(names.into_iter()),
            ["2024-10-27 01:00", "2024-10-27 02:00 +02:00", "2024-10-27 02:00 +01:00"]
        );
    }
}
