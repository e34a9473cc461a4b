//! How a request takes part in the review of a change.
use super::identifiers::MintedIdentifier;
use crate::changes::Change;
use penstock_base::error::GatewayError;
use penstock_base::principal::Principal;
use penstock_store::Transaction;
use std::fmt;

/// How a request takes part in the review of a change.
#[derive(Debug, Clone, Copy, Default)]
pub enum ReviewStep<'a> {
    /// It asks for no review. The Business Object can require one nevertheless.
    #[default]
    None,
    /// It asks for a review.
    Submit(Submission<'a>),
    /// It computes a stored change again.
    Replay(Replay<'a>),
}

/// What a client says about a change that it sends.
#[derive(Debug, Clone, Copy, Default)]
pub struct Submission<'a> {
    /// The users and groups that see it too.
    pub owners: &'a [Principal],
    /// Whether it is a draft.
    pub is_draft: bool,
}

/// The earlier runs of a stored change.
#[derive(Debug, Clone, Copy)]
pub struct Replay<'a> {
    /// The journal's sequence of the commit that stored the request.
    pub(crate) sequence: u64,
    /// The journal's sequence of the commit whose state the last run was computed from.
    pub(crate) base: u64,
    /// The identifiers of the last run.
    pub(crate) minted: &'a [MintedIdentifier],
}

/// What a commit of an ingestion does that the audit trail records.
#[derive(Debug, Clone, Copy)]
pub enum AuditedStep<'a> {
    /// It changes objects of these Business Objects, which require a review or could not be validated.
    Bypassed(&'a [String]),
    /// It stores this change.
    Submitted(&'a Change),
}

/// Adds an audit event to the commit.
#[derive(Clone, Copy)]
pub struct AuditHook<'a>(
    /// The function that adds it.
    pub &'a (dyn Fn(&mut Transaction<'_>, AuditedStep<'_>) -> Result<(), GatewayError> + 'a),
);

impl fmt::Debug for AuditHook<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditHook(..)")
    }
}

impl AuditHook<'_> {
    /// Adds the event of a step, if there is a hook.
    pub(crate) fn record(
        hook: Option<Self>,
        transaction: &mut Transaction<'_>,
        step: AuditedStep<'_>,
    ) -> Result<(), GatewayError> {
        hook.map_or(Ok(()), |hook| (hook.0)(transaction, step))
    }
}
