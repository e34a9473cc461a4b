//! The flow of sign-in and sign-out.
use crate::Gateway;
use crate::browser::SIGN_IN;
use penstock_test_support::prelude::*;

#[tokio::test]
async fn a_sign_in_creates_an_account_and_a_session() {
    let Some((provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    let mut browser = gateway.browser();

    // A page that needs a session redirects to the login page, which redirects to the provider.
    let page = browser.get("/").await;
    assert_eq!((page.status, &*page.redirect_path()), (303, "/login"));
    let page = browser.get("/login?return=/api/v1/limits").await;
    let link = "/oauth2/authorization/kc?return=/api/v1/limits";
    let page =
        page.expect(200, &format!("<a class=\"button\" href=\"{link}\">Sign in with kc</a>"));
    let begun = browser.get(page.url.join(link).unwrap()).await;
    assert_eq!(begun.status, 303);
    let callback = format!("{}/login/oauth2/code/kc", gateway.url);
    assert_eq!(begun.redirect_parameter("redirect_uri"), callback);
    assert_eq!(begun.redirect_parameter("scope"), "profile openid");
    assert_eq!(begun.redirect_parameter("response_type"), "code");
    assert_eq!(begun.redirect_parameter("code_challenge_method"), "S256");
    let cookie = begun.headers["set-cookie"].to_str().unwrap();
    cookie.has_all(&["HttpOnly", "SameSite=Lax", "Max-Age=600", "Path=/"]);
    let back = browser.authenticate_at_provider(begun.redirect_location(), "alice").await;
    let done = browser.get(back.redirect_location()).await;
    assert_eq!((done.status, &*done.redirect_path()), (303, "/api/v1/limits"));
    let kept = browser.cookies().clone();
    assert_eq!(
        kept.keys().collect::<Vec<_>>(),
        ["penstock_session"],
        "the cookie of the sign-in is deleted"
    );
    browser.get(done.redirect_location()).await.expect(200, "nesting");
    assert_eq!(browser.get("/").await.redirect_path(), "/admin");
    let home = browser.get("/admin/profile").await;
    let home = home.expect(200, "<h1>Alice Ångström</h1>");
    home.text.has_all(&["alice@plant.example", "Plant 1", "<dd>Admin</dd>"]);

    let account = gateway.account("alice@plant.example").await;
    assert_eq!(account["roles"], json!(["Admin"]), "the highest of her roles");
    assert_eq!(account["serviceAccount"], false);
    assert!(account["firstLogin"].is_string() && account["lastLogin"].is_string(), "{account}");
    assert_eq!(gateway.events("sign-in").await.len(), 1);

    let stolen = format!("penstock_session={}", kept["penstock_session"]);
    let url = "/api/v1/limits";
    let get_with_stolen_session = async || {
        let headers = [("cookie", stolen.as_str()), ("accept", "*/*")];
        gateway.browser().send("GET", url, &headers, None).await
    };
    assert_eq!(get_with_stolen_session().await.status, 200);

    // The sign-out ends the session here, then at the provider, which redirects back.
    let csrf = home.hidden_field("_csrf");
    let out = browser.post("/logout", &format!("_csrf={csrf}")).await;
    assert!(
        out.redirect_location().as_str().starts_with(&format!("{}/session/end?", provider.issuer)),
        "{}",
        out.redirect_location()
    );
    let signed_out = format!("{}/signed-out", gateway.url);
    assert_eq!(out.redirect_parameter("post_logout_redirect_uri"), signed_out);
    assert_eq!(out.redirect_parameter("client_id"), "penstock-web");
    assert_eq!(out.redirect_parameter("id_token_hint").split('.').count(), 3);
    let asked = browser.get(out.redirect_location()).await.expect(200, "Do you want to sign-out");
    let xsrf = asked.hidden_field("xsrf");
    let ended = browser
        .post(
            &format!("{}/session/end/confirm", provider.issuer),
            &format!("xsrf={xsrf}&logout=yes"),
        )
        .await;
    assert_eq!(ended.redirect_location().as_str(), signed_out);
    browser.get(ended.redirect_location()).await.expect(200, "You are signed out");
    assert_eq!(browser.get("/").await.redirect_path(), "/login");
    let refused = get_with_stolen_session().await;
    assert_eq!(
        (refused.status, &*refused.redirect_path()),
        (303, "/login"),
        "the session ended here, too"
    );
}

#[tokio::test]
async fn each_sign_in_updates_the_account() {
    let Some((provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    assert_eq!(gateway.browser().sign_in("carol").await.status, 303);
    let before = gateway.account("carol@plant.example").await;
    assert_eq!(before["roles"], json!(["Contributor"]));
    let change = json!({"sub": "carol", "roles": ["ACCURIDS_USER"], "family_name": "Miller", "user_email": "carol@other.example"});
    provider.change_user(&change).await;
    assert_eq!(gateway.browser().sign_in("carol").await.status, 303);
    let after = gateway.account("carol@other.example").await;
    assert_eq!(after["id"], before["id"], "the account is found by sub, not by email");
    assert_eq!(after["roles"], json!(["User"]));
    assert_eq!(after["familyName"], "Miller");
    assert_eq!(after["firstLogin"], before["firstLogin"]);

    // The email of another account does not give access to it.
    provider.change_user(&json!({"sub": "bob", "user_email": "carol@other.example"})).await;
    gateway.browser().sign_in("bob").await;
    let users = gateway.users().await;
    let named = users.iter().filter(|user| user["givenName"] == "Carol");
    assert_eq!(named.map(|user| &user["id"]).collect::<Vec<_>>(), [&before["id"]], "{users:?}");
}

#[tokio::test]
async fn a_disabled_account_is_refused_whatever_the_provider_says() {
    let Some((_provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    let mut browser = gateway.browser();
    assert_eq!(browser.sign_in("bob").await.status, 303);
    let mut account = gateway.account("bob@plant.example").await;
    let path = format!("/api/v1/users/{}", account["id"].text());
    account["enabled"] = json!(false);
    gateway.send_locally("PUT", &path, &account).await;
    assert_eq!(browser.get("/").await.redirect_path(), "/login");
    gateway.browser().sign_in("bob").await.expect(403, "Your account is disabled");
}

#[tokio::test]
async fn passwords_are_disabled() {
    let Some((_provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    assert!(!gateway.dir.path().join("data/initial-admin-password").exists());
    let mut browser = gateway.browser();
    let page = browser.post("/login", "email=admin&password=x").await;
    page.expect(404, "sign in at the provider");
    browser.get("/oauth2/authorization/azure").await.expect(404, "azure");
}

#[tokio::test]
async fn the_redirect_uri_is_that_of_the_original_request() {
    let Some(provider) = Provider::start(&[]) else { return };
    let native =
        ["--server.forward-headers-strategy=native", "--service.trusted-proxies=127.0.0.1"];
    let gateway = Gateway::start_with_provider(&provider, &native).await;
    let url = SIGN_IN;
    for (headers, uri) in [
        (
            &[
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "gw.example"),
                ("x-forwarded-prefix", "/plant"),
            ][..],
            "https://gw.example/plant",
        ),
        (&[("forwarded", "proto=https;host=\"one.example:8443\"")], "https://one.example:8443"),
    ] {
        let page = gateway.browser().send("GET", url, headers, None).await;
        assert_eq!(page.redirect_parameter("redirect_uri"), format!("{uri}/login/oauth2/code/kc"));
        let cookie = page.headers["set-cookie"].to_str().unwrap();
        assert!(
            cookie.starts_with("__Host-penstock_login_") && cookie.contains("; Secure"),
            "{cookie}"
        );
    }
    // Forwarded headers count only from a trusted proxy; `service.base-url` and a fixed URI replace them.
    let forged = [("x-forwarded-proto", "https"), ("x-forwarded-host", "evil.example")];
    let fixed = "--framework.security.oauth2.client.registration.kc.redirect-uri=https://fixed.example/login/oauth2/code/kc";
    for (setting, uri) in [
        (None, None),
        (Some("--service.base-url=https://base.example/x"), Some("https://base.example/x")),
        (Some(fixed), Some("https://fixed.example")),
    ] {
        let gateway = Gateway::start_with_provider(&provider, setting.as_slice()).await;
        let url = SIGN_IN;
        let page = gateway.browser().send("GET", url, &forged, None).await;
        let expected = format!("{}/login/oauth2/code/kc", uri.unwrap_or(&gateway.url));
        assert_eq!(page.redirect_parameter("redirect_uri"), expected);
    }
}
