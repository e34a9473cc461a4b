//! The engine below the index: named byte values on disk. No other file names sled.
//!
//! What sled 0.34 was measured to do decides how it is used: small values, single insertions, no
//! batches (they leak), and its file synced by us, since its own flush syncs no metadata.
use crate::{Error, files};
use std::fs::{self, Permissions};
use std::ops::Bound;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes that sled may cache; it holds some thousands of leaves beyond that. With much less, leaves
/// are dropped while their newest bytes wait in its write buffer, and to get them back it writes
/// that out, a few KiB at a time: 4 MiB made it write four times as much.
const CACHE_BYTES: u64 = 16 << 20;
/// Insertions after which the garbage that sled left is collected.
const COLLECT_EVERY: usize = 128;

#[derive(Debug)]
pub(crate) struct Engine {
    db: sled::Db,
    folder: PathBuf,
}

#[expect(clippy::needless_pass_by_value, reason = "map_err gives it away")]
fn fault(error: sled::Error) -> Error {
    Error::Index(error.to_string())
}

impl Engine {
    /// Opens the engine in a folder of its own.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        files::make_folder(folder)?;
        remove_named(folder, |name| name.ends_with(".generating"))?;
        let db = match open(folder) {
            Ok(db) => db,
            Err(error) => {
                // A snapshot only shortens sled's own recovery.
                tracing::warn!(%error, "the quad index did not open; its snapshots were removed");
                remove_named(folder, |name| name.starts_with("snap."))?;
                open(folder).map_err(fault)?
            }
        };
        for path in files_of(folder)? {
            fs::set_permissions(&path, Permissions::from_mode(0o600))
                .map_err(files::fault("setting the mode of", &path))?;
        }
        Ok(Self { db, folder: folder.to_owned() })
    }

    /// Reads the value of a name.
    pub(crate) fn get<T>(
        &self,
        name: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, Error> {
        Ok(self.db.get(name).map_err(fault)?.map(|value| read(&value)))
    }

    /// Reads the greatest name within `upper`, and its value.
    pub(crate) fn last_within<T>(
        &self,
        upper: Bound<&[u8]>,
        read: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Result<Option<T>, Error> {
        match self.db.range::<&[u8], _>((Bound::Unbounded, upper)).next_back() {
            None => Ok(None),
            Some(found) => {
                let (name, value) = found.map_err(fault)?;
                Ok(Some(read(&name, &value)))
            }
        }
    }

    /// Begins a series of writes, which end with [`Writes::finish`].
    pub(crate) fn write(&self) -> Writes<'_> {
        Writes { engine: self, count: 0 }
    }

    /// Bytes on disk.
    pub(crate) fn size(&self) -> u64 {
        files::size_of(&self.folder)
    }
}

/// A series of writes.
pub(crate) struct Writes<'a> {
    engine: &'a Engine,
    count: usize,
}

impl Writes<'_> {
    pub(crate) fn insert(&mut self, name: &[u8], value: &[u8]) -> Result<(), Error> {
        self.engine.db.insert(name, value).map_err(fault)?;
        self.collect();
        Ok(())
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Result<(), Error> {
        self.engine.db.remove(name).map_err(fault)?;
        self.collect();
        Ok(())
    }

    fn collect(&mut self) {
        self.count += 1;
        if self.count.is_multiple_of(COLLECT_EVERY) {
            crossbeam_epoch::pin().flush();
        }
    }

    /// Returns when all that was written is on the medium.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.engine.db.flush().map_err(fault)?;
        crossbeam_epoch::pin().flush();
        let folder = &self.engine.folder;
        for path in files_of(folder)? {
            fs::File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(files::fault("syncing", &path))?;
        }
        files::sync_folder(folder)
    }
}

fn open(folder: &Path) -> sled::Result<sled::Db> {
    const ATTEMPTS: u32 = 200;
    let mut attempt = 0;
    loop {
        let opened = sled::Config::new()
            .path(folder)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(None)
            .open();
        match opened {
            // Threads of a closed engine let go of its lock a moment after it is dropped. No other
            // process can hold it: the data directory has a lock of its own.
            Err(sled::Error::Io(error))
                if error.to_string().contains("lock") && attempt < ATTEMPTS =>
            {
                attempt += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened,
        }
    }
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(files::fault("reading", folder))? {
        let path = entry.map_err(files::fault("reading", folder))?.path();
        if path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

fn remove_named(folder: &Path, chosen: impl Fn(&str) -> bool) -> Result<(), Error> {
    for path in files_of(folder)? {
        if path.file_name().and_then(|name| name.to_str()).is_some_and(&chosen) {
            files::remove(&path, folder)?;
        }
    }
    Ok(())
}
