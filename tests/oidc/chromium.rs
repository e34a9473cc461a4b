//! The pages in a real browser: Debian's Chromium, driven by `tests/browser`.
use crate::Gateway;
use penstock_test_support::prelude::*;

/// Runs a script of `tests/browser` with Node.js. Returns `false` if Chromium is not installed, which is a failure with
/// `CI` set.
pub(crate) fn run_browser_script(script: &str, environment: &[(&str, &str)]) -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let installed = folder.join("node_modules/playwright-core").is_dir()
        && Path::new("/usr/bin/chromium").exists();
    if !installed {
        assert!(std::env::var_os("CI").is_none(), "Chromium or playwright-core is not installed");
        eprintln!("skipped: Chromium or playwright-core is not installed; tests/run does it");
        return false;
    }
    let output = Command::new("node")
        .arg(script)
        .current_dir(folder)
        .envs(environment.iter().copied())
        .output()
        .expect("node starts");
    let printed = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{script}:\n{}", String::from_utf8_lossy(&printed));
    true
}

#[tokio::test]
async fn a_person_signs_in_at_the_provider_and_out() {
    let Some((_provider, gateway)) = Gateway::with_provider(&[]).await else { return };
    if run_browser_script("provider.mjs", &[("GATEWAY", &gateway.url)]) {
        assert_eq!(gateway.account("alice@plant.example").await["roles"][0], "Admin");
    }
}

#[tokio::test]
async fn a_person_signs_in_with_a_password_also_without_script_and_on_a_telephone() {
    let gateway = Gateway::start(&[]).await;
    let password = gateway.initial_password();
    run_browser_script("password.mjs", &[("GATEWAY", &gateway.url), ("PASSWORD", &password)]);
}
