//! The real OpenID provider (`tests/servers/oidc`) as a child process, and its control address.
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// A provider, stopped on drop.
pub struct Provider {
    child: Child,
    pub issuer: String,
    control: String,
}

impl Provider {
    /// Starts a provider. Returns `None` if Node.js or the provider is not installed, which is a failure with
    /// `CI` set.
    pub fn start(environment: &[(&str, &str)]) -> Option<Self> {
        static INSTALLED: OnceLock<bool> = OnceLock::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../servers/oidc");
        let installed =
            *INSTALLED.get_or_init(|| folder.join("node_modules/oidc-provider").is_dir());
        if !installed {
            assert!(
                std::env::var_os("CI").is_none(),
                "the provider is not installed: npm ci in {}",
                folder.display()
            );
            eprintln!("skipped: the provider is not installed; tests/run does it");
            return None;
        }
        let mut child = Command::new("node")
            .arg("provider.mjs")
            .current_dir(folder)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("stdout is piped");
        BufReader::new(out).read_line(&mut line).expect("the provider prints its addresses");
        let printed: Value = serde_json::from_str(&line).expect("the provider prints JSON");
        let text = |name: &str| {
            printed[name].as_str().expect("the provider prints both addresses").to_owned()
        };
        Some(Self { child, issuer: text("issuer"), control: text("control") })
    }

    /// Registers the redirect URI of this gateway.
    pub async fn register_redirect_uri(&self, gateway: &str, registration: &str) {
        let change = json!({
            "client_id": "penstock-web",
            "redirect_uris": [format!("{gateway}/login/oauth2/code/{registration}")],
            "post_logout_redirect_uris": [format!("{gateway}/signed-out")],
        });
        self.post_control("/client", &change).await;
    }

    /// Changes a user's claims.
    pub async fn change_user(&self, change: &Value) {
        self.post_control("/user", change).await;
    }

    /// Sends a control command, such as `/down`, `/up`, `/rotate` or `/delay?ms=60000`.
    pub async fn send_command(&self, what: &str) {
        self.post_control(what, &json!({})).await;
    }

    async fn post_control(&self, path: &str, change: &Value) {
        let url = format!("{}{path}", self.control);
        let sent = reqwest::Client::new().post(url).body(change.to_string()).send().await;
        assert!(sent.unwrap().status().is_success());
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
