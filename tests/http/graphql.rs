//! GraphQL over HTTP: the authenticated user, and every status and media type of its specification.
use penstock_test_support::prelude::*;

const RESPONSE: &str = "application/graphql-response+json";
const USER: &str = "{ authenticatedUser { id email roles serviceAccount } }";

async fn post(server: &TestApp, accept: &str, body: &Value) -> Answer {
    let headers = [JSON, ("Accept", accept)];
    server.send("POST", "/graphql", &headers, body.to_string()).await
}

#[tokio::test]
async fn the_user_is_returned_by_post_and_get() {
    let server = TestApp::plain().await;
    let by_post = post(&server, "*/*", &json!({"query": USER})).await.expect(200);
    assert_eq!(by_post.header("content-type"), "application/json; charset=utf-8");
    let user = by_post.json()["data"]["authenticatedUser"].clone();
    assert_eq!((&user["roles"], &user["serviceAccount"]), (&json!(["Admin"]), &json!(false)));
    // The query and answer of the service's specification.
    let id = post(&server, "*/*", &json!({"query": "query { authenticatedUser { id } }"})).await;
    assert_eq!(id.json(), json!({"data": {"authenticatedUser": {"id": user["id"]}}}));

    let query = "query Q($x: Boolean!) { __typename authenticatedUser @include(if: $x) { id } }";
    let query = escaped(query);
    let path = format!("/graphql?query={query}&operationName=Q&variables=%7B%22x%22%3Afalse%7D");
    let by_get = server.get(&path).await.expect(200);
    assert_eq!(by_get.json(), json!({"data": {"__typename": "Query"}}));
    // Without the variable, or with its name misspelled, nothing runs.
    for variables in ["", "&variables=%7B%22y%22%3Afalse%7D"] {
        let path = format!("/graphql?query={query}&operationName=Q{variables}");
        let refused = server.read(&path).await;
        assert!(refused.get("data").is_none(), "{refused}");
        assert!(refused["errors"][0]["message"].has("$x is missing"));
    }
    let sdl = server.get("/graphql/schema.graphql").await.expect(200);
    assert!(String::from_utf8_lossy(&sdl.body).contains("type AuthenticatedUser"));
    // Introspection by tools requires credentials, like everything here.
    for path in
        ["/graphql?query=%7B__schema%7BqueryType%7Bname%7D%7D%7D", "/graphql/schema.graphql"]
    {
        connect(server.address, "GET", path, &[], "").await.problem(401);
        server.get(path).await.expect(200);
    }
    server.stop().await;
}

