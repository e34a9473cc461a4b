//! Checks a bucket as its consumer would: every sequence exists once, every file is valid, no object is
//! foreign.
//!
//! Objects are read as streams, one after the other, with one bit of memory for each export. So the memory use
//! hardly depends on the size of the bucket.

mod key;
mod place;
mod sequences;

pub use place::{Place, Reader};

use super::file::hex;
use super::verify::{self, Broken};
use key::Key;
use penstock_base::fault::{Fault, Kind};
use place::Object;
use sequences::Sequences;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// A problem in a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "lowercase")]
pub enum Finding {
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
    /// An export of another gateway than the other exports of the folder.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Folder {
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Walked {
    /// The number of objects.
    pub objects: u64,
    /// The bytes of the export files.
    pub bytes: u64,
    /// The exports by Business Object.
    pub folders: Vec<Folder>,
    /// The number of findings.
    pub findings: u64,
}

/// Receives the number of objects and bytes read so far, after each object.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Checks every object of a bucket and passes each finding to `found` immediately; gaps come last. With
/// `keys_only` no object is read.
///
/// # Errors
/// If the bucket cannot be read.
pub fn walk(
    place: &Place,
    keys_only: bool,
    progress: Progress<'_>,
    found: &mut dyn FnMut(&Finding),
) -> Result<Walked, Fault> {
    let mut folders: BTreeMap<String, Known> = BTreeMap::new();
    let mut walked = Walked::default();
    let mut findings = 0;
    let mut tell = |finding: &Finding| {
        findings += 1;
        found(finding);
    };
    place.keys(&mut |path| {
        walked.objects += 1;
        let Some(key) = Key::parse(path) else {
            tell(&Finding::Foreign { key: path.to_owned() });
            return Ok(());
        };
        let known = folders.entry(key.folder.to_owned()).or_default();
        if !known.sequences.insert(key.sequence) {
            tell(&Finding::Double { key: path.to_owned(), sequence: key.sequence });
        }
        if !keys_only {
            let Checked { gateway, contents } = check(place, path, &key)?;
            match contents {
                Ok(bytes) => walked.bytes += bytes,
                Err(cause) => tell(&Finding::Damaged { key: path.to_owned(), cause }),
            }
            if let Some(finding) = known.mixed(path, gateway) {
                tell(&finding);
            }
        }
        progress(walked.objects, walked.bytes);
        Ok(())
    })?;
    for (folder, known) in folders {
        for (from, to) in known.sequences.gaps() {
            tell(&Finding::Gap { folder: folder.clone(), from, to });
        }
        let (exports, last) = (known.sequences.len(), known.sequences.last());
        walked.folders.push(Folder { folder, exports, last, gateway: known.gateway });
    }
    walked.findings = findings;
    Ok(walked)
}

/// The state for the exports of one Business Object.
#[derive(Default)]
struct Known {
    sequences: Sequences,
    gateway: Option<String>,
}

impl Known {
    fn mixed(&mut self, path: &str, gateway: Option<String>) -> Option<Finding> {
        let gateway = gateway?;
        let expected = self.gateway.get_or_insert_with(|| gateway.clone());
        let mixed = || Finding::Mixed {
            key: path.to_owned(),
            gateway: gateway.clone(),
            expected: expected.clone(),
        };
        (*expected != gateway).then(mixed)
    }
}

struct Checked {
    gateway: Option<String>,
    /// The bytes of the file, or why it is damaged.
    contents: Result<u64, String>,
}

/// The maximum number of attempts to read one object when the connection breaks.
const TRIES: u32 = 4;

/// Reads and checks one object. Retries if the connection breaks.
fn check(place: &Place, path: &str, key: &Key<'_>) -> Result<Checked, Fault> {
    let mut tries = 0;
    loop {
        tries += 1;
        let Some(mut object) = place.object(path)? else {
            let contents = Err("it was listed but no longer exists".to_owned());
            return Ok(Checked { gateway: None, contents });
        };
        let gateway = object.gateway.take();
        let broken = match contents(object, key) {
            Ok(contents) => return Ok(Checked { gateway, contents }),
            Err(Broken::Unreadable(error)) => error,
            Err(broken) => {
                let contents = Err(verify::fault(broken).to_string());
                return Ok(Checked { gateway, contents });
            }
        };
        // An error of the decoder is not a connection error.
        if matches!(broken.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) {
            let contents = Err(format!("its Content-Encoding does not fit: {broken}"));
            return Ok(Checked { gateway, contents });
        }
        if tries == TRIES {
            let text = format!("{path} could not be read: {broken}");
            return Err(Fault::new(Kind::Internal, text));
        }
        std::thread::sleep(std::time::Duration::from_secs(1 << tries));
    }
}

/// Returns the bytes of a valid object, or why it is damaged.
fn contents(object: Object, key: &Key<'_>) -> Result<Result<u64, String>, Broken> {
    let Object { body, encoding, sha256, sequence, .. } = object;
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
    let mut hashed = Hashed { body, hash: Sha256::new(), bytes: 0 };
    let said = verify::read(&mut hashed)?;
    let found = hex(&hashed.hash.finalize());
    let pairs = [
        ("the SHA-256 of the file and `sha256` of its metadata", Some(found), sha256),
        (
            "the sequence of its key and that of its metadata",
            Some(key.sequence.to_string()),
            sequence,
        ),
        ("the name in its key and `object_type`", Some(key.name.clone()), Some(said.object_type)),
        (
            "the date in its key and `export_date`",
            Some(key.date.to_owned()),
            Some(said.export_date),
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
struct Hashed {
    body: Box<dyn Read>,
    hash: Sha256,
    bytes: u64,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.body.read(buffer)?;
        self.hash.update(buffer.get(..length).unwrap_or_default());
        self.bytes += length as u64;
        Ok(length)
    }
}
