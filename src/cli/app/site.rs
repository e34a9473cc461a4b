//! Everything that the gateway serves: the routes of the API, of the control socket and of the pages.
use penstock_http::router::Route;
use penstock_http::service::{self, Site};
use penstock_http::state::State;
use salvo::Service;
use std::sync::Arc;

/// Builds the HTTP service of all routes over this state.
pub fn build_service(state: Arc<State>) -> Service {
    let site = Site {
        routes: all_routes(),
        object_handler: penstock_api::object_handler(),
        error_page: penstock_web::ERROR_PAGE,
    };
    service::build_service(state, &site)
}

/// Returns the method, path and minimum role of every route. Besides roles there are `Anyone`, `Local` (only
/// the control socket) and `Metrics`.
pub fn list_routes() -> Vec<(String, &'static str, String)> {
    let routes = all_routes().into_iter();
    routes
        .map(|route| (route.method.to_string(), route.path, format!("{:?}", route.minimum_role)))
        .collect()
}

fn all_routes() -> Vec<Route> {
    let mut operations = penstock_api::api_operations();
    operations.extend(penstock_web::sign_in_operations());
    let mut routes: Vec<_> = operations.iter().map(|operation| operation.route.clone()).collect();
    routes.extend(penstock_web::sign_in_routes());
    routes.extend(penstock_api::document_routes(operations));
    let control = penstock_api::control_operations().into_iter();
    routes.extend(control.map(|operation| operation.route));
    routes.extend(penstock_web::page_routes());
    routes
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_http::access::Allow;
    use penstock_http::router::{build_fallback, build_router};
    use salvo::Router;

    /// Asserts that an `Allow` runs before every goal. Returns the number of goals.
    fn assert_guarded(router: &Router, above: bool) -> usize {
        let allow = std::any::type_name::<Allow>();
        let here = above || router.hoops().iter().any(|hoop| hoop.type_name() == allow);
        assert!(router.goal.is_none() || here, "no Allow before {router:?}");
        let below =
            router.routers().iter().map(|router| assert_guarded(router, here)).sum::<usize>();
        below + usize::from(router.goal.is_some())
    }

    #[test]
    fn access_runs_before_every_handler() {
        let routes = all_routes();
        let fallback = build_fallback(penstock_api::object_handler(), &routes, "");
        let router = Router::new().push(build_router(&routes)).push(fallback);
        assert!(assert_guarded(&router, false) > routes.len());
    }
}
