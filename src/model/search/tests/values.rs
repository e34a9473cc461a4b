//! Property tests: with the index of values, a search finds what it finds without it, and in whatever order it reads objects.
//! Of maps, it finds and counts what the view shows.
use super::*;
use crate::visible::VisibleObjects;
use crate::write_scope::WriteScope;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNodeRef, Quad, Term};
use penstock_store::Error;
use proptest::sample::{Index, select};
use std::collections::BTreeMap;

const CONFIG: &str = "
type: object
path: Root:.
fields:
  n: {type: number, path: <urn:p:0>}
  s: {type: string, path: <urn:p:1>}
  at: {type: dateTime, path: <urn:p:2>}
  day: {type: date, path: <urn:p:3>, absent: ['2024-01-01']}
  kind: {type: string, path: <urn:p:4>, datatype: <urn:d:kind>}
  title: {type: string, path: <urn:p:5>, language: en}
  titles: {type: languageMap, path: <urn:p:6>}
  any: {type: scalar, path: <urn:p:7>}
  state: {type: string, path: <urn:p:8>, values: {0: a, 1: ab, x: '12'}}
  flag: {type: boolean, path: <urn:p:9>}
  many: {type: array, path: <urn:p:10>, elements: {type: number}}
  shared: {type: integer, path: <urn:p:11>}
  texts: {type: string, path: <urn:p:11>}
  level: {type: string, path: <urn:p:12>, values: {0: a, 1: ab, 12: b}}
  inner:
    type: array
    path: <urn:p:inner>
    elements:
      type: object
      path: Inner:.
      fields:
        v: {type: number, path: <urn:p:0>}
        t: {type: string, path: <urn:p:1>}
";
/// The number of properties with literals.
const PROPERTIES: usize = 13;
/// The number of fields of the root.
const FIELDS: usize = 15;
const TITLES: usize = 6;
const INNER: usize = 14;

/// Returns literals that fields show as the same text, or as texts that are near.
fn literals() -> Vec<Literal> {
    let typed = |datatype: NamedNodeRef<'_>, texts: &[&str]| -> Vec<Literal> {
        texts.iter().map(|text| Literal::new_typed_literal(*text, datatype)).collect()
    };
    let long = "a long text of thirty bytes: ";
    let tagged = |text, tag| Literal::new_language_tagged_literal_unchecked(text, tag);
    [
        typed(xsd::STRING, &["", "a", "ab", "b", "é", "12", "012", "true", "2024-01-01"]),
        typed(xsd::STRING, &["2024-01-01T00:00:00Z", "INF", "0.7"]),
        typed(xsd::STRING, &[&format!("{long}1"), &format!("{long}2"), long]),
        typed(xsd::INTEGER, &["12", "012", "-3", "0", "x", "9007199254740993"]),
        typed(xsd::DECIMAL, &["12.0", "0.7", "0.69999999", "9007199254740992.5"]),
        typed(xsd::DOUBLE, &["1.2E1", "INF", "-INF", "NaN", "1e400", "0.7"]),
        // These are no numbers in XML Schema, so the index has them among the invalid literals.
        typed(xsd::DOUBLE, &["infinity", "-infinity", "nan"]),
        typed(xsd::FLOAT, &["0.7", "16777217"]),
        typed(xsd::BYTE, &["12", "300"]),
        typed(xsd::BOOLEAN, &["true", "1", "false", "yes"]),
        typed(xsd::DATE_TIME, &["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00"]),
        typed(xsd::DATE_TIME, &["2024-01-01T00:00:00", "2023-12-31T23:30:00.0000001Z"]),
        typed(xsd::DATE_TIME, &["2023-12-31T23:30:00.0000002Z", "2023-12-31T23:30:00Z", "no time"]),
        typed(xsd::DATE, &["2024-01-01", "2024-01-02+14:00", "2023-12-31"]),
        typed(NamedNodeRef::new_unchecked("urn:d:kind"), &["a", "b", "12"]),
        vec![tagged("a", "en"), tagged("b", "de"), tagged("ab", "en"), tagged("12", "de-AT")],
    ]
    .concat()
}

