//! Tests of summaries: examples, and a comparison with the views of all objects.
use super::*;
use crate::ingest::Mode;
use crate::search::ValueTest;
use crate::testing::Fixture;
use penstock_base::error::ErrorClass;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const CONFIG: &str = "
type: object
path: Root:.
fields:
  uri: {type: id}
  n: {type: number, path: <urn:p:n>}
  s: {type: string, path: <urn:p:s>}
  on: {type: boolean, path: <urn:p:on>}
  at: {type: dateTime, path: <urn:p:at>}
  day: {type: date, path: <urn:p:day>}
  code: {type: integer, path: <urn:p:code>, values: [1, 2]}
  any: {type: scalar, path: <urn:p:any>}
  raw: {type: json, path: <urn:p:raw>}
  tags: {type: array, path: <urn:p:tag>}
  steps: {type: array, ordered: true, path: <urn:p:step>, elements: {type: integer}}
  name: {type: languageMap, path: <urn:p:name>}
  site: {type: object, path: '<urn:p:site>/Site:.', fields: {name: {type: string, path: <urn:p:s>}}}
  readings:
    type: array
    path: <urn:p:reading>
    elements:
      type: object
      path: Reading:.
      fields:
        place: {type: string, path: <urn:p:place>}
        value: {type: number, path: <urn:p:value>}
        at: {type: dateTime, path: <urn:p:at>}
  sensors:
    type: map
    path: '<urn:p:sensor>/Sensor:.'
    key: {path: <urn:p:key>}
    elements: {type: number, path: <urn:p:value>}
";

fn fixture_with(objects: &Value) -> Fixture {
    let fixture = empty_fixture();
    for object in objects.as_array().unwrap() {
        fixture.send(Mode::Add, &object.to_string()).unwrap();
    }
    fixture
}

fn empty_fixture() -> Fixture {
    Fixture::with_definition(&json!({"name": "Root", "config": CONFIG}))
}

fn bounds() -> SearchBudget {
    SearchBudget::new(1_000_000, Duration::from_mins(1))
}

impl Fixture {
    fn try_summarize(
        &self,
        request: &SummaryRequest,
        filter: Option<&Filter>,
        bounds: &SearchBudget,
    ) -> Result<Summary, GatewayError> {
        let plan = SummaryPlan::new(&self.business_object, request)?;
        summarize(&self.store.read(), &self.business_object, filter, &plan, bounds)
    }

    /// Returns the rows as JSON: the groups, the count, and the measures.
    fn summarize(&self, groups: &[&str], measures: &str, timezone: &str) -> Value {
        let request = request(groups, measures, timezone);
        let summary = self.try_summarize(&request, None, &bounds()).unwrap();
        assert!(summary.is_complete);
        let parse = |text: &String| serde_json::from_str::<Value>(text).unwrap();
        let rows = summary.rows.iter().map(|row| {
            let groups = row.group.iter().map(parse);
            let measures = row.measures.iter().map(|one| one.as_ref().map_or(Value::Null, parse));
            groups.chain([json!(row.count)]).chain(measures).collect::<Value>()
        });
        rows.collect()
    }

    fn refuse(&self, groups: &[&str], measures: &str) -> String {
        let error = self.try_summarize(&request(groups, measures, "UTC"), None, &bounds());
        let error = error.unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        error.detail
    }
}

fn request(groups: &[&str], measures: &str, timezone: &str) -> SummaryRequest {
    SummaryRequest {
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        measures: Some(measures.to_owned()),
        timezone: Some(timezone.to_owned()),
    }
}

#[test]
fn the_time_ends_within_an_object_with_many_values() {
    let readings: Vec<Value> =
        (0..=MAX_UNCHECKED_VALUES).map(|number| json!({"place": "P", "value": number})).collect();
    let fixture = fixture_with(&json!([{"uri": "urn:r:1", "readings": readings}]));
    let (read, business_object) = (fixture.store.read(), &fixture.business_object);
    let over = SearchBudget::new(u64::MAX, Duration::ZERO);
    for groups in [&["readings.place"][..], &[]] {
        let plan = request(groups, "sum(readings.value)", "UTC");
        let plan = SummaryPlan::new(business_object, &plan).unwrap();
        let mut groups = Groups::new(&plan, &over);
        let added = plan.tree.for_each_object(
            &read,
            business_object,
            None,
            &bounds(),
            &mut |object, uri| groups.add_object(object, uri.as_str()),
        );
        assert_eq!(added.unwrap_err().class, ErrorClass::Invalid);
    }
}

