//! The limits of a request: time, memory, rows, nesting, and the quads of an update.
use super::*;

#[test]
fn no_quad_can_take_part_in_a_check_of_the_limits() {
    let store = Fixture::with("INSERT DATA { <tag:penstock,2026:check> <a:p> <a:x> }");
    assert_eq!(store.rows("SELECT ?x { VALUES ?x { 1 } { SELECT ?s { ?s ?p ?o } } }"), ["1"]);
}

#[test]
fn a_request_ends_at_each_limit() {
    let store = Fixture::with_plant(3_000);
    let fails = |text: &str, limits: Limits, setting: &str| {
        let error = store.query_within(&with_prefix(text), limits, &DatasetParameters::default());
        let error = error.expect_err(text);
        assert_eq!(error.class, ErrorClass::Invalid, "{text}: {error}");
        assert!(error.detail.contains(setting), "{text}: {error}");
    };
    let short = Limits { time: Duration::from_millis(300), memory: 1 << 30, ..LIMITS };
    let numbers = (0..1_000).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    for text in [
        // Nothing of these reads the store.
        format!("SELECT (COUNT(*) AS ?n) {{ VALUES ?a {{ {numbers} }} VALUES ?b {{ {numbers} }} VALUES ?c {{ {numbers} }} }}"),
        format!("SELECT (COUNT(*) AS ?n) {{ {{ SELECT * {{ VALUES ?a {{ {numbers} }} }} }} {{ SELECT * {{ VALUES ?b {{ {numbers} }} }} }} {{ SELECT * {{ VALUES ?c {{ {numbers} }} }} }} }}"),
        format!("SELECT (COUNT(*) AS ?n) {{ GRAPH ?g {{ VALUES ?a {{ {numbers} }} VALUES ?b {{ {numbers} }} VALUES ?c {{ {numbers} }} }} }}"),
        "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }".to_owned(),
        "SELECT (COUNT(*) AS ?n) { ?a (:next|:line|!:x)* ?b . ?c (:next|:line)* ?d }".to_owned(),
        "SELECT (COUNT(*) AS ?n) { ?a :next ?b FILTER EXISTS { ?c :next ?d . ?e :next ?f FILTER(?d = ?f && ?a = ?c && ?c = ?x) } }".to_owned(),
        format!("SELECT (COUNT(*) AS ?n) {{ {} }}", "{ {} UNION {} } ".repeat(30)),
    ] {
        fails(&text, short, "service.limits.sparql.time");
    }
    let doublings: Vec<_> =
        (0..40).map(|n| format!("BIND(CONCAT(?v{n}, ?v{n}) AS ?v{})", n + 1)).collect();
    let small = Limits { memory: 2 << 20, ..LIMITS };
    for text in [
        "SELECT * { ?a ?p ?b . ?c :next ?d } ORDER BY ?b ?d".to_owned(),
        "SELECT (GROUP_CONCAT(?n; separator=?x) AS ?all) { ?a :name ?n . ?b :name ?m . ?c :line ?d }".replace("separator=?x", "separator='----------'"),
        "SELECT (GROUP_CONCAT(DISTINCT CONCAT(STR(?a), STR(?b))) AS ?all) { ?a :name ?n . ?b :name ?m }".to_owned(),
        "SELECT DISTINCT ?a ?b { ?a :name ?n . ?b :name ?m }".to_owned(),
        format!("SELECT ?z {{ BIND('0123456789' AS ?v0) {} }}", doublings.join(" ")),
        "SELECT ?z { BIND(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE('aaaaaaaaaaaaaaaa','a','aaaaaaaaaaaaaaaa'),'a','aaaaaaaaaaaaaaaa'),'a','aaaaaaaaaaaaaaaa'),'a','aaaaaaaaaaaaaaaa'),'a','aaaaaaaaaaaaaaaa') AS ?z) }".to_owned(),
        "SELECT (COUNT(DISTINCT *) AS ?n) { ?a :name ?n . ?b :name ?m }".to_owned(),
        format!("SELECT (STRLEN(REPLACE('{}', '.+', '{}')) AS ?n) {{}}", "a".repeat(100_000), "$0".repeat(100_000)),
        format!("SELECT * {{ VALUES ?x {{ {} }} }}", "1 ".repeat(100_000)),
    ] {
        fails(&text, small, "service.limits.sparql.memory");
    }
    // Only the rows that the LIMIT can return are kept.
    let ordered = with_prefix("SELECT * { ?a :name ?n . ?b :power 5 } ORDER BY ?n ?b LIMIT 5");
    store.query_within(&ordered, small, &DatasetParameters::default()).unwrap();
    let few = Limits { rows: 10, ..LIMITS };
    fails("SELECT * { ?a ?p ?b }", few, "service.limits.sparql.rows");
    fails("CONSTRUCT { ?a ?p ?b } { ?a ?p ?b }", few, "service.limits.sparql.rows");
}

