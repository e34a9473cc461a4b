//! `If-Match` and `If-None-Match` (RFC 9110, 13.1): reads that the client has already, and writes whose condition is false.
use penstock_test_support::prelude::*;

const PUMP: &str = "/api/v1/business-objects/Pump";
const URI: &str = "https://plant.example/p/1";
const SHAPES: &str = "<urn:S> a <http://www.w3.org/ns/shacl#NodeShape> ; <http://www.w3.org/ns/shacl#targetNode> <urn:a> .";

#[tokio::test(flavor = "multi_thread")]
async fn every_route_with_an_etag_answers_304_to_who_has_it() {
    let server = TestApp::plain().await;
    server.define_with(&json!({"review": "optional"})).await;
    server.ingest("ADD", &json!([{"uri": URI, "name": "one"}])).await.expect(200);
    let export = server.deliver("Pump").await;
    let content = format!("/api/v1/exports/{}/content", export["id"].text());
    server.put("/api/v1/groups/leaders", &json!({})).await.expect(201);
    server.send("PUT", "/api/v1/shapes/pumps", &[TURTLE], SHAPES).await.expect(201);
    let change = json!({"data": [{"uri": URI, "name": "two"}]});
    let change = server.post(&format!("{PUMP}?mode=REPLACE&review=true"), &change).await;
    let change = change.expect(202).json()["id"].string();
    let person = server.cookie_of(Role::User);
    let user = person.read("/api/v1/users/me").await["id"].string();
    let view = json!({"name": "all", "businessObject": "Pump", "shared": true});
    let view = server.post("/api/v1/views", &view).await.expect(201).json()["id"].string();
    let samples = [
        ("/api/v1/business-objects/{id}", PUMP.to_owned()),
        ("/api/v1/business-objects/{id}/objects/{uri}", format!("{PUMP}/objects/{}", escaped(URI))),
        ("/api/v1/changes/{id}", format!("/api/v1/changes/{change}")),
        ("/api/v1/exports/{id}/content", content),
        ("/api/v1/groups/{name}", "/api/v1/groups/leaders".to_owned()),
        ("/api/v1/shapes/{name}", "/api/v1/shapes/pumps".to_owned()),
        ("/api/v1/users/me", "/api/v1/users/me".to_owned()),
        ("/api/v1/users/{id}", format!("/api/v1/users/{user}")),
        ("/api/v1/views/{id}", format!("/api/v1/views/{view}")),
    ];
    let document = server.read("/api-doc/openapi.json").await;
    let has_etag = |path: &Value| path["get"]["responses"]["200"]["headers"].get("ETag").is_some();
    let documented = document["paths"].as_object().unwrap().iter();
    let documented: Vec<_> = documented.filter(|(_, item)| has_etag(item)).collect();
    assert!(documented.len() >= 7, "{documented:?}");
    for (route, _) in documented {
        let sample = samples.iter().find(|(sampled, _)| sampled == route);
        let path = &sample.unwrap_or_else(|| panic!("{route} has an ETag and no sample here")).1;
        let get = async |method: &str, tags: &str| {
            // An API key has no account of its own, so no ETag either.
            let caller = if route.ends_with("/me") { &person } else { &*server };
            caller.send(method, path, &[("If-None-Match", tags)], "").await
        };
        let whole = get("GET", "\"none\"").await.expect(200);
        let etag = whole.header("etag").to_owned();
        assert!(!etag.is_empty() && !whole.body.is_empty(), "{path}");
        for tags in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".to_owned()] {
            let known = get("GET", &tags).await.expect(304);
            assert_eq!((known.body.len(), known.header("etag")), (0, etag.as_str()), "{path}");
            get("HEAD", &tags).await.expect(304);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_precondition_is_false_changes_nothing() {
    let server = TestApp::start(&["--service.sparql.update=true"]).await;
    server.define().await;
    server.put("/api/v1/groups/leaders", &json!({})).await.expect(201);
    server.send("PUT", "/api/v1/shapes/pumps", &[TURTLE], SHAPES).await.expect(201);
    let graph = "/sparql/graphs?graph=urn:g";
    let space = "/api/v1/namespaces/Tank";
    let one = "<urn:a> <urn:b> 1 .";
    let if_match = |tags| ("If-Match", tags);
    let none = ("If-None-Match", "*");

    // What does not exist has no version.
    for tags in ["*", "\"1\""] {
        for method in ["PUT", "POST"] {
            server.send(method, graph, &[TURTLE, if_match(tags)], one).await.problem(412);
        }
        server.send("PUT", space, &[JSON, if_match(tags)], "{}").await.problem(412);
    }
    server.get(graph).await.problem(404);
    server.get(space).await.problem(404);
    server.send("PUT", graph, &[TURTLE, none], one).await.expect(201);
    server.send("PUT", space, &[JSON, none], "{}").await.expect(201);

    let existing = [
        ("PUT", graph, TURTLE, "<urn:a> <urn:b> 2 ."),
        ("POST", graph, TURTLE, "<urn:a> <urn:b> 2 ."),
        ("DELETE", graph, TURTLE, ""),
        ("PUT", space, JSON, "{}"),
        ("DELETE", space, JSON, ""),
    ];
    for (method, path, media_type, body) in existing {
        server.send(method, path, &[media_type, none], body).await.problem(412);
        server.send(method, path, &[media_type, if_match("\"1\"")], body).await.problem(412);
        server.send(method, path, &[media_type, if_match("1")], body).await.problem(400);
    }
    for path in [PUMP, "/api/v1/groups/leaders", "/api/v1/shapes/pumps"] {
        for tags in ["*", "\"1\"", "W/\"1\""] {
            server.send("DELETE", path, &[("If-None-Match", tags)], "").await.problem(412);
        }
    }
    let turtle = server.page(graph).await;
    assert!(turtle.contains('1') && !turtle.contains('2'), "{turtle}");
    server.send("DELETE", graph, &[if_match("*")], "").await.expect(204);
    server.send("DELETE", space, &[if_match("*")], "").await.expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_etag_of_what_was_deleted_is_not_that_of_what_is_created_again() {
    let server = TestApp::plain().await;
    let (leaders, shapes) = ("/api/v1/groups/leaders", "/api/v1/shapes/pumps");
    let (users, email) = ("/api/v1/users", "ada@plant.example");
    let user = format!("{users}/{}", escaped(email));
    let create = async || {
        server.define().await;
        server.put(leaders, &json!({})).await.expect(201);
        server.send("PUT", shapes, &[TURTLE], SHAPES).await.expect(201);
        let new = json!({"email": email, "password": "correct horse battery", "roles": ["User"]});
        server.post(users, &new).await.expect(201);
    };
    let mut pump = definition();
    pump["description"] = json!("changed");
    let changes = [
        (PUMP, JSON, pump.to_string()),
        (leaders, JSON, json!({"claimValues": ["x"]}).to_string()),
        (shapes, TURTLE, format!("{SHAPES} # changed")),
        (user.as_str(), JSON, json!({"givenName": "Ada"}).to_string()),
    ];
    create().await;
    for (path, media_type, body) in changes.clone() {
        server.send("PUT", path, &[media_type, ("If-Match", "\"1\"")], body).await.expect(200);
    }
    for (path, ..) in &changes {
        server.delete(path).await.expect(204);
    }
    create().await;
    for (path, media_type, body) in changes {
        for stale in ["\"1\"", "\"2\""] {
            let headers = [media_type, ("If-Match", stale)];
            server.send("PUT", path, &headers, body.clone()).await.problem(412);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_ingested_only_if_there_is_none() {
    let server = TestApp::with_pumps().await;
    let path = format!("{PUMP}?mode=REPLACE");
    let object = format!("{PUMP}/objects/{}", escaped(URI));
    let send = async |name: &str, tags: &str| {
        let headers = [JSON, ("If-None-Match", tags)];
        let body = json!({"data": [{"uri": URI, "name": name}]}).to_string();
        server.send("POST", &path, &headers, body).await
    };
    send("one", "*").await.expect(200);
    send("two", "*").await.problem(412);
    let etag = server.get(&object).await.expect(200).header("etag").to_owned();
    send("two", &etag).await.problem(412);
    assert_eq!(server.get(&object).await.json()["name"], "one");
    send("two", "\"another\"").await.expect(200);
    send("three", "no tag").await.problem(400);
    let lines = [NDJSON, ("If-None-Match", "*")];
    server.send("POST", &path, &lines, "{}\n").await.problem(400);
}
