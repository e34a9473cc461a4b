//! The command line as scripts use it: exit statuses, output streams, settings among the arguments.
use crate::penstock;
use penstock_test_support::prelude::*;
use std::process::Output;

fn run(arguments: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a temporary directory");
    penstock(dir.path(), arguments).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_goes_to_standard_output_with_examples() {
    for command in
        ["serve", "demo", "check", "verify-export", "user", "api-key", "export", "version"]
    {
        let output = run(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        let help = text(&output.stdout);
        help.has_all(&["Example", &format!("penstock {command}")]);
        assert!(text(&run(&["--help"]).stdout).contains(command));
    }
    assert_eq!(run(&["export", "list", "--help"]).status.code(), Some(0));
}

#[test]
fn a_wrong_command_line_is_status_2() {
    for arguments in [
        &[] as &[&str],
        &["sevre"],
        &["serve", "--prot=1"],
        &["check"],
        &["export"],
        &["export", "retry"],
        &["export", "list", "--limit=0"],
        &["version", "--service.data-dir=x"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
    assert!(text(&run(&["sevre"]).stderr).contains("serve"));
}

#[test]
fn the_version_is_printed_as_text_and_as_json() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(text(&run(&["version"]).stdout).starts_with(&format!("penstock {version} ")));
    run(&["version", "--json"])
        .json()
        .includes(&json!({"version": version, "arch": std::env::consts::ARCH}));
    assert!(text(&run(&["--version"]).stdout).contains(version));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["--help"] as &[&str], &["version"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = penstock(dir.path(), arguments).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn serve_reports_every_error_of_the_configuration_with_status_78() {
    let dir = tempfile::tempdir().unwrap();
    let file = "server.port: none\nserver.adress: 0.0.0.0\n";
    std::fs::write(dir.path().join("application.yaml"), file).unwrap();
    let output = penstock(dir.path(), &["serve", "--security=oauth2", "--server.address=0.0.0.0"])
        .env("SERVICE_LIMITS_NESTING", "5000")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(78));
    let errors = text(&output.stderr);
    errors.has_all(&[
        "the configuration has 4 errors",
        "server.port = \"none\" (from application.yaml, line 1): expected a whole number",
        "service.limits.nesting = \"5000\" (from environment variable SERVICE_LIMITS_NESTING)",
        "security = \"oauth2\" (from --security): it needs the profile oauth2",
        "server.insecure-http=true",
        // A mistyped name can be the cause of an error.
        "warning: server.adress is not a known setting (from application.yaml, line 2); the nearest is server.address",
    ]);
}

#[test]
fn serve_reports_why_a_data_directory_is_not_usable() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let output = penstock(dir.path(), &["serve", "--service.data-dir=file/data"]).output().unwrap();
    assert_eq!(output.status.code(), Some(74));
    assert!(text(&output.stderr).contains("file/data"), "{}", text(&output.stderr));
}

#[test]
fn a_closed_log_does_not_end_the_service() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let arguments = ["serve", "--service.data-dir=file/data", "--server.port=0"];
    let status = penstock(dir.path(), &arguments).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(74));
}

#[test]
fn export_needs_a_data_directory() {
    let output = run(&["export", "list", "--service.data-dir=nowhere", "--service.dta-dir=x"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    errors.has_all(&["no data directory nowhere", "--service.data-dir=DIR"]);
    assert!(errors.contains("the nearest is service.data-dir"), "{errors}");
}
