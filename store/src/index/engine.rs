//! The engine of the index: named byte values on disk. Only this file uses sled.
//!
//! Measurements of sled 0.34 decide how it is used: small values, single insertions, no batches (they leak).
//! We sync its file ourselves, because its own flush syncs no metadata.
use super::seal::Seal;
use crate::{Error, files};
use parking_lot::Mutex;
use std::cell::Cell;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::ops::Bound;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The size of sled's cache, in bytes; it keeps some thousand leaves beyond that. With a much smaller cache,
/// leaves are evicted while their newest bytes are still in its write buffer. To read them again, sled
/// flushes that buffer, a few KiB at a time. With 4 MiB it wrote four times as much.
const CACHE_BYTES: u64 = 16 << 20;
/// The number of writes after which sled's garbage is collected.
const WRITES_PER_COLLECTION: usize = 128;

#[derive(Debug)]
pub(crate) struct Engine {
    /// `None` after closing.
    db: Option<sled::Db>,
    folder: PathBuf,
    /// The checksums of the files when they were last read.
    seal: Mutex<Seal>,
}

#[expect(clippy::needless_pass_by_value, reason = "map_err passes it by value")]
fn to_store_error(error: sled::Error) -> Error {
    if let sled::Error::Io(source) = &error
        && matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
    {
        let source = source.kind().into();
        return Error::Io { action: "writing to", path: "the quad index".into(), source };
    }
    Error::Index(error.to_string())
}

thread_local! {
    static IS_CATCHING_PANICS: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether a panic of this thread comes from the engine and is caught. That includes panics of the
/// engine's own threads, for which such a call waits. They harm only the index, which is rebuilt.
pub fn panic_is_caught() -> bool {
    IS_CATCHING_PANICS.get()
        || std::thread::current().name().is_some_and(|name| name.starts_with("sled-"))
}

/// Runs code that reads possibly damaged files. It converts panics into errors, because sled panics at some
/// kinds of damage.
fn catch_panic<T>(risky: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    IS_CATCHING_PANICS.set(true);
    let done = catch_unwind(AssertUnwindSafe(risky));
    IS_CATCHING_PANICS.set(false);
    done.unwrap_or_else(|_| Err(Error::Index("the engine failed while reading its files".into())))
}

/// Returns the checksum of an entry. The sum of these checksums identifies a set of entries.
pub(crate) fn entry_checksum(name: &[u8], value: &[u8]) -> u64 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(name), value);
    // The finalizer of SplitMix64: CRCs are linear, so that sums of plain CRCs detect little.
    let mut mixed = (value.len() as u64) << 32 | u64::from(crc);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Engine {
    /// Opens the engine in a folder of its own. `check` decides whether it can be used. Its second argument
    /// says whether the files match their seal.
    pub(crate) fn open<T>(
        folder: &Path,
        check: impl Fn(&Self, bool) -> Result<T, Error>,
    ) -> Result<(Self, T), Error> {
        files::create_folder(folder)?;
        remove_files_where(folder, |name| name.ends_with(".generating"))?;
        // Before the engine opens the files, because opening changes them.
        let seal = Seal::of_folder(folder, &Seal::default()).unwrap_or_default();
        let sealed = seal.matches_folder(folder);
        let db = match catch_panic(|| open_sled(folder).map_err(to_store_error)) {
            Ok(db) => db,
            Err(error) => {
                // A snapshot only shortens sled's own recovery.
                tracing::warn!(%error, "Opening the quad index failed; removing its snapshots and retrying.");
                remove_files_where(folder, |name| name.starts_with("snap."))?;
                catch_panic(|| open_sled(folder).map_err(to_store_error))?
            }
        };
        let engine = Self { db: Some(db), folder: folder.to_owned(), seal: Mutex::new(seal) };
        match catch_panic(|| check(&engine, sealed)) {
            Ok(checked) => {
                for path in list_files(folder)? {
                    fs::set_permissions(&path, Permissions::from_mode(0o600))
                        .map_err(files::io_error("setting the mode of", &path))?;
                }
                engine.write_seal();
                Ok((engine, checked))
            }
            Err(error) => {
                // Dropping the engine writes, so it may panic in the same way.
                let _ = catch_panic(|| {
                    drop(engine);
                    Ok(())
                });
                Err(error)
            }
        }
    }

    /// Seals the files in their current state, which must be verified. If that fails, the next open reads all
    /// blocks instead.
    pub(super) fn write_seal(&self) {
        let mut before = self.seal.lock();
        match Seal::of_folder(&self.folder, &before) {
            Ok(seal) => {
                if let Err(cause) = seal.write_to(&self.folder) {
                    tracing::debug!(%cause, "Sealing the quad index failed; the next open reads all blocks.");
                }
                *before = seal;
            }
            Err(cause) => {
                tracing::debug!(%cause, "Sealing the quad index failed; the next open reads all blocks.");
            }
        }
    }

    fn db(&self) -> Result<&sled::Db, Error> {
        self.db.as_ref().ok_or(Error::Reopening)
    }

    /// Releases the files, so that another instance can open them.
    pub(crate) fn close(&mut self) {
        let db = self.db.take();
        // Dropping the engine writes, so it may fail.
        let _ = catch_panic(|| {
            drop(db);
            Ok(())
        });
    }

    /// Returns the sum of the checksums of all entries except the one with this name.
    pub(crate) fn checksum_sum_except(&self, name: &[u8]) -> Result<u64, Error> {
        let mut sum = 0_u64;
        for entry in self.db()?.iter() {
            let (found, value) = entry.map_err(to_store_error)?;
            if *found != *name {
                sum = sum.wrapping_add(entry_checksum(&found, &value));
            }
        }
        Ok(sum)
    }

    /// Passes the value of a name to `read`.
    pub(crate) fn get<T>(
        &self,
        name: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, Error> {
        Ok(self.db()?.get(name).map_err(to_store_error)?.map(|value| read(&value)))
    }

    /// Passes the greatest name within `upper`, and its value, to `read`.
    pub(crate) fn last_within<T>(
        &self,
        upper: Bound<&[u8]>,
        read: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Result<Option<T>, Error> {
        match self.db()?.range::<&[u8], _>((Bound::Unbounded, upper)).next_back() {
            None => Ok(None),
            Some(found) => {
                let (name, value) = found.map_err(to_store_error)?;
                Ok(Some(read(&name, &value)))
            }
        }
    }

    /// Begins a series of writes, which ends with [`Writes::finish`].
    pub(crate) fn begin_writes(&self) -> Writes<'_> {
        Writes { engine: self, count: 0 }
    }

    /// Returns the size on disk, in bytes.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        files::folder_bytes(&self.folder)
    }
}

