//! The answers of queries: values, pages, filters, orders and references.
use super::fixture::{Fixture, SITE, send, service_account_caller};
use crate::query::convert_value;
use crate::schema::Query;
use crate::system::NON_NULL_QUERY_FIELDS;
use async_graphql::Value;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Quad};
use penstock_auth::Caller;
use penstock_base::commit::NoClient;
use penstock_base::error::GatewayError;
use penstock_model::ingest::Mode;
use penstock_store::{Pattern, Read as _};
use serde_json::{Value as Json, json};
use std::ops::ControlFlow;

#[tokio::test]
async fn the_authenticated_user_is_returned() {
    let fixture = Fixture::new(&[]);
    let document = "{ authenticatedUser { __typename id givenName familyName email organization roles serviceAccount } }";
    assert_eq!(
        fixture.run_query_as(document, &service_account_caller()).await,
        json!({"data": {"authenticatedUser": {
            "__typename": "AuthenticatedUser",
            "id": "0199c1d2-7d3e-7000-8000-000000000001",
            "givenName": null,
            "familyName": "Plant",
            "email": "s@machines.example",
            "organization": null,
            "roles": ["Contributor"],
            "serviceAccount": true,
        }}})
    );
    let local = fixture.run_query(document).await;
    assert_eq!(local["data"]["authenticatedUser"]["id"], "local");
    assert_eq!(local["data"]["authenticatedUser"]["roles"], json!(["Admin"]));
    assert_eq!(local["data"]["authenticatedUser"]["email"], Json::Null);
}

#[tokio::test]
async fn numbers_keep_all_digits() {
    let fixture = Fixture::with_plant_data(&[]);
    let document = "{ pump(uri: \"urn:pump:1\") {
        __typename uri serialNumber weight runs active built site tags
        readings { uri value } motor { maker } again: motor { uri } } }";
    let query = Query { document: document.into(), ..Query::default() };
    let answer = fixture.graphql.execute(query, &Caller::local()).await;
    assert_eq!(
        answer.data.unwrap().get(),
        concat!(
            r#"{"pump":{"__typename":"Pump","uri":"urn:pump:1","serialNumber":"A1","weight":10.5,"#,
            r#""runs":12345678901,"active":true,"built":"2024-01-01T00:00:00Z","site":"urn:site:1","#,
            r#""tags":["a","b"],"readings":[{"uri":"urn:reading:1","value":1.0},{"uri":"urn:reading:2","value":2}],"#,
            r#""motor":{"maker":"Acme"},"again":{"uri":"urn:motor:1"}}}"#
        )
    );
    let none = Fixture::expect_data(
        fixture
            .run_query(
                "{ pump(uri: \"urn:site:1\") { uri } site(uri: \"urn:site:2\") { name opened } }",
            )
            .await,
    );
    assert_eq!(none, json!({"pump": null, "site": {"name": "South", "opened": null}}));
    let bad = fixture
        .run_query("{ pump(uri: \"no iri\") { uri } site(uri: \"urn:site:2\") { name } }")
        .await;
    assert_eq!(bad["data"], json!({"pump": null, "site": {"name": "South"}}));
    assert_eq!(bad["errors"][0]["path"], json!(["pump"]));
}

#[tokio::test]
async fn pages_follow_each_other_while_data_changes() {
    let fixture = Fixture::with_plant_data(&[]);
    let page = |after: &str| {
        format!(
            "{{ pumpConnection(first: 1{after}) {{ edges {{ cursor node {{ uri }} }} nodes {{ uri }} \
             pageInfo {{ hasNextPage hasPreviousPage startCursor endCursor }} totalCount }} }}"
        )
    };
    let first = Fixture::expect_data(fixture.run_query(&page("")).await)["pumpConnection"].clone();
    assert_eq!(first["nodes"], json!([{"uri": "urn:pump:1"}]));
    assert_eq!(first["edges"][0]["node"], first["nodes"][0]);
    assert_eq!(first["totalCount"], 3);
    let info = &first["pageInfo"];
    assert_eq!((&info["hasNextPage"], &info["hasPreviousPage"]), (&json!(true), &json!(false)));
    assert_eq!(info["startCursor"], info["endCursor"]);
    fixture.send("Pump", &json!([{"uri": "urn:pump:0", "serial number": "Z", "tags": [], "readings": []},
                               {"uri": "urn:pump:15", "serial number": "Y", "tags": [], "readings": []}]));
    let after = format!(", after: {}", info["endCursor"]);
    let second =
        Fixture::expect_data(fixture.run_query(&page(&after)).await)["pumpConnection"].clone();
    assert_eq!(second["nodes"], json!([{"uri": "urn:pump:15"}]));
    assert_eq!(second["pageInfo"]["hasPreviousPage"], true);
    let other =
        format!("{{ pumpConnection(orderBy: {{field: weight}}{after}) {{ nodes {{ uri }} }} }}");
    let other = fixture.run_query(&other).await;
    assert!(other["errors"][0]["message"].as_str().unwrap().contains("another order"), "{other}");
    assert_eq!(other["data"], json!({"pumpConnection": null}));
}

