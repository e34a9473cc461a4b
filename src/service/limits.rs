//! The limits for requests, as clients see them.
use penstock_config as config;
use penstock_resources::gateway::{GraphqlLimits, Limits, ShapesLimits, SparqlLimits};

/// Describes the configured limits.
pub fn describe_limits(limits: &config::Limits) -> Limits {
    Limits {
        body: limits.body_bytes,
        nesting: limits.nesting,
        objects: limits.objects,
        values: limits.values,
        in_flight: limits.in_flight_bytes,
        disk_reserve: limits.disk_reserve_bytes,
        idempotency_keys: limits.idempotency_keys,
        idempotency_bytes: limits.idempotency_bytes,
        history: limits.history,
        rejected_bytes: limits.rejected_bytes,
        rejected_age_seconds: limits.rejected_age.as_secs(),
        sources: limits.source_bytes,
        webhook_events: limits.webhook_events,
        webhook_bytes: limits.webhook_bytes,
        changes: limits.changes,
        change_bytes: limits.change_bytes,
        snapshot_memory_bytes: limits.snapshot_memory_bytes,
        snapshot_disk_bytes: limits.snapshot_disk_bytes,
        graphql: GraphqlLimits {
            depth: limits.graphql.depth,
            complexity: limits.graphql.complexity,
            rows: limits.graphql.rows,
            scan: limits.graphql.scan,
            time_seconds: limits.graphql.time.as_secs_f64(),
            answer: limits.graphql.answer,
            fields: limits.graphql.fields,
        },
        sparql: SparqlLimits {
            time_seconds: limits.sparql.time.as_secs_f64(),
            memory: limits.sparql.memory,
            rows: limits.sparql.rows,
            update: limits.sparql.update,
        },
        shapes: ShapesLimits {
            time_seconds: limits.shapes.time.as_secs_f64(),
            memory: limits.shapes.memory,
        },
    }
}
