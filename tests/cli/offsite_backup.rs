//! `penstock offsite-backup`, and the arguments of `penstock restore --from`.
use crate::{DATA, run};
use penstock_test_support::backup::{Site, define_wells, until_shipped};
use penstock_test_support::prelude::*;
use penstock_test_support::stub::{answer_with, serve};

#[test]
fn a_new_key_is_a_file_of_identities() {
    let dir = tempfile::tempdir().unwrap();
    let text = run(dir.path(), &["offsite-backup", "new-key"]).success().out();
    let lines: Vec<&str> = text.lines().collect();
    let [recipient, identity] = lines[..] else { panic!("{text}") };
    assert!(recipient.starts_with("# public key: age1"), "{text}");
    assert!(identity.starts_with("AGE-SECRET-KEY-1"), "{text}");
    let json = run(dir.path(), &["offsite-backup", "new-key", "--json"]).json();
    assert!(json["identity"].has("AGE-SECRET-KEY-1") && json["recipient"].has("age1"), "{json}");
    assert_ne!(json["identity"].text(), identity);
    // Both are valid settings.
    for key in [json["identity"].text(), json["recipient"].text()] {
        std::fs::write(
            dir.path().join("application.yaml"),
            format!(
                "service:\n  backup: {{target: vault, key: {key}}}\n  export.targets.vault: {{type: directory, path: /mnt}}\n"
            ),
        )
        .unwrap();
        run(dir.path(), &["check", "application.yaml"]).success();
    }
    run(dir.path(), &["offsite-backup", "new-key", DATA]).fails(2, "accepts no settings");
}

#[test]
fn a_wrong_command_line_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for arguments in [
        &["restore"][..],
        &["restore", "file", "--from", "vault"],
        &["restore", "file", "--copy"],
        &["restore", "--from", "vault", "--at", "yesterday"],
        &["offsite-backup"],
        &["offsite-backup", "list"],
    ] {
        run(dir, arguments).fails(2, "");
    }
    let place =
        ["--service.export.targets.vault.type=directory", "--service.export.targets.vault.path=."];
    let list = |more: &[&str]| {
        run(dir, &[&["offsite-backup", "list", "--from", "vault", DATA][..], more].concat())
    };
    list(&["--gateway", "edge-1"]).fails(1, "service.export.targets.vault.type");
    let unknown = ["offsite-backup", "list", "--from", "vaultt", DATA];
    run(dir, &[&unknown[..], &place].concat()).fails(
        1,
        "--from = \"vaultt\": there is no target with this bucketName; the configured targets are vault;",
    );
    list(&place).fails(1, "the target vault has no backup of any gateway");
    list(&place).fails(1, "vault has nothing below _backup/");
    let gateways = dir.join("vault/_backup");
    for gateway in ["edge-1", "edge-2"] {
        std::fs::create_dir_all(gateways.join(gateway)).unwrap();
        std::fs::write(gateways.join(gateway).join("head.json"), "{").unwrap();
    }
    list(&place).fails(1, "several gateways: edge-1, edge-2; add --gateway ID");
    std::fs::remove_dir_all(gateways.join("edge-2")).unwrap();
    list(&place).fails(1, "head.json");
    std::fs::remove_dir_all(gateways).unwrap();
    list(&[&place[..], &["--gateway", "edge-1"]].concat())
        .fails(1, "the target vault has no backup of the gateway edge-1");
    run(dir, &["offsite-backup", "take-over", DATA]).fails(1, "service.backup.target is not set");
}

#[test]
fn a_check_of_a_bucket_that_cannot_be_read_has_a_status_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let refused = "<Error><Code>AccessDenied</Code></Error>";
    let address = serve(move |_| Some(answer_with("403 Forbidden", "", refused)));
    let endpoint = format!("--service.export.targets.vault.endpoint=http://{address}");
    let settings = [
        DATA,
        "--service.export.targets.vault.type=s3",
        endpoint.as_str(),
        "--service.export.targets.vault.region=default",
        "--service.export.targets.vault.access-key-id=id",
        "--service.export.targets.vault.secret-access-key=secret",
    ];
    // Whether the id of the gateway is known or has to be found in the bucket.
    let gateways: [(&[&str], &str); 2] = [
        (&[], "may not list the bucket `vault`"),
        (&["--gateway", "edge-1"], "may not read from the bucket `vault`"),
    ];
    for (gateway, denied) in gateways {
        let command = |name| {
            let arguments = ["offsite-backup", name, "--from", "vault"];
            run(dir.path(), &[&arguments[..], &settings, gateway].concat())
        };
        command("check").fails(3, denied);
        command("list").fails(1, denied);
    }
}

#[test]
fn a_backup_is_listed_and_taken_over() {
    let site = Site::with_directory();
    let server = site.start("data");
    define_wells(server.client);
    let first = until_shipped(server.client);
    let command = |arguments: &[&str]| site.command("data", arguments).output().unwrap();
    let list = ["offsite-backup", "list", "--from", "backups"];
    command(&list).success().out().as_str().has_all(&[first["era"].text()]);
    let listed = command(&[&list[..], &["--json"]].concat()).json();
    assert_eq!(listed["era"], first["era"], "{listed}");

    let take_over = ["offsite-backup", "take-over"];
    assert!(command(&take_over).success().out().contains("now"));
    let is_second = || until_shipped(server.client)["number"] == 2;
    wait_for("the running service has begun a new era", is_second);
    server.stop();
    assert!(command(&take_over).success().out().contains("at its next start"));
    let server = site.start("data");
    assert_eq!(until_shipped(server.client)["number"], 3);
    let audit = server.client.read("/api/v1/audit?what=backup.taken-over");
    let items = audit["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{audit}");
    let is_local = |item: &Value| item["detail"] == "\"backups\"" && item["by"] == "local";
    assert!(items.iter().all(is_local), "{audit}");
    server.stop();
    // Another id than that of the configuration would not be kept.
    site.restore("new", &["--gateway", "edge-2"]).fails(1, "service.gateway-id is edge-1");
}
