//! Which members of maps a search knows: those that the view shows.
use super::*;

#[test]
fn filters_name_the_members_of_maps() {
    let config = "
type: object
path: Pump:.
fields:
  sensors:
    type: map
    path: <urn:sensor>/Sensor:.
    key: {path: <urn:code>}
    elements: {type: object, fields: {value: {type: number, path: <urn:value>}}}
  levels: {type: map, path: <urn:level>/Level:., key: {path: <urn:number>, type: integer}, elements: {type: number, path: <urn:value>}}
";
    let fixture = Fixture::new(mapping::compile(config).unwrap().root);
    let objects = [
        r#"{"uri":"urn:p:1","sensors":{"T1":{"value":1},"a.b":{"value":5}},"levels":{"1":1}}"#,
        r#"{"uri":"urn:p:2","sensors":{"T1":{"value":3}},"levels":{"2":1}}"#,
    ];
    fixture.send(Mode::Add, &objects.join(",")).unwrap();
    let find = |path: &[&str], test: ValueTest| -> Vec<String> {
        let filter = Filter::for_field(&fixture.business_object.mapping.root, path, test).unwrap();
        fixture.search(&filter, Order::default(), 10)
    };
    let over_two = || ValueTest::After("2".to_owned());
    assert_eq!(find(&["sensors", "T1", "value"], over_two()), ["urn:p:2"]);
    assert_eq!(find(&["sensors", ANY_MEMBER, "value"], over_two()), ["urn:p:1", "urn:p:2"]);
    assert_eq!(find(&["sensors", "a.b"], ValueTest::Exists), ["urn:p:1"]);
    let is_two = ValueTest::In(vec!["2".to_owned()]);
    assert_eq!(find(&["levels", mapping::MEMBER_KEY], is_two), ["urn:p:2"]);
    assert_eq!(find(&["levels", "1"], ValueTest::Exists), ["urn:p:1"]);
}

