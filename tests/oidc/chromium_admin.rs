//! The administration interface in a real browser.
use crate::Gateway;
use crate::chromium::run_browser_script;
use penstock_test_support::s3_settings;

/// A secret of these tests' gateway that must not appear anywhere.
const SECRET: &str = "planted-secret-0123456789";

/// Runs a script against a new gateway, with the initial password.
async fn run_script_on_new_gateway(script: &str) {
    // No server listens at the endpoint of the first target, and no export uses it. The path of the last one does not
    // exist until a test creates it, in the working directory of the gateway.
    let mut settings = s3_settings("away", "http://127.0.0.1:9", SECRET).to_vec();
    settings.extend(
        [
            "--service.log.level=warn",
            "--service.export.targets.archive.type=directory",
            "--service.export.targets.historian.type=directory",
            "--service.export.targets.historian.path=mount/historian",
        ]
        .map(str::to_owned),
    );
    let gateway = Gateway::start(&settings).await;
    let password = gateway.initial_password();
    let environment = [
        ("GATEWAY", gateway.url.as_str()),
        ("PASSWORD", password.as_str()),
        ("SECRET", SECRET),
        ("DIR", gateway.dir.path().to_str().unwrap()),
    ];
    run_browser_script(script, &environment);
    assert!(!gateway.log().contains(SECRET) && !gateway.log().contains("ERROR"));
}

#[tokio::test]
async fn every_page_is_valid_for_every_role() {
    run_script_on_new_gateway("walk.mjs").await;
}

#[tokio::test]
async fn the_overview_is_live_in_two_browsers_and_needs_no_script() {
    run_script_on_new_gateway("overview.mjs").await;
}

#[tokio::test]
async fn people_keys_and_namespaces_are_edited_with_forms() {
    run_script_on_new_gateway("people.mjs").await;
}

#[tokio::test]
async fn a_change_is_sent_seen_and_decided_by_different_accounts() {
    run_script_on_new_gateway("changes.mjs").await;
}

#[tokio::test]
async fn objects_are_found_understood_corrected_and_deleted() {
    run_script_on_new_gateway("objects.mjs").await;
}

#[tokio::test]
async fn views_are_saved_and_everything_is_searched() {
    run_script_on_new_gateway("search.mjs").await;
}

#[tokio::test]
async fn objects_are_explored_downloaded_and_sent_back() {
    run_script_on_new_gateway("explore.mjs").await;
}

#[tokio::test]
async fn a_browser_suffices_from_the_first_start_to_a_delivered_export() {
    run_script_on_new_gateway("first_export.mjs").await;
}

#[tokio::test]
async fn typed_text_is_not_lost_without_the_gateway_or_the_session() {
    run_script_on_new_gateway("drafts.mjs").await;
}

#[tokio::test]
async fn a_blocked_target_is_understood_and_repaired() {
    run_script_on_new_gateway("repair.mjs").await;
}

#[tokio::test]
async fn a_person_of_the_provider_gets_from_a_sample_to_a_delivered_export() {
    let archive = ["--service.export.targets.archive.type=directory"];
    let Some((_provider, gateway)) = Gateway::with_provider(&archive).await else { return };
    let dir = gateway.dir.path().to_str().unwrap();
    run_browser_script("provider_export.mjs", &[("GATEWAY", &gateway.url), ("DIR", dir)]);
}
