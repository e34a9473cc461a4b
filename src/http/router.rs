//! The table of contents: every route, its minimum role, its handler, and the statuses of its problems, besides
//! those that every route can have (see `openapi`). `access` enforces the roles.
use super::access::{Allow, MinimumRole, has_side_effects};
use super::admin::form::FormReader;
use super::{
    admin, api_keys, audit, backup, business_objects, clock, docs, events, exports, graphql,
    health, identifiers, ingest, ingestions, limits, metrics, namespaces, objects, push, rdf,
    schema, sign_in, status, targets, users,
};
use salvo::http::Method;
use salvo::routing::MethodFilter;
use salvo::{Handler, Router};
use std::sync::Arc;

/// A route of the API or of a page.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// The minimum that a request must present to use it.
    pub(super) minimum_role: MinimumRole,
    pub(super) handler: Arc<dyn Handler>,
    /// The statuses of the problems that the route can answer.
    pub(super) problems: &'static [u16],
    /// Whether the route belongs to the administration interface.
    is_page: bool,
}

/// Returns every route of the API.
#[rustfmt::skip]
pub(super) fn api_routes() -> Vec<Route> {
    use MinimumRole::{Admin, Anyone, Contributor, Metrics, User};
    let (get, put, post, delete) = (Method::GET, Method::PUT, Method::POST, Method::DELETE);
    vec![
        // These are requested most often, and the router takes the first match.
        route(&get,    "/api/v1/business-objects/{id}/objects",       User,        objects::list_objects,                     &[400, 404, 413]),
        route(&get,    "/api/v1/business-objects/{id}/objects/{uri}", User,        objects::get_object,                       &[400, 404, 413]),
        route(&get,    "/api/v1/business-objects",                    User,        business_objects::list_business_objects,   &[400]),
        route(&put,    "/api/v1/business-objects",                    Admin,       business_objects::put_business_object,     &[400, 408, 409, 412, 413, 415, 422, 507]),
        route(&get,    "/api/v1/business-objects/{id}",               User,        business_objects::get_business_object,     &[400, 404]),
        route(&put,    "/api/v1/business-objects/{id}",               Admin,       business_objects::replace_business_object, &[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        route(&delete, "/api/v1/business-objects/{id}",               Admin,       business_objects::delete_business_object,  &[400, 404, 409, 412, 507]),
        route(&post,   "/api/v1/business-objects/{id}",               Contributor, ingest::ingest_objects,                    &[400, 404, 408, 409, 413, 415, 422, 507]),
        route(&get,    "/api/v1/business-objects/{id}/push",          Contributor, push::push_by_get,                         &[400, 404, 409, 413, 422, 507]),
        route(&post,   "/api/v1/business-objects/{id}/push",          Contributor, push::push_by_post,                        &[400, 404, 409, 413, 422, 507]),
        route(&get,    "/api/v1/business-objects/{id}/schema",        User,        schema::get_schema,                        &[400, 404]),
        route(&get,    "/api/v1/ingestions",                          User,        ingestions::list_ingestions,               &[400]),
        route(&get,    "/api/v1/ingestions/{id}",                     User,        ingestions::get_ingestion,                 &[400, 404]),
        route(&get,    "/api/v1/namespaces",                          User,        namespaces::list_namespaces,               &[400]),
        route(&get,    "/api/v1/namespaces/{name}",                   User,        namespaces::get_namespace,                 &[400, 404]),
        route(&put,    "/api/v1/namespaces/{name}",                   Contributor, namespaces::put_namespace,                 &[400, 408, 409, 413, 415, 422, 507]),
        route(&delete, "/api/v1/namespaces/{name}",                   Contributor, namespaces::delete_namespace,              &[400, 404, 409, 422, 507]),
        route(&get,    "/api/v1/exports",                             User,        exports::list_exports,                     &[400]),
        route(&get,    "/api/v1/exports/{id}",                        User,        exports::get_export,                       &[400, 404]),
        route(&get,    "/api/v1/exports/{id}/content",                User,        exports::get_export_content,               &[400, 404]),
        route(&post,   "/api/v1/exports/{id}/retry",                  Admin,       exports::retry_export,                     &[400, 404, 409, 507]),
        route(&post,   "/api/v1/exports/{id}/park",                   Admin,       exports::park_export,                      &[400, 404, 409, 507]),
        route(&post,   "/api/v1/exports/{id}/replay",                 Admin,       exports::replay_export,                    &[400, 404, 409, 507]),
        route(&get,    "/api/v1/targets",                             User,        targets::list_targets,                     &[400]),
        route(&post,   "/api/v1/targets/{bucketName}/test",           Admin,       targets::test_target,                      &[400, 404]),
        route(&get,    "/api/v1/limits",                              User,        limits::get_limits,                        &[400]),
        route(&get,    "/api/v1/status",                              User,        status::get_status,                        &[400]),
        route(&get,    "/api/v1/users",                               Admin,       users::list_users,                         &[400]),
        route(&post,   "/api/v1/users",                               Admin,       users::create_user,                        &[400, 408, 409, 413, 415, 422, 507]),
        // Before the routes with an id, since the router takes the first match.
        route(&get,    "/api/v1/users/me",                            User,        users::get_own_user,                       &[400, 404]),
        route(&put,    "/api/v1/users/me",                            User,        users::replace_own_user,                   &[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        route(&post,   "/api/v1/users/me/password",                   User,        users::set_own_password,                   &[400, 404, 408, 409, 413, 415, 422, 507]),
        route(&get,    "/api/v1/users/{id}",                          Admin,       users::get_user,                           &[400, 404]),
        route(&put,    "/api/v1/users/{id}",                          Admin,       users::replace_user,                       &[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        route(&delete, "/api/v1/users/{id}",                          Admin,       users::delete_user,                        &[400, 404, 409, 412, 507]),
        route(&post,   "/api/v1/users/{id}/password",                 Admin,       users::set_user_password,                  &[400, 404, 408, 409, 413, 415, 422, 507]),
        route(&get,    "/api/v1/api-keys",                            User,        api_keys::list_api_keys,                   &[400]),
        route(&post,   "/api/v1/api-keys",                            User,        api_keys::create_api_key,                  &[400, 408, 409, 413, 415, 422, 507]),
        route(&get,    "/api/v1/api-keys/{id}",                       User,        api_keys::get_api_key,                     &[400, 404]),
        route(&delete, "/api/v1/api-keys/{id}",                       User,        api_keys::revoke_api_key,                  &[400, 404, 507]),
        route(&get,    "/api/v1/audit",                               Admin,       audit::list_audit,                         &[400]),
        route(&post,   "/graphql",                                    User,        graphql::execute_post,                     &[400, 406, 408, 413, 415]),
        route(&get,    "/graphql",                                    User,        graphql::execute_get,                      &[400, 405, 406, 413]),
        route(&get,    "/graphql/schema.graphql",                     User,        graphql::get_graphql_schema,               &[400]),
        route(&get,    "/api/v1/events",                              User,        events::listen_to_events,                  &[400]),
        // `build_fallback` handles every other address that is a minted URI.
        route(&get,    "/id/{namespace}/{local}",                     User,        identifiers::resolve_identifier,           &[404, 406, 413]),
        route(&get,    "/health/live",                                Anyone,      health::get_liveness,                      &[]),
        route(&get,    "/health/ready",                               Anyone,      health::get_readiness,                     &[]),
        route(&get,    "/metrics",                                    Metrics,     metrics::get_metrics,                      &[]),
        route(&get,    "/login",                                      Anyone,      sign_in::show_sign_in,                     &[]),
        route(&post,   "/login",                                      Anyone,      sign_in::sign_in,                          &[400, 401, 404, 408, 413, 415, 429]),
        route(&post,   "/logout",                                     Anyone,      sign_in::sign_out,                         &[400, 408, 413]),
    ]
}

/// Returns the routes that are not part of the API and not in the OpenAPI document.
#[rustfmt::skip]
fn other_routes() -> Vec<Route> {
    use MinimumRole::{Anyone, Local};
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(&get,  "/",                                      Anyone, sign_in::front,            &[]),
        route(&get,  "/signed-out",                            Anyone, sign_in::signed_out,       &[]),
        route(&get,  "/oauth2/authorization/{registrationId}", Anyone, sign_in::authorize,        &[]),
        route(&get,  "/login/oauth2/code/{registrationId}",    Anyone, sign_in::complete,         &[]),
        route(&get,  "/control/clock",                         Local,  clock::get,                &[]),
        route(&post, "/control/clock/reset",                   Local,  clock::reset,              &[]),
        route(&get,  "/control/backup",                        Local,  backup::get,               &[]),
        route(&get,  "/control/dump",                          Local,  rdf::dump,                 &[]),
        route(&post, "/control/load",                          Local,  rdf::load,                 &[]),
        route(&get,  "/api-doc/openapi.json",                  Anyone, docs::Document::default(), &[]),
        route(&get,  "/swagger-ui/{**rest}",                   Anyone, docs::swagger,             &[]),
    ]
}

/// Returns the routes of the administration interface. A POST sends a form.
#[rustfmt::skip]
fn page_routes() -> Vec<Route> {
    use MinimumRole::{Admin, Anyone, Contributor, User};
    let (get, post) = (Method::GET, Method::POST);
    vec![
        page_route(&get,  "/admin",                              User,        admin::overview::get),
        page_route(&get,  "/admin/assets/{hash}/{name}",         Anyone,      admin::assets::get),
        page_route(&get,  "/admin/profile",                      User,        admin::profile::get),
        page_route(&post, "/admin/profile",                      User,        admin::profile::change),
        page_route(&post, "/admin/profile/password",             User,        admin::profile::set),
        page_route(&get,  "/admin/namespaces",                   User,        admin::namespaces::list),
        page_route(&get,  "/admin/namespaces/{name}",            User,        admin::namespaces::one),
        page_route(&post, "/admin/namespaces/{name}",            Contributor, admin::namespaces::change),
        page_route(&get,  "/admin/namespaces/{name}/delete",     Contributor, admin::namespaces::deletion),
        page_route(&post, "/admin/namespaces/{name}/delete",     Contributor, admin::namespaces::delete),
        // Not `/admin/namespaces/new`, because a namespace may be named `new`.
        page_route(&get,  "/admin/new-namespace",                Contributor, admin::namespaces::creation),
        page_route(&post, "/admin/new-namespace",                Contributor, admin::namespaces::create),
        page_route(&get,  "/admin/keys",                         User,        admin::keys::list),
        page_route(&get,  "/admin/keys/new",                     User,        admin::keys::creation),
        page_route(&post, "/admin/keys/new",                     User,        admin::keys::create),
        page_route(&get,  "/admin/keys/{id}/revoke",             User,        admin::keys::revocation),
        page_route(&post, "/admin/keys/{id}/revoke",             User,        admin::keys::end),
        page_route(&get,  "/admin/users",                        Admin,       admin::users::list),
        page_route(&get,  "/admin/users/new",                    Admin,       admin::users::creation),
        page_route(&post, "/admin/users/new",                    Admin,       admin::users::create),
        page_route(&get,  "/admin/users/{id}",                   Admin,       admin::users::one),
        page_route(&post, "/admin/users/{id}",                   Admin,       admin::users::change),
        page_route(&post, "/admin/users/{id}/password",          Admin,       admin::users::set),
        page_route(&get,  "/admin/users/{id}/delete",            Admin,       admin::users::deletion),
        page_route(&post, "/admin/users/{id}/delete",            Admin,       admin::users::delete),
        page_route(&get,  "/admin/audit",                        Admin,       admin::audit::get),
        page_route(&get,  "/admin/settings",                     Admin,       admin::settings::get),
        page_route(&get,  "/admin/business-objects",             User,        admin::business_objects::list),
        // Before the routes with an id, since the router takes the first match.
        page_route(&get,  "/admin/business-objects/derive",      Admin,       admin::samples::get),
        page_route(&post, "/admin/business-objects/derive",      Admin,       admin::samples::post),
        page_route(&get,  "/admin/business-objects/new",         Admin,       admin::editor::new),
        page_route(&post, "/admin/business-objects/new",         Admin,       admin::editor::create),
        page_route(&post, "/admin/business-objects/check",       Admin,       admin::check::check),
        page_route(&get,  "/admin/business-objects/{id}",        User,        admin::business_objects::get),
        page_route(&get,  "/admin/business-objects/{id}/edit",   Admin,       admin::editor::edit),
        page_route(&post, "/admin/business-objects/{id}/edit",   Admin,       admin::editor::save),
        page_route(&get,  "/admin/business-objects/{id}/delete", Admin,       admin::business_objects::ask_delete),
        page_route(&post, "/admin/business-objects/{id}/delete", Admin,       admin::business_objects::delete),
        page_route(&post, "/admin/business-objects/{id}/push",   Contributor, admin::business_objects::push),
        page_route(&get,  "/admin/object",                       User,        admin::objects::get),
        page_route(&get,  "/admin/objects/{id}",                 User,        admin::objects::list),
        page_route(&get,  "/admin/exports",                      User,        admin::exports::list),
        page_route(&get,  "/admin/exports/{id}",                 User,        admin::exports::get),
        page_route(&post, "/admin/exports/{id}/retry",           Admin,       admin::exports::retry),
        page_route(&post, "/admin/exports/{id}/park",            Admin,       admin::exports::park),
        page_route(&post, "/admin/exports/{id}/replay",          Admin,       admin::exports::replay),
        page_route(&get,  "/admin/targets",                      User,        admin::targets::list),
        page_route(&post, "/admin/targets/{bucketName}/test",    Admin,       admin::targets::test),
        page_route(&get,  "/admin/query",                        User,        admin::query::get),
        page_route(&post, "/admin/query",                        User,        admin::query::post),
    ]
}

fn page_route(
    method: &Method,
    path: &'static str,
    minimum_role: MinimumRole,
    handler: impl Handler,
) -> Route {
    Route { is_page: true, ..route(method, path, minimum_role, handler, &[]) }
}

fn route(
    method: &Method,
    path: &'static str,
    minimum_role: MinimumRole,
    handler: impl Handler,
    problems: &'static [u16],
) -> Route {
    Route {
        method: method.clone(),
        path,
        minimum_role,
        handler: Arc::new(handler),
        problems,
        is_page: false,
    }
}

impl Route {
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
        if self.is_page && self.method == Method::POST {
            // Only Admins send definitions, which are long.
            router = router
                .hoop(FormReader { accepts_definition: self.minimum_role == MinimumRole::Admin });
        }
        router.goal = Some(self.handler.clone());
        router
    }

    /// Returns the router of this route, for its own method only.
    pub(super) fn to_router(&self) -> Router {
        self.build_router(self.method.clone())
    }
}

/// Returns the method, path and minimum role of every route. Besides roles there are `Anyone`, `Local` (only
/// the control socket) and `Metrics`.
pub fn list_routes() -> Vec<(String, &'static str, String)> {
    let all = api_routes().into_iter().chain(other_routes()).chain(page_routes());
    all.map(|route| (route.method.to_string(), route.path, format!("{:?}", route.minimum_role)))
        .collect()
}

/// Builds the router of all routes, with `HEAD` for every `GET` that only reads.
pub(super) fn build_router() -> Router {
    let mut router = Router::new();
    for route in api_routes().into_iter().chain(other_routes()).chain(page_routes()) {
        router = router.push(route.to_router());
        if route.method == Method::GET && !has_side_effects(&route.method, route.path) {
            router = router.push(route.build_router(Method::HEAD));
        }
    }
    router
}

/// Builds the router for all other addresses: any of them can be a minted URI of an object.
pub(super) fn build_fallback() -> Router {
    Router::with_path("{**rest}")
        .filter_fn(|req, _| {
            matches!(*req.method(), Method::GET | Method::HEAD)
                && !req.uri().path().starts_with("/api/")
        })
        .hoop(Allow::new(MinimumRole::User, &Method::GET, "/{**rest}"))
        .goal(identifiers::resolve_identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let all = Router::new().push(build_router()).push(build_fallback());
        assert!(assert_guarded(&all, false) > api_routes().len());
    }
}
