//! The index of values: it finds what a filter, an order or an aggregate selects, and changes no answer.
use super::*;
use crate::form::to_expression_term;
use crate::ranges::find_ranges;
use crate::value::Value;
use oxrdf::vocab::xsd;
use oxrdf::{Term, Variable};
use penstock_store::{ValueClass, ValueKey};
use proptest::prelude::*;
use proptest::sample::subsequence;
use spargebra::algebra::Expression;

/// The same plant with and without an index of values.
fn plants(objects: u32) -> [Fixture; 2] {
    [true, false].map(|value_index| {
        let fixture = Fixture::open(value_index);
        fixture.add_plant(objects);
        fixture
    })
}

/// Returns how often the limits are checked with and without the index. The answers are the same.
fn count_checks(plants: &[Fixture; 2], text: &str) -> [u64; 2] {
    let text = with_prefix(text);
    let run = |plant: &Fixture| {
        plant.query_with_checks(&text, LIMITS, &DatasetParameters::default()).unwrap()
    };
    let [by_value, all] = plants.each_ref().map(run);
    assert_eq!(sorted(&by_value.0), sorted(&all.0), "{text}");
    assert!(by_value.0.lines().count() > 1, "{text}: {}", by_value.0);
    [by_value.1, all.1]
}

fn sorted(answer: &str) -> Vec<&str> {
    let mut rows: Vec<_> = answer.lines().collect();
    rows.sort_unstable();
    rows
}

#[test]
fn a_filter_reads_only_the_values_that_it_selects() {
    let plants = plants(3_000);
    for filter in [
        "?x = 5",
        "5.0 = ?x",
        "?x IN (5, 6e0)",
        "?x > 95",
        "95 <= ?x",
        "?x < 1",
        "0.5 >= ?x",
        "?x > 4 && ?x < 6",
        "?x >= 4 && CONTAINS(STR(?s), '1') && ?x <= 4",
    ] {
        let text = format!("SELECT ?s ?x {{ ?s :power ?x FILTER({filter}) }}");
        let [by_value, all] = count_checks(&plants, &text);
        assert!(by_value < 1_500 && all > 3_000, "{filter}: {by_value}, {all}");
    }
    for filter in [
        "?n = 'Pump 7'",
        "?n IN ('Pump 7', 'Pump 2999', 7)",
        "STRSTARTS(?n, 'Pump 299')",
        "?n > 'Pump 99' && STRSTARTS(?n, 'Pump 99')",
    ] {
        let text = format!("SELECT ?s ?n {{ ?s :name ?n FILTER({filter}) }}");
        let [by_value, all] = count_checks(&plants, &text);
        assert!(by_value < 300 && all > 3_000, "{filter}: {by_value}, {all}");
    }
    for group in [
        "GRAPH :pumps { ?s :power ?x FILTER(?x = 5) }",
        "GRAPH ?g { ?s :power ?x FILTER(?x = 5) }",
        "GRAPH ?g { ?s :power ?x } FILTER(?x = 5)",
        "GRAPH ?g { ?s :line ?l ; :type :Pump ; :power ?x FILTER(?x = 5) }",
        "?s :power ?x GRAPH :pumps { ?s :type :Pump } FILTER(?x = 5)",
    ] {
        let text = format!("SELECT * {{ {group} }}");
        let [by_value, all] = count_checks(&plants, &text);
        assert!(by_value < 1_500 && all > 3_000, "{group}: {by_value}, {all}");
    }
    let names: Vec<_> = (0..1_000).map(|n| format!("'Pump {}'", n + 2_950)).collect();
    for filter in [
        "STR(?n) = 'Pump 7'",
        "STRSTARTS(STR(?n), 'Pump 299')",
        &format!("?n IN ({}, :none)", names.join(", ")),
    ] {
        let text = format!("SELECT ?s ?n {{ ?s :name ?n FILTER({filter}) }}");
        let [by_value, all] = count_checks(&plants, &text);
        // The evaluator compares each row with the whole list.
        assert!(by_value * 10 < all, "{by_value}, {all}");
    }
    // What selects much is read without the index.
    let [by_value, all] = count_checks(&plants, "SELECT ?s { ?s :power ?x FILTER(?x > 30) }");
    assert!(by_value.abs_diff(all) < 100, "{by_value}, {all}");
}

