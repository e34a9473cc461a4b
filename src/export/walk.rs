//! Checks a bucket as its consumer would: every sequence exists once, every file is valid, no object is
//! foreign.
//!
//! Objects are read as streams, one after the other. Each export needs only one bit of memory, so the memory use
//! hardly depends on the size of the bucket.

pub(crate) mod place;
mod sequences;

pub use place::{BucketLocation, ReadCredentials};

use super::key::{self, ExportKey, ObjectRole};
use super::verify::{self, Metadata, ParseError};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::hex::encode_hex;
use penstock_resources::export::ExportKind;
use place::{MAX_ATTEMPTS, ObjectHeaders, ObjectReader, pause_before_retry};
use sequences::Sequences;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// A problem in a bucket, or a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketFinding {
    /// Missing sequences: never delivered, parked at the gateway, removed, or left out by a restore.
    Gap {
        /// As in [`FolderSummary`].
        folder: String,
        /// The first missing sequence.
        from: u64,
        /// The last missing sequence.
        to: u64,
    },
    /// Missing sequences before a full export, so that no consumer lacks anything. A note, which is no problem.
    Healed {
        /// As in [`FolderSummary`].
        folder: String,
        /// The first missing sequence.
        from: u64,
        /// The last missing sequence.
        to: u64,
        /// The sequence of the last valid full export.
        full: u64,
    },
    /// A sequence that already exists under another key.
    Double {
        /// The key that comes later in the bucket's order, or the folder if the keys have different templates.
        key: String,
        /// The sequence.
        sequence: u64,
    },
    /// An object that does not match its metadata.
    Damaged {
        /// Its key, or the folder if only the keys were checked.
        key: String,
        /// The mismatch.
        cause: String,
    },
    /// An object that is not an export.
    Foreign {
        /// Its key.
        key: String,
    },
    /// An export of another gateway than the first export of the folder.
    Mixed {
        /// Its key.
        key: String,
        /// Its gateway.
        gateway: String,
        /// The gateway of the first export.
        expected: String,
    },
}

/// The exports of one Business Object in one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderSummary {
    /// The prefix of the keys, the gateway if it is in the key, and the name of the Business Object.
    pub folder: String,
    /// The number of exports.
    pub exports: u64,
    /// The highest sequence. Exports missing after it cannot be detected from the bucket.
    pub last: u64,
    /// The gateway of the exports, if the objects name it.
    pub gateway: Option<String>,
}

/// The result of checking a bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalkSummary {
    /// The number of objects.
    pub objects: u64,
    /// The bytes of the export files.
    pub bytes: u64,
    /// The exports by Business Object.
    pub folders: Vec<FolderSummary>,
    /// The number of findings without notes.
    pub findings: u64,
}

/// Receives the number of objects and bytes read so far, after each object.
pub type ProgressCallback<'a> = &'a mut dyn FnMut(u64, u64);