#[test]
fn a_query_is_short_that_reads_and_returns_little() {
    let store = Fixture::with_plant(3_000);
    assert!(store.is_short("SELECT * { <http://example.com/pump/7> ?p ?o }"));
    let values: Vec<_> = (0..30).map(|n| format!("<a:s> <a:p> {n}")).collect();
    store.update(&format!("INSERT DATA {{ {} }}", values.join(" . "))).unwrap();
    assert!(store.is_short("SELECT * { <a:s> ?p ?o }"), "it reads 30 quads");
    assert!(!store.is_short("SELECT * { ?s ?p ?o }"), "it reads 15,000 quads");
    assert!(!store.is_short("SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }"));
    let doublings: Vec<_> =
        (0..14).map(|n| format!("BIND(CONCAT(?v{n}, ?v{n}) AS ?v{})", n + 1)).collect();
    let select = |last: usize| {
        let doublings = doublings[..last].join(" ");
        format!("SELECT ?v{last} {{ BIND('0123456789' AS ?v0) {doublings} }}")
    };
    assert!(store.is_short(&select(12)), "its result has 40,960 bytes");
    assert!(!store.is_short(&select(14)), "its result has 163,840 bytes");
    let regex = |text: &str| format!("SELECT ?x {{ BIND(REGEX('{text}', '(a|b)+c') AS ?x) }}");
    assert!(store.is_short(&regex("aab")));
    assert!(!store.is_short(&regex(&"a".repeat(4_000))), "a match may take long");
}