#[test]
fn a_filter_for_one_iri_reads_only_its_quads() {
    for plant in plants(3_000) {
        for group in ["?s :next ?x", "GRAPH ?g { ?s :next ?x }"] {
            let text = with_prefix(&format!("SELECT ?s {{ {group} FILTER(?x = :pump\\/7) }}"));
            let (answer, checks) =
                plant.query_with_checks(&text, LIMITS, &DatasetParameters::default()).unwrap();
            assert_eq!(answer, "s\r\nhttp://example.com/pump/6\r\n");
            assert!(checks < 500, "{text}: {checks}");
        }
    }
}

#[test]
fn of_lists_and_ranges_what_all_have_is_left() {
    let listed = |numbers: std::ops::Range<i32>| {
        let variable = Box::new(Expression::Variable(Variable::new_unchecked("x")));
        Expression::In(variable, numbers.map(|n| Expression::Literal(n.into())).collect())
    };
    let ranges = |filter: &Expression| {
        let found = find_ranges(filter);
        let [(_, values)] = found.as_slice() else { panic!("{filter}") };
        values.ranges.clone()
    };
    let both = Expression::And(Box::new(listed(10..60)), Box::new(listed(0..20)));
    assert_eq!(ranges(&both), ranges(&listed(10..20)));
    let more = Expression::Literal(10.into());
    let variable = Box::new(Expression::Variable(Variable::new_unchecked("x")));
    let compared = Expression::GreaterOrEqual(variable, Box::new(more));
    let both = Expression::And(Box::new(listed(0..20)), Box::new(compared));
    assert_eq!(ranges(&both), ranges(&listed(10..20)));
}

#[test]
fn a_join_begins_with_the_values_that_a_filter_selects() {
    let plants = plants(3_000);
    let text =
        "SELECT ?n ?l { ?s :line ?l . ?s :name ?n . ?s :type :Pump . ?s :power ?x FILTER(?x = 5) }";
    let [by_value, all] = count_checks(&plants, text);
    assert!(by_value < 1_500 && all > 3_000, "{by_value}, {all}");
    let planned = plants[0].plan("?s :line ?l ; :power ?x FILTER(?x = 5)");
    let place = |text: &str| planned.find(text).unwrap_or_else(|| panic!("{text}: {planned}"));
    assert!(place("/power>") < place("/line>"), "{planned}");
}

#[test]
fn the_first_rows_of_an_order_are_read_from_its_beginning() {
    let plants = plants(3_000);
    for (group, order) in [
        ("?s :power ?x", "?x"),
        ("?s :power ?x", "DESC(?x) ?s"),
        ("?s :name ?x", "?x"),
        ("?s :name ?x", "DESC(?x)"),
        ("?s :power ?x FILTER(?x < 20)", "DESC(?x)"),
        ("?s :name ?n ; :power ?x OPTIONAL { ?s :none ?y }", "DESC(?x) ?s"),
        ("?s :power ?x FILTER(CONTAINS(STR(?s), '7'))", "DESC(?x) ?s"),
        ("GRAPH :pumps { ?s :power ?x }", "DESC(?x) ?s"),
        ("GRAPH ?g { ?s :name ?x }", "?x"),
        ("?s :name ?n GRAPH :pumps { ?s :power ?x }", "DESC(?x) ?s"),
        ("GRAPH ?g { ?s :power ?x FILTER(?x < 20) }", "DESC(?x)"),
    ] {
        let text = format!("SELECT ?s ?x {{ {group} }} ORDER BY {order} LIMIT 10 OFFSET 3");
        let [by_value, all] = count_checks(&plants, &text);
        assert!(by_value < 1_500 && all > 3_000, "{text}: {by_value}, {all}");
    }
    for aggregate in ["MIN(?x)", "MAX(?x)", "MAX(DISTINCT ?x)"] {
        let text = format!("SELECT ({aggregate} AS ?m) {{ ?s :power ?x }}");
        let [by_value, all] = count_checks(&plants, &text);
        assert!(by_value < 600 && all > 3_000, "{text}: {by_value}, {all}");
    }
    for group in [
        "?s :power ?x FILTER(?x < 50 && ?x > 20)",
        "?s :power ?x FILTER(CONTAINS(STR(?s), '7'))",
        "GRAPH :pumps { ?s :power ?x FILTER(?x < 50) }",
        "GRAPH ?g { ?s :power ?x } FILTER(?x > 20)",
        "?s :name ?n ; :power ?x FILTER(CONTAINS(?n, '7'))",
    ] {
        for aggregate in ["MIN(?x)", "MAX(?x)"] {
            let text = format!("SELECT ({aggregate} AS ?m) {{ {group} }}");
            let [by_value, all] = count_checks(&plants, &text);
            assert!(by_value < 1_500 && all > 3_000, "{text}: {by_value}, {all}");
        }
    }
    let text = "SELECT DISTINCT ?x { ?s :name ?x } ORDER BY ?x LIMIT 10";
    let [by_value, all] = count_checks(&plants, text);
    assert!(by_value < 1_500 && all > 3_000, "{by_value}, {all}");
    count_checks(&plants, "SELECT (MAX(?x) AS ?m) (COUNT(*) AS ?n) { ?s :name ?x }");
    count_checks(&plants, "SELECT ?x { ?s :line ?x } ORDER BY ?x LIMIT 10");
}

