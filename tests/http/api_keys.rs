//! API keys: they have at most the role of their creator, are shown once, and can be revoked.
use crate::server::{Server, definition};
use penstock_base::Role;
use serde_json::{Value, json};

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
