//! A second provider: Debian's glewlwyd.
use crate::Gateway;
use crate::browser::SIGN_IN;
use penstock_test_support::issuer::sign_in_settings;
use penstock_test_support::prelude::*;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout};

struct Glewlwyd {
    child: Child,
    ask: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
    _folder: tempfile::TempDir,
}

impl Glewlwyd {
    /// Starts glewlwyd. Returns `None` if it is not installed, which is a failure with `CI` set.
    fn start() -> Option<Self> {
        if !Path::new("/usr/bin/glewlwyd").exists() {
            assert!(std::env::var_os("CI").is_none(), "glewlwyd is not installed");
            eprintln!("skipped: glewlwyd is not installed; tests/run does it");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/glewlwyd.py");
        let mut child = Command::new("python3")
            .arg(script)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let ask = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Some(Self { child, ask, answers, _folder: folder })
    }

    fn read_answer(&mut self) -> Value {
        serde_json::from_str(&self.answers.next().expect("the script answers").unwrap()).unwrap()
    }

    fn send_command(&mut self, line: &str) -> Value {
        let ask = self.ask.as_mut().expect("stdin is open until drop");
        writeln!(ask, "{line}").unwrap();
        self.read_answer()
    }
}

impl Drop for Glewlwyd {
    fn drop(&mut self) {
        drop(self.ask.take());
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_person_signs_in_and_out_there_too() {
    let Some(mut provider) = Glewlwyd::start() else { return };
    let issuer = provider.read_answer()["issuer"].string();
    let gateway = Gateway::start(&sign_in_settings(&issuer, "penstock-web")).await;
    provider.send_command(&format!("client {}/login/oauth2/code/kc", gateway.url));
    let mut browser = gateway.browser();
    let begun = browser.get(SIGN_IN).await;
    let redirect = provider.send_command(&format!("sign-in {}", begun.redirect_location()));
    let done = browser.get(redirect["location"].text()).await;
    assert_eq!(done.redirect_path(), "/", "{}", done.text);
    let home = browser.get("/admin/profile").await;
    let home = home.expect(200, "gina@plant.example");
    assert!(home.text.contains("<dd>Contributor</dd>"), "{}", home.text);
    let form = format!("_csrf={}", home.hidden_field("_csrf"));
    let out = browser.post("/logout", &form).await;
    assert!(out.redirect_path().ends_with("/api/oidc/end_session"), "{}", out.redirect_location());
}