#[test]
fn the_last_times_and_texts_are_read_from_the_end() {
    let plants = plants(10);
    for plant in &plants {
        let insert = |transaction: &mut penstock_store::Transaction<'_>| {
            let mut add = |n: u32, property: &str, object: Literal| {
                let subject = node(&format!("pump/{n}"));
                let quad = Quad::new(subject, node(property), object, GraphName::DefaultGraph);
                transaction.insert(quad.as_ref())
            };
            for n in 0..3_000 {
                let time = format!("2026-03-01T00:{:02}:{:02}Z", n / 60, n % 60);
                add(n, "at", Literal::new_typed_literal(time, xsd::DATE_TIME))?;
                add(n, "note", Literal::new_simple_literal(format!("note {n}")))?;
            }
            // A few that come after these.
            add(0, "at", Literal::new_typed_literal("2020-01-01", xsd::DATE))?;
            add(1, "at", Literal::new_typed_literal("tomorrow", xsd::DATE_TIME))?;
            add(2, "note", Literal::new_language_tagged_literal_unchecked("a note", "en"))?;
            Ok::<_, penstock_store::Error>(())
        };
        plant.store.transact(insert).unwrap();
    }
    for property in ["at", "note"] {
        for text in [
            format!("SELECT ?x {{ ?s :{property} ?x }} ORDER BY DESC(?x) LIMIT 10"),
            format!("SELECT (MAX(?x) AS ?m) {{ ?s :{property} ?x }}"),
        ] {
            let [by_value, all] = count_checks(&plants, &text);
            assert!(by_value < 1_000 && all > 3_000, "{text}: {by_value}, {all}");
        }
    }
}

#[test]
fn the_index_has_the_order_of_sparql() {
    let terms = (0..KINDS).flat_map(|kind| (0..40).map(move |n| term(kind, n)));
    let values = terms.filter_map(|term| match &term {
        Term::Literal(literal) => {
            let (class, key) = ValueKey::of(literal.as_ref());
            // Languages and datatypes come first in the order of these.
            let is_in_order = !matches!(class, ValueClass::LanguageText | ValueClass::Other);
            let value = Value::new(Some(to_expression_term(term.clone(), false)));
            Some(((class, is_in_order.then_some(key)), value))
        }
        _ => None,
    });
    let values: Vec<_> = values.collect();
    for (one, one_value) in &values {
        for (other, other_value) in &values {
            assert!(one >= other || one_value < other_value, "{one:?} {other:?}");
        }
    }
}

#[test]
fn rows_that_are_dropped_later_do_not_end_the_reading_of_an_order() {
    let plants = plants(3_000);
    for filter in ["CONTAINS(?n, '299')", "?x = 3 || ?n = 'Pump 2998'", "?l = :line\\/6 && ?x > 1"]
    {
        let text = format!(
            "SELECT ?s ?x {{ ?s :power ?x ; :name ?n ; :line ?l FILTER({filter}) }} ORDER BY DESC(?x) ?s LIMIT 40"
        );
        count_checks(&plants, &text);
    }
}

