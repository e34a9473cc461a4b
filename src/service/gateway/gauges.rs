//! The gauges of the metrics, as the gateway's parts report them.
use super::Gateway;
use super::status::DefinitionsStatus;
use crate::blocking::run_blocking;
use crate::sources::ConnectionState;
use crate::validations::SeverityCounts;
use jiff::Timestamp;
use penstock_base::clock::is_synchronised;
use penstock_base::disk;
use penstock_base::error::GatewayError;
use penstock_base::telemetry::metrics::{
    self, DefinitionGauges, Gauges, SourceGauges, TargetGauges, ValidationGauges, WebhookGauges,
};
use penstock_export::{TargetState, WebhookState};
use penstock_model::{changes, dead_letters};

impl Gateway {
    /// Collects the gauges.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn collect_gauges(&self) -> Result<Gauges, GatewayError> {
        let gateway = self.clone();
        run_blocking(move || gateway.read_gauges()).await
    }

    fn read_gauges(&self) -> Result<Gauges, GatewayError> {
        let (stats, spool) = (self.store.stats(), self.exporter.spool_usage());
        let read = self.store.read();
        let rejected = dead_letters::read_totals(&read)?;
        let changes = changes::read_totals(&read)?;
        Ok(Gauges {
            quads: stats.quads,
            sequence: stats.sequence,
            journal_bytes: stats.journal_bytes,
            index_bytes: stats.index_bytes,
            write_back_bytes: stats.write_back_bytes,
            snapshots: stats.snapshots,
            disk_free_bytes: disk::free_bytes_of(&self.settings.data_dir).unwrap_or_default(),
            disk_in_reserve: self.disk.is_in_reserve(),
            memory_limit_bytes: self.memory.limit_bytes().unwrap_or_default(),
            memory_level: self.memory.current_level() as u8,
            clock_synchronised: is_synchronised(),
            certificate_expiry_seconds: metrics::certificate_expiry(),
            spool_bytes_and_limit: (spool.waiting, spool.limit),
            dead_letters_and_bytes: (rejected.letters, rejected.bytes),
            changes_and_bytes: (changes.open, changes.bytes()),
            parked: spool.parked,
            waiting_business_objects: self.exporter.list_waiting_names(),
            last_validations: self
                .validations
                .list_last_counts()
                .into_iter()
                .map(validation_gauges)
                .collect(),
            poisoned: self.store.poison_cause().is_some(),
            targets: self.exporter.list_targets()?.into_iter().map(target_gauges).collect(),
            sources: self.sources.list_all().into_iter().map(source_gauges).collect(),
            webhooks: self.webhooks.list()?.into_iter().map(webhook_gauges).collect(),
            definitions: definition_gauges(&self.collect_definitions()?),
        })
    }
}

fn validation_gauges((business_object, counts): (String, SeverityCounts)) -> ValidationGauges {
    let SeverityCounts { violation, warning, info } = counts;
    ValidationGauges { business_object, counts: [violation, warning, info] }
}

/// Returns a time in seconds since 1970, or 0 if there is none.
fn to_seconds(at: Option<String>) -> f64 {
    let at = at.and_then(|at| at.parse::<Timestamp>().ok());
    at.map_or(0.0, |at| at.as_duration().as_secs_f64())
}

fn definition_gauges(status: &DefinitionsStatus) -> DefinitionGauges {
    DefinitionGauges {
        managed: status.managed as u64,
        drifted: status.unwanted_count as u64,
        errors: status.folder.error_count as u64,
    }
}

fn webhook_gauges(state: WebhookState) -> WebhookGauges {
    WebhookGauges {
        name: state.name,
        waiting: state.waiting,
        waiting_bytes: state.bytes,
        blocked: state.blocked.is_some(),
        dropped: state.dropped,
        delivered: state.delivered,
        last_delivery_seconds: to_seconds(state.last_delivery),
    }
}

fn target_gauges(state: TargetState) -> TargetGauges {
    let age = u32::try_from(state.oldest_age_seconds.unwrap_or_default()).unwrap_or(u32::MAX);
    TargetGauges {
        name: state.name,
        depth: state.depth,
        waiting: state.waiting,
        bytes: state.bytes,
        oldest_age_seconds: f64::from(age),
        blocked: state.blocked.is_some(),
        attempts: state.attempts,
        last_delivery_seconds: to_seconds(state.last_delivery),
    }
}

fn source_gauges(
    ((source, business_object), state): ((String, String), ConnectionState),
) -> SourceGauges {
    SourceGauges {
        source,
        business_object,
        connected: state.connected_since.is_some(),
        received: state.received,
        acknowledged: state.acknowledged,
        dead_letters: state.dead_letters,
        waiting_bytes: state.waiting_bytes,
        last_message_seconds: state
            .last_message_at
            .map_or(0.0, |at| at.as_duration().as_secs_f64()),
    }
}
