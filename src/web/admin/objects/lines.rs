//! The chart of a number over time: its least, average and greatest value in each period, or its average for each value of a
//! field.
use super::bars::format_periods;
use super::part_request::{PartRequest, explain, skip_if_busy};
use super::scale::{Scale, format_average, parse_number};
use super::state::State;
use crate::admin::words::{format_count, name_text};
use askama::Template;
use penstock_http::problem::Problem;
use penstock_model::mapping::Property;
use penstock_model::search::find_search_property;
use penstock_resources::view::{ViewChart, ViewFilter};
use penstock_service::objects::{
    Chart, ChartLine, ChartPoint, ChartRequest, find_labels, read_chart,
};
use std::collections::HashMap;

/// The width of a period.
const STEP: f64 = 10.0;

#[derive(Template)]
#[template(path = "admin/objects/lines.html")]
pub(super) struct LinesPart {
    number: String,
    content: Result<Option<Drawing>, String>,
}

/// A chart, drawn.
struct Drawing {
    heading: String,
    /// The content as text, for screen readers.
    words: String,
    width: f64,
    /// The labels of the axis, from the top.
    axis: [String; 3],
    ticks: [String; 2],
    lines: Vec<Line>,
    /// The area between the least and the greatest number, if there is one line.
    area: Vec<String>,
    /// The heads of the table, and its rows: a period and its numbers.
    heads: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
    /// How many values have no line, in words.
    others: Option<String>,
}

/// A line of the chart.
struct Line {
    /// The class, which has the color and the dashes.
    class: String,
    label: String,
    /// The address of the page with only the objects of the line.
    filter: Option<String>,
    /// The points of each part without a gap.
    parts: Vec<String>,
}

/// Builds the chart; `None` if no number is chosen, or there is no time.
pub(super) async fn build(request: &PartRequest) -> Result<Option<LinesPart>, Problem> {
    let ViewChart { number, lines, .. } = &request.state.chart;
    let time = request.state.time_field(request.shape());
    let Some((time, number)) = time.zip(number.clone()) else { return Ok(None) };
    let wanted = ChartRequest {
        time,
        number: number.clone(),
        lines: lines.clone(),
        zone: request.zone.clone(),
    };
    let found = match request.explore() {
        Ok(explored) => read_chart(&request.gateway, &request.by, explored, wanted).await,
        Err(error) => Err(error),
    };
    let content = match explain(found)? {
        Err(fault) => Err(fault),
        Ok(chart) if chart.lines.is_empty() => Ok(None),
        Ok(chart) => {
            let property =
                lines.as_ref().and_then(|name| find_search_property(request.shape(), name));
            let mut labels = HashMap::new();
            if property.is_none_or(Property::holds_iris) {
                let iris = chart.lines.iter().filter_map(|line| line.value.clone()).collect();
                let found = find_labels(&request.gateway, &request.by, iris).await;
                labels = skip_if_busy(found)?;
            }
            let address = |state: &State| request.address_of(state);
            let drawer = Drawer { state: &request.state, labels: &labels, address: &address };
            Ok(Some(drawer.draw(&number, &chart)))
        }
    };
    Ok(Some(LinesPart { number, content }))
}

/// Draws a chart.
struct Drawer<'d> {
    state: &'d State,
    labels: &'d HashMap<String, String>,
    /// Returns the address of the page with a state.
    address: &'d dyn Fn(&State) -> String,
}

