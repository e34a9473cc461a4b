//! API keys: they have at most the role of their creator, are shown once, and can be revoked.
use penstock_base::commit::NoClient;
use penstock_base::error::GatewayError;
use penstock_export::ExportRequester;
use penstock_store::{DocumentRange, Read as _, Transaction};
use penstock_test_support::prelude::*;

const KEYS: &str = "/api/v1/api-keys";
const STATUS: &str = "/api/v1/status";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_created_used_and_revoked() {
    let server = TestApp::plain().await;
    let new = json!({"name": "line 4", "role": "User", "expiresAt": "2999-01-01T00:00:00Z"});
    let made = server.post(KEYS, &new).await.expect(201);
    let path = made.header("location").to_owned();
    let answer = made.json();
    let names: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(names, ["id", "key"]);
    let (id, key) = (answer["id"].text(), answer["key"].text());
    assert_eq!(path, format!("{KEYS}/{id}"));
    assert!(key.starts_with("penstock_"));

    let kept = server.read(&path).await;
    kept.includes(&json!({
        "name": "line 4", "role": "User", "expiresAt": "2999-01-01T00:00:00Z", "owner": null,
        "lastUsed": null,
    }));
    for headers in [("Authorization", format!("Bearer {key}")), ("Apikey", key.to_owned())] {
        server.get_with(STATUS, &[(headers.0, &headers.1)]).await.expect(200);
    }
    let used = server.get(&path).await.expect(200);
    assert!(used.json()["lastUsed"].is_string());
    assert!(!String::from_utf8_lossy(&used.body).contains(&key[9..]));
    let listed = server.items(KEYS).await;
    assert!(listed.iter().any(|item| item["id"] == id));

    server.delete(&path).await.expect(204);
    server.get_with(STATUS, &[("Apikey", key)]).await.problem(401);
    server.get(&path).await.problem(404);
    server.delete(&path).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_never_exceeds_the_role_of_its_creator() {
    let server = TestApp::plain().await;
    let person = server.session(Role::Contributor);
    for (role, status) in [("Admin", 403), ("Metrics", 403), ("Contributor", 201), ("User", 201)] {
        let answer = person.post(KEYS, &json!({"name": "own", "role": role})).await.expect(status);
        if status == 403 {
            assert_eq!(answer.problem(403)["errors"][0]["pointer"], "/role");
        }
    }
    // Users see their own keys, but not those of local administration.
    let own = person.read(KEYS).await;
    assert_eq!(own["items"].list().len(), 2, "{own}");
    let all = server.read(KEYS).await;
    assert_eq!(all["items"].list().len(), 3, "{all}");
    let others = all["items"].list().iter().find(|item| item["owner"].is_null());
    let others = format!("{KEYS}/{}", others.unwrap()["id"].text());
    person.get(&others).await.problem(404);
    person.delete(&others).await.problem(404);
    server.get(STATUS).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_their_position() {
    let server = TestApp::plain().await;
    for (body, pointer) in [
        (json!({"role": "User"}), "/name"),
        (json!({"name": "a", "role": "Root"}), "/role"),
        (json!({"name": "a", "role": "User", "expiresAt": "tomorrow"}), "/expiresAt"),
        (json!({"name": "a", "role": "User", "expiresAt": "2020-01-01T00:00:00Z"}), "/expiresAt"),
        (json!({"name": "a", "role": "User", "businessObject": "None"}), "/businessObject"),
        (json!({"name": "a", "role": "User", "key": "mine"}), "/key"),
        (json!({"name": "a", "role": "User", "businessObjects": []}), "/businessObjects"),
        (json!({"name": "a", "role": "User", "businessObjects": "Pump"}), "/businessObjects"),
        (json!({"name": "a", "role": "User", "businessObjects": [7]}), "/businessObjects/0"),
        (json!({"name": "a", "role": "User", "businessObjects": ["None"]}), "/businessObjects/0"),
        (
            json!({"name": "a", "role": "User", "businessObjects": vec!["None"; 101]}),
            "/businessObjects",
        ),
    ] {
        let problem = server.post(KEYS, &body).await.problem(422);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_one_business_object_names_it_by_its_id() {
    let server = TestApp::plain().await;
    let defined = server.define().await;
    let new = json!({"name": "pump", "role": "Contributor", "businessObject": "Pump"});
    let made = server.post(KEYS, &new).await.expect(201);
    let kept = server.read(made.header("location")).await;
    kept.includes(&json!({"businessObject": defined["id"], "businessObjects": [defined["id"]]}));
    let all =
        json!({"name": "all", "role": "User", "businessObject": null, "businessObjects": null});
    let made = server.post(KEYS, &all).await.expect(201);
    let kept = server.read(made.header("location")).await;
    assert_eq!((&kept["businessObject"], &kept["businessObjects"]), (&Value::Null, &Value::Null));
}

/// Defines a Business Object like `definition()` with its own namespace.
async fn define_like_pumps(server: &TestApp, name: &str) -> Value {
    let mut one = definition();
    one["name"] = json!(name);
    let config = one["config"].text().replace("Pump:.", &format!("{name}:."));
    one["config"] = json!(config);
    server.define_object(&one).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_several_business_objects_writes_each_of_them_and_nothing_else() {
    let server = TestApp::plain().await;
    let pump = server.define().await;
    let boiler = define_like_pumps(&server, "Boiler").await;
    define_like_pumps(&server, "Valve").await;
    let valves = "/api/v1/business-objects/Valve";
    let valve = json!({"data": [{"uri": "urn:valve", "name": "secret"}]});
    server.post(valves, &valve).await.expect(200);

    let new = json!({"name": "line", "role": "Admin", "businessObject": "Pump",
                     "businessObjects": ["Boiler", pump["id"], "Boiler"]});
    let made = server.post(KEYS, &new).await.expect(201);
    let path = made.header("location").to_owned();
    let kept = server.read(&path).await;
    kept.includes(&json!({"businessObject": null, "businessObjects": [pump["id"], boiler["id"]]}));
    let listed = server.read(KEYS).await;
    assert!(listed["items"].list().contains(&kept), "{listed}");

    let key = made.json()["key"].string();
    let caller = server.caller_with(&key);
    let ingest = async |name: &str, mode: &str, object: Value| {
        let path = format!("/api/v1/business-objects/{name}?mode={mode}");
        caller.post(&path, &json!({"data": [object]})).await
    };
    // A pump may refer to a boiler, and the key may change both, each through either Business Object.
    ingest("Boiler", "ADD", json!({"uri": "urn:boiler", "name": "b"})).await.expect(200);
    ingest("Pump", "ADD", json!({"uri": "urn:boiler", "name": "b"})).await.expect(200);
    ingest("Pump", "ADD", json!({"name": "p", "parts": [{"uri": "urn:boiler"}]})).await.expect(200);
    ingest("Boiler", "DELETE", json!({"uri": "urn:boiler"})).await.expect(200);
    for (name, mode, object) in [
        ("Pump", "ADD", json!({"uri": "urn:valve", "name": "x"})),
        ("Boiler", "UPDATE", json!({"uri": "urn:valve", "name": "x"})),
        ("Boiler", "DELETE", json!({"uri": "urn:valve"})),
    ] {
        let problem = ingest(name, mode, object).await.problem(422);
        assert_eq!(problem["errors"][0]["pointer"], "/data/0", "{problem}");
        assert!(!problem.to_string().contains("secret"), "{problem}");
    }
    for (method, path) in [
        ("GET", valves),
        ("POST", valves),
        ("GET", "/api/v1/business-objects"),
        ("PUT", "/api/v1/business-objects/Pump"),
        ("DELETE", "/api/v1/business-objects/Pump"),
        ("POST", KEYS),
        ("GET", "/api/v1/namespaces"),
        ("GET", STATUS),
    ] {
        caller.send(method, path, &[JSON], "").await.refused(403, "2 Business Objects");
    }
    for name in ["Pump", "Boiler"] {
        caller.get(&format!("/api/v1/business-objects/{name}/objects")).await.expect(200);
    }
    let query = json!({"query": "{ businessObjects { name } }"});
    let seen = caller.post("/graphql", &query).await.expect(200).json();
    assert_eq!(seen["data"]["businessObjects"], json!([{"name": "Boiler"}, {"name": "Pump"}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_lists_the_ingestions_and_exports_of_its_business_objects() {
    let server = TestApp::plain().await;
    let pump = server.define().await;
    define_like_pumps(&server, "Valve").await;
    let new = json!({"name": "line", "role": "Contributor", "businessObject": "Pump"});
    let made = server.post(KEYS, &new).await.expect(201).json();
    let caller = server.caller_with(made["key"].text());
    for name in ["Pump", "Valve", "Pump", "Valve"] {
        let path = format!("/api/v1/business-objects/{name}");
        server.post(&path, &json!({"data": [{"name": "x"}]})).await.expect(200);
    }
    for name in ["Pump", "Valve"] {
        let path = format!("/api/v1/business-objects/{name}/push");
        server.post_empty(&path).await.expect(202);
    }

    let first = caller.read("/api/v1/ingestions?limit=1").await;
    let cursor = first["next"].text();
    let second = caller.read(&format!("/api/v1/ingestions?limit=1&cursor={cursor}")).await;
    assert_eq!(second["next"], Value::Null, "{second}");
    for page in [&first, &second] {
        assert_eq!(page["items"].list().len(), 1, "{page}");
        assert_eq!(page["items"][0]["businessObject"], pump["id"]);
    }
    assert_ne!(first["items"][0]["id"], second["items"][0]["id"]);
    assert_eq!(server.items("/api/v1/ingestions").await.len(), 4);
    let exports = caller.items("/api/v1/exports").await;
    assert!(!exports.is_empty() && exports.len() < server.items("/api/v1/exports").await.len());
    assert!(exports.iter().all(|export| export["businessObject"] == pump["id"]), "{exports:?}");
    assert_eq!(caller.items("/api/v1/validations").await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_sees_only_the_uri_of_a_nested_object_of_others() {
    let server = TestApp::plain().await;
    let maker = |path: &str| format!("type: object\npath: {path}\nfields:\n");
    let fields =
        "  label: {type: string, path: <urn:label>}\n  boss: {type: resource, path: <urn:boss>}\n";
    let staff = json!({"name": "Staff", "config": maker("Staff:.") + fields});
    let nested = fields.replace("  label", "      label").replace("  boss", "      boss");
    let config = maker("Pump:.")
        + "  name: {type: string, path: <urn:name>}\n  maker:\n    type: object\n    path: <urn:maker>/Staff:.\n    fields:\n"
        + &nested;
    let targets = json!([{"bucketName": "plant-exports"}]);
    let pumps = json!({"name": "Pumps", "pushTargets": targets, "config": config.replace("<urn:maker>/Staff:.", "<urn:maker>/Maker:.")});
    for definition in [&staff, &pumps] {
        server.define_object(definition).await;
    }
    let person = json!({"data": [{"uri": "urn:staff-1", "label": "secret", "boss": "urn:boss"}]});
    server.post("/api/v1/business-objects/Staff", &person).await.expect(200);

    let new = json!({"name": "line", "role": "Contributor", "businessObject": "Pumps"});
    let made = server.post(KEYS, &new).await.expect(201).json();
    let caller = server.caller_with(made["key"].text());
    let objects = "/api/v1/business-objects/Pumps";
    let data = json!({"data": [
        {"uri": "urn:p", "name": "p", "maker": {"uri": "urn:staff-1"}},
        {"uri": "urn:q", "name": "q", "maker": {"uri": "urn:m", "label": "own"}},
    ]});
    caller.post(objects, &data).await.expect(200);

    let view = format!("{objects}/objects/urn%3Ap");
    let hidden = json!({"uri": "urn:p", "name": "p", "maker": {"uri": "urn:staff-1"}});
    let seen = caller.get(&view).await.expect(200);
    assert_eq!(seen.json(), hidden);
    let full = server.get(&view).await.expect(200);
    assert_eq!(full.json()["maker"]["label"], "secret");
    assert_ne!(full.header("etag"), seen.header("etag"));
    let listed = caller.get(&format!("{objects}/objects")).await.expect(200).json();
    assert_eq!(listed["items"][0], hidden);
    assert_eq!(listed["items"][1]["maker"]["label"], "own");

    // Its tag is of what it sees.
    for (tag, status) in [(full.header("etag"), 412), (seen.header("etag"), 200)] {
        let update = json!({"data": [{"uri": "urn:p", "name": "p"}]}).to_string();
        let path = format!("{objects}?mode=UPDATE");
        caller.send("POST", &path, &[JSON, ("If-Match", tag)], update).await.expect(status);
    }

    // Hidden values are no values for GraphQL, filters, orders and references.
    let query = async |text: &str| {
        let answer = caller.post("/graphql", &json!({"query": text})).await;
        answer.expect(200).json()["data"].clone()
    };
    let all = query("{pumpsConnection {nodes {uri maker {uri label boss}}}}").await;
    assert_eq!(
        all["pumpsConnection"]["nodes"],
        json!([
            {"uri": "urn:p", "maker": {"uri": "urn:staff-1", "label": null, "boss": null}},
            {"uri": "urn:q", "maker": {"uri": "urn:m", "label": "own", "boss": null}},
        ])
    );
    for (filter, count) in [
        (r#"{maker: {label: {eq: "secret"}}}"#, 0),
        (r#"{maker: {label: {contains: "sec"}}}"#, 0),
        (r#"{maker: {boss: {eq: "urn:boss"}}}"#, 0),
        (r"{not: {maker: {label: {exists: true}}}}", 1),
        (r#"{maker: {label: {eq: "own"}}}"#, 1),
        (r#"{maker: {uri: {eq: "urn:staff-1"}}}"#, 1),
    ] {
        let found = query(&format!("{{pumpsConnection(where: {filter}) {{totalCount}}}}")).await;
        assert_eq!(found["pumpsConnection"]["totalCount"], count, "{filter}");
    }
    let referring = query(r#"{referredBy(uri: "urn:boss") {edges {path}}}"#).await;
    assert_eq!(referring["referredBy"]["edges"], json!([]));

    // A file shows everything, so such a key does not read it.
    caller.post_empty(&format!("{objects}/push")).await.expect(202);
    let exports = server.read("/api/v1/exports").await;
    let export = format!("/api/v1/exports/{}/content", exports["items"][0]["id"].text());
    caller.get(&export).await.problem(403);
    assert!(server.page(&export).await.contains("secret"));

    // Under review the difference shows no more to the key, and approvers do not take its view for the whole.
    let mut reviewed = pumps;
    reviewed["review"] = json!("required");
    server.put(objects, &reviewed).await.expect(200);
    let update = json!({"data": [{"uri": "urn:p", "name": "r", "maker": {"uri": "urn:staff-1"}}]});
    let change = caller.post(&format!("{objects}?mode=REPLACE"), &update).await.expect(202);
    let id = change.json()["id"].string();
    let change = caller.page(&format!("/api/v1/changes/{id}")).await;
    assert!(change.contains("urn:staff-1") && !change.contains("secret"), "{change}");
}

/// Removes what earlier versions of the gateway did not record about exports.
fn forget_schema_versions(transaction: &mut Transaction<'_>) -> Result<(), GatewayError> {
    let all = DocumentRange { limit: 100, ..DocumentRange::default() };
    for (key, stored) in transaction.read_documents("exports", all)? {
        let mut record: Value = serde_json::from_slice(&stored).unwrap();
        assert!(record.as_object_mut().unwrap().remove("schema_version").is_some());
        transaction.put_document("exports", &key, record.to_string().as_bytes())?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_reads_no_file_from_when_the_mapping_nested_objects() {
    let server = TestApp::plain().await;
    let flat = "type: object\npath: Pump:.\nfields:\n  name: {type: string, path: <urn:name>}\n  title: {type: languageMap, path: <urn:title>}\n  place:\n    type: group\n    fields:\n      room: {type: string, path: <urn:room>}\n";
    let nested = "  maker:\n    type: object\n    path: <urn:maker>/Maker:.\n    fields:\n      label: {type: string, path: <urn:label>}\n";
    let nesting = format!("{flat}{nested}");
    // Its files showed an object where the mapping has a value now.
    let reusing = format!("{flat}  maker: {{type: json, path: <urn:made>}}\n");
    let define = |config: &str, description: &str| {
        json!({
            "name": "Pumps", "description": description, "config": config,
            "pushTargets": [{"bucketName": "plant-exports"}],
        })
    };
    server.define_object(&define(&nesting, "first")).await;
    let objects = "/api/v1/business-objects/Pumps";
    let pump = json!({
        "uri": "urn:p", "name": "p", "title": {"en": "Pump"}, "place": {"room": "R1"},
        "maker": {"uri": "urn:m", "label": "secret"},
    });
    server.post(objects, &json!({"data": [pump]})).await.expect(200);
    let push = async || format!("/api/v1/exports/{}/content", server.push("Pumps").await);
    let new = json!({"name": "line", "role": "Contributor", "businessObject": "Pumps"});
    let made = server.post(KEYS, &new).await.expect(201).json();
    let caller = server.caller_with(made["key"].text());

    let nested = push().await;
    caller.get(&nested).await.problem(403);
    for config in [reusing.as_str(), flat] {
        server.put(objects, &define(config, "second")).await.expect(200);
        caller.get(&nested).await.problem(403);
    }
    assert!(server.page(&nested).await.contains("secret"));
    // A file without other objects stays readable, also after another change of the definition.
    let of_flat = push().await;
    assert!(caller.page(&of_flat).await.contains("R1"));
    server.put(objects, &define(flat, "third")).await.expect(200);
    assert!(caller.page(&of_flat).await.contains("R1"));

    // An export whose rendering began before the definition was changed is queued after it.
    server.put(objects, &define(&nesting, "fourth")).await.expect(200);
    let earlier = server.gateway().catalogue.get("Pumps").unwrap();
    server.put(objects, &define(flat, "fifth")).await.expect(200);
    let pushed = server.gateway().exporter.push(&earlier, ExportRequester::gateway()).unwrap();
    let late = format!("/api/v1/exports/{}/content", pushed.exports[0].id);
    let last = server.deliver("Pumps").await;
    let last = format!("/api/v1/exports/{}/content", last["id"].text());
    for is_of_earlier_gateway in [false, true] {
        if is_of_earlier_gateway {
            server.gateway().store.commit(&NoClient, forget_schema_versions).unwrap();
        }
        caller.get(&late).await.problem(403);
        assert!(server.page(&late).await.contains("secret"));
        assert!(caller.page(&last).await.contains("R1"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_follows_a_renamed_business_object_and_loses_a_deleted_one() {
    let server = TestApp::with_pumps().await;
    let boiler = define_like_pumps(&server, "Boiler").await;
    let new = json!({"name": "line", "role": "Contributor", "businessObjects": ["Pump", "Boiler"]});
    let made = server.post(KEYS, &new).await.expect(201);
    let path = made.header("location").to_owned();
    let key = made.json()["key"].string();
    let caller = server.caller_with(&key);
    let ingest = async |name: &str, object: Value| {
        let path = format!("/api/v1/business-objects/{name}");
        caller.post(&path, &json!({"data": [object]})).await
    };
    let mut renamed = definition();
    renamed["name"] = json!("Machine");
    let renamed = server.put("/api/v1/business-objects/Pump", &renamed).await.expect(200).json();
    ingest("Machine", json!({"name": "m"})).await.expect(200);
    ingest("Boiler", json!({"uri": "urn:boiler", "name": "b"})).await.expect(200);

    server.delete("/api/v1/business-objects/Boiler").await.expect(204);
    ingest("Boiler", json!({"name": "b"})).await.problem(403);
    ingest("Machine", json!({"name": "m"})).await.expect(200);
    // The boilers' namespace is no longer in the key's scope.
    ingest("Machine", json!({"uri": "urn:boiler", "name": "x"})).await.problem(422);
    // Another Business Object of the same name is not the one that the key names.
    let again = define_like_pumps(&server, "Boiler").await;
    assert_ne!(again["id"], boiler["id"]);
    ingest("Boiler", json!({"name": "b"})).await.problem(403);
    let data = json!({"data": [{"name": "b"}]});
    server.post("/api/v1/business-objects/Boiler", &data).await.expect(200);

    // Without any of its Business Objects the key is for none, never for all.
    server.delete("/api/v1/business-objects/Machine").await.expect(204);
    ingest("Boiler", json!({"name": "b"})).await.problem(403);
    let own = [renamed["id"].clone(), boiler["id"].clone()];
    let listed = caller.items("/api/v1/ingestions").await;
    assert_eq!(listed.len(), 3, "{listed:?}");
    assert!(listed.iter().all(|record| own.contains(&record["businessObject"])), "{listed:?}");
    let kept = server.read(&path).await;
    assert_eq!(kept["businessObjects"].list().len(), 2, "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_one_business_object_cannot_change_objects_of_another() {
    let server = TestApp::with_pumps().await;
    define_like_pumps(&server, "Boiler").await;
    let boilers = "/api/v1/business-objects/Boiler";
    let data = json!({"data": [{"uri": "urn:boiler", "name": "secret"}]});
    server.post(boilers, &data).await.expect(200);

    let caller = server.with_key(Role::Contributor, Some("Pump"));
    for (mode, object, pointer) in [
        ("DELETE", json!({"uri": "urn:boiler"}), "/data/0"),
        ("ADD", json!({"uri": "urn:boiler", "name": "x"}), "/data/0"),
        ("UPDATE", json!({"uri": "urn:boiler", "name": "x"}), "/data/0"),
        ("REPLACE", json!({"parts": [{"uri": "urn:boiler", "label": "x"}]}), "/data/0/parts/0"),
    ] {
        for (media_type, body) in
            [(JSON, json!({"data": [object]}).to_string()), (NDJSON, object.to_string())]
        {
            let path = format!("/api/v1/business-objects/Pump?mode={mode}");
            let problem = caller.send("POST", &path, &[media_type], body).await.problem(422);
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
            assert!(!problem.to_string().contains("secret"), "{problem}");
        }
    }
    let body =
        json!({"data": [{"uri": "urn:pump", "name": "p", "parts": [{"uri": "urn:boiler"}]}]});
    let pumps = "/api/v1/business-objects/Pump";
    caller.post(pumps, &body).await.expect(200);
    let body = json!({"data": [{"uri": "urn:pump"}]});
    caller.post(&format!("{pumps}?mode=DELETE"), &body).await.expect(200);
    let kept = server.read(&format!("{boilers}/objects?uri=urn:boiler")).await;
    assert_eq!(kept["name"], "secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_key_manages_neither_its_owner_nor_stronger_keys() {
    let server = TestApp::plain().await;
    let person = server.session(Role::Admin);
    let make = async |role: &str| {
        let new = json!({"name": format!("for {role}"), "role": role});
        let made = person.post(KEYS, &new).await.expect(201).json();
        let text = |member: &str| made[member].string();
        (text("id"), text("key"))
    };
    let (admin, admin_secret) = make("Admin").await;
    let (reader, reader_secret) = make("User").await;
    let (victim, _) = make("User").await;
    let by = async |secret: &str, method: &str, path: &str, kind: &str, body: &str| {
        let headers = [("Apikey", secret), ("Content-Type", kind)];
        server.send(method, path, &headers, body.to_owned()).await
    };
    let (json_type, form) = ("application/json", "application/x-www-form-urlencoded");
    let send = async |method: &str, path: &str, body: &str| {
        by(&reader_secret, method, path, json_type, body).await
    };
    let post = async |path: &str, body: &str| by(&reader_secret, "POST", path, form, body).await;

    let listed = send("GET", KEYS, "").await.expect(200).json();
    let ids: Vec<_> = listed["items"].list().iter().map(|key| &key["id"]).collect();
    assert_eq!(ids, [&json!(reader), &json!(victim)]);
    let page = send("GET", "/admin/keys", "").await.expect(200).text();
    assert!(page.contains("for User") && !page.contains("for Admin"), "{page}");
    let of_admin = format!("{KEYS}/{admin}");
    send("GET", &of_admin, "").await.problem(404);
    send("DELETE", &of_admin, "").await.problem(404);
    post(&format!("/admin/keys/{admin}/revoke"), "").await.problem(404);

    let me = send("GET", "/api/v1/users/me", "").await.expect(200).json();
    let own = format!("/api/v1/users/{}", me["id"].text());
    let passwords = r#"{"currentPassword": "x", "password": "another horse battery"}"#;
    for secret in [&reader_secret, &admin_secret] {
        let send = async |method: &str, path: &str, body: &str| {
            by(secret, method, path, json_type, body).await.problem(403)
        };
        let problem = send("PUT", "/api/v1/users/me", r#"{"givenName": "Eve"}"#).await;
        assert!(problem["detail"].has("API key"), "{problem}");
        send("POST", "/api/v1/users/me/password", passwords).await;
        send("PUT", &own, r#"{"givenName": "Eve"}"#).await;
        send("POST", &format!("{own}/password"), passwords).await;
        send("DELETE", &own, "").await;
        by(secret, "POST", "/admin/profile", form, "givenName=Eve").await.expect(403);
        let typed = "currentPassword=x&password=another+horse+battery&again=another+horse+battery";
        by(secret, "POST", "/admin/profile/password", form, typed).await.expect(403);
    }
    assert_eq!(send("GET", "/api/v1/users/me", "").await.expect(200).json(), me);

    send("DELETE", &format!("{KEYS}/{victim}"), "").await.expect(204);
    let trail = server.items("/api/v1/audit?what=key.revoked").await;
    trail[0].includes(&json!({"by": reader, "account": me["id"]}));
    // A key with the role Admin manages all other keys.
    by(&admin_secret, "DELETE", &format!("{KEYS}/{reader}"), json_type, "").await.expect(204);
    send("GET", STATUS, "").await.problem(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_new_key_has_the_command_that_ingests_with_it() {
    let server = TestApp::with_pumps().await;
    let person = server.session(Role::Contributor);
    let page = person.page("/admin/business-objects/Pump").await;
    let (_, link) = page.split_once("href=\"/admin/keys/new?").expect("it links to the form");
    let query = link.split_once('"').unwrap().0;
    let form = person.page(&format!("/admin/keys/new?{query}")).await;
    // The Business Object is chosen already.
    let (_, ticked) = form.split_once("name=\"businessObject.").unwrap();
    assert!(ticked.split_once('>').unwrap().0.ends_with(" checked"), "{form}");
    person.get("/admin/keys/new?businessObject=Unknown").await.expect(404);

    let id = format!("businessObject.{}", ticked.split_once('"').unwrap().0);
    let fields = [("name", "line"), ("role", "Contributor"), (&id, "true")];
    let page = person.form("/admin/keys/new", &fields).await.expect(200).text();
    let command = page.split_once("<pre id=\"command-1\">").unwrap().1;
    let command = command.split_once("</pre>").unwrap().0;
    let command = [("&#39;", "'"), ("&#34;", "\""), ("&amp;", "&")]
        .iter()
        .fold(command.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain));
    let sent = tokio::task::block_in_place(|| {
        let output = Command::new("bash").args(["-c", &command]).env("NO_PROXY", "*").output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    });
    let answer: Value = serde_json::from_str(&sent).unwrap_or_else(|_| panic!("{command}: {sent}"));
    assert_eq!(answer["created"], 1, "{command}: {sent}");
}
