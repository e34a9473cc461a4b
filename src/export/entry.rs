//! An export in the queue.
use penstock_base::clock::Doubt;

/// An export: one file for one Business Object and one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportEntry {
    /// The identifier (a UUID).
    pub id: String,
    /// The Business Object's id.
    pub business_object: String,
    /// The Business Object's name, as in the key.
    pub business_object_name: String,
    /// The bucketName.
    pub target: String,
    /// From 1 without gaps, for each target and Business Object name. 0 if not assigned yet.
    pub sequence: u64,
    /// What the export contains.
    pub kind: Kind,
    /// The state of the export.
    pub status: Status,
    /// The number of objects.
    pub object_count: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// `metadata.data_checksum` of the file.
    pub data_checksum: String,
    /// SHA-256 of the whole file, lowercase hex.
    pub sha256: String,
    /// The key in the bucket, prefix included.
    pub key: String,
    /// When it was created (RFC 3339, UTC). Never before the previous sequence.
    pub created_at: String,
    /// Why the clock, and so this time and the date in the key, may be wrong.
    pub clock: Option<Doubt>,
    /// The journal sequence of the commit whose state a full export shows. Absent for other kinds, and if the store could
    /// not keep that state while the export was rendered.
    pub commit: Option<u64>,
    /// When the target confirmed the delivery.
    pub delivered_at: Option<String>,
    /// The number of delivery attempts so far.
    pub attempts: u64,
    /// The cause of the last failure, as text.
    pub last_error: Option<String>,
    /// The account that pushed it. Absent for an automatic export.
    pub pushed_by: Option<String>,
    /// The trace that the push was part of (W3C Trace Context).
    pub traceparent: Option<String>,
    /// Warnings while rendering, limited in number. The first one says so if the export mixes several commits.
    pub warnings: Vec<String>,
}

/// The content of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All objects of the Business Object.
    Full,
    /// The objects changed since the last export.
    Incremental,
    /// The URIs of objects that were removed.
    Deleted,
}

impl Kind {
    /// Returns the name in the metadata of an object, in events and in GraphQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Incremental => "incremental",
            Self::Deleted => "deleted",
        }
    }
}

/// The state of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It waits for spool capacity. Its content and sequence are not decided yet. Its id is temporary, because
    /// it is not in the queue yet.
    Waiting,
    /// It is in the queue.
    Queued,
    /// It is being delivered.
    Delivering,
    /// The target confirmed it.
    Delivered,
    /// It is at the head of the queue and its last attempt failed. The gateway retries.
    Blocked,
    /// An operator removed it from the queue.
    Parked,
}

impl Status {
    /// Returns the name in events and in GraphQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Queued => "queued",
            Self::Delivering => "delivering",
            Self::Delivered => "delivered",
            Self::Blocked => "blocked",
            Self::Parked => "parked",
        }
    }
}
