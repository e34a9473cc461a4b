//! Files that are there whole or not at all.
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Puts a file of mode 0600 in place of the one at `path`. After a power cut either the old file is
/// there or the new one, whole: a temporary file beside it is written and synced, takes its name, and
/// the folder is synced.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = folder.join(name);
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
    if let Err(error) = written {
        // What is left of it would only take room; the fault that matters is the first.
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    #[expect(clippy::disallowed_methods, reason = "this is the function that also syncs the folder")]
    std::fs::rename(&temporary, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_new_file_takes_the_place_of_the_old_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("id");
        write_atomically(&path, b"first, and longer").unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_not_there_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_atomically(&folder.path().join("none/id"), b"x").is_err());
    }
}
