//! The table of contents: every route, its minimum role, its handler, and the problems that it can answer
//! besides those of every route (see `openapi`). `access` enforces the roles.
use super::access::{Allow, Least, acts};
use super::admin::form::Sent;
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
    pub(super) least: Least,
    pub(super) handler: Arc<dyn Handler>,
    /// Statuses of the problems that the route can answer.
    pub(super) problems: &'static [u16],
    /// Whether the route belongs to the administration interface.
    is_page: bool,
}

/// Returns every route of the API.
#[rustfmt::skip]
pub(super) fn table() -> Vec<Route> {
    use Least::{Admin, Anyone, Contributor, Metrics, User};
    let (get, put, post, delete) = (Method::GET, Method::PUT, Method::POST, Method::DELETE);
    vec![
        // Most requested, so they come first: the router takes the first match.
        route(&get,    "/api/v1/business-objects/{id}/objects",       User,        objects::list,             &[400, 404, 413]),
        route(&get,    "/api/v1/business-objects/{id}/objects/{uri}", User,        objects::get,              &[400, 404, 413]),
        route(&get,    "/api/v1/business-objects",                    User,        business_objects::list,    &[400]),
        route(&put,    "/api/v1/business-objects",                    Admin,       business_objects::put,     &[400, 408, 409, 412, 413, 415, 422, 507]),
        route(&get,    "/api/v1/business-objects/{id}",               User,        business_objects::get,     &[400, 404]),
        route(&put,    "/api/v1/business-objects/{id}",               Admin,       business_objects::replace, &[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        route(&delete, "/api/v1/business-objects/{id}",               Admin,       business_objects::delete,  &[400, 404, 409, 412, 507]),
        route(&post,   "/api/v1/business-objects/{id}",               Contributor, ingest::ingest,            &[400, 404, 408, 409, 413, 415, 422, 507]),
        route(&get,    "/api/v1/business-objects/{id}/push",          Contributor, push::get,                 &[400, 404, 409, 413, 422, 507]),
        route(&post,   "/api/v1/business-objects/{id}/push",          Contributor, push::post,                &[400, 404, 409, 413, 422, 507]),
        route(&get,    "/api/v1/business-objects/{id}/schema",        User,        schema::get,               &[400, 404]),
        route(&get,    "/api/v1/ingestions",                          User,        ingestions::list,          &[400]),
        route(&get,    "/api/v1/ingestions/{id}",                     User,        ingestions::get,           &[400, 404]),
        route(&get,    "/api/v1/namespaces",                          User,        namespaces::list,          &[400]),
        route(&get,    "/api/v1/namespaces/{name}",                   User,        namespaces::get,           &[400, 404]),
        route(&put,    "/api/v1/namespaces/{name}",                   Contributor, namespaces::put,           &[400, 408, 409, 413, 415, 422, 507]),
        route(&delete, "/api/v1/namespaces/{name}",                   Contributor, namespaces::delete,        &[400, 404, 409, 422, 507]),
        route(&get,    "/api/v1/exports",                             User,        exports::list,             &[400]),
        route(&get,    "/api/v1/exports/{id}",                        User,        exports::get,              &[400, 404]),
        route(&get,    "/api/v1/exports/{id}/content",                User,        exports::content,          &[400, 404]),
        route(&post,   "/api/v1/exports/{id}/retry",                  Admin,       exports::retry,            &[400, 404, 409, 507]),
        route(&post,   "/api/v1/exports/{id}/park",                   Admin,       exports::park,             &[400, 404, 409, 507]),
        route(&post,   "/api/v1/exports/{id}/replay",                 Admin,       exports::replay,           &[400, 404, 409, 507]),
        route(&get,    "/api/v1/targets",                             User,        targets::list,             &[400]),
        route(&post,   "/api/v1/targets/{bucketName}/test",           Admin,       targets::test,             &[400, 404]),
        route(&get,    "/api/v1/limits",                              User,        limits::get,               &[400]),
        route(&get,    "/api/v1/status",                              User,        status::get,               &[400]),
        route(&get,    "/api/v1/users",                               Admin,       users::list,               &[400]),
        route(&post,   "/api/v1/users",                               Admin,       users::create,             &[400, 408, 409, 413, 415, 422, 507]),
        // Before the routes with an id, since the router takes the first match.
        route(&get,    "/api/v1/users/me",                            User,        users::me,                 &[400, 404]),
        route(&put,    "/api/v1/users/me",                            User,        users::replace_me,         &[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        route(&post,   "/api/v1/users/me/password",                   User,        users::own_password,       &[400, 404, 408, 409, 413, 415, 422, 507]),
        route(&get,    "/api/v1/users/{id}",                          Admin,       users::get,                &[400, 404]),
        route(&put,    "/api/v1/users/{id}",                          Admin,       users::replace,            &[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        route(&delete, "/api/v1/users/{id}",                          Admin,       users::delete,             &[400, 404, 409, 412, 507]),
        route(&post,   "/api/v1/users/{id}/password",                 Admin,       users::others_password,    &[400, 404, 408, 409, 413, 415, 422, 507]),
        route(&get,    "/api/v1/api-keys",                            User,        api_keys::list,            &[400]),
        route(&post,   "/api/v1/api-keys",                            User,        api_keys::create,          &[400, 408, 409, 413, 415, 422, 507]),
        route(&get,    "/api/v1/api-keys/{id}",                       User,        api_keys::get,             &[400, 404]),
        route(&delete, "/api/v1/api-keys/{id}",                       User,        api_keys::delete,          &[400, 404, 507]),
        route(&get,    "/api/v1/audit",                               Admin,       audit::list,               &[400]),
        route(&post,   "/graphql",                                    User,        graphql::post,             &[400, 406, 408, 413, 415]),
        route(&get,    "/graphql",                                    User,        graphql::get,              &[400, 405, 406, 413]),
        route(&get,    "/graphql/schema.graphql",                     User,        graphql::schema,           &[400]),
        route(&get,    "/api/v1/events",                              User,        events::get,               &[400]),
        // `fallback` handles every other address that is a minted URI.
        route(&get,    "/id/{namespace}/{local}",                     User,        identifiers::get,          &[404, 406, 413]),
        route(&get,    "/health/live",                                Anyone,      health::live,              &[]),
        route(&get,    "/health/ready",                               Anyone,      health::ready,             &[]),
        route(&get,    "/metrics",                                    Metrics,     metrics::get,              &[]),
        route(&get,    "/login",                                      Anyone,      sign_in::show,             &[]),
        route(&post,   "/login",                                      Anyone,      sign_in::sign_in,          &[400, 401, 404, 408, 413, 415, 429]),
        route(&post,   "/logout",                                     Anyone,      sign_in::sign_out,         &[400, 408, 413]),
    ]
}

/// Returns the routes that are not part of the API and not in the OpenAPI document.
#[rustfmt::skip]
fn beside() -> Vec<Route> {
    use Least::{Anyone, Local};
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(&get,  "/",                                       Anyone, sign_in::front,      &[]),
        route(&get,  "/signed-out",                             Anyone, sign_in::signed_out, &[]),
        route(&get,  "/oauth2/authorization/{registrationId}",  Anyone, sign_in::authorize,  &[]),
        route(&get,  "/login/oauth2/code/{registrationId}",     Anyone, sign_in::complete,   &[]),
        route(&get,  "/control/clock",                          Local,  clock::get,          &[]),
        route(&post, "/control/clock/reset",                    Local,  clock::reset,        &[]),
        route(&get, "/control/backup",         Local,  backup::get,                    &[]),
        route(&get, "/control/dump",           Local,  rdf::dump,                      &[]),
        route(&post, "/control/load",          Local,  rdf::load,                      &[]),
        route(&get, "/api-doc/openapi.json",   Anyone, docs::Document::default(), &[]),
        route(&get, "/swagger-ui/{**rest}",    Anyone, docs::swagger,                  &[]),
    ]
}

/// Returns the routes of the administration interface. A POST sends a form.
#[rustfmt::skip]
fn pages() -> Vec<Route> {
    use Least::{Admin, Anyone, Contributor, User};
    let (get, post) = (Method::GET, Method::POST);
    vec![
        page(&get,  "/admin",                           User,        admin::overview::get),
        page(&get,  "/admin/assets/{hash}/{name}",      Anyone,      admin::assets::get),
        page(&get,  "/admin/profile",                   User,        admin::profile::get),
        page(&post, "/admin/profile",                   User,        admin::profile::change),
        page(&post, "/admin/profile/password",          User,        admin::profile::set),
        page(&get,  "/admin/namespaces",                User,        admin::namespaces::list),
        page(&get,  "/admin/namespaces/{name}",         User,        admin::namespaces::one),
        page(&post, "/admin/namespaces/{name}",         Contributor, admin::namespaces::change),
        page(&get,  "/admin/namespaces/{name}/delete",  Contributor, admin::namespaces::deletion),
        page(&post, "/admin/namespaces/{name}/delete",  Contributor, admin::namespaces::delete),
        // Not below the list, since a namespace may be named `new`.
        page(&get,  "/admin/new-namespace",             Contributor, admin::namespaces::creation),
        page(&post, "/admin/new-namespace",             Contributor, admin::namespaces::create),
        page(&get,  "/admin/keys",                      User,        admin::keys::list),
        page(&get,  "/admin/keys/new",                  User,        admin::keys::creation),
        page(&post, "/admin/keys/new",                  User,        admin::keys::create),
        page(&get,  "/admin/keys/{id}/revoke",          User,        admin::keys::revocation),
        page(&post, "/admin/keys/{id}/revoke",          User,        admin::keys::end),
        page(&get,  "/admin/users",                     Admin,       admin::users::list),
        page(&get,  "/admin/users/new",                 Admin,       admin::users::creation),
        page(&post, "/admin/users/new",                 Admin,       admin::users::create),
        page(&get,  "/admin/users/{id}",                Admin,       admin::users::one),
        page(&post, "/admin/users/{id}",                Admin,       admin::users::change),
        page(&post, "/admin/users/{id}/password",       Admin,       admin::users::set),
        page(&get,  "/admin/users/{id}/delete",         Admin,       admin::users::deletion),
        page(&post, "/admin/users/{id}/delete",         Admin,       admin::users::delete),
        page(&get,  "/admin/audit",                     Admin,       admin::audit::get),
        page(&get,  "/admin/settings",                  Admin,       admin::settings::get),
        page(&get,  "/admin/business-objects",                       User,        admin::business_objects::list),
        // Before the routes with an id, since the router takes the first match.
        page(&get,  "/admin/business-objects/derive",                Admin,       admin::samples::get),
        page(&post, "/admin/business-objects/derive",                Admin,       admin::samples::post),
        page(&get,  "/admin/business-objects/new",                   Admin,       admin::editor::new),
        page(&post, "/admin/business-objects/new",                   Admin,       admin::editor::create),
        page(&post, "/admin/business-objects/check",                 Admin,       admin::check::check),
        page(&get,  "/admin/business-objects/{id}",                  User,        admin::business_objects::get),
        page(&get,  "/admin/business-objects/{id}/edit",             Admin,       admin::editor::edit),
        page(&post, "/admin/business-objects/{id}/edit",             Admin,       admin::editor::save),
        page(&get,  "/admin/business-objects/{id}/delete",           Admin,       admin::business_objects::ask_delete),
        page(&post, "/admin/business-objects/{id}/delete",           Admin,       admin::business_objects::delete),
        page(&post, "/admin/business-objects/{id}/push",             Contributor, admin::business_objects::push),
        page(&get,  "/admin/object",                                 User,        admin::objects::get),
        page(&get,  "/admin/objects/{id}",                           User,        admin::objects::list),
        page(&get,  "/admin/exports",                                User,        admin::exports::list),
        page(&get,  "/admin/exports/{id}",                           User,        admin::exports::get),
        page(&post, "/admin/exports/{id}/retry",                     Admin,       admin::exports::retry),
        page(&post, "/admin/exports/{id}/park",                      Admin,       admin::exports::park),
        page(&post, "/admin/exports/{id}/replay",                    Admin,       admin::exports::replay),
        page(&get,  "/admin/targets",                                User,        admin::targets::list),
        page(&post, "/admin/targets/{bucketName}/test",              Admin,       admin::targets::test),
        page(&get,  "/admin/query",                                  User,        admin::query::get),
        page(&post, "/admin/query",                                  User,        admin::query::post),
    ]
}

fn page(method: &Method, path: &'static str, least: Least, handler: impl Handler) -> Route {
    Route { is_page: true, ..route(method, path, least, handler, &[]) }
}

fn route(
    method: &Method,
    path: &'static str,
    least: Least,
    handler: impl Handler,
    problems: &'static [u16],
) -> Route {
    Route {
        method: method.clone(),
        path,
        least,
        handler: Arc::new(handler),
        problems,
        is_page: false,
    }
}

impl Route {
    fn answers(&self, method: Method) -> Router {
        // A router without a path matches the path of its parent, here the start page.
        let router = match self.path {
            "/" => Router::new(),
            path => Router::with_path(path),
        };
        let allow = if self.is_page {
            Allow::page(self.least)
        } else {
            Allow::new(self.least, &self.method, self.path)
        };
        let mut router = router.filter(MethodFilter::new(method)).hoop(allow);
        if self.is_page && self.method == Method::POST {
            // Only Admins send definitions, which are long.
            router = router.hoop(Sent { is_long: self.least == Least::Admin });
        }
        router.goal = Some(self.handler.clone());
        router
    }

    /// Returns the router of this route, for its own method only.
    pub(super) fn router(&self) -> Router {
        self.answers(self.method.clone())
    }
}

/// Returns the method, path and minimum role of every route. Besides roles there are `Anyone`, `Local` (only
/// the control socket) and `Metrics`.
pub fn routes() -> Vec<(String, &'static str, String)> {
    let all = table().into_iter().chain(beside()).chain(pages());
    all.map(|route| (route.method.to_string(), route.path, format!("{:?}", route.least))).collect()
}

/// Builds the router of all routes, with `HEAD` for every `GET` that only reads.
pub(super) fn router() -> Router {
    let mut router = Router::new();
    for route in table().into_iter().chain(beside()).chain(pages()) {
        router = router.push(route.router());
        if route.method == Method::GET && !acts(&route.method, route.path) {
            router = router.push(route.answers(Method::HEAD));
        }
    }
    router
}

/// Builds the router for all other addresses: any of them can be a minted URI of an object.
pub(super) fn fallback() -> Router {
    Router::with_path("{**rest}")
        .filter_fn(|req, _| {
            matches!(*req.method(), Method::GET | Method::HEAD)
                && !req.uri().path().starts_with("/api/")
        })
        .hoop(Allow::new(Least::User, &Method::GET, "/{**rest}"))
        .goal(identifiers::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that an `Allow` runs before every goal. Returns the number of goals.
    fn count_guarded(router: &Router, above: bool) -> usize {
        let allow = std::any::type_name::<Allow>();
        let here = above || router.hoops().iter().any(|hoop| hoop.type_name() == allow);
        assert!(router.goal.is_none() || here, "no Allow before {router:?}");
        let below =
            router.routers().iter().map(|router| count_guarded(router, here)).sum::<usize>();
        below + usize::from(router.goal.is_some())
    }

    #[test]
    fn access_runs_before_every_handler() {
        let all = Router::new().push(router()).push(fallback());
        assert!(count_guarded(&all, false) > table().len());
    }
}
