//! A run: a file of sorted entries that never changes after it is written.
//!
//! FORMAT.md describes the file. It has the same blocks as the trees, and each read of a block checks its
//! checksum. Only the directory and the filter stay in memory.
use super::block::Block;
use super::filter::Filter;
use super::key::Shape;
use super::packing::{Packer, Unpacker};
use crate::varint::{self, Input};
use crate::{Error, files};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"PENSRUN1";
/// Bytes buffered before they are written.
const BUFFER_BYTES: usize = 64 << 10;
/// The length of the end: the offset of the directory, and the checksum of everything from the directory on.
const RUN_END_BYTES: usize = 12;

/// What all runs of a tree have in common.
#[derive(Debug)]
pub(super) struct RunKind {
    /// Returns the hash of what is looked up of a key; `None` if the key is only listed. Neighbours may have the same.
    pub(super) filter_hash: fn(&[u8]) -> Option<u64>,
    /// Returns the bits of the filter for each key, by the level of the run.
    pub(super) filter_bits: fn(u64) -> u64,
    /// The size of the entries of a block, in bytes. It can be large, because blocks of runs are never rewritten.
    pub(super) block_bytes: usize,
    /// The level of zstd for blocks.
    pub(super) zstd_level: i32,
}

impl RunKind {
    fn block_shape(&self) -> Shape {
        Shape { has_values: true, max_bytes: self.block_bytes }
    }
}

/// The entry of a run in the index's note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunNote {
    /// The number in the file name. Runs are numbered in the order in which they were begun.
    pub(super) id: u64,
    /// How often its entries were merged.
    pub(super) level: u64,
    /// The length of the file, in bytes.
    pub(super) length: u64,
    /// The checksum of the file.
    pub(super) crc: u32,
}

impl RunNote {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.id, self.level, self.length, u64::from(self.crc)] {
            varint::write_number(out, number);
        }
    }

    pub(super) fn decode(input: &mut Input<'_>) -> Option<Self> {
        Some(Self {
            id: input.read_number()?,
            level: input.read_number()?,
            length: input.read_number()?,
            crc: input.read_number()?.try_into().ok()?,
        })
    }
}

/// The position of a block.
#[derive(Debug)]
struct BlockPosition {
    /// The shortest key that is greater than all keys of the blocks before.
    name: Box<[u8]>,
    offset: u64,
    length: usize,
    crc: u32,
}

/// A run that is open for reading.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) note: RunNote,
    pub(super) entries: u64,
    /// The number of keys in the filter.
    pub(super) sought: u64,
    path: PathBuf,
    file: File,
    block_positions: Vec<BlockPosition>,
    filter: Filter,
}

/// Returns the path of a run's file.
pub(super) fn run_path(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id:020}.run"))
}

fn damaged_run(path: &Path) -> Error {
    Error::Index(format!("{} is missing or damaged", path.display()))
}

/// Converts a read error into damage of the index, which leads to a rebuild.
fn unreadable_run(path: &Path, cause: &io::Error) -> Error {
    Error::Index(format!("{} cannot be read: {cause}", path.display()))
}

