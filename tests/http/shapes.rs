//! Shapes graphs that users define: their life, their use, and what happens when one cannot be used.
use penstock_store::{Options, Read, Store};
use penstock_test_support::prelude::*;

const PUMPS: &str = "/api/v1/shapes/pumps";
const PUMP: &str = "/api/v1/business-objects/Pump";
const SHAPES: &str = "\
@prefix sh: <http://www.w3.org/ns/shacl#> .
# Every pump has a name.
<https://plant.example/PumpShape> a sh:NodeShape ;
  sh:targetSubjectsOf <https://plant.example/flow> ;
  sh:property [ sh:path <https://plant.example/name> ; sh:minCount 1 ] .
";
const JSON_LD: &str = r#"{"@id": "https://plant.example/S", "@type": "http://www.w3.org/ns/shacl#NodeShape",
    "http://www.w3.org/ns/shacl#targetNode": {"@id": "https://plant.example/p"}}"#;

async fn put(caller: &Caller, path: &str, text: &str, headers: &[(&str, &str)]) -> Answer {
    let mut headers = headers.to_vec();
    if !headers.iter().any(|(name, _)| *name == "Content-Type") {
        headers.push(TURTLE);
    }
    caller.send("PUT", path, &headers, text.to_owned()).await
}

fn pump(validation: Option<Value>) -> Value {
    let mut body = definition();
    if let Some(validation) = validation {
        body["validation"] = validation;
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shapes_graph_is_created_replaced_and_deleted() {
    let server = TestApp::plain().await;
    assert_eq!(server.read("/api/v1/shapes").await, json!({"items": [], "next": null}));
    let created = put(&server, PUMPS, SHAPES, &[("If-None-Match", "*")]).await.expect(201);
    assert_eq!((created.header("etag"), created.header("location")), ("\"1\"", PUMPS));
    let metadata = created.json();
    for (member, value) in [
        ("name", json!("pumps")),
        ("mediaType", json!("text/turtle")),
        ("version", json!(1)),
        ("usedBy", json!([])),
        ("warnings", json!([])),
    ] {
        assert_eq!(metadata[member], value, "{metadata}");
    }
    put(&server, PUMPS, SHAPES, &[("If-None-Match", "*")]).await.problem(412);

    // The text is as it was sent; what is known about it is JSON.
    let text = server.get(PUMPS).await.expect(200);
    assert_eq!(
        (text.text().as_str(), text.header("content-type")),
        (SHAPES, "text/turtle; charset=utf-8")
    );
    assert_eq!((text.header("etag"), text.header("vary")), ("\"1\"", "Accept"));
    let known = server.get_with(PUMPS, &[("Accept", "application/json")]).await.expect(200);
    assert_eq!((known.json(), known.header("etag")), (metadata.clone(), "\"1\""));
    server.get_with(PUMPS, &[("Accept", "image/png")]).await.problem(406);
    let list = server.read("/api/v1/shapes?limit=1").await;
    assert_eq!(list, json!({"items": [metadata], "next": null}));

    let again = put(&server, PUMPS, SHAPES, &[("If-Match", "\"1\"")]).await.expect(200);
    assert_eq!(again.json(), metadata, "the same text changes nothing");
    let other = put(&server, PUMPS, JSON_LD, &[("Content-Type", "application/ld+json")]).await;
    let other = other.expect(200).json();
    other.includes(&json!({"version": 2, "mediaType": "application/ld+json"}));
    assert_eq!(server.page(PUMPS).await, JSON_LD);
    put(&server, PUMPS, SHAPES, &[("If-Match", "\"1\"")]).await.problem(412);
    put(&server, "/api/v1/shapes/others", SHAPES, &[("If-Match", "*")]).await.problem(412);

    server.send("DELETE", PUMPS, &[("If-Match", "\"1\"")], "").await.problem(412);
    server.send("DELETE", PUMPS, &[("If-Match", "\"2\"")], "").await.expect(204);
    server.send("DELETE", PUMPS, &[("If-Match", "\"2\"")], "").await.problem(404);
    server.get(PUMPS).await.problem(404);
    let events = server.items("/api/v1/audit?what=shapes-graph").await;
    let events = events.iter().map(|event| {
        assert!(event["by"].is_string() && event["detail"].has("\"pumps\""));
        event["what"].string()
    });
    assert_eq!(
        events.collect::<Vec<_>>(),
        ["shapes-graph.deleted", "shapes-graph.replaced", "shapes-graph.created"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_faulty_shapes_graph_changes_nothing() {
    let server = TestApp::plain().await;
    put(&server, PUMPS, SHAPES, &[]).await.expect(201);
    let problem = put(&server, PUMPS, "<urn:a> a\n   nonsense .", &[]).await.problem(422);
    let error = &problem["errors"][0];
    assert!(error["line"] == 2 && error["column"].is_u64(), "{problem}");
    let import = format!("{SHAPES}<urn:x> <http://www.w3.org/2002/07/owl#imports> <http://e/> .");
    put(&server, PUMPS, &import, &[]).await.problem(422);
    put(&server, PUMPS, SHAPES, &[("Content-Type", "text/plain")]).await.problem(415);
    put(&server, PUMPS, &" ".repeat((1 << 20) + 1), &[]).await.problem(413);
    put(&server, "/api/v1/shapes/a%2Fb", SHAPES, &[]).await.problem(422);
    assert_eq!(server.get(PUMPS).await.expect(200).header("etag"), "\"1\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_change_shapes_graphs() {
    let server = TestApp::plain().await;
    put(&server, PUMPS, SHAPES, &[]).await.expect(201);
    let contributor = server.with_key(Role::Contributor, None);
    contributor.get(PUMPS).await.expect(200);
    contributor.get("/api/v1/shapes").await.expect(200);
    put(&contributor, PUMPS, JSON_LD, &[]).await.problem(403);
    contributor.delete(PUMPS).await.problem(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shapes_graph_in_use_stays_and_its_use_is_not_left_out_silently() {
    let server = TestApp::plain().await;
    let reject = json!({"shapes": ["pumps"], "mode": "reject"});
    let path = "/api/v1/business-objects";
    let problem = server.put(path, &pump(Some(reject.clone()))).await.problem(422);
    assert_eq!(problem["errors"][0]["pointer"], "/validation/shapes/0", "{problem}");
    put(&server, PUMPS, SHAPES, &[]).await.expect(201);
    let defined = server.put(path, &pump(Some(reject.clone()))).await.expect(201).json();
    assert_eq!(defined["validation"], reject);
    assert!(!defined["warnings"].to_string().contains("/validation"), "{defined}");
    assert_eq!(server.put(PUMP, &defined).await.expect(200).json(), defined);
    let list = server.items("/api/v1/shapes").await;
    assert_eq!(list[0]["usedBy"], json!(["Pump"]));

    server.delete(PUMPS).await.refused(409, "\"Pump\"");
    put(&server, PUMPS, "nonsense", &[]).await.problem(422);

    server.put(PUMP, &pump(None)).await.refused(409, "`validation`");
    assert_eq!(server.read(PUMP).await, defined);
    let off = json!({"shapes": [], "mode": "off"});
    let without = server.put(PUMP, &pump(Some(off))).await.expect(200).json();
    assert_eq!(without.get("validation"), None);
    server.put(PUMP, &pump(Some(reject))).await.expect(200);
    let forced = server.put(&format!("{PUMP}?force=true"), &pump(None)).await.expect(200);
    assert_eq!(forced.json().get("validation"), None);
    server.delete(PUMPS).await.expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_leaves_out_several_protections_names_all() {
    let server = TestApp::plain().await;
    put(&server, PUMPS, SHAPES, &[]).await.expect(201);
    let config = "type: object\npath: Pump:.\nfields:\n  name: {type: string, path: <urn:n>, required: true}\n";
    let mut body = pump(Some(json!({"shapes": ["pumps"], "mode": "warn"})));
    body["config"] = json!(format!("{config}key: name\n"));
    server.define_object(&body).await;
    let mut body = pump(None);
    body["config"] = json!(config);
    let problem = server.put(PUMP, &body).await.problem(409);
    let detail = problem["detail"].text();
    assert!(detail.contains("`key`") && detail.contains("`validation`"), "{detail}");
    assert_eq!(problem["errors"].list().len(), 2, "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_graph_that_does_not_compile_does_not_prevent_the_start() {
    let server = TestApp::plain().await;
    put(&server, PUMPS, SHAPES, &[]).await.expect(201);
    let reject = json!({"shapes": ["pumps"], "mode": "reject"});
    server.define_object(&pump(Some(reject))).await;
    let dir = server.stop().await.unwrap();
    {
        // As a later version may have stored it.
        let path = dir.path().join("data/store");
        let store = Store::open(&path, Options::default(), &mut |_| {}).unwrap();
        let stored = store.read().read_document("shapes-graphs", b"pumps").unwrap().unwrap();
        let mut stored: Value = serde_json::from_slice(&stored).unwrap();
        stored["text"] = json!("<urn:s> a <http://www.w3.org/ns/shacl#NewerShape> .");
        let changed = stored.to_string();
        let put = store.transact::<_, penstock_store::Error>(|t| {
            t.put_document("shapes-graphs", b"pumps", changed.as_bytes())
        });
        put.unwrap();
    }
    let server = TestApp::reopen(dir.path()).await;
    let item = server.read("/api/v1/shapes").await["items"][0].clone();
    assert_eq!(item["warnings"].list().len(), 1, "{item}");
    let text = server.page(PUMPS).await;
    assert!(text.contains("NewerShape"), "{text}");
    let pump = server.read(PUMP).await;
    assert_eq!(pump["warnings"][0]["pointer"], "/validation/shapes/0", "{pump}");
    let named = json!([{"name": "a", "flow": 5}]);
    let refused = server.ingest("ADD", &named).await;
    assert!(refused.text().contains("\\\"pumps\\\""), "{refused:?}");
    assert!(refused.status >= 400, "{refused:?}");
    put(&server, PUMPS, SHAPES, &[]).await.expect(200);
    server.ingest("ADD", &named).await.expect(200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_define_change_and_delete_a_shapes_graph() {
    let server = TestApp::plain().await;
    let post = async |path: &str, fields: &[(&str, &str)]| server.form(path, fields).await;
    let new =
        |text: &'static str| [("name", "my pumps"), ("format", "text/turtle"), ("text", text)];
    let wrong = post("/admin/new-shapes", &new("<urn:a> a\n nonsense .")).await.expect(422).text();
    assert!(wrong.contains("data-line=\"2\"") && wrong.contains("Line 2, column"), "{wrong}");
    assert!(wrong.contains("nonsense ."), "the text is kept: {wrong}");
    post("/admin/new-shapes", &new(SHAPES)).await.expect(303);
    post("/admin/new-shapes", &new(SHAPES)).await.expect(412);
    let list = server.page("/admin/shapes").await;
    list.has_all(&["/admin/shapes/my%20pumps", "SHACL in Turtle"]);
    let page = "/admin/shapes/my%20pumps";
    let shown = server.page(page).await;
    assert!(shown.contains("# Every pump has a name."), "{shown}");
    let save = |version: &'static str, text: &'static str| {
        [("format", "application/ld+json"), ("text", text), ("version", version)]
    };
    post(page, &save("1", JSON_LD)).await.expect(303);
    let stale = post(page, &save("1", JSON_LD)).await.expect(412).text();
    assert!(stale.contains("Another user has changed this shapes graph"), "{stale}");
    let asked = server.page(&format!("{page}/delete")).await;
    assert!(asked.contains("name=\"version\" value=\"2\""), "{asked}");
    post(&format!("{page}/delete"), &[("version", "1")]).await.expect(303);
    server.get("/api/v1/shapes/my%20pumps").await.expect(200);

    // The editor of a Business Object chooses among the shapes graphs.
    let editor = server.page("/admin/business-objects/new").await;
    assert!(editor.contains("name=\"shapes.my pumps\""), "{editor}");
    let config = definition()["config"].string();
    let fields = [
        ("name", "Pump"),
        ("enabled", "true"),
        ("config", config.as_str()),
        ("shapes.my pumps", "true"),
        ("validation", "reject"),
    ];
    post("/admin/business-objects/new", &fields).await.expect(303);
    let defined = server.read(PUMP).await;
    assert_eq!(defined["validation"], json!({"shapes": ["my pumps"], "mode": "reject"}));
    post(&format!("{page}/delete"), &[]).await.expect(303);
    server.get("/api/v1/shapes/my%20pumps").await.expect(200);
    // A form from before the field existed must not switch it off.
    let edit = format!("/admin/business-objects/{}/edit", defined["id"].text());
    post(&edit, &[("name", "Pump"), ("config", &config), ("version", "1")]).await.expect(409);
    let off = [("name", "Pump"), ("config", &config), ("version", "1"), ("validation", "off")];
    post(&edit, &off).await.expect(303);
    post(&format!("{page}/delete"), &[("version", "2")]).await.expect(303);
    server.get("/api/v1/shapes/my%20pumps").await.problem(404);
}

/// What refuses data of pumps and their parts.
const LIMITS: &str = "\
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix p: <https://plant.example/> .
p:FlowShape a sh:NodeShape ; sh:targetSubjectsOf p:flow ;
  sh:property [ sh:path p:flow ; sh:maxInclusive 100 ; sh:message \"too fast\"@en, \"zu schnell\"@de ] .
p:PartShape a sh:NodeShape ; sh:targetSubjectsOf p:label ; sh:property [ sh:path p:label ; sh:minLength 3 ] .
";

/// A gateway with a pump and its part, whose Business Object refuses violations, and with two other Business Objects
/// that write to the same objects.
async fn start_protected() -> TestApp {
    let server = TestApp::start(&["--service.sparql.update=true"]).await;
    put(&server, PUMPS, LIMITS, &[]).await.expect(201);
    server.define_with(&json!({"validation": {"shapes": ["pumps"], "mode": "reject"}})).await;
    for (name, path, field) in [
        ("Meter", "Pump", "flow: {type: number, path: <https://plant.example/flow>}"),
        ("Label", "Part", "label: {type: string, path: <https://plant.example/label>}"),
    ] {
        let config = format!("type: object\npath: {path}:.\nfields:\n  {field}\n");
        server.define_with(&json!({"name": name, "config": config})).await;
    }
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_stores_a_violation() {
    let server = start_protected().await;
    let stored = json!([{"name": "a", "flow": 5, "parts": [{"label": "seal"}]}]);
    let stored = server.ingest("ADD", &stored).await.expect(200).json();
    let pump = stored["objects"][0]["uri"].text();
    let part = stored["objects"][0]["nested"][0]["uri"].text();
    let dump = async || server.dump().await;
    let before = dump().await;

    // Through its own Business Object, through another one with the same objects, and through one with what is nested.
    let fast = json!([{"uri": pump, "flow": 500}]);
    for mode in ["UPDATE", "REPLACE"] {
        let problem = server.ingest(mode, &fast).await.problem(422);
        assert_eq!(problem["errors"][0]["pointer"], "/data/0/flow", "{mode}: {problem}");
    }
    server.ingest("ADD", &json!([{"flow": 500}])).await.problem(422);
    let to = |name: &str| format!("/api/v1/business-objects/{name}?mode=UPDATE");
    let body = json!({"data": [{"uri": pump, "flow": 500}]});
    server.post(&to("Meter"), &body).await.problem(422);
    let body = json!({"data": [{"uri": part, "label": "x"}]});
    let problem = server.post(&to("Label"), &body).await.problem(422);
    assert_eq!(problem["errors"][0]["focusNode"], part, "{problem}");

    // As lines, and as an object that is retried.
    let line = json!({"uri": pump, "flow": 500}).to_string();
    server.send("POST", &to("Meter"), &[NDJSON], line.clone()).await.problem(422);
    let skip = format!("{}&onError=skip", to("Pump"));
    let skipped = server.send("POST", &skip, &[NDJSON], line.clone()).await.expect(200).lines();
    let letter = &skipped[0]["rejected"][0];
    assert_eq!(letter["errors"][0]["shape"], "https://plant.example/FlowShape", "{letter}");
    let (ingestion, letter) = (skipped[0]["ingestionId"].text(), letter["id"].text());
    let retry = format!("/api/v1/ingestions/{ingestion}/rejected/{letter}/retry");
    server.post_empty(&retry).await.problem(422);
    server.send("POST", &retry, &[JSON], line).await.problem(422);

    // As RDF: each names the Business Object, and changes nothing.
    let flow = "<https://plant.example/flow>";
    let update = format!(
        "DELETE {{ <{pump}> {flow} ?f }} INSERT {{ <{pump}> {flow} 500 }} WHERE {{ <{pump}> {flow} ?f }}"
    );
    let update_type = [("Content-Type", "application/sparql-update")];
    let graph =
        before.lines().find(|line| line.contains(flow)).unwrap().rsplit_once('<').unwrap().1;
    let graph = format!("/sparql/graphs?graph={}", escaped(graph.trim_end_matches("> .")));
    let triple = format!("<{pump}> {flow} 500 .");
    let nested = format!("<{part}> <https://plant.example/label> \"x\" .");
    for (method, path, headers, text) in [
        ("POST", "/sparql/update", &update_type, update.as_str()),
        ("POST", "/sparql/graphs?graph=urn:g", &[TURTLE], &triple),
        ("PUT", "/sparql/graphs?graph=urn:g", &[TURTLE], &nested),
        ("PUT", &graph, &[TURTLE], "<urn:a> <urn:b> <urn:c> ."),
        ("DELETE", &graph, &[TURTLE], ""),
    ] {
        let problem = server.send(method, path, headers, text.to_owned()).await.problem(409);
        assert!(problem["detail"].has("\"Pump\""), "{path}: {problem}");
    }
    let loaded = server.control("POST", "/control/load?format=ttl", &[], triple).await;
    let loaded = loaded.expect(200).json();
    assert!(loaded["fault"].has("\"Pump\""), "{loaded}");
    assert_eq!(dump().await, before);

    // Only an Admin overrides it, and the audit trail has it.
    let bypass = "/sparql/update?bypass=true";
    let contributor = server.with_key(Role::Contributor, None);
    contributor.send("POST", bypass, &update_type, update.clone()).await.problem(403);
    assert_eq!(dump().await, before);
    server.send("POST", bypass, &update_type, update).await.expect(200);
    assert_ne!(dump().await, before);
    let audit = server.page("/api/v1/audit?limit=5").await;
    assert!(audit.contains("bypass=true"), "{audit}");
    // What violated before does not prevent a repair.
    let slow = json!([{"uri": pump, "flow": 50}]);
    server.ingest("UPDATE", &slow).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_message_of_a_shape_has_the_language_of_the_request() {
    let server = start_protected().await;
    let path = "/api/v1/business-objects/Pump";
    for (languages, message) in
        [("de-AT, en;q=0.5", "zu schnell"), ("fr, en;q=0.5", "too fast"), ("fr", "too fast")]
    {
        let headers = [JSON, ("Accept-Language", languages)];
        let body = json!({"data": [{"flow": 500}]}).to_string();
        let problem = server.send("POST", path, &headers, body).await.problem(422);
        let text = problem["errors"][0]["message"].text();
        assert!(text.contains(message), "{languages}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_object_violates_a_shape_in_shex() {
    let server = TestApp::plain().await;
    let schema = "PREFIX p: <https://plant.example/>\nstart = @p:S\np:S { p:name . }\n";
    let shex = [("Content-Type", "text/shex")];
    put(&server, PUMPS, schema, &shex).await.expect(201);
    server.define_with(&json!({"validation": {"shapes": ["pumps"], "mode": "reject"}})).await;
    let problem = server.ingest("ADD", &json!([{"flow": 5}])).await.problem(422);
    assert_eq!(problem["errors"][0]["pointer"], "/data/0", "{problem}");
    server.ingest("ADD", &json!([{"flow": 5, "name": "a"}])).await.expect(200);
    let prefix = schema.replace("<https://plant.example/>", "<urn:p:>");
    let problem = put(&server, PUMPS, &prefix, &shex).await.problem(422);
    problem["errors"][0].includes(&json!({"line": 1, "column": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_validated_when_it_is_submitted_and_when_it_is_approved() {
    let server = TestApp::plain().await;
    put(&server, PUMPS, LIMITS, &[]).await.expect(201);
    let author = Person::sign_in(&server, Role::Contributor).await;
    let approver = Person::sign_in(&server, Role::Contributor).await;
    let definition = json!({
        "validation": {"shapes": ["pumps"], "mode": "reject"},
        "review": "required",
        "approvers": [format!("user:{}", approver.id)],
    });
    server.define_with(&definition).await;
    let path = "/api/v1/business-objects/Pump";
    let submit =
        async |flow: u32| author.post(path, &json!({"data": [{"name": "a", "flow": flow}]})).await;
    let problem = submit(500).await.problem(422);
    assert_eq!(problem["errors"][0]["pointer"], "/data/0/flow", "{problem}");
    let change = submit(80).await.expect(202).json();
    // What conformed when it was submitted violates the shapes that apply when it is approved.
    put(&server, PUMPS, &LIMITS.replace("100", "50"), &[]).await.expect(200);
    let id = change["id"].text();
    let problem = approver.step(id, "approve", "\"1\"").await.problem(409);
    assert!(problem.to_string().contains("FlowShape"), "{problem}");
    let stored = server.items(&format!("{path}/objects")).await;
    assert_eq!(json!(stored), json!([]));
    put(&server, PUMPS, LIMITS, &[]).await.expect(200);
    approver.step(id, "approve", "\"1\"").await.expect(200);
}