#[tokio::test]
async fn the_types_of_the_gateway_have_all_members_of_the_api() {
    let server = TestApp::plain().await;
    let document = server.read("/api-doc/openapi.json").await;
    for (name, schema) in [
        ("BusinessObject", "BusinessObject"),
        ("Export", "Export"),
        ("Target", "Target"),
        ("AuthenticatedUser", "User"),
        ("PenstockChange", "Change"),
    ] {
        let query = format!("{{ __type(name: \"{name}\") {{ fields {{ name }} }} }}");
        let found = post(&server, "*/*", &json!({ "query": query })).await.json();
        let fields = found["data"]["__type"]["fields"].list();
        let members = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
        assert!(members.len() > 10, "{name}");
        for member in members.keys() {
            assert!(fields.iter().any(|field| field["name"] == *member), "{name}.{member}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_business_object_keeps_its_name_before_the_type_of_changes() {
    let server = TestApp::with_pumps().await;
    let query =
        "{ penstockPendingChanges { id } __type(name: \"PenstockChange\") { fields { name } } }";
    let ask = async |query: &str| post(&server, "*/*", &json!({ "query": query })).await.json();
    let found = ask(query).await;
    assert_eq!(found["data"]["penstockPendingChanges"], json!([]));
    assert!(found.to_string().contains("changeOwners"), "{found}");
    server.define_with(&json!({"name": "PenstockChange"})).await;
    let found = ask(query).await;
    assert!(found["errors"].to_string().contains("penstockPendingChanges"), "{found}");
    let found = ask("{ __type(name: \"PenstockChange\") { fields { name } } }").await.to_string();
    assert!(found.contains("flow") && !found.contains("changeOwners"), "{found}");
    server.stop().await;
}

#[tokio::test]
async fn statuses_and_media_types_are_those_of_the_specification() {
    let server = TestApp::plain().await;
    let good = json!({"query": "{ __typename }"});
    for accept in
        [RESPONSE, "application/graphql-response+json; charset=utf-8, application/json; q=0.9"]
    {
        let answer = post(&server, accept, &good).await.expect(200);
        assert_eq!(answer.header("content-type"), format!("{RESPONSE}; charset=utf-8"));
        assert_eq!(answer.header("vary").to_ascii_lowercase().matches("accept").count(), 1);
    }
    // An operation that is not executed gets 400 with the GraphQL media type, and 200 otherwise. There is no `data` in
    // either case.
    for query in ["{", "{ nothing }", "", "query Q($x: Int!) { __typename @skip(if: $x) }"] {
        for (accept, status) in [(RESPONSE, 400), ("application/json", 200)] {
            let answer = post(&server, accept, &json!({"query": query})).await.expect(status);
            let members = answer.json();
            assert!(members.get("data").is_none() && members["errors"][0]["message"].is_string());
        }
    }
    // An invalid request gets 400 with either media type.
    for body in each(json!([
        {}, {"query": 1}, {"query": "{a}", "variables": "{}"}, {"query": "{a}", "operationName": 7},
        {"query": "{a}", "extensions": []}, [good],
    ])) {
        for accept in [RESPONSE, "application/json"] {
            let answer = post(&server, accept, &body).await.expect(400);
            assert!(answer.json()["errors"][0]["message"].is_string(), "{body}");
        }
    }
    server.send("POST", "/graphql", &[JSON], "{").await.expect(400);
    server.send("POST", "/graphql", &[JSON], "{\"query\": \"\u{fffd}").await.expect(400);
    for kind in [
        "text/plain",
        "application/graphql",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin1",
    ] {
        let headers = [("Content-Type", kind)];
        server.send("POST", "/graphql", &headers, good.to_string()).await.problem(415);
    }
    server.send("POST", "/graphql", &[], good.to_string()).await.problem(415);
    post(&server, "text/html", &good).await.problem(406);
    post(&server, "*/*", &json!({"query": "#".repeat(70_000)})).await.problem(413);
    server.stop().await;
}

#[tokio::test]
async fn mutations_are_refused_by_get() {
    let server = TestApp::plain().await;
    let answer = server.get("/graphql?query=mutation%7Ba%7D").await.expect(405);
    assert_eq!(answer.header("allow"), "POST");
    assert!(answer.json()["errors"][0]["message"].has("POST"));
    server.get("/graphql").await.expect(400);
    server.get("/graphql?query=%7B__typename%7D&variables=%7B").await.expect(400);
    server.get("/graphql?query=%7B__typename%7D&other=1").await.problem(400);
    for method in ["PUT", "DELETE"] {
        server.send(method, "/graphql", &[], "").await.problem(405);
    }
    server.stop().await;
}

#[tokio::test]
async fn expensive_queries_are_refused_before_execution() {
    let server = TestApp::plain().await;
    let laughs =
        (0..30).map(|i| format!("fragment f{i} on Query {{ ...f{n} ...f{n} }} ", n = i + 1));
    let laughs = laughs.collect::<Vec<_>>().concat();
    let laughs = format!("{{ ...f0 }} fragment f30 on Query {{ __typename }} {laughs}");
    let aliases = (0..1001).map(|i| format!("a{i}: __typename ")).collect::<Vec<_>>().concat();
    let deep = format!("{{{}__typename{}", "authenticatedUser{".repeat(25), "}".repeat(26));
    for query in [laughs, format!("{{ {aliases} }}"), deep, "{".repeat(20_000)] {
        let answer = post(&server, RESPONSE, &json!({"query": query})).await.expect(400);
        assert!(answer.json().get("data").is_none());
    }
    server.stop().await;
}

#[tokio::test]
async fn queries_use_the_current_business_objects() {
    let server = TestApp::plain().await;
    let define = async |name: &str, field: &str, enabled: bool| {
        let config = format!(
            "{{type: object, path: '{name}:.', fields: {{{field}: {{type: string, path: <urn:p:{field}>}}}}}}"
        );
        let body = json!({"name": name, "config": config, "enabled": enabled});
        let answer = server.put("/api/v1/business-objects", &body).await;
        assert!(answer.status < 300, "{:?}", answer.json());
    };
    define("Pump", "name", true).await;
    define("Site", "name", true).await;
    for name in ["Pump", "Site"] {
        let path = format!("/api/v1/business-objects/{name}");
        let data = json!({"data": [{"uri": format!("urn:x:{name}"), "name": "n"}]});
        server.post(&path, &data).await.expect(200);
    }
    let ask =
        async |query: &str, accept: &str| post(&server, accept, &json!({"query": query})).await;
    let query = "{ pumpConnection { nodes { name } } }";
    let found = json!({"data": {"pumpConnection": {"nodes": [{"name": "n"}]}}});
    assert_eq!(ask(query, RESPONSE).await.expect(200).json(), found);
    // Disabled Business Objects can be read like others.
    define("Pump", "name", false).await;
    assert_eq!(ask(query, RESPONSE).await.expect(200).json(), found);
    define("Pump", "title", true).await;
    ask(query, RESPONSE).await.expect(400);
    let title = ask("{ pumpConnection { nodes { uri title } } }", RESPONSE).await.expect(200);
    let nodes = &title.json()["data"]["pumpConnection"]["nodes"];
    assert_eq!(*nodes, json!([{"uri": "urn:x:Pump", "title": null}]));
    // A failing field is null and has an error, and the other data is returned: 200.
    let partly =
        ask("{ a: pump(uri: \"no iri\") { uri } targets { name } }", RESPONSE).await.expect(200);
    assert_eq!(partly.json()["data"], json!({"a": null, "targets": []}));
    assert_eq!(partly.json()["errors"][0]["path"], json!(["a"]));

    // A key that is limited to one Business Object.
    let bound = server.with_key(Role::User, Some("Site"));
    let sdl = bound.page("/graphql/schema.graphql").await;
    assert!(sdl.contains("type Site ") && !sdl.contains("Pump"), "{sdl}");
    let own = json!({"query": "{ businessObjects { name } site(uri: \"urn:x:Site\") { name } object(uri: \"urn:x:Pump\") { uri } }"});
    let own = bound.post("/graphql", &own).await.expect(200);
    let expected =
        json!({"businessObjects": [{"name": "Site"}], "site": {"name": "n"}, "object": null});
    assert_eq!(own.json(), json!({"data": expected}));
    let accept = [JSON, ("Accept", RESPONSE)];
    let other = json!({"query": query}).to_string();
    bound.send("POST", "/graphql", &accept, other).await.expect(400);
    bound.get("/api/v1/targets").await.problem(403);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_of_pages_wait_for_a_permit_like_queries() {
    let server = TestApp::start(&["--service.limits.graphql.time=100ms"]).await;
    let id = server.define().await["id"].string();
    let uri = "https://plant.example/p/1";
    server.ingest("ADD", &json!([{"uri": uri, "name": "n"}])).await.expect(200);
    let permits = server.gateway().query_permits.clone();
    let mut held = Vec::new();
    // Two of each account.
    for account in ["a", "b"] {
        while let Some(permit) = permits.try_acquire(account, 1) {
            held.push(permit);
        }
    }
    assert_eq!(held.len(), 4);
    let list = format!("/admin/objects/{id}");
    let search = format!("{list}?test=contains&text=plant");
    let object = format!("/admin/object?uri={uri}");
    server.get(&list).await.expect(200);
    for path in [&search, &object] {
        let busy = server.get(path).await.expect(503);
        assert_eq!(busy.header("retry-after"), "1");
        // The page of the list keeps its filters, and leads to the same search.
        assert_eq!(busy.text().contains(">Retry</a>"), path == &search, "{}", busy.text());
    }
    drop(held);
    for path in [&search, &object] {
        assert!(server.page(path).await.contains(uri), "{path}");
    }
}
