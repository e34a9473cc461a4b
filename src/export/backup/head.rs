//! The documents of a backup that are not encrypted: the head, which says what counts, and the record of an era.
use super::chain::Checksum;
use super::keys::{MAX_SEQUENCE, era_number};
use super::secrecy::{BackupKey, HeadSecret};
use jiff::Timestamp;
use penstock_base::clock::Stamp;
use penstock_base::time;
use penstock_resources::export::Doubt;
use penstock_store::Format;
use serde::{Deserialize, Serialize};

/// The maximum length of a head, in bytes.
pub(super) const MAX_HEAD_BYTES: usize = 4 << 10;
/// The version of both documents that this program writes.
const VERSION: u32 = 1;
const HEAD_KIND: &str = "backup-head";
const ERA_KIND: &str = "backup-era";

/// A time, and whether it may be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MarkedTime {
    /// RFC 3339.
    pub(super) at: String,
    /// Why it may be wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clock: Option<Doubt>,
}

impl MarkedTime {
    pub(super) fn of_stamp(stamp: Stamp) -> Self {
        Self { at: stamp.to_rfc3339(), clock: stamp.doubt }
    }

    pub(super) fn timestamp(&self) -> Option<Timestamp> {
        self.at.parse().ok()
    }
}

/// The last frame that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastFrame {
    pub(super) sequence: u64,
    /// The checksum over the frames of the era up to this one.
    pub(super) checksum: Checksum,
    /// When it was the newest.
    #[serde(flatten)]
    pub(super) time: MarkedTime,
}

/// A base in the bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BaseEntry {
    /// The sequence of its newest commit.
    pub(super) sequence: u64,
    /// The length of the object.
    pub(super) bytes: u64,
    /// The SHA-256 of the object, in hex.
    pub(super) sha256: String,
}

/// An era before the one that counts, which can be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PreviousEra {
    pub(super) era: String,
    pub(super) number: u64,
    /// The fingerprint of its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    pub(super) base: BaseEntry,
    pub(super) last: LastFrame,
}

/// `head.json`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    penstock: String,
    version: u32,
    pub(super) gateway: String,
    /// The era that counts.
    pub(super) era: String,
    pub(super) number: u64,
    /// The format of the store.
    pub(super) store_format: u32,
    /// The fingerprint of the key; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// The token of the process that wrote it.
    pub(super) writer: String,
    /// Counts the heads of that process.
    pub(super) write: u64,
    /// The newest base; `None` until the first one of the era is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<BaseEntry>,
    pub(super) last: LastFrame,
    /// The last era that can be restored, until this one can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<PreviousEra>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
}

/// Why a document of the bucket cannot be used. Messages begin with the key of the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DocumentError {
    /// Another program, or another version, wrote it.
    #[error("it cannot be read: {why}")]
    Malformed { why: String },
    /// A newer version wrote it.
    #[error(
        "it has version {found}, and this version of Penstock knows version {}; install the version that wrote it",
        VERSION
    )]
    Newer { found: u32 },
    /// The store has a newer format.
    #[error(
        "it names a store of format {found}, and this version of Penstock knows up to {}; install the version \
         that wrote it",
        Format::NEWEST
    )]
    NewerStore { found: u32 },
    /// The HMAC is wrong.
    #[error(
        "it does not have the HMAC of service.backup.key: somebody changed it, or it is of another backup"
    )]
    WrongMac,
    /// It is of another gateway.
    #[error("it is of the gateway {found:?}")]
    OtherGateway { found: String },
}

/// What a head says, for [`Head::new`].
#[derive(Debug, Clone)]
pub(super) struct HeadContent {
    pub(super) gateway: String,
    pub(super) era: String,
    pub(super) number: u64,
    pub(super) store_format: Format,
    pub(super) writer: String,
    pub(super) write: u64,
    pub(super) base: Option<BaseEntry>,
    pub(super) last: LastFrame,
    pub(super) previous: Option<PreviousEra>,
}

