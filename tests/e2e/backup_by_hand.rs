//! A backup is opened and checked without Penstock, as docs/backup.md says: with the Debian packages age and zstd, and
//! with the page's script.
use penstock_test_support::backup::{
    BackupKey, GATEWAY, Site, add_well, define_wells, until_shipped, wells,
};
use penstock_test_support::prelude::*;

const PAGE: &str = include_str!("../../docs/backup.md");

/// Returns the block of the page in this language that has these words.
fn block(language: &str, words: &str) -> &'static str {
    let mut blocks = PAGE.split("\n```").filter_map(|block| block.strip_prefix(language));
    let found = blocks.find(|block| block.contains(words));
    found.unwrap_or_else(|| panic!("the page has lost {words}"))
}

#[test]
fn the_commands_of_the_page_open_what_a_gateway_with_only_the_recipient_wrote() {
    let mut site = Site::with_directory();
    let key = BackupKey::new(site.dir());
    site.key.clone_from(&key.recipient);
    let dir = site.dir();
    std::fs::write(dir.join("backup-key.txt"), format!("{}\n", key.identity)).unwrap();
    // There is something before the first base.
    let gateway = format!("--service.gateway-id={GATEWAY}");
    let server = TestProcess::start(dir, &["--service.data-dir=old", &gateway]);
    define_wells(server.client);
    add_well(server.client, 1);
    let expected = wells(server.client);
    server.stop();
    let server = site.start("old");
    until_shipped(server.client);
    add_well(server.client, 2);
    until_shipped(server.client);
    server.kill();

    let head = site.place.head();
    let base = head["base"]["sequence"].as_u64().unwrap();
    let script = block("sh\n", "age -d")
        .replace("aws s3 sync s3://vault/_backup/edge-1", "cp -a buckets/backups/_backup/edge-1")
        .replace("ERA/SEQUENCE", &format!("{}/{base:020}", head["era"].text()))
        .replace("penstock restore", &format!("{} restore", binary().display()))
        .replace("/new/empty/directory", "by-hand");
    let mut shell = Command::new("bash");
    shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let said = shell.args(["-eu", "-c", &script]).current_dir(dir).succeed().out();
    said.has_all(&["backup-head", "backup-base", head["era"].text()]);
    let server = TestProcess::start(dir, &["--service.data-dir=by-hand"]);
    assert_eq!(wells(server.client), expected);
    server.stop();

    // The script finds a copy whole, and one with a changed or missing segment not.
    std::fs::write(dir.join("check.py"), block("python\n", "hashlib")).unwrap();
    let check = || {
        let mut python = Command::new("python3");
        python.args(["check.py", "copy", "backup-key.txt"]).current_dir(dir).output().unwrap()
    };
    let last = head["last"]["sequence"].as_u64().unwrap();
    assert!(check().success().out().contains(&format!("whole: commit {last} ")));
    let segment = site.place.keys_with(&format!("-{last:020}.segment")).pop().unwrap();
    let copied = dir.join(segment.replace(&format!("_backup/{GATEWAY}"), "copy"));
    let mut bytes = std::fs::read(&copied).unwrap();
    let end = bytes.len() - 1;
    bytes[end] ^= 1;
    std::fs::write(&copied, bytes).unwrap();
    check().fails(1, "returned non-zero exit status");
    std::fs::remove_file(&copied).unwrap();
    check().fails(1, &format!("{last} are missing"));
}