impl Drawer<'_> {
    fn draw(&self, number: &str, chart: &Chart) -> Drawing {
        let Chart { unit, periods, lines, others } = chart;
        let is_single = self.state.chart.lines.is_none();
        let points = || lines.iter().flat_map(|line| line.points.iter().flatten());
        let shown = points().flat_map(|point| {
            let extremes = is_single.then_some([&point.least, &point.greatest]);
            extremes.into_iter().flatten().chain([&point.average])
        });
        let scale = Scale::of_numbers(shown.filter_map(|text| parse_number(text)));
        let labels: Vec<String> = lines.iter().map(|line| self.label_line(number, line)).collect();
        let drawn = lines.iter().zip(&labels).enumerate().map(|(at, (line, label))| Line {
            class: format!("line-{}", at + 1),
            label: label.clone(),
            filter: self.build_filter(line),
            parts: draw_parts(line, |point| parse_number(&point.average), &scale),
        });
        let area = match lines.first().filter(|_| is_single) {
            Some(line) => draw_area(line, &scale),
            None => Vec::new(),
        };
        let mut heads = labels.clone();
        if is_single {
            heads = ["Least", "Average", "Greatest"].map(str::to_owned).to_vec();
        }
        let names = format_periods(periods.iter().map(|period| period.name.as_str()));
        let rows = names.iter().enumerate().filter_map(|(at, name)| {
            let points: Vec<Option<&ChartPoint>> =
                lines.iter().map(|line| line.points.get(at)?.as_ref()).collect();
            if points.iter().all(Option::is_none) {
                return None;
            }
            let numbers = match points.as_slice() {
                [Some(point)] if is_single => {
                    let average = format_average(&point.average);
                    vec![point.least.clone(), average, point.greatest.clone()]
                }
                points => points
                    .iter()
                    .map(|point| point.map(|point| format_average(&point.average)))
                    .map(Option::unwrap_or_default)
                    .collect(),
            };
            Some((name.clone(), numbers))
        });
        let what = if is_single { "least, average and greatest" } else { "average" };
        let heading = format!("{number} per {unit}: {what}");
        let tick = |name: Option<&String>| name.cloned().unwrap_or_default();
        Drawing {
            words: format!(
                "{heading}; between {} and {}; {}",
                scale.label(0.0),
                scale.label(1.0),
                labels.join(", ")
            ),
            heading,
            width: STEP * f64::from(u32::try_from(periods.len()).unwrap_or(u32::MAX)),
            axis: [1.0, 0.5, 0.0].map(|share| scale.label(share)),
            ticks: [tick(names.first()), tick(names.last())],
            area,
            heads,
            rows: rows.collect(),
            others: (*others > 0).then(|| {
                let others = *others as u64;
                let values = format_count(others, "less frequent value", "less frequent values");
                format!("Without a line: {values}.")
            }),
            lines: drawn.collect(),
        }
    }

    fn label_line(&self, number: &str, line: &ChartLine) -> String {
        match (&line.value, &self.state.chart.lines) {
            (_, None) => format!("average of {number}"),
            (None, Some(_)) => "no value".to_owned(),
            (Some(value), Some(_)) => name_text(self.labels.get(value).unwrap_or(value)),
        }
    }

    fn build_filter(&self, line: &ChartLine) -> Option<String> {
        let field = self.state.chart.lines.clone()?;
        let (test, value) = match &line.value {
            Some(value) => ("eq", value.as_str()),
            None => ("exists", "false"),
        };
        let condition = ViewFilter { field, test: test.to_owned(), value: value.to_owned() };
        Some((self.address)(&self.state.with_condition(condition)))
    }
}

fn x_of(place: usize) -> f64 {
    STEP * (f64::from(u32::try_from(place).unwrap_or(u32::MAX)) + 0.5)
}

/// Returns the points of a line: a text for each part without a gap.
fn draw_parts(
    line: &ChartLine,
    number_of: impl Fn(&ChartPoint) -> Option<f64>,
    scale: &Scale,
) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    for (place, point) in line.points.iter().enumerate() {
        match point.as_ref().and_then(&number_of) {
            Some(number) => part.push((x_of(place), scale.y_of(number))),
            None => parts.push(std::mem::take(&mut part)),
        }
    }
    parts.push(part);
    let drawn = parts.into_iter().filter(|part| !part.is_empty());
    drawn.map(|part| write_points(&across_period(part))).collect()
}

/// Returns the points around the area between the least and the greatest numbers: a text for each part without a gap.
fn draw_area(line: &ChartLine, scale: &Scale) -> Vec<String> {
    let (mut parts, mut upper, mut lower) = (Vec::new(), Vec::new(), Vec::new());
    for (place, point) in line.points.iter().enumerate() {
        let range = point
            .as_ref()
            .and_then(|point| parse_number(&point.least).zip(parse_number(&point.greatest)));
        if let Some((least, greatest)) = range {
            upper.push((x_of(place), scale.y_of(greatest)));
            lower.push((x_of(place), scale.y_of(least)));
        } else {
            parts.push((std::mem::take(&mut upper), std::mem::take(&mut lower)));
        }
    }
    parts.push((upper, lower));
    let around = parts.into_iter().filter(|(upper, _)| !upper.is_empty()).map(|(upper, lower)| {
        let (upper, lower) = (across_period(upper), across_period(lower));
        let all: Vec<_> = upper.into_iter().chain(lower.into_iter().rev()).collect();
        write_points(&all)
    });
    around.collect()
}

