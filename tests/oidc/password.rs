//! Sign-in with a password: by form and by JSON.
use crate::Gateway;

#[tokio::test]
async fn the_first_admin_signs_in_and_out() {
    let gateway = Gateway::start(&[]).await;
    let mut browser = gateway.browser();
    let asked = browser.get("/api/v1/limits?x=1").await;
    let sign_in = format!("{}/login?return=/api/v1/limits%3Fx%3D1", gateway.url);
    assert_eq!(asked.redirect_location().as_str(), sign_in);
    let page = browser.get(asked.redirect_location()).await.expect(200, "<h1>Sign in</h1>");
    assert_eq!(page.hidden_field("return"), "/api/v1/limits?x=1");
    let form = format!("email=admin&password={}&return=/api/v1/limits", gateway.initial_password());
    let done = browser.post("/login", &form).await;
    assert_eq!((done.status, &*done.redirect_path()), (303, "/api/v1/limits"));
    let cookie = done.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{cookie}");
    let first = browser.cookies()["penstock_session"].clone();
    let home = browser.get("/admin/profile").await.expect(200, "<h1>admin</h1>");
    assert_eq!(
        browser.get("/login").await.redirect_path(),
        "/",
        "the browser is already signed in"
    );

    // A new sign-in creates a new session and ends the previous one.
    browser.post("/login", &form).await;
    let second = browser.cookies()["penstock_session"].clone();
    assert_ne!(first, second);
    let kept = format!("penstock_session={first}");
    let mut old = gateway.browser();
    let page = old.send("GET", "/", &[("cookie", &kept)], None).await;
    assert_eq!(page.redirect_path(), "/login");

    // A page of another site cannot sign the person out, and neither can the CSRF token of another session.
    let logout = "/logout";
    let foreign =
        browser.send("POST", logout, &[("origin", "https://evil.example")], Some("")).await;
    foreign.expect(403, "another site");
    let wrong = format!("_csrf={}", home.hidden_field("_csrf"));
    browser.send("POST", logout, &[], Some(&wrong)).await.expect(403, "X-CSRF-Token");
    let home = browser.get("/admin").await;
    let form = format!("_csrf={}", home.hidden_field("_csrf"));
    let out = browser.send("POST", logout, &[], Some(&form)).await;
    assert_eq!(out.redirect_path(), "/signed-out");
    assert!(!browser.cookies().contains_key("penstock_session"));
    browser.get(out.redirect_location()).await.expect(200, "You are signed out");
    let again = browser.send("POST", logout, &[("accept", "*/*")], Some("")).await;
    assert!(matches!(again.status, 204 | 303), "{}", again.status);
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_email_look_the_same() {
    let gateway = Gateway::start(&[]).await;
    let url = "/login";
    let mut pages = Vec::new();
    for email in ["admin", "nobody%40plant.example"] {
        let page =
            gateway.browser().post(url, &format!("email={email}&password=wrong-password")).await;
        let page = page.expect(401, "The user name or the password is wrong.");
        assert!(page.headers.contains_key("www-authenticate"));
        assert!(!page.text.contains("wrong-password"));
        pages.push(page.text.replace("admin", "X").replace("nobody@plant.example", "X"));
    }
    assert_eq!(pages[0], pages[1]);
    let foreign = [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")];
    let page = gateway.browser().send("POST", url, &foreign, Some("email=admin&password=x")).await;
    page.expect(403, "another site");
}

#[tokio::test]
async fn a_client_with_too_many_failures_must_wait() {
    let gateway = Gateway::start(&[]).await;
    let url = "/login";
    for _ in 0..200 {
        let page = gateway.browser().post(url, "email=nobody&password=wrong").await;
        if page.status == 429 {
            let seconds: u64 = page.headers["retry-after"].to_str().unwrap().parse().unwrap();
            assert!(seconds > 0);
            page.expect(429, "Too many failed attempts. Try again in");
            return;
        }
    }
    panic!("no attempt got 429");
}

#[tokio::test]
async fn programs_sign_in_with_json() {
    let gateway = Gateway::start(&[]).await;
    let url = format!("{}/login", gateway.url);
    let client = reqwest::Client::new();
    let post = |body: String, kind: &'static str| {
        client.post(&url).header("content-type", kind).body(body).send()
    };
    let password = gateway.initial_password();
    let right = serde_json::json!({"email": "admin", "password": password}).to_string();
    let answer = post(right.clone(), "application/json").await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.headers()["set-cookie"].to_str().unwrap().starts_with("penstock_session="));
    let body: serde_json::Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!((body["email"].as_str(), body["roles"][0].as_str()), (Some("admin"), Some("Admin")));
    for (body, kind, status) in [
        (r#"{"email":"admin","password":"planted-secret"}"#.to_owned(), "application/json", 401),
        (
            r#"{"email":"admin","password":"planted-secret","x":1}"#.to_owned(),
            "application/json",
            400,
        ),
        (r#"{"email":"admin","password":["planted-secret"]}"#.to_owned(), "application/json", 400),
        (right.clone(), "text/plain", 415),
        ("x".repeat(70_000), "application/json", 413),
    ] {
        let answer = post(body, kind).await.unwrap();
        assert_eq!(answer.status(), status);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        assert!(!answer.text().await.unwrap().contains("planted-secret"));
    }
    assert!(!gateway.log().contains("planted-secret") && !gateway.log().contains(&password));
}
