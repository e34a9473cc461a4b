//! The variables of operations: missing ones, those that do not fit their types, and those that do not fit their places.
use super::fixture::Fixture;
use crate::cost::Cost;
use crate::document::Document;
use crate::model::Model;
use crate::query::Query;
use crate::system::DEFAULT_PAGE_SIZE;
use async_graphql::parser::parse_query;
use async_graphql::{Name, Value, Variables};
use penstock_auth::Caller;
use serde_json::{Value as Json, json};

/// Checks that a query is not executed, and returns the first message.
#[track_caller]
fn expect_refusal(answer: &Json) -> String {
    assert!(answer.get("data").is_none(), "{answer}");
    assert!(answer["errors"][0]["locations"][0]["line"].is_u64(), "{answer}");
    answer["errors"][0]["message"].as_str().unwrap().to_owned()
}

fn count_with(filter: &str, definition: &str) -> String {
    format!("query({definition}) {{ pumpConnection(where: {filter}) {{ totalCount }} }}")
}

#[tokio::test]
async fn a_required_variable_without_a_value_is_refused() {
    let fixture = Fixture::with_plant_data(&[]);
    for (document, name) in [
        (count_with("$w", "$w: PumpFilter!"), "w"),
        (count_with("{serialNumber: {eq: $n}}", "$n: String!"), "n"),
        (count_with("{serialNumber: {in: $n}}", "$n: [String!]!"), "n"),
        (count_with("{serialNumber: {in: [$n]}}", "$n: String!"), "n"),
        (count_with("{or: [{active: {eq: false}}, {serialNumber: {eq: $n}}]}", "$n: String!"), "n"),
        (count_with("{or: [$w]}", "$w: PumpFilter!"), "w"),
        (count_with("{not: $w}", "$w: PumpFilter!"), "w"),
        ("query($n: Int!) { pumpConnection(first: $n) { totalCount } }".into(), "n"),
        ("query($u: ID!) { pump(uri: $u) { uri } }".into(), "u"),
        ("query($u: ID!) { object(uri: $u) { uri } }".into(), "u"),
        ("query($u: ID!) { referredBy(uri: $u) { nodes { uri } } }".into(), "u"),
        (
            "query($f: PumpOrderField!) { pumpConnection(orderBy: {field: $f}) { totalCount } }"
                .into(),
            "f",
        ),
        ("query($b: Boolean!) { pumpConnection { totalCount @include(if: $b) } }".into(), "b"),
        ("query($b: Boolean!) { pumpConnection { totalCount @skip(if: $b) } }".into(), "b"),
        ("query($n: String!) { __type(name: $n) { name } }".into(), "n"),
    ] {
        let missing = expect_refusal(&fixture.run_query_with(&document, &json!({})).await);
        let words = format!("the variable ${name} is missing in `variables`, and its type ");
        assert!(missing.starts_with(&words), "{document}: {missing}");
        let null = expect_refusal(&fixture.run_query_with(&document, &json!({name: null})).await);
        assert!(null.contains("is required, not null"), "{document}: {null}");
    }
    let document = count_with("$filter", "$filter: PumpFilter!");
    let misspelled = fixture.run_query_with(&document, &json!({"fliter": {}})).await;
    let message = expect_refusal(&misspelled);
    assert!(message.ends_with("; did you mean it with \"fliter\"?"), "{message}");
    // Only the operation that runs needs values, and ignores those that it does not declare.
    let both =
        "query A($u: ID!) { pump(uri: $u) { uri } } query B { siteConnection { totalCount } }";
    for (name, runs) in [("A", false), ("B", true)] {
        let query = Query {
            operation: Some(name.to_owned()),
            ..Query::new(both.into(), json!({"x": 1})).unwrap()
        };
        let answer = fixture.graphql.execute(query, &Caller::local()).await;
        assert_eq!(answer.data.is_some(), runs, "{name}");
    }
}

