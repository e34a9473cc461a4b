//! Why a sign-in at a provider failed.

use std::time::Duration;

/// The error of a sign-in. Its text is for the log and the audit trail, and contains no part of a code or token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// The provider is unreachable. The person can retry later.
    #[error("the provider is unreachable: {0}")]
    Unreachable(String),
    /// Other sign-ins took all permits of the gateway. The person can retry soon.
    #[error(
        "the gateway is busy: other code exchanges took all permits for {} s; the person can try again. If this repeats, check \
         that the provider responds quickly, and that no client sends invalid codes",
        waited.as_secs_f32()
    )]
    Busy {
        /// How long this one waited.
        waited: Duration,
    },
    /// The answer belongs to no recent sign-in of this browser.
    #[error("the answer belongs to no sign-in in progress: {0}")]
    Stale(&'static str),
    /// The person or the provider denied the sign-in.
    #[error("the provider denied the sign-in: {0}")]
    Denied(String),
    /// The provider's answer is not valid, or the provider does not know this gateway.
    #[error("the provider's answer is not valid: {0}")]
    Untrusted(String),
    /// Neither the ID token nor the userinfo endpoint has the claim that identifies accounts.
    #[error(
        "neither the ID token nor the userinfo endpoint has the claim {claim}, which user-name-attribute names; release \
         it to this gateway at the provider, or name another one"
    )]
    MissingClaim {
        /// The name of the claim.
        claim: String,
    },
    /// The person authenticated at the provider, but has no mapped role.
    #[error("{name} has no role here: {}", no_role_reason(missing.as_deref()))]
    NoRole {
        /// The value of `user-name-attribute`.
        name: String,
        /// The configured role claims, if the provider sent none of them.
        missing: Option<String>,
    },
}

fn no_role_reason(missing: Option<&str>) -> String {
    match missing {
        None => "none of the values of the roles claim is mapped".to_owned(),
        Some(claims) => format!(
            "neither the ID token nor the userinfo endpoint has the claim {claims}, which service.security.claims.roles \
             names"
        ),
    }
}
