//! Definitions: warnings, the confirmation of large losses, namespaces and prefixes, and their audit events.
use penstock_test_support::prelude::*;

const ALL: &str = "/api/v1/business-objects";
const PUMP: &str = "/api/v1/business-objects/Pump";
const BASE: &str = "--service.base-url=https://plant.example";

/// Returns a mapping with this root namespace and a resource field `kind`.
fn config(namespace: &str) -> String {
    format!(
        "prefixes:\n  ex: https://plant.example/\ntype: object\npath: {namespace}:.\nfields:\n  \
         name: {{type: string, path: ex:name}}\n  \
         kind: {{type: resource, path: rdf:type}}\n  \
         tags: {{type: array, path: ex:tag, elements: {{type: resource}}}}\n"
    )
}

/// Returns the definition of `Pump` with these members.
fn pump(namespace: &str, others: &Value) -> Value {
    let mut definition = definition();
    definition["config"] = json!(config(namespace));
    definition.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
    definition
}

/// Returns the positions and messages of an answer's warnings.
#[track_caller]
fn warnings(answer: &Value) -> Vec<(String, String)> {
    let all = answer["warnings"].as_array().unwrap_or_else(|| panic!("no warnings: {answer}"));
    let place = |warning: &Value| match warning["pointer"].as_str() {
        Some(pointer) => pointer.to_owned(),
        None => format!("{}:{}", warning["line"], warning["column"]),
    };
    let all = all.iter().map(|one| (place(one), one["message"].string()));
    all.collect()
}

#[track_caller]
fn assert_warning(answer: &Value, place: &str, words: &[&str]) {
    let found = warnings(answer);
    assert!(
        found.iter().any(|(at, message)| at == place && words.iter().all(|w| message.contains(w))),
        "{place} {words:?} is not in {found:#?}"
    );
}

/// Returns the audit events of definitions, oldest first, as event and detail.
async fn audit(server: &TestApp) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for what in ["business-object", "namespace"] {
        let page = server.items(&format!("/api/v1/audit?what={what}")).await;
        for event in page {
            assert!(event["by"].is_string(), "{event}");
            assert_eq!(event["from"], "127.0.0.1", "{event}");
            let text = |name: &str| event[name].string();
            found.push((text("id").parse::<u64>().unwrap(), text("what"), text("detail")));
        }
    }
    found.sort();
    found.into_iter().map(|(_, what, detail)| (what, detail)).collect()
}

