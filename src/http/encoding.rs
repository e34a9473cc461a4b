//! Content codings (RFC 9110, 8.4.1): `decode` reads request bodies in them, `encode` writes responses in them.

pub(super) mod decode;
pub(super) mod encode;

/// A content coding that requests may have, and responses get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// RFC 1952.
    Gzip,
    /// RFC 8878. Windows are at most 8 MiB (RFC 9659).
    Zstd,
}

impl Encoding {
    /// The codings, the preferred one first: zstd takes less time and fewer bytes.
    pub(super) const ALL: [Self; 2] = [Self::Zstd, Self::Gzip];
    /// Their names, as `Accept-Encoding` lists them.
    pub(super) const NAMES: &str = "gzip, zstd";

    /// Returns the coding of this name, in any case.
    pub(super) fn find(name: &str) -> Option<Self> {
        // `x-gzip` is an older name (RFC 9110, 8.4.1.3).
        let name = if name.eq_ignore_ascii_case("x-gzip") { "gzip" } else { name };
        Self::ALL.into_iter().find(|encoding| encoding.name().eq_ignore_ascii_case(name))
    }

    /// Returns the name in headers.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}
