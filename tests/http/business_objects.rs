//! Business Objects over HTTP: created, listed, replaced and deleted, with their versions.
use penstock_test_support::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

const ALL: &str = "/api/v1/business-objects";

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_created_read_replaced_and_deleted() {
    let server = TestApp::plain().await;
    let created = server.put(ALL, &definition()).await.expect(201);
    let object = created.json();
    let id = object["id"].string();
    assert_eq!(created.header("location"), format!("{ALL}/{id}"));
    assert_eq!(created.header("etag"), "\"1\"");
    assert_eq!(created.header("cache-control"), "no-store");
    object.includes(&json!({"version": 1, "createdNamespaces": ["Pump", "Part"]}));

    for name in [&id, "Pump"] {
        assert_eq!(server.read(&format!("{ALL}/{name}")).await["id"], *id);
    }
    let mut changed = definition();
    changed["description"] = json!("other");
    let replaced = server.put(ALL, &changed).await.expect(200);
    assert_eq!(replaced.json()["id"], *id);
    assert_eq!(replaced.header("etag"), "\"2\"");

    changed["name"] = json!("Pümpe 1");
    let renamed = server.put(&format!("{ALL}/{id}"), &changed).await.expect(200);
    assert_eq!(renamed.json()["version"], 3);
    server.get(&format!("{ALL}/Pump")).await.problem(404);
    server.get(&format!("{ALL}/{}", escaped("Pümpe 1"))).await.expect(200);
    let schema = server.get(&format!("{ALL}/{id}/schema")).await.expect(200);
    assert_eq!(schema.header("content-type"), "application/schema+json");
    assert_eq!(schema.json()["$schema"], "https://json-schema.org/draft/2020-12/schema");

    let deleted = server.delete(&format!("{ALL}/{id}")).await.expect(204);
    assert!(deleted.body.is_empty());
    server.delete(&format!("{ALL}/{id}")).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_are_shacl_or_shex_by_accept() {
    let server = TestApp::plain().await;
    let id = server.define().await["id"].string();
    let path = format!("{ALL}/Pump/shapes");
    let turtle = server.get(&path).await.expect(200);
    assert_eq!(turtle.header("content-type"), "text/turtle; charset=utf-8");
    assert_eq!(turtle.header("vary"), "Accept");
    let text = turtle.text();
    assert!(text.contains("@prefix sh: <http://www.w3.org/ns/shacl#>"), "{text}");
    assert!(text.contains(&format!("<urn:penstock:{id}:shape> a sh:NodeShape")), "{text}");
    for (accept, media_type, part) in [
        ("text/shex", "text/shex; charset=utf-8", "start = @<urn:penstock:"),
        ("application/ld+json", "application/ld+json", "\"@id\""),
        ("application/n-triples;q=0.5, text/html", "application/n-triples", "shacl#NodeShape"),
        ("application/rdf+xml", "application/rdf+xml", "<rdf:RDF"),
        ("application/n-quads", "application/n-quads", "shacl#NodeShape"),
        ("application/trig", "application/trig", "sh:NodeShape"),
        // A browser.
        ("text/html, */*;q=0.8", "text/turtle; charset=utf-8", "sh:NodeShape"),
    ] {
        let answer = server.get_with(&path, &[("Accept", accept)]).await.expect(200);
        assert_eq!(answer.header("content-type"), media_type);
        let text = answer.text();
        assert!(text.contains(part), "{accept}: {text}");
    }
    let refused = server.get_with(&path, &[HTML]).await;
    refused.problem(406)["detail"].text().has_all(&["text/turtle", "text/shex"]);
    server.get(&format!("{ALL}/None/shapes")).await.problem(404);
    server.get(&format!("{path}?format=ttl")).await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_honoured() {
    let server = TestApp::with_pumps().await;
    // An unchanged definition keeps its version, so each PUT sends another one.
    let count = AtomicU64::new(0);
    let send = async |method: &str, path: &str, name: &str, value: &str| {
        let mut body = definition();
        body["description"] = json!(count.fetch_add(1, Ordering::Relaxed).to_string());
        let headers = [JSON, (name, value)];
        server.send(method, path, &headers, body.to_string()).await
    };
    let one = format!("{ALL}/Pump");
    for (method, path) in [("PUT", ALL), ("PUT", &one), ("DELETE", &one)] {
        for stale in ["\"7\"", "W/\"1\"", "\"7\", \"8\""] {
            send(method, path, "If-Match", stale).await.problem(412);
        }
        send(method, path, "If-Match", "1").await.problem(400);
    }
    send("PUT", ALL, "If-None-Match", "*").await.problem(412);
    send("PUT", ALL, "If-Match", "\"1\"").await.expect(200);
    send("PUT", &one, "If-Match", "\"9\", \"2\"").await.expect(200);
    send("PUT", &one, "If-Match", "*").await.expect(200);
    send("DELETE", &one, "If-Match", "\"4\"").await.expect(204);
    send("PUT", ALL, "If-Match", "*").await.problem(412);
    let created = send("PUT", ALL, "If-None-Match", "*").await.expect(201).json();
    // An id or an empty name is refused, whatever the condition.
    let mut body = definition();
    for (name, header) in [(&created["id"], "If-None-Match"), (&json!(""), "If-Match")] {
        body["name"] = name.clone();
        server.send("PUT", ALL, &[JSON, (header, "*")], body.to_string()).await.problem(422);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_error_of_a_definition_is_reported() {
    let server = TestApp::plain().await;
    let mut bad = definition();
    bad["config"] = json!(
        "type: object\npath: Pump:.\nfields:\n  a:\n    type: strin\n    path: <https://e.example/a>\n"
    );
    bad["pushTargets"] = json!([{"bucketName": "../x"}]);
    let problem = server.put(ALL, &bad).await.problem(422);
    let errors = problem["errors"].list();
    assert!(errors.iter().any(|error| error["line"] == 5), "{problem}");
    let is_target = |error: &Value| {
        error["pointer"].as_str().is_some_and(|at| at.starts_with("/pushTargets/0"))
    };
    assert!(errors.iter().any(is_target), "{problem}");
    server.send("PUT", ALL, &[JSON], "{\"name\": ").await.problem(400);
    server.send("PUT", ALL, &[JSON], "[]").await.problem(422);
    assert_eq!(server.get(ALL).await.json(), json!({"items": [], "next": null}));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged() {
    let server = TestApp::plain().await;
    for name in ["c", "a", "b"] {
        server.define_with(&json!({"name": name})).await;
    }
    let items = server.all(&format!("{ALL}?limit=2"), 2).await;
    let names: Vec<&str> = items.iter().map(|item| item["name"].text()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_works_everywhere() {
    let server = TestApp::start(&[
        "--service.base-url=http://localhost/gate/way",
        "--server.forward-headers-strategy=native",
        "--service.trusted-proxies=127.0.0.1",
    ])
    .await;
    let created = server.put(&format!("/gate/way{ALL}"), &definition()).await.expect(201);
    assert!(created.header("location").starts_with("/gate/way/api/v1/business-objects/"));
    server.get(created.header("location")).await.expect(200);
    let mut other = definition();
    other["name"] = json!("Other");
    let headers = [JSON, ("X-Forwarded-Prefix", "/elsewhere")];
    let created = server.send("PUT", ALL, &headers, other.to_string()).await.expect(201);
    assert!(created.header("location").starts_with("/elsewhere/api/v1/business-objects/"));
    // The path of the request as the client sent it, whether the proxy has passed the prefix on or stripped it.
    let none = format!("{ALL}/none");
    let stripped = server.get_with(&none, &headers).await.problem(404);
    assert_eq!(stripped["instance"], format!("/elsewhere{none}"));
    for path in [none.clone(), format!("/gate/way{none}")] {
        let problem = server.get(&path).await.problem(404);
        assert_eq!(problem["instance"], format!("/gate/way{none}"), "{path}");
    }
    let document = server.get_with("/api-doc/openapi.json", &headers).await.expect(200).json();
    assert_eq!(document["servers"][0]["url"], "/elsewhere");
    let page = server.get("/gate/way/swagger-ui").await.expect(302);
    assert_eq!(page.header("location"), "/gate/way/swagger-ui/");
}
