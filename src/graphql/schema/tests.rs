use super::*;
use crate::MAX_DOCUMENT_BYTES;
use penstock_auth::{Account, Role};
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_config as config;
use penstock_model::catalogue::{IfMatch, Requester};
use penstock_model::change_feed::Watch;
use penstock_model::ingest::{Body, Limits, Mode, ingest};
use penstock_model::resource::Compiled;
use penstock_service::gateway::Gateway;
use serde_json::{Value as Json, json};

/// A gateway with test data.
struct Fixture {
    gateway: Gateway,
    graphql: GraphqlService,
    _dir: tempfile::TempDir,
}

const SITE: &str = "
type: object
path: Site:.
fields:
  uri: {type: id}
  name: {type: string, path: <urn:p:name>}
  opened: {type: date, path: <urn:p:opened>}
";

const PUMP: &str = "
type: object
path: Pump:.
fields:
  uri: {type: id}
  serial number: {type: string, path: <urn:p:serial>, required: true}
  weight: {type: number, path: <urn:p:weight>}
  runs: {type: integer, path: <urn:p:runs>}
  active: {type: boolean, path: <urn:p:active>}
  built: {type: dateTime, path: <urn:p:built>}
  site: {type: resource, path: <urn:p:site>}
  tags: {type: array, path: <urn:p:tag>}
  readings:
    type: array
    path: <urn:p:reading>
    elements:
      type: object
      path: Reading:.
      fields:
        uri: {type: id}
        value: {type: number, path: <urn:p:value>}
        sensor: {type: resource, path: <urn:p:sensor>}
  motor:
    type: object
    path: <urn:p:motor>/Motor:.
    fields:
      maker: {type: string, path: <urn:p:maker>}
";

impl Fixture {
    fn new(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut all = vec![format!("--service.data-dir={}", dir.path().display())];
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let loaded = config::load(&config::Sources { arguments: all, ..Default::default() });
        let gateway = Gateway::open(Arc::new(loaded.unwrap().settings), &mut |_| {}).unwrap();
        let graphql = GraphqlService::new(&gateway);
        Self { gateway, graphql, _dir: dir }
    }

    /// Adds sites and pumps.
    fn with_plant_data(arguments: &[&str]) -> Self {
        let fixture = Self::new(arguments);
        fixture.define("Site", SITE);
        fixture.define("Pump", PUMP);
        fixture.send(
            "Site",
            &json!([
                {"uri": "urn:site:1", "name": "North", "opened": "2020-02-29"},
                {"uri": "urn:site:2", "name": "South"},
            ]),
        );
        fixture.send("Pump", &json!([
            {"uri": "urn:pump:1", "serial number": "A1", "weight": 10.50, "runs": 12_345_678_901_u64,
             "active": true, "built": "2024-01-01T00:00:00Z", "site": "urn:site:1", "tags": ["b", "a"],
             "readings": [{"uri": "urn:reading:1", "value": 1.0, "sensor": "urn:sensor:1"},
                          {"uri": "urn:reading:2", "value": 2}],
             "motor": {"uri": "urn:motor:1", "maker": "Acme"}},
            {"uri": "urn:pump:2", "serial number": "A2", "weight": 9, "active": false,
             "built": "2024-01-01T00:30:00+01:00", "site": "urn:site:1", "tags": [],
             "readings": [], "motor": {"uri": "urn:motor:2", "maker": "Other"}},
            {"uri": "urn:pump:3", "serial number": "B1", "site": "urn:nowhere", "tags": ["c"],
             "readings": [{"uri": "urn:reading:3", "value": -5, "sensor": "urn:sensor:2"}]},
        ]));
        fixture
    }

    fn define(&self, name: &str, config: &str) {
        let body = json!({"name": name, "description": format!("All of {name}"), "config": config});
        let body = body.to_string();
        self.gateway
            .catalogue
            .put(Requester::new(&NoClient, "local"), body.as_bytes(), IfMatch::Any, &|_| Ok(()))
            .unwrap();
    }

