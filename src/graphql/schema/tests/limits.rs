//! Queries that cost too much.
use super::fixture::Fixture;
use crate::query::MAX_REQUEST_BYTES;
use crate::query::Query;
use penstock_auth::Caller;
use penstock_store::faults::{Failure, Faults, Operation};
use serde_json::{Value as Json, json};

#[tokio::test]
async fn too_expensive_queries_are_refused_with_their_cost() {
    let fixture = Fixture::with_plant_data(&[
        "--service.limits.graphql.complexity=1000",
        "--service.limits.graphql.rows=40",
        "--service.limits.graphql.depth=8",
    ]);
    let refused = |answer: Json, of: &str, figure: u64, limit: u64| {
        assert!(answer.get("data").is_none(), "{answer}");
        let extensions = &answer["errors"][0]["extensions"];
        let expected =
            json!({"code": "QUERY_TOO_DEAR", "of": of, "figure": figure, "limit": limit});
        assert_eq!(*extensions, expected, "{answer}");
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(&figure.to_string()) && message.contains(&limit.to_string()));
    };
    refused(
        fixture.run_query("{ pumpConnection(first: 51) { nodes { uri } } }").await,
        "rows",
        51,
        40,
    );
    refused(fixture.run_query("{ pumpConnection { nodes { uri } } }").await, "rows", 50, 40);
    let nested =
        "{ siteConnection(first: 10) { nodes { referredBy(first: 5) { nodes { uri } } } } }";
    refused(fixture.run_query(nested).await, "rows", 60, 40);
    // 1 + 20 * (1 + 1 + 5 * (uri and value and so on)).
    let wide = "query($n: Int!) { pumpConnection(first: $n) { nodes { ...P } } }
        fragment P on Pump { readings { uri value a: uri b: uri c: uri d: uri e: uri f: uri g: uri h: uri } }";
    let query = Query {
        document: wide.into(),
        variables: serde_json::from_str("{\"n\": 20}").unwrap(),
        ..Query::default()
    };
    let answer = fixture.graphql.execute(query, &Caller::local()).await;
    refused(serde_json::to_value(answer).unwrap(), "complexity", 1 + 20 * (1 + 1 + 5 * 10), 1000);
    let deep = "{ site(uri: \"urn:site:1\") { referredBy(first: 1) { nodes { referredBy(first: 1) { nodes { \
                 referredBy(first: 1) { nodes { referredBy(first: 1) { nodes { uri } } } } } } } } } }";
    refused(fixture.run_query(deep).await, "depth", 10, 8);
    // Skipped fields cost nothing; introspection by tools is always allowed.
    Fixture::expect_data(
        fixture
            .run_query("{ a: __typename pumpConnection @skip(if: true) { nodes { uri } } }")
            .await,
    );
    Fixture::expect_data(fixture.run_query("{ __schema { types { name fields { name args { name } type { name kind ofType { name } } } } } }").await);
    let spiral =
        "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }";
    assert!(fixture.run_query(spiral).await.get("data").is_none());
    // It is refused before the library validates it, and so before the library answers it.
    let invalid = fixture.run_query(&spiral.replace("name", "nothing")).await;
    let message = invalid["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("too deeply"), "{message}");
}

