//! The log has the priorities of the journal under systemd, and only there.
use crate::penstock;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

/// Runs `serve` with an invalid configuration, and returns what it writes to a socket as standard error. `shift` is
/// added to the inode that `$JOURNAL_STREAM` names.
fn stderr_of_serve(shift: u64) -> String {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let stream =
        std::fs::metadata(format!("/proc/self/fd/{}", theirs.as_raw_fd())).expect("an inode");
    let arguments = ["serve", "--server.port=x", "--service.limits.nesting=x"];
    let mut child = penstock(dir.path(), &arguments)
        .env("JOURNAL_STREAM", format!("{}:{}", stream.dev(), stream.ino() + shift))
        .stdout(Stdio::null())
        .stderr(OwnedFd::from(theirs))
        .spawn()
        .expect("the binary runs");
    let mut text = String::new();
    // The command held the other copy of `theirs`, so this ends with the child.
    ours.read_to_string(&mut text).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(78));
    text
}

#[test]
fn each_line_has_the_priority_of_an_error() {
    let text = stderr_of_serve(0);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.lines().all(|line| line.starts_with("<3>")), "{text}");
    assert!(text.contains("server.port = \"x\""), "{text}");
}

#[test]
fn a_redirected_stream_has_no_priorities() {
    let text = stderr_of_serve(1);
    assert!(text.starts_with("penstock: the configuration has 2 errors"), "{text}");
}