#[tokio::test]
async fn absent_and_null_differ() {
    let fixture = Fixture::with_plant_data(&[]);
    let count = async |document: &str, variables: Json| {
        let data = Fixture::expect_data(fixture.run_query_with(document, &variables).await);
        data["pumpConnection"]["nodes"].as_array().unwrap().len()
    };
    // An absent variable takes its default; null replaces the default, and means the default page.
    let first = "query($n: Int = 2) { pumpConnection(first: $n) { nodes { uri } } }";
    assert_eq!(count(first, json!({})).await, 2);
    assert_eq!(count(first, json!({"n": null})).await, 3);
    assert_eq!(count(first, json!({"n": 1})).await, 1);
    // A test whose variable is absent or null is ignored, as the documentation says.
    let test = "query($n: String, $w: PumpFilter) { pumpConnection(where: {serialNumber: {eq: $n, contains: \"A\"}, and: [{not: $w}]}) { nodes { uri } } }";
    for variables in [json!({}), json!({"n": null}), json!({"w": null})] {
        assert_eq!(count(test, variables).await, 2);
    }
    // A default is coerced: a single value is a list of one.
    let list = "query($n: [String!] = \"B1\") { pumpConnection(where: {serialNumber: {in: $n}}) { nodes { uri } } }";
    assert_eq!(count(list, json!({})).await, 1);
    assert_eq!(count(list, json!({"n": "A1"})).await, 1);
    assert_eq!(count(list, json!({"n": ["A1", "A2"]})).await, 2);
    // A nullable variable with a default may be used where null is not allowed. An explicit null is refused then.
    let included =
        "query($b: Boolean = true) { pumpConnection { totalCount @skip(if: $b) nodes { uri } } }";
    assert_eq!(count(included, json!({})).await, 3);
    let message = expect_refusal(&fixture.run_query_with(included, &json!({"b": null})).await);
    assert!(message.contains("the variable $b does not fit its type Boolean!"), "{message}");
    // An argument of introspection with a default of its own.
    let fields =
        "query($b: Boolean) { __type(name: \"Site\") { fields(includeDeprecated: $b) { name } } }";
    for variables in [json!({}), json!({"b": null}), json!({"b": true})] {
        let data = Fixture::expect_data(fixture.run_query_with(fields, &variables).await);
        assert!(data["__type"]["fields"][0]["name"].is_string(), "{data}");
    }
}

#[tokio::test]
async fn values_of_variables_fit_their_types() {
    let fixture = Fixture::with_plant_data(&[]);
    let order = "query($x: PumpOrder) { pumpConnection(orderBy: $x) { nodes { uri } } }";
    let filter = "query($x: PumpFilter) { pumpConnection(where: $x) { nodes { uri } } }";
    let first = "query($x: Int) { pumpConnection(first: $x) { nodes { uri } } }";
    let object = "query($x: ObjectType) { object(uri: \"urn:pump:1\", as: $x) { uri } }";
    for (document, value, words) in [
        (first, json!("1"), "\"1\" is not a whole number"),
        (first, json!(1.5), "1.5 is not a whole number of 32 bits"),
        (first, json!(3_000_000_000_u64), "3000000000 is not a whole number of 32 bits"),
        (first, json!([1]), "[1] is not a whole number"),
        (filter, json!([]), "[] is not an object of type PumpFilter"),
        (filter, json!("all"), "\"all\" is not an object of type PumpFilter"),
        (
            filter,
            json!({"wieght": {"eq": 1}}),
            "PumpFilter has no field wieght; did you mean weight?",
        ),
        (
            filter,
            json!({"weight": {"eq": true}}),
            "at weight.eq: true is not a number or a string of digits",
        ),
        (
            filter,
            json!({"or": [{}, {"serialNumber": {"in": ["a", 5]}}]}),
            "at or[1].serialNumber.in[1]: 5 is not a string",
        ),
        (
            filter,
            json!({"serialNumber": {"in": [null]}}),
            "at serialNumber.in[0]: a value of type String is required",
        ),
        (filter, json!({"site": {"eq": 5}}), "at site.eq: 5 is not a string"),
        (filter, json!({"active": {"eq": "true"}}), "at active.eq: \"true\" is not true or false"),
        (
            order,
            json!({"direction": "ASC"}),
            "the field field of PumpOrder is missing; its type is PumpOrderField!",
        ),
        (order, json!({"field": null}), "at field: a value of type PumpOrderField is required"),
        (
            order,
            json!({"field": "uri", "direction": "DOWN"}),
            "the enum Direction has no value DOWN; its values are ASC, DESC",
        ),
        (object, json!("Pumpe"), "the enum ObjectType has no value Pumpe"),
        (object, json!(1), "1 is not a value of the enum ObjectType"),
    ] {
        let answer = fixture.run_query_with(document, &json!({"x": value})).await;
        let message = expect_refusal(&answer);
        assert!(message.starts_with("the variable $x does not fit its type "), "{message}");
        assert!(message.contains(words), "{value}: {message}");
    }
    let long = json!({"x": {"weight": {"eq": ["x".repeat(10_000)]}}});
    assert!(expect_refusal(&fixture.run_query_with(filter, &long).await).len() < 300);
    for (document, value) in [
        (filter, json!({"weight": {"eq": "10.500"}})),
        (filter, json!({"uri": {"eq": "urn:pump:1"}, "runs": {"in": 12_345_678_901_u64}})),
        (order, json!({"field": "weight", "direction": "DESC"})),
        (object, json!("Pump")),
    ] {
        let answer = fixture.run_query_with(document, &json!({"x": value})).await;
        let found = Fixture::expect_data(answer).to_string();
        assert!(found.contains("urn:pump:1"), "{value}: {found}");
    }
}

