//! The cost of authenticating a request. For an access token, the gateway parses it, checks its claims and signature,
//! and finds the service account; the issuer's keys are in memory. For an API key or a session, it does a lookup.
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use penstock_auth::keys::NewApiKey;
use penstock_auth::{Caller, Role};
use penstock_config::{Sources, load};
use penstock_service::gateway::Gateway;
use penstock_test_support::forge::{self, Key};
use serde_json::json;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

const ISSUER: &str = "https://idp.invalid/plant";
const AUDIENCE: &str = "api://plant-gateway";

fn bench_bearer(c: &mut Criterion) {
    let keys = [Key::rsa("rsa"), Key::p256("p256"), Key::ed25519("ed25519")];
    let folder = tempfile::tempdir().expect("a folder can be created");
    let gateway = open_gateway(folder.path(), &keys);
    let tokens = gateway.auth.tokens.clone().expect("the issuer is set");
    let runtime = Runtime::new().expect("a runtime can be started");
    let call = |token: &str| -> Caller {
        runtime.block_on(tokens.authenticate_token(token, None)).expect("the token is good")
    };
    let mut group = c.benchmark_group("bearer");
    group.throughput(Throughput::Elements(1));
    for key in &keys {
        let token = key.token(&forge::claims(ISSUER, AUDIENCE));
        // The first call creates the account.
        call(&token);
        group.bench_function(key.algorithm(), |b| b.iter(|| black_box(call(black_box(&token)))));
    }
    // A forged token costs as much, and causes no request to the issuer.
    let forged = Key::rsa("rsa").token(&forge::claims("https://other.invalid", AUDIENCE));
    group.bench_function("of another issuer", |b| {
        b.iter(|| runtime.block_on(tokens.authenticate_token(black_box(&forged), None)).is_err());
    });
    group.finish();
}

/// Measures an API key and a session of a service account.
fn bench_own_credentials(c: &mut Criterion) {
    let signer = Key::p256("p256");
    let folder = tempfile::tempdir().expect("a folder can be created");
    let gateway = open_gateway(folder.path(), std::slice::from_ref(&signer));
    let auth = &gateway.auth;
    let runtime = Runtime::new().expect("a runtime can be started");
    let tokens = auth.tokens.clone().expect("the issuer is set");
    let token = signer.token(&forge::claims(ISSUER, AUDIENCE));
    let caller =
        runtime.block_on(tokens.authenticate_token(&token, None)).expect("the token is good");
    let account = caller.account.clone().expect("the token created it");
    let new = NewApiKey {
        name: "bench".to_owned(),
        role: Role::User,
        expires_at: None,
        business_object: None,
        business_objects: Vec::new(),
    };
    let by = auth.authorize(caller, Role::User).expect("the token gives a role");
    let (_, key) = auth.keys.create_key(&by, new).expect("a key can be created");
    let session =
        auth.sessions.start_session(&account, None, None).expect("a session can be started").id;
    let mut group = c.benchmark_group("own credentials");
    group.throughput(Throughput::Elements(1));
    group.bench_function("API key", |b| {
        b.iter(|| auth.keys.authenticate_key(black_box(&key)).is_ok());
    });
    group.bench_function("unknown API key", |b| {
        b.iter(|| auth.keys.authenticate_key(black_box("penstock_x")).is_err());
    });
    group.bench_function("session", |b| {
        b.iter(|| auth.sessions.authenticate_session(black_box(&session)).is_ok());
    });
    group.finish();
}

/// Opens a gateway that has the issuer's keys in its cache and cannot reach the issuer.
fn open_gateway(dir: &Path, keys: &[Key]) -> Gateway {
    let resource_server = "--framework.security.oauth2.resourceserver.jwt";
    let arguments = vec![
        format!("{resource_server}.issuer-uri={ISSUER}"),
        format!("{resource_server}.audiences={AUDIENCE}"),
        "--service.security.jwt.algorithms=RS256,ES256,EdDSA".to_owned(),
        format!("--service.data-dir={}", dir.display()),
    ];
    let keys: Vec<_> = keys.iter().map(Key::public).collect();
    let file =
        json!({"issuer": ISSUER, "jwkSetUri": null, "fetched": u64::MAX, "jwks": {"keys": keys}});
    std::fs::write(dir.join("jwks.json"), file.to_string()).expect("the folder can be written");
    let loaded =
        load(&Sources { arguments, ..Sources::default() }).expect("the settings are valid");
    Gateway::open(Arc::new(loaded.settings), &mut |_| {}).expect("the gateway opens")
}

criterion_group!(benches, bench_bearer, bench_own_credentials);
criterion_main!(benches);
