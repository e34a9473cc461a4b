//! Checks every route with every kind of credential. The table of the contract, the roles that the gateway publishes,
//! and its behaviour must agree.
use crate::forge::{Key, claims, with};
use crate::issuer::Issuer;
use crate::server::{Answer, Server, connect};
use penstock_auth::sessions::Sessions;
use penstock_base::Role;
use serde_json::json;
use std::collections::BTreeMap;

/// All routes with their minimum roles: those of the contract and those added since, one per line.
const CONTRACT: &str = "
PUT    /api/v1/business-objects                    Admin
GET    /api/v1/business-objects                    User
GET    /api/v1/business-objects/{id}               User
PUT    /api/v1/business-objects/{id}               Admin
DELETE /api/v1/business-objects/{id}               Admin
POST   /api/v1/business-objects/{id}               Contributor
GET    /api/v1/ingestions                          User
GET    /api/v1/ingestions/{id}                     User
GET    /api/v1/ingestions/{id}/rejected            Contributor
POST   /api/v1/ingestions/{id}/rejected/{letter}/retry Contributor
DELETE /api/v1/ingestions/{id}/rejected/{letter}   Contributor
GET    /api/v1/business-objects/{id}/push          Contributor
POST   /api/v1/business-objects/{id}/push          Contributor
GET    /api/v1/business-objects/{id}/objects       User
GET    /api/v1/business-objects/{id}/objects/{uri} User
GET    /api/v1/business-objects/{id}/schema        User
GET    /api/v1/business-objects/{id}/shapes        User
GET    /api/v1/namespaces                          User
GET    /api/v1/namespaces/{name}                   User
PUT    /api/v1/namespaces/{name}                   Contributor
DELETE /api/v1/namespaces/{name}                   Contributor
GET    /api/v1/shapes                              User
GET    /api/v1/shapes/{name}                       User
PUT    /api/v1/shapes/{name}                       Admin
DELETE /api/v1/shapes/{name}                       Admin
POST   /api/v1/business-objects/{id}/validation    Contributor
GET    /api/v1/validations                         User
GET    /api/v1/validations/{id}                    User
DELETE /api/v1/validations/{id}                    Contributor
GET    /api/v1/changes                             User
GET    /api/v1/changes/{id}                        User
POST   /api/v1/changes/{id}/submit                 User
POST   /api/v1/changes/{id}/approve                Contributor
POST   /api/v1/changes/{id}/reject                 Contributor
POST   /api/v1/changes/{id}/withdraw               User
POST   /api/v1/changes/{id}/rebase                 User
GET    /api/v1/groups                              User
GET    /api/v1/groups/{name}                       User
PUT    /api/v1/groups/{name}                       Admin
DELETE /api/v1/groups/{name}                       Admin
GET    /api/v1/exports                             User
GET    /api/v1/exports/{id}                        User
GET    /api/v1/exports/{id}/content                User
POST   /api/v1/exports/{id}/retry                  Admin
POST   /api/v1/exports/{id}/park                   Admin
POST   /api/v1/exports/{id}/replay                 Admin
GET    /api/v1/targets                             User
POST   /api/v1/targets/{bucketName}/test           Admin
GET    /api/v1/sources                             User
GET    /api/v1/sources/{name}                      User
POST   /api/v1/sources/{name}/test                 Admin
GET    /api/v1/sources/{name}/rejected             Contributor
POST   /api/v1/sources/{name}/rejected/{letter}/retry Contributor
DELETE /api/v1/sources/{name}/rejected/{letter}    Contributor
GET    /api/v1/webhooks                            Admin
POST   /api/v1/webhooks/{name}/test                Admin
GET    /api/v1/limits                              User
GET    /api/v1/status                              User
GET    /api/v1/users                               Admin
POST   /api/v1/users                               Admin
GET    /api/v1/users/me                            User
PUT    /api/v1/users/me                            User
POST   /api/v1/users/me/password                   User
GET    /api/v1/users/{id}                          Admin
PUT    /api/v1/users/{id}                          Admin
DELETE /api/v1/users/{id}                          Admin
POST   /api/v1/users/{id}/password                 Admin
GET    /api/v1/audit                               Admin
GET    /api/v1/api-keys                            User
POST   /api/v1/api-keys                            User
GET    /api/v1/api-keys/{id}                       User
DELETE /api/v1/api-keys/{id}                       User
GET    /id/{namespace}/{local}                     User
GET    /health/live                                Anyone
GET    /health/ready                               Anyone
GET    /metrics                                    Metrics
GET    /api/v1/events                              User
GET    /graphql                                    User
POST   /graphql                                    User
GET    /graphql/schema.graphql                     User
GET    /sparql                                     User
POST   /sparql                                     User
POST   /sparql/update                              Admin
GET    /sparql/graphs                              User
PUT    /sparql/graphs                              Admin
POST   /sparql/graphs                              Admin
DELETE /sparql/graphs                              Admin
GET    /oauth2/authorization/{registrationId}      Anyone
GET    /login/oauth2/code/{registrationId}         Anyone
POST   /login                                      Anyone
POST   /logout                                     Anyone
GET    /                                           Anyone
GET    /login                                      Anyone
GET    /signed-out                                 Anyone
GET    /api-doc/openapi.json                       Anyone
GET    /swagger-ui/{**rest}                        Anyone
GET    /admin                                      User
GET    /admin/assets/{hash}/{name}                 Anyone
GET    /admin/business-objects                     User
GET    /admin/business-objects/new                 Admin
POST   /admin/business-objects/new                 Admin
GET    /admin/business-objects/derive              Admin
POST   /admin/business-objects/derive              Admin
POST   /admin/business-objects/check               Admin
GET    /admin/business-objects/{id}                User
GET    /admin/business-objects/{id}/edit           Admin
POST   /admin/business-objects/{id}/edit           Admin
GET    /admin/business-objects/{id}/delete         Admin
POST   /admin/business-objects/{id}/delete         Admin
POST   /admin/business-objects/{id}/push           Contributor
GET    /admin/objects/{id}                         User
GET    /admin/object                               User
GET    /admin/object/edit                          Contributor
POST   /admin/object/edit                          Contributor
GET    /admin/object/delete                        Contributor
POST   /admin/object/delete                        Contributor
GET    /admin/exports                              User
GET    /admin/exports/{id}                         User
POST   /admin/exports/{id}/retry                   Admin
POST   /admin/exports/{id}/park                    Admin
POST   /admin/exports/{id}/replay                  Admin
GET    /admin/changes                              User
GET    /admin/changes/to-approve                   User
GET    /admin/changes/{id}                         User
GET    /admin/changes/{id}/progress                User
POST   /admin/changes/{id}/submit                  User
POST   /admin/changes/{id}/approve                 Contributor
POST   /admin/changes/{id}/reject                  Contributor
POST   /admin/changes/{id}/withdraw                User
POST   /admin/changes/{id}/rebase                  User
GET    /admin/ingestions/{id}                      User
GET    /admin/rejected                             Contributor
GET    /admin/rejected/{id}                        Contributor
POST   /admin/rejected/{id}/retry                  Contributor
POST   /admin/rejected/{id}/delete                 Contributor
GET    /admin/targets                              User
GET    /admin/targets/{bucketName}                 User
POST   /admin/targets/{bucketName}/test            Admin
POST   /admin/webhooks/{name}/test                 Admin
GET    /admin/sources                              User
GET    /admin/sources/{name}                       User
POST   /admin/sources/{name}/test                  Admin
GET    /admin/query                                User
POST   /admin/query                                User
GET    /admin/sparql                               User
POST   /admin/sparql                               User
GET    /admin/profile                              User
POST   /admin/profile                              User
POST   /admin/profile/password                     User
GET    /admin/namespaces                           User
GET    /admin/namespaces/{name}                    User
POST   /admin/namespaces/{name}                    Contributor
GET    /admin/namespaces/{name}/delete             Contributor
POST   /admin/namespaces/{name}/delete             Contributor
GET    /admin/new-namespace                        Contributor
POST   /admin/new-namespace                        Contributor
GET    /admin/shapes                               User
GET    /admin/shapes/{name}                        User
POST   /admin/shapes/{name}                        Admin
GET    /admin/shapes/{name}/delete                 Admin
POST   /admin/shapes/{name}/delete                 Admin
GET    /admin/new-shapes                           Admin
POST   /admin/new-shapes                           Admin
GET    /admin/quality                              User
POST   /admin/quality                              Contributor
GET    /admin/quality/{id}                         User
POST   /admin/quality/{id}/cancel                  Contributor
GET    /admin/keys                                 User
GET    /admin/keys/new                             User
POST   /admin/keys/new                             User
GET    /admin/keys/{id}/revoke                     User
POST   /admin/keys/{id}/revoke                     User
GET    /admin/users                                Admin
GET    /admin/users/new                            Admin
POST   /admin/users/new                            Admin
GET    /admin/users/{id}                           Admin
POST   /admin/users/{id}                           Admin
POST   /admin/users/{id}/password                  Admin
GET    /admin/users/{id}/delete                    Admin
POST   /admin/users/{id}/delete                    Admin
GET    /admin/groups                               Admin
GET    /admin/groups/{name}                        Admin
POST   /admin/groups/{name}                        Admin
GET    /admin/groups/{name}/delete                 Admin
POST   /admin/groups/{name}/delete                 Admin
GET    /admin/new-group                            Admin
POST   /admin/new-group                            Admin
GET    /admin/audit                                Admin
GET    /admin/settings                             Admin
GET    /control/backup                             Local
GET    /control/dump                               Local
POST   /control/definitions                        Local
POST   /control/load                               Local
POST   /control/query                              Local
GET    /control/clock                              Local
POST   /control/clock/reset                        Local
";

