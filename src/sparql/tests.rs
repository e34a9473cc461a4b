mod by_value;
mod limits;
mod regular_expressions;
mod scopes;
mod values;

use crate::thread::run_in_query_thread;
use crate::{
    Changes, DatasetParameters, Limits, NoServices, Query, QueryContext, QueryForm, ResultFormat,
    Update, UpdateLimits, apply_update, evaluate, evaluate_short, run_on_query_stack,
};
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_rdf::Format;
use penstock_store::{Options, Store};
use sparesults::QueryResultsFormat;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMITS: Limits = Limits { time: Duration::from_mins(10), memory: 32 << 20, rows: 100_000 };

struct Fixture {
    store: Store,
    _folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self::open(true)
    }

    /// Creates a store with or without an index of values.
    fn open(value_index: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { value_index, ..Options::default() };
        let store = Store::open(folder.path(), options, &mut |_| {}).unwrap();
        Self { store, _folder: folder }
    }

    fn with(update: &str) -> Self {
        let fixture = Self::new();
        fixture.update(update).unwrap();
        fixture
    }

    /// That many objects of 5 quads, in one graph.
    fn with_plant(objects: u32) -> Self {
        let fixture = Self::new();
        fixture.add_plant(objects);
        fixture
    }

    fn add_plant(&self, objects: u32) {
        self.store
            .transact(|transaction| {
                for n in 0..objects {
                    let pump = node(&format!("pump/{n}"));
                    let graph = GraphName::from(node("pumps"));
                    let mut add = |predicate: &str, object: oxrdf::Term| {
                        let predicate = node(predicate);
                        let quad = Quad::new(pump.clone(), predicate, object, graph.clone());
                        transaction.insert(quad.as_ref())
                    };
                    add("type", node(if n % 10 == 0 { "Spare" } else { "Pump" }).into())?;
                    add("name", Literal::new_simple_literal(format!("Pump {n}")).into())?;
                    add("power", Literal::from(i64::from(n % 97)).into())?;
                    add("next", node(&format!("pump/{}", (n + 1) % objects)).into())?;
                    add("line", node(&format!("line/{}", n % 7)).into())?;
                }
                Ok::<_, penstock_store::Error>(())
            })
            .unwrap();
    }

    fn query(&self, text: &str) -> Result<String, GatewayError> {
        self.query_within(text, LIMITS, &DatasetParameters::default())
    }

    fn query_within(
        &self,
        text: &str,
        limits: Limits,
        parameters: &DatasetParameters,
    ) -> Result<String, GatewayError> {
        self.query_with_checks(text, limits, parameters).map(|(answer, _)| answer)
    }

    /// Returns an answer, and how often the limits were checked: at least once for each quad and each entry of the index of
    /// values that was read.
    fn query_with_checks(
        &self,
        text: &str,
        limits: Limits,
        parameters: &DatasetParameters,
    ) -> Result<(String, u64), GatewayError> {
        let snapshot = self.store.snapshot().unwrap();
        run_in_query_thread(|| {
            let query = Query::parse(text, parameters)?;
            let format = match query.form() {
                QueryForm::Select | QueryForm::Ask => {
                    ResultFormat::Solutions(QueryResultsFormat::Csv)
                }
                QueryForm::Construct | QueryForm::Describe => ResultFormat::Graph(Format::NTriples),
            };
            let mut output = Vec::new();
            let deadline = (Instant::now() + limits.time).into();
            let context = QueryContext { limits, deadline, services: Arc::new(NoServices) };
            let rows = evaluate(query.clone(), &snapshot, context, format, &mut output)?;
            let (answer, checks) =
                (String::from_utf8(output).unwrap(), crate::budget::CHECKS.get());
            if let Some(short) = evaluate_short(&query, &snapshot, limits, format) {
                let (short_rows, short) = short.unwrap();
                assert_eq!(short_rows, rows, "{text}");
                assert_eq!(short.len(), answer.len(), "{text}");
            }
            Ok((answer, checks))
        })
        .unwrap()
    }

    /// Returns whether a SELECT is answered as a short query.
    fn is_short(&self, text: &str) -> bool {
        let snapshot = self.store.snapshot().unwrap();
        let format = ResultFormat::Solutions(QueryResultsFormat::Csv);
        run_on_query_stack(|| {
            let query = Query::parse(&with_prefix(text), &DatasetParameters::default()).unwrap();
            evaluate_short(&query, &snapshot, LIMITS, format).map(Result::unwrap).is_some()
        })
        .unwrap()
    }

    /// Returns the pattern that the evaluator gets for a group.
    fn plan(&self, group: &str) -> String {
        let text = with_prefix(&format!("SELECT * {{ {group} }}"));
        let query = Query::parse(&text, &DatasetParameters::default()).unwrap();
        let spargebra::Query::Select { pattern, .. } = query.parsed else { panic!("{text}") };
        let spargebra::algebra::GraphPattern::Project { inner, .. } = pattern else {
            panic!("{text}")
        };
        let snapshot = self.store.snapshot().unwrap();
        let deadline = Instant::now() + LIMITS.time;
        let budget = crate::budget::Budget::new(LIMITS, deadline.into());
        let dataset = crate::dataset::Dataset::new(snapshot.codes(), &budget);
        crate::plan::plan(*inner, &dataset, &spareval::QueryEvaluator::new(), None).to_string()
    }

    /// Returns the rows of a SELECT without the header, sorted.
    fn rows(&self, text: &str) -> Vec<String> {
        let answer = self.query(text).unwrap();
        let mut rows: Vec<_> = answer.lines().skip(1).map(str::to_owned).collect();
        rows.sort();
        rows
    }

    /// Returns the answer of an ASK.
    fn is_true(&self, text: &str) -> bool {
        self.query(text).unwrap().trim() == "true"
    }

    fn update(&self, text: &str) -> Result<Changes, GatewayError> {
        self.update_within(text, 1_000, None)
    }

    fn update_within(
        &self,
        text: &str,
        quads: u64,
        skolemize: Option<&NamedNode>,
    ) -> Result<Changes, GatewayError> {
        let limits = UpdateLimits { quads, query: LIMITS };
        let deadline = Instant::now() + LIMITS.time;
        run_in_query_thread(|| {
            let update = Update::parse(text, &DatasetParameters::default())?;
            let applied = self.store.transact(|transaction| {
                apply_update(&update, transaction, limits, deadline, skolemize)
            });
            applied.map(|(changes, _)| changes)
        })
        .unwrap()
    }
}

