//! The service: the routes, and what is done for every request before and after its route.
use super::access::Allow;
use super::body;
use super::encoding::encode;
use super::etag;
use super::origin::{self, Origin, origin};
use super::problem::{self, ErrorPage, Problem};
use super::router::{self, Route};
use super::sending;
use super::state::{State, state};
use super::trace::{read_trace, trace};
use penstock_base::telemetry::metrics;
use penstock_base::telemetry::trace::TRACEPARENT_HEADER;
use salvo::catcher::Catcher;
use salvo::cors::Cors;
use salvo::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
    IF_MATCH, IF_NONE_MATCH, LOCATION, RETRY_AFTER, STRICT_TRANSPORT_SECURITY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use salvo::http::{Method, ResBody, StatusCode, StatusError};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Service, handler};
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

/// What the service serves.
pub struct Site {
    /// The routes. The router takes the first match.
    pub routes: Vec<Route>,
    /// The handler of all other addresses, since any of them can be a minted URI of an object.
    pub object_handler: Arc<dyn Handler>,
    /// Shows a problem to a browser that asks for a page.
    pub error_page: ErrorPage,
}

/// Builds the whole service over this state.
pub fn build_service(state: Arc<State>, site: &Site) -> Service {
    let settings = state.settings().clone();
    let mut root = Router::new();
    // A proxy may pass the prefix on or strip it, so the routes exist with and without it.
    let prefix = origin::base_path(settings.base_url.as_deref()).trim_matches('/').to_owned();
    if !prefix.is_empty() {
        root = root.push(router::build_router(&site.routes).path(prefix.clone()));
    }
    root = root.push(router::build_router(&site.routes)).push(router::build_fallback(
        site.object_handler.clone(),
        &site.routes,
        &prefix,
    ));
    let mut service = Service::new(root)
        .catcher(Catcher::default().hoop(convert_error))
        .hoop(RequestContext { state, error_page: site.error_page })
        .hoop(finish_response);
    let origins = &settings.server.cors_allowed_origins;
    if !origins.is_empty() {
        service = service.hoop(cors_handler(origins));
    }
    service.hoop(refuse_unknown_paths)
}

/// Puts the trace, the origin and the shared state into the depot, for the handlers.
struct RequestContext {
    state: Arc<State>,
    error_page: ErrorPage,
}

#[handler]
impl RequestContext {
    fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let trace = read_trace(req);
        // A problem document contains the trace id.
        res.extensions.insert(trace);
        depot.insert_typed(trace);
        depot.insert_typed(Origin::from_request(req, &self.state.settings));
        depot.insert_typed(self.state.clone());
        depot.insert_typed(self.error_page);
    }
}

/// Sets the common headers of every response, counts the response, and discards the rest of the request body.
#[handler]
async fn finish_response(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
    ctrl: &mut FlowCtrl,
) {
    let begun = Instant::now();
    let trace = trace(depot);
    // Log lines on behalf of the request carry its trace and, once it is known, its user.
    let span = tracing::error_span!("request", trace_id = trace.id(), user_id = Empty);
    ctrl.call_next(req, depot, res).instrument(span).await;
    etag::apply_if_none_match(req, res);
    encode::compress_small_response(req, res);
    sending::count_response(req, depot, res);
    encode::compress_long_response(req, depot, res);
    sending::watch_reader(req, res, sending::MAX_UNREAD_TIME);
    let route = match req.matched_path() {
        "" => "none",
        route => route,
    };
    let status = res.status_code.map_or(0, |status| status.as_u16());
    let seconds = begun.elapsed().as_secs_f64();
    metrics::count_http_request(route, req.method().as_str(), status, seconds);
    let headers = res.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let settings = &state(depot).settings;
    if origin::wants_https_only(origin(depot), settings)
        && let Ok(policy) =
            HeaderValue::try_from(format!("max-age={}", settings.server.hsts_max_age.as_secs()))
    {
        headers.insert(STRICT_TRANSPORT_SECURITY, policy);
    }
    if let Ok(trace) = HeaderValue::try_from(trace.to_string()) {
        headers.insert(HeaderName::from_static(TRACEPARENT_HEADER), trace);
    }
    body::discard_unread_body(req);
}

fn cors_handler(origins: &Vec<String>) -> impl Handler {
    Cors::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::DELETE])
        // Pages of the allowed origins authenticate with a token or key. Cookies are not allowed.
        .allow_headers([
            AUTHORIZATION,
            CONTENT_ENCODING,
            CONTENT_TYPE,
            IF_MATCH,
            IF_NONE_MATCH,
            HeaderName::from_static("apikey"),
            HeaderName::from_static("change-owners"),
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("last-event-id"),
            HeaderName::from_static(TRACEPARENT_HEADER),
        ])
        .expose_headers([
            ETAG,
            LOCATION,
            RETRY_AFTER,
            WWW_AUTHENTICATE,
            HeaderName::from_static("penstock-warning"),
            HeaderName::from_static(TRACEPARENT_HEADER),
        ])
        .into_handler()
}

/// Refuses unauthenticated clients if the request has no route. On existing routes `access` does that.
#[handler]
async fn refuse_unknown_paths(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
    ctrl: &mut FlowCtrl,
) {
    let has_no_route =
        matches!(res.status_code, Some(StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED));
    if has_no_route
        && let Err(refused) = Allow::for_unknown_path().authorize_request(req, depot).await
    {
        refused.write_response(req, depot, res);
        ctrl.skip_rest();
    }
}

/// Turns every error response of the framework into a problem.
#[handler]
async fn convert_error(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
    ctrl: &mut FlowCtrl,
) {
    ctrl.skip_rest();
    let status = res.status_code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let path = req.uri().path();
    let detail = match status {
        StatusCode::NOT_FOUND => {
            format!("there is nothing at {path}; /api-doc/openapi.json lists all routes")
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            format!(
                "{path} does not allow {}; the header Allow lists the allowed methods",
                req.method()
            )
        }
        _ => match res.take_body() {
            ResBody::Error(StatusError { brief, .. }) => brief,
            _ => problem::reason_phrase(status).to_owned(),
        },
    };
    Problem::new(status, detail).write_response(req, depot, res);
    sending::watch_reader(req, res, sending::MAX_UNREAD_TIME);
}
