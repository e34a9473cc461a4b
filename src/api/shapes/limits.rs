//! The limits that `GET /api/v1/limits` returns.
use penstock_config as config;
use salvo_oapi::ToSchema;
use serde::Serialize;

/// Declares what is shown of settings: each field with its type, its value, and its description.
macro_rules! shown {
    ($(
        $(#[$attribute:meta])*
        $shape:ident = $settings:ident: $source:ty {
            $($field:ident: $type:ty = $value:expr, $description:tt;)*
        }
    )*) => {$(
        #[derive(Serialize, ToSchema)]
        #[serde(rename_all = "camelCase")]
        $(#[$attribute])*
        pub(crate) struct $shape {
            $(#[doc = $description] $field: $type,)*
        }

        impl From<&$source> for $shape {
            fn from($settings: &$source) -> Self {
                Self { $($field: $value,)* }
            }
        }
    )*};
}

shown! {
    /// The limits for requests (`service.limits.*`).
    #[salvo(schema(name = "Limits"))]
    Limits = limits: config::Limits {
        body: u64 = limits.body_bytes, "Bytes of one request body, or of one NDJSON line.";
        nesting: usize = limits.nesting, "Levels of JSON nesting.";
        objects: usize = limits.objects, "Objects in one JSON request.";
        values: usize = limits.values, "JSON values in one JSON request, or in a chunk of NDJSON.";
        in_flight: u64 = limits.in_flight_bytes, "Bytes of all concurrent request bodies.";
        disk_reserve: u64 = limits.disk_reserve_bytes, "Bytes of disk space that ingestions and definitions leave free.";
        idempotency_keys: usize = limits.idempotency_keys, "Responses kept for 24 h under their `Idempotency-Key`.";
        idempotency_bytes: u64 = limits.idempotency_bytes, "Bytes of those responses.";
        history: usize = limits.history, "Records of ingestions and of delivered exports that are kept.";
        rejected_bytes: u64 = limits.rejected_bytes, "Bytes of all dead letters.";
        rejected_age_seconds: u64 = limits.rejected_age.as_secs(), "Seconds for which dead letters are kept.";
        sources: u64 = limits.source_bytes, "Bytes of the messages that all sources together hold.";
        webhook_events: u64 = limits.webhook_events, "Events that wait for one webhook.";
        webhook_bytes: u64 = limits.webhook_bytes, "Bytes of these events.";
        changes: u64 = limits.changes, "Open changes under review.";
        change_bytes: u64 = limits.change_bytes, "Bytes of all changes.";
        snapshot_memory_bytes: usize = limits.snapshot_memory_bytes, "Bytes that all snapshots together keep in memory.";
        snapshot_disk_bytes: u64 = limits.snapshot_disk_bytes, "Bytes that they keep in files.";
        graphql: GraphqlLimits = (&limits.graphql).into(), "The limits of one GraphQL request.";
        sparql: SparqlLimits = (&limits.sparql).into(), "The limits of one SPARQL request.";
        shapes: ShapesLimits = (&limits.shapes).into(), "The limits of one validation.";
    }

    /// The limits of one validation (`service.limits.shapes.*`).
    #[salvo(schema(name = "ShapesLimits"))]
    ShapesLimits = limits: config::ShapesLimits {
        time_seconds: f64 = limits.time.as_secs_f64(), "Seconds of the validation of an ingestion.";
        memory: u64 = limits.memory, "Bytes of memory of a validation.";
    }

    /// The limits of one SPARQL request (`service.limits.sparql.*`).
    #[salvo(schema(name = "SparqlLimits"))]
    SparqlLimits = limits: config::SparqlLimits {
        time_seconds: f64 = limits.time.as_secs_f64(), "Seconds of a query, including the time that its client takes.";
        memory: u64 = limits.memory, "Bytes of memory of a query.";
        rows: u64 = limits.rows, "Rows or triples of an answer.";
        update: u64 = limits.update, "Quads that a request inserts and removes.";
    }

    /// The limits of one GraphQL request (`service.limits.graphql.*`).
    #[salvo(schema(name = "GraphqlLimits"))]
    GraphqlLimits = limits: config::GraphqlLimits {
        depth: usize = limits.depth, "Levels of fields.";
        complexity: u64 = limits.complexity, "Fields of the response, calculated before the request is executed.";
        rows: u64 = limits.rows, "Objects in the response.";
        scan: u64 = limits.scan, "Objects that are read.";
        time_seconds: f64 = limits.time.as_secs_f64(), "Seconds of execution.";
        answer: u64 = limits.answer, "Bytes of the response, approximately.";
        fields: usize = limits.fields, "Fields of all Business Objects in the schema.";
    }
}
