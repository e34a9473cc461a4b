//! The binary, with sign-in at a provider.
use crate::Browser;
use penstock_test_support::control;
use penstock_test_support::issuer::sign_in_settings;
use penstock_test_support::prelude::*;
use tempfile::TempDir;

/// A running gateway, killed on drop.
pub(crate) struct Gateway {
    server: TestProcess,
    pub(crate) url: String,
    pub(crate) dir: TempDir,
}

impl Gateway {
    /// Starts a gateway with these settings, and waits until it is ready.
    pub(crate) async fn start(settings: &[String]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = penstock(dir.path());
        command.args(["serve", "--server.port=0", "--service.data-dir=data"]).args(settings);
        let server = tokio::task::spawn_blocking(move || TestProcess::spawn(&mut command));
        let server = server.await.unwrap();
        Self { url: server.url.clone(), server, dir }
    }

    /// Starts a provider, and a gateway with sign-in there. Returns `None` as [`Provider::start`] does.
    pub(crate) async fn with_provider(more: &[&str]) -> Option<(Provider, Self)> {
        let provider = Provider::start(&[])?;
        let gateway = Self::start_with_provider(&provider, more).await;
        Some((provider, gateway))
    }

    /// Starts a gateway with sign-in at this provider, and registers it there.
    pub(crate) async fn start_with_provider(provider: &Provider, more: &[&str]) -> Self {
        let mut settings = sign_in_settings(&provider.issuer, "penstock-web");
        settings.extend(more.iter().map(|setting| (*setting).to_owned()));
        let gateway = Self::start(&settings).await;
        provider.register_redirect_uri(&gateway.url, "kc").await;
        gateway
    }

    /// Returns a browser without cookies.
    pub(crate) fn browser(&self) -> Browser {
        Browser::new(&self.url, None)
    }

    /// Returns the output of the gateway so far.
    pub(crate) fn log(&self) -> String {
        self.server.log()
    }

    /// Waits until the output of the gateway contains `text`.
    #[track_caller]
    pub(crate) fn wait_for_log(&self, text: &str) {
        self.server.wait_for_log(text);
    }

    /// Reads the password of the first account.
    pub(crate) fn initial_password(&self) -> String {
        let file = self.dir.path().join("data/initial-admin-password");
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// Sends a request as local administration, over the control socket. It must succeed.
    pub(crate) async fn send_locally(&self, method: &str, path: &str, body: &Value) -> Value {
        let socket = self.dir.path().join("data/control.sock");
        let json_type = [("Content-Type", "application/json")];
        let answer = control(&socket, method, path, &json_type, body.to_string()).await;
        assert!((200..300).contains(&answer.status), "{answer:?}");
        serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
    }

    /// Lists the accounts as local administration.
    pub(crate) async fn users(&self) -> Vec<Value> {
        self.send_locally("GET", "/api/v1/users", &Value::Null).await["items"].list().to_vec()
    }

    /// Returns the account with this `email`.
    pub(crate) async fn account(&self, email: &str) -> Value {
        let users = self.users().await;
        let found: Vec<_> = users.iter().filter(|user| user["email"] == email).collect();
        assert_eq!(found.len(), 1, "{users:?}");
        found[0].clone()
    }

    /// Lists the details of every event of this kind in the audit trail.
    pub(crate) async fn events(&self, what: &str) -> Vec<String> {
        let audit = self.send_locally("GET", "/api/v1/audit", &Value::Null).await;
        let items = audit["items"].list().iter().filter(|event| event["what"] == what);
        items.map(|event| event["detail"].string()).collect()
    }
}
