//! Checks every route with every kind of credential. The table of the contract, the roles that the gateway publishes,
//! and its behaviour must agree.
use penstock_test_support::forge::{Key, with};
use penstock_test_support::issuer;
use penstock_test_support::prelude::*;

/// All routes with their minimum roles: those of the contract and those added since, one per line.
const CONTRACT: &str = include_str!("routes.txt");

/// A credential, and the highest role that it gives.
struct Shown {
    name: String,
    caller: Caller,
    role: Role,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_requires_its_role_from_every_credential() {
    let signer = Key::p256("first");
    let issuer = Issuer::start(&[&signer]);
    let settings = issuer::accept_tokens(&issuer.url, &issuer.audience);
    let more = ["--service.security.jwt.algorithms=ES256", "--service.sparql.update=true"];
    let server = TestApp::start(&[&lent(&settings)[..], &more].concat()).await;
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
        let token = signer.token(&with(&issuer::claims(&issuer), &others));
        let caller = server.caller_with(&token);
        credentials.push(Shown { name: format!("access token, {role:?}"), caller, role });
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

        for Shown { name, caller, role } in &credentials {
            let answer = caller.send(method, &path, &outside, "").await;
            if minimum_role == "Local" {
                answer.problem(404);
                continue;
            }
            if may(*role, minimum_role) {
                assert!(is_authorized(&answer), "{request} by {name}: {answer:?}");
                continue;
            }
            let problem = answer.problem(403);
            assert!(problem["detail"].has("role"), "{request}: {problem}");
            let challenge = answer.header("www-authenticate");
            let is_session = name.starts_with("session");
            let names_error = challenge.contains(r#"error="insufficient_scope""#);
            assert_eq!(names_error, !is_session, "{request} by {name}: {challenge:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_addresses_reveal_nothing_to_unauthenticated_clients() {
    let server = TestApp::start(&["--service.base-url=http://localhost/gate"]).await;
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
    let server = TestApp::plain().await;
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
    let server = TestApp::plain().await;
    let id = server.define().await["id"].string();
    server.define_with(&json!({"name": "Other"})).await;
    let [reader, writer, admin] = [Role::User, Role::Contributor, Role::Admin]
        .map(|role| server.caller_with(&server.make_key(role, Some("Pump"))));
    let send = async |caller: &Caller, method: &str, path: &str| {
        caller.send(method, path, &[JSON], r#"{"data": [{"name": "x"}]}"#).await
    };

    let one = "/api/v1/business-objects/Pump";
    let ingested = send(&writer, "POST", one).await.expect(200).json();
    let by_id = format!("/api/v1/business-objects/{id}");
    send(&writer, "POST", &by_id).await.expect(200);
    let pushed = send(&writer, "POST", &format!("{one}/push")).await.expect(202).json();
    let ingestion = format!("/api/v1/ingestions/{}", ingested["ingestionId"].text());
    let export = format!("/api/v1/exports/{}", pushed["exports"][0]["id"].text());
    for path in [one, &by_id, &ingestion, &export] {
        send(&reader, "GET", path).await.expect(200);
    }
    for more in ["schema", "shapes", "objects"] {
        send(&reader, "GET", &format!("{one}/{more}")).await.expect(200);
    }
    for list in ["ingestions", "exports", "validations?businessObject=Pump"] {
        send(&reader, "GET", &format!("/api/v1/{list}")).await.expect(200);
    }
    send(&reader, "POST", one).await.problem(403);

    server.ingest("ADD", &json!([{"name": "mine"}])).await.expect(200);
    let body = json!({"data": [{"name": "theirs"}]});
    let theirs = server.post("/api/v1/business-objects/Other", &body).await.expect(200);
    let theirs = format!("/api/v1/ingestions/{}", theirs.json()["ingestionId"].text());
    let others = "POST business-objects/Other, GET business-objects/Other, GET business-objects/Other/objects, \
        POST business-objects/Other/push, GET business-objects/None, GET business-objects, GET ingestions/none, \
        GET exports/none/content, GET validations/none, \
        DELETE validations/none, POST business-objects/Other/validation, GET namespaces, GET status, GET audit, \
        GET users/me, POST api-keys, PUT business-objects/Pump, DELETE business-objects/Pump";
    let others = others.split(", ").map(|request| request.split_once(' ').unwrap());
    let others = others.map(|(method, path)| (method, format!("/api/v1/{path}")));
    for (method, path) in others.chain([("GET", theirs), ("GET", "/id/Pump/1".to_owned())]) {
        send(&admin, method, &path).await.refused(403, "one Business Object");
    }
}

fn contract() -> BTreeMap<(String, String), String> {
    let words =
        CONTRACT.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
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
async fn documented(server: &TestApp) -> BTreeMap<(String, String), String> {
    let document = server.read("/api-doc/openapi.json").await;
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

fn credentials(server: &TestApp) -> Vec<Shown> {
    let mut all = Vec::new();
    for role in [Role::Metrics, Role::User, Role::Contributor, Role::Admin] {
        let key = server.make_key(role, None);
        let mut caller = server.caller_with(&key);
        if role == Role::User {
            caller.headers = vec![("Apikey", key)];
        }
        all.push(Shown { name: format!("API key, {role:?}"), caller, role });
    }
    for role in [Role::User, Role::Contributor, Role::Admin] {
        // In the form that the gateway's own pages send.
        let caller = server.session(role);
        all.push(Shown { name: format!("session, {role:?}"), caller, role });
    }
    all
}