impl Run {
    /// Opens a run. The length and checksum of the file must match its note.
    pub(super) fn open(folder: &Path, note: RunNote) -> Result<Self, Error> {
        let path = run_path(folder, note.id);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(damaged_run(&path));
            }
            opened => opened.map_err(|cause| unreadable_run(&path, &cause))?,
        };
        let (length, crc) = file_checksum(&file).map_err(|cause| unreadable_run(&path, &cause))?;
        if (length, crc) != (note.length, note.crc) {
            return Err(damaged_run(&path));
        }
        let mut end = [0; RUN_END_BYTES];
        let end_at = length.checked_sub(RUN_END_BYTES as u64).ok_or_else(|| damaged_run(&path))?;
        file.read_exact_at(&mut end, end_at).map_err(|cause| unreadable_run(&path, &cause))?;
        let begin = Input::new(&end).take(8).and_then(|bytes| bytes.try_into().ok());
        let begin = begin.map(u64::from_le_bytes).ok_or_else(|| damaged_run(&path))?;
        let length = length.checked_sub(begin).and_then(|length| usize::try_from(length).ok());
        let mut tail = vec![0; length.ok_or_else(|| damaged_run(&path))?];
        file.read_exact_at(&mut tail, begin).map_err(|cause| unreadable_run(&path, &cause))?;
        let tail = read_tail(&tail).ok_or_else(|| damaged_run(&path))?;
        let RunTail { places, filter, entries, sought } = tail;
        Ok(Self { note, entries, sought, path, file, block_positions: places, filter })
    }

    /// Returns whether the run can have a key with this hash, if it has a filter.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        self.filter.may_contain(hash)
    }

    /// Returns the number of the block that covers `key`; `None` if the key comes before all blocks.
    pub(super) fn find_block(&self, key: &[u8]) -> Option<usize> {
        self.block_positions.partition_point(|position| *position.name <= *key).checked_sub(1)
    }

    /// Returns whether a block may have keys from `from` up to `to`, exclusive.
    pub(super) fn may_overlap(&self, number: usize, (from, to): (&[u8], &[u8])) -> bool {
        let name = |number: usize| Some(&*self.block_positions.get(number)?.name);
        name(number).is_some_and(|name| name < to)
            && name(number + 1).is_none_or(|next| next > from)
    }

    /// Returns the number of blocks.
    pub(super) fn block_count(&self) -> usize {
        self.block_positions.len()
    }

    /// Removes the file. Open readers can continue.
    pub(super) fn remove_file(&self) {
        // If the file remains, the next open removes it.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Reads a block; `None` past the last one.
    pub(super) fn read_block(
        &self,
        number: usize,
        unpacker: &Unpacker,
    ) -> Result<Option<Arc<Block>>, Error> {
        let Some(position) = self.block_positions.get(number) else { return Ok(None) };
        let mut bytes = vec![0; position.length];
        self.file
            .read_exact_at(&mut bytes, position.offset)
            .map_err(|cause| unreadable_run(&self.path, &cause))?;
        let block = if crc32c::crc32c(&bytes) == position.crc {
            // Only writers need the size.
            let shape = Shape { has_values: true, max_bytes: 0 };
            unpacker.unpack_block(&bytes).and_then(|bytes| Block::decode(shape, bytes))
        } else {
            None
        };
        Ok(Some(Arc::new(block.ok_or_else(|| damaged_run(&self.path))?)))
    }
}

/// Returns the length and checksum of a file's content.
fn file_checksum(mut file: &File) -> io::Result<(u64, u32)> {
    let (mut length, mut crc) = (0, 0);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => return Ok((length, crc)),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        length += count as u64;
        crc = crc32c::crc32c_append(crc, buffer.get(..count).unwrap_or_default());
    }
}

/// The part of the file after the blocks.
struct RunTail {
    places: Vec<BlockPosition>,
    filter: Filter,
    entries: u64,
    sought: u64,
}

fn read_tail(bytes: &[u8]) -> Option<RunTail> {
    let (whole, crc) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
    if crc32c::crc32c(whole) != u32::from_le_bytes(crc.try_into().ok()?) {
        return None;
    }
    let mut input = Input::new(whole);
    let count = input.read_length()?;
    let mut places = Vec::new();
    let mut offset = MAGIC.len() as u64;
    for _ in 0..count {
        let name = input.read_bytes()?.into();
        let length = input.read_length()?;
        let crc = u32::from_le_bytes(input.take(4)?.try_into().ok()?);
        places.push(BlockPosition { name, offset, length, crc });
        offset = offset.checked_add(length as u64)?;
    }
    let filter = Filter::decode(input.read_bytes()?);
    let entries = input.read_number()?;
    let sought = input.read_number()?;
    let begin = u64::from_le_bytes(input.take(8)?.try_into().ok()?);
    let tail = RunTail { places, filter, entries, sought };
    (begin == offset && input.is_empty()).then_some(tail)
}

/// Writes a run.
#[derive(Debug)]
pub(super) struct NewRun {
    kind: &'static RunKind,
    id: u64,
    level: u64,
    path: PathBuf,
    file: File,
    /// The number of bytes written.
    length: u64,
    /// The checksum of the bytes written.
    crc: u32,
    /// Bytes that are not yet written.
    waiting: Vec<u8>,
    block: Block,
    name: Box<[u8]>,
    last: Vec<u8>,
    offset: u64,
    places: Vec<BlockPosition>,
    filter: Filter,
    entries: u64,
    sought: u64,
    /// The last hash in the filter.
    last_hash: Option<u64>,
    packer: Packer,
}