fn node(local: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://example.com/{local}"))
}

const PREFIX: &str = "PREFIX : <http://example.com/> ";

fn with_prefix(text: &str) -> String {
    format!("{PREFIX}{text}")
}

#[test]
fn the_default_graph_is_the_union_of_all_graphs_without_duplicates() {
    let store = Fixture::with(
        "INSERT DATA { <a:s> <a:p> 1 . GRAPH <a:g> { <a:s> <a:p> 1 , 2 } GRAPH <a:h> { <a:s> <a:p> 1 } }",
    );
    assert_eq!(store.rows("SELECT ?o { ?s ?p ?o }"), ["1", "2"]);
    assert_eq!(store.rows("SELECT ?g ?o { GRAPH ?g { ?s ?p ?o } }"), ["a:g,1", "a:g,2", "a:h,1"]);
    assert_eq!(store.rows("SELECT ?g { GRAPH ?g {} }"), ["a:g", "a:h"]);
    assert_eq!(store.rows("SELECT ?g ?x { GRAPH ?g { VALUES ?x { 1 } } }"), ["a:g,1", "a:h,1"]);
    assert_eq!(store.rows("SELECT ?x { GRAPH <a:none> { VALUES ?x { 1 } } }"), [""; 0]);
    let counts =
        "SELECT ?g ?n { GRAPH ?g { SELECT ?g (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?g } }";
    assert_eq!(store.rows(counts), ["a:g,2", "a:h,1"]);
    let counts = "SELECT ?g ?n { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } }";
    assert_eq!(store.rows(counts), ["a:g,2", "a:h,1"]);
    assert_eq!(store.rows("SELECT ?o FROM <a:h> { ?s ?p ?o }"), ["1"]);
    assert_eq!(store.rows("SELECT ?o FROM <a:g> FROM <a:h> { ?s ?p ?o }"), ["1", "2"]);
    assert_eq!(store.rows("SELECT ?o FROM NAMED <a:h> { ?s ?p ?o }"), [""; 0]);
    assert_eq!(store.rows("SELECT ?g FROM NAMED <a:h> { GRAPH ?g { ?s ?p ?o } }"), ["a:h"]);
    let parameters = DatasetParameters {
        default_graphs: vec![NamedNode::new_unchecked("a:h")],
        ..Default::default()
    };
    let answer = store.query_within("SELECT ?o FROM <a:g> { ?s ?p ?o }", LIMITS, &parameters);
    assert_eq!(answer.unwrap(), "o\r\n1\r\n");
}

