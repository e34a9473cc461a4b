//! The filters of the page: in the address, in the form that adds one, and as chips.
use super::state::{Pair, State, find_value};
use crate::admin::filter_bar::Select;
use crate::admin::views::describe_filter;
use crate::admin::words::shorten_text;
use jiff::civil::Date;
use penstock_base::json::unescape_token;
use penstock_base::time_zone::Zone;
use penstock_model::mapping::Shape;
use penstock_model::search::{
    TextFilter, find_begin_of_day, find_field_path, find_search_property, list_search_fields,
    list_tests, split_parameter,
};
use penstock_resources::view::ViewFilter;

/// The operators of the form: the name in the address, the test and its value if it has one of its own, and the label.
const OPERATORS: [(&str, &str, Option<&str>, &str); 9] = [
    ("contains", "containsAnyCase", None, "contains"),
    ("is", "eq", None, "is"),
    ("startsWith", "startsWith", None, "begins with"),
    ("before", "before", None, "is before or less than"),
    ("after", "after", None, "is after or greater than"),
    ("atMost", "atMost", None, "is at most"),
    ("atLeast", "atLeast", None, "is at least"),
    ("exists", "exists", Some("true"), "has a value"),
    ("missing", "exists", Some("false"), "has no value"),
];

/// The parameters of the form. In addresses of earlier versions, there are up to five filters.
const NAMES: [[&str; 3]; 5] = [
    ["field", "test", "text"],
    ["field2", "test2", "text2"],
    ["field3", "test3", "text3"],
    ["field4", "test4", "text4"],
    ["field5", "test5", "text5"],
];

/// The tests that compare with a limit.
const LIMIT_TESTS: [&str; 4] = ["before", "after", "atLeast", "atMost"];
/// The maximum number of fields that can be chosen.
const MAX_CHOSEN_FIELDS: usize = 200;

/// Returns the names of the parameters of the form.
pub(super) fn parameter_names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().flatten()
}

/// Reads the filters of an address: those that the API takes too, and those of the form.
pub(super) fn read_conditions(shape: &Shape, pairs: &[Pair]) -> Vec<ViewFilter> {
    let mut conditions = Vec::new();
    for (name, value) in pairs {
        let Some(text) = name.strip_prefix("filter.") else { continue };
        // Building the filter reports a field or a test that does not exist.
        let (field, test) = split_parameter(shape, name).unwrap_or((text, "eq"));
        conditions.push(ViewFilter {
            field: field.to_owned(),
            test: test.to_owned(),
            value: value.clone(),
        });
    }
    conditions.extend(NAMES.iter().filter_map(|names| read_form_filter(shape, pairs, names)));
    conditions
}

/// Reads the filter of the form with parameters of these names.
fn read_form_filter(shape: &Shape, pairs: &[Pair], names: &[&str; 3]) -> Option<ViewFilter> {
    let [field, test, text] = names.map(|name| find_trimmed(pairs, name));
    let test = if test.is_empty() { "contains" } else { test };
    let field = read_field(shape, field);
    let operator = OPERATORS.iter().find(|(name, ..)| *name == test);
    let (test, value) = match operator {
        Some((_, test, Some(value), _)) => (*test, *value),
        Some((_, test, None, _)) => (fit_test(shape, &field, test), text),
        None => (test, text),
    };
    let is_given = !value.is_empty();
    is_given.then(|| ViewFilter { field, test: test.to_owned(), value: value.to_owned() })
}

fn find_trimmed<'p>(pairs: &'p [Pair], name: &str) -> &'p str {
    find_value(pairs, name).unwrap_or_default().trim()
}

/// A filter that the form sent and that does not fit.
pub(super) struct WrongFilter {
    field: String,
    /// The name of the operator.
    test: String,
    text: String,
    /// Why it does not fit.
    why: String,
}