impl NewRun {
    /// Begins a run. `most` is the maximum number of keys in its filter.
    pub(super) fn begin(
        folder: &Path,
        kind: &'static RunKind,
        id: u64,
        level: u64,
        most: u64,
    ) -> Result<Self, Error> {
        let path = run_path(folder, id);
        let file = files::create_or_truncate(&path)?;
        Ok(Self {
            kind,
            id,
            level,
            path,
            file,
            length: 0,
            crc: 0,
            waiting: MAGIC.to_vec(),
            block: Block::new(kind.block_shape()),
            name: Box::default(),
            last: Vec::new(),
            offset: MAGIC.len() as u64,
            places: Vec::new(),
            filter: Filter::new(most, (kind.filter_bits)(level)),
            entries: 0,
            sought: 0,
            last_hash: None,
            packer: Packer::with_level(kind.zstd_level),
        })
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Appends an entry. Its key must be greater than all before it.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        if !self.block.fits_bytes(key.len() + value.len()) {
            self.end_block()?;
            let shared = self.last.iter().zip(key).take_while(|(a, b)| a == b).count();
            self.name = key.get(..=shared).unwrap_or(key).into();
        }
        self.block.insert(key, value);
        self.last.clear();
        self.last.extend_from_slice(key);
        if !self.filter.is_empty()
            && let Some(hash) = (self.kind.filter_hash)(key)
            && self.last_hash.replace(hash) != Some(hash)
        {
            self.filter.add_hash(hash);
            self.sought += 1;
        }
        self.entries += 1;
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), Error> {
        let mut bytes = Vec::new();
        let mut packed = Vec::new();
        self.block.encode(&mut bytes);
        self.packer.pack_block(&bytes, &mut packed);
        let name = std::mem::take(&mut self.name);
        let (length, crc) = (packed.len(), crc32c::crc32c(&packed));
        self.places.push(BlockPosition { name, offset: self.offset, length, crc });
        self.offset += length as u64;
        self.block = Block::new(self.kind.block_shape());
        self.buffer_bytes(&packed)
    }

    fn buffer_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= BUFFER_BYTES { self.flush_buffer() } else { Ok(()) }
    }

    fn flush_buffer(&mut self) -> Result<(), Error> {
        files::write_at(&self.file, &self.path, &self.waiting, self.length)
            .map_err(files::io_error("writing", &self.path))?;
        self.length += self.waiting.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, &self.waiting);
        self.waiting.clear();
        Ok(())
    }

    /// Ends the run. Returns when the file is on the medium; its name is only durable after the folder is
    /// synced.
    pub(super) fn finish(mut self) -> Result<Run, Error> {
        self.end_block()?;
        let mut tail = Vec::new();
        varint::write_length(&mut tail, self.places.len());
        for position in &self.places {
            varint::write_bytes(&mut tail, &position.name);
            varint::write_length(&mut tail, position.length);
            tail.extend_from_slice(&position.crc.to_le_bytes());
        }
        varint::write_bytes(&mut tail, self.filter.encode());
        varint::write_number(&mut tail, self.entries);
        varint::write_number(&mut tail, self.sought);
        tail.extend_from_slice(&self.offset.to_le_bytes());
        tail.extend_from_slice(&crc32c::crc32c(&tail).to_le_bytes());
        self.buffer_bytes(&tail)?;
        self.flush_buffer()?;
        files::sync_file(&self.file, &self.path)?;
        self.places.shrink_to_fit();
        let note = RunNote { id: self.id, level: self.level, length: self.length, crc: self.crc };
        Ok(Run {
            note,
            entries: self.entries,
            sought: self.sought,
            path: self.path,
            file: self.file,
            block_positions: self.places,
            filter: self.filter,
        })
    }
}