    fn send(&self, name: &str, data: &Json) {
        let business_object = self.gateway.catalogue.get(name).unwrap();
        send(&self.gateway.store, &business_object, Mode::Add, data);
    }

    async fn run_query(&self, document: &str) -> Json {
        self.run_query_as(document, &Caller::local()).await
    }

    async fn run_query_as(&self, document: &str, caller: &Caller) -> Json {
        let query = Query { document: document.into(), ..Query::default() };
        serde_json::to_value(self.graphql.execute(query, caller).await).unwrap()
    }

    /// Returns the result of a document that must not fail.
    #[track_caller]
    fn expect_data(mut answer: Json) -> Json {
        assert_eq!(answer.get("errors"), None, "{answer}");
        answer["data"].take()
    }

    /// Returns the URIs on a page of pumps.
    async fn find_pumps(&self, arguments: &str) -> Vec<String> {
        let document = format!("{{ pumpConnection({arguments}) {{ nodes {{ uri }} }} }}");
        let data = Self::expect_data(self.run_query(&document).await);
        let nodes = data["pumpConnection"]["nodes"].as_array().unwrap().iter();
        nodes.map(|node| node["uri"].as_str().unwrap().replace("urn:pump:", "")).collect()
    }
}

fn send(store: &GuardedStore, business_object: &Compiled, mode: Mode, data: &Json) {
    let limits = Limits {
        nesting: 128,
        objects: 10_000,
        values: 1_000_000,
        idempotency_keys: 0,
        idempotency_bytes: 0,
        history: 10,
    };
    let body = json!({"data": data}).to_string();
    let request = penstock_model::ingest::Request {
        business_object,
        mode,
        check: &NoClient,
        caller: "local",
        api_key: None,
        traceparent: None,
        idempotency_key: None,
        lists_objects: true,
        watch: &Watch::default(),
        events: None,
        body: Body::Json(body.as_bytes()),
    };
    ingest(store, &limits, &request).unwrap();
}

fn service_account_caller() -> Caller {
    let account: Account = serde_json::from_value(json!({
        "id": "0199c1d2-7d3e-7000-8000-000000000001",
        "familyName": "Plant",
        "email": "s@machines.example",
        "role": "Contributor",
        "enabled": true,
        "identity": {"source": "service-account", "issuer": "https://idp.example", "name": "s"},
        "clientId": "plant",
        "version": 1,
        "createdAt": "2026-03-01T12:00:00.000Z",
    }))
    .unwrap();
    Caller { account: Some(Arc::new(account)), role: Role::User, ..Caller::local() }
}

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
        ("{weight: {eq: [1]}}", "compared"),
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
async fn the_schema_follows_the_catalogue() {
    let fixture = Fixture::new(&["--service.limits.graphql.fields=20"]);
    let graphql = &fixture.graphql;
    let sdl = || graphql.render_sdl(&Caller::local()).unwrap();
    assert!(!sdl().contains("interface Node"));
    fixture.define("Site", SITE);
    assert!(sdl().contains("type Site implements Node"));
    assert!(sdl().contains("\"\"\"\nAll of Site\n\"\"\"\ntype Site "), "{}", sdl());
    let before = graphql.0.current_schema();
    fixture.define("Site", &SITE.replace("opened:", "since:"));
    assert!(sdl().contains("since: Date"));
    let before = before.lease_all(&Memory::new(None)).unwrap().dynamic.sdl();
    assert!(before.contains("opened: Date"), "running queries keep their schema");
    // A Business Object that does not fit leaves the others unchanged.
    fixture.define("Pump", PUMP);
    assert!(!sdl().contains("type Pump"));
    let listed = Fixture::expect_data(
        fixture.run_query("{ businessObjects { name type typeMissing } }").await,
    );
    assert_eq!(listed["businessObjects"][0]["type"], Json::Null);
    let why = listed["businessObjects"][0]["typeMissing"].as_str().unwrap();
    assert!(why.contains("more than 20 fields"), "{why}");
    assert_eq!(listed["businessObjects"][1]["type"], "Site");
    for document in [
        "{ pump(uri: \"urn:pump:1\") { uri } }",
        "{ pumpConnection { totalCount } }",
        "{ object(uri: \"urn:pump:1\") { ... on Pump { uri } } }",
        "query($where: PumpFilter) { siteConnection(where: $where) { totalCount } }",
        "{ siteConnection { edges { ...E } } } fragment E on PumpEdge { cursor }",
    ] {
        let answer = fixture.run_query(document).await;
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert_eq!(
            message,
            "the Business Object \"Pump\" has no type in GraphQL: the Business Objects together have more than 20 \
             fields (service.limits.graphql.fields)",
            "{document}"
        );
    }
    let warnings = fixture.graphql.describe_missing_types();
    assert!(
        warnings.iter().any(|warning| warning.contains("\"Pump\" has no type")),
        "{warnings:?}"
    );
    fixture
        .gateway
        .catalogue
        .delete(Requester::new(&NoClient, "local"), "Site", IfMatch::Any)
        .unwrap();
    assert!(sdl().contains("type Pump") && !sdl().contains("type Site"));
}

