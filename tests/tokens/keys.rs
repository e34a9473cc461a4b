//! The issuer's keys: fetched, shared, rotated, and cached while the issuer is unreachable.
use crate::gateway::Gateway;
use penstock_test_support::forge::{Key, with};
use penstock_test_support::issuer::{accept_tokens, claims};
use penstock_test_support::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_is_followed_with_and_without_overlap() {
    for overlap in [true, false] {
        let (old, new) = (Key::rsa("old"), Key::rsa("new"));
        let issuer = Issuer::start(&[&old]);
        let gateway = Gateway::start(&issuer, &[]).await;
        let [by_old, by_new] = [&old, &new].map(|key| key.token(&claims(&issuer)));
        assert_eq!(gateway.status(&by_old).await, 200);
        if overlap {
            issuer.rotate(&[&old, &new]);
        } else {
            issuer.rotate(&[&new]);
        }
        // The gateway fetches the keys once for all concurrent requests with the new key.
        let asked = issuer.state().asked;
        let statuses =
            futures_util::future::join_all((0..50).map(|_| gateway.status(&by_new))).await;
        assert_eq!(statuses, [200; 50]);
        assert_eq!(issuer.state().asked, asked + 1);
        assert_eq!(gateway.status(&by_old).await, if overlap { 200 } else { 401 });
        // For the next unknown key it is too early to fetch the keys again.
        let unknown = Key::rsa("unknown");
        issuer.rotate(&[&unknown]);
        assert_eq!(gateway.status(&unknown.token(&claims(&issuer))).await, 401);
        assert_eq!(issuer.state().asked, asked + 1);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_is_down_at_the_start_is_asked_again() {
    let (key, issuer) = Issuer::with_key();
    issuer.state().down = true;
    let gateway = Gateway::start(&issuer, &[]).await;
    // The start does not wait for the issuer.
    gateway.get("/health/ready").await.expect(200);
    issuer.state().down = false;
    assert_eq!(gateway.status(&key.token(&claims(&issuer))).await, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_keys_the_answer_is_503() {
    let (key, issuer) = Issuer::with_key();
    issuer.state().down = true;
    let gateway = Gateway::start(&issuer, &[]).await;
    let answer = gateway.ask(&key.token(&claims(&issuer))).await;
    assert!(answer.headers.contains_key("retry-after"));
    answer.refused(503, "keys");
    // A token that is not for this gateway is still refused.
    let other = key.token(&with(&claims(&issuer), &json!({"aud": "other"})));
    assert_eq!(gateway.status(&other).await, 401);
    assert!(gateway.accounts().is_empty());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_without_its_issuer_uses_the_cached_keys_after_a_restart() {
    let (key, issuer) = Issuer::with_key();
    let dir = tempfile::tempdir().unwrap();
    let token = key.token(&claims(&issuer));
    let gateway = Gateway::start_in(dir.path(), &issuer, &[]).await;
    assert_eq!(gateway.status(&token).await, 200);
    issuer.state().down = true;
    assert_eq!(gateway.status(&token).await, 200);
    gateway.stop().await;

    let gateway = Gateway::start_in(dir.path(), &issuer, &[]).await;
    assert_eq!(gateway.status(&token).await, 200);
    // A token with an unknown key may be valid. The gateway cannot check it now.
    let unknown = Key::rsa("unknown").token(&claims(&issuer));
    assert_eq!(gateway.status(&unknown).await, 503);
    let file = std::fs::metadata(gateway.gateway().settings.data_dir.join("jwks.json")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o777, 0o600);
    gateway.stop().await;

    // The cached keys of one issuer are not used for another.
    let other = Issuer::start(&[]);
    other.state().down = true;
    let gateway = Gateway::start_in(dir.path(), &other, &[]).await;
    assert_eq!(gateway.status(&key.token(&claims(&other))).await, 503);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_keys_are_used_until_max_stale() {
    let (key, issuer) = Issuer::with_key();
    let dir = tempfile::tempdir().unwrap();
    let token = key.token(&claims(&issuer));
    let gateway = Gateway::start_in(dir.path(), &issuer, &[]).await;
    assert_eq!(gateway.status(&token).await, 200);
    gateway.stop().await;
    issuer.state().down = true;
    // As if eight days had passed.
    let file = dir.path().join("data/jwks.json");
    let mut kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    kept["fetched"] = json!(kept["fetched"].as_u64().unwrap() - 8 * 24 * 3_600_000);
    std::fs::write(&file, kept.to_string()).unwrap();
    let longer = ["--service.security.jwks.max-stale=9d"];
    let gateway = Gateway::start_in(dir.path(), &issuer, &longer).await;
    assert_eq!(gateway.status(&token).await, 200);
    gateway.stop().await;
    let gateway = Gateway::start_in(dir.path(), &issuer, &[]).await;
    gateway.ask(&token).await.refused(503, "max-stale");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_issuer_does_not_delay_tokens_with_known_keys() {
    let (key, issuer) = Issuer::with_key();
    let gateway = Gateway::start(&issuer, &[]).await;
    let token = key.token(&claims(&issuer));
    assert_eq!(gateway.status(&token).await, 200);
    issuer.state().delay = TEST_TIMEOUT * 2;
    let unknown = Key::rsa("unknown").token(&claims(&issuer));
    let mut asked = Box::pin(gateway.status(&unknown));
    // While one request waits, the other is accepted.
    tokio::select! {
        status = &mut asked => panic!("{status} came first"),
        status = gateway.status(&token) => assert_eq!(status, 200),
    }
    // The request to the issuer has a timeout, so the gateway answers long before the issuer does.
    assert_eq!(tokio::time::timeout(TEST_TIMEOUT, &mut asked).await.unwrap(), 503);
    drop(asked);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_of_another_issuer_is_refused() {
    let (key, issuer) = Issuer::with_key();
    issuer.state().claims_to_be = Some(format!("{}/", issuer.url));
    let gateway = Gateway::start(&issuer, &[]).await;
    assert_eq!(gateway.status(&key.token(&claims(&issuer))).await, 503);
    assert_eq!(issuer.state().asked, 0);
    gateway.stop().await;
    // With a configured address of the keys, no metadata is requested.
    let setting =
        format!("--framework.security.oauth2.resourceserver.jwt.jwk-set-uri={}/jwks", issuer.url);
    let gateway = Gateway::start(&issuer, &[&setting]).await;
    assert_eq!(gateway.status(&key.token(&claims(&issuer))).await, 200);
    gateway.stop().await;
}

#[test]
fn the_log_says_that_there_are_no_keys_yet() {
    let (_, issuer) = Issuer::with_key();
    issuer.state().down = true;
    let dir = tempfile::tempdir().unwrap();
    let mut settings = accept_tokens(&issuer.url, &issuer.audience);
    settings.push("--service.data-dir=data".to_owned());
    let service = TestProcess::start(dir.path(), &lent(&settings));
    service.wait_for_log("access tokens get 503 until then");
    assert!(!service.log().contains("uses the cached keys"), "{}", service.log());
    service.stop();
}