/// The kinds of terms of [`term`].
const KINDS: usize = 12;
const TEXTS: [&str; 8] = [
    "",
    "a",
    "ab",
    "b",
    "\u{e4}",
    "a long text that begins alike, one",
    "a long text that begins alike, two",
    "a long text that begins \u{1f600}",
];

/// Returns a term of a kind. Each kind has about 20.
fn term(kind: usize, n: u8) -> Term {
    let place = usize::from(n);
    let small = i64::from(n % 10) - 5;
    let typed = |text: String, datatype: oxrdf::NamedNodeRef<'_>| {
        Literal::new_typed_literal(text, datatype)
    };
    let pick = |texts: &[&str]| texts[place % texts.len()].to_owned();
    match kind {
        0 => Literal::from(small).into(),
        1 => typed(format!("{small}.{}0", n % 4), xsd::DECIMAL).into(),
        2 => typed(pick(&["-1e0", "0.1", "1", "-0.0", "0", "2.5e0", "INF", "-INF"]), xsd::DOUBLE)
            .into(),
        3 => typed(pick(&["0.1", "1", "-2.5", "16777216", "INF"]), xsd::FLOAT).into(),
        4 => match n % 6 {
            0 => typed("9007199254740993".into(), xsd::INTEGER),
            1 => typed("9007199254740992.5".into(), xsd::DECIMAL),
            2 => typed("0.1000000014901161193847656250000000001".into(), xsd::DECIMAL),
            3 => typed("16777217".into(), xsd::INTEGER),
            4 => typed("NaN".into(), xsd::DOUBLE),
            _ => typed("100000000000000000000000".into(), xsd::INTEGER),
        }
        .into(),
        5 => match n % 5 {
            0 => typed("300".into(), xsd::BYTE),
            1 => typed("3".into(), xsd::BYTE),
            2 => typed("x".into(), xsd::INTEGER),
            3 => typed("infinity".into(), xsd::DOUBLE),
            _ => typed("maybe".into(), xsd::BOOLEAN),
        }
        .into(),
        6 => typed(pick(&["true", "false", "1", "0"]), xsd::BOOLEAN).into(),
        7 => Literal::new_simple_literal(pick(&TEXTS)).into(),
        8 => {
            let language = if n.is_multiple_of(2) { "en" } else { "de" };
            Literal::new_language_tagged_literal_unchecked(pick(&TEXTS), language).into()
        }
        9 => typed(
            format!(
                "2026-03-01T0{}:00:0{}",
                n % 3,
                pick(&["0Z", "0", "0.5Z", "0+14:00", "0-14:00"])
            ),
            xsd::DATE_TIME,
        )
        .into(),
        10 => typed(
            format!("2026-0{}-01{}", n % 4 + 1, pick(&["", "Z", "+14:00", "-02:00"])),
            xsd::DATE,
        )
        .into(),
        _ => match n % 4 {
            0 => node(&format!("object/{}", n % 3)).into(),
            1 => typed("PT60M".into(), xsd::DURATION).into(),
            2 => typed("PT1H".into(), xsd::DURATION).into(),
            _ => typed(pick(&TEXTS), NamedNode::new_unchecked("urn:type").as_ref()).into(),
        },
    }
}

/// A quad: subject, property, kind and number of the object, and graph.
type RandomQuad = (u16, bool, usize, u8, u8);

/// Creates the same store with and without an index of values.
fn create(kinds: &[usize], quads: &[RandomQuad]) -> [Fixture; 2] {
    [true, false].map(|value_index| {
        let fixture = Fixture::open(value_index);
        // Two commits, so that entries of several are merged.
        for quads in quads.chunks(quads.len() / 2 + 1) {
            let insert = |transaction: &mut penstock_store::Transaction<'_>| {
                for (subject, is_first, kind, n, graph) in quads {
                    let graph = match graph % 3 {
                        0 => GraphName::DefaultGraph,
                        graph => node(&format!("graph/{graph}")).into(),
                    };
                    let property = node(if *is_first { "p" } else { "q" });
                    let object = term(kinds[kind % kinds.len()], *n);
                    let quad = Quad::new(node(&subject.to_string()), property, object, graph);
                    transaction.insert(quad.as_ref())?;
                }
                Ok::<_, penstock_store::Error>(())
            };
            fixture.store.transact(insert).unwrap();
        }
        fixture
    })
}