impl Head {
    /// Creates a head with its HMAC.
    pub(super) fn new(content: HeadContent, key: &BackupKey, secret: Option<&HeadSecret>) -> Self {
        let mut head = Self {
            penstock: HEAD_KIND.to_owned(),
            version: VERSION,
            gateway: content.gateway,
            era: content.era,
            number: content.number,
            store_format: content.store_format.number(),
            key: key.fingerprint(),
            writer: content.writer,
            write: content.write,
            base: content.base,
            last: content.last,
            previous: content.previous,
            mac: None,
        };
        head.mac = key.compute_mac(secret, head.to_text().as_bytes());
        head
    }

    /// Returns the document.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a head of this gateway. Its HMAC is not checked.
    pub(super) fn read(text: &str, gateway: &str) -> Result<Self, DocumentError> {
        let head: Self = read_document(text, HEAD_KIND)?;
        if head.gateway != gateway {
            return Err(DocumentError::OtherGateway { found: head.gateway });
        }
        if head.store_format > Format::NEWEST.number() {
            return Err(DocumentError::NewerStore { found: head.store_format });
        }
        if !head.has_valid_names() {
            let why = "it names an era or a sequence that cannot be".to_owned();
            return Err(DocumentError::Malformed { why });
        }
        Ok(head)
    }

    /// Returns whether its eras have the form of eras, so that they lead to no other folder, and its sequences are possible.
    fn has_valid_names(&self) -> bool {
        let previous = self.previous.as_ref();
        let eras = previous.map(|before| (before.era.as_str(), before.number));
        let ends = previous.map(|before| (Some(&before.base), &before.last));
        let mut eras = eras.into_iter().chain([(self.era.as_str(), self.number)]);
        let mut ends = ends.into_iter().chain([(self.base.as_ref(), &self.last)]);
        eras.all(|(era, number)| era_number(era) == Some(number))
            && ends.all(|(base, last)| {
                last.sequence <= MAX_SEQUENCE
                    && base.is_none_or(|base| base.sequence <= last.sequence)
            })
    }

    /// Checks the HMAC. `secret` is that of the base, if it has one.
    pub(super) fn check_mac(
        &self,
        key: &BackupKey,
        secret: Option<&HeadSecret>,
    ) -> Result<(), DocumentError> {
        let unsigned = Self { mac: None, ..self.clone() };
        let is_right = match (&self.mac, key.encrypts()) {
            (None, false) => true,
            (Some(mac), true) => key.is_mac_right(secret, unsigned.to_text().as_bytes(), mac),
            _ => false,
        };
        if is_right { Ok(()) } else { Err(DocumentError::WrongMac) }
    }

    /// Returns the format of the store.
    pub(super) fn format(&self) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.number() == self.store_format)
    }

    /// Returns this era as the last one that can be restored: itself, or that before it while it has no base.
    pub(super) fn restorable(&self) -> Option<PreviousEra> {
        match &self.base {
            Some(base) => Some(PreviousEra {
                era: self.era.clone(),
                number: self.number,
                key: self.key.clone(),
                base: base.clone(),
                last: self.last.clone(),
            }),
            None => self.previous.clone(),
        }
    }
}

/// `era.json`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EraRecord {
    penstock: String,
    version: u32,
    pub(super) gateway: String,
    pub(super) era: String,
    /// One above the highest that was listed.
    pub(super) number: u64,
    /// The frame after which the segments begin, and when.
    pub(super) begin: LastFrame,
    /// What it continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continues: Option<Continued>,
}

/// The era that another one continues. Its later frames do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Continued {
    pub(super) era: String,
    /// The last frame that counts.
    pub(super) sequence: u64,
}

