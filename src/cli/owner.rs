//! Whoever owns the data directory.
use nix::unistd::{Gid, Uid, geteuid, setgid, setgroups, setuid};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Run as root, becomes the owner of this directory for good: files that root made there could not be
/// opened by the service afterwards.
///
/// # Errors
/// Why it is not possible, and what to do instead.
pub(super) fn become_owner(dir: &Path) -> Result<(), String> {
    let Ok(found) = std::fs::metadata(dir) else { return Ok(()) };
    if !geteuid().is_root() || found.uid() == 0 {
        return Ok(());
    }
    let group = Gid::from_raw(found.gid());
    setgroups(&[group])
        .and_then(|()| setgid(group))
        .and_then(|()| setuid(Uid::from_raw(found.uid())))
        .map_err(|error| {
            format!(
                "{} belongs to user {}, and acting as that user failed: {error}; use sudo -u '#{}' penstock ...",
                dir.display(),
                found.uid(),
                found.uid()
            )
        })
}