#[test]
fn literals_come_back_as_they_were_stored() {
    let store = Fixture::with(
        "INSERT DATA { <a:s> <a:p> \"01.50\"^^xsd:decimal , \"+7\"^^xsd:integer , \"1E0\"^^xsd:double }",
    );
    let triples = store.query("CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }").unwrap();
    for literal in ["\"01.50\"", "\"+7\"", "\"1E0\""] {
        assert!(triples.contains(literal), "{triples}");
    }
    assert_eq!(store.rows("SELECT ?o { ?s ?p ?o FILTER(?o = 1.5) }"), ["01.50"]);
}

#[test]
fn joins_filters_aggregates_and_paths_have_the_expected_answers() {
    let store = Fixture::with_plant(100);
    let rows = |text: &str| store.rows(&with_prefix(text));
    assert_eq!(rows("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"), ["500"]);
    assert_eq!(rows("SELECT (COUNT(*) AS ?n) { ?s :type :Spare ; :name ?name }"), ["10"]);
    assert_eq!(rows("SELECT ?n { ?s :name ?n FILTER(CONTAINS(?n, '99')) }"), ["Pump 99"]);
    assert_eq!(rows("SELECT ?n { ?s :name ?n FILTER(REGEX(?n, '^pump 9$', 'i')) }"), ["Pump 9"]);
    assert_eq!(rows("SELECT (AVG(?x) AS ?a) { ?s :type :Spare ; :power ?x }"), ["45"]);
    assert_eq!(
        rows("SELECT ?b { :pump\\/1 :next ?a . ?a :next ?b . ?b :type :Pump }"),
        ["http://example.com/pump/3"]
    );
    assert_eq!(rows("SELECT (COUNT(*) AS ?n) { :pump\\/1 :next+ ?b }"), ["100"]);
    assert_eq!(rows("ASK { :pump\\/1 :next/:next :pump\\/3 }"), [""; 0]);
    assert_eq!(
        rows(
            "SELECT ?s { ?s :power 5 OPTIONAL { ?s :type :Spare . ?s :line ?l } FILTER(!BOUND(?l)) }"
        ),
        ["http://example.com/pump/5"]
    );
    assert_eq!(
        rows("SELECT (COUNT(*) AS ?n) { { ?s :line :line\\/0 } UNION { ?s :line :line\\/1 } }"),
        ["30"]
    );
    assert_eq!(
        rows("SELECT (COUNT(*) AS ?n) { ?s :line :line\\/0 MINUS { ?s :type :Spare } }"),
        ["13"]
    );
    assert_eq!(
        rows("SELECT (COUNT(*) AS ?n) { ?s :line ?l FILTER NOT EXISTS { ?s :type :Spare } }"),
        ["90"]
    );
    assert_eq!(rows("SELECT ?x { VALUES ?x { 1 2 } VALUES ?x { 2 3 } }"), ["2"]);
    assert_eq!(
        rows("SELECT (GROUP_CONCAT(?x) AS ?all) { VALUES ?x { 1 2.5 <a:b> } }"),
        ["1 2.5 a:b"]
    );
    assert_eq!(
        rows(
            "SELECT (GROUP_CONCAT(DISTINCT ?x; separator=' | ') AS ?all)
             { VALUES ?x { 'a' 'a'@en 1 'a' '1' <a:b> 1 'a:b' 'a'@en 'a'@de <a:b> } }"
        ),
        ["a | a | 1 | 1 | a:b | a:b | a"]
    );
    assert_eq!(rows("SELECT (GROUP_CONCAT(DISTINCT ?x) AS ?all) { ?s <a:none> ?x }"), [""]);
    assert_eq!(
        rows(
            "SELECT ?x { VALUES ?x { '2020-01-02'^^xsd:date '2019-12-31'^^xsd:date } FILTER(?x < '2020-01-01'^^xsd:date) }"
        ),
        ["2019-12-31"]
    );
    assert_eq!(
        rows("SELECT (REPLACE('abcb', 'b(.?)', '[$1]') AS ?x) (CONCAT('a'@en, 'b'@en) AS ?y) {}"),
        ["a[c][],ab"]
    );
    assert_eq!(rows(r"SELECT (REPLACE('abc', '(b)', '[$1x\\$\\\\]') AS ?x) {}"), [r"a[bx$\]c"]);
    assert_eq!(
        rows("SELECT (REPLACE('abc', 'x*', '-') AS ?x) (REPLACE('a', 'a', '$') AS ?y) {}"),
        [","]
    );
}

