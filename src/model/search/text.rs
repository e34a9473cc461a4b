//! Filters as texts: those of an address (`filter.rating.after=10`), and those of a saved view.
//!
//! The name of a parameter can be read in several ways:
//! 1. If all of it names a field, it is that field.
//! 2. Otherwise the last part is a test, if there is a test of this name.
//! 3. Otherwise it ends with the name of a member of a map, or with a language.
use super::errors::invalid_search_error;
use super::field_name::{NamedField, find_field, find_named, no_field_error};
use super::filter::{Filter, ValueTest};
use crate::mapping::{Property, Shape, Value};
use penstock_base::error::{Finding, GatewayError};
use penstock_base::nearest::find_nearest;

/// What the name of the parameter of a filter begins with.
const FILTER_PREFIX: &str = "filter.";

/// The maximum number of conditions of a search. Those below one array are compared with each other, before the search has a
/// permit.
const MAX_CONDITIONS: usize = 200;

/// The tests, with the names that they have in GraphQL.
const TESTS: [&str; 10] = [
    "eq",
    "in",
    "contains",
    "containsAnyCase",
    "startsWith",
    "before",
    "after",
    "atLeast",
    "atMost",
    "exists",
];

/// A condition on a field, in texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFilter<'t> {
    /// The name of the field, as [`find_field_path`](super::find_field_path) takes it.
    pub field: &'t str,
    /// The name of the test.
    pub test: &'t str,
    /// What the value is compared with; `true` or `false` for `exists`.
    pub value: &'t str,
}

impl<'t> TextFilter<'t> {
    /// Creates the filter of the objects of this shape. Several `in` of one field are one list. An object must pass all of
    /// them; what is below one array, for the same element. `None` without a condition.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` as [`Self::check`], and if there are too many.
    pub fn build_all(
        conditions: impl IntoIterator<Item = Self>,
        shape: &Shape,
    ) -> Result<Option<Filter>, GatewayError> {
        let (mut all, mut lists) = (Vec::new(), Vec::<(&str, Vec<&str>)>::new());
        for condition in conditions {
            let Self { field, test, value } = condition;
            if test != "in" {
                all.extend(condition.build(&[value], shape)?);
            } else if let Some((_, list)) = lists.iter_mut().find(|(known, _)| *known == field) {
                list.push(value);
            } else {
                lists.push((field, vec![value]));
            }
        }
        for (field, list) in lists {
            all.extend(Self { field, test: "in", value: "" }.build(&list, shape)?);
        }
        combine_conditions(shape, all)
    }

    /// Checks that the condition fits the objects of this shape.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` with a finding at `/field`, `/test` or `/value`.
    pub fn check(self, shape: &Shape) -> Result<(), GatewayError> {
        self.build(&[self.value], shape).map(drop)
    }

    fn build(self, values: &[&'t str], shape: &Shape) -> Result<Vec<Filter>, GatewayError> {
        let at = |part: &'static str| {
            move |error: GatewayError| {
                let findings = vec![Finding::at_pointer(part, error.detail.clone())];
                GatewayError { findings, ..error }
            }
        };
        let field = find_named(shape, self.field).map_err(at("/field"))?;
        field.check_test(self.test).map_err(at("/test"))?;
        field.build_filters(shape, self.test, values).map_err(at("/value"))
    }
}

/// Reads the filters of an address: the name of each parameter, and its values. An object must pass all of them; what is
/// below one array, for the same element. `None` without a parameter.
///
/// # Errors
/// `ErrorClass::Invalid` with the name of the parameter, and if there are too many filters.
pub fn parse_filters<'p>(
    shape: &Shape,
    parameters: impl IntoIterator<Item = (&'p str, &'p [String])>,
) -> Result<Option<Filter>, GatewayError> {
    let mut all = Vec::new();
    for (name, values) in parameters {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let filters = split_parameter(shape, name).and_then(|(field, test)| {
            let field = find_named(shape, field)?;
            field.check_test(test)?;
            field.build_filters(shape, test, &values)
        });
        let filters = filters.map_err(|error: GatewayError| {
            let detail = format!("the query parameter {name}: {}", error.detail);
            GatewayError { detail, ..error }
        })?;
        all.extend(filters);
    }
    combine_conditions(shape, all)
}

