//! `/metrics`: the two text formats that Prometheus reads.
use jiff::Timestamp;
use penstock_base::clock::is_synchronised;
use penstock_base::disk;
use penstock_base::telemetry::metrics::{self, Format, Gauges, TargetGauges, encode_metrics};
use penstock_export::TargetState;
use penstock_http::accept::{accepted_ranges, media_type_weight};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::{run_blocking, state};
use penstock_service::gateway::Gateway;
use salvo::http::header::{HeaderMap, VARY};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// Returns the metrics in the text format of Prometheus, or as `OpenMetrics` if `Accept` names it.
#[endpoint(
    operation_id = "metrics",
    tags("Gateway"),
    responses((status_code = 200, description = "The metrics.",
        headers(("Vary" = String, description = "`Accept`")),
        content(("text/plain" = String), ("application/openmetrics-text" = String)))),
)]
pub(super) async fn get_metrics(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let format = accepted_format(req.headers());
    let state = state(depot);
    // Counters are available even while the store is opening.
    let text = run_blocking(move || {
        let gauges = state.gateway().map_or_else(|_| Ok(Gauges::default()), collect_gauges)?;
        Ok(encode_metrics(&gauges, format))
    });
    Ok(Reply::bytes(format.content_type(), text.await?).with_header(VARY, "Accept"))
}

/// Returns `OpenMetrics` only for clients that name it: others that accept any type may know only the older
/// format.
fn accepted_format(headers: &HeaderMap) -> Format {
    const OPEN_METRICS: &str = "application/openmetrics-text";
    let accepted = accepted_ranges(headers);
    let weight = media_type_weight(&accepted, OPEN_METRICS);
    let is_named = accepted.iter().any(|range| range.range == OPEN_METRICS);
    if is_named && weight > 0 && weight >= media_type_weight(&accepted, "text/plain") {
        Format::OpenMetrics
    } else {
        Format::Text
    }
}

fn collect_gauges(gateway: &Gateway) -> Result<Gauges, penstock_http::problem::Problem> {
    let (stats, spool) = (gateway.store.stats(), gateway.exporter.spool_usage());
    Ok(Gauges {
        quads: stats.quads,
        sequence: stats.sequence,
        journal_bytes: stats.journal_bytes,
        index_bytes: stats.index_bytes,
        write_back_bytes: stats.write_back_bytes,
        disk_free_bytes: disk::free_bytes_of(&gateway.settings.data_dir).unwrap_or_default(),
        disk_in_reserve: gateway.disk.is_in_reserve(),
        memory_limit_bytes: gateway.memory.limit_bytes().unwrap_or_default(),
        memory_level: gateway.memory.current_level() as u8,
        clock_synchronised: is_synchronised(),
        certificate_expiry_seconds: metrics::certificate_expiry(),
        spool_bytes_and_limit: (spool.waiting, spool.limit),
        parked: spool.parked,
        waiting_business_objects: gateway.exporter.list_waiting_names(),
        poisoned: gateway.store.poison_cause().is_some(),
        targets: gateway.exporter.list_targets()?.into_iter().map(target_gauges).collect(),
    })
}

fn target_gauges(state: TargetState) -> TargetGauges {
    let moment = |at: Option<String>| at.and_then(|at| at.parse::<Timestamp>().ok());
    let age = u32::try_from(state.oldest_age_seconds.unwrap_or_default()).unwrap_or(u32::MAX);
    TargetGauges {
        name: state.name,
        depth: state.depth,
        waiting: state.waiting,
        bytes: state.bytes,
        oldest_age_seconds: f64::from(age),
        blocked: state.blocked.is_some(),
        attempts: state.attempts,
        last_delivery_seconds: moment(state.last_delivery)
            .map_or(0.0, |at| at.as_duration().as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use salvo::http::header::ACCEPT;

    #[test]
    fn open_metrics_is_only_for_clients_that_name_it() {
        let format = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            accepted_format(&headers)
        };
        assert_eq!(accepted_format(&HeaderMap::new()), Format::Text);
        for text in [
            "text/plain",
            "*/*",
            "application/*",
            "text/plain;version=0.0.4, application/openmetrics-text;q=0.5",
            "application/openmetrics-text;q=0, */*",
        ] {
            assert_eq!(format(text), Format::Text, "{text}");
        }
        for open in [
            "application/openmetrics-text",
            "application/openmetrics-text; version=1.0.0, text/plain;q=0.9",
            // Prometheus 3.
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
             application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,\
             text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
        ] {
            assert_eq!(format(open), Format::OpenMetrics, "{open}");
        }
    }
}