/// Iterates over a run in order.
#[derive(Debug)]
pub(super) struct RunCursor {
    run: Arc<Run>,
    block: Arc<Block>,
    next_block: usize,
    at: usize,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl RunCursor {
    /// Positions a cursor at the first key from `from` on; `None` if there is none. `first` reads the block.
    pub(super) fn seek(
        run: &Arc<Run>,
        from: &[u8],
        unpacker: &Unpacker,
        first: impl FnOnce(&Run, usize) -> Result<Option<Arc<Block>>, Error>,
    ) -> Result<Option<Self>, Error> {
        let number = run.find_block(from).unwrap_or(0);
        let Some(block) = first(run, number)? else { return Ok(None) };
        let mut cursor = Self {
            run: run.clone(),
            block,
            next_block: number + 1,
            at: 0,
            key: Vec::new(),
            value: Vec::new(),
        };
        while cursor.advance(unpacker)? {
            if *cursor.key >= *from {
                return Ok(Some(cursor));
            }
        }
        Ok(None)
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.value
    }

    /// Advances to the next entry. Returns `false` at the end.
    pub(super) fn advance(&mut self, unpacker: &Unpacker) -> Result<bool, Error> {
        loop {
            if let Some(value) = self.block.read_next(&mut self.at, &mut self.key) {
                self.value.clear();
                self.value.extend_from_slice(value);
                return Ok(true);
            }
            let Some(block) = self.run.read_block(self.next_block, unpacker)? else {
                return Ok(false);
            };
            self.block = block;
            self.next_block += 1;
            self.at = 0;
            self.key.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::hash_key;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    static KIND: RunKind = RunKind {
        filter_hash: |key| Some(hash_key(key)),
        filter_bits: |_| 10,
        block_bytes: 4_096,
        zstd_level: -1,
    };

    /// Writes a run of entries, and opens it.
    fn written(folder: &Path, entries: &BTreeMap<Vec<u8>, Vec<u8>>) -> Run {
        let mut run = NewRun::begin(folder, &KIND, 7, 2, entries.len() as u64).unwrap();
        for (key, value) in entries {
            run.push(key, value).unwrap();
        }
        let note = run.finish().unwrap().note;
        Run::open(folder, note).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_cursor_finds_the_entries_from_any_key_on(
            entries in prop::collection::btree_map(
                prop::collection::vec(0_u8..4, 1..12),
                prop::collection::vec(any::<u8>(), 1..90),
                0..300,
            ),
            from in prop::collection::vec(0_u8..4, 0..12),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let run = Arc::new(written(dir.path(), &entries));
            prop_assert_eq!(run.entries, entries.len() as u64);
            prop_assert!(entries.keys().all(|key| run.may_contain(hash_key(key))));
            let unpacker = Unpacker::default();
            let first = |run: &Run, number| run.read_block(number, &unpacker);
            let mut cursor = RunCursor::seek(&run, &from, &unpacker, first).unwrap();
            let mut found = Vec::new();
            while let Some(at) = &mut cursor {
                found.push((at.key().to_vec(), at.value().to_vec()));
                if !at.advance(&unpacker).unwrap() {
                    cursor = None;
                }
            }
            let expected: Vec<_> =
                entries.range(from..).map(|(k, v)| (k.clone(), v.clone())).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_run_with_a_flipped_bit_or_a_cut_end_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let entries = (0..900_u32).map(|n| (n.to_be_bytes().to_vec(), vec![1, 2])).collect();
        let run = written(dir.path(), &entries);
        assert!(run.block_positions.len() > 1);
        let path = run_path(dir.path(), 7);
        let whole = std::fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(37) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bytes).unwrap();
            assert!(Run::open(dir.path(), run.note).is_err(), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(Run::open(dir.path(), run.note).is_err(), "cut at {at}");
        }
        // The file changes while it is open: each read of a block checks the checksum.
        let position = &run.block_positions[1];
        let mut bytes = whole;
        bytes[usize::try_from(position.offset).unwrap() + position.length / 2] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(run.read_block(0, &Unpacker::default()).is_ok());
        assert!(matches!(run.read_block(1, &Unpacker::default()), Err(Error::Index(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_tail_or_refused(bytes: Vec<u8>) {
            let mut sealed = bytes;
            read_tail(&sealed);
            sealed.extend_from_slice(&crc32c::crc32c(&sealed).to_le_bytes());
            read_tail(&sealed);
        }
    }
}