impl EraRecord {
    pub(super) fn new(
        gateway: &str,
        (era, number): (&str, u64),
        begin: LastFrame,
        continues: Option<Continued>,
    ) -> Self {
        Self {
            penstock: ERA_KIND.to_owned(),
            version: VERSION,
            gateway: gateway.to_owned(),
            era: era.to_owned(),
            number,
            begin,
            continues,
        }
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn read(text: &str) -> Result<Self, DocumentError> {
        let record: Self = read_document(text, ERA_KIND)?;
        let continued = record.continues.as_ref();
        let is_valid = era_number(&record.era) == Some(record.number)
            && continued.is_none_or(|continued| {
                era_number(&continued.era).is_some() && continued.sequence <= MAX_SEQUENCE
            });
        if is_valid {
            return Ok(record);
        }
        let why = "it names an era or a sequence that cannot be".to_owned();
        Err(DocumentError::Malformed { why })
    }
}

/// What all documents have, whatever else is in them.
#[derive(Deserialize)]
struct Preamble {
    penstock: String,
    version: u32,
}

fn read_document<T: for<'a> Deserialize<'a>>(text: &str, kind: &str) -> Result<T, DocumentError> {
    let malformed = |why: String| DocumentError::Malformed { why };
    if text.len() > MAX_HEAD_BYTES {
        return Err(malformed(format!("it has more than {MAX_HEAD_BYTES} bytes")));
    }
    let preamble: Preamble =
        serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
    if preamble.penstock != kind {
        return Err(malformed(format!("it is a {:?}", preamble.penstock)));
    }
    if preamble.version > VERSION {
        return Err(DocumentError::Newer { found: preamble.version });
    }
    serde_json::from_str(text).map_err(|error| malformed(error.to_string()))
}

/// Returns the time of a document that a person made up: now, without doubt.
pub(super) fn time_of_system() -> MarkedTime {
    MarkedTime { at: time::now_rfc3339(), clock: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::secrecy::{generate_key, random_secret};

    fn content() -> HeadContent {
        HeadContent {
            gateway: "edge-1".to_owned(),
            era: "000003-0123456789abcdef".to_owned(),
            number: 3,
            store_format: Format::NEWEST,
            writer: "ab".repeat(16),
            write: 17,
            base: Some(BaseEntry { sequence: 7, bytes: 8, sha256: "0".repeat(64) }),
            last: LastFrame {
                sequence: 9,
                checksum: Checksum::of_era("e"),
                time: MarkedTime { at: time::now_rfc3339(), clock: Some(Doubt::Behind) },
            },
            previous: None,
        }
    }

    #[test]
    fn a_head_comes_back_and_a_changed_one_is_refused() {
        let generated = generate_key();
        let identity = BackupKey::parse(Some(&generated.identity)).unwrap();
        let recipient = BackupKey::parse(Some(&generated.recipient)).unwrap();
        let secret = random_secret();
        for (key, secret) in
            [(&identity, None), (&recipient, Some(&secret)), (&BackupKey::None, None)]
        {
            let head = Head::new(content(), key, secret);
            let text = head.to_text();
            assert!(text.len() < MAX_HEAD_BYTES);
            let read = Head::read(&text, "edge-1").unwrap();
            assert_eq!(read, head);
            read.check_mac(key, secret).unwrap();
            let changed = text.replace("\"sequence\":9", "\"sequence\":8");
            let changed = Head::read(&changed, "edge-1").unwrap();
            assert_eq!(changed.check_mac(key, secret).is_err(), key.encrypts());
        }
        let unsigned = Head::new(content(), &BackupKey::None, None);
        assert_eq!(unsigned.check_mac(&identity, None), Err(DocumentError::WrongMac));
    }

    #[test]
    fn a_newer_or_other_document_is_refused_by_name() {
        let text = Head::new(content(), &BackupKey::None, None).to_text();
        let refused = |text: &str| Head::read(text, "edge-1").unwrap_err().to_string();
        assert!(refused(&text.replace("\"version\":1", "\"version\":2")).contains("version 2"));
        let format = format!("\"storeFormat\":{}", Format::NEWEST);
        assert!(refused(&text.replace(&format, "\"storeFormat\":99")).contains("format 99"));
        assert!(refused(&text.replace("edge-1", "edge-2")).contains("edge-2"));
        assert!(refused(&text.replace("backup-head", "backup-era")).contains("backup-era"));
        assert!(refused("{").contains("cannot be read"));
        assert!(refused(&text.replace("000003-", "../../")).contains("cannot be"));
        assert!(refused(&text.replace("\"number\":3", "\"number\":4")).contains("cannot be"));
        assert!(refused(&text.replace("\"sequence\":9", "\"sequence\":6")).contains("cannot be"));
        assert!(refused(&" ".repeat(5_000)).contains("4096"));
    }
}