#[test]
fn rows_are_ordered_as_sparql_says() {
    let store = Fixture::with(
        "INSERT DATA { <a:1> <a:v> 10 . <a:2> <a:v> 9.5 . <a:3> <a:v> 1e1 . <a:4> <a:v> 'a' . <a:5> <a:v> <a:x> .
           <a:6> <a:v> '95'^^<a:t> . <a:7> <a:v> 'A'@en . <a:8> <a:v> true . <a:9> <a:w> 1 . <a:10> <a:v> -1 .
           <a:11> <a:v> '2020-01-01T00:00:00Z'^^xsd:dateTime . <a:12> <a:v> '2019-12-31T23:00:00-02:00'^^xsd:dateTime }",
    );
    let ordered = |modifiers: &str| {
        let text =
            format!("SELECT ?s {{ ?s ?p ?x OPTIONAL {{ ?s <a:v> ?v }} }} ORDER BY {modifiers}");
        let answer = store.query(&text).unwrap();
        answer
            .lines()
            .skip(1)
            .map(|row| row.trim_start_matches("a:").to_owned())
            .collect::<Vec<_>>()
    };
    let all = ["9", "5", "8", "10", "2", "3", "1", "11", "12", "4", "7", "6"];
    assert_eq!(ordered("?v"), all);
    assert_eq!(ordered("?v OFFSET 2 LIMIT 3"), all[2..5]);
    assert_eq!(ordered("DESC(?v) LIMIT 2"), ["6", "7"]);
    assert_eq!(ordered("?v LIMIT 0"), [""; 0]);
    assert_eq!(ordered("DESC(DATATYPE(?v) = xsd:integer) ?v LIMIT 2"), ["10", "1"]);
    assert_eq!(ordered("?p DESC(?s) LIMIT 1 OFFSET 1"), ["7"]);
    // Neighbours with more digits than a double has.
    let digits: Vec<_> =
        (0..200).map(|n| format!("1.{:017}", 31_415_926_535_897_932_u64 + n)).collect();
    let values = digits.iter().rev().cloned().collect::<Vec<_>>().join(" ");
    let answer =
        store.query(&format!("SELECT ?x {{ VALUES ?x {{ {values} }} }} ORDER BY ?x")).unwrap();
    assert_eq!(answer.lines().skip(1).collect::<Vec<_>>(), digits);
}

