//! What a run of files writes with in its transaction.
use crate::gateway::Gateway;
use penstock_auth::Authorized;
use penstock_auth::groups::GroupsBatch;
use penstock_model::catalogue::{Batch, Requester, ShapesHook};

/// The definitions as a run has left them so far. Others see them once the run has committed and published them.
pub(crate) struct DefinitionBatch<'r> {
    pub(crate) gateway: &'r Gateway,
    pub(crate) by: &'r Authorized,
    pub(crate) requester: Requester<'r>,
    pub(crate) on_graph: ShapesHook<'r>,
    pub(crate) catalogue: Batch<'r>,
    pub(crate) groups: GroupsBatch<'r>,
}

impl DefinitionBatch<'_> {
    /// Makes the committed definitions those of the gateway.
    pub(super) fn publish(self) {
        self.groups.publish();
        self.catalogue.publish(self.requester);
    }
}
