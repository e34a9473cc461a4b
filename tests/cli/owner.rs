//! Which users' files a command trusts, and which user owns the files that it creates. If root runs a command and no
//! service runs, the command acts as the owner of the data directory.
use crate::{DATA, penstock};
use penstock_test_support::prelude::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt as _;

const NOBODY: u32 = 65_534;
const MALLORY: u32 = 12_345;

#[test]
fn root_leaves_no_file_of_its_own_in_the_data_directory() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can change to another user");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    let arguments = ["export", "list", "--service.data-dir=data"];
    penstock(dir.path(), &arguments).succeed();
    let files: Vec<_> = std::fs::read_dir(&data).unwrap().map(|f| f.unwrap()).collect();
    assert!(!files.is_empty(), "opening the store leaves files");
    for file in files {
        assert_eq!(file.metadata().unwrap().uid(), NOBODY, "{}", file.path().display());
    }
}

#[test]
fn root_writes_a_file_into_a_folder_that_the_owner_of_the_data_cannot_open() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can change to another user");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (data, private) = (dir.path().join("data"), dir.path().join("private"));
    for (folder, mode) in [(dir.path(), 0o755), (data.as_path(), 0o700), (private.as_path(), 0o700)]
    {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
    }
    chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    penstock(dir.path(), &["export", "list", DATA]).succeed();
    for arguments in [["backup", "private/monday", DATA], ["dump", "private/all.nq", DATA]] {
        penstock(dir.path(), &arguments).succeed();
    }
    let length = |name: &str| std::fs::metadata(private.join(name)).unwrap().len();
    assert!(length("monday") > 0);
    // Opening the store fails as the owner, who could not remove the incomplete file.
    std::fs::set_permissions(data.join("store"), PermissionsExt::from_mode(0o0)).unwrap();
    let failed = penstock(dir.path(), &["backup", "private/tuesday", DATA]).output().unwrap();
    failed.fails(1, "Permission denied");
    assert_eq!(std::fs::read_dir(&private).unwrap().count(), 2);
    for entry in std::fs::read_dir(data.join("store")).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().uid(), NOBODY);
    }
}

#[test]
fn root_ignores_the_configuration_in_a_folder_of_another_user() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can give a folder to another user");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    std::fs::create_dir(dir.path().join("trap")).unwrap();
    // If the command read it, it would end with an error.
    std::fs::write(dir.path().join("trap/application.yaml"), "server.port: trap\n").unwrap();
    chown(dir.path().join("trap"), Some(MALLORY), None).unwrap();
    let list = ["user", "list", "--json", "--service.data-dir=../data"];
    let output = penstock(&dir.path().join("trap"), &list).output().unwrap();
    let said = output.err();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("trap/application.yaml was ignored"), "{said}");
    assert!(said.contains("its folder belongs to user 12345"), "{said}");
}

#[test]
fn nothing_is_sent_to_a_socket_of_another_user() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can run a service as another user");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    chown(&data, Some(MALLORY), Some(MALLORY)).unwrap();
    // A copy that every user can run, wherever the program was built.
    let program = dir.path().join("penstock");
    std::fs::copy(binary(), &program).unwrap();
    let mut command = Command::new(program);
    command.args(["serve", "--server.port=0", "--service.data-dir=data"]);
    command.current_dir(dir.path()).env_clear().stdin(Stdio::null());
    let service = TestProcess::spawn(command.uid(MALLORY).gid(MALLORY));
    let passwd = ["user", "passwd", "admin", "--generate", "--json", "--service.data-dir=data"];
    let passwd = || penstock(dir.path(), &passwd).output().unwrap();
    // The command asks the service of the directory's owner.
    let own = passwd();
    chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    let other = passwd();
    service.kill();
    own.success();
    other.fails(1, "runs as user 12345, and the data directory belongs to user 65534");
}

#[test]
fn root_refuses_a_data_directory_that_another_user_could_replace() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can give a folder to another user");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("home/data")).unwrap();
    chown(dir.path().join("home"), Some(MALLORY), None).unwrap();
    let list = ["user", "list", "--service.data-dir=home/data"];
    let run = || penstock(dir.path(), &list).output().unwrap();
    run().fails(1, "which belongs to user 12345, who could put another one");
    chown(dir.path().join("home"), Some(0), None).unwrap();
    run().success();
}

#[test]
fn an_accessible_data_directory_is_a_warning_and_no_created_file_is_writable_by_others() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
    let binary = penstock(dir.path(), &[]).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.current_dir(dir.path()).args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(binary);
    shell.args(["serve", "--server.port=0", "--service.data-dir=data"]);
    let said = TestProcess::spawn(&mut shell).kill();
    assert!(said.contains("has the mode 755") && said.contains("chmod 700 data"), "{said}");
    let mut folders = vec![data];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o022, 0, "{} {mode:o}", entry.path().display());
            files += 1;
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    assert!(files > 3, "the service creates files");
}