#[test]
fn the_order_of_patterns_in_the_text_does_not_matter() {
    let store = Fixture::with_plant(1_000);
    let patterns = ["?s :name ?n", "?s :type :Spare", "?s :power 5", "?s :line ?l"];
    let plan = |patterns: &[&str]| store.plan(&patterns.join(" . "));
    let planned = plan(&patterns);
    let places = |text: &str| planned.find(text).unwrap_or_else(|| panic!("{text}: {planned}"));
    // 11 quads have the power 5, 100 the type Spare, 1,000 a name and a line.
    assert!(places("power") < places("Spare") && places("power") < places("name"), "{planned}");
    for turn in 1..patterns.len() {
        let mut turned = patterns;
        turned.rotate_left(turn);
        let turned = plan(&turned);
        let first = |text: &str| turned.find(text).unwrap();
        for other in ["Spare", "name", "line"] {
            assert!(first("power") < first(other), "{turned}");
        }
    }
}

#[test]
fn a_join_begins_where_all_of_its_steps_take_least() {
    let store = Fixture::with_plant(1_000);
    let halls = (0..7).map(|line| {
        let line = node(&format!("line/{line}"));
        format!("{line} {} <a:hall>", node("hall"))
    });
    let halls = halls.collect::<Vec<_>>().join(" . ");
    store.update(&format!("INSERT DATA {{ {halls} }}")).unwrap();
    // Only 7 lines have a hall, but all 1,000 pumps are on these lines. 100 of them are spare.
    let planned = store.plan("?l :hall ?h . ?s :line ?l . ?s :type :Spare");
    let place = |text: &str| planned.find(text).unwrap_or_else(|| panic!("{text}: {planned}"));
    assert!(place("Spare") < place("/line>") && place("/line>") < place("/hall>"), "{planned}");
}

#[test]
fn a_pattern_that_a_request_has_twice_is_estimated_once() {
    let store = Fixture::with_plant(3_000);
    let count_checks = |group: &str| {
        let before = crate::budget::CHECKS.get();
        store.plan(group);
        crate::budget::CHECKS.get() - before
    };
    let group = "{ ?s :line ?l ; :next ?n ; :type :Pump }";
    let once = count_checks(group);
    let twice = count_checks(&format!("{group} UNION {group}"));
    assert!(once > 300 && twice < once + 100, "{once}, {twice}");
}

#[test]
fn triples_are_counted_once_in_all_forms_of_a_count() {
    let store = Fixture::with(
        "INSERT DATA { <a:s> <a:p> 1 , <a:x> . <a:x> <a:p> <a:x> .
           GRAPH <a:g> { <a:s> <a:p> 1 , 2 } GRAPH <a:h> { <a:t> <a:q> 2 } }",
    );
    let count = |pattern: &str| {
        let counted =
            |counts: &str| store.rows(&format!("SELECT ({counts} AS ?n) {{ {pattern} }}")).join("");
        // A filter makes the evaluator count.
        let filtered =
            store.rows(&format!("SELECT (COUNT(*) AS ?n) {{ {pattern} FILTER(1 = 1) }}"));
        assert_eq!(counted("COUNT(*)"), filtered.join(""), "{pattern}");
        counted("COUNT(*)")
    };
    assert_eq!(count("?s ?p ?o"), "5");
    assert_eq!(count("?s <a:p> ?o"), "4");
    assert_eq!(count("?s ?p 2"), "2");
    assert_eq!(count("<a:s> ?p ?o"), "3");
    assert_eq!(count("?s ?p ?s"), "1");
    assert_eq!(count("[] ?p ?s"), "5");
    assert_eq!(count("?s <a:unknown> ?o"), "0");
    assert_eq!(count("GRAPH ?g { ?s ?p ?o }"), "3");
    assert_eq!(count("?x <a:q> ?y { SELECT (COUNT(?o) AS ?m) { ?s ?p ?o } } FILTER(?m = 5)"), "1");
    let rows = store.rows("SELECT (COUNT(?o) AS ?n) (COUNT(?none) AS ?m) { ?s ?p ?o }");
    assert_eq!(rows, ["5,0"]);
    assert_eq!(store.rows("SELECT (COUNT(*) AS ?n) FROM <a:g> { ?s ?p ?o }"), ["2"]);
    let changes = store.update(
        "INSERT DATA { GRAPH <a:g> { <a:s> <a:p> 1 , 3 } } ;
         INSERT { <a:n> <a:count> ?n } WHERE { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } }",
    );
    assert_eq!(changes.unwrap(), Changes { inserted: 2, removed: 0 });
    assert_eq!(store.rows("SELECT ?n { <a:n> <a:count> ?n }"), ["6"]);
}