#[tokio::test]
async fn filters_compare_values_as_the_view_shows_them() {
    let fixture = Fixture::with_plant_data(&[]);
    for (filter, expected) in [
        ("{}", "123"),
        ("{serialNumber: {eq: \"A1\"}}", "1"),
        ("{serialNumber: {in: [\"A1\", \"B1\"]}}", "13"),
        ("{serialNumber: {contains: \"1\"}}", "13"),
        ("{serialNumber: {contains: \"a\"}}", ""),
        ("{serialNumber: {containsAnyCase: \"a\"}}", "12"),
        ("{weight: {eq: 10.5}}", "1"),
        ("{weight: {eq: \"10.500\"}}", "1"),
        ("{weight: {after: 9}}", "1"),
        ("{weight: {before: 10.5}}", "2"),
        ("{weight: {atLeast: 10.5}}", "1"),
        ("{weight: {atLeast: 9, atMost: \"10.50\"}}", "12"),
        ("{serialNumber: {startsWith: \"A\"}}", "12"),
        ("{uri: {startsWith: \"urn:pump:2\"}}", "2"),
        ("{site: {startsWith: \"urn:n\"}}", "3"),
        ("{weight: {exists: false}}", "3"),
        ("{runs: {eq: 12345678901}}", "1"),
        ("{active: {eq: true}}", "1"),
        ("{built: {eq: \"2023-12-31T23:30:00Z\"}}", "2"),
        ("{built: {before: \"2024-01-01T00:00:00Z\"}}", "2"),
        ("{site: {eq: \"urn:site:1\"}}", "12"),
        ("{site: {in: [\"urn:nowhere\", \"urn:site:1\"]}}", "123"),
        ("{site: {contains: \"now\"}}", "3"),
        ("{tags: {eq: \"a\"}}", "1"),
        ("{tags: {exists: false}}", "2"),
        ("{uri: {in: [\"urn:pump:3\", \"urn:site:1\"]}}", "3"),
        ("{readings: {value: {before: 0}}}", "3"),
        ("{readings: {sensor: {eq: \"urn:sensor:1\"}}}", "1"),
        ("{readings: {uri: {eq: \"urn:reading:3\"}}}", "3"),
        ("{motor: {maker: {contains: \"c\"}}}", "1"),
        ("{not: {motor: {}}}", "3"),
        ("{or: [{active: {eq: false}}, {motor: {uri: {eq: \"urn:motor:1\"}}}]}", "12"),
        ("{or: []}", ""),
        ("{and: [{site: {eq: \"urn:site:1\"}}, {not: {weight: {after: 10}}}]}", "2"),
        ("{site: {eq: \"urn:site:1\"}, tags: {exists: true}}", "1"),
    ] {
        assert_eq!(
            fixture.find_pumps(&format!("where: {filter}")).await.concat(),
            expected,
            "{filter}"
        );
    }
    for (bad, words) in [
        ("{weight: {eq: \"heavy\"}}", "not a number"),
        ("{built: {after: \"yesterday\"}}", "not a date"),
        ("{weight: {eq: [1]}}", "not a number or a string of digits"),
        ("5", "object"),
        ("{active: 5}", "object"),
    ] {
        let document = format!("{{ pumpConnection(where: {bad}) {{ nodes {{ uri }} }} }}");
        let answer = fixture.run_query(&document).await;
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(words), "{bad}: {message}");
    }
    // A filter of type String has no test `before`, so the document is not executed.
    let both = "{ pumpConnection(where: {serialNumber: {before: \"A\"}}) { nodes { uri } } }";
    assert!(fixture.run_query(both).await.get("data").is_none());
}