impl WrongFilter {
    /// Takes the filter that the form sent out of the state if it does not fit. The page then shows the objects without it, and
    /// the form what was typed.
    pub(super) fn take(state: &mut State, shape: &Shape, pairs: &[Pair]) -> Option<Self> {
        let [names, ..] = &NAMES;
        let condition = read_form_filter(shape, pairs, names)?;
        let ViewFilter { field, test, value } = &condition;
        let error = TextFilter { field, test, value }.check(shape).err()?;
        state.conditions.retain(|known| *known != condition);
        let [_, test, text] = names.map(|name| find_trimmed(pairs, name).to_owned());
        Some(Self { field: condition.field, test, text, why: error.detail })
    }
}

/// Returns the test of an operator for a field. The form begins with the operator "contains", which numbers, times and
/// booleans do not have: they are compared as a whole.
fn fit_test<'t>(shape: &Shape, field: &str, test: &'t str) -> &'t str {
    let tests: Vec<_> = list_tests(find_search_property(shape, field)).collect();
    let is_whole = test == "containsAnyCase" && !tests.contains(&test) && tests.contains(&"eq");
    if is_whole { "eq" } else { test }
}

/// Returns the name of a field, which may be a JSON Pointer in an address of an earlier version.
fn read_field(shape: &Shape, text: &str) -> String {
    match text.strip_prefix('/') {
        _ if text.is_empty() => "uri".to_owned(),
        Some(pointer) if find_field_path(shape, text).is_err() => {
            pointer.split('/').map(unescape_token).collect::<Vec<_>>().join(".")
        }
        _ => text.to_owned(),
    }
}

/// The days that a form narrows the page to.
pub(super) struct Days<'d> {
    /// The field of dates or times.
    pub(super) time: &'d str,
    /// The first and the last day, as the form sends them.
    pub(super) dates: [Option<&'d str>; 2],
    /// The offset from which on a day begins among dates with offsets, which compare by moment; empty for others.
    pub(super) offset: &'d str,
}

/// Replaces the limits of a field of dates or times by days, both included, in a time zone.
pub(super) fn narrow(
    conditions: &mut Vec<ViewFilter>,
    shape: &Shape,
    Days { time, dates: [from, to], offset }: &Days<'_>,
    zone: &Zone,
) {
    let Some(property) = find_search_property(shape, time) else { return };
    let order = property.order();
    if !order.is_time() {
        return;
    }
    let offset = if property.is_date_time() { "" } else { *offset };
    let parse = |text: Option<&str>| text?.parse::<Date>().ok();
    let limits =
        [("atLeast", parse(*from)), ("before", parse(*to).and_then(|day| day.tomorrow().ok()))];
    let limits = limits.into_iter().filter_map(|(test, day)| {
        let value = format!("{}{offset}", find_begin_of_day(day?, order, zone)?);
        Some(ViewFilter { field: (*time).to_owned(), test: test.to_owned(), value })
    });
    let limits: Vec<_> = limits.collect();
    if !limits.is_empty() {
        remove_limits(conditions, time);
        conditions.extend(limits);
    }
}

/// Removes the limits of a field.
pub(super) fn remove_limits(conditions: &mut Vec<ViewFilter>, field: &str) {
    conditions.retain(|condition| {
        condition.field != field || !LIMIT_TESTS.contains(&condition.test.as_str())
    });
}

/// A filter that the page shows.
pub(super) struct Chip {
    /// The filter in words.
    pub(super) words: String,
    /// The address of the page without it.
    pub(super) removal: String,
}

/// Returns the chips of a state. `path` is the address of the page without parameters.
pub(super) fn list_chips(state: &State, shape: &Shape, path: &str) -> Vec<Chip> {
    let chips = state.conditions.iter().enumerate().map(|(place, condition)| Chip {
        words: shorten_text(&describe_filter(condition)),
        removal: format!("{path}{}", state.without_condition(place).to_query(shape)),
    });
    chips.collect()
}

/// The form that adds a filter.
pub(super) struct FilterForm {
    pub(super) field: Select,
    pub(super) test: Select,
    pub(super) text: String,
    /// Why the filter that was sent does not fit; empty without one.
    pub(super) fault: String,
}