#[test]
fn updates_change_only_the_graphs_that_they_name() {
    let store = Fixture::with("INSERT DATA { <a:s> <a:p> 1 . GRAPH <a:g> { <a:s> <a:p> 1 , 2 } }");
    // The pattern reads the union; the template names the unnamed graph.
    let changes = store.update("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }").unwrap();
    assert_eq!(changes, Changes { inserted: 0, removed: 1 });
    assert_eq!(store.rows("SELECT ?g ?o { GRAPH ?g { ?s ?p ?o } }"), ["a:g,1", "a:g,2"]);
    store.update("INSERT DATA { <a:s> <a:p> 3 } ; COPY DEFAULT TO <a:h>").unwrap();
    assert_eq!(store.rows("SELECT ?o { GRAPH <a:h> { ?s ?p ?o } }"), ["3"]);
    store.update("CLEAR DEFAULT").unwrap();
    assert_eq!(store.rows("SELECT ?o { ?s ?p ?o }"), ["1", "2", "3"]);
    store.update("MOVE <a:g> TO DEFAULT ; DROP NAMED").unwrap();
    assert_eq!(store.rows("SELECT ?o { ?s ?p ?o }"), ["1", "2"]);
    assert_eq!(store.rows("SELECT ?g { GRAPH ?g { ?s ?p ?o } }"), [""; 0]);
    assert_eq!(store.update("DROP GRAPH <a:g>").unwrap_err().class, ErrorClass::NotFound);
    // A mistyped source does not empty the target.
    assert_eq!(store.update("COPY <a:typo> TO DEFAULT").unwrap_err().class, ErrorClass::NotFound);
    assert_eq!(store.rows("SELECT ?o { ?s ?p ?o }"), ["1", "2"]);
    store.update("COPY SILENT <a:typo> TO DEFAULT").unwrap();
    assert_eq!(store.rows("SELECT ?o { ?s ?p ?o }"), [""; 0]);
}

#[test]
fn operations_see_what_earlier_ones_changed() {
    let store = Fixture::with("INSERT DATA { <a:1> <a:next> <a:2> }");
    let changes = store
        .update(
            "INSERT DATA { <a:2> <a:next> <a:3> } ;
             INSERT { ?a <a:second> ?c } WHERE { ?a <a:next> ?b . ?b <a:next> ?c } ;
             DELETE WHERE { ?a <a:next> ?b } ;
             INSERT { <a:n> <a:count> ?n } WHERE { SELECT (COUNT(*) AS ?n) { ?s <a:next> ?o } }",
        )
        .unwrap();
    assert_eq!(changes, Changes { inserted: 3, removed: 2 });
    assert_eq!(store.rows("SELECT * { ?s ?p ?o }"), ["a:1,a:second,a:3", "a:n,a:count,0"]);
}