/// The library's schema of all 300 Business Objects, at about 6 KB a field, would take 45 MB.
#[tokio::test]
async fn queries_build_only_the_types_they_need_among_300_business_objects() {
    let fixture = Fixture::new(&[]);
    let fields: Vec<_> = (0..19)
        .map(|field| format!("  f{field}: {{type: string, path: <urn:p:f{field}>}}\n"))
        .collect();
    let fields = fields.concat();
    for number in 0..300 {
        let config =
            format!("type: object\npath: Kind{number}:.\nfields:\n  uri: {{type: id}}\n{fields}");
        fixture.define(&format!("Kind {number}"), &config);
    }
    fixture.send("Kind 299", &json!([{"uri": "urn:k:1", "f18": "last"}]));
    let built = fixture.graphql.0.current_schema();
    assert_eq!(built.model.business_objects.len(), 300);
    assert_eq!(fixture.graphql.describe_missing_types(), None);
    let ask = async |document: &str| Fixture::expect_data(fixture.run_query(document).await);
    for number in 0..300 {
        ask(&format!("{{ kind{number}Connection {{ totalCount }} }}")).await;
        assert!(built.cached_fields() <= 2_500, "{}", built.cached_fields());
    }
    let found = ask("{ object(uri: \"urn:k:1\", as: Kind299) { ... on Kind299 { f18 } } }").await;
    assert_eq!(found["object"]["f18"], "last");
    // The error for a misspelled name suggests the right one, although its type was not built before.
    let answer = fixture.run_query("{ kind7Conection { totalCount } }").await;
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("Did you mean \"kind7Connection\""), "{message}");
    // The schema for introspection has all Business Objects and is not cached.
    let types = ask("{ __schema { types { name } } }").await;
    let types = types["__schema"]["types"].as_array().unwrap().len();
    assert!(types > 1_800, "{types}");
    assert!(built.cached_fields() <= 2_500, "{}", built.cached_fields());
    // Queries still work when memory is short.
    let tight = Memory::new(Some(1 << 20));
    let refused = built.lease_all(&tight).err().unwrap();
    assert!(refused.detail.contains("the whole schema has 6300 fields"), "{}", refused.detail);
    let query = parse_query("{ kind5(uri: \"urn:k:1\") { f1 } }").unwrap();
    built.lease_for(&query, &tight).unwrap();
}