/// Returns the filters on `?x` with two constants.
fn filters(one: &Term, other: &Term) -> Vec<String> {
    let terms = [one, other];
    let constants = terms.map(ToString::to_string);
    let [one, other] = &constants;
    let mut filters = vec![
        format!("?x = {one}"),
        format!("{one} = ?x"),
        format!("?x IN ({one}, {other}, 1)"),
        format!("?x > {one}"),
        format!("?x >= {one}"),
        format!("?x < {one}"),
        format!("{one} >= ?x"),
        format!("?x > {one} && {other} > ?x"),
        format!("?x >= {one} && ?x <= {other} && ISLITERAL(?x)"),
    ];
    filters.extend([one, other].map(|text| format!("STRSTARTS(?x, {text})")));
    filters.push("STRSTARTS(?x, 'a long text that begins alike')".to_owned());
    for term in terms {
        let text = match term {
            Term::Literal(literal) => Literal::new_simple_literal(literal.value()),
            other => Literal::new_simple_literal(other.to_string().trim_matches(['<', '>'])),
        };
        filters.push(format!("STR(?x) = {text}"));
        let start: String = text.value().chars().take(2).collect();
        filters.push(format!("STRSTARTS(STR(?x), {})", Literal::new_simple_literal(start)));
    }
    filters
}

const GROUPS: [&str; 13] = [
    "{ ?s :p ?x FILTER(CONDITION) }",
    "FROM :graph\\/1 { ?s :p ?x FILTER(CONDITION) }",
    "FROM :graph\\/1 FROM :graph\\/2 { ?s :p ?x FILTER(CONDITION) }",
    "{ ?s :q ?y . ?s :p ?x FILTER(CONDITION) }",
    "{ ?s :p ?x OPTIONAL { ?s :q ?y } FILTER(CONDITION) }",
    "{ ?s :q ?y OPTIONAL { ?s :p ?x FILTER(CONDITION) } }",
    "{ ?s :p ?x FILTER(CONDITION) MINUS { ?s :q ?x } }",
    "{ GRAPH ?g { ?s :p ?x FILTER(CONDITION) } }",
    "{ GRAPH :graph\\/1 { ?s :p ?x } FILTER(CONDITION) }",
    "{ GRAPH ?g { ?s :q ?y . ?s :p ?x FILTER(CONDITION) } }",
    "{ GRAPH ?g { ?s ?q ?x FILTER(CONDITION) } }",
    "{ ?s ?q ?x FILTER(CONDITION) }",
    "{ ?s :q ?y GRAPH :graph\\/1 { ?s :p ?x } FILTER(CONDITION) }",
];

fn quads() -> impl Strategy<Value = Vec<RandomQuad>> {
    let quad = (0..90_u16, prop::bool::weighted(0.8), 0..KINDS, any::<u8>(), any::<u8>());
    prop::collection::vec(quad, 1..700)
}

