//! The files of a directory as the objects of a bucket: reading, listing and deleting them.
use super::{Directory, split_key, to_failure};
use crate::blocking::run_io;
use crate::cause::DeliveryFailure;
use crate::s3::list::{ListedObject, ObjectPage};
use jiff::Timestamp;
use penstock_base::shared_folder::{SharedFolder, TEMPORARY_EXTENSION};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The maximum length of a file that is read at once, in bytes.
const MAX_SMALL_BYTES: u64 = 1 << 20;

impl Directory {
    /// Opens a file. Returns `None` if it does not exist.
    pub(crate) async fn open(&self, key: &str) -> Result<Option<File>, DeliveryFailure> {
        self.check_key(key)?;
        let (directory, key) = (self.clone(), PathBuf::from(key));
        let opened = run_io(move || {
            let Some(folder) = open_folder(&directory, &key)? else { return Ok(None) };
            folder.open_file(split_key(&key).1)
        });
        opened.await.map_err(|error| to_failure(&self.root, &error))
    }

    /// Reads a small text. Returns `None` if it does not exist.
    pub(crate) async fn read_text(&self, key: &str) -> Result<Option<String>, DeliveryFailure> {
        let Some(file) = self.open(key).await? else { return Ok(None) };
        let read = run_io(move || {
            let mut bytes = Vec::new();
            file.take(MAX_SMALL_BYTES).read_to_end(&mut bytes)?;
            // Other bytes than UTF-8 are no document either way.
            Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
        });
        read.await.map(Some).map_err(|error| to_failure(&self.root, &error))
    }

    /// Deletes a file if it exists.
    pub(crate) async fn remove(&self, key: &str) -> Result<(), DeliveryFailure> {
        self.check_key(key)?;
        let (directory, key) = (self.clone(), PathBuf::from(key));
        let removed = run_io(move || match open_folder(&directory, &key)? {
            Some(folder) => folder.remove_file(split_key(&key).1),
            None => Ok(()),
        });
        removed.await.map_err(|error| to_failure(&self.root, &error))
    }

    /// Lists the files below a folder, in the order of their keys.
    pub(crate) async fn list(&self, folder: &str) -> Result<ObjectPage, DeliveryFailure> {
        self.check_key(folder)?;
        let (root, folder) = (self.root.clone(), self.root.join(folder));
        let listed = run_io(move || {
            let mut objects = Vec::new();
            list_below(&root, &folder, &mut objects)?;
            objects.sort_unstable_by(|a, b| a.key.cmp(&b.key));
            Ok::<_, io::Error>(objects)
        });
        let objects = listed.await.map_err(|error| to_failure(&self.root, &error))?;
        Ok(ObjectPage { objects, next: None, date: Some(Timestamp::now()) })
    }
}

/// Opens the folder of a file. Returns `None` if it does not exist.
fn open_folder(directory: &Directory, key: &Path) -> io::Result<Option<SharedFolder>> {
    match directory.open_root()? {
        Some(root) => root.open_below(split_key(key).0),
        None => Ok(None),
    }
}

fn list_below(root: &Path, folder: &Path, objects: &mut Vec<ListedObject>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            list_below(root, &path, objects)?;
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Links are not followed, and files that are being written are no objects.
        if !kind.is_file() || (name.starts_with('.') && name.ends_with(TEMPORARY_EXTENSION)) {
            continue;
        }
        let found = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        objects.push(ListedObject {
            key: path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned(),
            bytes: found.len(),
            modified: found.modified().ok().and_then(|at| Timestamp::try_from(at).ok()),
        });
    }
    Ok(())
}
