//! The parts of the gateway that GraphQL reads.
use penstock_base::memory::Memory;
use penstock_export::Exporter;
use penstock_model::catalogue::Catalogue;
use penstock_service::gateway::Gateway;
use penstock_store::ReadStore;

/// The parts of the gateway that GraphQL reads.
#[derive(Debug)]
pub(super) struct GraphqlSources {
    /// The store.
    pub(super) store: ReadStore,
    /// The Business Objects.
    pub(super) catalogue: Catalogue,
    /// The exporter.
    pub(super) exporter: Exporter,
    /// The memory of the process.
    pub(super) memory: Memory,
    /// The gateway, for the changes that the caller may see.
    pub(super) gateway: Gateway,
}

impl GraphqlSources {
    pub(super) fn new(gateway: &Gateway) -> Self {
        Self {
            store: ReadStore::clone(&gateway.store),
            catalogue: gateway.catalogue.clone(),
            exporter: gateway.exporter.clone(),
            memory: gateway.memory.clone(),
            gateway: gateway.clone(),
        }
    }
}