#[test]
fn groups_have_their_numbers() {
    let fixture = fixture_with(&json!([
        {"uri": "urn:r:1", "n": 1.5, "s": "a", "on": true, "tags": ["x", "y"], "code": 2, "any": 1},
        {"uri": "urn:r:2", "n": 2, "s": "a", "on": false, "tags": ["x"], "any": "1"},
        {"uri": "urn:r:3", "n": 1.5, "s": "b", "tags": [], "code": 2, "any": true},
        {"uri": "urn:r:4", "s": "a \"q\"", "site": {"name": "North"}, "steps": [1, 1], "name": {"en": "P", "de": "Q"}},
    ]));
    let run = |groups: &[&str], measures: &str| fixture.summarize(groups, measures, "UTC");
    assert_eq!(run(&[], "count"), json!([[4]]));
    assert_eq!(
        run(&["s"], "count,min(n),max(n),avg(n),sum(n)").to_string(),
        r#"[["a",2,1.5,2,1.75,3.5],["a \"q\"",1,null,null,null,null],["b",1,1.5,1.5,1.5,1.5]]"#
    );
    // Equal numbers are one group, and what is no value is null.
    assert_eq!(run(&["n"], "count").to_string(), "[[1.5,2],[2,1],[null,1]]");
    assert_eq!(run(&["on"], "count"), json!([[null, 2], [false, 1], [true, 1]]));
    assert_eq!(run(&["code"], "count,sum(code)"), json!([[2, 2, 4], [null, 2, null]]));
    assert_eq!(run(&["any"], "count"), json!([["1", 1], [1, 1], [true, 1], [null, 1]]));
    // An array counts in each of its values, and once in each.
    assert_eq!(run(&["tags"], "sum(n)"), json!([["x", 2, 3.5], [null, 2, 1.5], ["y", 1, 1.5]]));
    assert_eq!(run(&["steps"], "sum(steps)"), json!([[null, 3, null], [1, 1, 2]]));
    assert_eq!(run(&["site.name"], "count"), json!([[null, 3], ["North", 1]]));
    assert_eq!(run(&["name.de"], "count"), json!([[null, 3], ["Q", 1]]));
    assert_eq!(run(&["name"], "count"), json!([[null, 3], ["P", 1], ["Q", 1]]));
    assert_eq!(run(&["s", "tags"], "count").as_array().unwrap().len(), 4);
    assert_eq!(run(&["uri"], "count")[0], json!(["urn:r:1", 1]));
    let filter = Filter::for_field(
        &fixture.business_object.mapping.root,
        &["s"],
        ValueTest::In(vec!["b".to_owned()]),
    );
    let summary =
        fixture.try_summarize(&request(&[], "sum(n)", "UTC"), Some(&filter.unwrap()), &bounds());
    let row = SummaryRow { group: vec![], count: 1, measures: vec![Some("1.5".to_owned())] };
    assert_eq!(
        summary.unwrap(),
        Summary { rows: vec![row], is_complete: true, has_offsets: false }
    );
}

#[test]
fn nothing_has_one_row_without_groups_and_none_with_them() {
    let fixture = empty_fixture();
    assert_eq!(fixture.summarize(&[], "sum(n)", "UTC"), json!([[0, null]]));
    assert_eq!(fixture.summarize(&["s"], "count", "UTC"), json!([]));
}

#[test]
fn fields_below_one_array_are_of_the_same_element() {
    let fixture = fixture_with(&json!([
        {"uri": "urn:r:1", "n": 7, "readings": [
            {"uri": "urn:i:1", "place": "in", "value": 1, "at": "2024-01-01T10:00:00Z"},
            {"uri": "urn:i:2", "place": "out", "value": 10, "at": "2024-01-01T10:30:00Z"},
            {"uri": "urn:i:3", "place": "in", "value": 100, "at": "2024-01-01T11:00:00Z"}]},
        {"uri": "urn:r:2", "n": 8, "readings": [{"uri": "urn:i:4", "value": 1000}], "sensors": {"a": 1, "b": 2}},
        {"uri": "urn:r:3", "n": 9, "sensors": {"a": 4}},
    ]));
    let run = |groups: &[&str], measures: &str| fixture.summarize(groups, measures, "UTC");
    assert_eq!(
        run(&["readings.place"], "sum(readings.value),sum(n)"),
        json!([[null, 2, 1000, 17], ["in", 1, 101, 7], ["out", 1, 10, 7]])
    );
    assert_eq!(
        run(&["readings.at.hour", "readings.place"], "sum(readings.value)"),
        json!([
            ["2024-01-01T10:00+00:00", "in", 1, 1],
            ["2024-01-01T10:00+00:00", "out", 1, 10],
            ["2024-01-01T11:00+00:00", "in", 1, 100],
            [null, null, 2, 1000],
        ])
    );
    assert_eq!(run(&[], "max(readings.at)"), json!([[3, "2024-01-01T11:00:00Z"]]));
    assert_eq!(
        run(&["sensors.@key"], "sum(sensors.*)"),
        json!([["a", 2, 5], ["b", 1, 2], [null, 1, null]])
    );
    assert_eq!(run(&[], "sum(sensors.a),sum(sensors.*)"), json!([[3, 5, 7]]));
}

