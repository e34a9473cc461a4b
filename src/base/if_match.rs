//! `If-Match` (RFC 9110, section 13.1.1): the version that a change expects.

/// The version of a resource that a change expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfMatch {
    /// Nothing.
    #[default]
    Any,
    /// That there is one (`If-Match: *`).
    Exists,
    /// That it has this version.
    Version(u64),
}
