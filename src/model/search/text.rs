//! Filters as the address of a list has them: `filter.rating.after=10`.
//!
//! The name of a field may have dots, and so may the names of the members of a map. So a text can be read in several ways:
//! 1. If all of it names a field, it is that field, and the longer name wins where both a field and a part of its name are one.
//! 2. Otherwise the last part is a test, if there is a test of this name.
//! 3. Otherwise it ends with the name of a member of a map, or with a language.
use super::filter::{Filter, ValueTest, invalid_filter_error, unknown_field_error};
use crate::mapping::{MEMBER_KEY, Property, Shape, Value};
use penstock_base::error::GatewayError;
use penstock_base::nearest::find_nearest;
use std::cmp::Reverse;

/// What the name of the parameter of a filter begins with.
const FILTER_PREFIX: &str = "filter.";

/// The maximum number of fields among which the nearest to a name is looked for.
const MAX_COMPARED_FIELDS: usize = 1_000;

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

/// Reads the filters of an address: the name of each parameter, and its values. An object must pass all of them; what is
/// below one array, for the same element. `None` without a parameter.
///
/// # Errors
/// `ErrorClass::Invalid` with the name of the parameter.
pub fn parse_filters<'p>(
    shape: &Shape,
    parameters: impl IntoIterator<Item = (&'p str, &'p [String])>,
) -> Result<Option<Filter>, GatewayError> {
    let mut all = Vec::new();
    for (name, values) in parameters {
        let explain = |error: GatewayError| {
            let detail = format!("the query parameter {name}: {}", error.detail);
            GatewayError { detail, ..error }
        };
        let text = name.strip_prefix(FILTER_PREFIX).unwrap_or(name);
        let filters = parse_parameter(shape, text, values).map_err(explain)?;
        for filter in &filters {
            filter.check_shape(shape).map_err(explain)?;
        }
        all.extend(filters);
    }
    Ok(Filter::all_of(shape, all))
}

/// Reads the filters of one parameter, without the beginning of its name.
fn parse_parameter(
    shape: &Shape,
    text: &str,
    values: &[String],
) -> Result<Vec<Filter>, GatewayError> {
    let (field, test) = find_tested_field(shape, text)?;
    if !field.tests().any(|known| known == test) {
        let known: Vec<&str> = field.tests().collect();
        return Err(invalid_filter_error(match known.as_slice() {
            [] => "the values of the field cannot be searched".to_owned(),
            known => format!("the field has no test `{test}`, but {}", known.join(", ")),
        }));
    }
    if test == "in" {
        return Ok(vec![field.build_filter(shape, ValueTest::In(values.to_vec()))?]);
    }
    let build = |value: &String| match (test, value.as_str()) {
        ("exists", "true") => field.build_filter(shape, ValueTest::Exists),
        ("exists", "false") => {
            let filter = field.build_filter(shape, ValueTest::Exists)?;
            Ok(negate_below(filter, field.depth))
        }
        ("exists", other) => {
            Err(invalid_filter_error(format!("{other:?} is neither true nor false")))
        }
        _ => match ValueTest::with_text(test, value.clone()) {
            Some(test) => field.build_filter(shape, test),
            None => Err(unknown_test_error(test)),
        },
    };
    values.iter().map(build).collect()
}

/// Returns the field and the test that a text names.
fn find_tested_field<'s, 't>(
    shape: &'s Shape,
    text: &'t str,
) -> Result<(NamedField<'s>, &'t str), GatewayError> {
    let whole = find_field(shape, text);
    if let Some(field) = whole.as_ref().filter(|field| !field.ends_with_data) {
        return Ok((field.clone(), "eq"));
    }
    let parts = text.rsplit_once('.');
    let tested = parts.and_then(|(name, test)| Some((find_field(shape, name)?, test)));
    match (tested, whole) {
        (Some((field, test)), _) if TESTS.contains(&test) => Ok((field, test)),
        (_, Some(field)) => Ok((field, "eq")),
        (Some((field, test)), None) if !field.has_fields() => Err(unknown_test_error(test)),
        (_, None) => {
            let name =
                parts.filter(|(_, last)| TESTS.contains(last)).map_or(text, |(name, _)| name);
            let mut known = vec!["uri".to_owned()];
            collect_names(shape, "", &mut known);
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Err(unknown_field_error(name, &known))
        }
    }
}

fn unknown_test_error(test: &str) -> GatewayError {
    let hint = find_nearest(test, TESTS).map(|near| format!("; did you mean `{near}`?"));
    invalid_filter_error(format!("there is no test `{test}`{}", hint.unwrap_or_default()))
}

/// Collects the names of the fields of an object and of those nested in it, as a text has them.
fn collect_names(shape: &Shape, prefix: &str, names: &mut Vec<String>) {
    for (_, field, property) in shape.iter_properties() {
        if names.len() >= MAX_COMPARED_FIELDS || field.is_nameless() {
            return;
        }
        let name = format!("{prefix}{}", field.name);
        if let Some(nested) = property.value.shape().filter(|_| property.map().is_none()) {
            collect_names(nested, &format!("{name}."), names);
        }
        names.push(name);
    }
}

