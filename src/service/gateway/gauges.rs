//! The gauges of the metrics, as the gateway's parts report them.
use super::Gateway;
use penstock_base::error::GatewayError;
use penstock_base::telemetry::metrics::{Gauges, ValidationGauges};

impl Gateway {
    /// Collects the gauges.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn collect_gauges(&self) -> Result<Gauges, GatewayError> {
        self.read(Self::read_gauges).await
    }

    fn read_gauges(&self) -> Result<Gauges, GatewayError> {
        let validations = self.validations.list_last_counts().into_iter();
        Ok(Gauges {
            status: self.collect_numbers()?,
            snapshots: self.store.stats().snapshots,
            last_validations: validations
                .map(|(business_object, counts)| ValidationGauges {
                    business_object,
                    counts: [counts.violation, counts.warning, counts.info],
                })
                .collect(),
        })
    }
}
