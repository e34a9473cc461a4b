//! Property tests: the search finds the same objects as a test of every object.
mod maps;
mod ordered;
mod values;

use super::*;
use crate::ingest::{Body, Mode};
use crate::mapping;
use crate::testing::{Fixture, insert_quad};
use oxrdf::{Literal, NamedNode};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::namespace::Generator;
use penstock_store::{Options, Read};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const CONFIG: &str = "
type: object
path: Root:.
fields:
  uri: {type: id}
  n: {type: number, path: <urn:p:n>}
  s: {type: string, path: <urn:p:s>}
  link: {type: resource, path: <urn:p:link>}
  many: {type: array, path: <urn:p:many>, elements: {type: resource}}
  inner:
    type: array
    path: <urn:p:inner>
    elements:
      type: object
      path: Inner:.
      fields:
        uri: {type: id}
        n: {type: integer, path: <urn:p:n2>}
        link: {type: resource, path: <urn:p:link2>}
";

/// Creates a fixture with these objects.
fn fixture_with(objects: &Value) -> Fixture {
    let root = mapping::compile(CONFIG).unwrap().root;
    let fixture = Fixture::with_generator(root, Generator::Uuid);
    let body = json!({"data": objects}).to_string();
    fixture.run(&fixture.request(Mode::Replace, Body::Json(body.as_bytes()))).unwrap();
    fixture
}

impl Fixture {
    /// Returns every object as the view shows it.
    fn all(&self) -> Vec<Value> {
        let members = self.members();
        members.iter().map(|uri| serde_json::from_str(&self.view(uri)).unwrap()).collect()
    }

    /// Returns the URIs of all pages of this size.
    fn search(&self, filter: &Filter, order: Order, limit: usize) -> Vec<String> {
        let (mut found, mut after) = (Vec::new(), None::<String>);
        loop {
            let search = Search { filter: Some(filter), order, after: after.as_deref(), limit };
            let page = find_page(
                &self.store.snapshot().unwrap(),
                &self.business_object,
                &search,
                &bounds(),
            )
            .unwrap();
            assert!(page.found.len() == limit || !page.more);
            after = page.found.last().map(|found| found.cursor.clone());
            found.extend(page.found.into_iter().map(|found| found.uri.into_string()));
            if !page.more {
                return found;
            }
        }
    }

    /// Returns the objects that refer to a URI, each after the path of its field.
    fn referrers(&self, target: &str) -> Vec<(String, String)> {
        let page = find_referrers(
            &self.store.snapshot().unwrap(),
            &[Arc::new(self.business_object.clone())],
            &NamedNode::new_unchecked(target),
            ReferenceSearch::all(None, 10),
            &bounds(),
        );
        let found = page.unwrap().found.into_iter();
        found.map(|one| (one.path, one.uri.into_string())).collect()
    }

    /// Returns a summary of the objects that pass a filter.
    fn read_summary(
        &self,
        read: &dyn Read,
        filter: Option<&Filter>,
        groups: &[&str],
        measures: &str,
    ) -> Result<Summary, GatewayError> {
        let request = SummaryRequest {
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            measures: Some(measures.to_owned()),
            timezone: None,
        };
        let plan = SummaryPlan::new(&self.business_object, &request).unwrap();
        summarize(read, &self.business_object, filter, &plan, &bounds())
    }
}

/// Returns pairs of texts as a search has them.
fn to_texts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
}

fn bounds() -> SearchBudget {
    SearchBudget::new(1_000_000, Duration::from_mins(1))
}