#[tokio::test]
async fn variables_fit_their_places() {
    let fixture = Fixture::with_plant_data(&[]);
    let values = json!({"x": "A1", "n": 1, "b": true});
    for (document, words) in [
        (count_with("{serialNumber: {in: [$x]}}", "$x: String"), "type String is used where the type String! is expected"),
        (count_with("{serialNumber: {in: $x}}", "$x: String!"), "type String! is used where the type [String!] is expected"),
        (count_with("{serialNumber: {eq: $n}}", "$n: Int"), "type Int is used where the type String is expected"),
        (count_with("{weight: {eq: $n}}", "$n: Int"), "declare it as $n: Number"),
        (count_with("{or: [{readings: {value: {after: $n}}}]}", "$n: Int"), "declare it as $n: Number"),
        ("query($x: ID) { pump(uri: $x) { uri } }".into(), "declare it as $x: ID!"),
        ("query($x: ID = null) { pump(uri: $x) { uri } }".into(), "declare it as $x: ID!"),
        ("query($x: String!) { pump(uri: $x) { uri } }".into(), "declare it as $x: ID!"),
        ("query($b: Boolean) { pumpConnection { totalCount @skip(if: $b) } }".into(), "declare it as $b: Boolean!"),
        // In a fragment that the operation reaches through another one.
        ("query($n: String) { ...A } fragment A on Query { ...B } fragment B on Query { pumpConnection(first: $n) { totalCount } }".into(), "declare it as $n: Int"),
        // In an operation that does not run.
        ("query A { siteConnection { totalCount } } query B($n: String) { pumpConnection(first: $n) { totalCount } }".into(), "declare it as $n: Int"),
    ] {
        let answer = fixture.run_query_with(&document, &values).await;
        let message = expect_refusal(&answer);
        assert!(message.contains(words), "{document}: {message}");
        assert_eq!(answer["errors"][0]["locations"].as_array().unwrap().len(), 2, "{answer}");
    }
    for document in [
        count_with("{serialNumber: {in: [$x]}}", "$x: String!"),
        count_with("{serialNumber: {eq: $x}}", "$x: String!"),
        count_with("{serialNumber: {in: [$x]}}", "$x: String = \"A1\""),
        count_with("{serialNumber: {in: $x}}", "$x: [String!]!"),
        count_with("{or: [{serialNumber: {contains: $x}}]}", "$x: String"),
    ] {
        let data = Fixture::expect_data(fixture.run_query_with(&document, &values).await);
        assert_eq!(data["pumpConnection"]["totalCount"], 1, "{document}");
    }
}

#[test]
fn an_absent_variable_leaves_its_argument_absent() {
    let parsed = parse_query("query($n: Int) { referredBy(first: $n) { nodes { uri } } }").unwrap();
    let rows = |variables: &Variables| {
        let document = Document::new(&parsed, None, variables).unwrap();
        Cost::of_document(&Model::default(), &document).unwrap().rows
    };
    let mut variables = Variables::default();
    assert_eq!(rows(&variables), DEFAULT_PAGE_SIZE as u64);
    variables.insert(Name::new("n"), Value::from(7));
    assert_eq!(rows(&variables), 7);
}