#[tokio::test]
async fn a_key_for_one_business_object_sees_only_that_one() {
    let fixture = Fixture::with_plant_data(&[]);
    let id = fixture.gateway.catalogue.get("Site").unwrap().object.id.clone();
    let credential = Credential::ApiKey { id: "k".into(), business_object: Some(id) };
    let caller = Caller { credential, ..service_account_caller() };
    let sdl = fixture.graphql.render_sdl(&caller).unwrap();
    assert!(
        sdl.contains("type Site") && !sdl.contains("Pump") && !sdl.contains("targets"),
        "{sdl}"
    );
    let document = "{ businessObjects { name } siteConnection { nodes { uri referredBy { nodes { uri } } } } object(uri: \"urn:pump:1\") { uri } }";
    assert_eq!(
        Fixture::expect_data(fixture.run_query_as(document, &caller).await),
        json!({"businessObjects": [{"name": "Site"}],
               "siteConnection": {"nodes": [{"uri": "urn:site:1", "referredBy": {"nodes": []}},
                                            {"uri": "urn:site:2", "referredBy": {"nodes": []}}]},
               "object": null})
    );
    for hidden in ["{ pumpConnection { nodes { uri } } }", "{ targets { name } }"] {
        assert!(fixture.run_query_as(hidden, &caller).await.get("data").is_none(), "{hidden}");
    }
}

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
}