/// Creates a fixture with two objects whose views leave out members of maps. `urn:w` has no value, `urn:x` the name of another
/// one, and `urn:y` no name. Of the members that are maps, `urn:plan:1` has only one without a value, and `urn:plan:3` itself.
fn fixture_with_hidden_members(value_index: bool) -> Fixture {
    let config = "
type: object
path: Pump:.
fields:
  levels: {type: map, path: <urn:level>/Level:., key: {path: <urn:code>}, elements: {type: number, path: <urn:value>}}
  plans:
    type: map
    path: <urn:plan>/Plan:.
    key: {path: <urn:code>}
    elements: {type: map, path: <urn:step>/Step:., key: {path: <urn:code>}, elements: {type: number, path: <urn:value>}}
";
    let root = mapping::compile(config).unwrap().root;
    let options = Options { value_index, ..Options::default() };
    let fixture = Fixture::with_options(root, Generator::Uuid, options);
    fixture.send(Mode::Add, r#"{"uri":"urn:p","levels":{"A":1}}"#).unwrap();
    for (subject, link, member, namespace) in [
        ("urn:p", "urn:level", "urn:w", "Pump"),
        ("urn:p", "urn:level", "urn:x", "Pump"),
        ("urn:p", "urn:level", "urn:y", "Pump"),
        ("urn:p", "urn:level", "urn:z", "Pump"),
        ("urn:q", "urn:level", "urn:w", "Pump"),
        ("urn:p", "urn:plan", "urn:plan:1", "Pump"),
        ("urn:p", "urn:plan", "urn:plan:2", "Pump"),
        ("urn:p", "urn:plan", "urn:plan:3", "Pump"),
        ("urn:plan:1", "urn:step", "urn:step:1", "Plan"),
        ("urn:plan:2", "urn:step", "urn:step:2", "Plan"),
        ("urn:plan:3", "urn:step", "urn:plan:3", "Plan"),
    ] {
        let member = NamedNode::new_unchecked(member);
        insert_quad(&fixture.store, subject, link, member, &format!("http://x/{namespace}/"));
    }
    for (member, namespace, name, value) in [
        ("urn:w", "Level", Some("C"), None),
        ("urn:x", "Level", Some("A"), Some(7)),
        ("urn:y", "Level", None, Some(8)),
        ("urn:z", "Level", Some("B"), Some(9)),
        ("urn:plan:1", "Plan", Some("P"), None),
        ("urn:plan:2", "Plan", Some("Q"), None),
        ("urn:plan:3", "Plan", Some("R"), None),
        ("urn:step:1", "Step", Some("S"), None),
        ("urn:step:2", "Step", Some("S"), Some(5)),
        ("urn:plan:3", "Step", Some("R"), Some(6)),
    ] {
        let graph = format!("http://x/{namespace}/");
        if let Some(name) = name {
            insert_quad(&fixture.store, member, "urn:code", Literal::from(name), &graph);
        }
        if let Some(value) = value {
            insert_quad(&fixture.store, member, "urn:value", Literal::from(value), &graph);
        }
    }
    fixture
}

#[test]
fn filters_find_only_the_members_that_a_map_shows() {
    for value_index in [false, true] {
        let fixture = fixture_with_hidden_members(value_index);
        let (shown, left_out) = fixture.view_with_warnings("urn:p");
        assert_eq!(shown, r#"{"uri":"urn:p","levels":{"A":1,"B":9},"plans":{"Q":{"S":5}}}"#);
        assert_eq!(left_out.len(), 5, "{left_out:?}");
        assert_eq!(fixture.view_with_warnings("urn:q").0, r#"{"uri":"urn:q"}"#);
        let is = |text: &str| ValueTest::In(vec![text.to_owned()]);
        for (path, test, is_shown) in [
            (&["levels", "A"][..], is("1"), true),
            (&["levels", "A"], is("7"), false),
            (&["levels", ANY_MEMBER], is("7"), false),
            (&["levels", ANY_MEMBER], is("8"), false),
            (&["levels", "B"], is("9"), true),
            (&["levels", ANY_MEMBER], is("9"), true),
            (&["levels", mapping::MEMBER_KEY], is("B"), true),
            (&["levels", mapping::MEMBER_KEY], is("C"), false),
            (&["levels"], ValueTest::Exists, true),
            (&["plans", mapping::MEMBER_KEY], is("P"), false),
            (&["plans", mapping::MEMBER_KEY], is("Q"), true),
            (&["plans", mapping::MEMBER_KEY], is("R"), false),
            (&["plans", "Q"], ValueTest::Exists, true),
            (&["plans", "R"], ValueTest::Exists, false),
        ] {
            let shape = &fixture.business_object.mapping.root;
            let filter = Filter::for_field(shape, path, test).unwrap();
            let found = fixture.search(&filter, Order::default(), 10);
            let expected: &[&str] = if is_shown { &["urn:p"] } else { &[] };
            assert_eq!(found, expected, "{filter:?} {value_index}");
        }
        // What has no value has no other value either.
        let other = Filter::Not(Box::new(Filter::Field { field: 0, test: is("9") }));
        let other = Filter::Nested { field: 0, filter: Box::new(other) };
        assert_eq!(fixture.search(&other, Order::default(), 10), ["urn:p"], "{value_index}");
    }
}

#[test]
fn only_members_that_a_map_can_show_are_references() {
    let fixture = fixture_with_hidden_members(false);
    for (target, expected) in [
        ("urn:z", &[("levels", "urn:p")][..]),
        ("urn:w", &[]),
        ("urn:y", &[]),
        ("urn:plan:1", &[]),
        ("urn:plan:2", &[("plans", "urn:p")]),
        ("urn:step:1", &[]),
        ("urn:step:2", &[("plans.@value", "urn:p")]),
    ] {
        assert_eq!(fixture.referrers(target), to_texts(expected), "{target}");
    }
}

#[test]
fn counts_have_only_the_members_that_a_map_shows() {
    let fixture = fixture_with_hidden_members(false);
    let (read, business_object) = (fixture.store.read(), &fixture.business_object);
    let fields = ["levels.@key", "levels.*", "plans.@key", "plans.*.@key"].map(str::to_owned);
    let facets = count_facets(&read, business_object, None, &fields, &bounds()).unwrap();
    let facets: Vec<_> = facets.into_iter().map(|facet| (facet.content, facet.without)).collect();
    let names = |names: &[&str]| {
        let names = names.iter().map(|name| FacetValue { text: (*name).to_owned(), count: 1 });
        FacetContent::Values(names.collect(), 0)
    };
    let range = FacetContent::Range("1".to_owned(), "9".to_owned());
    let expected = [(names(&["A", "B"]), 1), (range, 1), (names(&["Q"]), 1), (names(&["S"]), 1)];
    assert_eq!(facets, expected);
    let summary = fixture.read_summary(&read, None, &["levels.@key"], "sum(levels.*)").unwrap();
    let rows = summary.rows.iter();
    let rows = rows.map(|row| (row.group[0].as_str(), row.count, row.measures[0].as_deref()));
    let expected = [("\"A\"", 1, Some("1")), ("\"B\"", 1, Some("9")), ("null", 1, None)];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    for (field, count) in [("levels.*", 2), ("levels.A", 1)] {
        let numbers = count_distribution(&read, business_object, None, field, &bounds()).unwrap();
        let counts = numbers.ranges.iter().map(|range| range.count);
        assert_eq!((counts.sum::<u64>(), numbers.without), (count, 1), "{field}");
    }
    let names = suggest_values(&read, business_object, ("levels.@key", ""), 9, &bounds());
    assert_eq!(names.unwrap(), ["A", "B"]);
}