#[tokio::test]
async fn order_by_sorts_pages() {
    let fixture = Fixture::with_plant_data(&[]);
    for (order, expected) in [
        ("{field: uri, direction: DESC}", "321"),
        ("{field: weight}", "213"),
        ("{field: weight, direction: DESC}", "123"),
        ("{field: serialNumber, direction: DESC}", "321"),
        ("{field: built}", "213"),
        ("{field: active}", "213"),
    ] {
        assert_eq!(
            fixture.find_pumps(&format!("orderBy: {order}")).await.concat(),
            expected,
            "{order}"
        );
        // Reading page by page gives the same order.
        let (mut after, mut found) = (String::new(), String::new());
        loop {
            let document = format!(
                "{{ pumpConnection(first: 1, orderBy: {order}{after}) {{ nodes {{ uri }} pageInfo {{ hasNextPage endCursor }} }} }}"
            );
            let page =
                Fixture::expect_data(fixture.run_query(&document).await)["pumpConnection"].clone();
            found += &page["nodes"][0]["uri"].as_str().unwrap().replace("urn:pump:", "");
            after = format!(", after: {}", page["pageInfo"]["endCursor"]);
            if page["pageInfo"]["hasNextPage"] == false {
                break;
            }
        }
        assert_eq!(found, expected, "{order}");
    }
}

#[tokio::test]
async fn references_are_followed_in_both_directions() {
    let fixture = Fixture::with_plant_data(&[]);
    let document = "{ pumpConnection { nodes { uri siteObject { __typename uri ... on Site { name } } \
         readings { uri sensor sensorObject { uri } asObject { uri } } } } }";
    let data = Fixture::expect_data(fixture.run_query(document).await);
    let nodes = &data["pumpConnection"]["nodes"];
    let north = json!({"__typename": "Site", "uri": "urn:site:1", "name": "North"});
    assert_eq!((&nodes[0]["siteObject"], &nodes[1]["siteObject"]), (&north, &north));
    assert_eq!(nodes[2]["siteObject"], Json::Null);
    assert_eq!(nodes[0]["readings"][0]["sensorObject"], Json::Null);
    assert_eq!(nodes[0]["readings"][0]["asObject"], Json::Null);

    let document = "{ site(uri: \"urn:site:1\") { name referredBy(first: 1) {
        __typename nodes { __typename uri ... on Pump { serialNumber } }
        edges { __typename type path cursor node { uri } } pageInfo { hasNextPage endCursor } } } }";
    let data = Fixture::expect_data(fixture.run_query(document).await);
    let page = &data["site"]["referredBy"];
    assert_eq!(
        page["nodes"],
        json!([{"__typename": "Pump", "uri": "urn:pump:1", "serialNumber": "A1"}])
    );
    let edge = &page["edges"][0];
    assert_eq!((&edge["type"], &edge["path"]), (&json!("Pump"), &json!("site")));
    assert_eq!(page["pageInfo"]["hasNextPage"], true);
    let next = format!(
        "{{ referredBy(uri: \"urn:site:1\", after: {}) {{ nodes {{ uri }} pageInfo {{ hasNextPage }} }} }}",
        page["pageInfo"]["endCursor"]
    );
    let next = Fixture::expect_data(fixture.run_query(&next).await)["referredBy"].clone();
    assert_eq!(next, json!({"nodes": [{"uri": "urn:pump:2"}], "pageInfo": {"hasNextPage": false}}));
    // References from nested objects, and through one field only.
    for (arguments, expected) in [
        ("uri: \"urn:sensor:2\"", json!([{"uri": "urn:pump:3"}])),
        ("uri: \"urn:sensor:2\", type: Site", json!([])),
        ("uri: \"urn:reading:2\", path: \"readings\"", json!([{"uri": "urn:pump:1"}])),
        ("uri: \"urn:reading:2\", path: \"site\"", json!([])),
        ("uri: \"urn:nothing\"", json!([])),
    ] {
        let document = format!("{{ referredBy({arguments}) {{ nodes {{ uri }} }} }}");
        let data = Fixture::expect_data(fixture.run_query(&document).await);
        assert_eq!(data["referredBy"]["nodes"], expected, "{arguments}");
    }
    let document = "{ a: object(uri: \"urn:pump:1\") { __typename ... on Pump { weight } }
        b: object(uri: \"urn:pump:1\", as: Site) { uri } c: object(uri: \"urn:no\") { uri } }";
    let data = Fixture::expect_data(fixture.run_query(document).await);
    assert_eq!(data, json!({"a": {"__typename": "Pump", "weight": 10.5}, "b": null, "c": null}));
}