async fn members(server: &TestApp) -> usize {
    server.items(&format!("{PUMP}/objects")).await.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_definition_has_no_warnings_and_its_answer_can_be_sent_again() {
    let server = TestApp::start(&[BASE]).await;
    let body = pump("Pump", &json!({"namespaces": [{"name": "Pump", "uriBase": "urn:pump:"}]}));
    let created = server.put(ALL, &body).await.expect(201).json();
    assert_eq!(created["warnings"], json!([]));
    let read = server.read(PUMP).await;
    assert_eq!(read, created);
    assert_eq!(server.read(ALL).await["items"], json!([created]));
    let again = server.put(PUMP, &read).await.expect(200).json();
    assert_eq!((&again["version"], &again["warnings"]), (&json!(1), &json!([])));

    let namespace = server.read("/api/v1/namespaces/Pump").await;
    assert_eq!(namespace["warnings"], json!([]));
    let again = server.put("/api/v1/namespaces/Pump", &namespace).await.expect(200).json();
    assert_eq!(again, namespace);
}

#[tokio::test(flavor = "multi_thread")]
async fn unsatisfiable_conditions_cause_warnings() {
    let server = TestApp::start(&[BASE]).await;
    let condition = |predicate: &str, value: &str| json!({"predicate": predicate, "value": value});
    let conditions = json!([
        condition("ex:kind", "ex:Pump"),
        condition("ex:name", "ex:Pump"),
        condition("rdf:type", "ex:Pump"),
        condition("rdf:type", "ex:Valve"),
        condition("ex:tag", "ex:a"),
        condition("ex:tag", "ex:b"),
    ]);
    let body = pump("Pump", &json!({"conditions": conditions}));
    let answer = server.put(ALL, &body).await.expect(201).json();
    let of_conditions: Vec<_> =
        warnings(&answer).into_iter().filter(|(at, _)| at.starts_with("/conditions")).collect();
    let at: Vec<&str> = of_conditions.iter().map(|(at, _)| at.as_str()).collect();
    assert_eq!(at, ["/conditions/0", "/conditions/1", "/conditions/3"], "{of_conditions:?}");
    assert_warning(&answer, "/conditions/0", &["no field", "<https://plant.example/kind>"]);
    assert_warning(&answer, "/conditions/1", &["`name` has literals", "type: resource"]);
    assert_warning(
        &answer,
        "/conditions/3",
        &["another condition requires", "`kind` has one value"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_an_object_can_satisfy_cause_no_warnings() {
    let server = TestApp::start(&[BASE]).await;
    let config = "type: object\npath: Pump:.\nfields:\n  \
                  title: {type: string, path: <urn:title>, language: en}\n  \
                  titel: {type: string, path: <urn:title>, language: de}\n  \
                  names: {type: languageMap, path: <urn:name>}\n  \
                  tags: {type: languageMap, elements: array, path: <urn:tag>}\n  \
                  labels: {type: languageMap, path: <urn:label>}\n  \
                  label: {type: string, path: <urn:label>, language: en}\n  \
                  state: {type: resource, path: <urn:state>, values: {RUN: <urn:Running>}}\n  \
                  goal: {type: resource, path: <urn:goal>, values: {RUN: <urn:Running>}}\n  \
                  steps: {type: array, ordered: true, path: <urn:step>, elements: string}\n";
    let text = |predicate: &str, value: &str, language: &str| json!({"predicate": predicate, "value": value, "language": language});
    let conditions = json!([
        text("urn:title", "Pump", "en"),
        text("urn:title", "Pumpe", "de"),
        text("urn:name", "Pump", "en"),
        text("urn:name", "Pumpe", "de"),
        {"predicate": "urn:goal", "value": "urn:Running"},
        {"predicate": "urn:state", "value": "urn:Stopped"},
        {"predicate": "urn:step", "value": "start"},
        text("urn:title", "Valve", "en"),
        text("urn:name", "Valve", "en"),
        text("urn:tag", "wet", "en"),
        text("urn:tag", "hot", "en"),
        text("urn:label", "Pump", "en"),
        text("urn:label", "Pumpe", "de"),
        text("urn:label", "Valve", "en"),
    ]);
    let body = pump("Pump", &json!({"config": config, "conditions": conditions}));
    let answer = server.put(ALL, &body).await.expect(201).json();
    let found = warnings(&answer);
    let at: Vec<&str> = found
        .iter()
        .map(|(at, _)| at.as_str())
        .filter(|at| at.starts_with("/conditions"))
        .collect();
    let expected = [5, 6, 7, 8, 13].map(|index| format!("/conditions/{index}"));
    assert_eq!(at, expected, "{found:?}");
    assert_warning(&answer, "/conditions/5", &["`state` has no code"]);
    assert_warning(&answer, "/conditions/6", &["`steps` is an ordered array"]);
    assert_warning(
        &answer,
        "/conditions/7",
        &["another condition requires \"Pump\"@en", "`title`"],
    );
    assert_warning(&answer, "/conditions/8", &["`names` has one text in each language"]);
    assert_warning(&answer, "/conditions/13", &["requires \"Pump\"@en", "`label` has one value"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nested_object_in_the_root_s_namespace_causes_a_warning() {
    let server = TestApp::start(&[BASE]).await;
    let config = "type: object\npath: Pump:.\nfields:\n  parts:\n    type: array\n    path: <urn:part>\n    \
                  elements:\n      type: object\n      path: Pump:.\n      fields:\n        \
                  name: {type: string, path: <urn:name>}\n";
    let answer = server.put(ALL, &pump("Pump", &json!({"config": config}))).await;
    assert_warning(
        &answer.expect(201).json(),
        "9:13",
        &["config: field `parts[]`", "exported twice"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn default_bases_and_overlapping_bases_cause_warnings() {
    let server = TestApp::start(&[BASE]).await;
    let created = server.put(ALL, &pump("Pump", &json!({}))).await.expect(201).json();
    assert_warning(
        &created,
        "/config",
        &["`Pump`", "default base <https://plant.example/id/Pump/>", "`namespaces:", "\"uriBase\""],
    );
    let tank = server.put("/api/v1/namespaces/Tank", &json!({})).await.expect(201).json();
    assert_warning(
        &tank,
        "/uriBase",
        &["default base <https://plant.example/id/Tank/>", "`uriBase`"],
    );
    let inner = json!({"uriBase": "https://plant.example/id/Pump/parts"});
    let part = server.put("/api/v1/namespaces/Part", &inner).await.expect(201).json();
    assert_warning(&part, "/uriBase", &["`Part` begins with the base of `Pump`"]);
    let read = server.read(PUMP).await;
    assert_warning(&read, "/config", &["is a prefix of the base of `Part`"]);

    // A base with data cannot be changed, so there is no warning any more.
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    let read = server.read(PUMP).await;
    assert!(!warnings(&read).iter().any(|(_, message)| message.contains("default base")));
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_without_a_target_cause_warnings() {
    let server = TestApp::start(&[BASE]).await;
    let more = json!({"pushTargets": [], "schedule": "0 5 * * *", "exportOnChange": true});
    let answer = server.put(ALL, &pump("Pump", &more)).await.expect(201).json();
    assert_warning(&answer, "/schedule", &["without `pushTargets` nothing is exported"]);
    assert_warning(&answer, "/exportOnChange", &["without `pushTargets` nothing is exported"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_root_namespace_with_a_similar_name_causes_a_warning() {
    let server = TestApp::start(&[BASE]).await;
    server.put(ALL, &pump("Pump", &json!({}))).await.expect(201);
    let other = pump("Pmup", &json!({"name": "Other"}));
    let answer = server.put(ALL, &other).await.expect(201).json();
    assert!(!warnings(&answer).iter().any(|(_, message)| message.contains("has no objects")));
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    let read = server.read(&format!("{ALL}/Other")).await;
    assert_warning(&read, "/config", &["`Pmup` has no objects, but `Pump` has some"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_root_namespace_needs_confirmation() {
    let server = TestApp::start(&[BASE]).await;
    server.put(ALL, &pump("Pump", &json!({}))).await.expect(201);
    let objects: Vec<Value> = (0..5).map(|i| json!({"name": format!("P-{i}")})).collect();
    server.ingest("ADD", &json!(objects)).await.expect(200);
    let mistyped = pump("Pmup", &json!({}));
    for path in [ALL, PUMP] {
        let problem = server.put(path, &mistyped).await.problem(409);
        let detail = problem["detail"].text();
        detail.has_all(&["5 of 5 objects", "from `Pump` to `Pmup`, which has no objects"]);
        assert!(problem.to_string().contains("?force=true"), "{problem}");
        server.put(&format!("{path}?force=false"), &mistyped).await.problem(409);
        server.put(&format!("{path}?force=yes"), &mistyped).await.problem(400);
    }
    // The refused definition was not saved.
    server.get("/api/v1/namespaces/Pmup").await.problem(404);
    assert_eq!(
        (members(&server).await, server.get(PUMP).await.json()["version"].clone()),
        (5, json!(1))
    );

    // The version is checked first.
    let stale = [JSON, ("If-Match", "\"7\"")];
    let forced = format!("{ALL}?force=true");
    server.send("PUT", &forced, &stale, mistyped.to_string()).await.problem(412);
    let fresh = [JSON, ("If-Match", "\"1\"")];
    let saved = server.send("PUT", &forced, &fresh, mistyped.to_string()).await.expect(200).json();
    assert_warning(&saved, "/config", &["`Pmup` has no objects, but `Pump` has some"]);
    assert_eq!(members(&server).await, 0);
    let events = audit(&server).await;
    let (what, detail) = events.last().unwrap();
    assert_eq!(what, "business-object.replaced");
    assert!(detail.contains("force=true: 5 of 5 objects"), "{detail}");
    // Restoring the old definition removes no objects.
    server.put(ALL, &pump("Pump", &json!({}))).await.expect(200);
    assert_eq!(members(&server).await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_remove_more_than_half_need_confirmation() {
    let server = TestApp::start(&[BASE]).await;
    server.put(ALL, &pump("Pump", &json!({}))).await.expect(201);
    let objects: Vec<Value> = (0..4)
        .map(|i| json!({"name": format!("P-{i}"), "kind": format!("https://plant.example/{}", i % 2)}))
        .collect();
    server.ingest("ADD", &json!(objects)).await.expect(200);
    let with = |conditions: Value| pump("Pump", &json!({"conditions": conditions}));
    let kind = |value: &str| json!({"predicate": "rdf:type", "value": value});
    // Exactly half of the objects is not more than half.
    server.put(ALL, &with(json!([kind("ex:1")]))).await.expect(200);
    assert_eq!(members(&server).await, 2);
    let detail =
        server.put(ALL, &with(json!([kind("ex:0")]))).await.problem(409)["detail"].string();
    detail.has_all(&["2 of 2 objects", "its conditions change"]);
    // The same IRI in another notation is the same condition, and a new description does not matter.
    let whole = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
    let mut same = with(json!([{"predicate": whole, "value": "https://plant.example/1"}]));
    same["description"] = json!("other");
    server.put(ALL, &same).await.expect(200);
    server.put(ALL, &with(json!([]))).await.expect(200);
    assert_eq!(members(&server).await, 4);
    server.put(&format!("{ALL}?force=true"), &with(json!([kind("ex:9")]))).await.expect(200);
    assert_eq!(members(&server).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_are_defined_with_the_business_object() {
    let server = TestApp::start(&[BASE, "--service.namespace.auto-create=false"]).await;
    server.put(ALL, &pump("Pump", &json!({}))).await.problem(422);
    let namespaces =
        json!([{"name": "Pump", "uriBase": "https://p.example/", "generator": "counter"}]);
    let with = |namespaces: &Value| pump("Pump", &json!({"namespaces": namespaces}));
    let created = server.put(ALL, &with(&namespaces)).await.expect(201).json();
    created.includes(&json!({"namespaces": namespaces, "createdNamespaces": ["Pump"]}));
    assert_eq!(server.get(PUMP).await.json()["namespaces"], namespaces);

    // A namespace without data may change, and an omitted member keeps its value.
    let other = json!([{"name": "Pump", "uriBase": "https://q.example/"}]);
    server.put(PUMP, &with(&other)).await.expect(200);
    let namespace = server.read("/api/v1/namespaces/Pump").await;
    namespace.includes(&json!({"uriBase": "https://q.example/", "generator": "counter"}));
    let stored = server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200).json();
    assert_eq!(stored["objects"][0]["uri"], "https://q.example/1");

    let problem = server.put(PUMP, &with(&namespaces)).await.problem(409);
    assert_eq!(problem["errors"][0]["pointer"], "/namespaces/0", "{problem}");
    assert!(problem["detail"].has("its graph holds data"), "{problem}");
    assert_eq!(server.get(PUMP).await.json()["version"], 2);
    // A namespace that another Business Object uses cannot be changed.
    let tank = json!({"name": "Tank", "config": config("Tank"), "namespaces": [{"name": "Tank"}]});
    let tank = server.put(ALL, &tank).await.expect(201).json();
    assert_eq!(tank["namespaces"], json!([{"name": "Tank"}]));
    let twice = json!([{"name": "Tank", "uriBase": "urn:tank:"}]);
    server.put(ALL, &with(&twice)).await.problem(409);

    for (namespaces, pointer) in [
        (json!([{"name": "A"}, {"name": "A"}]), "/namespaces/1/name"),
        (json!([{"uriBase": "urn:a:"}]), "/namespaces/0/name"),
        (json!([{"name": "A", "uriBase": "no IRI"}]), "/namespaces/0/uriBase"),
        (json!([{"name": "A", "generator": "dice"}]), "/namespaces/0/generator"),
        (json!([{"name": "A", "base": "urn:a:"}]), "/namespaces/0/base"),
        (json!({"A": "urn:a:"}), "/namespaces"),
    ] {
        let problem = server.put(ALL, &with(&namespaces)).await.problem(422);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    // A namespace that the mapping does not name is defined with a warning, and kept while the definition has it.
    let more = json!([{"name": "Other", "uriBase": "urn:other:"}]);
    let answer = server.put(PUMP, &with(&more)).await.expect(200).json();
    assert_warning(&answer, "/namespaces/0/name", &["does not name the namespace `Other`"]);
    server.delete("/api/v1/namespaces/Other").await.problem(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn prefixes_apply_to_conditions() {
    let server = TestApp::start(&[BASE]).await;
    let conditions = json!([{"predicate": "rdf:type", "value": "ex:Pump"}]);
    let body = pump("Pump", &json!({"conditions": conditions}));
    let created = server.put(ALL, &body).await.expect(201).json();
    assert_eq!(created["conditions"], conditions);
    let objects = json!([
        {"name": "P-1", "kind": "https://plant.example/Pump"},
        {"name": "P-2", "kind": "https://plant.example/Valve"},
    ]);
    server.ingest("ADD", &objects).await.expect(200);
    assert_eq!(members(&server).await, 1);
    let dir = server.stop().await.unwrap();
    let server = TestApp::start_in(dir.path(), &[BASE]).await.unwrap();
    assert_eq!(server.get(PUMP).await.json()["conditions"], conditions);
    assert_eq!(members(&server).await, 1);
    let query = json!({"query": "{ businessObjects { namespaces { name } conditions { predicate value } } }"});
    let answer = server.post("/graphql", &query).await.expect(200).json();
    let one = &answer["data"]["businessObjects"][0];
    assert_eq!(*one, json!({"namespaces": [], "conditions": conditions}), "{answer}");

    // Full IRIs are never read as prefixes, whatever the mapping declares.
    let config =
        config("Pump").replace("prefixes:\n", "prefixes:\n  urn: https://never.example/\n");
    let conditions = json!([{"predicate": "urn:x:y", "value": "ex://host/a"}]);
    let body = pump("Pump", &json!({"config": config, "conditions": conditions}));
    let answer = server.put(&format!("{ALL}?force=true"), &body).await.expect(200).json();
    assert_warning(&answer, "/conditions/0", &["<urn:x:y>"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_definitions_leave_audit_events() {
    let server = TestApp::start(&[BASE]).await;
    let body = pump("Pump", &json!({}));
    server.put(ALL, &body).await.expect(201);
    // A definition without changes leaves no event.
    server.put(ALL, &body).await.expect(200);
    let other = pump("Pump", &json!({"namespaces": [{"name": "Pump", "uriBase": "urn:pump:"}]}));
    server.put(PUMP, &other).await.expect(200);
    let namespace = "/api/v1/namespaces/Tank";
    server.put(namespace, &json!({"uriBase": "urn:tank:"})).await.expect(201);
    server.put(namespace, &json!({"uriBase": "urn:tank:"})).await.expect(200);
    server.put(namespace, &json!({"uriBase": "urn:vessel:"})).await.expect(200);
    server.delete(namespace).await.expect(204);
    server.delete(PUMP).await.expect(204);
    let events = audit(&server).await;
    let expected = [
        ("namespace.created", "\"Pump\" <https://plant.example/id/Pump/>"),
        ("business-object.created", "\"Pump\""),
        ("namespace.replaced", "\"Pump\" <urn:pump:>"),
        ("business-object.replaced", "version 2"),
        ("namespace.created", "\"Tank\" <urn:tank:>"),
        ("namespace.replaced", "\"Tank\" <urn:vessel:>"),
        ("namespace.deleted", "\"Tank\""),
        ("business-object.deleted", "\"Pump\""),
    ];
    assert_eq!(events.len(), expected.len(), "{events:#?}");
    for ((what, detail), (expected, words)) in events.iter().zip(expected) {
        assert!(what == expected && detail.contains(words), "{expected} {words}: {what} {detail}");
    }
}
