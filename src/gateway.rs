//! The opened parts of the gateway, which the layers above share.
use crate::business_object::catalogue::Catalogue;
use crate::config::Settings;
use crate::export::Exporter;
use crate::fault::Fault;
use penstock_store::Store;
use std::sync::Arc;

/// The opened parts.
#[derive(Debug, Clone)]
pub struct Gateway {
    /// The configuration.
    pub settings: Arc<Settings>,
    /// The store.
    pub store: Store,
    /// The Business Objects.
    pub catalogue: Catalogue,
    /// The exporter.
    pub exporter: Exporter,
    /// `service.gateway-id`, configured or made.
    pub gateway_id: String,
}

impl Gateway {
    /// Opens the parts in `settings.data_dir` (made with mode 0700 when it is not there). Blocks.
    pub fn open(
        settings: Arc<Settings>,
        progress: &mut dyn FnMut(penstock_store::Progress),
    ) -> Result<Self, Fault> {
        let _ = (settings, progress);
        todo!()
    }
}
