//! `If-Match` (RFC 9110, section 13.1.1): the version that a change expects.

/// The condition of a change on the stored version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfMatch {
    /// No condition.
    #[default]
    Any,
    /// A version must exist (`If-Match: *`).
    Exists,
    /// The stored version must be this one.
    Version(u64),
}
