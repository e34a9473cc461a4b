//! The conditions of the page: those that an address states, and the days that a form narrows the page to.
use super::address::{FILTER_NAMES, Pair, find_value};
use jiff::civil::Date;
use penstock_base::json::unescape_token;
use penstock_base::time_zone::Zone;
use penstock_model::mapping::Shape;
use penstock_model::search::{
    find_begin_of_day, find_field_path, find_search_property, list_tests, split_parameter,
};
use penstock_resources::view::ViewFilter;

/// The operators of the form: the name in the address, the test and its value if it has one of its own, and the label.
pub(super) const OPERATORS: [(&str, &str, Option<&str>, &str); 9] = [
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

/// The tests that compare with a limit.
const LIMIT_TESTS: [&str; 4] = ["before", "after", "atLeast", "atMost"];

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
    conditions
        .extend(FILTER_NAMES.iter().filter_map(|names| read_form_filter(shape, pairs, names)));
    conditions
}

/// Reads the filter of the form with parameters of these names.
pub(super) fn read_form_filter(
    shape: &Shape,
    pairs: &[Pair],
    names: &[&str; 3],
) -> Option<ViewFilter> {
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

/// Returns the first value of a parameter without white space around it; empty without one.
pub(super) fn find_trimmed<'p>(pairs: &'p [Pair], name: &str) -> &'p str {
    find_value(pairs, name).unwrap_or_default().trim()
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

#[cfg(test)]
mod tests {
    use super::*;

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