#[test]
fn times_are_in_order_and_in_their_zone() {
    let fixture = fixture_with(&json!([
        {"uri": "urn:r:1", "at": "2024-10-27T01:30:00Z", "day": "2024-10-27"},
        {"uri": "urn:r:2", "at": "2024-10-27T00:30:00Z", "day": "2024-10-28"},
        {"uri": "urn:r:3", "at": "2024-10-27T01:45:00Z"},
        {"uri": "urn:r:4", "n": 1},
    ]));
    assert_eq!(
        fixture.summarize(&["at.hour"], "min(at)", "Europe/Berlin"),
        json!([
            ["2024-10-27T02:00+02:00", 1, "2024-10-27T00:30:00Z"],
            ["2024-10-27T02:00+01:00", 2, "2024-10-27T01:30:00Z"],
            [null, 1, null],
        ])
    );
    let week = json!([["2024-W43", 1], ["2024-W44", 1], [null, 2]]);
    assert_eq!(fixture.summarize(&["day.week"], "count", "Pacific/Apia"), week);
    assert_eq!(fixture.summarize(&["at.year"], "count", "UTC"), json!([["2024", 3], [null, 1]]));
    // Days as they are shown are in order too.
    let days = json!([["2024-10-27", 1], ["2024-10-28", 1], [null, 2]]);
    assert_eq!(fixture.summarize(&["day"], "count", "UTC"), days);
    for (day, has_offsets) in [("2024-10-28Z", false), ("2024-10-28+13:00", true)] {
        fixture
            .send(Mode::Add, &json!({"uri": format!("urn:r:{day}"), "day": day}).to_string())
            .unwrap();
        let summary =
            fixture.try_summarize(&request(&["day.day"], "count", "UTC"), None, &bounds());
        assert_eq!(summary.unwrap().has_offsets, has_offsets);
    }
}