#[tokio::test]
async fn gateway_state_is_queried() {
    let fixture = Fixture::with_plant_data(&[]);
    let document = "{ businessObjects { name type typeMissing description enabled version conditions { value } pushTargets { bucketName } }
        targets { name depth } exports { nodes { id status } edges { cursor } pageInfo { hasNextPage } } }";
    let data = Fixture::expect_data(fixture.run_query(document).await);
    assert_eq!(
        data["businessObjects"][1],
        json!({
            "name": "Site", "type": "Site", "typeMissing": null, "description": "All of Site",
            "enabled": true, "version": 1, "conditions": [], "pushTargets": [],
        })
    );
    assert_eq!(data["targets"], json!([]));
    assert_eq!(
        data["exports"],
        json!({"nodes": [], "edges": [], "pageInfo": {"hasNextPage": false}})
    );
}

#[tokio::test]
async fn variables_keep_their_types() {
    let fixture = Fixture::with_plant_data(&[]);
    let document = "query($yes: Boolean!, $list: [Float]) { __typename @include(if: $yes) a: __typename @skip(if: $list) }";
    let Json::Object(values) = json!({"yes": true, "list": [1, 2.5, null]}) else { panic!() };
    assert_eq!(
        convert_value(values["list"].clone()),
        Value::List(vec![1.into(), 2.5.into(), Value::Null])
    );
    let query = Query { document: document.into(), variables: values, ..Query::default() };
    let answer = fixture.graphql.execute(query, &service_account_caller()).await;
    // The list is refused where a Boolean is required, so the variables kept their types.
    assert!(answer.data.is_none(), "{answer:?}");
    let document = "query($n: Int = 2, $w: PumpFilter, $o: PumpOrder) { pumpConnection(first: $n, where: $w, orderBy: $o) { nodes { weight } } }";
    let variables = "{\"w\": {\"weight\": {\"after\": 8.9999999999999999999}}, \"o\": {\"field\": \"weight\", \"direction\": \"DESC\"}}";
    let variables = serde_json::from_str(variables).unwrap();
    let query = Query { document: document.into(), variables, ..Query::default() };
    let answer = fixture.graphql.execute(query, &service_account_caller()).await;
    assert_eq!(
        answer.data.unwrap().get(),
        r#"{"pumpConnection":{"nodes":[{"weight":10.5},{"weight":9}]}}"#
    );
}

#[tokio::test]
async fn reads_never_see_half_a_commit() {
    let fixture = Fixture::with_plant_data(&[]);
    let gateway = fixture.gateway.clone();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        let mut round = 0;
        while stopped.try_recv().is_err() {
            round += 1;
            let readings: Vec<_> = (0..5)
                .map(|i| json!({"uri": format!("urn:reading:{i}"), "value": round}))
                .collect();
            let data = json!([{"uri": "urn:pump:1", "serial number": "A1", "runs": round, "tags": [],
                               "readings": readings, "motor": {"uri": "urn:motor:1", "maker": round.to_string()}}]);
            send(&gateway, "Pump", Mode::Replace, &data);
        }
        round
    });
    let document =
        "{ pump(uri: \"urn:pump:1\") { ...P } pumpConnection(first: 1) { nodes { ...P } } }
        fragment P on Pump { runs readings { value } motor { maker } }";
    let mut seen = std::collections::HashSet::new();
    while seen.len() < 20 {
        let data = Fixture::expect_data(fixture.run_query(document).await);
        for pump in [&data["pump"], &data["pumpConnection"]["nodes"][0]] {
            let runs = pump["runs"].as_u64().unwrap();
            // Before the writer's first commit, `runs` has the large value of the fixture.
            if runs < 1_000_000 {
                let whole = json!({"runs": runs, "readings": vec![json!({"value": runs}); 5],
                                   "motor": {"maker": runs.to_string()}});
                assert_eq!(*pump, whole);
                seen.insert(runs);
            }
        }
    }
    stop.send(()).unwrap();
    assert!(writer.join().unwrap() > 1);
}

