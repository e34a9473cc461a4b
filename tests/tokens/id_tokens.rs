//! ID tokens are never accepted as access tokens. Access tokens without a client id are accepted if they have no sign
//! of an ID token.
use crate::gateway::Gateway;
use penstock_test_support::forge::{self, Key, with};
use penstock_test_support::issuer::{claims, sign_in_settings};
use penstock_test_support::prelude::*;

const TENANT: &str = "11111111-2222-3333-4444-555555555555";
const JWT: &str = "--framework.security.oauth2.resourceserver.jwt";
const CLIENT_ID: &str = "99999999-8888-7777-6666-555555555555";

fn v2_issuer() -> String {
    format!("https://login.microsoftonline.com/{TENANT}/v2.0")
}

/// Starts a gateway with the profile `azuread` and the keys of this issuer.
async fn azuread(issuer: &Issuer, dir: &Path, more: &[String]) -> Gateway {
    let client = "--framework.security.oauth2.client";
    let mut arguments = vec![
        "--profiles.active=azuread".to_owned(),
        format!("--service.security.tenant-id={TENANT}"),
        format!("{client}.registration.azure.client-id={CLIENT_ID}"),
        format!("{client}.registration.azure.client-secret=s"),
        format!("{JWT}.jwk-set-uri={}/jwks", issuer.url),
    ];
    arguments.extend(more.iter().cloned());
    Gateway::start_with(dir, &lent(&arguments)).await
}

fn v2() -> String {
    format!("{JWT}.issuer-uri={}", v2_issuer())
}

/// Creates the claims of an Entra ID access token of version 2.0 for client credentials.
fn v2_claims() -> Value {
    let claims = forge::claims(&v2_issuer(), CLIENT_ID);
    let of_v2 = json!({"azp": "plant", "azpacr": "1", "oid": "o", "sub": "o", "ver": "2.0",
        "tid": TENANT, "aio": "x", "uti": "x", "rh": "x"});
    with(&claims, &of_v2)
}

fn sign(key: &Key, claims: &Value) -> String {
    key.sign(&with(&key.header(), &json!({"typ": "JWT"})), claims)
}

