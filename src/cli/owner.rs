//! Checks the owner of the data directory, and acts as that user.
use nix::unistd::{Gid, Uid, User, getegid, geteuid, setegid, seteuid, setgid, setgroups, setuid};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

/// The user of the package's service.
const SERVICE_USER: &str = "penstock";
/// The data directory of the package's service.
const SERVICE_DATA_DIR: &str = "/var/lib/penstock";

/// Refuses a process at the control socket unless it runs as root, as the data directory's owner, or as the user of
/// this process. Otherwise another user created the socket, who must not get data such as a new password.
///
/// # Errors
/// The user of that process, and the owner of the data directory.
pub(super) fn check_peer(data_dir: &Path, socket: &Path, peer: u32) -> Result<(), String> {
    let owner = std::fs::metadata(data_dir)
        .map_err(|error| format!("{}: {error}", data_dir.display()))?
        .uid();
    if [0, owner, geteuid().as_raw()].contains(&peer) {
        return Ok(());
    }
    Err(format!(
        "{}: the process that listens there runs as user {peer}, and the data directory belongs to user {owner}; \
         nothing was sent to it; find out who created the socket, and restart the service, which creates its own",
        socket.display()
    ))
}

/// As root, refuses a data directory inside a folder that belongs neither to root nor to the owner of the data
/// directory. The owner of that folder could replace the directory, and would get passwords and data.
///
/// # Errors
/// The owner of that folder.
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

/// As root, gives the data directory of the package's service, which a command has just created, to the user of that
/// service. systemd would do so too, but not with what root then writes elsewhere, such as a takeover in a directory target.
///
/// # Errors
/// Changing the owner failed.
pub(super) fn give_to_service(dir: &Path) -> Result<(), String> {
    if !geteuid().is_root() || dir != Path::new(SERVICE_DATA_DIR) {
        return Ok(());
    }
    // Without the package there is no such user.
    let Ok(Some(user)) = User::from_name(SERVICE_USER) else { return Ok(()) };
    chown(dir, Some(user.uid.as_raw()), Some(user.gid.as_raw())).map_err(|error| {
        format!("giving {} to the user {SERVICE_USER} failed: {error}", dir.display())
    })
}

/// As root, changes this process to the owner of the directory permanently, because the service could not open files
/// that root creates there. Refuses an unsafe directory as [`check_path`] does.
///
/// # Errors
/// Why changing the user failed, and what to do instead.
pub(super) fn become_owner(dir: &Path) -> Result<(), String> {
    change_to_owner(dir, |user, group| setgid(group).and_then(|()| setuid(user)))
}

/// As [`become_owner`], but a [`Caller`] of before can resume.
///
/// # Errors
/// As [`become_owner`].
pub(super) fn act_as_owner(dir: &Path) -> Result<(), String> {
    // The real user stays root, so that the owner can neither stop nor end the process.
    change_to_owner(dir, |user, group| setegid(group).and_then(|()| seteuid(user)))
}

fn change_to_owner(
    dir: &Path,
    change: impl FnOnce(Uid, Gid) -> nix::Result<()>,
) -> Result<(), String> {
    let Ok(found) = std::fs::metadata(dir) else { return Ok(()) };
    check_path(dir)?;
    if !geteuid().is_root() || found.uid() == 0 {
        return Ok(());
    }
    let group = Gid::from_raw(found.gid());
    setgroups(&[group]).and_then(|()| change(Uid::from_raw(found.uid()), group)).map_err(|error| {
        format!(
            "{} belongs to user {}, and acting as that user failed: {error}; use sudo -u '#{}' penstock ...",
            dir.display(),
            found.uid(),
            found.uid()
        )
    })
}

/// The user and the group of this process before [`act_as_owner`].
pub(super) struct Caller {
    user: Uid,
    group: Gid,
}

impl Caller {
    /// Returns those of now.
    pub(super) fn current() -> Self {
        Self { user: geteuid(), group: getegid() }
    }

    /// Changes this process back to them.
    ///
    /// # Errors
    /// Why changing the user failed.
    pub(super) fn resume(self) -> Result<(), String> {
        if geteuid() == self.user {
            return Ok(());
        }
        seteuid(self.user)
            .and_then(|()| setegid(self.group))
            .map_err(|error| format!("acting as user {} again failed: {error}", self.user))
    }
}
