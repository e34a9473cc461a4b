//! One export in the queue.
use penstock_base::clock::Doubt;
use serde::{Deserialize, Serialize};

/// One file for one Business Object and one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its identifier (a UUID).
    pub id: String,
    /// The Business Object's id.
    pub business_object: String,
    /// The Business Object's name, as in the key.
    pub business_object_name: String,
    /// The bucketName.
    pub target: String,
    /// From 1, without a gap, per target and Business Object name; 0 while it has none yet.
    pub sequence: u64,
    /// What it holds.
    pub kind: Kind,
    /// How far it has come.
    pub status: Status,
    /// Objects in it.
    pub object_count: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// `metadata.data_checksum` of the file.
    pub data_checksum: String,
    /// SHA-256 of the whole file, lowercase hex.
    pub sha256: String,
    /// The key in the bucket, prefix included.
    pub key: String,
    /// When it was made (RFC 3339, UTC); never before one of an earlier sequence.
    pub created_at: String,
    /// Why that time, and the date in the key, may be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Doubt>,
    /// When the target had taken it.
    #[serde(default)]
    pub delivered_at: Option<String>,
    /// Attempts so far.
    #[serde(default)]
    pub attempts: u64,
    /// Why the last attempt failed, in words.
    #[serde(default)]
    pub last_error: Option<String>,
    /// The account that pushed it; absent for one that was made by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed_by: Option<String>,
    /// The trace that the push was part of (W3C Trace Context).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What the view warned of while rendering, bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What an export holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Every object of the Business Object.
    Full,
    /// The objects changed since the last one.
    Incremental,
    /// The URIs of objects that are gone.
    Deleted,
}

impl Kind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Incremental => "incremental",
            Self::Deleted => "deleted",
        }
    }
}

/// How far an export has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// There is no room in the spool: what it will hold, and its sequence, are settled once there is. It
    /// has no id that lasts, since it is no entry yet.
    Waiting,
    /// It waits its turn.
    Queued,
    /// It is under way.
    Delivering,
    /// The target has it.
    Delivered,
    /// It is at the head and does not get through; it is tried again.
    Blocked,
    /// An operator took it out of the way.
    Parked,
}