fn objects() -> impl Strategy<Value = Value> {
    let link = || "urn:l:[0-3]";
    let some = |value: BoxedStrategy<Value>| proptest::option::of(value);
    let inner = (
        0..6_u8,
        some((0..4_i64).prop_map(Value::from).boxed()),
        some(link().prop_map(Value::from).boxed()),
    )
        .prop_map(|(id, n, link)| json!({"uri": format!("urn:i:{id}"), "n": n, "link": link}));
    let object = (
        some(
            prop_oneof![
                Just(json!(1)),
                Just(json!(1.0)),
                Just(json!(-2)),
                Just(json!(10)),
                Just(json!(9.5))
            ]
            .boxed(),
        ),
        some("[abAB]{1,2}".prop_map(Value::from).boxed()),
        some(link().prop_map(Value::from).boxed()),
        vec(link().prop_map(Value::from), 0..3),
        vec(inner, 0..3),
    );
    vec(object, 1..12).prop_map(|objects| {
        // An object that is nested in several objects is the same everywhere.
        let mut known = std::collections::BTreeMap::new();
        let objects = objects.into_iter().enumerate().map(|(i, (n, s, link, many, inner))| {
            // An object needs at least one value.
            let is_empty = n.is_none() && s.is_none() && link.is_none() && many.is_empty() && inner.is_empty();
            let n = if is_empty { Some(json!(0)) } else { n };
            let inner: Vec<Value> = inner
                .into_iter()
                .map(|one| known.entry(one["uri"].to_string()).or_insert(one).clone())
                .collect();
            json!({"uri": format!("urn:r:{i:02}"), "n": n, "s": s, "link": link, "many": many, "inner": inner})
        });
        Value::Array(objects.collect())
    })
}

fn test(texts: bool) -> BoxedStrategy<ValueTest> {
    let numbers =
        || prop_oneof![Just("1.00".to_owned()), Just("-2".to_owned()), Just("9".to_owned())];
    if texts {
        prop_oneof![
            vec(prop_oneof!["[abAB]{1,2}", "urn:l:[0-3]"], 0..3).prop_map(ValueTest::In),
            "[abAB0-3]".prop_map(ValueTest::Contains),
            "[abAB]".prop_map(ValueTest::ContainsAnyCase),
            "[abAB]{0,2}".prop_map(ValueTest::StartsWith),
            Just(ValueTest::Exists),
        ]
        .boxed()
    } else {
        prop_oneof![
            vec(numbers(), 0..3).prop_map(ValueTest::In),
            numbers().prop_map(ValueTest::Before),
            numbers().prop_map(ValueTest::After),
            numbers().prop_map(ValueTest::AtLeast),
            numbers().prop_map(ValueTest::AtMost),
            Just(ValueTest::Exists),
        ]
        .boxed()
    }
}

