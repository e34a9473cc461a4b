//! The seal of the engine's files: their checksums after a checkpoint.
//!
//! The engine ignores damage in its own log and returns older data. So its data is trusted in only two cases:
//! its files are byte for byte what they were when they were last verified; or the checksums of all its blocks
//! add up to the sum in the index's note.
use crate::Error;
use crate::files;
use crate::varint;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::SystemTime;

const MAGIC: &[u8; 8] = b"PENSEAL1";
const SEAL_FILE: &str = "seal";
/// The file name of the engine's log.
const LOG_FILE: &str = "db";
/// The length of a segment of the engine's log, in bytes.
const CHUNK_BYTES: usize = 512 << 10;
/// The length of a segment's header, in bytes: a checksum, the position in the order of all writes, and
/// another checksum.
const SEGMENT_HEADER_BYTES: usize = 20;

type SegmentHeader = [u8; SEGMENT_HEADER_BYTES];

/// The lengths and checksums of files, by name.
#[derive(Debug, Default)]
pub(super) struct Seal(BTreeMap<String, SealedFile>);

#[derive(Debug, Default)]
struct SealedFile {
    length: u64,
    changed: Option<SystemTime>,
    chunks: Vec<Chunk>,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    head: SegmentHeader,
    crc: u32,
}

impl Chunk {
    /// Returns the position of a log segment in the order of all writes; the engine stores it inverted except
    /// for its sign. `None` for an unused segment, in which all bytes are equal.
    fn log_position(&self) -> Option<i64> {
        let first = self.head.first();
        if self.head.iter().all(|byte| Some(byte) == first) {
            return None;
        }
        let bytes = self.head.get(4..12).and_then(|bytes| bytes.try_into().ok());
        bytes.map(|bytes| i64::from_le_bytes(bytes) ^ i64::MAX)
    }
}

impl Seal {
    /// Computes the seal of the files in a folder. Checksums of unchanged log segments are copied from
    /// `before`. The engine fills one segment after the other. It changes a full one only by reusing it under
    /// another header.
    pub(super) fn of_folder(folder: &Path, before: &Self) -> io::Result<Self> {
        let mut seal = Self::default();
        for (within, folder) in [("", folder.to_owned()), ("blobs/", folder.join("blobs"))] {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let name = format!("{within}{}", entry.file_name().to_string_lossy());
                if name != SEAL_FILE && entry.metadata()?.is_file() {
                    let read = || {
                        SealedFile::of_file(&entry.path(), before.0.get(&name), name == LOG_FILE)
                    };
                    // The engine truncates its log in a thread of its own, possibly right now.
                    let sealed = match read() {
                        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => read()?,
                        sealed => sealed?,
                    };
                    seal.0.insert(name, sealed);
                }
            }
        }
        Ok(seal)
    }

    /// Writes the seal into the folder. It is not synced: a lost or torn seal only makes the next open
    /// slower.
    pub(super) fn write_to(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(SEAL_FILE);
        let file = files::create_or_truncate(&path)?;
        files::write_at(&file, &path, &self.encode(), 0).map_err(files::io_error("writing", &path))
    }

    /// Returns whether the folder has this seal.
    pub(super) fn matches_folder(&self, folder: &Path) -> bool {
        fs::read(folder.join(SEAL_FILE)).is_ok_and(|bytes| bytes == self.encode())
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        varint::write_length(&mut out, self.0.len());
        for (name, sealed) in &self.0 {
            varint::write_bytes(&mut out, name.as_bytes());
            varint::write_number(&mut out, sealed.length);
            for chunk in &sealed.chunks {
                out.extend_from_slice(&chunk.crc.to_le_bytes());
            }
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }
}

