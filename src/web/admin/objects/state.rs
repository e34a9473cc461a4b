//! What the page of a Business Object shows: its state is the address, as `GET …/objects` takes it, and what is shown of the
//! objects. A saved view is the beginning of a state, and the address has what differs.
use super::address::{OFFSET, Pair, find_given, find_value, write_parameters, write_query};
use super::columns::find_columns;
use super::conditions::{self, Days};
use penstock_base::error::GatewayError;
use penstock_base::time_zone::Zone;
use penstock_model::mapping::Shape;
use penstock_model::search::{Filter, Order, TextFilter, join_parameter};
use penstock_model::views::list_conditions;
use penstock_resources::view::{SavedView, ViewChart, ViewFilter};

/// The name that orders by URI.
pub(super) const URI: &str = "uri";

/// What the page shows.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// The saved view that it begins with.
    pub(super) view: Option<SavedView>,
    /// What an object must fulfil, all of them.
    pub(super) conditions: Vec<ViewFilter>,
    /// The field that orders the objects, with `-` before it for descending; empty for the order by URI.
    pub(super) order: String,
    /// The columns besides the label; `None` for those of the mapping.
    pub(super) columns: Option<Vec<String>>,
    /// The fields of the charts. An empty time is none; without a name, it is that of the mapping.
    pub(super) chart: ViewChart,
    /// Whether the parts that load later are on the page.
    pub(super) shows_parts: bool,
}

impl State {
    /// Reads a state.
    pub(super) fn new(shape: &Shape, view: Option<SavedView>, pairs: &[Pair], zone: &Zone) -> Self {
        let of_view = view.as_ref();
        let mut conditions = of_view.map(|view| view.filters.clone()).unwrap_or_default();
        conditions.extend(conditions::read_conditions(shape, pairs));
        let given = |name: &str| find_given(pairs, name).map(str::to_owned);
        let order = given("orderBy").or_else(|| given("sort"));
        let order = order.or_else(|| of_view?.order_by.clone()).unwrap_or_default();
        let columns: Vec<String> = pairs
            .iter()
            .filter(|(name, _)| name == "columns")
            .map(|(_, column)| column.clone())
            .collect();
        let columns = Some(columns).filter(|columns| !columns.is_empty());
        let columns = columns.or_else(|| of_view?.columns.clone());
        let chart = of_view.and_then(|view| view.chart.clone()).unwrap_or_default();
        let mut state = Self {
            conditions: Vec::new(),
            order: if order == URI { String::new() } else { order },
            columns: columns
                .map(|columns| find_columns(shape, columns))
                .filter(|columns| !columns.is_empty()),
            chart: ViewChart {
                time: given("time").or(chart.time),
                number: given("number").or(chart.number).filter(|name| !name.is_empty()),
                lines: given("lines").or(chart.lines).filter(|name| !name.is_empty()),
            },
            shows_parts: find_value(pairs, "show").is_some(),
            view,
        };
        for condition in conditions {
            if !state.conditions.contains(&condition) {
                state.conditions.push(condition);
            }
        }
        let dates = [find_value(pairs, "from"), find_value(pairs, "to")];
        if let Some(time) = state.time_field(shape)
            && dates != [None, None]
        {
            let offset = find_value(pairs, OFFSET).unwrap_or_default();
            let days = Days { time: &time, dates, offset };
            conditions::narrow(&mut state.conditions, shape, &days, zone);
        }
        state
    }

    /// Returns the field of dates or times of the histogram.
    pub(super) fn time_field(&self, shape: &Shape) -> Option<String> {
        match &self.chart.time {
            Some(time) => Some(time.clone()).filter(|time| !time.is_empty()),
            None => shape
                .fields
                .iter()
                .find(|field| field.is_single_time())
                .map(|field| field.name.clone()),
        }
    }

    /// Whether somebody has chosen other columns than those of the view or the mapping.
    pub(super) fn has_chosen_columns(&self, shape: &Shape) -> bool {
        let of_view = self.view.as_ref().and_then(|view| view.columns.clone());
        let of_view = of_view.map(|columns| find_columns(shape, columns));
        self.columns.is_some() && self.columns != of_view
    }

    /// Returns the filter that an object must pass; `None` without one.
    pub(super) fn build_filter(&self, shape: &Shape) -> Result<Option<Filter>, GatewayError> {
        TextFilter::build_all(list_conditions(&self.conditions), shape)
    }

    /// Returns the order of the objects.
    pub(super) fn build_order(&self, shape: &Shape) -> Result<Order, GatewayError> {
        let (name, is_descending) = self.order_field();
        Order::by_field(shape, name, is_descending)
    }