fn filter() -> impl Strategy<Value = Filter> {
    let inner = prop_oneof![
        test(false).prop_map(|test| Filter::Field { field: 1, test }),
        test(true).prop_map(|test| Filter::Field { field: 2, test }),
        vec("urn:i:[0-5]", 0..3).prop_map(|uris| Filter::Uri(ValueTest::In(uris))),
        Just(Filter::All(Vec::new())),
    ];
    let leaf = prop_oneof![
        test(false).prop_map(|test| Filter::Field { field: 1, test }),
        (2..5_usize, test(true)).prop_map(|(field, test)| Filter::Field { field, test }),
        vec("urn:r:0[0-9]", 0..4).prop_map(|uris| Filter::Uri(ValueTest::In(uris))),
        inner.prop_map(|filter| Filter::Nested { field: 5, filter: Box::new(filter) }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Filter::All),
            vec(inner.clone(), 0..3).prop_map(Filter::Any),
            inner.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

const ROOT: [&str; 6] = ["uri", "n", "s", "link", "many", "inner"];
const INNER: [&str; 3] = ["uri", "n", "link"];

/// Returns whether an object, as the view shows it, passes the filter.
fn passes(filter: &Filter, object: &Value, names: &[&str]) -> bool {
    let values = |name: &str| match &object[name] {
        Value::Null => Vec::new(),
        Value::Array(items) => items.clone(),
        one => vec![one.clone()],
    };
    match filter {
        Filter::All(filters) => filters.iter().all(|filter| passes(filter, object, names)),
        Filter::Any(filters) => filters.iter().any(|filter| passes(filter, object, names)),
        Filter::Not(filter) => !passes(filter, object, names),
        Filter::Uri(test) => holds(test, &object["uri"]),
        Filter::Field { field, test } => values(names[*field]).iter().any(|v| holds(test, v)),
        Filter::Text { .. } => unreachable!("the mapping has no language map"),
        Filter::Nested { field, filter } => {
            values(names[*field]).iter().any(|nested| passes(filter, nested, &INNER))
        }
    }
}

fn holds(test: &ValueTest, value: &Value) -> bool {
    let number = |text: &str| text.parse::<f64>().unwrap();
    match (test, value) {
        (ValueTest::Exists, _) => true,
        (ValueTest::In(wanted), Value::Number(n)) => {
            wanted.iter().any(|w| number(w).total_cmp(&n.as_f64().unwrap()).is_eq())
        }
        (ValueTest::In(wanted), Value::String(text)) => wanted.contains(text),
        (ValueTest::Contains(part), Value::String(text)) => text.contains(part),
        (ValueTest::ContainsAnyCase(part), Value::String(text)) => {
            text.to_lowercase().contains(&part.to_lowercase())
        }
        (ValueTest::StartsWith(prefix), Value::String(text)) => text.starts_with(prefix),
        (ValueTest::Before(limit), Value::Number(n)) => n.as_f64().unwrap() < number(limit),
        (ValueTest::After(limit), Value::Number(n)) => n.as_f64().unwrap() > number(limit),
        (ValueTest::AtLeast(limit), Value::Number(n)) => n.as_f64().unwrap() >= number(limit),
        (ValueTest::AtMost(limit), Value::Number(n)) => n.as_f64().unwrap() <= number(limit),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn search_finds_exactly_the_objects_that_pass_the_filter(
        objects in objects(),
        filters in vec(filter(), 8),
        limit in 1..5_usize,
    ) {
        let fixture = fixture_with(&objects);
        let all = fixture.all();
        for filter in filters {
            let uri = |object: &Value| object["uri"].as_str().unwrap().to_owned();
            let expected: Vec<String> =
                all.iter().filter(|object| passes(&filter, object, &ROOT)).map(uri).collect();
            let found = fixture.search(&filter, Order::default(), limit);
            prop_assert_eq!(&found, &expected, "{:?}", filter);
            let bo = &fixture.business_object;
            let counted = count_objects(&fixture.store.snapshot().unwrap(), bo, Some(&filter), &bounds()).unwrap();
            prop_assert_eq!(counted, expected.len() as u64);
            let mut reversed = expected.clone();
            reversed.reverse();
            let order = Order { field: None, descending: true };
            prop_assert_eq!(&fixture.search(&filter, order, limit), &reversed);
            for field in 1..4 {
                for descending in [false, true] {
                    let found = fixture.search(&filter, Order { field: Some(field), descending }, limit);
                    let value = |uri: &String| {
                        let object = all.iter().find(|object| object["uri"] == **uri).unwrap();
                        object[ROOT[field]].clone()
                    };
                    let mut sorted = found.clone();
                    sorted.sort();
                    prop_assert_eq!(&sorted, &expected);
                    for pair in found.windows(2) {
                        let (a, b) = (value(&pair[0]), value(&pair[1]));
                        let order = match (&a, &b) {
                            (Value::Null, Value::Null) => std::cmp::Ordering::Equal,
                            (Value::Null, _) => std::cmp::Ordering::Greater,
                            (_, Value::Null) => std::cmp::Ordering::Less,
                            (Value::Number(a), Value::Number(b)) => {
                                let order = a.as_f64().unwrap().total_cmp(&b.as_f64().unwrap());
                                if descending { order.reverse() } else { order }
                            }
                            (a, b) => {
                                let order = a.as_str().cmp(&b.as_str());
                                if descending { order.reverse() } else { order }
                            }
                        };
                        prop_assert!(order.then(pair[0].cmp(&pair[1])).is_lt(), "{:?} {:?}", a, b);
                    }
                }
            }
        }
    }

    #[test]
    fn referrers_are_exactly_the_objects_that_hold_the_uri(objects in objects(), limit in 1..4_usize) {
        let fixture = fixture_with(&objects);
        let all = fixture.all();
        let bos = [Arc::new(fixture.business_object.clone())];
        let targets = (0..4).map(|i| format!("urn:l:{i}")).chain((0..6).map(|i| format!("urn:i:{i}")));
        for target in targets {
            let mut expected = Vec::new();
            let is = |value: &Value| *value == target;
            for object in &all {
                let inner = object["inner"].as_array().unwrap();
                for (path, holds) in [
                    ("link", is(&object["link"])),
                    ("many", object["many"].as_array().unwrap().iter().any(is)),
                    ("inner", inner.iter().any(|inner| is(&inner["uri"]))),
                    ("inner.link", inner.iter().any(|inner| is(&inner["link"]))),
                ] {
                    if holds {
                        expected.push((path.to_owned(), object["uri"].as_str().unwrap().to_owned()));
                    }
                }
            }
            expected.sort();
            let (mut found, mut after) = (Vec::new(), None::<String>);
            loop {
                let uri = NamedNode::new_unchecked(&target);
                let page = find_referrers(
                    &fixture.store.snapshot().unwrap(), &bos, &uri, ReferenceSearch::all(after.as_deref(), limit), &bounds(),
                ).unwrap();
                after = page.found.last().map(|found| found.cursor.clone());
                found.extend(page.found.into_iter().map(|one| (one.path, one.uri.into_string())));
                if !page.more {
                    break;
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}

/// Creates a fixture with ordered arrays of resources and of objects, which refer to resources with the same property.
fn fixture_with_ordered_arrays() -> Fixture {
    let config = "
type: object
path: Root:.
fields:
  inner:
    type: array
    ordered: true
    path: <urn:p:inner>
    elements: {type: object, path: Inner:., fields: {link: {type: resource, path: <urn:p:many>}}}
  many: {type: array, ordered: true, path: <urn:p:many>, elements: {type: resource}}
";
    let fixture = Fixture::new(mapping::compile(config).unwrap().root);
    let objects = [
        r#"{"uri":"urn:r:1","many":["urn:l:2","urn:l:1"],"inner":[{"link":"urn:l:1"}]}"#,
        r#"{"uri":"urn:r:2","many":["urn:l:2"],"inner":[{"link":"urn:l:3"},{"link":"urn:l:1"}]}"#,
    ];
    fixture.send(Mode::Add, &objects.join(",")).unwrap();
    fixture
}

#[test]
fn filters_find_values_in_ordered_arrays() {
    let fixture = fixture_with_ordered_arrays();
    let shape = &fixture.business_object.mapping.root;
    for (path, value, expected) in [
        (&["many"][..], "urn:l:1", &["urn:r:1"][..]),
        (&["many"], "urn:l:2", &["urn:r:1", "urn:r:2"]),
        (&["inner", "link"], "urn:l:3", &["urn:r:2"]),
    ] {
        let test = ValueTest::In(vec![value.to_owned()]);
        let filter = Filter::for_field(shape, path, test).unwrap();
        assert_eq!(fixture.search(&filter, Order::default(), 10), expected, "{path:?} {value}");
    }
}

#[test]
fn referrers_have_the_uri_in_an_ordered_array() {
    let fixture = fixture_with_ordered_arrays();
    for (target, expected) in [
        (
            "urn:l:1",
            &[("inner.link", "urn:r:1"), ("inner.link", "urn:r:2"), ("many", "urn:r:1")][..],
        ),
        ("urn:l:2", &[("many", "urn:r:1"), ("many", "urn:r:2")]),
        ("urn:l:3", &[("inner.link", "urn:r:2")]),
    ] {
        assert_eq!(fixture.referrers(target), to_texts(expected), "{target}");
    }
}

#[test]
fn all_subjects_of_each_value_are_collected() {
    // Those of the second value are on two pages, and come before that of the first one.
    let linked = |uri: &str, link: &str| json!({"uri": uri, "link": link});
    let mut objects = vec![linked("urn:o:9", "urn:a")];
    objects.extend(["urn:o:1", "urn:o:2", "urn:o:3"].map(|uri| linked(uri, "urn:b")));
    let fixture = fixture_with(&Value::from(objects));
    let (snapshot, link) =
        (fixture.store.snapshot().unwrap(), NamedNode::new_unchecked("urn:p:link"));
    let values = ["urn:a".to_owned(), "urn:b".to_owned()].into();
    let found = clue::find_subjects_linking_to(&snapshot, &bounds(), &link, &values);
    assert_eq!(found.unwrap().unwrap().len(), 4);
}

#[test]
fn errors_name_what_does_not_fit() {
    let fixture = fixture_with(&json!([{"uri": "urn:r:1", "n": 1}, {"uri": "urn:r:2", "s": "x"}]));
    let shape = &fixture.business_object.mapping.root;
    let fails = |search: &Search<'_>, bounds: &SearchBudget| {
        find_page(&fixture.store.snapshot().unwrap(), &fixture.business_object, search, bounds)
            .unwrap_err()
    };
    let number = Filter::for_field(shape, &["n"], ValueTest::Before("x".into())).unwrap();
    let search = |filter| Search { filter: Some(filter), limit: 1, ..Search::default() };
    assert_eq!(fails(&search(&number), &bounds()).class, ErrorClass::Invalid);
    let text = Filter::for_field(shape, &["s"], ValueTest::After("x".into())).unwrap();
    assert!(fails(&search(&text), &bounds()).detail.contains("neither numbers nor dates"));
    for path in [&["no"][..], &["inner", "no"], &["n", "no"], &[]] {
        assert_eq!(
            Filter::for_field(shape, path, ValueTest::Exists).unwrap_err().class,
            ErrorClass::Invalid,
            "{path:?}"
        );
    }
    assert!(Order::by_field(shape, "inner", false).is_err());
    assert!(Order::by_field(shape, "many", false).is_err());
    assert_eq!(
        Order::by_field(shape, "uri", true).unwrap(),
        Order { field: None, descending: true }
    );
    let foreign = Search { after: Some("????"), limit: 1, ..Search::default() };
    assert_eq!(fails(&foreign, &bounds()).class, ErrorClass::Malformed);
    let scan = Filter::for_field(shape, &["s"], ValueTest::Contains("y".into())).unwrap();
    let few = SearchBudget::new(1, Duration::from_mins(1));
    assert_eq!(fails(&search(&scan), &few).class, ErrorClass::TooLarge);
    let late = SearchBudget::new(1_000, Duration::ZERO);
    assert!(fails(&search(&scan), &late).detail.contains("given up after 0 ms"));
    // A test of a field with nested objects tests their URIs.
    let nested =
        Filter::for_field(shape, &["inner"], ValueTest::In(vec!["urn:i:1".into()])).unwrap();
    assert_eq!(
        nested,
        Filter::for_field(shape, &["inner", "uri"], ValueTest::In(vec!["urn:i:1".into()])).unwrap()
    );
}

#[test]
fn dates_are_compared_by_their_moment() {
    use penstock_rdf::compare::ValueOrder;
    let key = |text: &str| ValueOrder::DateTime.sort_key(text);
    assert_eq!(key("2024-01-01T00:00:00Z"), key("2024-01-01T01:00:00+01:00"));
    assert_eq!(key("2024-01-01T00:00:00"), key("2024-01-01T00:00:00Z"));
    assert!(key("2024-01-01T00:30:00+01:00") < key("2023-12-31T23:45:00Z"));
    assert!(key("9999-01-01T00:00:00Z") < key("no date"));
    // A stored date has a place in the order, but a filter needs a time.
    assert_eq!(key("2024-01-01"), key("2024-01-01T00:00:00Z"));
    assert!(!ValueOrder::DateTime.can_parse("2024-01-01"));
    let date = |text: &str| ValueOrder::Date.sort_key(text);
    assert!(date("2024-01-01+01:00") < date("2024-01-01"));
    assert!(date("2024-01-01") < date("2024-01-02+14:00"));
}
