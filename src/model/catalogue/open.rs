//! Opens the catalogue.
use super::entry::Entries;
use super::{Catalogue, CatalogueSettings, shapes_graphs};
use crate::change_feed::Watch;
use parking_lot::RwLock;
use penstock_base::clock::Clock;
use penstock_base::error::GatewayError;
use penstock_base::shared::Shared;
use penstock_store::Store;
use std::sync::Arc;

impl Catalogue {
    /// Reads all definitions and shapes graphs from the store and compiles them.
    pub fn open(store: Store, defaults: CatalogueSettings) -> Result<Self, GatewayError> {
        let entries = Entries::read_all(&store.read())?;
        let shapes = shapes_graphs::read_all(&store.read())?;
        Ok(Self {
            store,
            settings: Arc::new(defaults),
            entries: Shared::new(RwLock::new(entries)),
            shapes: Shared::new(RwLock::new(shapes)),
            writer: Arc::default(),
            watch: Watch::default(),
            deletion_begun: Arc::default(),
        })
    }

    /// Returns the same catalogue with another clock for ages. `elapsed` returns milliseconds and never goes back.
    #[must_use]
    pub fn with_elapsed(self, elapsed: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { watch: Watch::new(elapsed), ..self }
    }

    /// Returns the same catalogue with another maximum number of objects that one change is recorded for.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_max_holders(self, most: usize) -> Self {
        Self { watch: self.watch.with_max_holders(most), ..self }
    }

    /// Returns the same catalogue with this clock for ages and times.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { watch: Watch::with_clock(clock), ..self }
    }
}
