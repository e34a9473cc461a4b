//! A provider that is unreachable, slow, or has new keys.
use crate::{Browser, Gateway, Provider};

const UNAVAILABLE_TEXT: &str = "Signing in is not possible right now";

#[tokio::test]
async fn a_provider_that_is_down_at_the_start_is_discovered_later() {
    let Some(provider) = Provider::start(&[]) else { return };
    provider.send_command("/down").await;
    let gateway = Gateway::start_with_provider(&provider, &[]).await;
    let mut browser = Browser::new();
    browser
        .get(format!("{}/oauth2/authorization/kc", gateway.url))
        .await
        .expect(503, UNAVAILABLE_TEXT);
    browser.get(format!("{}/health/ready", gateway.url)).await.expect(200, "");
    provider.send_command("/up").await;
    assert_eq!(browser.sign_in(&gateway.url, "alice").await.status, 303);
}

#[tokio::test]
async fn sessions_continue_while_the_provider_is_down() {
    let Some(provider) = Provider::start(&[]) else { return };
    let gateway = Gateway::start_with_provider(&provider, &[]).await;
    let mut inside = Browser::new();
    assert_eq!(inside.sign_in(&gateway.url, "alice").await.status, 303);
    let mut browser = Browser::new();
    let begun = browser.get(format!("{}/oauth2/authorization/kc", gateway.url)).await;
    let back =
        browser.authenticate_at_provider(begun.redirect_location(), "bob", &gateway.url).await;
    provider.send_command("/down").await;
    browser.get(back.redirect_location()).await.expect(503, UNAVAILABLE_TEXT);
    inside.get(format!("{}/admin", gateway.url)).await.expect(200, "Alice");
    provider.send_command("/up").await;
    assert_eq!(browser.sign_in(&gateway.url, "bob").await.status, 303);
}

#[tokio::test]
async fn a_slow_provider_causes_a_timeout() {
    let Some(provider) = Provider::start(&[]) else { return };
    let gateway = Gateway::start_with_provider(&provider, &[]).await;
    provider.send_command("/delay?ms=60000").await;
    let page = Browser::new().get(format!("{}/oauth2/authorization/kc", gateway.url)).await;
    page.expect(503, UNAVAILABLE_TEXT);
    assert!(gateway.log().contains("no answer within 5 s"), "{}", gateway.log());
}

#[tokio::test]
async fn new_keys_are_fetched() {
    let Some(provider) = Provider::start(&[]) else { return };
    let gateway = Gateway::start_with_provider(&provider, &[]).await;
    for rotation in ["", "/rotate", "/rotate?keep=0"] {
        if !rotation.is_empty() {
            provider.send_command(rotation).await;
        }
        let page = Browser::new().sign_in(&gateway.url, "alice").await;
        assert_eq!(page.status, 303, "{rotation}: {}", page.text);
    }
}
