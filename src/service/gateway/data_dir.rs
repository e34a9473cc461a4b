//! The data directory: its permissions, the store and the identifier of the gateway in it, and the errors of its disk.
use nix::unistd::geteuid;
use penstock_base::collections;
use penstock_base::error::{ErrorClass, Finding, GatewayError, describe_shortage};
use penstock_base::files::{create_folders, is_lost, sync_folder, write_atomically};
use penstock_base::table::Table;
use penstock_config::Settings;
use penstock_store::{DiskFull, Store, Transaction};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The store's folder in the data directory.
const STORE_FOLDER: &str = "store";
/// The file in the data directory with the gateway's identifier.
pub const GATEWAY_ID_FILE: &str = "gateway-id";

/// A copy of the gateway's identifier, among the documents about the gateway.
const GATEWAY_ID: Table<String, String> = Table::new(collections::GATEWAY);

/// Returns the path of the store in a data directory.
pub fn store_path(data_dir: &Path) -> PathBuf {
    data_dir.join(STORE_FOLDER)
}

/// Creates the directory with mode 0700, and its missing parents. Does not change an existing directory.
pub fn create_private_folder(dir: &Path) -> io::Result<()> {
    let parent = match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_folders(parent)?;
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        // Acknowledged data must not be lost because the name of its directory was not synced.
        Ok(()) => sync_folder(parent),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(io::ErrorKind::NotADirectory.into())
        }
        Err(error) => Err(error),
    }
}

/// Returns the identifier that is configured, or otherwise that in the data directory. Creates none.
pub fn find_gateway_id(settings: &Settings) -> Option<String> {
    if let Some(id) = &settings.gateway_id {
        return Some(id.clone());
    }
    parse_id(std::fs::read(settings.data_dir.join(GATEWAY_ID_FILE)).ok()?)
}

/// Returns the identifier in the bytes of its file; `None` if a failed disk has left nothing of it.
fn parse_id(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let id = text.trim();
    (!id.is_empty() && !id.contains(char::is_control)).then(|| id.to_owned())
}

/// Writes the identifier into a new data directory.
pub fn write_gateway_id(dir: &Path, id: &str) -> io::Result<()> {
    write_atomically(&dir.join(GATEWAY_ID_FILE), format!("{id}\n").as_bytes())
}

/// Warns of a data directory that other users than its owner can access, since all data is in it.
pub(super) fn warn_if_accessible(dir: &Path) {
    let Ok(found) = std::fs::metadata(dir) else { return };
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        tracing::warn!(
            "The data directory {} has the mode {mode:o}, so other users of this machine can access all data and \
             the password hashes; run `chmod 700 {}`.",
            dir.display(),
            dir.display()
        );
    }
}

/// Returns the identifier from the data directory, and generates it at the first start. The store has a copy, so that
/// no other identifier is generated silently when the file is lost.
pub(super) fn load_or_create_id(dir: &Path, store: &Store) -> Result<String, GatewayError> {
    let copy = GATEWAY_ID.get_readable(&store.read(), GATEWAY_ID_FILE)?;
    let id = read_or_create_id_file(dir, copy.as_deref())?;
    if copy.as_deref() != Some(&id) {
        let put = |change: &mut Transaction<'_>| GATEWAY_ID.put(change, GATEWAY_ID_FILE, &id);
        if let Err(error) = store.transact::<_, penstock_store::Error>(put) {
            tracing::warn!(%error, "Copying the gateway's identifier into the store failed; the next start tries again.");
        }
    }
    Ok(id)
}

fn read_or_create_id_file(dir: &Path, copy: Option<&str>) -> Result<String, GatewayError> {
    let path = dir.join(GATEWAY_ID_FILE);
    let is_damaged = match std::fs::read(&path) {
        Ok(bytes) => match parse_id(bytes) {
            Some(id) => return Ok(id),
            None => true,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => match copy {
            None => return Err(disk_error(&error, "reading", &path)),
            Some(_) if is_lost(&error) => true,
            // It may be whole, so it stays.
            Some(copy) => {
                tracing::warn!(
                    file = %path.display(),
                    %error,
                    "The file with the gateway's identifier cannot be read; the gateway uses the copy in the store. Let the \
                     user that Penstock runs as read the file."
                );
                return Ok(copy.to_owned());
            }
        },
    };
    if is_damaged && copy.is_none() {
        // URIs were minted with the lost identifier. Silently generating another would split the gateway's data.
        return Err(GatewayError::new(
            ErrorClass::Internal,
            format!(
                "{} is empty or damaged; write the gateway's identifier into it, or set service.gateway-id",
                path.display()
            ),
        ));
    }
    if is_damaged {
        tracing::warn!(
            file = %path.display(),
            "The file with the gateway's identifier is empty or damaged; the gateway writes it again from the copy in the store."
        );
    }
    let id = copy.map_or_else(|| uuid::Uuid::now_v7().to_string(), str::to_owned);
    if let Err(error) = write_gateway_id(dir, &id) {
        if copy.is_none() {
            return Err(disk_error(&error, "writing", &path));
        }
        tracing::warn!(
            file = %path.display(),
            %error,
            "Writing the file with the gateway's identifier failed; the next start tries again."
        );
    }
    Ok(id)
}

/// Converts an I/O error at the start into an error for the operator. It names the path, unlike the error of a request.
pub fn disk_error(error: &io::Error, action: &str, path: &Path) -> GatewayError {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => ErrorClass::Forbidden,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ErrorClass::InsufficientStorage
        }
        _ => ErrorClass::Internal,
    };
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!(
                "; {}set service.data-dir to a directory that this user may write to",
                describe_owner(path)
            )
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free space on this disk, or set service.data-dir to a directory on another one"
                .to_owned()
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            // The systemd unit lets the service write only into its own directories.
            "; set service.data-dir to a directory on a file system that can be written; under systemd, allow the service \
             to write there: run systemctl edit penstock and add [Service] and ReadWritePaths=/the/directory; a failed \
             disk is also mounted read-only, see the kernel log"
                .to_owned()
        }
        io::ErrorKind::NotADirectory => {
            "; set service.data-dir to a directory, or move the file in this path away".to_owned()
        }
        _ => String::new(),
    };
    let mut described =
        GatewayError::new(kind, format!("{action} {} failed: {error}{remedy}", path.display()));
    if let Some(full) = DiskFull::from_io_error(error) {
        described.findings.push(Finding::whole(describe_shortage(full)));
    }
    described
}

