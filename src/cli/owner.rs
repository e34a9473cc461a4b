//! Whoever owns the data directory.
use nix::unistd::{Gid, Uid, geteuid, setgid, setgroups, setuid};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Refuses to say anything, such as a new password, to a process at the control socket that runs as neither
/// root, nor the data directory's owner, nor the user of this process: somebody else put the socket there.
///
/// # Errors
/// Who listens there, and whose the data directory is.
pub(super) fn check_peer(data_dir: &Path, socket: &Path, peer: u32) -> Result<(), String> {
    let owner = std::fs::metadata(data_dir)
        .map_err(|error| format!("{}: {error}", data_dir.display()))?
        .uid();
    if [0, owner, geteuid().as_raw()].contains(&peer) {
        return Ok(());
    }
    Err(format!(
        "{}: the process that listens there runs as user {peer}, and the data directory belongs to user {owner}; \
         nothing was sent to it; find out who made the socket, and restart the service, which makes its own",
        socket.display()
    ))
}

/// As root, refuses a data directory inside a folder of somebody who is neither root nor its owner, and who could
/// put another one in its place: passwords and data would go where that person wants them.
///
/// # Errors
/// Whose folder the data directory is in.
pub(super) fn check_path(data_dir: &Path) -> Result<(), String> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let failed = |error: std::io::Error| format!("{}: {error}", data_dir.display());
    let path = data_dir.canonicalize().map_err(failed)?;
    let owner = std::fs::metadata(&path).map_err(failed)?.uid();
    for folder in path.ancestors().skip(1) {
        let other = std::fs::metadata(folder).map_err(failed)?.uid();
        if ![0, owner].contains(&other) {
            return Err(format!(
                "the data directory {} belongs to user {owner} and is in {}, which belongs to user {other}, who \
                 could put another one in its place; give that folder to root, or move the data directory",
                path.display(),
                folder.display()
            ));
        }
    }
    Ok(())
}

/// Run as root, becomes the owner of this directory for good: files that root made there could not be
/// opened by the service afterwards. As [`check_path`], refuses one that is not safe.
///
/// # Errors
/// Why it is not possible, and what to do instead.
pub(super) fn become_owner(dir: &Path) -> Result<(), String> {
    let Ok(found) = std::fs::metadata(dir) else { return Ok(()) };
    check_path(dir)?;
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