#[tokio::test(flavor = "multi_thread")]
async fn access_tokens_of_version_2_are_accepted_when_only_the_issuer_is_changed() {
    let (key, issuer) = Issuer::with_key();
    let dir = tempfile::tempdir().unwrap();
    let gateway = azuread(&issuer, dir.path(), &[v2()]).await;
    let user = gateway.user(&sign(&key, &v2_claims())).await;
    assert_eq!((&user["email"], &user["serviceAccount"]), (&json!("o"), &json!(true)));
    // The audience of version 1.0 is still accepted.
    let api = json!({"aud": format!("api://{CLIENT_ID}")});
    assert_eq!(gateway.status(&sign(&key, &with(&v2_claims(), &api))).await, 200);
    for bad in each(json!([
        {"azp": null}, {"azp": ""}, {"azp": null, "appid": "plant"}, {"aud": "another"},
        {"iss": format!("https://sts.windows.net/{TENANT}/")},
    ])) {
        assert_eq!(gateway.status(&sign(&key, &with(&v2_claims(), &bad))).await, 401, "{bad}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bare_client_id_is_no_audience_with_version_1_or_other_audiences() {
    let (key, issuer) = Issuer::with_key();
    let v1 = json!({"iss": format!("https://sts.windows.net/{TENANT}/"), "azp": null, "appid": "plant", "ver": "1.0"});
    let api = json!({"aud": format!("api://{CLIENT_ID}")});
    let dir = tempfile::tempdir().unwrap();
    let gateway = azuread(&issuer, dir.path(), &[]).await;
    let token = with(&v2_claims(), &v1);
    assert_eq!(gateway.status(&sign(&key, &with(&token, &api))).await, 200);
    for azp in [json!(null), json!("plant")] {
        let bare = with(&token, &json!({"azp": azp}));
        assert_eq!(gateway.status(&sign(&key, &bare)).await, 401, "{bare}");
    }
    gateway.stop().await;
    let other = format!("{JWT}.audiences=api://other");
    let gateway = azuread(&issuer, dir.path(), &[v2(), other]).await;
    assert_eq!(gateway.status(&sign(&key, &v2_claims())).await, 401);
    gateway.stop().await;
}

/// Returns the claims that only an ID token of version 2.0 has.
fn id_token() -> Value {
    json!({"azp": null, "azpacr": null, "name": "Ada", "preferred_username": "ada@plant.example",
        "oid": "ada", "sub": "pairwise"})
}

/// Lists the kinds of ID token, each with its special claims.
fn kinds() -> Vec<(&'static str, Value)> {
    vec![
        ("with all usual claims", json!({"nonce": "n", "at_hash": "h"})),
        ("with a nonce", json!({"nonce": "n"})),
        ("of the hybrid flow", json!({"c_hash": "h"})),
        ("with the hash of an access token", json!({"at_hash": "h"})),
        ("with the hash of the state", json!({"s_hash": "h"})),
        ("without a claim that only ID tokens have", json!({})),
        ("without a name", json!({"name": null, "preferred_username": null})),
        (
            "that looks like a client's",
            json!({"name": null, "preferred_username": null, "oid": "o", "sub": "o"}),
        ),
        ("that names the client it is for", json!({"azp": CLIENT_ID})),
        (
            "that names the client, without a name",
            json!({"azp": CLIENT_ID, "name": null, "preferred_username": null}),
        ),
        ("with several audiences", json!({"azp": CLIENT_ID, "aud": [CLIENT_ID, "other"]})),
        (
            "with the gateway's audience, too",
            json!({"aud": [CLIENT_ID, format!("api://{CLIENT_ID}")]}),
        ),
        ("of Keycloak", json!({"azp": CLIENT_ID, "typ": "ID"})),
        ("of Cognito", json!({"azp": CLIENT_ID, "token_use": "id"})),
        ("for another client", json!({"azp": "plant", "nonce": "n"})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_of_any_kind_is_refused() {
    let (key, issuer) = Issuer::with_key();
    // With the preset, and with the bare client id as a configured audience.
    for audiences in [None, Some(format!("{JWT}.audiences={CLIENT_ID},api://{CLIENT_ID}"))] {
        let dir = tempfile::tempdir().unwrap();
        let more: Vec<_> = [Some(v2()), audiences].into_iter().flatten().collect();
        let gateway = azuread(&issuer, dir.path(), &more).await;
        let mut wrong = Vec::new();
        for (kind, special) in kinds() {
            let claims = with(&with(&v2_claims(), &id_token()), &special);
            let status = gateway.status(&sign(&key, &claims)).await;
            if status != 401 {
                wrong.push(format!("{kind}: {status}"));
            }
        }
        assert!(wrong.is_empty(), "with {more:?}: {wrong:#?}");
        assert!(gateway.accounts().is_empty());
        // A delegated access token also has a person's claims. Its signature and claims are valid, but the person has
        // no account.
        let delegated = json!({"azp": CLIENT_ID, "scp": "access"});
        let claims = with(&with(&v2_claims(), &id_token()), &delegated);
        gateway.ask(&sign(&key, &claims)).await.problem(403);
        assert_eq!(gateway.status(&sign(&key, &v2_claims())).await, 200);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_a_client_id_is_identified_by_its_subject() {
    let (key, issuer) = Issuer::with_key();
    let sign_in = sign_in_settings(&issuer.url, "web");
    let audiences = format!("{JWT}.audiences=api://plant-gateway,web");
    let gateway = Gateway::start(&issuer, &[&lent(&sign_in)[..], &[&audiences]].concat()).await;
    let plain = with(&claims(&issuer), &json!({"azp": null}));
    let user = gateway.user(&sign(&key, &plain)).await;
    assert_eq!((&user["email"], &user["serviceAccount"]), (&json!("plant-7"), &json!(true)));
    assert_eq!(gateway.accounts()[0].client_id, None);
    for (bad, status) in [
        (json!({"aud": "web"}), 401),
        (json!({"aud": ["web", "api://plant-gateway"]}), 401),
        (json!({"nonce": "n"}), 401),
        (json!({"at_hash": "h"}), 401),
        (json!({"c_hash": "h"}), 401),
        (json!({"email": "ada@plant.example"}), 403),
        (json!({"scope": "openid"}), 403),
    ] {
        assert_eq!(gateway.status(&sign(&key, &with(&plain, &bad))).await, status, "{bad}");
    }
    // The operator may configure the client id as an audience, for tokens that name the client they are issued to.
    let named = json!({"aud": "web", "azp": "plant-7"});
    assert_eq!(gateway.status(&sign(&key, &with(&plain, &named))).await, 200);
    assert_eq!(gateway.accounts().len(), 1);
    gateway.stop().await;
}
