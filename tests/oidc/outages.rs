//! A provider that is unreachable, slow, or has new keys.
use crate::Gateway;
use crate::browser::SIGN_IN;
use penstock_test_support::prelude::*;

const UNAVAILABLE_TEXT: &str = "Signing in is not possible right now";

#[tokio::test]
async fn a_provider_that_is_down_at_the_start_is_discovered_later() {
    let Some(provider) = Provider::start(&[]) else { return };
    provider.send_command("/down").await;
    let gateway = Gateway::start_with_provider(&provider, &[]).await;
    let mut browser = gateway.browser();
    browser.get(SIGN_IN).await.expect(503, UNAVAILABLE_TEXT);
    browser.get("/health/ready").await.expect(200, "");
    provider.send_command("/up").await;
    assert_eq!(browser.sign_in("alice").await.status, 303);
}

#[tokio::test]
async fn sessions_continue_while_the_provider_is_down() {
    let Some((provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    let mut inside = gateway.browser();
    assert_eq!(inside.sign_in("alice").await.status, 303);
    let mut browser = gateway.browser();
    let begun = browser.get(SIGN_IN).await;
    let back = browser.authenticate_at_provider(begun.redirect_location(), "bob").await;
    provider.send_command("/down").await;
    browser.get(back.redirect_location()).await.expect(503, UNAVAILABLE_TEXT);
    inside.get("/admin").await.expect(200, "Alice");
    provider.send_command("/up").await;
    assert_eq!(browser.sign_in("bob").await.status, 303);
}

#[tokio::test]
async fn a_slow_provider_causes_a_timeout() {
    let Some((provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    provider.send_command("/delay?ms=60000").await;
    let page = gateway.browser().get(SIGN_IN).await;
    page.expect(503, UNAVAILABLE_TEXT);
    gateway.wait_for_log("no answer within 5 s");
}

#[tokio::test]
async fn new_keys_are_fetched() {
    let Some((provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    for rotation in ["", "/rotate", "/rotate?keep=0"] {
        if !rotation.is_empty() {
            provider.send_command(rotation).await;
        }
        let page = gateway.browser().sign_in("alice").await;
        assert_eq!(page.status, 303, "{rotation}: {}", page.text);
    }
}
