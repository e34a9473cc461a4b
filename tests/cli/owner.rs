//! Run as root without a service, a command acts as the owner of the data directory.
use crate::penstock;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

const NOBODY: u32 = 65_534;

#[test]
fn root_leaves_no_file_of_its_own_in_the_data_directory() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    let arguments = ["export", "list", "--service.data-dir=data"];
    let output = penstock(dir.path(), &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let files: Vec<_> = std::fs::read_dir(&data).unwrap().map(|f| f.unwrap()).collect();
    assert!(!files.is_empty(), "opening the store leaves files");
    for file in files {
        assert_eq!(file.metadata().unwrap().uid(), NOBODY, "{}", file.path().display());
    }
}