fn combine_conditions(shape: &Shape, all: Vec<Filter>) -> Result<Option<Filter>, GatewayError> {
    if all.len() <= MAX_CONDITIONS {
        return Ok(Filter::all_of(shape, all));
    }
    Err(invalid_search_error(format!(
        "there are {} filters, and a search has at most {MAX_CONDITIONS}; send the values of one field with `in`",
        all.len()
    )))
}

/// Splits the name of a parameter into the names of the field and of the test.
///
/// # Errors
/// `ErrorClass::Invalid` if there is no such field or test.
pub fn split_parameter<'n>(
    shape: &Shape,
    parameter: &'n str,
) -> Result<(&'n str, &'n str), GatewayError> {
    let text = parameter.strip_prefix(FILTER_PREFIX).unwrap_or(parameter);
    let whole = find_field(shape, text);
    if whole.as_ref().is_some_and(|field| !field.ends_with_data) {
        return Ok((text, "eq"));
    }
    let parts = text.rsplit_once('.');
    let tested = parts.and_then(|(name, test)| Some((name, find_field(shape, name)?, test)));
    match (tested, whole) {
        (Some((name, _, test)), _) if TESTS.contains(&test) => Ok((name, test)),
        (_, Some(_)) => Ok((text, "eq")),
        (Some((_, field, test)), None) if !field.has_fields() => Err(unknown_test_error(test)),
        (_, None) => {
            let name =
                parts.filter(|(_, last)| TESTS.contains(last)).map_or(text, |(name, _)| name);
            Err(no_field_error(shape, name))
        }
    }
}

/// Returns the name of the parameter of a filter.
pub fn join_parameter(shape: &Shape, field: &str, test: &str) -> String {
    let short = format!("{FILTER_PREFIX}{field}");
    let is_clear = split_parameter(shape, &short).is_ok_and(|parts| parts == (field, "eq"));
    if test == "eq" && is_clear { short } else { format!("{short}.{test}") }
}

fn unknown_test_error(test: &str) -> GatewayError {
    let hint = match find_nearest(test, TESTS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", TESTS.join(", ")),
    };
    invalid_search_error(format!("there is no test `{test}`; {hint}"))
}

/// Returns the names of the tests that a field takes; those of the URI without one.
pub fn list_tests(property: Option<&Property>) -> impl Iterator<Item = &'static str> {
    let tests = match property {
        Some(property) => property.graphql().tests,
        None => Value::Resource.kind().graphql.tests,
    };
    let is_uri = property.is_none();
    tests.iter().copied().filter(move |test| {
        // A language is no test, and every object has a URI.
        TESTS.contains(test) && !(is_uri && *test == "exists")
    })
}

impl NamedField<'_> {
    fn check_test(&self, test: &str) -> Result<(), GatewayError> {
        let known: Vec<&str> = list_tests(self.property).collect();
        if known.contains(&test) {
            return Ok(());
        }
        Err(match known.as_slice() {
            [] => invalid_search_error("the values of the field cannot be searched".to_owned()),
            _ if !TESTS.contains(&test) => unknown_test_error(test),
            known => {
                let known = known.join(", ");
                invalid_search_error(format!("the field has no test `{test}`, but {known}"))
            }
        })
    }

    /// Builds the filters of a test with these values: one for all values of `in`, and one for each value of another test.
    fn build_filters(
        &self,
        shape: &Shape,
        test: &str,
        values: &[&str],
    ) -> Result<Vec<Filter>, GatewayError> {
        let owned = |value: &&str| (*value).to_owned();
        let filters = if test == "in" {
            let wanted = values.iter().map(owned).collect();
            vec![self.build_filter(shape, ValueTest::In(wanted))?]
        } else {
            let build = |value: &&str| match (test, *value) {
                ("exists", "true") => self.build_filter(shape, ValueTest::Exists),
                ("exists", "false") => {
                    let filter = self.build_filter(shape, ValueTest::Exists)?;
                    Ok(negate_below(filter, self.depth))
                }
                ("exists", other) => {
                    Err(invalid_search_error(format!("{other:?} is neither true nor false")))
                }
                _ => match ValueTest::with_text(test, owned(value)) {
                    Some(test) => self.build_filter(shape, test),
                    None => Err(unknown_test_error(test)),
                },
            };
            values.iter().map(build).collect::<Result<Vec<_>, _>>()?
        };
        for filter in &filters {
            filter.check_shape(shape)?;
        }
        Ok(filters)
    }

    fn build_filter(&self, shape: &Shape, test: ValueTest) -> Result<Filter, GatewayError> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        Filter::for_field(shape, &path, test)
    }
}

