//! Tests with a real authorization server: the requests of a plant system, from its secret to the answer.
use crate::gateway::Gateway;
use penstock_test_support::issuer::accept_tokens;
use penstock_test_support::prelude::*;
use reqwest::Client;

const AUDIENCE: &str = "api://penstock";

/// Requests a token with client credentials, as a plant system does.
async fn token(provider: &Provider, client: &str, audience: &str) -> String {
    let client_secret = match client {
        "writer" => "writer-secret-0123456789abcdef012",
        "no-role" => "no-role-secret-0123456789abcdef01",
        _ => "short-secret-0123456789abcdef0123",
    };
    let scope = format!("{audience}/.default");
    let form = [
        ("client_id", client),
        ("client_secret", client_secret),
        ("scope", &scope),
        ("grant_type", "client_credentials"),
    ];
    let form: Vec<_> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let asked =
        Client::builder().no_proxy().build().unwrap().post(format!("{}/token", provider.issuer));
    let asked = asked.header("Content-Type", "application/x-www-form-urlencoded");
    let answer = asked.body(form.join("&")).send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["access_token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn gateway(provider: &Provider, dir: &Path, more: &[&str]) -> Gateway {
    let mut settings = accept_tokens(&provider.issuer, AUDIENCE);
    settings.push("--service.security.serviceAccount.emailDomain=@machines.example".to_owned());
    Gateway::start_with(dir, &[&lent(&settings), more].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_application_authenticates_with_its_secret() {
    let Some(provider) = Provider::start(&[]) else { return };
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway(&provider, dir.path(), &[]).await;
    let user = gateway.user(&token(&provider, "writer", AUDIENCE).await).await;
    user.includes(&json!({
        "email": "writer@machines.example", "roles": ["Contributor"], "serviceAccount": true,
    }));
    // A client without a role is refused, and so is a token for another audience.
    gateway.ask(&token(&provider, "no-role", AUDIENCE).await).await.refused(403, "role");
    assert_eq!(gateway.status(&token(&provider, "writer", "api://other").await).await, 401);
    // This token is valid for 2 s, and for 60 s more because of the tolerated clock skew.
    let short = token(&provider, "short", AUDIENCE).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(gateway.status(&short).await, 200);
    let accounts = gateway.accounts();
    let names: Vec<_> = accounts.iter().map(|account| account.email.as_str()).collect();
    assert_eq!(names, ["writer@machines.example", "short@machines.example"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_algorithm_must_be_in_the_list() {
    let Some(provider) = Provider::start(&[]) else { return };
    let dir = tempfile::tempdir().unwrap();
    let of_es = "--framework.security.oauth2.resourceserver.jwt.audiences=api://penstock-es";
    let token = token(&provider, "writer", "api://penstock-es").await;
    let without = gateway(&provider, dir.path(), &[of_es]).await;
    assert_eq!(without.status(&token).await, 401);
    without.stop().await;
    let list = "--service.security.jwt.algorithms=RS256,ES256";
    let with = gateway(&provider, dir.path(), &[of_es, list]).await;
    assert_eq!(with.status(&token).await, 200);
    with.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_the_provider_rotates_are_followed() {
    let Some(provider) = Provider::start(&[]) else { return };
    for (rotation, of_old) in [("/rotate", 200), ("/rotate?keep=0", 401)] {
        let dir = tempfile::tempdir().unwrap();
        let gateway = gateway(&provider, dir.path(), &[]).await;
        let old = token(&provider, "writer", AUDIENCE).await;
        assert_eq!(gateway.status(&old).await, 200);
        provider.send_command(rotation).await;
        assert_eq!(gateway.status(&token(&provider, "writer", AUDIENCE).await).await, 200);
        assert_eq!(gateway.status(&old).await, of_old, "{rotation}");
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_provider_locks_no_client_out() {
    let Some(provider) = Provider::start(&[]) else { return };
    let dir = tempfile::tempdir().unwrap();
    let token = token(&provider, "writer", AUDIENCE).await;
    provider.send_command("/down").await;
    // The provider is down at the start and no keys are cached, so tokens cannot be checked.
    let cold = gateway(&provider, dir.path(), &[]).await;
    assert_eq!(cold.status(&token).await, 503);
    cold.stop().await;
    provider.send_command("/up").await;
    let warm = gateway(&provider, dir.path(), &[]).await;
    assert_eq!(warm.status(&token).await, 200);
    provider.send_command("/down").await;
    assert_eq!(warm.status(&token).await, 200);
    warm.stop().await;
    let restarted = gateway(&provider, dir.path(), &[]).await;
    assert_eq!(restarted.status(&token).await, 200);
    restarted.stop().await;
    provider.send_command("/up").await;
    provider.send_command("/delay?ms=60000").await;
    let slow = gateway(&provider, dir.path(), &[]).await;
    assert_eq!(slow.status(&token).await, 200);
    slow.stop().await;
}