/// Draws a single point across its period. A dot would hardly be seen.
fn across_period(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    match points.as_slice() {
        &[(x, y)] => vec![(x - STEP / 2.0, y), (x + STEP / 2.0, y)],
        _ => points,
    }
}

fn write_points(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_base::time_zone::Zone;
    use penstock_model::mapping::compile;
    use penstock_model::search::AxisPeriod;

    fn chart(lines: &[(Option<&str>, &[Option<&str>])]) -> Chart {
        let period = |day: usize| AxisPeriod {
            name: format!("2024-01-{day:02}"),
            begin: String::new(),
            end: String::new(),
        };
        let point = |text: &&str| ChartPoint {
            least: format!("-{text}"),
            average: (*text).to_owned(),
            greatest: format!("1{text}"),
        };
        let lines = lines.iter().map(|(value, points)| ChartLine {
            value: value.map(str::to_owned),
            points: points.iter().map(|text| text.as_ref().map(point)).collect(),
        });
        Chart {
            unit: "day",
            periods: (1..=4).map(period).collect(),
            lines: lines.collect(),
            others: 2,
        }
    }

    fn draw(query: &str, chart: &Chart) -> Drawing {
        let mapping = "type: object\npath: A:.\nfields:\n  n: {type: number, path: <urn:n>}\n  at: {type: date, path: <urn:a>}\n  s: {type: string, path: <urn:s>}\n";
        let shape = compile(mapping).unwrap().root;
        let pairs = penstock_http::query::parse_form(query.as_bytes()).unwrap();
        let state = State::new(&shape, None, &pairs, &Zone::UTC);
        let address = |state: &State| state.to_query(&shape);
        let labels = HashMap::from([("b".to_owned(), "Label of b".to_owned())]);
        Drawer { state: &state, labels: &labels, address: &address }.draw("n", chart)
    }

    #[test]
    fn one_line_has_an_area_and_a_gap_where_there_is_no_number() {
        let drawing = draw("number=n", &chart(&[(None, &[Some("2"), Some("4"), None, Some("5")])]));
        assert_eq!(drawing.heading, "n per day: least, average and greatest");
        assert_eq!(
            (drawing.lines.len(), drawing.lines[0].parts.len(), drawing.area.len()),
            (1, 2, 2)
        );
        // From -5 to 15.
        assert_eq!(drawing.axis, ["15", "5", "-5"]);
        assert_eq!(drawing.lines[0].parts, ["5.0,65.0 15.0,55.0", "30.0,50.0 40.0,50.0"]);
        assert_eq!(drawing.area[0], "5.0,15.0 15.0,5.0 15.0,95.0 5.0,85.0");
        assert_eq!(drawing.area[1], "30.0,0.0 40.0,0.0 40.0,100.0 30.0,100.0");
        assert_eq!(drawing.heads, ["Least", "Average", "Greatest"]);
        assert_eq!(drawing.rows.len(), 3);
        assert_eq!(drawing.ticks, ["2024-01-01", "2024-01-04"]);
    }

    #[test]
    fn several_lines_have_labels_and_lead_to_their_objects() {
        let none = [Some("1"), None, None, None];
        let lines: [(Option<&str>, &[Option<&str>]); 3] =
            [(Some("b"), &[Some("2"); 4]), (None, &none), (Some(" "), &none)];
        let drawing = draw("number=n&lines=s", &chart(&lines));
        let labels: Vec<_> = drawing.lines.iter().map(|line| line.label.as_str()).collect();
        assert_eq!(labels, ["Label of b", "no value", "(empty)"]);
        assert!(drawing.area.is_empty() && drawing.others.is_some());
        let filter = drawing.lines[1].filter.as_deref();
        assert_eq!(filter, Some("?filter.s.exists=false&number=n&lines=s"));
        assert_eq!(drawing.rows[1].1, ["2", "", ""]);
    }
}
