//! A bucket checked as its consumer would: every sequence there once, every file whole, nothing foreign.
//!
//! Objects are read as streams, one after the other, and of each export one bit is kept, so that a bucket
//! of any size takes the same memory.

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

/// What is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "lowercase")]
pub enum Finding {
    /// Sequences that are not there: never delivered, parked at the gateway, or removed.
    Gap {
        /// What the keys begin with: the prefix and the name of the Business Object.
        folder: String,
        /// The first that is missing.
        from: u64,
        /// The last that is missing.
        to: u64,
    },
    /// A sequence that is there under another key already.
    Double {
        /// The key that came later in the bucket's order.
        key: String,
        /// The sequence.
        sequence: u64,
    },
    /// An object that is not what it says of itself.
    Damaged {
        /// Its key.
        key: String,
        /// What does not fit.
        cause: String,
    },
    /// An object that is no export.
    Foreign {
        /// Its key.
        key: String,
    },
    /// An export of another gateway than the others beside it.
    Mixed {
        /// Its key.
        key: String,
        /// Its gateway.
        gateway: String,
        /// That of the first one.
        expected: String,
    },
}

/// The exports of one Business Object in one bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Folder {
    /// What the keys begin with: the prefix and the name of the Business Object.
    pub folder: String,
    /// Exports.
    pub exports: u64,
    /// The highest sequence. What is missing behind it cannot be told from the bucket.
    pub last: u64,
    /// The gateway they come from, where the objects say so.
    pub gateway: Option<String>,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Walked {
    /// Objects.
    pub objects: u64,
    /// Bytes of export files.
    pub bytes: u64,
    /// By Business Object.
    pub folders: Vec<Folder>,
    /// How much was found.
    pub findings: u64,
}

/// Tells of each object that was read, how many and how many bytes there were so far.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Checks every object of a bucket, and hands over what is found as it is found; gaps come last. With
/// `keys_only` no object is read.
///
/// # Errors
/// Why the bucket cannot be read.
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

/// What is kept of the exports of one Business Object.
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
    /// Its bytes, or why it is damaged.
    contents: Result<u64, String>,
}

/// How often a broken connection is made anew for one object.
const TRIES: u32 = 4;

/// Reads one object, again where the connection broke.
fn check(place: &Place, path: &str, key: &Key<'_>) -> Result<Checked, Fault> {
    let mut tries = 0;
    loop {
        tries += 1;
        let Some(mut object) = place.object(path)? else {
            let contents = Err("it was listed, and is gone".to_owned());
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
        // What a decoder says of bytes that it cannot read is no matter of the connection.
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

/// The bytes of an object that is what it says, or why it is not.
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
        Some(other) => return Ok(Err(format!("its Content-Encoding `{other}` is not known"))),
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