/// Negates what a filter says of the field below this many nested objects.
fn negate_below(filter: Filter, depth: usize) -> Filter {
    match (filter, depth.checked_sub(1)) {
        (Filter::Nested { field, filter }, Some(depth)) => {
            let filter = match *filter {
                // The name of a member of a map, and what the member has.
                Filter::All(mut both) => {
                    let inner = both.pop().map(|inner| negate_below(inner, depth));
                    both.extend(inner);
                    Filter::All(both)
                }
                inner => negate_below(inner, depth),
            };
            Filter::Nested { field, filter: Box::new(filter) }
        }
        (filter, _) => Filter::Not(Box::new(filter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping;
    use penstock_base::error::ErrorClass;

    const CONFIG: &str = "
type: object
path: Pump:.
fields:
  serial: {type: string, path: <urn:serial>}
  serial.after: {type: string, path: <urn:other>}
  rating: {type: number, path: <urn:rating>}
  data: {type: json, path: <urn:data>}
  limits: {type: group, fields: {low: {type: number, path: <urn:low>}}}
  name: {type: languageMap, path: <urn:name>}
  readings:
    type: array
    elements:
      type: object
      path: <urn:reading>/Reading:.
      fields:
        value: {type: number, path: <urn:value>}
        unit: {type: string, path: <urn:unit>}
  sensors:
    type: map
    path: <urn:sensor>/Sensor:.
    key: {path: <urn:code>}
    elements: {type: object, fields: {value: {type: number, path: <urn:value>}, unit: {type: string, path: <urn:unit>}}}
  levels: {type: map, path: <urn:level>/Level:., key: {path: <urn:number>}, elements: {type: number, path: <urn:value>}}
";

    fn parse(parameters: &[(&str, &[&str])]) -> Result<Filter, GatewayError> {
        let root = mapping::compile(CONFIG).unwrap().root;
        let owned: Vec<(String, Vec<String>)> = parameters
            .iter()
            .map(|(name, values)| {
                let values = values.iter().map(|value| (*value).to_owned()).collect();
                (format!("filter.{name}"), values)
            })
            .collect();
        let given = owned.iter().map(|(name, values)| (name.as_str(), values.as_slice()));
        parse_filters(&root, given).map(Option::unwrap)
    }

    fn of(path: &[&str], test: ValueTest) -> Filter {
        Filter::for_field(&mapping::compile(CONFIG).unwrap().root, path, test).unwrap()
    }

    fn is(text: &str) -> ValueTest {
        ValueTest::In(vec![text.to_owned()])
    }

    #[test]
    fn a_name_is_that_of_a_field_or_ends_with_a_test() {
        let over = |text: &str| ValueTest::After(text.to_owned());
        for (name, path, test) in [
            ("serial", &["serial"][..], is("5")),
            ("serial.eq", &["serial"], is("5")),
            ("serial.startsWith", &["serial"], ValueTest::StartsWith("5".to_owned())),
            ("serial.after", &["serial.after"], is("5")),
            ("rating.after", &["rating"], over("5")),
            ("rating.atLeast", &["rating"], ValueTest::AtLeast("5".to_owned())),
            ("limits.low.atMost", &["limits.low"], ValueTest::AtMost("5".to_owned())),
            ("uri.contains", &["uri"], ValueTest::Contains("5".to_owned())),
            ("name.de", &["name", "de"], is("5")),
            ("name.in", &["name"], is("5")),
            ("readings.value.after", &["readings", "value"], over("5")),
            ("readings.uri", &["readings", "uri"], is("5")),
            ("sensors.T1.value.after", &["sensors", "T1", "value"], over("5")),
            ("sensors[\"10.0.0.1\"].value", &["sensors", "10.0.0.1", "value"], is("5")),
            ("sensors[\"after\"].unit", &["sensors", "after", "unit"], is("5")),
            ("sensors.*.value", &["sensors", "*", "value"], is("5")),
            ("sensors.@key", &["sensors", "@key"], is("5")),
            ("levels.L1", &["levels", "L1"], is("5")),
            ("levels.L1.after", &["levels", "L1"], over("5")),
            ("levels[\"after\"]", &["levels", "after"], is("5")),
        ] {
            assert_eq!(parse(&[(name, &["5"])]).unwrap(), of(path, test), "{name}");
        }
        let several = parse(&[("serial.in", &["a", "b"])]).unwrap();
        assert_eq!(several, of(&["serial"], ValueTest::In(vec!["a".to_owned(), "b".to_owned()])));
    }

    #[test]
    fn the_number_of_conditions_is_limited() {
        let texts: Vec<String> = (0..=MAX_CONDITIONS).map(|number| number.to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        parse(&[("readings.unit.contains", &texts[1..])]).unwrap();
        parse(&[("readings.unit.in", &texts[..])]).unwrap();
        let error = parse(&[("readings.unit.contains", &texts[..])]).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        let conditions =
            texts.iter().map(|&value| TextFilter { field: "serial", test: "contains", value });
        let shape = mapping::compile(CONFIG).unwrap().root;
        let error = TextFilter::build_all(conditions, &shape).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
    }

    #[test]
    fn a_missing_value_is_that_of_the_last_field() {
        let not = |filter| Filter::Not(Box::new(filter));
        let exists = |path: &[&str]| of(path, ValueTest::Exists);
        for path in
            [&["serial"][..], &["readings"], &["name", "de"], &["levels", "L1"], &["sensors", "T1"]]
        {
            let name = format!("{}.exists", path.join("."));
            assert_eq!(parse(&[(&name, &["true"])]).unwrap(), exists(path));
            assert_eq!(parse(&[(&name, &["false"])]).unwrap(), not(exists(path)));
        }
        let Filter::Nested { field, filter } = exists(&["readings", "value"]) else { panic!() };
        let element = Filter::Nested { field, filter: Box::new(not(*filter)) };
        assert_eq!(parse(&[("readings.value.exists", &["false"])]).unwrap(), element);
        let Filter::Nested { field, filter } = exists(&["sensors", "T1", "value"]) else {
            panic!()
        };
        let Filter::All(mut both) = *filter else { panic!() };
        let value = both.pop().unwrap();
        both.push(not(value));
        let member = Filter::Nested { field, filter: Box::new(Filter::All(both)) };
        assert_eq!(parse(&[("sensors.T1.value.exists", &["false"])]).unwrap(), member);
    }

    #[test]
    fn filters_below_one_array_are_for_the_same_element() {
        let both = parse(&[("readings.value.after", &["5"]), ("readings.unit", &["C"])]).unwrap();
        let Filter::Nested { filter, .. } = both else { panic!("{both:?}") };
        assert!(matches!(*filter, Filter::All(all) if all.len() == 2));
        let one = parse(&[("sensors.T1.value", &["5"]), ("sensors.T1.unit", &["C"])]).unwrap();
        let Filter::Nested { filter, .. } = one else { panic!("{one:?}") };
        assert!(matches!(*filter, Filter::All(all) if all.len() == 3));
        let others = parse(&[("sensors.T1.value", &["5"]), ("sensors.T2.unit", &["C"])]).unwrap();
        assert!(matches!(others, Filter::All(all) if all.len() == 2));
    }

    #[test]
    fn errors_name_the_parameter_and_what_is_near() {
        for (name, value, expected) in [
            ("serail", "5", "filter.serail: there is no field `serail`; did you mean `serial`?"),
            ("ratng.after", "5", "there is no field `ratng`; did you mean `rating`?"),
            ("readings.valu", "5", "did you mean `readings.value`?"),
            ("rating.afer", "5", "there is no test `afer`; did you mean `after`?"),
            ("serial.before", "5", "the field has no test `before`, but eq, in, contains,"),
            ("rating", "x", "filter.rating: \"x\" is not a number, but the field rating needs one"),
            ("rating.after", "15,5", "needs one; write digits with a point, such as 12.5"),
            ("rating.exists", "yes", "\"yes\" is neither true nor false"),
            ("uri.exists", "true", "the field has no test `exists`"),
            ("data", "5", "cannot be searched"),
            ("sensors[\"T1", "5", "there is no field"),
        ] {
            let error = parse(&[(name, &[value])]).unwrap_err();
            assert_eq!(error.class, ErrorClass::Invalid, "{error}");
            assert!(error.detail.starts_with("the query parameter filter."), "{error}");
            assert!(error.detail.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_name_of_a_parameter_is_split_as_it_was_joined() {
        let root = mapping::compile(CONFIG).unwrap().root;
        for (field, test, name) in [
            ("serial", "eq", "filter.serial"),
            ("serial", "after", "filter.serial.after"),
            ("name", "eq", "filter.name"),
            ("name.de", "eq", "filter.name.de"),
            ("levels.L1", "after", "filter.levels.L1.after"),
            ("sensors[\"after\"].unit", "in", "filter.sensors[\"after\"].unit.in"),
        ] {
            assert_eq!(join_parameter(&root, field, test), name);
            // A field of exactly that name wins.
            if name != "filter.serial.after" {
                assert_eq!(split_parameter(&root, name).unwrap(), (field, test));
            }
        }
    }

    #[test]
    fn the_error_of_a_condition_is_at_the_part_that_is_wrong() {
        let root = mapping::compile(CONFIG).unwrap().root;
        let condition = |field, test, value| TextFilter { field, test, value };
        for (field, test, value) in [
            ("serial", "eq", "P-1"),
            ("rating", "after", "1.5"),
            ("sensors.T1.value", "before", "7"),
            ("name.de", "containsAnyCase", "pumpe"),
            ("readings", "exists", "true"),
            ("serial", "startsWith", "P"),
            ("rating", "atLeast", "1"),
            ("rating", "atMost", "2"),
        ] {
            condition(field, test, value).check(&root).unwrap();
        }
        let missing = TextFilter::build_all([condition("rating", "exists", "false")], &root);
        assert!(matches!(missing.unwrap(), Some(Filter::Not(_))));
        for (field, test, value, place) in [
            ("none", "eq", "1", "/field"),
            ("rating", "equals", "1", "/test"),
            ("serial", "before", "x", "/test"),
            ("rating", "startsWith", "1", "/test"),
            ("rating", "after", "high", "/value"),
            ("rating", "atLeast", "high", "/value"),
            ("rating", "exists", "yes", "/value"),
        ] {
            let error = condition(field, test, value).check(&root).unwrap_err();
            assert_eq!(error.class, ErrorClass::Invalid);
            assert_eq!(error.findings, [Finding::at_pointer(place, error.detail.clone())]);
        }
    }

    #[test]
    fn conditions_are_combined_as_those_of_an_address() {
        let root = mapping::compile(CONFIG).unwrap().root;
        let build = |conditions: &[[&'static str; 3]]| {
            let conditions = conditions.iter();
            let conditions =
                conditions.map(|[field, test, value]| TextFilter { field, test, value });
            TextFilter::build_all(conditions, &root).unwrap()
        };
        assert_eq!(build(&[]), None);
        let lists =
            build(&[["serial", "in", "a"], ["rating", "after", "5"], ["serial", "in", "b"]]);
        let same = parse(&[("rating.after", &["5"]), ("serial.in", &["a", "b"])]);
        assert_eq!(lists, Some(same.unwrap()));
        let element = build(&[["readings.value", "after", "5"], ["readings.unit", "eq", "C"]]);
        let same = parse(&[("readings.value.after", &["5"]), ("readings.unit", &["C"])]);
        assert_eq!(element, Some(same.unwrap()));
    }
}
