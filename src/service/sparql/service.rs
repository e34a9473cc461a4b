//! What SPARQL needs besides the store: its permits, and the endpoints that its queries may ask.
use super::permits::SparqlPermits;
use super::remote::RemoteEndpoints;
use penstock_base::error::GatewayError;
use penstock_base::memory::Memory;
use penstock_base::permits::Permits;
use penstock_config::Settings;

/// The maximum number of graphs that are read at once, one of each account.
pub(super) const MAX_GRAPH_READS: usize = 2;

/// What SPARQL needs besides the store. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SparqlService {
    pub(super) permits: SparqlPermits,
    pub(super) graph_reads: Permits<String>,
    pub(super) remote: RemoteEndpoints,
}

impl SparqlService {
    pub(crate) fn new(settings: &Settings, memory: &Memory) -> Result<Self, GatewayError> {
        Ok(Self {
            permits: SparqlPermits::new(memory.clone(), settings.limits.sparql.memory),
            graph_reads: Permits::for_accounts(MAX_GRAPH_READS),
            remote: RemoteEndpoints::new(settings)?,
        })
    }
}
