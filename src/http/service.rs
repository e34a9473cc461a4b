//! What every request passes, whatever its route.
use super::access::Allow;
use super::body;
use super::openapi;
use super::origin::{self, Origin};
use super::problem::{self, Problem};
use super::router;
use super::state::State;
use crate::telemetry::metrics;
use percent_encoding::percent_decode_str;
use salvo::catcher::Catcher;
use salvo::cors::Cors;
use salvo::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MATCH,
    IF_NONE_MATCH, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use salvo::http::{Method, StatusCode};
use salvo::{Depot, FlowCtrl, Request, Response, Router, Service, handler};
use std::sync::Arc;
use std::time::Instant;

/// The whole service over this state.
pub fn service(state: Arc<State>) -> Service {
    let settings = state.settings.clone();
    let document = Arc::new(openapi::document(&settings));
    let mut root = Router::new();
    // Proxies may pass the prefix on or strip it: both arrive.
    let prefix = origin::base_path(settings.base_url.as_deref()).trim_matches('/').to_owned();
    if !prefix.is_empty() {
        root = root.push(router::router(&document).path(prefix));
    }
    root = root.push(router::router(&document)).push(router::fallback());
    let mut service = Service::new(root)
        .catcher(Catcher::default().hoop(problem::catch))
        .hoop(Enter { state })
        .hoop(every_answer);
    let origins = &settings.server.cors_allowed_origins;
    if !origins.is_empty() {
        service = service.hoop(cors(origins));
    }
    service.hoop(guard)
}

/// Puts what the handlers need into the depot.
struct Enter {
    state: Arc<State>,
}

#[handler]
impl Enter {
    fn handle(&self, req: &mut Request, depot: &mut Depot) {
        depot.insert_typed(Origin::of(req, &self.state.settings));
        depot.insert_typed(self.state.clone());
    }
}

/// The origin of this request.
pub(super) fn origin(depot: &Depot) -> &Origin {
    depot.get_typed::<Origin>().expect("the service injects it before any handler runs")
}

/// What every answer has, what is counted of it, and the end of every body.
#[handler]
async fn every_answer(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
    ctrl: &mut FlowCtrl,
) {
    let begun = Instant::now();
    ctrl.call_next(req, depot, res).await;
    let route = match req.matched_path() {
        "" => "none",
        route => route,
    };
    let status = res.status_code.map_or(0, |status| status.as_u16());
    let seconds = begun.elapsed().as_secs_f64();
    metrics::http_request(route, req.method().as_str(), status, seconds);
    let headers = res.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    body::leave(req);
}

fn cors(origins: &Vec<String>) -> impl salvo::Handler {
    Cors::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::DELETE])
        // A page of another site brings a token or key; cookies are not for it.
        .allow_headers([
            AUTHORIZATION,
            CONTENT_TYPE,
            IF_MATCH,
            IF_NONE_MATCH,
            HeaderName::from_static("apikey"),
            HeaderName::from_static("idempotency-key"),
        ])
        .expose_headers([ETAG, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE])
        .into_handler()
}

/// Refuses an address that is no UTF-8, and strangers where there is no route: `access` stands before
/// those that there are.
#[handler]
async fn guard(req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
    let admitted =
        readable(req.uri().path()).and_then(|()| readable(req.uri().query().unwrap_or_default()));
    let has_no_route =
        matches!(res.status_code, Some(StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED));
    let admitted = match admitted {
        Ok(()) if has_no_route => Allow::elsewhere().admit(req, depot).await.map(|_| ()),
        admitted => admitted,
    };
    if let Err(problem) = admitted {
        problem.answer(req.uri().path(), res);
        ctrl.skip_rest();
    }
}

/// A percent sign must begin an escape, and the escapes must be UTF-8: else two clients could mean
/// different things with one address.
fn readable(part: &str) -> Result<(), Problem> {
    let escapes_are_whole = part.split('%').skip(1).all(|escape| {
        let mut digits = escape.bytes();
        (0..2).all(|_| digits.next().is_some_and(|digit| digit.is_ascii_hexdigit()))
    });
    if escapes_are_whole && percent_decode_str(part).decode_utf8().is_ok() {
        return Ok(());
    }
    Err(Problem::malformed(format!("{part:?} is not percent-encoded UTF-8 (RFC 3986, 2.1)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_whole_and_utf8() {
        for good in ["/a%2Fb", "/%C3%BC", "", "/a=1&b=%20"] {
            assert!(readable(good).is_ok(), "{good}");
        }
        for bad in ["/%", "/%2", "/%zz", "/%FF"] {
            assert!(readable(bad).is_err(), "{bad}");
        }
    }
}