    /// Returns the name of the field that orders the objects, and whether they descend.
    pub(super) fn order_field(&self) -> (&str, bool) {
        match self.order.strip_prefix('-') {
            Some(name) => (name, true),
            None if self.order.is_empty() => (URI, false),
            None => (&self.order, false),
        }
    }

    /// Returns the parameters of the filters and the order, as `GET …/objects` takes them.
    pub(super) fn list_search_pairs(&self, shape: &Shape) -> Vec<Pair> {
        let mut pairs = list_filter_pairs(&self.conditions, shape);
        if !self.order.is_empty() {
            pairs.push(("orderBy".to_owned(), self.order.clone()));
        }
        pairs
    }

    /// Returns the parameters of the address with this state. Those of a view are left out, unless a condition of it is missing.
    pub(super) fn list_pairs(&self, shape: &Shape) -> Vec<Pair> {
        let view = self.view.as_ref().filter(|view| self.conditions.starts_with(&view.filters));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut pairs: Vec<Pair> = view.map(|view| pair("view", &view.id)).into_iter().collect();
        let of_view = view.map_or(&[][..], |view| &view.filters);
        pairs.extend(list_filter_pairs(
            self.conditions.get(of_view.len()..).unwrap_or_default(),
            shape,
        ));
        let order = view.and_then(|view| view.order_by.as_deref()).unwrap_or_default();
        if self.order != order {
            pairs.push(pair("orderBy", if self.order.is_empty() { URI } else { &self.order }));
        }
        if self.columns.as_ref() != view.and_then(|view| view.columns.as_ref()) {
            pairs.extend(self.columns.iter().flatten().map(|name| pair("columns", name)));
        }
        let chart = view.and_then(|view| view.chart.clone()).unwrap_or_default();
        let ViewChart { time, number, lines } = &self.chart;
        for (name, own, of_view) in [
            ("time", time, chart.time),
            ("number", number, chart.number),
            ("lines", lines, chart.lines),
        ] {
            if *own != of_view {
                pairs.push(pair(name, own.as_deref().unwrap_or_default()));
            }
        }
        if self.shows_parts {
            pairs.push(pair("show", "parts"));
        }
        pairs
    }

    /// Returns the query of the address with this state; empty for the page without a parameter, otherwise with a `?`.
    pub(super) fn to_query(&self, shape: &Shape) -> String {
        write_query(&self.list_pairs(shape))
    }

    /// Returns the parameters of the address with this state, for the field [`ADDRESS`](super::address::ADDRESS) of a form.
    pub(super) fn to_form(&self, shape: &Shape) -> String {
        write_parameters(&self.list_pairs(shape))
    }

    /// Returns the state with one more condition.
    pub(super) fn with_condition(&self, condition: ViewFilter) -> Self {
        let mut state = self.clone();
        if !state.conditions.contains(&condition) {
            state.conditions.push(condition);
        }
        state
    }

    /// Returns the state without the condition at this place.
    pub(super) fn without_condition(&self, place: usize) -> Self {
        let mut state = self.clone();
        if place < state.conditions.len() {
            state.conditions.remove(place);
        }
        state
    }

    /// Returns the state in another order.
    pub(super) fn with_order(&self, order: &str) -> Self {
        Self { order: order.to_owned(), ..self.clone() }
    }
}

