//! The trace of a request (W3C Trace Context).
use penstock_base::telemetry::trace::{TRACEPARENT_HEADER, Trace};
use salvo::{Depot, Request};

/// Reads the trace that a request is part of, or begins one.
pub(super) fn read_trace(req: &Request) -> Trace {
    let mut named = req.headers().get_all(TRACEPARENT_HEADER).iter();
    // Of several `traceparent` headers none is valid (W3C Trace Context, 3.2).
    let header = named.next().filter(|_| named.next().is_none());
    Trace::from_header(header.and_then(|header| header.to_str().ok()))
}

/// Returns the trace of this request.
///
/// # Panics
/// Outside a request of the service.
pub fn trace(depot: &Depot) -> Trace {
    *depot.get_typed::<Trace>().expect("the service injects it before any handler runs")
}
