//! `/api/v1/limits`: the limits for requests.
use crate::shapes;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::state;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// Returns the limits for requests (`service.limits.*`).
#[endpoint(
    operation_id = "getLimits",
    tags("Gateway"),
    responses((status_code = 200, description = "The limits.", body = shapes::Limits)),
)]
pub(super) async fn get_limits(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let limits = state(depot).settings().limits;
    Reply::json(&shapes::Limits {
        body: limits.body_bytes,
        nesting: limits.nesting,
        objects: limits.objects,
        values: limits.values,
        in_flight: limits.in_flight_bytes,
        disk_reserve: limits.disk_reserve_bytes,
        idempotency_keys: limits.idempotency_keys,
        idempotency_bytes: limits.idempotency_bytes,
        history: limits.history,
        graphql: shapes::GraphqlLimits {
            depth: limits.graphql.depth,
            complexity: limits.graphql.complexity,
            rows: limits.graphql.rows,
            scan: limits.graphql.scan,
            time_seconds: limits.graphql.time.as_secs_f64(),
            answer: limits.graphql.answer,
            fields: limits.graphql.fields,
        },
    })
}