/// Checks every object of a bucket and passes each finding to `found` immediately, gaps at the end. With
/// `keys_only`, only the keys are checked and no object is read.
///
/// # Errors
/// If the bucket cannot be read.
pub fn walk_bucket(
    place: &BucketLocation,
    keys_only: bool,
    progress: ProgressCallback<'_>,
    found: &mut dyn FnMut(&BucketFinding),
) -> Result<WalkSummary, GatewayError> {
    let mut folders = Folders::default();
    let mut summary = WalkSummary::default();
    let mut findings = 0;
    let mut report = |finding: &BucketFinding| {
        findings += u64::from(!matches!(finding, BucketFinding::Healed { .. }));
        found(finding);
    };
    place.for_each_key(&mut |path| {
        let mut readings = place.parse_key(path);
        if readings.is_empty() && place.is_reserved_key(path) {
            return Ok(());
        }
        summary.objects += 1;
        let Some(first) = readings.first() else {
            report(&BucketFinding::Foreign { key: path.to_owned() });
            return Ok(());
        };
        let (mut chosen, mut object) = (0, None);
        // The metadata of lines is read together with them.
        if !keys_only && first.role != ObjectRole::Metadata {
            let read = read_export(place, path, first.role)?;
            chosen = readings.iter().position(|key| read.find_mismatch(key).is_none()).unwrap_or(0);
            object = Some(read);
        }
        let key = readings.swap_remove(chosen);
        let state = folders.state_of(&key);
        if !state.insert(key.role, key.sequence) {
            report(&BucketFinding::Double { key: path.to_owned(), sequence: key.sequence });
        }
        if keys_only && key.role != ObjectRole::Metadata && key.is_like_full {
            state.add_full(key.sequence);
        }
        if let Some(object) = object {
            match object.check(&key) {
                Ok(bytes) => {
                    summary.bytes += bytes;
                    if object.is_full(&key) {
                        state.add_full(key.sequence);
                    }
                }
                Err(cause) => report(&BucketFinding::Damaged { key: path.to_owned(), cause }),
            }
            if let Some(finding) = state.check_gateway(path, object.headers.gateway) {
                report(&finding);
            }
        }
        progress(summary.objects, summary.bytes);
        Ok(())
    })?;
    if keys_only {
        folders.for_each_without_metadata(|key, sequence| {
            let cause =
                format!("the metadata (`.meta.json`) of sequence {sequence} does not exist");
            report(&BucketFinding::Damaged { key: key.to_owned(), cause });
        });
    }
    for state in folders.merge_earlier_keys(&mut report) {
        let FolderState { label: folder, sequences, last_full: full, gateway, .. } = state;
        for (from, to) in sequences.missing_ranges() {
            let folder = folder.clone();
            report(&if full > to {
                BucketFinding::Healed { folder, from, to, full }
            } else {
                BucketFinding::Gap { folder, from, to }
            });
        }
        let (exports, last) = (sequences.len(), sequences.last());
        if exports > 0 {
            summary.folders.push(FolderSummary { folder, exports, last, gateway });
        }
    }
    summary.findings = findings;
    Ok(summary)
}

/// The exports by prefix and name, and by the gateway in the key, if there is one.
#[derive(Default)]
struct Folders(BTreeMap<(String, Option<String>), FolderState>);

/// The state for the exports of one Business Object.
struct FolderState {
    label: String,
    sequences: Sequences,
    /// The sequence of the last valid full export, 0 if there is none. A consumer needs nothing before it.
    last_full: u64,
    /// The sequences of exports in the format `jsonl`.
    lines: Sequences,
    /// The sequences of metadata objects.
    metadata: Sequences,
    gateway: Option<String>,
}

impl Folders {
    fn state_of(&mut self, key: &ExportKey) -> &mut FolderState {
        let (folder, gateway) = (key.folder.clone(), key.gateway.clone());
        self.0.entry((folder, gateway.clone())).or_insert_with(|| FolderState {
            label: key.folder_label(),
            sequences: Sequences::default(),
            last_full: 0,
            lines: Sequences::default(),
            metadata: Sequences::default(),
            gateway,
        })
    }

    /// Passes the folder and the sequence of each export in the format `jsonl` without metadata to `each`.
    fn for_each_without_metadata(&self, mut each: impl FnMut(&str, u64)) {
        for state in self.0.values() {
            for sequence in state.lines.iter().filter(|one| !state.metadata.contains(*one)) {
                each(&state.label, sequence);
            }
        }
    }

    /// Joins keys without a gateway, which an earlier template created, with those of the gateway that continued
    /// their sequences. Returns the states.
    fn merge_earlier_keys(
        mut self,
        report: &mut dyn FnMut(&BucketFinding),
    ) -> impl Iterator<Item = FolderState> + use<> {
        let earlier: Vec<String> = self
            .0
            .keys()
            .filter(|(_, gateway)| gateway.is_none())
            .map(|(f, _)| f.clone())
            .collect();
        for folder in earlier {
            let Some(earlier) = self.0.remove(&(folder.clone(), None)) else { continue };
            let mut later = self.0.iter_mut().filter(|((same, gateway), _)| {
                *same == folder && (earlier.gateway.is_none() || *gateway == earlier.gateway)
            });
            match (later.next(), later.next()) {
                (Some((_, later)), None) => {
                    later.add_full(earlier.last_full);
                    for sequence in earlier.sequences.iter() {
                        if !later.sequences.insert(sequence) {
                            let key = later.label.clone();
                            report(&BucketFinding::Double { key, sequence });
                        }
                    }
                }
                _ => {
                    self.0.insert((folder, None), earlier);
                }
            }
        }
        self.0.into_values()
    }
}

