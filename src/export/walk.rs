//! Checks a bucket as its consumer would: every sequence exists once, every file is valid, no object is
//! foreign.
//!
//! Objects are read as streams, one after the other. Each export needs only one bit of memory, so the memory use
//! hardly depends on the size of the bucket.

mod place;
mod sequences;

pub use place::{BucketLocation, ReadCredentials};

use super::file::to_hex;
use super::key::ExportKey;
use super::verify::{self, ParseError};
use penstock_base::error::{ErrorClass, GatewayError};
use place::ObjectReader;
use sequences::Sequences;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// A problem in a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketFinding {
    /// Missing sequences: never delivered, parked at the gateway, or removed.
    Gap {
        /// The prefix of the keys and the name of the Business Object.
        folder: String,
        /// The first missing sequence.
        from: u64,
        /// The last missing sequence.
        to: u64,
    },
    /// A sequence that already exists under another key.
    Double {
        /// The key that comes later in the bucket's order.
        key: String,
        /// The sequence.
        sequence: u64,
    },
    /// An object that does not match its metadata.
    Damaged {
        /// Its key.
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
    /// The prefix of the keys and the name of the Business Object.
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
    /// The number of findings.
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
    let mut folders: BTreeMap<String, FolderState> = BTreeMap::new();
    let mut summary = WalkSummary::default();
    let mut findings = 0;
    let mut report = |finding: &BucketFinding| {
        findings += 1;
        found(finding);
    };
    place.for_each_key(&mut |path| {
        summary.objects += 1;
        let Some(key) = ExportKey::parse(path) else {
            report(&BucketFinding::Foreign { key: path.to_owned() });
            return Ok(());
        };
        let state = folders.entry(key.folder.to_owned()).or_default();
        if !state.sequences.insert(key.sequence) {
            report(&BucketFinding::Double { key: path.to_owned(), sequence: key.sequence });
        }
        if !keys_only {
            let CheckedObject { gateway, contents } = check_object(place, path, &key)?;
            match contents {
                Ok(bytes) => summary.bytes += bytes,
                Err(cause) => report(&BucketFinding::Damaged { key: path.to_owned(), cause }),
            }
            if let Some(finding) = state.check_gateway(path, gateway) {
                report(&finding);
            }
        }
        progress(summary.objects, summary.bytes);
        Ok(())
    })?;
    for (folder, state) in folders {
        for (from, to) in state.sequences.missing_ranges() {
            report(&BucketFinding::Gap { folder: folder.clone(), from, to });
        }
        let (exports, last) = (state.sequences.len(), state.sequences.last());
        summary.folders.push(FolderSummary { folder, exports, last, gateway: state.gateway });
    }
    summary.findings = findings;
    Ok(summary)
}

/// The state for the exports of one Business Object.
#[derive(Default)]
struct FolderState {
    sequences: Sequences,
    gateway: Option<String>,
}

impl FolderState {
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

struct CheckedObject {
    gateway: Option<String>,
    /// The bytes of the file, or why it is damaged.
    contents: Result<u64, String>,
}

/// The maximum number of attempts to read one object when the connection breaks.
const MAX_ATTEMPTS: u32 = 4;

/// Reads and checks one object. Retries if the connection breaks.
fn check_object(
    place: &BucketLocation,
    path: &str,
    key: &ExportKey<'_>,
) -> Result<CheckedObject, GatewayError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let Some(mut object) = place.open_object(path)? else {
            let contents = Err("it was listed but no longer exists".to_owned());
            return Ok(CheckedObject { gateway: None, contents });
        };
        let gateway = object.gateway.take();
        let read_error = match check_contents(object, key) {
            Ok(contents) => return Ok(CheckedObject { gateway, contents }),
            Err(ParseError::Unreadable(error)) => error,
            Err(error) => {
                let contents = Err(verify::to_gateway_error(error).to_string());
                return Ok(CheckedObject { gateway, contents });
            }
        };
        // An error of the decoder is no connection error, so a retry would not help.
        if matches!(read_error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) {
            let contents =
                Err(format!("it cannot be decoded as its Content-Encoding says: {read_error}"));
            return Ok(CheckedObject { gateway, contents });
        }
        if attempts == MAX_ATTEMPTS {
            let text = format!("{path} could not be read: {read_error}");
            return Err(GatewayError::new(ErrorClass::Internal, text));
        }
        std::thread::sleep(std::time::Duration::from_secs(1 << attempts));
    }
}

/// Returns the bytes of a valid object, or why it is damaged.
fn check_contents(
    object: ObjectReader,
    key: &ExportKey<'_>,
) -> Result<Result<u64, String>, ParseError> {
    let ObjectReader { body, encoding, sha256, sequence, .. } = object;
    let body: Box<dyn Read> = match encoding.as_deref() {
        None | Some("" | "identity") => body,
        Some("gzip") => Box::new(flate2::read::MultiGzDecoder::new(body)),
        Some("zstd") => {
            let mut decoder = zstd::stream::read::Decoder::new(body)?;
            decoder.window_log_max(24)?;
            Box::new(decoder)
        }
        Some(other) => return Ok(Err(format!("its Content-Encoding `{other}` is not supported"))),
    };
    let mut hashed = HashingReader { body, hash: Sha256::new(), bytes: 0 };
    let verified = verify::read_file(&mut hashed)?;
    let found = to_hex(&hashed.hash.finalize());
    let pairs = [
        ("the SHA-256 of the file and `sha256` of its metadata", Some(found), sha256),
        (
            "the sequence of its key and that of its metadata",
            Some(key.sequence.to_string()),
            sequence,
        ),
        (
            "the name in its key and `object_type`",
            Some(key.name.clone()),
            Some(verified.object_type),
        ),
        (
            "the date in its key and `export_date`",
            Some(key.date.to_owned()),
            Some(verified.export_date),
        ),
    ];
    for (what, one, other) in pairs {
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            return Ok(Err(format!("{what} differ: {one}, {other}")));
        }
    }
    Ok(Ok(hashed.bytes))
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
