//! Sorts more records than fit into memory: sorted runs in files, which are merged.
use crate::varint;
use crate::{Error, files};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Bytes of records in memory, after which a run is written. A record may exceed it.
const RUN_BYTES: usize = if cfg!(test) { 4 << 10 } else { 16 << 20 };
/// The buffer of each file.
const BUFFER_BYTES: usize = 64 << 10;
/// The maximum number of files that are read at once. Each takes a buffer and a file descriptor, so more are merged first.
const MAX_MERGED_RUNS: usize = if cfg!(test) { 4 } else { 128 };

/// Gathers records.
pub(super) struct Sorter {
    folder: PathBuf,
    name: &'static str,
    bytes: Vec<u8>,
    records: Vec<Record>,
    runs: Vec<SortedRun>,
    /// The number of files that were created.
    files: usize,
}

/// The place of a record in memory: its key, and its value after it.
#[derive(Clone, Copy)]
struct Record {
    at: usize,
    key_bytes: u32,
    value_bytes: u32,
}

/// A file of sorted records.
struct SortedRun {
    path: PathBuf,
    /// The checksum of the file.
    crc: u32,
}

/// Writes the file of the last run.
struct RunWriter {
    out: BufWriter<File>,
    path: PathBuf,
    /// The checksum of what was written.
    crc: u32,
    head: Vec<u8>,
}

/// Records in sorted runs. The files are removed when this is dropped.
pub(super) struct SortedRecords {
    runs: Vec<SortedRun>,
}

/// Reads records in the order of their keys, and those with one key in the order in which they came.
pub(super) struct Merge {
    /// The run with the least key first, and of those with one key the oldest.
    runs: BinaryHeap<RunReader>,
}