/// A field that a text names.
#[derive(Debug, Clone)]
struct NamedField<'s> {
    /// The names that lead to it.
    path: Vec<String>,
    /// The field itself; `None` for the URI.
    property: Option<&'s Property>,
    /// How many fields of nested objects are around it.
    depth: usize,
    /// Whether the text ends with a name that is data, and not in quotes: of a member of a map, or a language.
    ends_with_data: bool,
}

impl<'s> NamedField<'s> {
    fn new(property: Option<&'s Property>) -> Self {
        Self { path: Vec::new(), property, depth: 0, ends_with_data: false }
    }

    /// Counts the object around it.
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// Counts the member of a map around it, unless the member is its value.
    fn deeper_if_nested(self) -> Self {
        if self.depth > 0 { self.deeper() } else { self }
    }

    /// Returns whether it holds objects with fields.
    fn has_fields(&self) -> bool {
        self.property.is_some_and(|property| property.value.shape().is_some())
    }

    /// Returns the names of the tests that it takes.
    fn tests(&self) -> impl Iterator<Item = &'static str> {
        let tests = match self.property {
            Some(property) => property.graphql().tests,
            None => Value::Resource.kind().graphql.tests,
        };
        let is_uri = self.property.is_none();
        tests.iter().copied().filter(move |test| {
            // A language is no test, and every object has a URI.
            TESTS.contains(test) && !(is_uri && *test == "exists")
        })
    }

    fn build_filter(&self, shape: &Shape, test: ValueTest) -> Result<Filter, GatewayError> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        Filter::for_field(shape, &path, test)
    }

    /// Puts the names before it that lead to the object or map that it is in.
    fn within(mut self, name: String) -> Self {
        self.path.insert(0, name);
        self
    }
}

/// Returns the field of an object that a text names.
fn find_field<'s>(shape: &'s Shape, text: &str) -> Option<NamedField<'s>> {
    let named = shape.fields.iter().filter(|field| !field.is_nameless());
    let mut named: Vec<_> =
        named.filter_map(|field| Some((field, rest_after(text, &field.name)?))).collect();
    named.sort_by_key(|(field, _)| Reverse(field.name.len()));
    let found = named.into_iter().find_map(|(field, rest)| {
        let found = match field.property() {
            Some(property) => find_below(property, rest),
            None => rest.is_empty().then(|| NamedField::new(None)),
        };
        Some(found?.within(field.name.clone()))
    });
    found.or_else(|| (text == "uri").then(|| NamedField::new(None).within(text.to_owned())))
}

/// Returns what follows the name of a field, if a text begins with it.
fn rest_after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

/// Returns the field that the rest of a text names, after the name of this one.
fn find_below<'s>(property: &'s Property, rest: &str) -> Option<NamedField<'s>> {
    if rest.is_empty() {
        return Some(NamedField::new(Some(property)));
    }
    if let Some((shape, map)) = property.map() {
        let MemberName { name, rest, is_quoted } = read_member_name(rest)?;
        let value = map.value.map(|(_, value)| value);
        let found = if name == MEMBER_KEY {
            rest.is_empty().then(|| NamedField::new(Some(map.key)))
        } else if rest.is_empty() {
            let named = NamedField::new(Some(value.unwrap_or(property)));
            Some(NamedField { ends_with_data: !is_quoted, ..named })
        } else if let Some(value) = value {
            find_below(value, rest).map(NamedField::deeper_if_nested)
        } else {
            find_field(shape, rest.strip_prefix('.')?).map(NamedField::deeper)
        };
        return Some(found?.within(name));
    }
    if property.value.language_map().is_some() {
        let MemberName { name, rest, is_quoted } = read_member_name(rest)?;
        let named = NamedField { ends_with_data: !is_quoted, ..NamedField::new(Some(property)) };
        return rest.is_empty().then(|| named.within(name));
    }
    find_field(property.value.shape()?, rest.strip_prefix('.')?).map(NamedField::deeper)
}

/// The name of a member of a map, or a language, and what follows it.
struct MemberName<'t> {
    name: String,
    rest: &'t str,
    is_quoted: bool,
}

/// Reads `.name`, or `["name"]` with a string in JSON.
fn read_member_name(text: &str) -> Option<MemberName<'_>> {
    if let Some(quoted) = text.strip_prefix('[') {
        let mut strings = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
        let name = strings.next()?.ok()?;
        let rest = quoted.get(strings.byte_offset()..)?.strip_prefix(']')?;
        return Some(MemberName { name, rest, is_quoted: true });
    }
    let text = text.strip_prefix('.')?;
    let (name, rest) = text.split_at(text.find(['.', '[']).unwrap_or(text.len()));
    (!name.is_empty()).then(|| MemberName { name: name.to_owned(), rest, is_quoted: false })
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
}
