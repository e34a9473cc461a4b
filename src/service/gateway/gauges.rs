//! The gauges of the metrics, as the gateway's parts report them.
use super::Gateway;
use super::status::Unreadable;
use penstock_base::error::GatewayError;
use penstock_base::telemetry::metrics::{Gauges, ValidationGauges};

impl Gateway {
    /// Collects the gauges. Those of a record that cannot be read are left out: the others show whether the gateway works.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn collect_gauges(&self) -> Result<Gauges, GatewayError> {
        self.read(Self::read_gauges).await
    }

    fn read_gauges(&self) -> Result<Gauges, GatewayError> {
        let validations = self.validations.list_last_counts().into_iter();
        let mut unread = Vec::new();
        Ok(Gauges {
            status: self.collect_numbers(Unreadable::LeaveOut(&mut unread))?,
            snapshots: self.store.stats().snapshots,
            last_validations: validations
                .map(|(business_object, counts)| ValidationGauges {
                    business_object,
                    counts: [counts.violation, counts.warning, counts.info],
                })
                .collect(),
            unread,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::gateway::store_path;
    use crate::testing::open_gateway;
    use penstock_base::collections;
    use penstock_base::telemetry::metrics::{Format, encode_metrics};
    use penstock_store::{Options, Store, Transaction};

    #[test]
    fn an_unreadable_record_takes_no_other_metric_away() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&store_path(dir.path()), Options::default(), &mut |_| {}).unwrap();
        let put = |change: &mut Transaction<'_>| {
            for totals in [collections::DEAD_LETTER_TOTALS, collections::REVIEWED_CHANGES_TOTALS] {
                change.put_document(totals.name, b"", b"of the future")?;
            }
            Ok(())
        };
        store.transact::<_, penstock_store::Error>(put).unwrap();
        drop(store);
        let gateway = open_gateway(dir.path(), &[]);
        let text = encode_metrics(&gateway.read_gauges().unwrap(), Format::Text);
        for missing in ["dead_letters", "dead_letters_bytes", "changes_open", "changes_bytes"] {
            assert!(!text.contains(&format!("penstock_{missing} ")), "{missing}: {text}");
        }
        for shown in ["store_quads", "definitions_managed", "definitions_drifted"] {
            assert!(text.contains(&format!("\npenstock_{shown} 0\n")), "{shown}: {text}");
        }
    }
}
