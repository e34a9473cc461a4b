//! The memory of responses that are not sent yet.
use crate::problem::Problem;
use penstock_auth::{Caller, Credential};
use penstock_base::permits::Permits;

/// The bytes of responses that are not sent yet.
#[derive(Debug)]
pub struct UnsentResponses {
    /// Results of reads, which can be repeated.
    pub(super) reads: Permits<String>,
    /// Results of changes.
    pub(super) changes: Permits<String>,
}

impl UnsentResponses {
    /// Allows this many bytes for all callers together, separately for reads and changes. One caller may use half
    /// of them.
    pub(crate) fn new(total_bytes: u64) -> Self {
        Self {
            reads: Permits::new(total_bytes, total_bytes / 2),
            changes: Permits::new(total_bytes, total_bytes / 2),
        }
    }

    /// Returns 503 if there is no capacity for the result of another change, because the caller or all callers
    /// leave too many of them unread.
    pub fn check_capacity(&self, caller: &Caller) -> Result<(), Problem> {
        if self.changes.has_capacity(&share_owner(caller), 0) {
            Ok(())
        } else {
            Err(unread_problem())
        }
    }
}

/// Returns the id under which a response is counted. Each API key has a share of its own, apart from that of its
/// owner.
pub(super) fn share_owner(caller: &Caller) -> String {
    match &caller.credential {
        Credential::ApiKey { id, .. } => id.clone(),
        _ => caller.id().to_owned(),
    }
}

pub(super) fn unread_problem() -> Problem {
    Problem::unavailable(
        1,
        "unread responses to other requests use up service.limits.in-flight, or the half of it \
         that one account or key may use; read them and try again",
    )
}
