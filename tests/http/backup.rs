//! The continuous backup in the status, the metrics and the pages, and its takeover.
use penstock_store::faults::{Failure, Faults};
use penstock_test_support::prelude::*;

/// Returns the settings of a backup into this folder.
fn backup_settings(folder: &Path) -> Vec<String> {
    vec![
        "--service.gateway-id=edge-1".to_owned(),
        "--service.backup.target=vault".to_owned(),
        "--service.backup.insecure=true".to_owned(),
        "--service.backup.interval=1s".to_owned(),
        "--service.export.targets.vault.type=directory".to_owned(),
        format!("--service.export.targets.vault.path={}", folder.display()),
        "--service.export.default.type=directory".to_owned(),
    ]
}

/// Waits until everything is in the bucket, and returns the member of the status.
async fn wait_until_sent(server: &TestApp) -> Value {
    until_some("everything is in the backup", async || {
        let backup = server.read("/api/v1/status").await["backup"].take();
        let is_running = backup["state"] == "running" && backup["restorable"] == true;
        (is_running && backup["lagBytes"] == 0).then_some(backup)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_the_metrics_and_the_pages_show_it() {
    let vault = tempfile::tempdir().unwrap();
    let server = TestApp::start(&lent(&backup_settings(vault.path()))).await;
    server.define().await;
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    let backup = wait_until_sent(&server).await;
    // A directory does not prevent that two gateways write one backup.
    backup.includes(&json!({
        "target": "vault", "intervalSeconds": 1, "number": 1, "singleWriter": false,
        "holes": [], "cause": null, "replacedBy": null,
    }));
    let warnings = backup["warnings"].to_string();
    assert!(warnings.contains("the backup's target is a directory, so two machines"), "{warnings}");
    assert!(!warnings.contains("If-Match"), "{warnings}");
    assert!(backup["bytes"].as_u64() > Some(0), "{backup}");
    assert!(vault.path().join("vault/_backup/edge-1/head.json").is_file());

    let metrics = server.get("/metrics").await.expect(200).text();
    metrics.has_all(&[
        "penstock_backup_interval_seconds 1\n",
        "penstock_backup_restorable 1\n",
        "penstock_backup_replaced 0\n",
        "penstock_backup_sent_bytes_total{kind=\"segment\"} ",
        "penstock_backup_sent_bytes_total{kind=\"base\"} ",
    ]);

    let overview = server.page("/admin").await;
    overview.has_all(&["<dt>Backup</dt><dd>", "/admin/backup"]);
    let page = server.page("/admin/backup").await;
    page.has_all(&[
        "<span class=\"state good\">running</span>",
        "<dt>Can be restored</dt><dd>yes</dd>",
        "sudo penstock restore --from vault --gateway edge-1",
        "sudo mv -T ",
        "It needs at least edge-1 as service.gateway-id",
        "docs/backup.md",
        "The backup is not encrypted",
    ]);
    assert!(!page.contains("lost together with the data"), "{page}");
    // Without a key there is none to keep or to copy.
    assert!(!page.contains("service.backup.key") && !page.contains("age identity"), "{page}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_warns_of_a_target_in_the_data_directory() {
    let mut settings = backup_settings(Path::new("unused"));
    settings.retain(|setting| !setting.contains(".path="));
    let server = TestApp::start(&lent(&settings)).await;
    let page = server.page("/admin/backup").await;
    assert!(page.contains("the backup is lost together with the data"), "{page}");
    server.stop().await;
}

/// What is written below the mount point of a disk that is not mounted is no backup.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "the files need not outlive a power cut")]
async fn a_folder_that_is_gone_blocks_the_backup() {
    let vault = tempfile::tempdir().unwrap();
    let server = TestApp::start(&lent(&backup_settings(vault.path()))).await;
    server.define().await;
    wait_until_sent(&server).await;
    let root = vault.path().join("vault");
    std::fs::rename(&root, vault.path().join("elsewhere")).unwrap();
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    let cause = until_some("the backup is blocked", async || {
        let backup = server.read("/api/v1/status").await["backup"].take();
        (backup["state"] == "blocked").then(|| backup["cause"].string())
    })
    .await;
    assert!(cause.contains("has no folder `vault`"), "{cause}");
    assert!(!root.exists());
    let tested = server.post_empty("/api/v1/targets/vault/test").await.expect(200).json();
    assert_eq!((&tested["ok"], &tested["causedBy"]), (&json!(false), &json!("bucket")), "{tested}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_takeover_begins_a_new_era() {
    let vault = tempfile::tempdir().unwrap();
    let server = TestApp::start(&lent(&backup_settings(vault.path()))).await;
    let first = wait_until_sent(&server).await;
    let take_over = "/control/backup/take-over";
    server.post_empty(take_over).await.expect(404);
    server.control("POST", take_over, &[], "").await.expect(204);
    let second = until_some("there is a new era", async || {
        let backup = wait_until_sent(&server).await;
        (backup["number"] == 2).then_some(backup)
    })
    .await;
    assert_ne!(second["era"], first["era"]);
    let audit = server.read("/api/v1/audit?what=backup.taken-over").await;
    assert_eq!(audit["items"][0]["detail"], "\"vault\"", "{audit}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_takeover_without_its_event() {
    let vault = tempfile::tempdir().unwrap();
    let server = TestApp::start(&lent(&backup_settings(vault.path()))).await;
    server.define().await;
    wait_until_sent(&server).await;
    let faults = Faults::inject_below(&server.dir().join("data/store"));
    faults.fail_nth(1, Failure::Io, true);
    assert!(server.ingest("ADD", &json!([{"name": "lost"}])).await.status >= 500);
    server.control("POST", "/control/backup/take-over", &[], "").await.problem(503);
    faults.clear_plan();
    until("the gateway recovers", async || server.get("/health/ready").await.status == 200).await;
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    assert_eq!(wait_until_sent(&server).await["number"], 1);
    let audit = server.read("/api/v1/audit?what=backup.taken-over").await;
    assert_eq!(audit["items"], json!([]), "{audit}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_target_there_is_none() {
    let server = TestApp::plain().await;
    let status = server.read("/api/v1/status").await;
    assert_eq!(status["backup"], Value::Null);
    let page = server.page("/admin/backup").await;
    page.has_all(&["service.backup.target", "penstock offsite-backup new-key"]);
    assert!(server.page("/admin").await.contains("<dt>Backup</dt><dd>off</dd>"));
    let answer = server.control("POST", "/control/backup/take-over", &[], "").await;
    assert!(answer.problem(409)["detail"].has("service.backup.target"));
    server.stop().await;
}
