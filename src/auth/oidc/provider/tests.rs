use super::*;
use crate::fixture::load_settings;
use penstock_store::{Options, Store};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const CLIENT: &str = "--framework.security.oauth2.client";

/// Creates a provider whose endpoints are at this address, with these settings too. It has its clock in the folder.
fn provider_at(address: &str, more: &[String]) -> (Provider, config::Oidc, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let own = [
        "--security=oauth2".to_owned(),
        "--profiles.active=oauth2".to_owned(),
        "--service.security.registration=kc".to_owned(),
        format!("{CLIENT}.registration.kc.client-id=web"),
        format!("{CLIENT}.registration.kc.client-secret=web-secret-0123456789abcdef0123456"),
        format!("{CLIENT}.provider.kc.authorization-uri={address}/authorize"),
        format!("{CLIENT}.provider.kc.token-uri={address}/token"),
        format!("{CLIENT}.provider.kc.jwk-set-uri={address}/jwks"),
    ];
    let arguments: Vec<&str> = own.iter().chain(more).map(String::as_str).collect();
    let settings = load_settings(dir.path(), &arguments);
    let store = Store::open(&dir.path().join("store"), Options::default(), &mut |_| {}).unwrap();
    let oidc = settings.security.oidc.clone().unwrap();
    let clock = Clock::open(store).unwrap();
    (Provider::new(&oidc, &settings.security, &clock).unwrap(), oidc, dir)
}

/// Returns the request that the token endpoint receives, without discovery and with this setting.
async fn exchange(more: Option<&str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let method = more
        .map(|method| format!("{CLIENT}.registration.kc.client-authentication-method={method}"));
    let (provider, _, _dir) = provider_at(&address, method.as_slice());
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
    let code = "code".to_owned();
    assert!(provider.exchange_code(&sample_login(), code, &[], None).await.is_err());
    request.await.unwrap()
}

fn sample_login() -> LoginState {
    LoginState {
        state: "s".to_owned(),
        nonce: "n".to_owned(),
        verifier: "v".repeat(43),
        redirect_uri: "http://localhost/login/oauth2/code/kc".to_owned(),
        back: "/".to_owned(),
        begun: 0,
    }
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

#[test]
fn the_userinfo_endpoint_adds_claims_that_are_missing_or_null() {
    let map = |value: Value| value.as_object().unwrap().clone();
    let mut claims = map(json!({"sub": "a", "roles": null, "given_name": "Ada"}));
    let more = map(json!({"roles": ["USER"], "given_name": "Other", "user_email": "a@b"}));
    add_missing_claims(&mut claims, more);
    let expected = json!({"sub": "a", "roles": ["USER"], "given_name": "Ada", "user_email": "a@b"});
    assert_eq!(Value::from(claims), expected);

    // Claims such as `realm_access.roles` are inside others.
    let mut claims = map(json!({"a": {"roles": null}, "b": {"kept": 1}, "c": ["USER"]}));
    let more =
        map(json!({"a": {"roles": ["USER"]}, "b": {"kept": 2, "d": 3}, "c": {"roles": ["ADMIN"]}}));
    add_missing_claims(&mut claims, more);
    let expected = json!({"a": {"roles": ["USER"]}, "b": {"kept": 1, "d": 3}, "c": ["USER"]});
    assert_eq!(Value::from(claims), expected);
}

#[tokio::test]
async fn one_address_leaves_exchanges_to_others() {
    // Nothing listens there.
    let (provider, _, _dir) = provider_at("http://127.0.0.1:1", &[]);
    let client = |address: &str| Some(network::network_of(address.parse().unwrap()));
    let permits = &provider.exchange_permits;
    let held: Vec<_> = (0..MAX_CONCURRENT_EXCHANGES)
        .filter_map(|_| permits.try_acquire(client("2001:db8::1"), 1))
        .collect();
    assert_eq!(held.len() as u64, MAX_CONCURRENT_EXCHANGES_PER_ADDRESS);
    assert!(!permits.has_capacity(&client("2001:db8::2"), 1), "it is of the same network");
    let (login, other) = (sample_login(), "192.0.2.1".parse().ok());
    let result = provider.exchange_code(&login, "code".to_owned(), &[], other).await;
    let error = result.map(drop).unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:1/token"), "{error}");
}

#[tokio::test]
async fn a_sign_in_that_gets_no_permit_names_the_gateway_and_not_the_provider() {
    let (provider, _, _dir) = provider_at("http://127.0.0.1:1", &[]);
    let client: Option<IpAddr> = "192.0.2.1".parse().ok();
    let held: Vec<_> = (0..MAX_CONCURRENT_EXCHANGES_PER_ADDRESS)
        .map(|_| provider.exchange_permits.try_acquire(client.map(network::network_of), 1).unwrap())
        .collect();
    let exchange = async || {
        let code = "code".to_owned();
        provider.exchange_code(&sample_login(), code, &[], client).await.map(drop).unwrap_err()
    };
    let busy = exchange().await;
    assert!(matches!(busy, SignInError::Busy { .. }), "{busy}");
    assert!(busy.to_string().starts_with("the gateway is busy"), "{busy}");
    drop(held);
    assert!(matches!(exchange().await, SignInError::Unreachable(_)));
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
    let (mut provider, oidc, _dir) =
        provider_at(&issuer, &[format!("{CLIENT}.provider.kc.issuer-uri={issuer}")]);
    let old = Arc::new(Endpoints::from_settings(&oidc));
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
