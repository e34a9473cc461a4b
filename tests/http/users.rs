//! Accounts: an Admin creates, changes, disables and deletes them, and owners change their own.
use penstock_test_support::prelude::*;

const USERS: &str = "/api/v1/users";
const PASSWORD: &str = "correct horse battery";

fn ada() -> Value {
    json!({
        "email": "Ada@plant.example", "password": PASSWORD, "roles": ["Contributor"],
        "givenName": "Ada", "familyName": "Byron", "organization": "Plant",
    })
}

/// Signs in with a password and returns the cookie.
async fn sign_in(server: &TestApp, email: &str, password: &str) -> Result<String, Answer> {
    let body = json!({"email": email, "password": password});
    let answer = server.anonymous().post("/login", &body).await;
    if !(200..400).contains(&answer.status) {
        return Err(answer);
    }
    let cookie = answer.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    Ok(cookie.split(';').next().unwrap().to_owned())
}

/// Sends JSON in a session, as a page of the gateway does.
async fn as_page(server: &TestApp, cookie: &str, method: &str, path: &str, body: &Value) -> Answer {
    let headers = [JSON, ("Cookie", cookie), ("Sec-Fetch-Site", "same-origin")];
    server.send(method, path, &headers, body.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_created_changed_and_deleted() {
    let server = TestApp::plain().await;
    let made = server.post(USERS, &ada()).await.expect(201);
    let account = made.json();
    let path = made.header("location").to_owned();
    assert_eq!(path, format!("{USERS}/{}", account["id"].text()));
    assert_eq!(made.header("etag"), "\"1\"");
    let names: Vec<&str> = account.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        names.join(" "),
        "id givenName familyName email organization roles enabled serviceAccount source firstLogin \
         lastLogin createdAt"
    );
    account.includes(&json!({"roles": ["Contributor"], "source": "built-in", "firstLogin": null}));
    assert_eq!(server.read(&path).await, account);
    let by_email = format!("{USERS}/{}", escaped("ada@PLANT.example"));
    assert_eq!(server.read(&by_email).await, account);

    // An unchanged answer can be sent back.
    let same = server.put(&path, &account).await.expect(200);
    assert_eq!((same.json(), same.header("etag")), (account.clone(), "\"1\""));
    let mut changed = account.clone();
    changed["roles"] = json!(["User"]);
    changed["givenName"] = Value::Null;
    let headers = [JSON, ("If-Match", "\"1\"")];
    let body = changed.to_string();
    let answer = server.send("PUT", &path, &headers, body.clone()).await.expect(200);
    assert_eq!((answer.json(), answer.header("etag")), (changed, "\"2\""));
    server.send("PUT", &path, &headers, body).await.problem(412);
    server.send("DELETE", &path, &headers, "").await.problem(412);
    server.delete(&path).await.expect(204);
    server.get(&path).await.problem(404);
    server.delete(&path).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_their_position() {
    let server = TestApp::plain().await;
    server.post(USERS, &ada()).await.expect(201);
    let taken = server.post(USERS, &ada()).await.problem(409);
    assert_eq!(taken["errors"][0]["pointer"], "/email");
    let wrong = json!({"email": "x", "password": "short", "roles": ["Root"], "role": "User"});
    let problem = server.post(USERS, &wrong).await.problem(422);
    let pointers: Vec<&Value> =
        problem["errors"].list().iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, ["/roles", "/password", "/role"]);
    assert!(!problem.to_string().contains("short\""), "{problem}");
    server.send("POST", USERS, &[JSON], "{").await.problem(400);
    server.send("POST", USERS, &[("Content-Type", "text/plain")], "{}").await.problem(415);
    for path in ["/api/v1/users?limit=0", "/api/v1/users?cursor=78", "/api/v1/users?role=x"] {
        server.get(path).await.problem(400);
    }
    let password = json!({"password": PASSWORD});
    server.post("/api/v1/users/none/password", &password).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged() {
    let server = TestApp::plain().await;
    for n in 0..4 {
        let new = json!({"email": format!("u{n}"), "password": PASSWORD, "roles": ["User"]});
        server.post(USERS, &new).await.expect(201);
    }
    let accounts = server.all(&format!("{USERS}?limit=2"), 2).await;
    let emails: Vec<&str> = accounts.iter().map(|item| item["email"].text()).collect();
    assert_eq!(emails, ["admin", "u0", "u1", "u2", "u3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_change_only_their_own_names() {
    let server = TestApp::plain().await;
    server.post(USERS, &ada()).await.expect(201);
    let cookie = sign_in(&server, "ada@plant.example", PASSWORD).await.unwrap();
    let me = format!("{USERS}/me");
    let own = as_page(&server, &cookie, "GET", &me, &json!(null)).await.expect(200).json();
    assert!(own["firstLogin"].is_string() && own["lastLogin"].is_string(), "{own}");
    let mut changed = own.clone();
    changed["familyName"] = json!("Lovelace");
    let answer = as_page(&server, &cookie, "PUT", &me, &changed).await.expect(200);
    assert_eq!(answer.json(), changed);
    for (member, value) in
        [("roles", json!(["Admin"])), ("email", json!("x")), ("enabled", json!(false))]
    {
        let mut other = own.clone();
        other[member] = value;
        let problem = as_page(&server, &cookie, "PUT", &me, &other).await.problem(403);
        assert_eq!(problem["errors"][0]["pointer"], format!("/{member}"));
    }
    as_page(&server, &cookie, "GET", USERS, &json!(null)).await.problem(403);
    // A page of another site has no token.
    let headers = [JSON, ("Cookie", cookie.as_str()), ("Sec-Fetch-Site", "cross-site")];
    server.send("PUT", &me, &headers, changed.to_string()).await.problem(403);
    // A key of the command line has no account to change, and identifies itself as the caller.
    let caller = server.with_key(Role::Contributor, None);
    let answer = caller.get(&me).await.expect(200);
    assert_eq!(answer.header("etag"), "");
    let key = answer.json();
    key.includes(&json!({
        "roles": ["Contributor"], "source": "api-key", "email": null, "serviceAccount": false,
    }));
    let members = ["id", "roles", "email", "serviceAccount", "enabled", "source", "createdAt"];
    let query = format!("{{ authenticatedUser {{ {} }} }}", members.join(" "));
    let user = caller.post("/graphql", &json!({ "query": query })).await.expect(200).json();
    for member in members {
        assert_eq!(user["data"]["authenticatedUser"][member], key[member], "{member}");
    }
    let names = |account: &Value| account.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&key), names(&own));
    caller.put(&me, &changed).await.refused(404, "sign in");
    server.control("GET", &me, &[], "").await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn changing_the_own_password_needs_the_current_one_and_ends_other_sessions() {
    let server = TestApp::plain().await;
    let id = server.post(USERS, &ada()).await.expect(201).json()["id"].clone();
    let cookie = sign_in(&server, "ada@plant.example", PASSWORD).await.unwrap();
    let other = sign_in(&server, "ada@plant.example", PASSWORD).await.unwrap();
    assert_ne!(cookie, other);
    let path = format!("{USERS}/me/password");
    let new = "another horse battery";
    for body in each(json!([
        {"password": new}, {"password": new, "currentPassword": "wrong"},
        {"password": "short", "currentPassword": PASSWORD},
    ])) {
        let problem = as_page(&server, &cookie, "POST", &path, &body).await.problem(422);
        assert!(!problem.to_string().contains(PASSWORD), "{problem}");
    }
    let body = json!({"password": new, "currentPassword": PASSWORD});
    as_page(&server, &cookie, "POST", &path, &body).await.expect(204);
    let me = format!("{USERS}/me");
    as_page(&server, &cookie, "GET", &me, &json!(null)).await.expect(200);
    as_page(&server, &other, "GET", &me, &json!(null)).await.problem(401);
    assert!(sign_in(&server, "ada@plant.example", PASSWORD).await.is_err());
    sign_in(&server, "ada@plant.example", new).await.unwrap();

    // An Admin sets other passwords without the current one, and it ends all sessions of the account.
    let path = format!("{USERS}/{}/password", id.text());
    server.post(&path, &json!({"password": PASSWORD})).await.expect(204);
    as_page(&server, &cookie, "GET", &me, &json!(null)).await.problem(401);
    sign_in(&server, "ada@plant.example", PASSWORD).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn disabling_an_account_ends_all_its_credentials_at_once() {
    let server = TestApp::plain().await;
    let mut account = server.post(USERS, &ada()).await.expect(201).json();
    let path = format!("{USERS}/{}", account["id"].text());
    let cookie = sign_in(&server, "ada@plant.example", PASSWORD).await.unwrap();
    let new = json!({"name": "own", "role": "User"});
    let key = as_page(&server, &cookie, "POST", "/api/v1/api-keys", &new).await.expect(201);
    let key = server.caller_with(key.json()["key"].text());
    let status = "/api/v1/status";
    key.get(status).await.expect(200);

    account["enabled"] = json!(false);
    server.put(&path, &account).await.expect(200);
    let by_session = server.get_with(status, &[("Cookie", &cookie)]).await;
    assert!(matches!(by_session.status, 401 | 403), "{by_session:?}");
    key.get(status).await.problem(403);
    assert!(sign_in(&server, "ada@plant.example", PASSWORD).await.is_err());

    account["enabled"] = json!(true);
    server.put(&path, &account).await.expect(200);
    key.get(status).await.expect(200);
    server.get_with(status, &[("Cookie", &cookie)]).await.problem(401);
    server.delete(&path).await.expect(204);
    key.get(status).await.problem(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_admin_cannot_be_removed() {
    let server = TestApp::plain().await;
    let path = format!("{USERS}/admin");
    server.delete(&path).await.problem(409);
    let mut admin = server.read(&path).await;
    admin["roles"] = json!(["User"]);
    server.put(&path, &admin).await.problem(409);
    server.sign_in(Role::Admin);
    server.put(&path, &admin).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_survive_a_restart() {
    let server = TestApp::plain().await;
    server.post(USERS, &ada()).await.expect(201);
    let cookie = sign_in(&server, "ada@plant.example", PASSWORD).await.unwrap();
    let dir = server.stop().await.unwrap();
    let server = TestApp::reopen(dir.path()).await;
    let me = format!("{USERS}/me");
    server.get_with(&me, &[("Cookie", &cookie)]).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_failures_delay_only_their_sender() {
    let server = TestApp::plain().await;
    let mut refused = None;
    // A delay begins before the password is checked and doubles with each failure. That of three failures may be over on
    // a slow machine.
    for failures in 3..7 {
        let email = format!("ada-{failures}");
        let ada = json!({"email": email, "password": PASSWORD, "roles": ["User"]});
        server.post(USERS, &ada).await.expect(201);
        for _ in 0..3 {
            let answer = sign_in(&server, &email, "wrong").await.unwrap_err();
            answer.problem(401);
        }
        for _ in 3..failures {
            until("the delay is over", async || {
                sign_in(&server, &email, "wrong").await.unwrap_err().status == 401
            })
            .await;
        }
        refused = sign_in(&server, &email, PASSWORD).await.err();
        if refused.is_some() {
            break;
        }
    }
    let answer = refused.expect("an account waits after its failures");
    assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1, "{answer:?}");
    answer.problem(429);
    let bob = json!({"email": "bob", "password": PASSWORD, "roles": ["User"]});
    server.post(USERS, &bob).await.expect(201);
    sign_in(&server, "bob", PASSWORD).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_sent_again_reverts_nothing_that_another_admin_has_saved() {
    let server = TestApp::plain().await;
    let made = server.post(USERS, &ada()).await.expect(201);
    let page = format!("/admin/users/{}", made.json()["id"].text());
    let mut fields =
        [("email", "Ada@plant.example"), ("roles", "User"), ("enabled", "true"), ("version", "1")];
    server.form(&page, &fields).await.expect(303);
    fields[1].1 = "Admin";
    let refused = server.form(&page, &fields).await.expect(412).text();
    refused.has_all(&[
        "Another user has changed this account in the meantime.",
        "name=\"version\" value=\"1\"",
        "<option value=\"Admin\" selected>",
    ]);
    server.form(&page, &fields).await.expect(412);
    let shown = server.page(&page).await;
    shown.has_all(&["name=\"version\" value=\"2\"", "<option value=\"User\" selected>"]);
}
