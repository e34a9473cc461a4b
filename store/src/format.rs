//! The format of a store: which records it may have.
use std::fmt;

/// The format of a store. It says which records the store may have, so that an older program refuses a store
/// that it would misread. FORMAT.md lists the formats, and the version in a header that tells each.
///
/// A store begins with the oldest format. [`Transaction::require_format`](crate::Transaction::require_format)
/// raises it, and nothing lowers it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Format {
    /// The records of version 0.1.0.
    #[default]
    V2 = 2,
    /// The first format with records that a program for [`Self::V2`] misreads.
    V3 = 3,
    /// The first format with mappings whose keys or types a program for [`Self::V3`] refuses, and with saved views.
    V4 = 4,
}

impl Format {
    /// All formats that this program reads and writes, the oldest first.
    pub const ALL: [Self; 3] = [Self::V2, Self::V3, Self::V4];
    /// The newest format that this program knows.
    pub const NEWEST: Self = Self::V4;

    /// Returns the number of the format.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}
