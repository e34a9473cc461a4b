//! The engine below the index: named byte values on disk. No other file names sled.
//!
//! What sled 0.34 was measured to do decides how it is used: small values, single insertions, no
//! batches (they leak), and its file synced by us, since its own flush syncs no metadata.
use super::seal::Seal;
use crate::{Error, files};
use std::cell::Cell;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::ops::Bound;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes that sled may cache; it holds some thousands of leaves beyond that. With much less, leaves
/// are dropped while their newest bytes wait in its write buffer, and to get them back it writes
/// that out, a few KiB at a time: 4 MiB made it write four times as much.
const CACHE_BYTES: u64 = 16 << 20;
/// Insertions after which the garbage that sled left is collected.
const COLLECT_EVERY: usize = 128;

#[derive(Debug)]
pub(crate) struct Engine {
    /// Nothing once it was closed.
    db: Option<sled::Db>,
    folder: PathBuf,
    /// What the files were when they were last looked at.
    seal: Mutex<Seal>,
}

#[expect(clippy::needless_pass_by_value, reason = "map_err gives it away")]
fn fault(error: sled::Error) -> Error {
    if let sled::Error::Io(source) = &error
        && matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
    {
        let source = source.kind().into();
        return Error::Io { action: "writing to", path: "the quad index".into(), source };
    }
    Error::Index(error.to_string())
}

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread is one of the engine that is caught, or one of its own threads,
/// whose work is waited for by such a one: nothing but the index is harmed, and it is made again.
pub fn panic_is_caught() -> bool {
    CATCHING.get() || std::thread::current().name().is_some_and(|name| name.starts_with("sled-"))
}

/// Runs what reads files that may be damaged: sled panics at some kinds of damage.
fn catching<T>(risky: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    CATCHING.set(true);
    let done = catch_unwind(AssertUnwindSafe(risky));
    CATCHING.set(false);
    done.unwrap_or_else(|_| Err(Error::Index("the engine failed on its own files".into())))
}

/// The checksum of an entry. Sums of them tell one set of entries from another.
pub(crate) fn checksum(name: &[u8], value: &[u8]) -> u64 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(name), value);
    // The finalizer of SplitMix64: CRCs alone are linear, and their sums say little.
    let mut mixed = (value.len() as u64) << 32 | u64::from(crc);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Engine {
    /// Opens the engine in a folder of its own; `check` finds out whether it can be used, and is told
    /// whether the files are those that were sealed.
    pub(crate) fn open<T>(
        folder: &Path,
        check: impl Fn(&Self, bool) -> Result<T, Error>,
    ) -> Result<(Self, T), Error> {
        files::make_folder(folder)?;
        remove_named(folder, |name| name.ends_with(".generating"))?;
        // Before the engine opens them, which changes them.
        let seal = Seal::of(folder, &Seal::default()).unwrap_or_default();
        let sealed = seal.is_in(folder);
        let db = match catching(|| open(folder).map_err(fault)) {
            Ok(db) => db,
            Err(error) => {
                // A snapshot only shortens sled's own recovery.
                tracing::warn!(%error, "The quad index did not open; its snapshots were removed.");
                remove_named(folder, |name| name.starts_with("snap."))?;
                catching(|| open(folder).map_err(fault))?
            }
        };
        let engine = Self { db: Some(db), folder: folder.to_owned(), seal: Mutex::new(seal) };
        match catching(|| check(&engine, sealed)) {
            Ok(checked) => {
                for path in files_of(folder)? {
                    fs::set_permissions(&path, Permissions::from_mode(0o600))
                        .map_err(files::fault("setting the mode of", &path))?;
                }
                engine.seal();
                Ok((engine, checked))
            }
            Err(error) => {
                // Its end writes, and may fail in the same way.
                let _ = catching(|| {
                    drop(engine);
                    Ok(())
                });
                Err(error)
            }
        }
    }

    /// Seals the files as they are now, which are known to be right. When that fails, the next open
    /// reads all blocks instead.
    pub(super) fn seal(&self) {
        let mut before = self.seal.lock().unwrap_or_else(PoisonError::into_inner);
        match Seal::of(&self.folder, &before) {
            Ok(seal) => {
                if let Err(cause) = seal.write(&self.folder) {
                    tracing::debug!(%cause, "The quad index was not sealed.");
                }
                *before = seal;
            }
            Err(cause) => tracing::debug!(%cause, "The quad index was not sealed."),
        }
    }

    fn db(&self) -> Result<&sled::Db, Error> {
        self.db.as_ref().ok_or(Error::Reopening)
    }

    /// Lets go of the files, so that another can open them.
    pub(crate) fn close(&mut self) {
        let db = self.db.take();
        // Its end writes, and may fail.
        let _ = catching(|| {
            drop(db);
            Ok(())
        });
    }

    /// The checksums of all entries but the one of this name, added up.
    pub(crate) fn sum_of_all_but(&self, name: &[u8]) -> Result<u64, Error> {
        let mut sum = 0_u64;
        for entry in self.db()?.iter() {
            let (found, value) = entry.map_err(fault)?;
            if *found != *name {
                sum = sum.wrapping_add(checksum(&found, &value));
            }
        }
        Ok(sum)
    }

    /// Reads the value of a name.
    pub(crate) fn get<T>(
        &self,
        name: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, Error> {
        Ok(self.db()?.get(name).map_err(fault)?.map(|value| read(&value)))
    }

    /// Reads the greatest name within `upper`, and its value.
    pub(crate) fn last_within<T>(
        &self,
        upper: Bound<&[u8]>,
        read: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Result<Option<T>, Error> {
        match self.db()?.range::<&[u8], _>((Bound::Unbounded, upper)).next_back() {
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
        self.engine.db()?.insert(name, value).map_err(fault)?;
        self.collect();
        Ok(())
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Result<(), Error> {
        self.engine.db()?.remove(name).map_err(fault)?;
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
        self.engine.db()?.flush().map_err(fault)?;
        crossbeam_epoch::pin().flush();
        let folder = &self.engine.folder;
        for path in files_of(folder)? {
            fs::File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(files::fault("syncing", &path))?;
        }
        files::sync_folder(folder)?;
        self.engine.seal();
        Ok(())
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
