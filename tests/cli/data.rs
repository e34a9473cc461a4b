//! What `serve` reports about an unusable data directory, and the exit status by which systemd decides whether to
//! restart.

use crate::{penstock, serve};
use nix::unistd::geteuid;
use penstock_store::{Error, Options, Store};
use penstock_test_support::prelude::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Output;

const SERVE: [&str; 3] = ["serve", "--service.data-dir=data", "--server.port=0"];

pub(crate) fn try_to_serve(dir: &Path) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = penstock(dir, &SERVE).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// Creates a store with some documents, and returns the path of its newest segment.
fn create_store(dir: &Path) -> PathBuf {
    let folder = dir.join("data/store");
    let store = Store::open(&folder, Options::default(), &mut |_| {}).unwrap();
    for number in 0..20_u8 {
        store.transact::<_, Error>(|t| t.put_document("some", &[number], &[number; 100])).unwrap();
    }
    drop(store);
    // With an index the journal would not be read.
    std::fs::remove_dir_all(folder.join("index")).unwrap();
    let journal = std::fs::read_dir(folder.join("journal")).unwrap();
    let mut files: Vec<_> = journal.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.pop().unwrap()
}

#[test]
fn a_newer_format_and_damage_need_a_person() {
    for (at, byte, expected) in
        [(8, 0xff, "install the version that wrote it"), (200, 0xff, "`penstock verify`")]
    {
        let dir = tempfile::tempdir().unwrap();
        let segment = create_store(dir.path());
        let mut bytes = std::fs::read(&segment).unwrap();
        bytes[at] ^= byte;
        std::fs::write(&segment, bytes).unwrap();
        let (status, said) = try_to_serve(dir.path());
        assert_eq!(status, Some(65), "{at}: {said}");
        assert!(said.contains(expected) && said.contains("ERROR"), "{said}");
    }
}

#[test]
fn a_directory_of_another_user_is_reported_with_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    if !geteuid().is_root() {
        std::fs::set_permissions(&data, PermissionsExt::from_mode(0o500)).unwrap();
        let (status, said) = try_to_serve(dir.path());
        assert_eq!(status, Some(77), "{said}");
        return;
    }
    // Runs as a user who may not write there.
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o700)).unwrap();
    let Output { status, stderr, .. } = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(binary())
        .args(SERVE)
        .current_dir(dir.path())
        .env_clear()
        .output()
        .unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(77), "{said}");
    assert!(said.contains("belongs to user 0, and this is user 65534"), "{said}");
}

#[test]
fn root_serves_as_the_owner_of_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    if !geteuid().is_root() {
        return;
    }
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    chown(&data, Some(65534), Some(65534)).unwrap();
    serve(dir.path(), "data").kill();
    for file in std::fs::read_dir(&data).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().uid(), 65534, "{}", file.path().display());
    }
}