#[tokio::test]
async fn values_of_another_type_are_shown_like_the_view_or_null_with_an_error() {
    let fixture = Fixture::with_plant_data(&[]);
    let node = |iri: &str| NamedNode::new_unchecked(iri);
    let quads = [
        ("urn:p:active", Literal::new_simple_literal("yes")),
        ("urn:p:weight", Literal::new_typed_literal("INF", xsd::DOUBLE)),
        ("urn:p:runs", Literal::new_typed_literal("+007", xsd::INTEGER)),
    ];
    let add = |change: &mut penstock_store::Transaction<'_>| {
        for (predicate, value) in quads {
            let quad = Quad::new(node("urn:pump:3"), node(predicate), value, node("urn:g"));
            change.insert(quad.as_ref())?;
        }
        Ok::<_, GatewayError>(())
    };
    fixture.gateway.store.commit(&NoClient, add).unwrap();
    let document =
        "{ pumpConnection(where: {uri: {eq: \"urn:pump:3\"}}) { nodes { active weight runs } } }";
    let answer = fixture.run_query(document).await;
    let shown = json!({"active": null, "weight": "INF", "runs": 7});
    assert_eq!(answer["data"]["pumpConnection"]["nodes"], json!([shown]));
    assert_eq!(answer["errors"][0]["path"], json!(["pumpConnection", "nodes", 0, "active"]));
    assert_eq!(answer["errors"].as_array().unwrap().len(), 1);
    // Filters compare such values by the text that is shown. An order places them after the values of the field's type.
    assert_eq!(fixture.find_pumps("where: {weight: {after: 1}}").await.concat(), "12");
    assert_eq!(fixture.find_pumps("orderBy: {field: weight}").await.concat(), "213");
}