impl FolderState {
    fn add_full(&mut self, sequence: u64) {
        self.last_full = self.last_full.max(sequence);
    }

    /// Adds the sequence of an object. Returns false if it was already there.
    fn insert(&mut self, role: ObjectRole, sequence: u64) -> bool {
        match role {
            ObjectRole::Document => self.sequences.insert(sequence),
            ObjectRole::Lines => {
                self.lines.insert(sequence);
                self.sequences.insert(sequence)
            }
            ObjectRole::Metadata => self.metadata.insert(sequence),
        }
    }

    fn check_gateway(&mut self, path: &str, gateway: Option<String>) -> Option<BucketFinding> {
        let gateway = gateway?;
        let expected = self.gateway.get_or_insert_with(|| gateway.clone());
        let mixed = || BucketFinding::Mixed {
            key: path.to_owned(),
            gateway: gateway.clone(),
            expected: expected.clone(),
        };
        (*expected != gateway).then(mixed)
    }
}

/// An export that was read from the bucket.
struct ReadExport {
    headers: ObjectHeaders,
    /// The metadata in the file and the bytes of the file, or why it is damaged.
    contents: Result<(Metadata, u64), String>,
}

impl ReadExport {
    /// Returns the bytes of a valid file that fits its key, or why it is damaged.
    fn check(&self, key: &ExportKey) -> Result<u64, String> {
        let (_, bytes) = self.contents.as_ref().map_err(Clone::clone)?;
        self.find_mismatch(key).map_or(Ok(*bytes), Err)
    }

    /// Returns whether a valid object is a full export, by its metadata, that of its file, or its key.
    fn is_full(&self, key: &ExportKey) -> bool {
        let extended = self.contents.as_ref().ok().and_then(|(file, _)| file.extended.as_ref());
        let stated = self.headers.kind.as_deref().or(extended.map(|extended| &*extended.kind));
        stated.map_or(key.is_like_full, |kind| kind == ExportKind::Full.name())
    }

    /// Returns how a reading of the key differs from the object, if that is valid.
    fn find_mismatch(&self, key: &ExportKey) -> Option<String> {
        let Ok((file, _)) = &self.contents else { return None };
        let headers = &self.headers;
        let (sequence, kind) = (key.sequence.to_string(), key.kind.map(ExportKind::name));
        let extended = file.extended.as_ref();
        let stated_sequence = extended.map(|extended| extended.sequence.to_string());
        let date =
            if key.has_date(&file.export_date) { &file.export_date } else { &key.date_text() };
        let pairs = [
            (
                "the sequence of its key and that of its metadata",
                Some(sequence.as_str()),
                headers.sequence.as_deref(),
            ),
            (
                "the sequence of its key and `sequence`",
                Some(sequence.as_str()),
                stated_sequence.as_deref(),
            ),
            (
                "the name in its key and `object_type`",
                Some(key.name.as_str()),
                Some(file.object_type.as_str()),
            ),
            (
                "the date in its key and `export_date`",
                Some(date.as_str()),
                Some(file.export_date.as_str()),
            ),
            ("the kind in its key and that of its metadata", kind, headers.kind.as_deref()),
            (
                "the kind in its key and `kind`",
                kind,
                extended.map(|extended| extended.kind.as_str()),
            ),
            (
                "the gateway in its key and that of its metadata",
                key.gateway.as_deref(),
                headers.gateway.as_deref(),
            ),
        ];
        pairs.into_iter().find_map(|(what, one, other)| match (one, other) {
            (Some(one), Some(other)) if one != other => {
                Some(format!("{what} differ: {one}, {other}"))
            }
            _ => None,
        })
    }
}

/// Why an object could not be read, or is not valid.
enum ObjectError {
    /// The bucket cannot be read.
    Failed(GatewayError),
    /// The connection broke.
    Broken(io::Error),
    /// The object is damaged.
    Damaged(String),
}

impl From<GatewayError> for ObjectError {
    fn from(error: GatewayError) -> Self {
        Self::Failed(error)
    }
}