#[tokio::test]
async fn documents_that_are_not_executed_have_no_data() {
    let fixture = Fixture::new(&[]);
    for document in [
        "",
        "{",
        "{ nothing }",
        "query A { __typename } query B { __typename }",
        "subscription { a }",
        "query($x: [Foo] = [1]) { __typename }",
        "query($x: Foo = 1) { __typename }",
        "query($x: AuthenticatedUser) { __typename }",
        "query($x: [NumberFilter] = [{eq: 1}]) { __typename }",
        "query($x: [Direction] = [ASC]) { __typename }",
        "query($x: [[Foo!]!]! = [[1]]) { __typename @include(if: $x) }",
    ] {
        let answer = fixture.run_query(document).await;
        assert!(answer.get("data").is_none(), "{document}: {answer}");
        assert!(answer["errors"][0]["message"].is_string(), "{answer}");
    }
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
async fn mutations_are_distinguished_from_queries() {
    let query = |document: &str, operation: Option<&str>| Query {
        document: document.into(),
        operation: operation.map(str::to_owned),
        reads_only: true,
        ..Query::default()
    };
    let both = "query Q { __typename } mutation M { a }";
    let schema = Fixture::new(&[]).graphql;
    assert!(
        schema.execute(query("mutation { a }", None), &service_account_caller()).await.would_change
    );
    assert!(schema.execute(query(both, Some("M")), &service_account_caller()).await.would_change);
    assert!(!schema.execute(query(both, Some("Q")), &service_account_caller()).await.would_change);
}

#[tokio::test]
async fn oversized_documents_are_refused() {
    let fixture = Fixture::new(&[]);
    let repeated = |part: &str| part.repeat(MAX_DOCUMENT_BYTES / part.len() / 2);
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
async fn tools_can_introspect_the_schema() {
    // The introspection query of GraphiQL, as far as its cost matters: nine levels of ofType.
    let of_type = "ofType { name kind ".repeat(9) + &"}".repeat(9);
    let document = format!(
        "{{ __schema {{ queryType {{ name }} types {{ ...T }} directives {{ name locations args {{ ...I }} }} }} }} \
         fragment T on __Type {{ kind name description fields(includeDeprecated: true) {{ name args {{ ...I }} type {{ ...R }} }} \
         inputFields {{ ...I }} interfaces {{ ...R }} enumValues {{ name }} possibleTypes {{ ...R }} }} \
         fragment I on __InputValue {{ name type {{ ...R }} defaultValue }} \
         fragment R on __Type {{ kind name {of_type} }}"
    );
    let fixture = Fixture::with_plant_data(&[]);
    let answer = fixture.run_query(&document).await;
    assert!(answer["data"]["__schema"]["types"].is_array(), "{answer}");
    let sdl = fixture.graphql.render_sdl(&Caller::local()).unwrap();
    assert!(sdl.contains("authenticatedUser: AuthenticatedUser!"));
}

#[tokio::test]
async fn reads_never_see_half_a_commit() {
    let fixture = Fixture::with_plant_data(&[]);
    let (store, pump) =
        (fixture.gateway.store.clone(), fixture.gateway.catalogue.get("Pump").unwrap());
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
            send(&store, &pump, Mode::Replace, &data);
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

/// A panic of the library would end the gateway. `PENSTOCK_FUZZ_ROUNDS` sets the number of rounds.
#[tokio::test]
async fn mutated_documents_never_panic() {
    let fixture = Fixture::with_plant_data(&[]);
    let documents = [
        "query Q($n: Int = 1, $w: PumpFilter, $l: [String!]! = [\"a\"]) { pumpConnection(first: $n, where: $w) { nodes { ...P } totalCount } }",
        "fragment P on Pump { uri weight readings { value asObject { uri } } siteObject(as: Site) { ... on Site { name } __typename } }",
        "{ a: pumpConnection(where: {or: [{weight: {after: 1.5e3}}, {not: {tags: {in: [\"a\"]}}}]}, orderBy: {field: uri, direction: DESC}) { edges { cursor node { ...P } } pageInfo { endCursor } } }",
        "{ referredBy(uri: \"urn:site:1\", type: Pump) { nodes { uri ... on Pump { motor { maker } } } edges { type path } } }",
        "{ __schema { types { name fields { name type { ofType { name } } } } } __type(name: \"Pump\") { kind } businessObjects { name } exports(status: queued) { nodes { id } } }",
        "{ authenticatedUser { id @include(if: true) roles @skip(if: false) } object(uri: \"urn:pump:1\") { __typename ... on Node { uri } } }",
        "mutation M { a } subscription S { b } query R($x: [[Foo!]] = [[1]]) { __typename }",
    ];
    let tokens: Vec<Vec<&str>> = documents.iter().map(|document| split_tokens(document)).collect();
    let rounds =
        std::env::var("PENSTOCK_FUZZ_ROUNDS").map_or(500, |rounds| rounds.parse().unwrap());
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    for _ in 0..rounds {
        let mut all = tokens[draw(tokens.len())].clone();
        all.extend(&tokens[1]);
        for _ in 0..draw(4) {
            let (from, to) = (draw(all.len()), draw(all.len()));
            let other = &tokens[draw(tokens.len())];
            match draw(5) {
                0 => drop(all.remove(from)),
                1 => all.swap(from, to),
                2 => all.insert(from, other[draw(other.len())]),
                3 => all[from] = other[draw(other.len())],
                _ => all.insert(to, all[from]),
            }
        }
        let document = all.join(" ");
        let eq = [json!(1), json!("x"), Json::Null][draw(3)].clone();
        let variables = json!({"n": draw(3), "w": {"weight": {"eq": eq}}, "x": [null]});
        let Json::Object(variables) = variables else { unreachable!() };
        let query = Query { document, variables, ..Query::default() };
        let answer = fixture.graphql.execute(query, &Caller::local()).await;
        assert!(answer.data.is_some() || !answer.errors.is_empty());
    }
}

/// Splits a document into words, numbers and punctuation.
fn split_tokens(document: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = document.trim_start();
    while !rest.is_empty() {
        let length = match rest.chars().next().unwrap() {
            '"' => rest.char_indices().skip(1).find(|(_, c)| *c == '"').unwrap().0 + 1,
            c if c.is_alphanumeric() || c == '_' || c == '$' => rest
                .char_indices()
                .skip(1)
                .find(|(_, c)| !c.is_alphanumeric() && *c != '_' && *c != '.')
                .map_or(rest.len(), |(end, _)| end),
            '.' => 3,
            c => c.len_utf8(),
        };
        let (token, more) = rest.split_at(length);
        tokens.push(token);
        rest = more.trim_start();
    }
    tokens
}

#[tokio::test]
async fn values_of_another_type_are_shown_like_the_view_or_null_with_an_error() {
    use oxrdf::vocab::xsd;
    use oxrdf::{Literal, NamedNode, Quad};
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
