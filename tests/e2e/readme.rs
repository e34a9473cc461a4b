//! The commands in the README do what it says: all `bash` blocks run in order in one shell. The configuration in
//! docs/exports.md is valid.
use penstock_test_support::prelude::*;
use std::os::unix::fs::symlink;

const README: &str = include_str!("../../README.md");
const EXPORTS: &str = include_str!("../../docs/exports.md");

#[test]
fn every_command_of_the_readme_works() {
    let dir = tempfile::tempdir().unwrap();
    let serve = README.lines().find_map(|line| line.strip_prefix("$ penstock serve "));
    let arguments: Vec<&str> = serve.expect("the README starts the server").split(' ').collect();
    let server = TestProcess::start(dir.path(), &arguments);
    let script =
        blocks(README, "bash").replace("127.0.0.1:8080", &server.client.address.to_string());
    assert!(script.lines().count() > 40, "the README has lost its commands");

    let bin = dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(binary(), bin.join("penstock")).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let run = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(dir.path())
        .env("PATH", format!("{}:{path}", bin.display()))
        .output()
        .expect("bash runs");
    let said = String::from_utf8_lossy(&run.stdout);
    let error = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}\n{error}");
    said.has_all(&[
        r#""uri":"https://plant.example/pumps/1""#,
        r#""flow":12.50"#,
        r#""updated":1"#,
        r#""pointer":"/data/0/flow""#,
        r#""objectCount":2"#,
        // The key for one Business Object gets 403 at another address.
        "\n403\n",
    ]);
    server.stop();
}

#[test]
fn the_configurations_of_the_page_on_exports_are_valid() {
    let samples = list_blocks(EXPORTS, "yaml");
    for kind in ["type: s3", "type: sparql"] {
        assert!(samples.iter().any(|sample| sample.contains(kind)), "the page has lost {kind}");
    }
    for sample in samples {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("application.yaml"), &sample).unwrap();
        let check = penstock(dir.path()).args(["check", "application.yaml"]).output().unwrap();
        let said = String::from_utf8_lossy(&check.stdout);
        let error = String::from_utf8_lossy(&check.stderr);
        assert!(check.status.success(), "{sample}\n{said}\n{error}");
        assert!(!said.contains("not a known setting"), "{sample}\n{said}");
    }
}

/// Returns the text of all blocks in this language.
fn blocks(page: &str, language: &str) -> String {
    list_blocks(page, language).concat()
}

fn list_blocks(page: &str, language: &str) -> Vec<String> {
    let found = code_blocks(page).into_iter().filter(|(info, _)| *info == language);
    found.map(|(_, text)| format!("{text}\n")).collect()
}