#[test]
fn sums_of_long_numbers_are_exact() {
    let fixture =
        fixture_with(&json!([{"uri": "urn:r:1", "n": 0.1}, {"uri": "urn:r:2", "n": 0.2}]));
    fixture
        .send(Mode::Add, r#"{"uri": "urn:r:3", "n": 100000000000000000000000000000.30}"#)
        .unwrap();
    assert_eq!(
        fixture.summarize(&[], "sum(n),avg(n)", "UTC").to_string(),
        "[[3,100000000000000000000000000000.6,33333333333333333333333333333.533333333333333333]]"
    );
    fixture.send(Mode::Add, r#"{"uri": "urn:r:4", "n": 1e2000}"#).unwrap();
    let error = fixture.refuse(&[], "sum(n)");
    assert!(error.starts_with("sum(n) has a value with more than 1000 digits"), "{error}");
    let greatest = fixture.try_summarize(&request(&[], "max(n)", "UTC"), None, &bounds()).unwrap();
    assert_eq!(greatest.rows[0].measures, [Some("1e2000".to_owned())]);
}

#[test]
fn what_cannot_be_summarized_is_refused() {
    let fixture = fixture_with(&json!([{"uri": "urn:r:1", "n": 1}]));
    for (groups, measures, words) in [
        (&["none"][..], "count", "no field"),
        (&["s.day"], "count", "has no dates or times"),
        (&["day.hour"], "count", "has only dates"),
        (&["day.quarter"], "count", "the units are day, week, month, year"),
        (&["n.quarter"], "count", "no field"),
        (&["raw"], "count", "of the type json"),
        (&["sensors"], "count", "is a map"),
        (&["n", "s", "on"], "count", "at most 2"),
        (&[], "median(n)", "there is no measure"),
        (&[], "sum(s)", "needs numbers"),
        (&[], "min(s)", "needs numbers, dates or times"),
        (&[], "sum(none)", "no field"),
        (&[], "", "there is no measure"),
    ] {
        let error = fixture.refuse(groups, measures);
        assert!(error.contains(words), "{error}");
    }
    let wrong = fixture.try_summarize(&request(&[], "count", "Europe/Berln"), None, &bounds());
    assert!(wrong.unwrap_err().detail.contains("did you mean `Europe/Berlin`"));
}

#[test]
fn combinations_of_long_values_are_refused() {
    let tags: Vec<String> = (0..10).map(|tag| format!("{tag}{}", "x".repeat(30_000))).collect();
    let steps: Vec<u32> = (0..100).collect();
    let fixture = fixture_with(&json!([{"uri": "urn:r:1", "tags": tags, "steps": steps}]));
    let error = fixture.refuse(&["tags", "steps"], "count");
    assert!(error.contains("or too long ones"), "{error}");
}

#[test]
fn limits_refuse_and_rows_are_the_largest_groups() {
    let fixture = empty_fixture();
    let objects = (0..1_500).map(|number| {
        // The groups 0 to 9 have more objects than the others.
        let group = if number < 1_400 { number } else { number % 10 };
        format!(r#"{{"uri": "urn:r:{number:04}", "n": {number}, "s": "g{group:04}"}}"#)
    });
    let objects: Vec<String> = objects.collect();
    for some in objects.chunks(500) {
        fixture.send(Mode::Add, &some.join(",")).unwrap();
    }
    let summary = fixture.try_summarize(&request(&["s"], "count", "UTC"), None, &bounds()).unwrap();
    assert_eq!((summary.rows.len(), summary.is_complete), (1_000, false));
    assert!(summary.rows[..10].iter().all(|row| row.count == 11));
    assert_eq!(summary.rows[10].group, ["\"g0010\""]);
    let few = SearchBudget::new(1_499, Duration::from_mins(1));
    let error = fixture.try_summarize(&request(&[], "count", "UTC"), None, &few).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid, "{error}");
    // As many objects as the limit are allowed.
    let enough = SearchBudget::new(1_500, Duration::from_mins(1));
    fixture.try_summarize(&request(&["s"], "sum(n)", "UTC"), None, &enough).unwrap();
}

/// Objects with few different values, so that groups have several.
fn objects() -> impl Strategy<Value = Vec<Value>> {
    let some = |value: BoxedStrategy<Value>| proptest::option::of(value);
    let number = || (-20..20_i64).prop_map(|n| json!(n)).boxed();
    let reading = (some("[ab]".prop_map(Value::from).boxed()), some(number()))
        .prop_map(|(place, value)| json!({"place": place, "value": value}));
    let object = (
        some("[ab]".prop_map(Value::from).boxed()),
        some(number()),
        vec(reading, 0..4),
        vec("[xyz]", 0..3),
    );
    vec(object, 1..12).prop_map(|objects| {
        let objects = objects.into_iter().enumerate().map(|(index, (s, n, mut readings, tags))| {
            for (number, reading) in readings.iter_mut().enumerate() {
                reading["uri"] = json!(format!("urn:i:{index}:{number}"));
                if reading["place"].is_null() && reading["value"].is_null() {
                    reading["value"] = json!(0);
                }
            }
            let tags: BTreeSet<String> = tags.into_iter().collect();
            let n = if s.is_none() && readings.is_empty() && tags.is_empty() { json!(0) } else { json!(n) };
            json!({"uri": format!("urn:r:{index:02}"), "s": s, "n": n, "readings": readings, "tags": tags})
        });
        objects.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn summaries_equal_those_of_the_objects_themselves(objects in objects()) {
        let fixture = fixture_with(&json!(objects));
        let one = |value: &Value| if value.is_null() { vec![json!(null)] } else { vec![value.clone()] };
        let many = |values: &Value| {
            let values = values.as_array().unwrap();
            if values.is_empty() { vec![json!(null)] } else { values.clone() }
        };
        // By tags and s: each object once for each tag.
        let mut expected: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        for object in &objects {
            for tag in many(&object["tags"]) {
                for s in one(&object["s"]) {
                    let row = expected.entry(format!("{tag}\n{s}")).or_default();
                    row.0 += 1;
                    row.1 += object["n"].as_i64().unwrap_or_default();
                }
            }
        }
        prop_assert_eq!(rows(&fixture, &["tags", "s"], "sum(n)"), expected);
        // By the place of readings: the values of those that are there.
        let mut expected: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        for object in &objects {
            let mut places = BTreeSet::new();
            for reading in many(&object["readings"]) {
                let key = reading["place"].to_string();
                let row = expected.entry(key.clone()).or_default();
                row.1 += reading["value"].as_i64().unwrap_or_default();
                row.0 += u64::from(places.insert(key));
            }
        }
        prop_assert_eq!(rows(&fixture, &["readings.place"], "sum(readings.value)"), expected);
    }
}

/// Returns the count and the only measure of each group.
fn rows(fixture: &Fixture, groups: &[&str], measure: &str) -> BTreeMap<String, (u64, i64)> {
    let request = request(groups, measure, "UTC");
    let summary = fixture.try_summarize(&request, None, &bounds()).unwrap();
    let rows = summary.rows.into_iter().map(|row| {
        let sum = row.measures[0].as_ref().map_or(0, |sum| sum.parse().unwrap());
        (row.group.join("\n"), (row.count, sum))
    });
    rows.collect()
}