/// One kind of terms, or some of them, or all.
fn kinds() -> impl Strategy<Value = Vec<usize>> {
    let all: Vec<_> = (0..KINDS).collect();
    prop_oneof![
        subsequence(all.clone(), 1),
        subsequence(all.clone(), 1..4),
        Just(all),
        Just(vec![0, 1, 2]),
        Just(vec![9, 10]),
        Just(vec![7, 8]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn answers_are_the_same_with_and_without_the_index(
        kinds in kinds(),
        quads in quads(),
        constants in prop::collection::vec((0..KINDS, any::<u8>(), 0..KINDS, any::<u8>()), 2),
        (offset, limit) in (0..30_usize, 1..60_usize),
    ) {
        let [by_value, all] = create(&kinds, &quads);
        for (one_kind, one, other_kind, other) in constants {
            // Most constants are of a kind that is there.
            let kind = |kind: usize| if kind.is_multiple_of(4) { kind } else { kinds[kind % kinds.len()] };
            let (one, other) = (term(kind(one_kind), one), term(kind(other_kind), other));
            for (place, filter) in filters(&one, &other).into_iter().enumerate() {
                // Half of the groups with each filter, which others take in the next case.
                for group in GROUPS.into_iter().skip((place + offset) % 2).step_by(2) {
                    let group = group.replace("CONDITION", &filter);
                    let text = with_prefix(&format!("SELECT * {group}"));
                    let [found, expected] =
                        [&by_value, &all].map(|fixture| fixture.query(&text).unwrap());
                    prop_assert_eq!(sorted(&found), sorted(&expected), "{}", text);
                }
                let text = with_prefix(&format!(
                    "SELECT ?s ?x {{ ?s :p ?x FILTER({filter}) }}
                     ORDER BY DESC(?x) ?s STR(?x) STR(DATATYPE(?x)) LANG(?x) OFFSET {offset} LIMIT {limit}"
                ));
                let [found, expected] =
                    [&by_value, &all].map(|fixture| fixture.query(&text).unwrap());
                prop_assert_eq!(found, expected, "{}", text);
                for group in ["?s :p ?x", "GRAPH ?g { ?s :p ?x }", "GRAPH :graph\\/1 { ?s :p ?x }"] {
                    let text = with_prefix(&format!(
                        "SELECT (MIN(?x) AS ?a) (MAX(?x) AS ?b) {{ {group} FILTER({filter}) }}"
                    ));
                    let [found, expected] =
                        [&by_value, &all].map(|fixture| fixture.query(&text).unwrap());
                    prop_assert_eq!(found, expected, "{}", text);
                }
            }
        }
        for text in [
            "SELECT ?s ?x { ?s :p ?x } ORDER BY ?x",
            "SELECT ?s ?x { ?s :p ?x } ORDER BY DESC(?x)",
            "SELECT ?s ?x { ?s :p ?x } ORDER BY DESC(?x) ?s",
            "SELECT ?s ?x FROM :graph\\/1 { ?s :p ?x } ORDER BY ?x DESC(?s)",
            "SELECT DISTINCT ?x { ?s :p ?x } ORDER BY ?x",
            "SELECT ?s ?x { GRAPH ?g { ?s :p ?x } } ORDER BY ?x",
            "SELECT ?s ?x { GRAPH :graph\\/1 { ?s :p ?x } } ORDER BY DESC(?x)",
            "SELECT ?s ?x FROM NAMED :graph\\/2 { GRAPH ?g { ?s :p ?x } } ORDER BY DESC(?x) ?s",
            "SELECT ?s ?x { ?s :p ?x FILTER(CONTAINS(STR(?s), '7')) } ORDER BY ?x",
            "SELECT ?s ?x { ?s :p ?x FILTER(CONTAINS(STR(?s), '7')) } ORDER BY DESC(?x)",
        ] {
            let text = with_prefix(&format!("{text} OFFSET {offset} LIMIT {limit}"));
            let [found, expected] =
                [&by_value, &all].map(|fixture| fixture.query(&text).unwrap());
            prop_assert_eq!(found, expected, "{}", text);
        }
        for text in [
            "SELECT (MIN(?x) AS ?a) (MAX(?x) AS ?b) (COUNT(?x) AS ?n) { ?s :p ?x }",
            "SELECT (MAX(?x) AS ?b) FROM :graph\\/1 { ?s :p ?x }",
            "SELECT (MIN(?x) AS ?a) { ?s :none ?x }",
        ] {
            let text = with_prefix(text);
            let [found, expected] =
                [&by_value, &all].map(|fixture| fixture.query(&text).unwrap());
            prop_assert_eq!(found, expected, "{}", text);
        }
    }

    #[test]
    fn updates_see_what_earlier_operations_changed(
        kinds in kinds(),
        quads in quads(),
        (kind, n) in (0..KINDS, any::<u8>()),
    ) {
        let constant = term(kinds[kind % kinds.len()], n);
        let [changed, expected] = create(&kinds, &quads).map(|fixture| {
            let changes: Vec<_> = filters(&constant, &constant)
                .iter()
                .enumerate()
                .map(|(place, filter)| {
                    let update = with_prefix(&format!(
                        "DELETE WHERE {{ :{place} :p ?x }} ; INSERT DATA {{ :new{place} :p {constant} }} ;
                         INSERT {{ ?s :r{place} ?x }} WHERE {{ ?s :p ?x FILTER({filter}) }}"
                    ));
                    fixture.update(&update).unwrap()
                })
                .collect();
            (changes, fixture.rows("SELECT * { ?s ?p ?o }"))
        });
        prop_assert_eq!(changed, expected);
    }
}
