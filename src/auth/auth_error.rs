//! The error of authentication and authorization.
use penstock_base::error::{ErrorClass, GatewayError};
use std::time::Duration;

/// The reason why a credential is refused. Its text goes to the client and into the audit trail. It contains no part
/// of the credential, and nothing that an unauthenticated client must not learn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// 401, `invalid_token` (RFC 6750, 3.1): the credential is malformed, unknown, expired or revoked.
    #[error("{0}")]
    Invalid(String),
    /// 400, `invalid_request` (RFC 6750, 3.1): for instance two credentials in one request.
    #[error("{0}")]
    Malformed(String),
    /// 403: the credential is valid, but its owner is disabled or has no role.
    #[error("{0}")]
    Forbidden(String),
    /// 429: too many failures. The client can retry after this time.
    #[error("too many failed attempts; try again in {} s", .0.as_millis().div_ceil(1000))]
    TooMany(Duration),
    /// 503: the credential cannot be checked now, for instance because the provider's keys are unavailable.
    #[error("{0}")]
    Unavailable(String),
}

impl From<AuthError> for GatewayError {
    fn from(error: AuthError) -> Self {
        let kind = match &error {
            AuthError::Invalid(_) => ErrorClass::Unauthorized,
            AuthError::Malformed(_) => ErrorClass::Malformed,
            AuthError::Forbidden(_) => ErrorClass::Forbidden,
            AuthError::TooMany(after) => ErrorClass::TooManyRequests(*after),
            AuthError::Unavailable(_) => ErrorClass::Unavailable(Duration::from_secs(10)),
        };
        Self::new(kind, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_to_seconds() {
        let seconds = |millis| AuthError::TooMany(Duration::from_millis(millis)).to_string();
        assert!(seconds(999).ends_with("in 1 s") && seconds(1001).ends_with("in 2 s"));
    }
}