#[test]
fn syntax_errors_have_a_place() {
    let store = Fixture::new();
    let error = store.query("SELECT *\nWHERE { ?s ?p }").unwrap_err();
    assert_eq!(error.class, ErrorClass::Malformed);
    assert!(error.to_string().contains("line 2, column 9"), "{error}");
    assert!(store.update("INSERT DATA { ?s ?p 1 }").unwrap_err().to_string().contains("line 1"));
    for text in
        ["LOAD <http://example.com/>", "INSERT { ?s ?p 1 } WHERE { SERVICE <a:b> { ?s ?p ?o } }"]
    {
        assert_eq!(store.update(text).unwrap_err().class, ErrorClass::Invalid);
    }
}

#[test]
fn blank_nodes_are_stored_only_as_iris() {
    let store = Fixture::new();
    let error = store.update("INSERT DATA { _:a <a:p> 1 }").unwrap_err();
    assert!(error.detail.contains("skolemize"), "{error}");
    let base = NamedNode::new_unchecked("http://example.com/.well-known/genid/");
    store.update_within("INSERT DATA { _:a <a:p> _:a }", 10, Some(&base)).unwrap();
    let row = store.rows("SELECT ?s { ?s ?p ?s FILTER(isIRI(?s)) }");
    assert!(row.len() == 1 && row[0].starts_with(base.as_str()), "{row:?}");
}