#[tokio::test]
async fn exceeded_limits_are_errors_and_never_shorten_lists() {
    let fixture = Fixture::with_plant_data(&[
        "--service.limits.graphql.scan=2",
        "--service.limits.graphql.rows=4",
    ]);
    let scanned = fixture.run_query("{ pumpConnection(first: 2, where: {serialNumber: {contains: \"B\"}}) { nodes { uri } } }").await;
    assert_eq!(scanned["data"], json!({"pumpConnection": null}));
    assert!(scanned["errors"][0]["message"].as_str().unwrap().contains("given up after 2 objects"));
    assert_eq!(scanned["errors"][0]["path"], json!(["pumpConnection"]));
    let fixture = Fixture::with_plant_data(&["--service.limits.graphql.rows=4"]);
    let rows =
        fixture.run_query("{ pumpConnection(first: 4) { nodes { readings { uri } } } }").await;
    assert!(
        rows["errors"][0]["message"].as_str().unwrap().contains("more than 4 objects"),
        "{rows}"
    );
    let counted =
        fixture.run_query("{ pumpConnection(first: 0) { nodes { uri } totalCount } }").await;
    assert_eq!(
        Fixture::expect_data(counted)["pumpConnection"],
        json!({"nodes": [], "totalCount": 3})
    );
    let fixture = Fixture::with_plant_data(&["--service.limits.graphql.answer=1KiB"]);
    let long = format!(
        "{{ pumpConnection {{ nodes {{ {} }} }} }}",
        (0..50).map(|i| format!("a{i}: serialNumber ")).collect::<Vec<_>>().concat()
    );
    let long = fixture.run_query(&long).await;
    assert!(long["errors"][0]["message"].as_str().unwrap().contains("1024 bytes"), "{long}");
    // So do the gateway's own types, of all fields of the answer together.
    let definitions = (0..9).map(|i| format!("a{i}: businessObjects {{ config }} "));
    let long =
        fixture.run_query(&format!("{{ {} }}", definitions.collect::<Vec<_>>().concat())).await;
    // Their type has a `!`, so there is no result without them.
    assert_eq!(long.get("data"), Some(&Json::Null), "{long}");
    assert_eq!(long["errors"][0]["path"].as_array().map(Vec::len), Some(1), "{long}");
    let message = long["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("1024 bytes"), "{message}");
}

#[tokio::test]
async fn oversized_documents_are_refused() {
    let fixture = Fixture::new(&[]);
    let repeated = |part: &str| part.repeat(MAX_REQUEST_BYTES / part.len() / 2);
    let fragments = (0..1000).map(|i| format!("fragment f{i} on Query {{ ...f{} }} ", i + 1));
    let fragments = fragments.collect::<Vec<_>>().concat();
    let aliases = (0..2000).map(|i| format!("a{i}: __typename ")).collect::<Vec<_>>().concat();
    for document in [
        format!("{{{}}}", repeated("__typename ")),
        format!("query({}) {{ __typename }}", repeated("$a: Int ")),
        format!("{{ __typename {} }}", repeated("@skip(if: false) ")),
        format!("{{{}", repeated("a{")),
        format!("{{ a(x: {}", repeated("[")),
        format!("query($a: {}", repeated("[")),
        repeated("\u{0}"),
        repeated("\""),
        format!("{{ {} }}", repeated("# comment\n")),
        format!("{{ a(x: \"{}\") }}", repeated("\\u0041")),
        format!("{{ ...f0 }} {fragments}"),
        format!("{{ {aliases} }}"),
        "{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }".to_owned(),
    ] {
        let answer = fixture.run_query(&document).await;
        assert!(answer.get("data").is_none(), "{answer}");
    }
}

#[tokio::test]
async fn a_query_whose_snapshot_is_lost_at_any_read_is_busy_and_has_no_data() {
    let fixture = Fixture::with_plant_data(&[]);
    let document = "{ pump(uri: \"urn:pump:1\") { site readings { value } } \
                    siteConnection(first: 5) { totalCount nodes { name referredBy(first: 5) { nodes { uri } } } } }";
    let expected = Fixture::expect_data(fixture.run_query(document).await);
    let faults = Faults::inject_below(fixture.data_dir());
    for nth in 1.. {
        faults.fail_nth_of(Operation::FindPreserved, nth, Failure::Io);
        let query = Query { document: document.into(), ..Query::default() };
        let answer = fixture.graphql.execute(query, &Caller::local()).await;
        let is_lost = faults.first_failure().is_some();
        assert_eq!(answer.is_busy, is_lost, "{nth}");
        let answer = serde_json::to_value(answer).unwrap();
        if !is_lost {
            assert!(nth > 10, "{nth}");
            assert_eq!(Fixture::expect_data(answer), expected);
            break;
        }
        assert_eq!(answer.get("data"), None, "{answer}");
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(message.ends_with("repeat the request"), "{message}");
    }
}

#[tokio::test]
async fn only_fields_that_read_the_graph_open_a_snapshot() {
    let fixture = Fixture::with_plant_data(&[]);
    let faults = Faults::inject_below(fixture.data_dir());
    faults.fail_nth_of(Operation::FindPreserved, 1, Failure::Io);
    for document in
        ["{ __typename }", "{ __schema { queryType { name } } }", "{ targets { name } }"]
    {
        Fixture::expect_data(fixture.run_query(document).await);
    }
    assert_eq!(faults.operation_count(), 0);
}

#[tokio::test]
async fn answers_about_the_schema_wait_for_a_permit() {
    let fixture = Fixture::with_plant_data(&["--service.limits.graphql.time=100ms"]);
    let permits = &fixture.gateway.query_permits;
    let held = ["a", "a", "b", "b"].map(|account| permits.try_acquire(account, 1).unwrap());
    let ask = async |document: &str| {
        let query = Query { document: document.into(), ..Query::default() };
        fixture.graphql.execute(query, &Caller::local()).await
    };
    for document in
        ["{ __schema { queryType { name } } }", "{ a: __type(name: \"Pump\") { __typename } }"]
    {
        let answer = ask(document).await;
        assert!(answer.is_busy && answer.data.is_none(), "{document}");
    }
    // What is not valid is refused before it would read anything.
    assert!(!ask("{ __typename nothing }").await.is_busy);
    drop(held);
    assert!(ask("{ __schema { queryType { name } } }").await.data.is_some());
}
