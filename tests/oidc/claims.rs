//! Claims and roles from the ID token and the userinfo endpoint.
use crate::Gateway;
use penstock_test_support::prelude::*;

#[tokio::test]
async fn a_person_without_a_mapped_role_is_refused() {
    let Some((_provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    let mut browser = gateway.browser();
    let page = browser.sign_in("norole").await.expect(403, "You have no role here");
    assert!(page.text.contains("You are known as norole"), "{}", page.text);
    assert!(!browser.cookies().contains_key("penstock_session"));
    assert!(gateway.users().await.is_empty(), "no account is created");
    assert_eq!(gateway.events("sign-in.refused").await.len(), 1);
}

#[tokio::test]
async fn a_missing_claim_is_named() {
    let Some(provider) = Provider::start(&[]) else { return };
    let attribute = "--framework.security.oauth2.client.provider.kc.user-name-attribute=employee";
    for (setting, claim) in [
        (attribute, "employee"),
        ("--service.security.claims.roles=groups,teams", "groups or teams"),
    ] {
        let gateway = Gateway::start_with_provider(&provider, &[setting]).await;
        let page = gateway.browser().sign_in("alice").await;
        page.expect(403, &format!("sent no claim {claim}."));
        let details = gateway.events("sign-in.refused").await;
        assert!(details[0].contains(&format!("the claim {claim}, which")), "{details:?}");
    }
}

#[tokio::test]
async fn claims_of_the_userinfo_endpoint_count_too() {
    let Some(provider) = Provider::start(&[("IN_USERINFO", "1")]) else { return };
    let gateway = Gateway::start_with_provider(&provider, &[]).await;
    assert_eq!(gateway.browser().sign_in("alice").await.status, 303);
    let account = gateway.account("alice@plant.example").await;
    assert_eq!((&account["givenName"], &account["roles"]), (&json!("Alice"), &json!(["Admin"])));
}

#[tokio::test]
async fn claims_and_role_values_are_configurable() {
    let Some(provider) = Provider::start(&[]) else { return };
    let more = [
        "--service.security.claims.roles=realm_access.roles",
        "--service.security.claims.firstName=nickname,family_name",
        "--service.security.claims.email=sub",
        "--security.role.user=ACCURIDS_CONTRIBUTOR",
        "--security.role.contributor=WRITER",
        "--framework.security.oauth2.client.provider.kc.user-name-attribute=user_email",
    ];
    let gateway = Gateway::start_with_provider(&provider, &more).await;
    assert_eq!(gateway.browser().sign_in("alice").await.status, 303);
    let account = gateway.account("alice").await;
    account.includes(&json!({"givenName": "Ångström", "roles": ["User"]}));
}

#[tokio::test]
async fn groups_follow_the_claim_of_each_sign_in() {
    const GROUP: &str = "0f6c2b3e-8d0a-4a53-9c53-5d1f0f5b7c11";
    let Some(provider) = Provider::start(&[]) else { return };
    provider.change_user(&json!({"sub": "bob", "groups": ["others", GROUP]})).await;
    let gateway = Gateway::start_with_provider(&provider, &[]).await;
    let group = json!({"claimValues": [GROUP]});
    gateway.send_locally("PUT", "/api/v1/groups/shift", &group).await;
    let config =
        "type: object\npath: Note:.\nfields: {text: {type: string, path: <http://x/text>}}\n";
    let namespaces = json!([{"name": "Note", "uriBase": "http://x/note/"}]);
    let note =
        json!({"name": "Note", "config": config, "namespaces": namespaces, "review": "optional"});
    gateway.send_locally("PUT", "/api/v1/business-objects", &note).await;
    let path = "/api/v1/business-objects/Note?changeOwners=group:shift";
    let change = gateway.send_locally("POST", path, &json!({"data": [{"text": "a"}]})).await;
    let id = change["id"].text();
    let sees = async || {
        let mut browser = gateway.browser();
        assert_eq!(browser.sign_in("bob").await.status, 303);
        let listed = browser.get("/api/v1/changes").await.expect(200, "items");
        listed.text.contains(id)
    };
    assert!(sees().await);
    provider.change_user(&json!({"sub": "bob", "groups": ["others"]})).await;
    assert!(!sees().await);
    provider.change_user(&json!({"sub": "bob", "groups": GROUP})).await;
    assert!(sees().await);
    // Entra ID leaves the claim out for members of many groups.
    provider.change_user(&json!({"sub": "bob", "groups": null})).await;
    assert!(!sees().await);
}

#[tokio::test]
async fn without_an_issuer_the_configured_endpoints_suffice_and_the_log_names_the_missing_checks() {
    let Some(provider) = Provider::start(&[]) else { return };
    let prefix = "--framework.security.oauth2.client.provider.kc";
    let more = [
        format!("{prefix}.issuer-uri="),
        format!("{prefix}.authorization-uri={}/auth", provider.issuer),
        format!("{prefix}.token-uri={}/token", provider.issuer),
        format!("{prefix}.jwk-set-uri={}/jwks", provider.issuer),
    ];
    let gateway = Gateway::start_with_provider(&provider, &lent(&more)).await;
    gateway.wait_for_log("the issuer of ID tokens and of its answers is not checked");
    let mut browser = gateway.browser();
    assert_eq!(browser.sign_in("bob").await.status, 303);
    let home = browser.get("/admin").await.expect(200, "Bob Baker");
    let out = browser.post("/logout", &format!("_csrf={}", home.hidden_field("_csrf"))).await;
    assert_eq!(
        out.redirect_path(),
        "/signed-out",
        "the gateway does not know where the provider ends sessions"
    );
}
