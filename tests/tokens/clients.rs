//! Service accounts: created by the first valid token of a client application, and updated by later ones.
use crate::gateway::Gateway;
use penstock_auth::accounts::AccountEdit;
use penstock_auth::{AccountSource, Authorized, Identity, Profile};
use penstock_base::IfMatch;
use penstock_test_support::forge::{Key, now, with};
use penstock_test_support::issuer::{claims, sign_in_settings};
use penstock_test_support::prelude::*;

const EMAIL_DOMAIN: &str = "--service.security.serviceAccount.emailDomain=@machines.example";

#[tokio::test(flavor = "multi_thread")]
async fn fifty_concurrent_first_requests_create_one_account() {
    let (key, issuer) = Issuer::with_key();
    let gateway = Gateway::start(&issuer, &[EMAIL_DOMAIN]).await;
    let token = key.token(&with(
        &claims(&issuer),
        &json!({"roles": ["ACCURIDS_USER", "ACCURIDS_CONTRIBUTOR"]}),
    ));
    let asked = (0..50).map(|_| gateway.user(&token));
    let users = futures_util::future::join_all(asked).await;
    let ids: BTreeSet<_> = users.iter().map(|user| user["id"].string()).collect();
    assert_eq!(ids.len(), 1);
    let accounts = gateway.accounts();
    let [account] = accounts.as_slice() else { panic!("{accounts:?}") };
    assert_eq!(Some(&account.id), ids.first());
    assert_eq!(account.email, "plant-7@machines.example");
    assert_eq!(account.role, Role::Contributor);
    assert_eq!(account.client_id.as_deref(), Some("plant-7"));
    let identity = account.identity.as_ref().unwrap();
    assert_eq!(
        (identity.source, identity.name.as_str()),
        (AccountSource::ServiceAccount, "plant-7")
    );
    assert_eq!(identity.issuer, issuer.url);
    assert!(account.first_login.is_some() && account.is_service_account());
    assert_eq!(
        users[0],
        json!({"id": account.id, "givenName": null, "email": "plant-7@machines.example",
            "roles": ["Contributor"], "serviceAccount": true})
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_change_with_the_token_and_a_disabled_account_is_refused() {
    let (key, issuer) = Issuer::with_key();
    let gateway = Gateway::start(&issuer, &[]).await;
    let token = |roles: Value| key.token(&with(&claims(&issuer), &json!({"roles": roles})));
    let user = gateway.user(&token(json!(["ACCURIDS_USER"]))).await;
    // Without `emailDomain`, the email is the `sub`.
    assert_eq!((&user["email"], &user["roles"]), (&json!("plant-7"), &json!(["User"])));
    let promoted = gateway.user(&token(json!(["ACCURIDS_ADMIN"]))).await;
    assert_eq!((&promoted["id"], &promoted["roles"]), (&user["id"], &json!(["Admin"])));
    let demoted = gateway.user(&token(json!("ACCURIDS_USER"))).await;
    assert_eq!(demoted["roles"], json!(["User"]));
    // A token without roles is refused, whatever the account's role was.
    gateway.ask(&token(json!([]))).await.refused(403, "defaultServiceAccountRole");

    disable(&gateway, user["id"].text());
    for roles in [json!(["ACCURIDS_ADMIN"]), json!(["ACCURIDS_USER"])] {
        assert_eq!(gateway.status(&token(roles)).await, 403);
    }
    let [account] = &gateway.accounts()[..] else { panic!() };
    assert_eq!((account.enabled, account.role), (false, Role::User));
    gateway.stop().await;
}

fn disable(gateway: &Gateway, id: &str) {
    let accounts = &gateway.gateway().auth.accounts;
    let account = accounts.get(id).unwrap();
    let edit = AccountEdit { enabled: Some(false), ..AccountEdit::unchanged_from(&account) };
    accounts.change(&Authorized::local(), id, IfMatch::Any, edit).unwrap();
}

/// Returns the identity of a person of this issuer.
fn person(issuer: &Issuer, name: &str) -> Identity {
    let source = AccountSource::OpenIdConnect;
    Identity { source, issuer: issuer.url.clone(), name: name.to_owned() }
}

/// Starts a gateway where these people have signed in.
async fn start_with_people(issuer: &Issuer, people: &[(&str, Role)]) -> Gateway {
    let sign_in = sign_in_settings(&issuer.url, "penstock-web");
    let gateway = Gateway::start(issuer, &lent(&sign_in)).await;
    for (name, role) in people {
        let accounts = &gateway.gateway().auth.accounts;
        accounts.sign_in_identity(&person(issuer, name), &Profile::default(), *role).unwrap();
    }
    gateway
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_role_is_for_clients_without_a_role() {
    let (key, issuer) = Issuer::with_key();
    for (setting, expected) in
        [("USER", "User"), ("accurids_contributor", "Contributor"), ("Admin", "Admin")]
    {
        let default = format!("--service.security.defaultServiceAccountRole={setting}");
        let gateway = Gateway::start(&issuer, &[&default]).await;
        let token = |sub: &str, roles: Value| {
            key.token(&with(&claims(&issuer), &json!({"sub": sub, "azp": sub, "roles": roles})))
        };
        assert_eq!(gateway.user(&token("a", json!([]))).await["roles"], json!([expected]));
        assert_eq!(gateway.user(&token("b", json!(["other"]))).await["roles"], json!([expected]));
        assert_eq!(
            gateway.user(&token("c", json!(["ACCURIDS_USER"]))).await["roles"],
            json!(["User"])
        );
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegated_token_has_the_lower_role_of_token_and_person() {
    let (key, issuer) = Issuer::with_key();
    let gateway = start_with_people(&issuer, &[("ada", Role::Admin), ("bob", Role::User)]).await;
    let token = |person: &str, roles: Value| {
        let delegated = json!({"sub": person, "azp": "app", "scope": "openid", "roles": roles});
        key.token(&with(&claims(&issuer), &delegated))
    };
    for (person, role, for_admins) in [
        ("ada", "ACCURIDS_ADMIN", 200),
        ("ada", "ACCURIDS_USER", 403),
        ("bob", "ACCURIDS_ADMIN", 403),
    ] {
        let token = token(person, json!([role]));
        assert_eq!(gateway.user(&token).await["serviceAccount"], false);
        let users = gateway.caller_with(&token).get("/api/v1/users").await;
        assert_eq!(users.status, for_admins, "{person}, {role}");
    }
    // A token without a role is refused, whatever the person's role is.
    for roles in [Value::Null, json!([]), json!(["other"])] {
        gateway.ask(&token("ada", roles)).await.refused(403, "no role here");
    }
    assert_eq!(gateway.status(&token("eve", json!(["ACCURIDS_ADMIN"]))).await, 403);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_persons_token_is_never_accepted_as_a_clients() {
    let (key, issuer) = Issuer::with_key();
    let people = [("boss", Role::Admin), ("ada", Role::Admin)];
    let gateway = start_with_people(&issuer, &people).await;
    let ada = gateway.gateway().auth.accounts.find_by_identity(&person(&issuer, "ada")).unwrap();
    disable(&gateway, &ada.id);
    for of_ada in [
        json!({"sub": "ada", "azp": "app", "email": "ada@plant.example", "name": "Ada"}),
        // Only the subject shows that these are a person's tokens.
        json!({"sub": "ada", "azp": "app"}),
        json!({"sub": "ada", "azp": null}),
        json!({"sub": "ada", "azp": "ada"}),
    ] {
        let token = key.token(&with(&claims(&issuer), &of_ada));
        assert_eq!(gateway.status(&token).await, 403, "{of_ada}");
    }
    assert_eq!(gateway.accounts().len(), 2);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_another_issuer_or_kind_is_another_account() {
    let (key, issuer) = Issuer::with_key();
    let dir = tempfile::tempdir().unwrap();
    let other = Issuer::start(&[&key]);
    let mut ids = BTreeSet::new();
    for issuer in [&issuer, &other, &issuer] {
        let gateway = Gateway::start_in(dir.path(), issuer, &[EMAIL_DOMAIN]).await;
        let user = gateway.user(&key.token(&claims(issuer))).await;
        ids.insert(user["id"].string());
        gateway.stop().await;
    }
    assert_eq!(ids.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_every_kind_of_provider_are_accepted() {
    let key = Key::p256("curve");
    let issuer = Issuer::start(&[&key]);
    let gateway = Gateway::start(
        &issuer,
        &[
            "--service.security.jwt.algorithms=RS256,ES256",
            "--service.security.claims.roles=roles,realm_access.roles",
        ],
    )
    .await;
    let plain = with(&claims(&issuer), &json!({"azp": null}));
    for kind in [
        // Entra ID, v1.0 and v2.0.
        json!({"sub": "o1", "oid": "o1", "appid": "a1", "idtyp": "app", "ver": "1.0"}),
        json!({"sub": "o2", "oid": "o2", "azp": "a2", "ver": "2.0"}),
        // Keycloak.
        json!({"sub": "u3", "azp": "a3", "typ": "Bearer", "scope": "email profile", "acr": "1",
            "preferred_username": "service-account-a3", "roles": null,
            "realm_access": {"roles": ["offline_access", "ACCURIDS_USER"]}}),
        // Auth0.
        json!({"sub": "a4@clients", "azp": "a4", "gty": "client-credentials", "scope": "read"}),
        // RFC 9068, with several audiences.
        json!({"sub": "a5", "client_id": "a5", "scope": "read", "aud": ["other", issuer.audience]}),
        // Times may have fractions.
        json!({"sub": "a6", "client_id": "a6", "exp": 4_102_444_800.5}),
        // Expired, and not valid yet, but within the tolerated clock skew.
        json!({"sub": "a7", "client_id": "a7", "exp": now() - 30, "nbf": now() + 30}),
    ] {
        let user = gateway.user(&key.token(&with(&plain, &kind))).await;
        user.includes(&json!({"serviceAccount": true, "email": kind["sub"]}));
    }
    // Without a key id, and with other spellings of the type.
    for header in [
        json!({"kid": null}),
        json!({"typ": null}),
        json!({"typ": "JWT"}),
        json!({"typ": "application/at+jwt"}),
    ] {
        let token = key.sign(&with(&key.header(), &header), &claims(&issuer));
        assert_eq!(gateway.status(&token).await, 200, "{header}");
    }
    gateway.stop().await;
}