/// A stored value: the numbers of its object and its property, and a literal.
type StoredValue = (usize, usize, Index);

/// What is stored: the values of the objects, and those of the objects that are nested in them, with the links.
#[derive(Debug, Clone)]
struct StoredValues {
    root: Vec<StoredValue>,
    inner: Vec<StoredValue>,
    links: Vec<(usize, usize)>,
}

impl StoredValues {
    fn fixture(&self, value_index: bool) -> Fixture {
        let pool = literals();
        let node = |iri: String| NamedNode::new_unchecked(iri);
        let value = |kind: &str, (object, property, literal): &StoredValue| {
            let graph = node(format!("http://x/{kind}/"));
            let subject = node(format!("urn:{kind}:{object:02}"));
            Quad::new(subject, node(format!("urn:p:{property}")), literal.get(&pool).clone(), graph)
        };
        let mut quads: Vec<Quad> = self.root.iter().map(|one| value("Root", one)).collect();
        quads.extend(self.inner.iter().map(|one| value("Inner", one)));
        quads.extend(self.links.iter().map(|(object, nested)| {
            let nested = Term::from(node(format!("urn:Inner:{nested:02}")));
            let subject = node(format!("urn:Root:{object:02}"));
            Quad::new(subject, node("urn:p:inner".into()), nested, node("http://x/Root/".into()))
        }));
        fixture_with_quads(CONFIG, value_index, &quads)
    }
}

/// Creates a fixture with this mapping and these quads.
pub(super) fn fixture_with_quads(config: &str, value_index: bool, quads: &[Quad]) -> Fixture {
    let shape = mapping::compile(config).unwrap().root;
    let options = Options { value_index, ..Options::default() };
    let fixture = Fixture::with_options(shape, Generator::Uuid, options);
    fixture
        .store
        .transact::<_, Error>(|transaction| {
            for quad in quads {
                transaction.insert(quad.as_ref())?;
            }
            Ok(())
        })
        .unwrap();
    fixture
}