fn list_filter_pairs(conditions: &[ViewFilter], shape: &Shape) -> Vec<Pair> {
    let pairs = conditions.iter().map(|ViewFilter { field, test, value }| {
        (join_parameter(shape, field, test), value.clone())
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_http::query::parse_form;
    use penstock_model::search::parse_filters;

    fn shape() -> Shape {
        let mapping = "
type: object
path: A:.
fields:
  name: {type: string, path: <urn:n>}
  flow: {type: number, path: <urn:f>}
  at: {type: dateTime, path: <urn:a>}
  day: {type: date, path: <urn:d>}
  place: {type: object, path: '<urn:p>/Place:.', fields: {room: {type: string, path: <urn:r>}}}
  sensors: {type: map, path: '<urn:s>/Sensor:.', key: {path: <urn:k>}, elements: {type: number, path: <urn:v>}}
";
        penstock_model::mapping::compile(mapping).unwrap().root
    }

    fn read(query: &str, view: Option<SavedView>) -> State {
        State::new(&shape(), view, &parse_form(query.as_bytes()).unwrap(), &Zone::UTC)
    }

    fn view(filters: &[(&str, &str, &str)]) -> SavedView {
        let filters = filters.iter().map(|(field, test, value)| ViewFilter {
            field: (*field).to_owned(),
            test: (*test).to_owned(),
            value: (*value).to_owned(),
        });
        SavedView {
            id: "v".to_owned(),
            name: String::new(),
            business_object: String::new(),
            filters: filters.collect(),
            order_by: Some("-flow".to_owned()),
            columns: Some(vec!["flow".to_owned()]),
            chart: None,
            shared: false,
            owner: None,
            version: 1,
            created_at: String::new(),
            updated_at: String::new(),
            updated_by: String::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn the_address_of_a_state_is_read_as_the_same_state() {
        for query in [
            "",
            "?filter.flow.after=10&filter.place.room=R%201&orderBy=-at",
            "?filter.name.containsAnyCase=a%26b&filter.name.in=x&filter.name.in=y",
            "?filter.sensors%5B%2210.0.0.1%22%5D=3",
            "?columns=flow&columns=place.room&time=&number=flow&lines=name&show=parts",
        ] {
            let state = read(query.trim_start_matches('?'), None);
            assert_eq!(state.to_query(&shape()), query);
        }
    }

    #[test]
    fn addresses_of_earlier_versions_stay_valid() {
        for (old, new) in [
            (
                "field=/name&test=contains&text=pump&sort=-flow",
                "?filter.name.containsAnyCase=pump&orderBy=-flow",
            ),
            ("field=&test=is&text=urn:a&sort=uri", "?filter.uri=urn%3Aa"),
            (
                "field=/place/room&text=R&field2=/flow&test2=exists&text2=",
                "?filter.place.room.containsAnyCase=R&filter.flow.exists=true",
            ),
            ("field=/sensors/*&test=after&text=3", "?filter.sensors.%2A.after=3"),
            ("field=flow&test=missing&text=", "?filter.flow.exists=false"),
            // No text is in a number.
            ("field=flow&test=contains&text=3", "?filter.flow=3"),
            ("field=&test=contains&text=3", "?filter.uri.containsAnyCase=3"),
            ("field=/flow&test=after&text=", ""),
        ] {
            assert_eq!(read(old, None).to_query(&shape()), new, "{old}");
        }
    }

    #[test]
    fn a_view_is_in_the_address_while_all_its_conditions_hold() {
        let shape = shape();
        let begun = read("", Some(view(&[("name", "eq", "a")])));
        assert_eq!(begun.to_query(&shape), "?view=v");
        assert_eq!(
            (begun.order.as_str(), begun.columns.clone()),
            ("-flow", Some(vec!["flow".to_owned()]))
        );
        let more = ViewFilter {
            field: "flow".to_owned(),
            test: "after".to_owned(),
            value: "1".to_owned(),
        };
        assert_eq!(
            begun.with_condition(more).with_order("").to_query(&shape),
            "?view=v&filter.flow.after=1&orderBy=uri"
        );
        assert!(!begun.has_chosen_columns(&shape), "they are those of the view");
        let chosen = read("columns=at", Some(view(&[])));
        assert!(chosen.has_chosen_columns(&shape));
        let default = State { columns: None, ..chosen };
        assert_eq!(default.to_query(&shape), "?view=v");
        let fewer = begun.without_condition(0);
        assert_eq!(fewer.to_query(&shape), "?orderBy=-flow&columns=flow");
    }

    #[test]
    fn dates_narrow_the_time_field() {
        let shape = shape();
        let narrowed =
            read("filter.at.after=2020-01-01T00:00:00Z&from=2024-03-30&to=2024-03-31", None);
        let expected =
            "?filter.at.atLeast=2024-03-30T00%3A00%3A00Z&filter.at.before=2024-04-01T00%3A00%3A00Z";
        assert_eq!(narrowed.to_query(&shape), expected);
        let dates = read("time=day&to=2024-03-31", None).to_query(&shape);
        assert_eq!(dates, "?filter.day.before=2024-04-01&time=day");
        assert_eq!(read("from=soon", None).to_query(&shape), "");
        let offset = "from=2024-03-31&to=2024-03-31&offset=%2B13:00";
        assert_eq!(
            read(&format!("time=day&{offset}"), None).to_query(&shape),
            "?filter.day.atLeast=2024-03-31%2B13%3A00&filter.day.before=2024-04-01%2B13%3A00&time=day"
        );
        let times = read(&format!("time=at&{offset}"), None).to_query(&shape);
        assert!(times.starts_with("?filter.at.atLeast=2024-03-31T00%3A00%3A00Z&"), "{times}");
    }

    #[test]
    fn the_parameters_of_a_search_are_those_of_the_api() {
        let shape = shape();
        let state = read("filter.flow.after=10&orderBy=-flow&columns=name&number=flow", None);
        let pairs = state.list_search_pairs(&shape);
        assert_eq!(write_query(&pairs), "?filter.flow.after=10&orderBy=-flow");
        let values = vec!["10".to_owned()];
        let parsed = parse_filters(&shape, [("filter.flow.after", values.as_slice())]).unwrap();
        assert_eq!(state.build_filter(&shape).unwrap(), parsed);
    }
}