#[test]
fn conditions_that_are_tested_while_reading_change_no_result() {
    let fixture = Fixture::with(
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> INSERT DATA { \
         GRAPH <urn:g> { <urn:a> <urn:v> 1, \"01\"^^xsd:integer, 1.0, 1e0, 2, 2.5, -3, 9007199254740993, 9007199254740993.5, \
           \"NaN\"^^xsd:double, \"-INF\"^^xsd:double, \"x\"^^xsd:integer, \"3\"^^xsd:byte, \"2.5\"^^xsd:float, \
           \"pump one\", \"pump two\"@en, \"\", true, <urn:pump>, <urn:b>, \"2020-01-01\"^^xsd:date } \
         GRAPH <urn:h> { <urn:a> <urn:v> 1, \"pump one\" . <urn:b> <urn:v> 2 } }",
    );
    // The second form is no condition that is tested while reading, and means the same.
    let pairs = [
        ("?x > 1", "!!(?x > 1)"),
        ("2.5 > ?x", "!!(2.5 > ?x)"),
        ("?x >= 1e0", "!!(?x >= 1e0)"),
        ("?x <= 9007199254740993", "!!(?x <= 9007199254740993)"),
        ("9007199254740992e0 < ?x", "!!(9007199254740992e0 < ?x)"),
        ("?x = 1", "!!(?x = 1)"),
        ("?x <= \"NaN\"^^xsd:double", "!!(?x <= \"NaN\"^^xsd:double)"),
        ("\"NaN\"^^xsd:double <= ?x", "!!(\"NaN\"^^xsd:double <= ?x)"),
        ("?x = <urn:b>", "!!(?x = <urn:b>)"),
        ("?x = <urn:none>", "!!(?x = <urn:none>)"),
        ("CONTAINS(?x, \"one\")", "!!(CONTAINS(?x, \"one\"))"),
        ("CONTAINS(?x, \"\")", "!!(CONTAINS(?x, \"\"))"),
        ("STRSTARTS(?x, \"pump\")", "!!(STRSTARTS(?x, \"pump\"))"),
        ("STRENDS(?x, \"two\"@en)", "!!(STRENDS(?x, \"two\"@en))"),
        ("?x > 1 && ?x < 3", "!!(?x > 1 && ?x < 3)"),
        ("?x > 1 || ?x = 1", "!!(?x > 1 || ?x = 1)"),
    ];
    let groups = [
        "{ ?s <urn:v> ?x FILTER(CONDITION) }",
        "{ GRAPH ?g { ?s <urn:v> ?x FILTER(CONDITION) } }",
        "{ GRAPH <urn:h> { ?s <urn:v> ?x } FILTER(CONDITION) }",
        "{ GRAPH ?g { ?s ?p ?x FILTER(CONDITION) } }",
        "{ GRAPH ?g { ?s ?p ?y . ?s <urn:v> ?x FILTER(?y = 2) } FILTER(CONDITION) }",
        "{ ?s ?p ?x FILTER(CONDITION) }",
        "{ ?s <urn:v> ?y OPTIONAL { ?s <urn:v> ?x FILTER(CONDITION) } }",
        "{ ?s <urn:v> ?y . ?s <urn:v> ?x FILTER(CONDITION) FILTER(?y = 2) }",
        "{ { ?s <urn:v> ?x } UNION { ?x <urn:v> ?s } FILTER(CONDITION) }",
        "{ ?s <urn:v> ?y FILTER EXISTS { ?s <urn:v> ?x FILTER(CONDITION) } }",
        "{ ?s <urn:v> ?y OPTIONAL { ?s <urn:none> ?z } ?s <urn:v> ?x MINUS { ?s <urn:v> 7 } FILTER(CONDITION) }",
    ];
    for (tested, plain) in pairs {
        for group in groups {
            let rows = |condition: &str| {
                fixture.rows(&format!("SELECT * {}", group.replace("CONDITION", condition)))
            };
            assert_eq!(rows(tested), rows(plain), "{tested} in {group}");
        }
    }
    assert_eq!(fixture.rows("SELECT ?x { ?s <urn:v> ?x FILTER(?x > 2) }").len(), 5);
    let planned = fixture.plan("?s <urn:v> ?x FILTER(?x > 2)");
    assert!(planned.contains("penstock conditions 0"), "{planned}");
}

#[test]
fn the_first_rows_of_an_order_are_those_of_the_whole_order() {
    let fixture = Fixture::with_plant(300);
    for order in [
        "?x ?s",
        "DESC(?x) ?s",
        "DESC(?x) DESC(?s)",
        "?s",
        "DESC(?n)",
        "?none DESC(?n)",
        "STRLEN(?n) ?s",
    ] {
        let select = with_prefix(&format!(
            "SELECT ?s ?x {{ ?s :power ?x ; :name ?n FILTER(?x > 3) }} ORDER BY {order}"
        ));
        let all = fixture.query(&select).unwrap();
        let all: Vec<_> = all.lines().skip(1).collect();
        assert_eq!(all.len(), 300 - 16, "{order}");
        for (offset, limit) in [(0, 0), (0, 1), (0, 10), (7, 20), (0, 299), (290, 20)] {
            let some = fixture.query(&format!("{select} OFFSET {offset} LIMIT {limit}")).unwrap();
            let some: Vec<_> = some.lines().skip(1).collect();
            let wanted: Vec<_> = all.iter().copied().skip(offset).take(limit).collect();
            assert_eq!(some, wanted, "{order}, {offset}, {limit}");
        }
    }
}

#[test]
fn an_alias_in_having_is_a_warning() {
    let warnings =
        |text: &str| Query::parse(text, &DatasetParameters::default()).unwrap().warnings();
    for text in [
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p HAVING (?n > 1)",
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p HAVING (?p = <a:p> && ABS(?n) > 1) ORDER BY ?n LIMIT 3",
        "ASK { { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } HAVING (?n > 1) } }",
    ] {
        let warnings = warnings(text);
        assert!(warnings.len() == 1 && warnings[0].contains("HAVING names ?n,"), "{warnings:?}");
    }
    for text in [
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p HAVING (COUNT(*) > 1)",
        "SELECT ?k (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY (STR(?p) AS ?k) HAVING (?k > 'a')",
        "SELECT ?n { { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } FILTER(?n > 1) }",
    ] {
        assert_eq!(warnings(text), Vec::<String>::new(), "{text}");
    }
}