/// A series of writes.
pub(crate) struct Writes<'a> {
    engine: &'a Engine,
    count: usize,
}

impl Writes<'_> {
    pub(crate) fn insert(&mut self, name: &[u8], value: &[u8]) -> Result<(), Error> {
        self.engine.db()?.insert(name, value).map_err(to_store_error)?;
        self.collect_garbage();
        Ok(())
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Result<(), Error> {
        self.engine.db()?.remove(name).map_err(to_store_error)?;
        self.collect_garbage();
        Ok(())
    }

    fn collect_garbage(&mut self) {
        self.count += 1;
        if self.count.is_multiple_of(WRITES_PER_COLLECTION) {
            crossbeam_epoch::pin().flush();
        }
    }

    /// Returns when everything that was written is on the medium.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.engine.db()?.flush().map_err(to_store_error)?;
        crossbeam_epoch::pin().flush();
        let folder = &self.engine.folder;
        for path in list_files(folder)? {
            fs::File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(files::io_error("syncing", &path))?;
        }
        files::sync_folder(folder)?;
        self.engine.write_seal();
        Ok(())
    }
}

fn open_sled(folder: &Path) -> sled::Result<sled::Db> {
    const ATTEMPTS: u32 = 200;
    let mut attempt = 0;
    loop {
        let opened = sled::Config::new()
            .path(folder)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(None)
            .open();
        match opened {
            // Threads of a closed engine release its lock shortly after it is dropped. No other process can
            // hold it, because the data directory has a lock of its own.
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

fn list_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(files::io_error("reading", folder))? {
        let path = entry.map_err(files::io_error("reading", folder))?.path();
        if path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

fn remove_files_where(folder: &Path, chosen: impl Fn(&str) -> bool) -> Result<(), Error> {
    for path in list_files(folder)? {
        if path.file_name().and_then(|name| name.to_str()).is_some_and(&chosen) {
            files::remove_durably(&path, folder)?;
        }
    }
    Ok(())
}
