use super::*;
use crate::fixture::load_settings;
use penstock_store::{Options, Store};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Returns the request that the token endpoint receives, without discovery and with this setting.
async fn exchange(more: Option<&str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let client = "--framework.security.oauth2.client";
    let mut arguments = vec![
        "--security=oauth2".to_owned(),
        "--profiles.active=oauth2".to_owned(),
        "--service.security.registration=kc".to_owned(),
        format!("{client}.registration.kc.client-id=web"),
        format!("{client}.registration.kc.client-secret=web-secret"),
        format!("{client}.provider.kc.authorization-uri={address}/authorize"),
        format!("{client}.provider.kc.token-uri={address}/token"),
        format!("{client}.provider.kc.jwk-set-uri={address}/jwks"),
    ];
    arguments.extend(
        more.map(|method| {
            format!("{client}.registration.kc.client-authentication-method={method}")
        }),
    );
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let settings = load_settings(dir.path(), &arguments);
    let store = Store::open(&dir.path().join("store"), Options::default(), &mut |_| {}).unwrap();
    let clock = Clock::open(store).unwrap();
    let oidc = settings.security.oidc.as_ref().unwrap();
    let provider = Provider::new(oidc, &settings.security, &clock).unwrap();
    let request = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        // Reads until the verifier arrives. It may not be the last field, so this does not detect the body's end.
        while !String::from_utf8_lossy(&read).contains("code_verifier=") {
            let mut piece = [0; 1024];
            let count = stream.read(&mut piece).await.unwrap();
            assert!(count > 0, "it ended early");
            read.extend_from_slice(&piece[..count]);
        }
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        String::from_utf8(read).unwrap()
    });
    let login = LoginState {
        state: "s".to_owned(),
        nonce: "n".to_owned(),
        verifier: "v".repeat(43),
        redirect_uri: "http://localhost/login/oauth2/code/kc".to_owned(),
        back: "/".to_owned(),
        begun: 0,
    };
    assert!(provider.exchange_code(&login, "code".to_owned(), &[]).await.is_err());
    request.await.unwrap()
}

#[tokio::test]
async fn the_secret_is_sent_as_configured() {
    for (method, in_body) in
        [(None, false), (Some("client_secret_basic"), false), (Some("client_secret_post"), true)]
    {
        let request = exchange(method).await;
        let has_header = request.to_lowercase().contains("authorization: basic");
        let has_field = request.contains("client_secret=web-secret");
        assert_eq!((has_header, has_field), (!in_body, in_body), "{method:?}: {request}");
    }
}

#[tokio::test]
async fn an_unreachable_provider_is_asked_again_only_after_a_while() {
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
    let settings = load_settings(
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
    let mut provider = Provider::new(oidc, &settings.security, &clock).unwrap();
    let old = Arc::new(Endpoints::from_settings(oidc));
    // Discovered before, and due for a rediscovery.
    provider.endpoints = Cache::new(Some(old.clone()));
    assert!(Arc::ptr_eq(&provider.current_endpoints().await.unwrap(), &old));
    let once = asked.load(Ordering::Relaxed);
    assert!(once > 0);
    for _ in 0..3 {
        assert!(Arc::ptr_eq(&provider.current_endpoints().await.unwrap(), &old));
    }
    assert_eq!(asked.load(Ordering::Relaxed), once);
    away.abort();
}
