//! What a request with an access token costs before anything is done for it: the token is taken apart and
//! checked, its signature too, and the service account is found. The keys are in memory.
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use forge::Key;
use penstock::auth::Caller;
use penstock::config::{Sources, load};
use penstock::gateway::Gateway;
use serde_json::json;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

#[expect(dead_code, reason = "the tests forge more than is measured here")]
#[path = "../tests/tokens/forge.rs"]
mod forge;

const ISSUER: &str = "https://idp.invalid/plant";
const AUDIENCE: &str = "api://plant-gateway";

fn bearer(c: &mut Criterion) {
    let keys = [Key::rsa("rsa"), Key::p256("p256"), Key::ed25519("ed25519")];
    let folder = tempfile::tempdir().expect("a folder can be made");
    let gateway = gateway(folder.path(), &keys);
    let tokens = gateway.auth.tokens.clone().expect("the issuer is set");
    let runtime = Runtime::new().expect("a runtime can be started");
    let call = |token: &str| -> Caller {
        runtime.block_on(tokens.caller(token, None)).expect("the token is good")
    };
    let mut group = c.benchmark_group("bearer");
    group.throughput(Throughput::Elements(1));
    for key in &keys {
        let token = key.token(&forge::claims(ISSUER, AUDIENCE));
        // The first one makes the account.
        call(&token);
        group.bench_function(key.algorithm(), |b| b.iter(|| black_box(call(black_box(&token)))));
    }
    // What a flood of forgeries costs: as much, and no request to the issuer.
    let forged = Key::rsa("rsa").token(&forge::claims("https://other.invalid", AUDIENCE));
    group.bench_function("of another issuer", |b| {
        b.iter(|| runtime.block_on(tokens.caller(black_box(&forged), None)).is_err());
    });
    group.finish();
}

/// A gateway that was given the issuer's keys before it was cut off.
fn gateway(dir: &Path, keys: &[Key]) -> Gateway {
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

criterion_group!(benches, bearer);
criterion_main!(benches);
