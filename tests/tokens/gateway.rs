//! A gateway that accepts the access tokens of an issuer.
use crate::in_process::InProcess;
use crate::issuer::Issuer;
use penstock_auth::Account;
use penstock_service::gateway::Gateway as Opened;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// A running gateway.
pub(crate) struct Gateway {
    pub(crate) url: String,
    client: Client,
    running: InProcess,
}

impl Gateway {
    /// Starts a gateway with its own data directory.
    pub(crate) async fn start(issuer: &Issuer, more: &[&str]) -> Self {
        Self::of(InProcess::start(&with_issuer(issuer, more)).await)
    }

    /// Starts a gateway in an existing data directory.
    pub(crate) async fn start_in(dir: &Path, issuer: &Issuer, more: &[&str]) -> Self {
        Self::start_with(dir, &with_issuer(issuer, more)).await
    }

    /// Starts a gateway with these arguments in an existing data directory.
    pub(crate) async fn start_with(dir: &Path, arguments: &[String]) -> Self {
        Self::of(InProcess::start_in(dir, arguments).await.unwrap())
    }

    fn of(running: InProcess) -> Self {
        let url = format!("http://{}", running.address);
        Self { url, client: Client::builder().no_proxy().build().unwrap(), running }
    }

    /// Returns the opened gateway.
    pub(crate) fn opened(&self) -> &Opened {
        self.running.gateway()
    }

    /// Stops it gracefully.
    pub(crate) async fn stop(self) {
        self.running.stop().await;
    }

    /// Returns the data directory.
    pub(crate) fn data(&self) -> &Path {
        &self.opened().settings.data_dir
    }

    /// Creates a request without credentials.
    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.url))
    }

    /// Requests a resource that every user can read.
    pub(crate) async fn ask(&self, token: &str) -> Response {
        self.get("/api/v1/limits").bearer_auth(token).send().await.unwrap()
    }

    /// Returns the status of [`Self::ask`].
    pub(crate) async fn status(&self, token: &str) -> u16 {
        self.ask(token).await.status().as_u16()
    }

    /// Queries the current user with GraphQL.
    pub(crate) async fn user(&self, token: &str) -> Value {
        let query = "{ authenticatedUser { id givenName email roles serviceAccount } }";
        let request = self.client.post(format!("{}/graphql", self.url)).bearer_auth(token);
        let request = request.header("Content-Type", "application/json");
        let answer = request.body(json!({"query": query}).to_string()).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert_eq!(status, 200, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["data"]["authenticatedUser"].clone()
    }

    /// Lists the accounts of identity providers, so without the first account `admin`.
    pub(crate) fn accounts(&self) -> Vec<Arc<Account>> {
        let mut accounts = self.opened().auth.accounts.list(None, 1000).unwrap();
        accounts.retain(|account| account.identity.is_some());
        accounts
    }
}

/// Returns the settings that accept the tokens of this issuer, and these.
fn with_issuer(issuer: &Issuer, more: &[&str]) -> Vec<String> {
    let resource_server = "--framework.security.oauth2.resourceserver.jwt";
    let issuer_uri = format!("{resource_server}.issuer-uri={}", issuer.url);
    let audiences = format!("{resource_server}.audiences={}", issuer.audience);
    let more = more.iter().map(|argument| (*argument).to_owned());
    [issuer_uri, audiences].into_iter().chain(more).collect()
}

/// Returns the settings of sign-in at this issuer with this client id.
pub(crate) fn sign_in_settings(issuer: &Issuer, client_id: &str) -> Vec<String> {
    let client = "--framework.security.oauth2.client";
    vec![
        "--security=oauth2".to_owned(),
        "--profiles.active=oauth2".to_owned(),
        "--service.security.registration=kc".to_owned(),
        format!("{client}.registration.kc.client-id={client_id}"),
        format!("{client}.registration.kc.client-secret=web-secret-0123456789abcdef0123456"),
        format!("{client}.provider.kc.issuer-uri={}", issuer.url),
    ]
}

/// Returns the members of a problem, and checks its status and media type.
pub(crate) async fn problem(answer: Response, status: u16) -> Value {
    let kind = answer.headers().get("content-type").cloned();
    assert_eq!(answer.status(), status);
    assert_eq!(kind.unwrap(), "application/problem+json");
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}
