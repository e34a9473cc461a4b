//! Service accounts: created by the first valid token of a client application, and updated by later ones.
use crate::forge::{Key, with};
use crate::gateway::{Gateway, problem, sign_in_settings};
use crate::issuer::{Issuer, claims};
use penstock_auth::{AccountSource, Identity, Profile, Role};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const EMAIL_DOMAIN: &str = "--service.security.serviceAccount.emailDomain=@machines.example";

async fn parts() -> (Key, Issuer) {
    let key = Key::rsa("first");
    let issuer = Issuer::start(&[&key]).await;
    (key, issuer)
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_concurrent_first_requests_create_one_account() {
    let (key, issuer) = parts().await;
    let gateway = Gateway::start(&issuer, &[EMAIL_DOMAIN]).await;
    let token = key.token(&with(
        &claims(&issuer),
        &json!({"roles": ["ACCURIDS_USER", "ACCURIDS_CONTRIBUTOR"]}),
    ));
    let asked = (0..50).map(|_| gateway.user(&token));
    let users = futures_util::future::join_all(asked).await;
    let ids: BTreeSet<_> =
        users.iter().map(|user| user["id"].as_str().unwrap().to_owned()).collect();
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
    let (key, issuer) = parts().await;
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
    let answer = gateway.ask(&token(json!([]))).await;
    let refused = problem(answer, 403).await;
    assert!(refused["detail"].as_str().unwrap().contains("defaultServiceAccountRole"), "{refused}");

    let id = user["id"].as_str().unwrap().to_owned();
    disable(&gateway.opened().auth, id).await;
    for roles in [json!(["ACCURIDS_ADMIN"]), json!(["ACCURIDS_USER"])] {
        assert_eq!(gateway.status(&token(roles)).await, 403);
    }
    let [account] = &gateway.accounts()[..] else { panic!() };
    assert_eq!((account.enabled, account.role), (false, Role::User));
    gateway.stop().await;
}

async fn disable(auth: &penstock_auth::Auth, id: String) {
    use penstock_auth::Authorized;
    use penstock_auth::accounts::AccountEdit;
    use penstock_base::IfMatch;
    let accounts = auth.accounts.clone();
    let change = move || {
        let account = accounts.get(&id).unwrap();
        let edit = AccountEdit { enabled: Some(false), ..AccountEdit::unchanged_from(&account) };
        accounts.change(&Authorized::local(), &id, IfMatch::Any, edit)
    };
    tokio::task::spawn_blocking(change).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_role_is_for_clients_without_a_role() {
    let (key, issuer) = parts().await;
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
    let (key, issuer) = parts().await;
    let sign_in = sign_in_settings(&issuer, "penstock-web");
    let sign_in: Vec<&str> = sign_in.iter().map(String::as_str).collect();
    let gateway = Gateway::start(&issuer, &sign_in).await;
    let accounts = gateway.opened().auth.accounts.clone();
    let url = issuer.url.clone();
    let signed_in = tokio::task::spawn_blocking(move || {
        let source = AccountSource::OpenIdConnect;
        for (name, role) in [("ada", Role::Admin), ("bob", Role::User)] {
            let identity = Identity { source, issuer: url.clone(), name: name.to_owned() };
            accounts.sign_in_identity(&identity, &Profile::default(), role).unwrap();
        }
    });
    signed_in.await.unwrap();
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
        let users = gateway.get("/api/v1/users").bearer_auth(&token).send().await.unwrap();
        assert_eq!(users.status(), for_admins, "{person}, {role}");
    }
    // A token without a role is refused, whatever the person's role is.
    for roles in [Value::Null, json!([]), json!(["other"])] {
        let refused = problem(gateway.ask(&token("ada", roles.clone())).await, 403).await;
        assert!(refused["detail"].as_str().unwrap().contains("no role here"), "{roles}: {refused}");
    }
    assert_eq!(gateway.status(&token("eve", json!(["ACCURIDS_ADMIN"]))).await, 403);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_persons_token_is_never_accepted_as_a_clients() {
    let (key, issuer) = parts().await;
    let sign_in = sign_in_settings(&issuer, "penstock-web");
    let sign_in: Vec<&str> = sign_in.iter().map(String::as_str).collect();
    let gateway = Gateway::start(&issuer, &sign_in).await;
    let auth = &gateway.opened().auth;
    let (accounts, url) = (auth.accounts.clone(), issuer.url.clone());
    let signed_in = tokio::task::spawn_blocking(move || {
        let source = AccountSource::OpenIdConnect;
        for name in ["boss", "ada"] {
            let identity = Identity { source, issuer: url.clone(), name: name.to_owned() };
            accounts.sign_in_identity(&identity, &Profile::default(), Role::Admin).unwrap();
        }
        let identity = Identity { source, issuer: url, name: "ada".to_owned() };
        accounts.find_by_identity(&identity).unwrap().id.clone()
    });
    disable(auth, signed_in.await.unwrap()).await;
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
    let (key, issuer) = parts().await;
    let dir = tempfile::tempdir().unwrap();
    let other = Issuer::start(&[&key]).await;
    let mut ids = BTreeSet::new();
    for issuer in [&issuer, &other, &issuer] {
        let gateway = Gateway::start_in(dir.path(), issuer, &[EMAIL_DOMAIN]).await;
        let user = gateway.user(&key.token(&claims(issuer))).await;
        ids.insert(user["id"].as_str().unwrap().to_owned());
        gateway.stop().await;
    }
    assert_eq!(ids.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_every_kind_of_provider_are_accepted() {
    let key = Key::p256("curve");
    let issuer = Issuer::start(&[&key]).await;
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
        json!({"sub": "a7", "client_id": "a7", "exp": crate::forge::now() - 30, "nbf": crate::forge::now() + 30}),
    ] {
        let user = gateway.user(&key.token(&with(&plain, &kind))).await;
        assert_eq!(
            (&user["serviceAccount"], &user["email"]),
            (&json!(true), &kind["sub"]),
            "{kind}"
        );
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
