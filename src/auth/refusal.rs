//! Why somebody may not come in.
use penstock_base::fault::{Fault, Kind};
use std::time::Duration;

/// Why a credential is refused. The words go to the caller and into the audit trail: they hold no
/// part of the credential, and nothing that a stranger should not learn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// 401, `invalid_token` (RFC 6750, 3.1): the credential is malformed, unknown, expired or revoked.
    #[error("{0}")]
    Invalid(String),
    /// 400, `invalid_request` (RFC 6750, 3.1): for instance two credentials in one request.
    #[error("{0}")]
    Malformed(String),
    /// 403: the credential is good, and its owner is disabled or has no role.
    #[error("{0}")]
    Forbidden(String),
    /// 429: too many failures; try again after this time.
    #[error("too many failed attempts; try again in {} s", .0.as_secs())]
    TooMany(Duration),
    /// 503: it cannot be checked now, since the provider's keys are out of reach.
    #[error("{0}")]
    Unavailable(String),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let kind = match &refusal {
            Refusal::Invalid(_) => Kind::Unauthorized,
            Refusal::Malformed(_) => Kind::Malformed,
            Refusal::Forbidden(_) => Kind::Forbidden,
            Refusal::TooMany(after) => Kind::TooMany(*after),
            Refusal::Unavailable(_) => Kind::Unavailable(Duration::from_secs(10)),
        };
        Self::new(kind, refusal.to_string())
    }
}
