//! API keys: they have at most the role of their creator, are shown once, and can be revoked.
use crate::server::{Server, definition};
use penstock_auth::sessions::Sessions;
use penstock_base::Role;
use serde_json::{Value, json};
use std::process::Command;

const KEYS: &str = "/api/v1/api-keys";
const STATUS: &str = "/api/v1/status";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_created_used_and_revoked() {
    let server = Server::start(&[]).await;
    let new = json!({"name": "line 4", "role": "User", "expiresAt": "2999-01-01T00:00:00Z"});
    let made = server.json("POST", KEYS, &new).await.expect(201);
    let path = made.header("location").to_owned();
    let answer = made.json();
    let names: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(names, ["id", "key"]);
    let (id, key) = (answer["id"].as_str().unwrap(), answer["key"].as_str().unwrap());
    assert_eq!(path, format!("{KEYS}/{id}"));
    assert!(key.starts_with("penstock_"));

    let kept = server.get(&path).await.expect(200).json();
    assert_eq!(kept["name"], "line 4");
    assert_eq!(kept["role"], "User");
    assert_eq!(kept["expiresAt"], "2999-01-01T00:00:00Z");
    assert_eq!(kept["owner"], Value::Null);
    assert_eq!(kept["lastUsed"], Value::Null);
    for headers in [("Authorization", format!("Bearer {key}")), ("Apikey", key.to_owned())] {
        server.send("GET", STATUS, &[(headers.0, &headers.1)], "").await.expect(200);
    }
    let used = server.get(&path).await.expect(200);
    assert!(used.json()["lastUsed"].is_string());
    assert!(!String::from_utf8_lossy(&used.body).contains(&key[9..]));
    let listed = server.get(KEYS).await.expect(200).json();
    assert!(listed["items"].as_array().unwrap().iter().any(|item| item["id"] == id));

    server.send("DELETE", &path, &[], "").await.expect(204);
    server.send("GET", STATUS, &[("Apikey", key)], "").await.problem(401);
    server.get(&path).await.problem(404);
    server.send("DELETE", &path, &[], "").await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_never_exceeds_the_role_of_its_creator() {
    let server = Server::start(&[]).await;
    let cookie = server.sign_in(Role::Contributor);
    let headers = [
        ("Content-Type", "application/json"),
        ("Cookie", cookie.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    for (role, status) in [("Admin", 403), ("Metrics", 403), ("Contributor", 201), ("User", 201)] {
        let body = json!({"name": "own", "role": role}).to_string();
        let answer = server.send("POST", KEYS, &headers, body).await.expect(status);
        if status == 403 {
            assert_eq!(answer.problem(403)["errors"][0]["pointer"], "/role");
        }
    }
    // Users see their own keys, but not those of local administration.
    let own = server.send("GET", KEYS, &headers, "").await.expect(200).json();
    assert_eq!(own["items"].as_array().unwrap().len(), 2, "{own}");
    let all = server.get(KEYS).await.expect(200).json();
    assert_eq!(all["items"].as_array().unwrap().len(), 3, "{all}");
    let others = all["items"].as_array().unwrap().iter().find(|item| item["owner"].is_null());
    let others = format!("{KEYS}/{}", others.unwrap()["id"].as_str().unwrap());
    server.send("GET", &others, &headers, "").await.problem(404);
    server.send("DELETE", &others, &headers, "").await.problem(404);
    server.get(STATUS).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_their_position() {
    let server = Server::start(&[]).await;
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
        let problem = server.json("POST", KEYS, &body).await.problem(422);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_one_business_object_names_it_by_its_id() {
    let server = Server::start(&[]).await;
    let defined = server.define().await;
    let new = json!({"name": "pump", "role": "Contributor", "businessObject": "Pump"});
    let made = server.json("POST", KEYS, &new).await.expect(201);
    let kept = server.get(made.header("location")).await.expect(200).json();
    assert_eq!(kept["businessObject"], defined["id"]);
    assert_eq!(kept["businessObjects"], json!([defined["id"]]));
    let all =
        json!({"name": "all", "role": "User", "businessObject": null, "businessObjects": null});
    let made = server.json("POST", KEYS, &all).await.expect(201);
    let kept = server.get(made.header("location")).await.expect(200).json();
    assert_eq!((&kept["businessObject"], &kept["businessObjects"]), (&Value::Null, &Value::Null));
}

/// Defines a Business Object like `definition()` with its own namespace.
async fn define_like_pumps(server: &Server, name: &str) -> Value {
    let mut one = definition();
    one["name"] = json!(name);
    let config = one["config"].as_str().unwrap().replace("Pump:.", &format!("{name}:."));
    one["config"] = json!(config);
    server.json("PUT", "/api/v1/business-objects", &one).await.expect(201).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_several_business_objects_writes_each_of_them_and_nothing_else() {
    let server = Server::start(&[]).await;
    let pump = server.define().await;
    let boiler = define_like_pumps(&server, "Boiler").await;
    define_like_pumps(&server, "Valve").await;
    let valves = "/api/v1/business-objects/Valve";
    let valve = json!({"data": [{"uri": "urn:valve", "name": "secret"}]});
    server.json("POST", valves, &valve).await.expect(200);

    let new = json!({"name": "line", "role": "Admin", "businessObject": "Pump",
                     "businessObjects": ["Boiler", pump["id"], "Boiler"]});
    let made = server.json("POST", KEYS, &new).await.expect(201);
    let path = made.header("location").to_owned();
    let kept = server.get(&path).await.expect(200).json();
    assert_eq!(kept["businessObject"], Value::Null);
    assert_eq!(kept["businessObjects"], json!([pump["id"], boiler["id"]]));
    let listed = server.get(KEYS).await.expect(200).json();
    assert!(listed["items"].as_array().unwrap().contains(&kept), "{listed}");

    let key = made.json()["key"].as_str().unwrap().to_owned();
    let headers = [("Content-Type", "application/json"), ("Apikey", key.as_str())];
    let send = async |method: &str, path: &str, body: String| {
        server.send(method, path, &headers, body).await
    };
    let ingest = async |name: &str, mode: &str, object: Value| {
        let path = format!("/api/v1/business-objects/{name}?mode={mode}");
        send("POST", &path, json!({"data": [object]}).to_string()).await
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
        ("GET", "/api/v1/ingestions"),
        ("GET", "/api/v1/namespaces"),
        ("GET", STATUS),
    ] {
        let problem = send(method, path, String::new()).await.problem(403);
        assert!(problem["detail"].as_str().unwrap().contains("2 Business Objects"), "{problem}");
    }
    for name in ["Pump", "Boiler"] {
        send("GET", &format!("/api/v1/business-objects/{name}/objects"), String::new())
            .await
            .expect(200);
    }
    let query = json!({"query": "{ businessObjects { name } }"}).to_string();
    let seen = send("POST", "/graphql", query).await.expect(200).json();
    assert_eq!(seen["data"]["businessObjects"], json!([{"name": "Boiler"}, {"name": "Pump"}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_sees_only_the_uri_of_a_nested_object_of_others() {
    let server = Server::start(&[]).await;
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
        server.json("PUT", "/api/v1/business-objects", definition).await.expect(201);
    }
    let person = json!({"data": [{"uri": "urn:staff-1", "label": "secret", "boss": "urn:boss"}]});
    server.json("POST", "/api/v1/business-objects/Staff", &person).await.expect(200);

    let new = json!({"name": "line", "role": "Contributor", "businessObject": "Pumps"});
    let made = server.json("POST", KEYS, &new).await.expect(201).json();
    let key = made["key"].as_str().unwrap();
    let headers = [("Content-Type", "application/json"), ("Apikey", key)];
    let send = async |method: &str, path: &str, body: String| {
        server.send(method, path, &headers, body).await
    };
    let objects = "/api/v1/business-objects/Pumps";
    let data = json!({"data": [
        {"uri": "urn:p", "name": "p", "maker": {"uri": "urn:staff-1"}},
        {"uri": "urn:q", "name": "q", "maker": {"uri": "urn:m", "label": "own"}},
    ]});
    send("POST", objects, data.to_string()).await.expect(200);

    let view = format!("{objects}/objects/urn%3Ap");
    let hidden = json!({"uri": "urn:p", "name": "p", "maker": {"uri": "urn:staff-1"}});
    let seen = send("GET", &view, String::new()).await.expect(200);
    assert_eq!(seen.json(), hidden);
    let full = server.get(&view).await.expect(200);
    assert_eq!(full.json()["maker"]["label"], "secret");
    assert_ne!(full.header("etag"), seen.header("etag"));
    let listed = send("GET", &format!("{objects}/objects"), String::new()).await.expect(200).json();
    assert_eq!(listed["items"][0], hidden);
    assert_eq!(listed["items"][1]["maker"]["label"], "own");

    // Its tag is of what it sees.
    for (tag, status) in [(full.header("etag"), 412), (seen.header("etag"), 200)] {
        let headers = [headers[0], headers[1], ("If-Match", tag)];
        let update = json!({"data": [{"uri": "urn:p", "name": "p"}]}).to_string();
        server
            .send("POST", &format!("{objects}?mode=UPDATE"), &headers, update)
            .await
            .expect(status);
    }

    // Hidden values are no values for GraphQL, filters, orders and references.
    let query = async |text: &str| {
        let answer = send("POST", "/graphql", json!({"query": text}).to_string()).await;
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
    send("POST", &format!("{objects}/push"), String::new()).await.expect(202);
    let exports = server.get("/api/v1/exports").await.expect(200).json();
    let export = format!("/api/v1/exports/{}/content", exports["items"][0]["id"].as_str().unwrap());
    send("GET", &export, String::new()).await.problem(403);
    assert!(
        String::from_utf8_lossy(&server.get(&export).await.expect(200).body).contains("secret")
    );

    // Under review the difference shows no more to the key, and nobody takes its view for more than that.
    let mut reviewed = pumps;
    reviewed["review"] = json!("required");
    server.json("PUT", objects, &reviewed).await.expect(200);
    let update = json!({"data": [{"uri": "urn:p", "name": "r", "maker": {"uri": "urn:staff-1"}}]});
    let change =
        send("POST", &format!("{objects}?mode=REPLACE"), update.to_string()).await.expect(202);
    let id = change.json()["id"].as_str().unwrap().to_owned();
    let change = send("GET", &format!("/api/v1/changes/{id}"), String::new()).await.expect(200);
    let change = String::from_utf8_lossy(&change.body).into_owned();
    assert!(change.contains("urn:staff-1") && !change.contains("secret"), "{change}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_follows_a_renamed_business_object_and_loses_a_deleted_one() {
    let server = Server::start(&[]).await;
    server.define().await;
    let boiler = define_like_pumps(&server, "Boiler").await;
    let new = json!({"name": "line", "role": "Contributor", "businessObjects": ["Pump", "Boiler"]});
    let made = server.json("POST", KEYS, &new).await.expect(201);
    let path = made.header("location").to_owned();
    let key = made.json()["key"].as_str().unwrap().to_owned();
    let headers = [("Content-Type", "application/json"), ("Apikey", key.as_str())];
    let ingest = async |name: &str, object: Value| {
        let path = format!("/api/v1/business-objects/{name}");
        server.send("POST", &path, &headers, json!({"data": [object]}).to_string()).await
    };
    let mut renamed = definition();
    renamed["name"] = json!("Machine");
    server.json("PUT", "/api/v1/business-objects/Pump", &renamed).await.expect(200);
    ingest("Machine", json!({"name": "m"})).await.expect(200);
    ingest("Boiler", json!({"uri": "urn:boiler", "name": "b"})).await.expect(200);

    server.send("DELETE", "/api/v1/business-objects/Boiler", &[], "").await.expect(204);
    ingest("Boiler", json!({"name": "b"})).await.problem(403);
    ingest("Machine", json!({"name": "m"})).await.expect(200);
    // The boilers' namespace is no longer in the key's scope.
    ingest("Machine", json!({"uri": "urn:boiler", "name": "x"})).await.problem(422);
    // Another Business Object of the same name is not the one that the key names.
    let again = define_like_pumps(&server, "Boiler").await;
    assert_ne!(again["id"], boiler["id"]);
    ingest("Boiler", json!({"name": "b"})).await.problem(403);

    // Without any of its Business Objects the key is for none, never for all.
    server.send("DELETE", "/api/v1/business-objects/Machine", &[], "").await.expect(204);
    ingest("Boiler", json!({"name": "b"})).await.problem(403);
    let kept = server.get(&path).await.expect(200).json();
    assert_eq!(kept["businessObjects"].as_array().unwrap().len(), 2, "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_one_business_object_cannot_change_objects_of_another() {
    let server = Server::start(&[]).await;
    server.define().await;
    let mut boiler = definition();
    boiler["name"] = json!("Boiler");
    boiler["config"] = json!(boiler["config"].as_str().unwrap().replace("Pump:.", "Boiler:."));
    server.json("PUT", "/api/v1/business-objects", &boiler).await.expect(201);
    let boilers = "/api/v1/business-objects/Boiler";
    let data = json!({"data": [{"uri": "urn:boiler", "name": "secret"}]});
    server.json("POST", boilers, &data).await.expect(200);

    let key = server.make_key(Role::Contributor, Some("Pump"));
    for (mode, object, pointer) in [
        ("DELETE", json!({"uri": "urn:boiler"}), "/data/0"),
        ("ADD", json!({"uri": "urn:boiler", "name": "x"}), "/data/0"),
        ("UPDATE", json!({"uri": "urn:boiler", "name": "x"}), "/data/0"),
        ("REPLACE", json!({"parts": [{"uri": "urn:boiler", "label": "x"}]}), "/data/0/parts/0"),
    ] {
        for (media_type, body) in [
            ("application/json", json!({"data": [object]}).to_string()),
            ("application/x-ndjson", object.to_string()),
        ] {
            let headers = [("Content-Type", media_type), ("Apikey", key.as_str())];
            let path = format!("/api/v1/business-objects/Pump?mode={mode}");
            let problem = server.send("POST", &path, &headers, body).await.problem(422);
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
            assert!(!problem.to_string().contains("secret"), "{problem}");
        }
    }
    let headers = [("Content-Type", "application/json"), ("Apikey", key.as_str())];
    let body =
        json!({"data": [{"uri": "urn:pump", "name": "p", "parts": [{"uri": "urn:boiler"}]}]});
    let pumps = "/api/v1/business-objects/Pump";
    server.send("POST", pumps, &headers, body.to_string()).await.expect(200);
    let body = json!({"data": [{"uri": "urn:pump"}]}).to_string();
    server.send("POST", &format!("{pumps}?mode=DELETE"), &headers, body).await.expect(200);
    let kept = server.get(&format!("{boilers}/objects?uri=urn:boiler")).await.expect(200).json();
    assert_eq!(kept["name"], "secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_key_manages_neither_its_owner_nor_stronger_keys() {
    let server = Server::start(&[]).await;
    let cookie = server.sign_in(Role::Admin);
    let make = async |role: &str| {
        let headers = [
            ("Cookie", cookie.as_str()),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Type", "application/json"),
        ];
        let new = json!({"name": format!("for {role}"), "role": role}).to_string();
        let made = server.send("POST", KEYS, &headers, new).await.expect(201).json();
        let text = |member: &str| made[member].as_str().unwrap().to_owned();
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
    let ids: Vec<_> = listed["items"].as_array().unwrap().iter().map(|key| &key["id"]).collect();
    assert_eq!(ids, [&json!(reader), &json!(victim)]);
    let page = send("GET", "/admin/keys", "").await.expect(200).text();
    assert!(page.contains("for User") && !page.contains("for Admin"), "{page}");
    let of_admin = format!("{KEYS}/{admin}");
    send("GET", &of_admin, "").await.problem(404);
    send("DELETE", &of_admin, "").await.problem(404);
    post(&format!("/admin/keys/{admin}/revoke"), "").await.problem(404);

    let me = send("GET", "/api/v1/users/me", "").await.expect(200).json();
    let own = format!("/api/v1/users/{}", me["id"].as_str().unwrap());
    let passwords = r#"{"currentPassword": "x", "password": "another horse battery"}"#;
    for secret in [&reader_secret, &admin_secret] {
        let send = async |method: &str, path: &str, body: &str| {
            by(secret, method, path, json_type, body).await.problem(403)
        };
        let problem = send("PUT", "/api/v1/users/me", r#"{"givenName": "Eve"}"#).await;
        assert!(problem["detail"].as_str().unwrap().contains("API key"), "{problem}");
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
    let trail = server.get("/api/v1/audit?what=key.revoked").await.expect(200).json();
    assert_eq!(trail["items"][0]["by"], json!(reader));
    assert_eq!(trail["items"][0]["account"], me["id"]);
    // A key with the role Admin manages all other keys.
    by(&admin_secret, "DELETE", &format!("{KEYS}/{reader}"), json_type, "").await.expect(204);
    send("GET", STATUS, "").await.problem(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_new_key_has_the_command_that_ingests_with_it() {
    let server = Server::start(&[]).await;
    server.define().await;
    let cookie = server.sign_in(Role::Contributor);
    let headers = [("Cookie", cookie.as_str())];
    let get = async |path: &str| server.send("GET", path, &headers, "").await;
    let page = get("/admin/business-objects/Pump").await.expect(200).text();
    let (_, link) = page.split_once("href=\"/admin/keys/new?").expect("it links to the form");
    let query = link.split_once('"').unwrap().0;
    let form = get(&format!("/admin/keys/new?{query}")).await.expect(200).text();
    // The Business Object is chosen already.
    let (_, ticked) = form.split_once("name=\"businessObject.").unwrap();
    assert!(ticked.split_once('>').unwrap().0.ends_with(" checked"), "{form}");
    get("/admin/keys/new?businessObject=Unknown").await.expect(404);

    let token = Sessions::csrf_token(cookie.split_once('=').unwrap().1);
    let id = ticked.split_once('"').unwrap().0;
    let headers =
        [("Cookie", cookie.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
    let form = format!("_csrf={token}&name=line&role=Contributor&businessObject.{id}=true");
    let page = server.send("POST", "/admin/keys/new", &headers, form).await.expect(200).text();
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