struct RunReader {
    /// Older runs have lower numbers.
    number: usize,
    reader: BufReader<File>,
    path: PathBuf,
    /// The checksum of the file, and that of what was read.
    crc: u32,
    read_crc: u32,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Sorter {
    /// Begins to sort. The files of `name` are in `folder`, which exists.
    pub(super) fn new(folder: &Path, name: &'static str) -> Self {
        let (bytes, records, runs) = (Vec::new(), Vec::new(), Vec::new());
        Self { folder: folder.to_owned(), name, bytes, records, runs, files: 0 }
    }

    /// Adds a record.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let too_long =
            |bytes: usize| Error::TooLarge { bytes: bytes as u64, limit: u64::from(u32::MAX) };
        self.records.push(Record {
            at: self.bytes.len(),
            key_bytes: u32::try_from(key.len()).map_err(|_| too_long(key.len()))?,
            value_bytes: u32::try_from(value.len()).map_err(|_| too_long(value.len()))?,
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let used = self.bytes.len() + self.records.len() * size_of::<Record>();
        if used >= RUN_BYTES { self.write_run() } else { Ok(()) }
    }

    fn write_run(&mut self) -> Result<(), Error> {
        let mut run = self.begin_run()?;
        let bytes = &self.bytes;
        let part = |at: usize, length: u32| bytes.get(at..at + length as usize).unwrap_or_default();
        let key = |record: &Record| part(record.at, record.key_bytes);
        // Stable, so that the last of several values comes last.
        self.records.sort_by(|a, b| key(a).cmp(key(b)));
        for record in &self.records {
            let value_at = record.at + record.key_bytes as usize;
            run.push(key(record), part(value_at, record.value_bytes))?;
        }
        self.end_run(run)?;
        self.records.clear();
        self.bytes.clear();
        // A record can be far longer than a run.
        self.bytes.shrink_to(RUN_BYTES);
        Ok(())
    }

    fn begin_run(&mut self) -> Result<RunWriter, Error> {
        let path = self.folder.join(format!("{}-{}", self.name, self.files));
        self.files += 1;
        let file = files::create_or_truncate(&path)?;
        // From here on it is removed, even if it is never complete.
        self.runs.push(SortedRun { path: path.clone(), crc: 0 });
        let out = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(RunWriter { out, path, crc: 0, head: Vec::new() })
    }

    fn end_run(&mut self, run: RunWriter) -> Result<(), Error> {
        let crc = run.finish()?;
        if let Some(run) = self.runs.last_mut() {
            run.crc = crc;
        }
        Ok(())
    }

    /// Merges the runs, some neighbours at a time. The order of the results is that of the runs.
    fn merge_runs(&mut self) -> Result<(), Error> {
        let mut rest = std::mem::take(&mut self.runs);
        while !rest.is_empty() {
            let others = rest.split_off(rest.len().min(MAX_MERGED_RUNS));
            let neighbours = SortedRecords { runs: std::mem::replace(&mut rest, others) };
            let mut run = self.begin_run()?;
            neighbours.read()?.for_each(|key, value| run.push(key, value))?;
            self.end_run(run)?;
        }
        Ok(())
    }

    /// Ends the gathering.
    pub(super) fn finish(mut self) -> Result<SortedRecords, Error> {
        if !self.records.is_empty() {
            self.write_run()?;
        }
        while self.runs.len() > MAX_MERGED_RUNS {
            self.merge_runs()?;
        }
        Ok(SortedRecords { runs: std::mem::take(&mut self.runs) })
    }
}

impl RunWriter {
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        match self.write_record(key, value) {
            Ok(()) => Ok(()),
            Err(error) => Err(files::io_error("writing", &self.path)(error)),
        }
    }

    fn write_record(&mut self, key: &[u8], value: &[u8]) -> std::io::Result<()> {
        self.head.clear();
        varint::write_length(&mut self.head, key.len());
        varint::write_length(&mut self.head, value.len());
        for bytes in [self.head.as_slice(), key, value] {
            self.crc = crc32c::crc32c_append(self.crc, bytes);
            self.out.write_all(bytes)?;
        }
        Ok(())
    }

    /// Returns the checksum of the file.
    fn finish(mut self) -> Result<u32, Error> {
        self.out.flush().map_err(files::io_error("writing", &self.path))?;
        Ok(self.crc)
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        remove_files(&self.runs);
    }
}

impl Drop for SortedRecords {
    fn drop(&mut self) {
        remove_files(&self.runs);
    }
}

/// Best effort: the whole folder is removed at the end.
fn remove_files(runs: &[SortedRun]) {
    for run in runs {
        let _ = std::fs::remove_file(&run.path);
    }
}

impl SortedRecords {
    /// Reads the records from the first on.
    pub(super) fn read(&self) -> Result<Merge, Error> {
        let mut runs = BinaryHeap::new();
        for (number, SortedRun { path, crc }) in self.runs.iter().enumerate() {
            let file = File::open(path).map_err(files::io_error("opening", path))?;
            let mut run = RunReader {
                number,
                reader: BufReader::with_capacity(BUFFER_BYTES, file),
                path: path.clone(),
                crc: *crc,
                read_crc: 0,
                key: Vec::new(),
                value: Vec::new(),
            };
            if run.advance()? {
                runs.push(run);
            }
        }
        Ok(Merge { runs })
    }
}

impl Merge {
    /// Reads all records with the next key: sets `key`, and passes the values to `each` in order. Returns false at the end.
    pub(super) fn next_key(
        &mut self,
        key: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let Some(first) = self.runs.peek() else { return Ok(false) };
        key.clone_from(&first.key);
        while let Some(mut run) = self.runs.peek_mut() {
            if run.key != *key {
                break;
            }
            each(&run.value)?;
            if !run.advance()? {
                PeekMut::pop(run);
            }
        }
        Ok(true)
    }

    /// Passes each record to `visit`, in order.
    fn for_each(
        mut self,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while let Some(mut run) = self.runs.peek_mut() {
            visit(&run.key, &run.value)?;
            if !run.advance()? {
                PeekMut::pop(run);
            }
        }
        Ok(())
    }
}

impl Ord for RunReader {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap has its greatest item first.
        (&other.key, other.number).cmp(&(&self.key, self.number))
    }
}