#[test]
fn a_request_that_is_nested_too_deeply_is_refused() {
    let store = Fixture::new();
    let deep = 100_000;
    for text in [
        format!("SELECT * {{ FILTER({}1{}) }}", "(".repeat(deep), ")".repeat(deep)),
        format!("SELECT * {}{}", "{".repeat(deep), "}".repeat(deep)),
        format!("SELECT * {{ FILTER({}1) }}", "!".repeat(deep)),
        format!("SELECT * {{ FILTER(1{}) }}", " + 1".repeat(deep)),
        format!("SELECT * {{ ?a {}<a:p> ?b }}", "^".repeat(deep)),
        format!("SELECT * {{ ?a <a:p>{} ?b }}", "/<a:p>".repeat(deep)),
        format!("SELECT * {{ {} }}", "OPTIONAL { ?a ?b ?c } ".repeat(deep / 10)),
        format!("SELECT * {{ {{}} {} }}", "UNION {} ".repeat(deep)),
        format!("SELECT * {{ ?a <a:p> {} }}", "[ <a:p> ".repeat(deep)),
        format!("ASK {{ ?c ?p ?o FILTER(?c{}) }}", "-1".repeat(deep)),
        format!("ASK {{ ?c ?p ?o FILTER(true{}) }}", "-1".repeat(deep)),
        format!("SELECT * {{ ?a ?b ?c }} ORDER BY {}", "(1)".repeat(deep)),
        format!("SELECT * {{ {{ SELECT ?a {{ ?a ?b ?c }} ORDER BY {} }} }}", "(1)".repeat(deep)),
        format!(
            "SELECT {} {{}}",
            (0..deep / 2).map(|n| format!("(1 AS ?a{n})")).collect::<Vec<_>>().join(" ")
        ),
        format!(
            "SELECT {} {{}}",
            (0..deep).map(|n| format!("?a{n}")).collect::<Vec<_>>().join(" ")
        ),
        format!("SELECT * {{ {} }}", "?a <a:p>? ?b. ".repeat(deep / 10)),
        format!("ASK {{ FILTER(1<{}1{}&&1>0) }}", "(".repeat(deep), ")".repeat(deep)),
        format!("ASK {{ FILTER(1<2{}&&1>0) }}", "-1".repeat(deep)),
        format!(
            "PREFIX ex: <a:> ASK {{ ?a ex:a\\# ?b FILTER({}1{}) }}",
            "(".repeat(deep),
            ")".repeat(deep)
        ),
        format!(
            "PREFIX ex: <a:> ASK {{ ?a ex:a\\' ?b FILTER({}1{}) }}",
            "(".repeat(deep),
            ")".repeat(deep)
        ),
        format!(
            "ASK {{ VALUES ?x {{ \"\"\"a\" }} FILTER({}1{}) }}",
            "(".repeat(deep),
            ")".repeat(deep)
        ),
        format!("SELECT ({}'a'{} AS ?x) {{}}", "SUBSTR(".repeat(40), ", 1)".repeat(40)),
        format!("SELECT * {{ VALUES ?x {{ {} }} }}", "1 ".repeat(300_000)),
    ] {
        let error = store.query(&text).unwrap_err();
        assert_eq!(error.class, ErrorClass::Malformed, "{error}");
        assert!(error.findings.len() == 1, "{error}");
    }
    // The parser does not take escaped brackets for brackets.
    let escaped =
        format!("ASK {{ FILTER({}1{}) }}", "\\u0028".repeat(50_000), "\\u0029".repeat(50_000));
    assert_eq!(store.query(&escaped).unwrap_err().class, ErrorClass::Malformed);
    // What is large and not deep is answered.
    let binds: Vec<_> = (0..400).map(|n| format!("BIND(1 + {n} AS ?v{n})")).collect();
    assert_eq!(store.rows(&format!("SELECT ?v7 {{ {} }}", binds.join(" "))), ["8"]);
    let rows = "(1 2) ".repeat(20_000);
    assert_eq!(
        store.rows(&format!("SELECT (COUNT(*) AS ?n) {{ VALUES (?x ?y) {{ {rows} }} }}")),
        ["20000"]
    );
    let data: Vec<_> = (0..5_000).map(|n| format!("<a:{n}> <a:v> -{n}, +{n}")).collect();
    store.update_within(&format!("INSERT DATA {{ {} }}", data.join(" . ")), 20_000, None).unwrap();
    let nested = format!("SELECT ({}'abc'{} AS ?x) {{}}", "SUBSTR(".repeat(6), ", 1)".repeat(6));
    assert_eq!(store.rows(&nested), ["abc"]);
    for text in [
        format!("SELECT * {{ ?a <a:p> ({}) }}", "1 ".repeat(1_000)),
        format!("SELECT * {{ {} }}", "?a <a:p> 1 . ".repeat(1_000)),
        format!("SELECT * {{ {} }}", "{ { ?a <a:p> 1 } UNION { ?a <a:p> 2 } } ".repeat(100)),
    ] {
        let error = store.query(&text).unwrap_err();
        assert_eq!(error.class, ErrorClass::Malformed, "{error}");
    }
    let many = (0..1_000).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    assert_eq!(
        store.rows(&format!("SELECT ?x {{ VALUES ?x {{ 5 }} FILTER(?x IN ({many})) }}")),
        ["5"]
    );
    let patterns: Vec<_> = (0..450).map(|n| format!("?a{n} <a:p> ?a{}", n + 1)).collect();
    let patterns = patterns.join(" . ");
    assert_eq!(store.rows(&format!("SELECT * {{ {patterns} }}")), [""; 0]);
}

#[test]
fn an_update_is_bounded() {
    let store = Fixture::with_plant(100);
    let error = store.update_within("DELETE WHERE { GRAPH ?g { ?s ?p ?o } }", 99, None);
    assert_eq!(error.unwrap_err().class, ErrorClass::TooLarge);
    assert_eq!(store.rows("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"), ["500"]);
}

#[test]
fn an_update_of_many_quads_fits_into_the_memory_of_a_query() {
    let fixture = Fixture::new();
    let numbers = |most: u32| (0..most).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    let insert = |quads: u32| {
        format!(
            "INSERT {{ GRAPH <urn:many> {{ ?s <urn:value> ?a }} }} WHERE {{ VALUES ?a {{ {} }} VALUES ?b {{ {} }} \
             BIND(IRI(CONCAT(\"urn:\", STR(?a), \":\", STR(?b))) AS ?s) }}",
            numbers(1_000),
            numbers(quads / 1_000)
        )
    };
    assert_eq!(fixture.update_within(&insert(40_000), 100_000, None).unwrap().inserted, 40_000);
    let removed = fixture.update_within("DELETE WHERE { GRAPH ?g { ?s ?p ?o } }", 100_000, None);
    assert_eq!(removed.unwrap().removed, 40_000);
    let refused = fixture.update_within(&insert(2_000), 1_999, None).unwrap_err();
    assert_eq!(refused.class, ErrorClass::TooLarge);
}
