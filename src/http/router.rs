//! The routes: those of operations (see `operation`) and of pages. `access` enforces their roles.
use super::access::{Allow, MinimumRole, has_side_effects};
use salvo::http::Method;
use salvo::routing::MethodFilter;
use salvo::{Handler, Router};
use std::sync::Arc;

/// A route: its method and path, who may use it, and its handler. Cheap to clone.
#[derive(Clone)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, without the prefix of a proxy.
    pub path: &'static str,
    /// The minimum that a request must present to use it.
    pub minimum_role: MinimumRole,
    /// Whether it belongs to the administration interface.
    is_page: bool,
    /// What runs before the handler.
    preparers: Vec<Arc<dyn Handler>>,
    handler: Arc<dyn Handler>,
}

/// Creates a route that is neither an operation of the API nor a page.
pub fn plain_route(
    method: Method,
    path: &'static str,
    minimum_role: MinimumRole,
    handler: impl Handler,
) -> Route {
    let handler = Arc::new(handler);
    Route { method, path, minimum_role, is_page: false, preparers: Vec::new(), handler }
}

/// Creates a route of the administration interface. `preparers` run in their order after the request is authorized, and
/// before the handler.
pub fn page_route(
    method: &Method,
    path: &'static str,
    minimum_role: MinimumRole,
    handler: impl Handler,
    preparers: Vec<Arc<dyn Handler>>,
) -> Route {
    Route { is_page: true, preparers, ..plain_route(method.clone(), path, minimum_role, handler) }
}

impl Route {
    /// Returns the handler.
    pub fn handler(&self) -> Arc<dyn Handler> {
        self.handler.clone()
    }

    /// Returns the router of this route, for its own method only.
    pub fn to_router(&self) -> Router {
        self.build_router(self.method.clone())
    }

    fn build_router(&self, method: Method) -> Router {
        // A router without a path matches the path of its parent, here the start page.
        let router = match self.path {
            "/" => Router::new(),
            path => Router::with_path(path),
        };
        let allow = if self.is_page {
            Allow::for_page(self.minimum_role)
        } else {
            Allow::new(self.minimum_role, &self.method, self.path)
        };
        let mut router = router.filter(MethodFilter::new(method)).hoop(allow);
        router.hoops_mut().extend(self.preparers.iter().cloned());
        router.goal = Some(self.handler.clone());
        router
    }
}

/// Builds the router of these routes, with `HEAD` for every `GET` that only reads.
pub fn build_router(routes: &[Route]) -> Router {
    let mut router = Router::new();
    for route in routes {
        router = router.push(route.to_router());
        if route.method == Method::GET && !has_side_effects(&route.method, route.path) {
            router = router.push(route.build_router(Method::HEAD));
        }
    }
    router
}

/// Builds the router for all other addresses: any of them can be a minted URI of an object. The paths of `routes`, with and
/// without `prefix`, are none, so that a wrong method there gets 405 and not 404.
pub fn build_fallback(object_handler: Arc<dyn Handler>, routes: &[Route], prefix: &str) -> Router {
    let paths: Vec<&'static str> = routes.iter().map(|route| route.path).collect();
    let prefix = format!("/{prefix}");
    let mut router = Router::with_path("{**rest}")
        .filter_fn(move |req, _| {
            let path = req.uri().path();
            let below_prefix = path.strip_prefix(&prefix).unwrap_or(path);
            let is_route = |known: &&'static str| {
                path_matches(known, path) || path_matches(known, below_prefix)
            };
            matches!(*req.method(), Method::GET | Method::HEAD)
                && !path.starts_with("/api/")
                && !paths.iter().any(is_route)
        })
        .hoop(Allow::new(MinimumRole::User, &Method::GET, "/{**rest}"));
    router.goal = Some(object_handler);
    router
}

/// Whether a path has the form of a route's path, in which `{name}` is one segment and `{**name}` is the rest.
fn path_matches(pattern: &str, path: &str) -> bool {
    let mut known = pattern.split('/').filter(|segment| !segment.is_empty());
    let mut given = path.split('/').filter(|segment| !segment.is_empty());
    loop {
        match (known.next(), given.next()) {
            (Some(known), _) if known.starts_with("{**") => return true,
            (Some(known), Some(given)) if known.starts_with('{') || known == given => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::path_matches;

    #[test]
    fn paths_match_segment_by_segment() {
        for (pattern, path) in [
            ("/logout", "/logout"),
            ("/a/{name}/b", "/a/x/b/"),
            ("/a/{**rest}", "/a/b/c"),
            ("/", "/"),
        ] {
            assert!(path_matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in
            [("/logout", "/logout/x"), ("/a/{name}", "/a"), ("/a", "/b"), ("/", "/a")]
        {
            assert!(!path_matches(pattern, path), "{pattern} {path}");
        }
    }
}