impl PartialOrd for RunReader {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunReader {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RunReader {}

impl RunReader {
    /// Reads the next record. Returns false at the end, where the checksum must be right.
    fn advance(&mut self) -> Result<bool, Error> {
        match self.read_record() {
            Ok(false) if self.read_crc != self.crc => Err(self.damage_error()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.damage_error()),
            read => read.map_err(files::io_error("reading", &self.path)),
        }
    }

    fn damage_error(&self) -> Error {
        Error::Index(format!("{} is damaged", self.path.display()))
    }

    fn read_record(&mut self) -> std::io::Result<bool> {
        let Some(key_bytes) = self.read_number()? else { return Ok(false) };
        let value_bytes = self.read_number()?.ok_or(ErrorKind::UnexpectedEof)?;
        for (part, bytes) in [(&mut self.key, key_bytes), (&mut self.value, value_bytes)] {
            part.clear();
            part.shrink_to(BUFFER_BYTES);
            if self.reader.by_ref().take(bytes).read_to_end(part)? as u64 != bytes {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.read_crc = crc32c::crc32c_append(self.read_crc, part);
        }
        Ok(true)
    }

    /// Reads a number as `varint` writes it; `None` at the end of the file.
    fn read_number(&mut self) -> std::io::Result<Option<u64>> {
        let mut first = [0];
        if self.reader.read(&mut first)? == 0 {
            return Ok(None);
        }
        let [first] = first;
        let following = first.leading_ones() as usize;
        let mut bytes = [first; 9];
        self.reader.read_exact(bytes.get_mut(1..=following).unwrap_or_default())?;
        let read = bytes.get(..=following).unwrap_or_default();
        self.read_crc = crc32c::crc32c_append(self.read_crc, read);
        Ok(varint::Input::new(&bytes).read_number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn records_come_in_order_and_values_as_they_came(
            records in prop::collection::vec((prop::collection::vec(0_u8..4, 0..6), 0_u16..500), 0..400)
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::new(dir.path(), "test");
            let mut expected: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
            for (number, (key, length)) in records.iter().enumerate() {
                let mut value = vec![7; usize::from(*length)];
                value.extend_from_slice(&number.to_be_bytes());
                sorter.push(key, &value).unwrap();
                expected.entry(key.clone()).or_default().push(value);
            }
            let sorted = sorter.finish().unwrap();
            prop_assert!(sorted.runs.len() <= MAX_MERGED_RUNS, "{} files", sorted.runs.len());
            for _ in 0..2 {
                let mut merge = sorted.read().unwrap();
                let mut key = Vec::new();
                for (expected_key, expected_values) in &expected {
                    let mut values = Vec::new();
                    let mut each = |value: &[u8]| {
                        values.push(value.to_vec());
                        Ok(())
                    };
                    prop_assert!(merge.next_key(&mut key, &mut each).unwrap());
                    prop_assert_eq!((&key, &values), (expected_key, expected_values));
                }
                prop_assert!(!merge.next_key(&mut key, &mut |_| Ok(())).unwrap());
            }
            drop(sorted);
            prop_assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_damaged_or_cut_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(dir.path(), "test");
        for number in 0..20_u8 {
            sorter.push(&[number, 200], &[number; 5]).unwrap();
        }
        let sorted = sorter.finish().unwrap();
        let read = || -> Result<(), Error> {
            let (mut merge, mut key) = (sorted.read()?, Vec::new());
            while merge.next_key(&mut key, &mut |_| Ok(()))? {}
            Ok(())
        };
        read().unwrap();
        let path = dir.path().join("test-0");
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert!(matches!(read(), Err(Error::Index(_))), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(matches!(read(), Err(Error::Index(_))), "cut at {at}");
        }
    }
}