#[tokio::test]
async fn the_query_fields_that_must_not_be_null_are_those_of_the_schema() {
    let fixture = Fixture::with_plant_data(&[]);
    let document = "{ __type(name: \"Query\") { fields { name type { kind } } } }";
    let data = Fixture::expect_data(fixture.run_query(document).await);
    let fields = data["__type"]["fields"].as_array().unwrap().iter();
    let fields = fields.filter(|field| field["type"]["kind"] == "NON_NULL");
    let mut names: Vec<_> = fields.map(|field| field["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, NON_NULL_QUERY_FIELDS);
}

#[tokio::test]
async fn a_list_of_booleans_with_another_value_is_null() {
    let fixture = Fixture::new(&[]);
    let config = "
type: object
path: Switch:.
fields:
  uri: {type: id}
  states: {type: array, path: <urn:p:states>, elements: {type: boolean}}
";
    fixture.define("Switch", config);
    fixture.send("Switch", &json!([{"uri": "urn:switch:1", "states": [true, false]}]));
    let document = "{ switch(uri: \"urn:switch:1\") { uri states } }";
    let data = Fixture::expect_data(fixture.run_query(document).await);
    assert_eq!(data["switch"]["states"].as_array().map(Vec::len), Some(2), "{data}");
    let [subject, predicate, graph] =
        ["urn:switch:1", "urn:p:states", "urn:g"].map(NamedNode::new_unchecked);
    let quad = Quad::new(subject, predicate, Literal::new_simple_literal("on"), graph);
    let add = |change: &mut penstock_store::Transaction<'_>| {
        change.insert(quad.as_ref())?;
        Ok::<_, GatewayError>(())
    };
    fixture.gateway.store.commit(&NoClient, add).unwrap();
    let answer = fixture.run_query(document).await;
    // The type `[Boolean!]` has no null in the list.
    assert_eq!(answer["data"], json!({"switch": {"uri": "urn:switch:1", "states": null}}));
    let path = &answer["errors"][0]["path"];
    assert_eq!((&path[0], &path[1]), (&json!("switch"), &json!("states")));
    assert!(path[2].is_u64(), "{path}");
    assert_eq!(answer["errors"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_group_is_null_if_its_map_shows_no_member() {
    let fixture = Fixture::new(&[]);
    let config = "
type: object
path: Line:.
fields:
  uri: {type: id}
  state:
    type: group
    fields:
      low: {type: number, path: <urn:p:low>}
      counts: {type: map, path: '<urn:p:counts>/Count:.', key: {path: <urn:p:key>}, elements: {type: integer, path: <urn:p:count>}}
";
    fixture.define("Line", config);
    let line = |n: u8| json!({"uri": format!("urn:line:{n}"), "state": {"counts": {"a": n}}});
    fixture.send("Line", &json!([line(1), line(2)]));
    // A member without a value is not shown.
    let pattern = Pattern { object: Some(Literal::from(2).into()), ..Pattern::default() };
    let mut values = Vec::new();
    let mut visit = |quad: Quad| {
        values.push(quad);
        ControlFlow::Continue(())
    };
    fixture.gateway.store.read().for_each(&pattern, &mut visit).unwrap();
    let [value] = values.as_slice() else { panic!("{values:?}") };
    let remove = |transaction: &mut penstock_store::Transaction<'_>| {
        Ok::<_, GatewayError>(transaction.remove(value.as_ref())?)
    };
    fixture.gateway.store.commit(&NoClient, remove).unwrap();
    let document = "{ one: line(uri: \"urn:line:1\") { state { low } } \
                    two: line(uri: \"urn:line:2\") { state { low counts { key } } } }";
    assert_eq!(
        Fixture::expect_data(fixture.run_query(document).await),
        json!({"one": {"state": {"low": null}}, "two": {"state": null}})
    );
}

#[tokio::test]
async fn summaries_have_groups_and_measures() {
    let fixture = Fixture::with_plant_data(&[]);
    let document = "{ pumpSummary(group: \"site\", measure: [\"max(weight)\", \"sum(readings.value)\"]) { \
                    __typename complete rows { group count measures } } }";
    let data = Fixture::expect_data(fixture.run_query(document).await);
    assert_eq!(
        data["pumpSummary"],
        json!({"__typename": "PenstockSummary", "complete": true, "rows": [
            {"group": ["urn:site:1"], "count": 2, "measures": [10.5, 3]},
            {"group": ["urn:nowhere"], "count": 1, "measures": [null, -5]},
        ]})
    );
    let document = "query($where: PumpFilter) { \
                    pumpSummary(where: $where, group: [\"built.hour\"], timezone: \"Asia/Kolkata\") { rows { group } } }";
    let variables = json!({"where": {"active": {"eq": true}}});
    let answer = fixture.run_query_with(document, &variables).await;
    assert_eq!(
        Fixture::expect_data(answer)["pumpSummary"]["rows"],
        json!([{"group": ["2024-01-01T05:00+05:30"]}])
    );
    let answer = fixture.run_query("{ pumpSummary(measure: \"sum(tags)\") { complete } }").await;
    assert_eq!(answer["data"]["pumpSummary"], Json::Null);
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("needs numbers"), "{message}");
}

#[tokio::test]
async fn a_business_object_keeps_the_name_of_a_summary() {
    let fixture = Fixture::with_plant_data(&[]);
    fixture.define("pump summary", SITE);
    let document = "{ pumpSummary(uri: \"urn:x\") { uri } pumpSummary_2 { complete } pumpSummarySummary { complete } }";
    let data = Fixture::expect_data(fixture.run_query(document).await);
    assert_eq!(data["pumpSummary"], Json::Null);
    assert_eq!(data["pumpSummary_2"]["complete"], true);
    fixture.define("Penstock summary", SITE);
    let answer = fixture.run_query("{ siteSummary { complete } }").await;
    assert!(answer.get("data").is_none(), "the name of their type is taken: {answer}");
}