impl Fixture {
    /// Returns the URIs of all pages of this size, or why the search fails.
    fn list(
        &self,
        filter: Option<&Filter>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<String>, ErrorClass> {
        let (snapshot, business_object) = (self.store.snapshot().unwrap(), &self.business_object);
        let (mut found, mut after) = (Vec::new(), None::<String>);
        loop {
            let search = Search { filter, order, after: after.as_deref(), limit };
            let page = find_page(&snapshot, business_object, &search, &bounds());
            let page = page.map_err(|error| error.class)?;
            after = page.found.last().map(|found| found.cursor.clone());
            found.extend(page.found.into_iter().map(|found| found.uri.into_string()));
            if !page.more {
                return Ok(found);
            }
        }
    }
}

impl Fixture {
    /// Returns the facets, some summaries and a distribution.
    fn explore(&self, read: &dyn Read, filter: &Filter) -> Vec<Result<String, GatewayError>> {
        let (business_object, filter) = (&self.business_object, Some(filter));
        let mut fields = list_facet_fields(&business_object.mapping);
        fields.push("inner.v".to_owned());
        let facets = count_facets(read, business_object, filter, &fields, &bounds());
        let numbers = count_distribution(read, business_object, filter, "inner.v", &bounds());
        let summarize = |groups: &[&str], measures: &str| {
            let summary = self.read_summary(read, filter, groups, measures);
            summary.map(|summary| format!("{summary:?}"))
        };
        vec![
            facets.map(|facets| format!("{facets:?}")),
            numbers.map(|numbers| format!("{numbers:?}")),
            summarize(&[], "min(n),max(n),min(at),max(at),sum(many),avg(many)"),
            summarize(&["at.hour", "s"], "min(inner.v),max(inner.v),sum(inner.v)"),
        ]
    }
}

fn stored_values() -> impl Strategy<Value = StoredValues> {
    let values = |objects: usize, properties: usize, most: usize| {
        vec((0..objects, 0..properties, any::<Index>()), 0..most)
    };
    let links = vec((0..14_usize, 0..6_usize), 0..12);
    (values(14, PROPERTIES, 120), values(6, 2, 16), links)
        .prop_map(|(root, inner, links)| StoredValues { root, inner, links })
}

fn value_test() -> impl Strategy<Value = ValueTest> {
    (0..9_u8, vec(any::<Index>(), 1..3), 0..4_usize).prop_map(|(kind, chosen, length)| {
        let pool = literals();
        let texts: Vec<String> =
            chosen.iter().map(|one| one.get(&pool).value().to_owned()).collect();
        let text = texts[0].clone();
        match kind {
            0 | 1 => ValueTest::In(texts),
            2 => ValueTest::Contains(text.chars().take(length).collect()),
            3 => ValueTest::StartsWith(text.chars().take(length).collect()),
            4 => ValueTest::Before(text),
            5 => ValueTest::After(text),
            6 => ValueTest::AtLeast(text),
            7 => ValueTest::AtMost(text),
            _ => ValueTest::Exists,
        }
    })
}

fn value_filter() -> impl Strategy<Value = Filter> {
    let languages = ["en", "de", "de-\u{e9}12"].map(str::to_owned).to_vec();
    let language = proptest::option::of(select(languages));
    let leaf = prop_oneof![
        6 => (0..FIELDS - 1, value_test()).prop_map(|(field, test)| Filter::Field { field, test }),
        1 => (language, value_test())
            .prop_map(|(language, test)| Filter::Text { field: TITLES, language, test }),
        2 => (0..2_usize, value_test()).prop_map(|(field, test)| {
            let filter = Box::new(Filter::Field { field, test });
            Filter::Nested { field: INNER, filter }
        }),
        1 => prop_oneof![Just("urn:Root:0"), Just("urn:Root:13"), Just("urn:S"), Just("urn:")]
            .prop_map(|prefix| Filter::Uri(ValueTest::StartsWith(prefix.to_owned()))),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            2 => vec(inner.clone(), 0..3).prop_map(Filter::All),
            1 => vec(inner.clone(), 0..3).prop_map(Filter::Any),
            1 => inner.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

const MAP_CONFIG: &str = "
type: object
path: Root:.
fields:
  levels: {type: map, path: '<urn:p:level>/Level:.', key: {path: <urn:p:key>}, elements: {type: number, path: <urn:p:value>}}
";
/// Texts of the property with the names of members. The last one can be no name.
const MEMBER_NAMES: [&str; 4] = ["A", "B", "C", "."];

/// What is stored of maps: the links from objects to members, and the names and the values of members, each with the number
/// of its member. The value 0 is not a literal.
#[derive(Debug, Clone)]
struct StoredMaps {
    links: Vec<(usize, usize)>,
    names: Vec<(usize, &'static str)>,
    values: Vec<(usize, i32)>,
}

impl StoredMaps {
    fn fixture(&self, value_index: bool) -> Fixture {
        let node = |iri: &str| NamedNode::new_unchecked(iri);
        let member = |number: &usize| node(&format!("urn:Level:{number}"));
        let links = self.links.iter().map(|(object, to)| {
            let object = node(&format!("urn:Root:{object}"));
            Quad::new(object, node("urn:p:level"), member(to), node("http://x/Root/"))
        });
        let names = self.names.iter().map(|(of, name)| {
            let name = Literal::from(*name);
            Quad::new(member(of), node("urn:p:key"), name, node("http://x/Level/"))
        });
        let values = self.values.iter().map(|(of, value)| {
            let value = match *value {
                0 => Term::from(node("urn:none")),
                number => Literal::from(number).into(),
            };
            Quad::new(member(of), node("urn:p:value"), value, node("http://x/Level/"))
        });
        let quads: Vec<Quad> = links.chain(names).chain(values).collect();
        fixture_with_quads(MAP_CONFIG, value_index, &quads)
    }
}

fn stored_maps() -> impl Strategy<Value = StoredMaps> {
    let links = vec((0..4_usize, 0..6_usize), 1..12);
    let names = vec((0..6_usize, select(MEMBER_NAMES.to_vec())), 0..9);
    let values = vec((0..6_usize, 0..3_i32), 0..9);
    (links, names, values).prop_map(|(links, names, values)| StoredMaps { links, names, values })
}

fn member_filter() -> impl Strategy<Value = Filter> {
    let name = select(MEMBER_NAMES.to_vec()).prop_map(str::to_owned);
    let name_test = prop_oneof![vec(name, 1..3).prop_map(ValueTest::In), Just(ValueTest::Exists)];
    let number_test = prop_oneof![
        Just(ValueTest::In(vec!["1".to_owned()])),
        Just(ValueTest::After("1".to_owned())),
        Just(ValueTest::Exists),
    ];
    let leaf = prop_oneof![
        2 => number_test.prop_map(|test| Filter::Field { field: 0, test }),
        2 => name_test.prop_map(|test| Filter::Field { field: 1, test }),
        1 => Just(Filter::All(Vec::new())),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Filter::All),
            vec(inner.clone(), 0..3).prop_map(Filter::Any),
            inner.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

/// Returns whether a member of a map passes the filter, with its name and its value as the view shows them.
fn member_passes(filter: &Filter, name: &str, value: &Value) -> bool {
    match filter {
        Filter::All(filters) => filters.iter().all(|filter| member_passes(filter, name, value)),
        Filter::Any(filters) => filters.iter().any(|filter| member_passes(filter, name, value)),
        Filter::Not(filter) => !member_passes(filter, name, value),
        Filter::Field { field: 0, test } => holds(test, value),
        Filter::Field { field: _, test } => holds(test, &json!(name)),
        other => unreachable!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn of_maps_a_search_finds_and_counts_what_the_view_shows(
        stored in stored_maps(),
        filters in vec(member_filter(), 10),
    ) {
        for value_index in [true, false] {
            let fixture = stored.fixture(value_index);
            let views = fixture.members().into_iter().map(|uri| {
                let view: Value = serde_json::from_str(&fixture.view_with_warnings(&uri).0).unwrap();
                (uri, view["levels"].as_object().cloned().unwrap_or_default())
            });
            let views: Vec<_> = views.collect();
            for filter in &filters {
                let expected: Vec<String> = views
                    .iter()
                    .filter(|(_, map)| map.iter().any(|(name, value)| member_passes(filter, name, value)))
                    .map(|(uri, _)| uri.clone())
                    .collect();
                let filter = Filter::Nested { field: 0, filter: Box::new(filter.clone()) };
                let found = fixture.search(&filter, Order::default(), 3);
                prop_assert_eq!(found, expected, "{:?} {}", filter, value_index);
            }
            let (mut rows, mut count) = (BTreeMap::<String, (u64, i64)>::new(), 0);
            for (_, map) in &views {
                if map.is_empty() {
                    rows.entry("null".to_owned()).or_default().0 += 1;
                }
                for (name, value) in map {
                    let row = rows.entry(json!(name).to_string()).or_default();
                    *row = (row.0 + 1, row.1 + value.as_i64().unwrap());
                    count += 1;
                }
            }
            let read = fixture.store.read();
            let summary = fixture.read_summary(&read, None, &["levels.@key"], "sum(levels.*)").unwrap();
            let found = summary.rows.into_iter().map(|row| {
                let sum = row.measures[0].as_ref().map_or(0, |sum| sum.parse().unwrap());
                (row.group.join("\n"), (row.count, sum))
            });
            prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), rows);
            let numbers = count_distribution(&read, &fixture.business_object, None, "levels.*", &bounds());
            let numbers = numbers.unwrap();
            let without = views.iter().filter(|(_, map)| map.is_empty()).count() as u64;
            let found: u64 = numbers.ranges.iter().map(|range| range.count).sum();
            prop_assert_eq!((found, numbers.without), (count, without));
        }
    }

    #[test]
    fn the_index_of_values_changes_no_answer(
        stored in stored_values(),
        filters in vec(value_filter(), 10),
        limit in 1..6_usize,
    ) {
        let (with, without) = (stored.fixture(true), stored.fixture(false));
        let fields = || std::iter::once(None).chain((0..FIELDS).map(Some));
        for descending in [false, true] {
            for field in fields() {
                let order = Order { field, descending };
                prop_assert_eq!(with.list(None, order, limit), without.list(None, order, limit), "{:?}", order);
            }
        }
        for (at, filter) in filters.iter().enumerate() {
            for order in [
                Order::default(),
                Order { field: Some(at % FIELDS), descending: at % 2 == 0 },
            ] {
                let (one, other) =
                    (with.list(Some(filter), order, limit), without.list(Some(filter), order, limit));
                prop_assert_eq!(one, other, "{:?} {:?}", filter, order);
            }
            let count = |fixture: &Fixture| {
                let read = fixture.store.read();
                count_objects(&read, &fixture.business_object, Some(filter), &bounds())
            };
            prop_assert_eq!(count(&with), count(&without), "{:?}", filter);
            let all = with.explore(&with.store.snapshot().unwrap(), filter);
            prop_assert_eq!(&all, &without.explore(&without.store.snapshot().unwrap(), filter), "{:?}", filter);
            let visible = VisibleObjects::with_scope(with.store.snapshot().unwrap(), WriteScope::ALL);
            prop_assert_eq!(&all, &with.explore(&visible, filter), "{:?}", filter);
            // A transaction reads the objects by their names, in the order of these.
            let by_name = with.store.dry_run::<_, Error>(|transaction| Ok(with.explore(&*transaction, filter)));
            prop_assert_eq!(&all, &by_name.unwrap(), "{:?}", filter);
        }
    }
}

/// Returns literals of which many are equal, and some are near others.
fn similar_literals() -> Vec<Literal> {
    let typed = |text: &str, datatype| Literal::new_typed_literal(text, datatype);
    vec![
        typed("1", xsd::INTEGER),
        typed("1.0", xsd::DECIMAL),
        typed("1.00000000000000001", xsd::DECIMAL),
        typed("0.99999999999999999", xsd::DECIMAL),
        typed("1E0", xsd::DOUBLE),
        typed("0.1", xsd::FLOAT),
        typed("0.1", xsd::DOUBLE),
        typed("x", xsd::STRING),
        Literal::new_language_tagged_literal_unchecked("x", "en"),
        typed("2024-01-01T00:00:00Z", xsd::DATE_TIME),
        typed("2024-01-01T01:00:00+01:00", xsd::DATE_TIME),
        typed("2023-12-31T24:00:00Z", xsd::DATE_TIME),
        typed("2024-01-01T00:00:00.0000001Z", xsd::DATE_TIME),
        typed("2024-01-01", xsd::DATE),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn objects_with_equal_values_are_found_in_the_same_order_without_the_index(
        values in vec((0..40_usize, 0..4_usize, any::<Index>()), 0..160),
        wanted in vec(any::<Index>(), 1..3),
        limit in 1..9_usize,
    ) {
        let pool = similar_literals();
        let node = |iri: String| NamedNode::new_unchecked(iri);
        let quads: Vec<Quad> = values.iter().map(|(object, property, literal)| {
            // Neither in the order of their ids nor in the reverse.
            let subject = node(format!("urn:Root:{:02}", object * 17 % 40));
            let literal = literal.get(&pool).clone();
            Quad::new(subject, node(format!("urn:p:{property}")), literal, node("http://x/Root/".into()))
        }).collect();
        let [with, without] = [true, false].map(|index| fixture_with_quads(CONFIG, index, &quads));
        let texts = wanted.iter().map(|one| one.get(&pool).value().to_owned()).collect();
        let test = ValueTest::In(texts);
        for (field, descending) in (0..4).flat_map(|field| [(field, false), (field, true)]) {
            let order = Order { field: Some(field), descending };
            let filter = Filter::Field { field, test: test.clone() };
            for filter in [None, Some(&filter)] {
                for order in [order, Order::default()] {
                    let found = with.list(filter, order, limit);
                    prop_assert_eq!(found, without.list(filter, order, limit), "{:?} {:?}", filter, order);
                }
            }
        }
    }
}

/// Creates a fixture with 300 objects of three values, each of which no other object has.
pub(super) fn fixture_with_unique_values(value_index: bool) -> Fixture {
    let shape = mapping::compile(CONFIG).unwrap().root;
    let options = Options { value_index, ..Options::default() };
    let fixture = Fixture::with_options(shape, Generator::Uuid, options);
    let objects = (0..300).map(|number| {
        json!({"uri": format!("urn:r:{number:03}"), "n": number * 7 % 300, "s": format!("SN-{:03}", number * 11 % 300),
               "at": format!("2024-01-01T{:02}:{:02}:00Z", number / 60, number % 60),
               "inner": [{"uri": format!("urn:i:{number:03}"), "v": number}]})
        .to_string()
    });
    fixture.send(Mode::Add, &objects.collect::<Vec<_>>().join(",")).unwrap();
    fixture
}

#[test]
fn few_objects_are_read_if_the_index_answers() {
    let with = fixture_with_unique_values(true);
    let without = fixture_with_unique_values(false);
    let field = |path: &[&str], test| {
        Filter::for_field(&with.business_object.mapping.root, path, test).unwrap()
    };
    let text = |text: &str| text.to_owned();
    let by = |field: usize, descending| Order { field: Some(field), descending };
    for (filter, order) in [
        (Some(field(&["s"], ValueTest::In(vec![text("SN-077")]))), Order::default()),
        (Some(field(&["s"], ValueTest::StartsWith(text("SN-07")))), Order::default()),
        (Some(field(&["n"], ValueTest::AtLeast(text("297")))), by(1, true)),
        (Some(field(&["inner", "v"], ValueTest::Before(text("2")))), Order::default()),
        (
            Some(Filter::All(vec![
                field(&["at"], ValueTest::AtLeast(text("2024-01-01T02:00:00Z"))),
                field(&["at"], ValueTest::Before(text("2024-01-01T02:03:00Z"))),
            ])),
            Order::default(),
        ),
        (Some(Filter::Uri(ValueTest::StartsWith(text("urn:r:29")))), Order::default()),
        (None, by(0, false)),
        (None, by(0, true)),
        (None, by(1, true)),
        (None, by(2, false)),
    ] {
        let search = Search { filter: filter.as_ref(), order, after: None, limit: 5 };
        let read = |fixture: &Fixture| {
            let (budget, snapshot) = (bounds(), fixture.store.snapshot().unwrap());
            let page = find_page(&snapshot, &fixture.business_object, &search, &budget).unwrap();
            (page, budget.examined())
        };
        let ((found, few), (expected, _)) = (read(&with), read(&without));
        assert_eq!(found, expected, "{search:?}");
        assert!(!found.found.is_empty() && few <= 60, "{few} {search:?}");
    }
}

#[test]
fn of_objects_with_equal_values_few_are_read() {
    let fixture = Fixture::new(mapping::compile(CONFIG).unwrap().root);
    let uri = |number: usize| format!("urn:r:{number:03}");
    let objects = (0..300).map(|number| {
        let at = "2024-01-01T00:00:00.000001Z";
        json!({"uri": uri(number), "n": 1.5, "s": "same", "at": at, "day": "2024-01-02",
               "kind": "same", "title": "same"})
        .to_string()
    });
    // The URIs are not in the order of the ids.
    fixture.send(Mode::Add, &objects.rev().collect::<Vec<_>>().join(",")).unwrap();
    for (field, descending) in (0..6).flat_map(|field| [(field, false), (field, true)]) {
        let order = Order { field: Some(field), descending };
        let mut after = None;
        for begin in (0..300).step_by(5) {
            let search = Search { filter: None, order, after: after.as_deref(), limit: 5 };
            let (budget, snapshot) = (bounds(), fixture.store.snapshot().unwrap());
            let page = find_page(&snapshot, &fixture.business_object, &search, &budget).unwrap();
            let found: Vec<_> = page.found.iter().map(|found| found.uri.as_str()).collect();
            assert_eq!(found, (begin..begin + 5).map(uri).collect::<Vec<_>>(), "{order:?}");
            // For the last page, objects without a value are looked for.
            assert!(!page.more || budget.examined() <= 15, "{order:?}: {}", budget.examined());
            assert_eq!(page.more, begin < 295);
            after = page.found.into_iter().next_back().map(|last| last.cursor);
        }
    }
}