/// A credential, and the highest role that it gives.
struct Shown {
    name: String,
    headers: Vec<(&'static str, String)>,
    role: Role,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_requires_its_role_from_every_credential() {
    let signer = Key::p256("first");
    let issuer = Issuer::start(&[&signer]).await;
    let resource_server = "--framework.security.oauth2.resourceserver.jwt";
    let server = Server::start(&[
        &format!("{resource_server}.issuer-uri={}", issuer.url),
        &format!("{resource_server}.audiences={}", issuer.audience),
        "--service.security.jwt.algorithms=ES256",
        "--service.sparql.update=true",
    ])
    .await;
    let routes = routes();
    let contract = contract();
    let different: Vec<_> = routes
        .iter()
        .filter(|(route, minimum_role)| contract.get(*route) != Some(minimum_role))
        .collect();
    let missing: Vec<_> = contract.keys().filter(|route| !routes.contains_key(*route)).collect();
    assert!(
        different.is_empty() && missing.is_empty(),
        "the gateway has routes that the contract lacks, or other roles: {different:?}; it lacks {missing:?}"
    );
    for (route, minimum_role) in documented(&server).await {
        assert_eq!(
            routes.get(&route),
            Some(&minimum_role),
            "{route:?} has another role in the documentation"
        );
    }
    let mut credentials = credentials(&server);
    for role in [Role::User, Role::Contributor, Role::Admin] {
        let value = format!("ACCURIDS_{role:?}").to_uppercase();
        let others = json!({"sub": value, "azp": value, "roles": [value]});
        let token = signer.token(&with(&claims(&issuer.url, &issuer.audience), &others));
        let headers = vec![("Authorization", format!("Bearer {token}"))];
        credentials.push(Shown { name: format!("access token, {role:?}"), headers, role });
    }
    assert_eq!(credentials.len(), 10);

    let outside = [("X-Forwarded-For", "192.0.2.1")];
    // This route ends the sessions.
    let (last, others): (Vec<_>, Vec<_>) =
        routes.iter().partition(|((_, path), _)| path == "/logout");
    for ((method, path), minimum_role) in others.into_iter().chain(last) {
        let path = path.replace(['{', '}'], "");
        let request = format!("{method} {path}");

        let unauthenticated = connect(server.address, method, &path, &outside, "").await;
        if minimum_role == "Local" {
            unauthenticated.problem(404);
        } else if minimum_role == "Anyone" {
            assert_ne!(unauthenticated.status, 401, "{request} without credentials");
        } else {
            unauthenticated.problem(401);
            assert_eq!(
                unauthenticated.header("www-authenticate"),
                r#"Bearer realm="penstock""#,
                "{request}"
            );
        }
        assert!(is_authorized(&server.control(method, &path, &[], "").await), "{request} locally");

        for Shown { name, headers, role } in &credentials {
            let mut headers: Vec<_> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            headers.extend(outside);
            let answer = connect(server.address, method, &path, &headers, "").await;
            if minimum_role == "Local" {
                answer.problem(404);
                continue;
            }
            if may(*role, minimum_role) {
                assert!(is_authorized(&answer), "{request} by {name}: {answer:?}");
                continue;
            }
            let problem = answer.problem(403);
            assert!(problem["detail"].as_str().unwrap().contains("role"), "{request}: {problem}");
            let challenge = answer.header("www-authenticate");
            let is_session = name.starts_with("session");
            let names_error = challenge.contains(r#"error="insufficient_scope""#);
            assert_eq!(names_error, !is_session, "{request} by {name}: {challenge:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_addresses_reveal_nothing_to_unauthenticated_clients() {
    let server = Server::start(&["--service.base-url=http://localhost/gate"]).await;
    for (method, path, known) in [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api/v2/business-objects", 404),
        ("PATCH", "/api/v1/business-objects", 405),
        ("OPTIONS", "/api/v1/business-objects", 405),
        ("TRACE", "/api/v1/status", 405),
        ("GET", "/nothing/at/all", 404),
        ("HEAD", "/id/Pump/1", 404),
        ("POST", "/nothing", 404),
        ("GET", "/gate/api/v1/nothing", 404),
        ("GET", "/gate/id/Pump/1", 404),
        ("GET", "/api/v1/business-objects/%zz", 400),
        ("GET", "/admin/nothing", 404),
        ("GET", "/administration", 404),
        ("GET", "//api/v1/status", 200),
        ("GET", "/api/v1/../v1/status", 404),
    ] {
        let unauthenticated = connect(server.address, method, path, &[], "").await;
        assert_eq!(unauthenticated.status, 401, "{method} {path}");
        assert_eq!(server.send(method, path, &[], "").await.status, known, "{method} {path}");
    }
    // A browser is redirected to the sign-in page, and from there back to its address.
    let html = [("Accept", "text/html,application/xhtml+xml")];
    for path in ["/gate/id/Pump/1?x=1", "/id/Pump/1?x=1"] {
        let led = connect(server.address, "GET", path, &html, "").await.expect(303);
        assert_eq!(led.header("location"), "/gate/login?return=/id/Pump/1%3Fx%3D1");
        assert_eq!(connect(server.address, "POST", path, &html, "").await.status, 401);
    }
    for path in ["/gate/api/v1/status", "/api/v1/status/"] {
        assert_eq!(connect(server.address, "GET", path, &[], "").await.status, 401, "{path}");
        server.get(path).await.expect(200);
    }
    // Routes of the control socket do not exist for an Admin either.
    server.get("/control/backup").await.problem(404);
    assert_eq!(server.control("GET", "/control/backup", &[], "").await.status, 200);
    assert_eq!(connect(server.address, "GET", "/control/backup", &[], "").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_available_to_local_programs() {
    let server = Server::start(&[]).await;
    let get = async |headers: &[(&str, &str)]| {
        connect(server.address, "GET", "/metrics", headers, "").await.status
    };
    assert_eq!(get(&[]).await, 200);
    for header in ["X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "X-Real-IP", "Via"] {
        assert_eq!(get(&[(header, "192.0.2.1")]).await, 401, "{header}");
    }
    // A page whose host name was made to resolve to this address.
    assert_eq!(get(&[("Host", "evil.example")]).await, 401);
    assert_eq!(get(&[("Host", "evil.example"), ("Authorization", "Bearer x")]).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_one_business_object_reaches_only_that_one() {
    let server = Server::start(&[]).await;
    let id = server.define().await["id"].as_str().unwrap().to_owned();
    let mut other = crate::server::definition();
    other["name"] = json!("Other");
    server.json("PUT", "/api/v1/business-objects", &other).await.expect(201);
    let [reader, writer, admin] = [Role::User, Role::Contributor, Role::Admin]
        .map(|role| format!("Bearer {}", server.make_key(role, Some("Pump"))));
    let json_type = ("Content-Type", "application/json");
    let send = async |key: &str, method: &str, path: &str| {
        let headers = [("Authorization", key), json_type];
        server.send(method, path, &headers, r#"{"data": [{"name": "x"}]}"#).await
    };

    let one = "/api/v1/business-objects/Pump";
    let ingested = send(&writer, "POST", one).await.expect(200).json();
    let by_id = format!("/api/v1/business-objects/{id}");
    send(&writer, "POST", &by_id).await.expect(200);
    let pushed = send(&writer, "POST", &format!("{one}/push")).await.expect(202).json();
    let ingestion = format!("/api/v1/ingestions/{}", ingested["ingestionId"].as_str().unwrap());
    let export = format!("/api/v1/exports/{}", pushed["exports"][0]["id"].as_str().unwrap());
    let schema = format!("{one}/schema");
    let shapes = format!("{one}/shapes");
    let objects = format!("{one}/objects");
    for path in [one, &by_id, &schema, &shapes, &objects, &ingestion, &export] {
        send(&reader, "GET", path).await.expect(200);
    }
    send(&reader, "POST", one).await.problem(403);

    server.ingest("ADD", &json!([{"name": "mine"}])).await.expect(200);
    let body = json!({"data": [{"name": "theirs"}]});
    let theirs = server.json("POST", "/api/v1/business-objects/Other", &body).await.expect(200);
    let theirs = format!("/api/v1/ingestions/{}", theirs.json()["ingestionId"].as_str().unwrap());
    for (method, path) in [
        ("POST", "/api/v1/business-objects/Other"),
        ("GET", "/api/v1/business-objects/Other"),
        ("GET", "/api/v1/business-objects/Other/objects"),
        ("POST", "/api/v1/business-objects/Other/push"),
        ("GET", "/api/v1/business-objects/None"),
        ("GET", "/api/v1/business-objects"),
        ("GET", &theirs),
        ("GET", "/api/v1/ingestions/none"),
        ("GET", "/api/v1/ingestions"),
        ("GET", "/api/v1/exports"),
        ("GET", "/api/v1/exports/none/content"),
        ("GET", "/api/v1/validations"),
        ("GET", "/api/v1/validations/none"),
        ("DELETE", "/api/v1/validations/none"),
        ("POST", "/api/v1/business-objects/Other/validation"),
        ("GET", "/api/v1/namespaces"),
        ("GET", "/api/v1/status"),
        ("GET", "/api/v1/audit"),
        ("GET", "/api/v1/users/me"),
        ("POST", "/api/v1/api-keys"),
        ("PUT", one),
        ("DELETE", one),
        ("GET", "/id/Pump/1"),
    ] {
        let problem = send(&admin, method, path).await.problem(403);
        assert!(problem["detail"].as_str().unwrap().contains("one Business Object"), "{problem}");
    }
}

fn contract() -> BTreeMap<(String, String), String> {
    let lines = CONTRACT.lines().filter(|line| !line.is_empty());
    let words = lines.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    words.map(|words| ((words[0].clone(), words[1].clone()), words[2].clone())).collect()
}

fn routes() -> BTreeMap<(String, String), String> {
    let all = penstock_cli::app::list_routes();
    let count = all.len();
    let all: BTreeMap<_, _> = all
        .into_iter()
        .map(|(method, path, minimum_role)| ((method, path.to_owned()), minimum_role))
        .collect();
    assert_eq!(all.len(), count, "a route is listed twice");
    all
}

/// Returns every documented route with the role that it publishes.
async fn documented(server: &Server) -> BTreeMap<(String, String), String> {
    let document = server.get("/api-doc/openapi.json").await.expect(200).json();
    let mut routes = BTreeMap::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let minimum_role = operation["x-least-role"].as_str();
            let minimum_role =
                minimum_role.unwrap_or_else(|| panic!("{method} {path} names no role"));
            routes.insert((method.to_uppercase(), path.clone()), minimum_role.to_owned());
        }
    }
    routes
}

fn may(role: Role, minimum_role: &str) -> bool {
    match minimum_role {
        "Anyone" => true,
        "Metrics" => matches!(role, Role::Metrics | Role::Admin),
        "User" => role >= Role::User,
        "Contributor" => role >= Role::Contributor,
        "Admin" => role == Role::Admin,
        other => panic!("no such role: {other}"),
    }
}

/// Returns whether the request passed authorization, whatever its result was.
fn is_authorized(answer: &Answer) -> bool {
    !matches!(answer.status, 401 | 403 | 429) && answer.status < 500
}

fn credentials(server: &Server) -> Vec<Shown> {
    let mut all = Vec::new();
    for role in [Role::Metrics, Role::User, Role::Contributor, Role::Admin] {
        let key = server.make_key(role, None);
        let headers = match role {
            Role::User => vec![("Apikey", key)],
            _ => vec![("Authorization", format!("Bearer {key}"))],
        };
        all.push(Shown { name: format!("API key, {role:?}"), headers, role });
    }
    for role in [Role::User, Role::Contributor, Role::Admin] {
        let cookie = server.sign_in(role);
        // In the form that the gateway's own pages send.
        let token = Sessions::csrf_token(cookie.split_once('=').unwrap().1);
        let headers = vec![
            ("Cookie", cookie),
            ("Sec-Fetch-Site", "same-origin".to_owned()),
            ("X-CSRF-Token", token),
        ];
        all.push(Shown { name: format!("session, {role:?}"), headers, role });
    }
    all
}
