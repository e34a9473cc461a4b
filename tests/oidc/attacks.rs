//! Attacks on the sign-in: answers, codes and states that do not match are refused.
use crate::browser::{Page, SIGN_IN};
use crate::{Browser, Gateway};
use penstock_test_support::issuer::sign_in_settings;
use penstock_test_support::prelude::*;
use reqwest::Url;

/// Replaces or removes a query parameter of an address.
fn with_parameter(url: &Url, name: &str, value: Option<&str>) -> Url {
    let kept: Vec<_> = url
        .query_pairs()
        .filter(|(known, _)| known != name)
        .map(|(k, v)| (k.into_owned(), v.into_owned()))
        .collect();
    let mut url = url.clone();
    url.query_pairs_mut().clear().extend_pairs(kept).extend_pairs(value.map(|value| (name, value)));
    url
}

/// Signs in as alice, up to the redirect back to the gateway.
async fn sign_in_until_redirect(browser: &mut Browser) -> Page {
    let begun = browser.get(SIGN_IN).await;
    browser.authenticate_at_provider(begun.redirect_location(), "alice").await
}

#[track_caller]
fn expect_refused(page: Page, browser: &Browser, status: u16, words: &str) {
    let page = page.expect(status, words);
    assert!(!browser.cookies().contains_key("penstock_session"));
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
}

#[tokio::test]
async fn a_wrong_state_code_or_issuer_is_refused() {
    let Some((_provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    let stale = "This sign-in is no longer valid";
    let broken = "The sign-in could not be completed";
    for (name, value, status, words) in [
        ("state", Some("another"), 400, stale),
        ("state", None, 400, stale),
        ("code", Some("another"), 400, stale),
        ("code", None, 400, stale),
        ("iss", Some("https://evil.example"), 502, broken),
        ("iss", None, 502, broken),
    ] {
        let mut browser = gateway.browser();
        let back = sign_in_until_redirect(&mut browser).await.redirect_location();
        let page = browser.get(with_parameter(&back, name, value)).await;
        expect_refused(page, &browser, status, words);
    }
    assert!(!gateway.events("sign-in.refused").await.is_empty());
    gateway.wait_for_log("the answer names another issuer");
    assert!(gateway.users().await.is_empty());
    assert!(gateway.events("sign-in").await.is_empty());
}

#[tokio::test]
async fn an_answer_is_refused_twice_and_in_another_browser() {
    let Some((_provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    let mut browser = gateway.browser();
    let back = sign_in_until_redirect(&mut browser).await.redirect_location();
    let mut other = gateway.browser();
    let page = other.get(&back).await;
    expect_refused(page, &other, 400, "was started in another browser");
    assert_eq!(browser.get(&back).await.status, 303);
    let again = browser.get(&back).await;
    again.expect(400, "was already completed");
}

#[tokio::test]
async fn another_nonce_or_verifier_is_refused() {
    let Some((_provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    for (name, value, status) in [
        ("nonce", "another", 502),
        ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", 400),
    ] {
        let mut browser = gateway.browser();
        let begun = browser.get(SIGN_IN).await.redirect_location();
        let back = browser
            .authenticate_at_provider(with_parameter(&begun, name, Some(value)), "alice")
            .await;
        let page = browser.get(back.redirect_location()).await;
        expect_refused(page, &browser, status, "");
    }
    let refused = gateway.events("sign-in.refused").await;
    assert!(refused.iter().any(|words| words.contains("nonce")), "{refused:#?}");
}

#[tokio::test]
async fn the_code_of_one_sign_in_with_the_state_of_another_is_refused() {
    let Some((_provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    let mut thief = gateway.browser();
    let code = sign_in_until_redirect(&mut thief).await.redirect_parameter("code");
    let mut browser = gateway.browser();
    let back = sign_in_until_redirect(&mut browser).await.redirect_location();
    let page = browser.get(with_parameter(&back, "code", Some(&code))).await;
    expect_refused(page, &browser, 400, "no longer valid");
}

#[tokio::test]
async fn a_sign_in_redirects_only_to_the_gateway() {
    let Some((_provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    for evil in ["//evil.example", "https://evil.example/", "/%5Cevil.example", "/%09/evil.example"]
    {
        let mut browser = gateway.browser();
        let begun =
            browser.get(format!("{}/oauth2/authorization/kc?return={evil}", gateway.url)).await;
        let back = browser.authenticate_at_provider(begun.redirect_location(), "alice").await;
        let done = browser.get(back.redirect_location()).await;
        assert_eq!(done.redirect_location().as_str(), format!("{}/", gateway.url), "{evil}");
    }
}

#[tokio::test]
async fn a_sign_in_cancelled_at_the_provider_is_refused() {
    let Some((_provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    let mut browser = gateway.browser();
    let begun = browser.get(SIGN_IN).await;
    let asked = browser.get(begun.redirect_location()).await.redirect_location();
    let aborted = browser.get(format!("{asked}/abort")).await;
    let back = browser.get(aborted.redirect_location()).await;
    assert_eq!(back.redirect_parameter("error"), "access_denied");
    let page = browser.get(back.redirect_location()).await;
    expect_refused(page, &browser, 403, "cancelled");
    assert!(gateway.events("sign-in.refused").await[0].contains("access_denied"));
}

#[tokio::test]
async fn a_flood_of_bad_answers_does_not_fill_the_log() {
    // It needs no provider, as a client that floods does not.
    let gateway = Gateway::start(&sign_in_settings("http://127.0.0.1:1", "penstock-web")).await;
    let mut browser = gateway.browser();
    for _ in 0..50 {
        let page = browser.get("/login/oauth2/code/kc?code=c&state=s").await;
        page.expect(400, "This sign-in is no longer valid");
    }
    // Once a later line has been read, all of them have.
    let key = json!({"name": "line-1", "role": "User"});
    gateway.send_locally("POST", "/api/v1/api-keys", &key).await;
    gateway.wait_for_log("key.created");
    let reason = "belongs to no sign-in in progress";
    // Two minutes may have begun meanwhile. The audit trail has lines of its own.
    let lines = gateway.log().lines().filter(|line| line.contains(reason)).count();
    assert!(lines <= 30, "{lines} lines in\n{}", gateway.log());
}

#[tokio::test]
async fn no_secret_is_in_the_log() {
    let Some((_provider, gateway)) = Gateway::with_provider(&["--service.log.level=trace"]).await
    else {
        return;
    };
    let mut browser = gateway.browser();
    let back = sign_in_until_redirect(&mut browser).await;
    assert_eq!(browser.get(back.redirect_location()).await.status, 303);
    let session = browser.cookies()["penstock_session"].clone();
    let log = gateway.log();
    for secret in ["web-secret-0123456789abcdef0123456", &session, &back.redirect_parameter("code")]
    {
        assert!(!log.contains(secret), "{secret} is in\n{log}");
    }
    assert!(!log.contains("eyJ"), "a token is in\n{log}");
}
