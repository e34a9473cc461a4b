//! A gateway that accepts the access tokens of an issuer.
use crate::issuer::Issuer;
use penstock_auth::Account;
use penstock_cli::app;
use penstock_config::{Sources, load};
use penstock_service::gateway::Gateway as Opened;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A gateway that serves on a free port.
pub(crate) struct Gateway {
    pub(crate) url: String,
    pub(crate) opened: Opened,
    dir: Option<TempDir>,
    client: Client,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Gateway {
    /// Starts a gateway with its own data directory.
    pub(crate) async fn start(issuer: &Issuer, more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut gateway = Self::start_in(dir.path(), issuer, more).await;
        gateway.dir = Some(dir);
        gateway
    }

    /// Starts a gateway in an existing data directory.
    pub(crate) async fn start_in(dir: &Path, issuer: &Issuer, more: &[&str]) -> Self {
        let resource_server = "framework.security.oauth2.resourceserver.jwt";
        let arguments = [
            format!("--{resource_server}.issuer-uri={}", issuer.url),
            format!("--{resource_server}.audiences={}", issuer.audience),
        ];
        let more = more.iter().map(|argument| (*argument).to_owned());
        Self::start_with(dir, arguments.into_iter().chain(more).collect()).await
    }

    /// Starts a gateway with these arguments. Adds the data directory and the port.
    pub(crate) async fn start_with(dir: &Path, mut arguments: Vec<String>) -> Self {
        arguments.push(format!("--service.data-dir={}", dir.join("data").display()));
        arguments.push("--server.port=0".to_owned());
        let loaded = load(&Sources { arguments, ..Sources::default() }).unwrap();
        // The previous gateway in this directory may still hold the locks.
        for locked in ["data/store", "data/store/lock"] {
            if let Ok(lock) = File::open(dir.join(locked)) {
                let free = move || lock.lock().and_then(|()| lock.unlock());
                tokio::task::spawn_blocking(free).await.unwrap().unwrap();
            }
        }
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = app::serve_until(
            Arc::new(loaded.settings),
            Box::new(|| None),
            move |address, gateway| assert!(ready.send((address, gateway)).is_ok()),
            async {
                let _ = stopped.await;
            },
        );
        let running = tokio::spawn(async { serving.await.unwrap() });
        let (address, opened) = is_ready.await.unwrap();
        Self {
            url: format!("http://{address}"),
            opened,
            dir: None,
            client: Client::builder().no_proxy().build().unwrap(),
            stop: Some(stop),
            running,
        }
    }

    /// Stops it gracefully.
    pub(crate) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.running).await.unwrap();
    }

    /// Returns the data directory.
    pub(crate) fn data(&self) -> &Path {
        &self.opened.settings.data_dir
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
        let mut accounts = self.opened.auth.accounts.list(None, 1000).unwrap();
        accounts.retain(|account| account.identity.is_some());
        accounts
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Returns the members of a problem, and checks its status and media type.
pub(crate) async fn problem(answer: Response, status: u16) -> Value {
    let kind = answer.headers().get("content-type").cloned();
    assert_eq!(answer.status(), status);
    assert_eq!(kind.unwrap(), "application/problem+json");
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}