/// Describes the owner of the path, or of its nearest existing parent, if this process runs as another user.
fn describe_owner(path: &Path) -> String {
    let found = path.ancestors().find_map(|path| Some((path, std::fs::metadata(path).ok()?.uid())));
    match found {
        Some((path, owner)) if owner != geteuid().as_raw() => format!(
            "{} belongs to user {owner}, and this is user {}; ",
            path.display(),
            geteuid().as_raw()
        ),
        _ => String::new(),
    }
}

/// Describes the error of a store that another process has open, and how to stop the service.
pub fn describe_in_use(error: &penstock_store::Error) -> String {
    format!(
        "{error}; stop the service first, for example with systemctl stop penstock.socket penstock.service (a \
         connection to the socket would start it again)"
    )
}

/// Converts an error of opening the store.
pub(super) fn open_error(error: &penstock_store::Error) -> GatewayError {
    use penstock_store::Error;
    match error {
        Error::Io { action, path, source } => disk_error(source, action, path),
        Error::InUse { .. } => GatewayError::new(ErrorClass::Conflict, describe_in_use(error)),
        Error::NewerFormat { .. } | Error::UnfinishedRestore { .. } => {
            GatewayError::new(ErrorClass::Damaged, error.to_string())
        }
        Error::Corrupt(_) => GatewayError::new(
            ErrorClass::Damaged,
            format!(
                "{error}; `penstock verify` lists all damage, `penstock restore` restores a backup"
            ),
        ),
        _ => GatewayError::new(ErrorClass::Internal, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_store::Options;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_identifier_is_generated_once_and_kept() {
        let (folder, store) = open_store();
        let first = load_or_create_id(folder.path(), &store).unwrap();
        assert_eq!(uuid::Uuid::parse_str(&first).unwrap().to_string(), first);
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), first);
    }

    #[test]
    fn a_lost_identifier_is_read_from_the_store_and_a_changed_file_takes_precedence() {
        let (folder, store) = open_store();
        let path = folder.path().join(GATEWAY_ID_FILE);
        let first = load_or_create_id(folder.path(), &store).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), first);
        assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), first);
        // The settings refuse the first one, but a gateway that has it keeps it.
        for id in ["..", "mine"] {
            std::fs::write(&path, format!("{id}\n")).unwrap();
            assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), id);
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), "mine");
    }

    fn open_store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&store_path(folder.path()), Options::default(), &mut |_| {});
        (folder, store.unwrap())
    }

    #[test]
    fn a_damaged_identifier_is_replaced_only_by_its_copy() {
        let (folder, store) = open_store();
        let path = folder.path().join(GATEWAY_ID_FILE);
        let damaged: [&[u8]; 4] = [b"", b" \n", &[0; 37], &[0xff; 37]];
        for bytes in damaged {
            std::fs::write(&path, bytes).unwrap();
            let refused = load_or_create_id(folder.path(), &store).unwrap_err();
            assert_eq!(refused.class, ErrorClass::Internal);
        }
        std::fs::write(&path, "mine\n").unwrap();
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), "mine");
        for bytes in damaged {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), "mine");
            assert_eq!(std::fs::read(&path).unwrap(), b"mine\n");
        }
        // Reading this fails as reading a bad sector does.
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/proc/self/mem", &path).unwrap();
        assert!(is_lost(&std::fs::read(&path).unwrap_err()));
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), "mine");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine\n");
    }

    #[test]
    fn an_identifier_that_cannot_be_read_or_written_is_that_of_its_copy() {
        let (folder, store) = open_store();
        let path = folder.path().join(GATEWAY_ID_FILE);
        // Reading this fails, as that of another user's file does.
        std::fs::create_dir(&path).unwrap();
        load_or_create_id(folder.path(), &store).unwrap_err();
        std::fs::remove_dir(&path).unwrap();
        let first = load_or_create_id(folder.path(), &store).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), first);
        assert!(path.is_dir());
        std::fs::remove_dir(&path).unwrap();
        // Nothing can be created in place of this.
        std::fs::create_dir_all(path.with_extension("new").join("full")).unwrap();
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), first);
        assert!(!path.exists());
    }

    #[test]
    fn the_data_directory_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a/b");
        create_private_folder(&dir).unwrap();
        create_private_folder(&dir).unwrap();
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(folder.path().join("file"), "").unwrap();
        let file = folder.path().join("file");
        let found = create_private_folder(&file).unwrap_err();
        for (error, expected) in [
            (found, "not a directory; set service.data-dir to a directory"),
            (io::ErrorKind::ReadOnlyFilesystem.into(), "; set service.data-dir"),
            // The unit of the package allows no other directory.
            (io::ErrorKind::ReadOnlyFilesystem.into(), "add [Service] and ReadWritePaths="),
        ] {
            let error = disk_error(&error, "creating the data directory", &file);
            assert_eq!(error.class, ErrorClass::Internal);
            assert!(error.detail.contains(expected), "{error}");
        }
    }
}