impl FilterForm {
    /// Creates the form, with the filter that was sent last if that was wrong. People filter by the label, unless they choose
    /// another field.
    pub(super) fn new(shape: &Shape, label: Option<&str>, wrong: Option<WrongFilter>) -> Self {
        let sent = wrong.unwrap_or_else(|| WrongFilter {
            field: label.unwrap_or("uri").to_owned(),
            test: "contains".to_owned(),
            text: String::new(),
            why: String::new(),
        });
        let uri = std::iter::once("uri".to_owned());
        let names = list_search_fields(shape).into_iter().map(|field| field.name);
        let names = uri.chain(names.take(MAX_CHOSEN_FIELDS));
        let fields =
            names.map(|name| (name.clone(), if name == "uri" { "URI".to_owned() } else { name }));
        let operators = OPERATORS.map(|(name, _, _, words)| (name, words));
        Self {
            field: Select::new("field", "Field", fields, Some(sent.field.as_str())),
            test: Select::new("test", "Operator", operators, Some(sent.test.as_str())),
            text: sent.text,
            fault: sent.why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_offers_the_fields_and_begins_with_the_label() {
        let mapping = "type: object\npath: A:.\nfields:\n  name: {type: string, path: <urn:n>}\n  data: {type: json, path: <urn:d>}\n";
        let root = penstock_model::mapping::compile(mapping).unwrap().root;
        let form = FilterForm::new(&root, Some("name"), None);
        let fields: Vec<_> =
            form.field.choices.iter().map(|choice| choice.value.as_str()).collect();
        assert_eq!(fields, ["uri", "name"]);
        assert!(form.field.choices[1].is_chosen && form.test.choices[0].is_chosen);
        assert!(FilterForm::new(&root, None, None).field.choices[0].is_chosen);
    }

    #[test]
    fn a_filter_of_the_form_that_does_not_fit_is_back_in_the_form() {
        let mapping = "type: object\npath: A:.\nfields:\n  name: {type: string, path: <urn:n>}\n  flow: {type: number, path: <urn:f>}\n";
        let root = penstock_model::mapping::compile(mapping).unwrap().root;
        let take = |query: &str| {
            let pairs = penstock_http::query::parse_form(query.as_bytes()).unwrap();
            let mut state = State::new(&root, None, &pairs, &Zone::UTC);
            let wrong = WrongFilter::take(&mut state, &root, &pairs);
            (FilterForm::new(&root, Some("name"), wrong), state.to_query(&root))
        };
        let (form, query) = take("filter.name=a&field=flow&test=after&text=+high");
        let chosen = |select: &Select| {
            select.choices.iter().find(|choice| choice.is_chosen).map(|choice| choice.value.clone())
        };
        assert_eq!(chosen(&form.field).as_deref(), Some("flow"));
        assert_eq!(chosen(&form.test).as_deref(), Some("after"));
        assert_eq!(form.text, "high");
        assert!(!form.fault.is_empty());
        assert_eq!(query, "?filter.name=a");
        let (form, query) = take("field=flow&test=after&text=7");
        assert!(form.text.is_empty() && form.fault.is_empty());
        assert_eq!(query, "?filter.flow.after=7");
    }

    #[test]
    fn a_condition_that_does_not_fit_is_kept_so_that_it_can_be_removed() {
        let mapping = "type: object\npath: A:.\nfields:\n  name: {type: string, path: <urn:n>}\n";
        let root = penstock_model::mapping::compile(mapping).unwrap().root;
        let pairs = [
            ("filter.gone".to_owned(), "1".to_owned()),
            ("field".to_owned(), "/none".to_owned()),
            ("text".to_owned(), "x".to_owned()),
        ];
        let conditions = read_conditions(&root, &pairs);
        let fields: Vec<_> = conditions.iter().map(|condition| condition.field.as_str()).collect();
        assert_eq!(fields, ["gone", "none"]);
    }
}