impl SealedFile {
    fn of_file(path: &Path, before: Option<&Self>, is_log: bool) -> io::Result<Self> {
        let file = File::open(path)?;
        let data = file.metadata()?;
        let changed = data.modified().ok();
        let newest =
            before.and_then(|before| before.chunks.iter().filter_map(Chunk::log_position).max());
        let kept = |at: usize, head: &SegmentHeader| {
            let before = before?;
            let chunk = before.chunks.get(at)?;
            let same = if is_log {
                let order = chunk.log_position();
                chunk.head == *head && order.is_some() && order < newest
            } else {
                changed.is_some() && (before.length, before.changed) == (data.len(), changed)
            };
            same.then_some(*chunk)
        };
        let mut chunks = Vec::new();
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut at = 0;
        while at < data.len() {
            let length = usize::try_from(data.len() - at).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            let mut head = [0; SEGMENT_HEADER_BYTES];
            let begin = head.get_mut(..length.min(SEGMENT_HEADER_BYTES)).unwrap_or_default();
            file.read_exact_at(begin, at)?;
            // The last segment may be cut. It is shorter than it was, so its checksum is not copied.
            let whole =
                if length == CHUNK_BYTES || !is_log { kept(chunks.len(), &head) } else { None };
            let chunk = if let Some(chunk) = whole {
                chunk
            } else {
                let bytes = buffer.get_mut(..length).unwrap_or_default();
                file.read_exact_at(bytes, at)?;
                Chunk { head, crc: crc32c::crc32c(bytes) }
            };
            chunks.push(chunk);
            at += length as u64;
        }
        Ok(Self { length: data.len(), changed, chunks })
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::Engine;
    use super::*;

    fn open(folder: &Path) -> (Engine, bool) {
        Engine::open(folder, |_, sealed| Ok(sealed)).unwrap()
    }

    fn write(engine: &Engine, round: u32) {
        let mut writes = engine.begin_writes();
        for n in 0..600_u32 {
            let name = n.wrapping_mul(0x9e37_79b9).to_be_bytes();
            writes.insert(&name, &round.to_be_bytes().repeat(130)).unwrap();
        }
        writes.finish().unwrap();
    }

    /// Returns whether an incremental seal equals a full one. The engine may truncate its log after it was
    /// sealed; then it is sealed once more in the same way.
    fn is_sealed(engine: &Engine, folder: &Path) -> bool {
        (0..200).any(|_| {
            let sealed = Seal::of_folder(folder, &Seal::default())
                .is_ok_and(|whole| whole.matches_folder(folder));
            if !sealed {
                std::thread::sleep(std::time::Duration::from_millis(10));
                engine.write_seal();
            }
            sealed
        })
    }

    #[test]
    fn only_unchanged_files_match_their_seal() {
        let dir = tempfile::tempdir().unwrap();
        let (mut engine, sealed) = open(dir.path());
        assert!(!sealed, "an empty folder cannot be sealed");
        // Several log segments, most of them reused.
        for round in 0..20 {
            write(&engine, round);
            assert!(
                is_sealed(&engine, dir.path()),
                "round {round}: the copied checksums are wrong"
            );
        }
        let log = dir.path().join(LOG_FILE);
        assert!(fs::metadata(&log).unwrap().len() > 3 * CHUNK_BYTES as u64);
        for _ in 0..3 {
            engine.close();
            let sealed;
            (engine, sealed) = open(dir.path());
            assert!(sealed, "after a clean stop");
        }
        // Reading does not change the files.
        assert!(engine.get(&[0; 4], |_| ()).unwrap().is_some());
        engine.close();
        for name in [LOG_FILE, "conf", SEAL_FILE] {
            let path = dir.path().join(name);
            let whole = fs::read(&path).unwrap();
            for eighth in 0..8 {
                let mut bytes = whole.clone();
                let at = whole.len() * eighth / 8;
                bytes[at] ^= 1;
                fs::write(&path, &bytes).unwrap();
                let seal = Seal::of_folder(dir.path(), &Seal::default()).unwrap();
                assert!(!seal.matches_folder(dir.path()), "{name}, byte {at}");
            }
            fs::write(&path, &whole).unwrap();
        }
        assert!(open(dir.path()).1);
        fs::write(dir.path().join("blobs/stray"), b"").unwrap();
        assert!(!Seal::of_folder(dir.path(), &Seal::default()).unwrap().matches_folder(dir.path()));
    }
}
