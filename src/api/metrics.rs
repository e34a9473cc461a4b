//! `/metrics`: the two text formats that Prometheus reads.
use penstock_base::telemetry::metrics::{Format, Gauges, encode_metrics};
use penstock_http::accept::AcceptedTypes;
use penstock_http::access::MinimumRole::Metrics;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::parameters::AnyQuery;
use penstock_http::reply::{Reply, ReplyResult};
use salvo::http::header::{HeaderMap, VARY};

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/metrics", Metrics, get_metrics)
            .describe(
                "metrics",
                "Gateway",
                "Returns the metrics in the text format of Prometheus, or as `OpenMetrics` if `Accept` names it.",
            )
            .empty_answer(200, "The metrics.")
            .answer_as::<String>("text/plain")
            .answer_as::<String>("application/openmetrics-text")
            .answer_header("Vary", "`Accept`"),
    ]
}

async fn get_metrics(call: Call<'_>, _query: AnyQuery) -> ReplyResult {
    let format = accepted_format(call.req.headers());
    let gauges = match call.state().gateway_if_open() {
        Some(gateway) => gateway.collect_gauges().await?,
        // Counters are available even while the store is opening.
        None => Gauges::default(),
    };
    let text = encode_metrics(&gauges, format);
    Ok(Reply::bytes(format.content_type(), text).with_header(VARY, "Accept"))
}

/// Returns `OpenMetrics` only for clients that name it: others that accept any type may know only the older
/// format.
fn accepted_format(headers: &HeaderMap) -> Format {
    const OPEN_METRICS: &str = "application/openmetrics-text";
    let accepted = AcceptedTypes::from_headers(headers);
    let weight = accepted.weight_of(OPEN_METRICS);
    let is_named = accepted.has_named(OPEN_METRICS);
    if is_named && weight > 0 && weight >= accepted.weight_of("text/plain") {
        Format::OpenMetrics
    } else {
        Format::Text
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
