use super::*;
use crate::auth::world::settings;
use penstock_store::{Options, Store};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;

#[tokio::test]
async fn a_provider_that_went_away_is_asked_again_only_after_a_while() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = asked.clone();
    let away = tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counts.fetch_add(1, Ordering::Relaxed);
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let client = "--framework.security.oauth2.client";
    let settings = settings(
        dir.path(),
        &[
            "--security=oauth2",
            "--profiles.active=oauth2",
            "--service.security.registration=kc",
            &format!("{client}.registration.kc.client-id=web"),
            &format!("{client}.registration.kc.client-secret=web-secret-0123456789abcdef0123456"),
            &format!("{client}.provider.kc.issuer-uri={issuer}"),
            &format!("{client}.provider.kc.authorization-uri={issuer}/authorize"),
            &format!("{client}.provider.kc.token-uri={issuer}/token"),
            &format!("{client}.provider.kc.jwk-set-uri={issuer}/jwks"),
        ],
    );
    let store = Store::open(&dir.path().join("store"), Options::default(), &mut |_| {}).unwrap();
    let clock = Clock::open(store).unwrap();
    let oidc = settings.security.oidc.as_ref().unwrap();
    let provider = Provider::new(oidc, &settings.security, &clock).unwrap();
    let old = Arc::new(Endpoints::given(oidc));
    // Discovered an hour ago.
    *provider.known.lock().unwrap() = Some((old.clone(), Instant::now()));
    assert!(Arc::ptr_eq(&provider.endpoints().await.unwrap(), &old));
    let once = asked.load(Ordering::Relaxed);
    assert!(once > 0);
    for _ in 0..3 {
        assert!(Arc::ptr_eq(&provider.endpoints().await.unwrap(), &old));
    }
    assert_eq!(asked.load(Ordering::Relaxed), once);
    away.abort();
}
