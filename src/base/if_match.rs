//! `If-Match` and `If-None-Match` (RFC 9110, section 13.1): the version that a change expects.
use crate::error::{ErrorClass, GatewayError};

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

/// The preconditions of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Preconditions {
    /// The version that is changed.
    pub if_match: IfMatch,
    /// No version may exist (`If-None-Match: *`).
    pub only_if_new: bool,
}

impl Preconditions {
    /// Checks a resource that has no versions, in the commit that changes it. `what` names it.
    ///
    /// # Errors
    /// `ErrorClass::PreconditionFailed`.
    pub fn check_existence(self, exists: bool, what: &str) -> Result<(), GatewayError> {
        let why = match self.if_match {
            _ if exists && self.only_if_new => "If-None-Match: * requires that it does not exist",
            IfMatch::Exists if !exists => "If-Match: * requires that it exists",
            IfMatch::Version(_) => "If-Match names a version, and it has none",
            IfMatch::Any | IfMatch::Exists => return Ok(()),
        };
        let state = if exists { "exists" } else { "does not exist" };
        let detail = format!("{what} {state}, and {why}; nothing was changed");
        Err(GatewayError::new(ErrorClass::PreconditionFailed, detail))
    }
}