impl From<ParseError> for ObjectError {
    fn from(error: ParseError) -> Self {
        match error {
            // An error of the decoder is no connection error, so a retry would not help.
            ParseError::Unreadable(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
                ) =>
            {
                Self::Damaged(format!("it cannot be decoded as its Content-Encoding says: {error}"))
            }
            ParseError::Unreadable(error) => Self::Broken(error),
            error => Self::Damaged(verify::to_gateway_error(error).to_string()),
        }
    }
}

impl From<io::Error> for ObjectError {
    fn from(error: io::Error) -> Self {
        ParseError::from(error).into()
    }
}

/// Reads and checks one export. Retries if the connection breaks.
fn read_export(
    place: &BucketLocation,
    path: &str,
    role: ObjectRole,
) -> Result<ReadExport, GatewayError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let mut headers = ObjectHeaders::default();
        let contents = match read_contents(place, path, role, &mut headers) {
            Ok(contents) => Ok(contents),
            Err(ObjectError::Damaged(cause)) => Err(cause),
            Err(ObjectError::Failed(error)) => return Err(error),
            Err(ObjectError::Broken(error)) if attempts == MAX_ATTEMPTS => {
                let text = format!("{path} could not be read: {error}");
                return Err(GatewayError::new(ErrorClass::Internal, text));
            }
            Err(ObjectError::Broken(_)) => {
                pause_before_retry(attempts);
                continue;
            }
        };
        return Ok(ReadExport { headers, contents });
    }
}

/// Returns the metadata and the bytes of a valid file. `headers` are set even if the file is damaged.
fn read_contents(
    place: &BucketLocation,
    path: &str,
    role: ObjectRole,
    headers: &mut ObjectHeaders,
) -> Result<(Metadata, u64), ObjectError> {
    let open = |key: &str, missing: &str| {
        place.open_object(key)?.ok_or_else(|| ObjectError::Damaged(missing.to_owned()))
    };
    let object = open(path, "it was listed but no longer exists")?;
    *headers = object.headers.clone();
    let (file, bytes) = match key::metadata_key(path).filter(|_| role == ObjectRole::Lines) {
        None => read_object(object, |body| verify::read_file(body))?,
        Some(key) => {
            let metadata = open(&key, &format!("its metadata {key} does not exist"))?;
            let metadata = read_object(metadata, |body| verify::read_metadata_document(body));
            let (metadata, _) = metadata.map_err(|error| match error {
                ObjectError::Damaged(why) => {
                    ObjectError::Damaged(format!("its metadata {key}: {why}"))
                }
                error => error,
            })?;
            read_object(object, |body| verify::read_lines(metadata, body))?
        }
    };
    if headers.gateway.is_none() {
        headers.gateway = file.extended.as_ref().map(|extended| extended.gateway_id.clone());
    }
    Ok((file, bytes))
}

/// Reads an object, and checks its SHA-256. Returns what was read and the number of bytes.
fn read_object<T>(
    object: ObjectReader,
    read: impl FnOnce(&mut HashingReader) -> Result<T, ParseError>,
) -> Result<(T, u64), ObjectError> {
    let ObjectReader { body, headers } = object;
    let body: Box<dyn Read> = match headers.encoding.as_deref() {
        None | Some("" | "identity") => body,
        Some("gzip") => Box::new(flate2::read::MultiGzDecoder::new(body)),
        Some("zstd") => {
            let mut decoder = zstd::stream::read::Decoder::new(body)?;
            decoder.window_log_max(24)?;
            Box::new(decoder)
        }
        Some(other) => {
            let cause = format!("its Content-Encoding `{other}` is not supported");
            return Err(ObjectError::Damaged(cause));
        }
    };
    let mut hashed = HashingReader { body, hash: Sha256::new(), bytes: 0 };
    let value = read(&mut hashed)?;
    let found = encode_hex(&hashed.hash.finalize());
    match headers.sha256 {
        Some(said) if said != found => Err(ObjectError::Damaged(format!(
            "the SHA-256 of the file and `sha256` of its metadata differ: {found}, {said}"
        ))),
        _ => Ok((value, hashed.bytes)),
    }
}

/// A reader that hashes what it reads.
struct HashingReader {
    body: Box<dyn Read>,
    hash: Sha256,
    bytes: u64,
}

impl Read for HashingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.body.read(buffer)?;
        self.hash.update(buffer.get(..length).unwrap_or_default());
        self.bytes += length as u64;
        Ok(length)
    }
}
