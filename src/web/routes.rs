//! The table of contents of the pages: every route, its minimum role and its handler. `access` enforces the roles.
use crate::admin::form::FormReader;
use crate::{admin, sign_in};
use penstock_http::access::MinimumRole;
use penstock_http::router::{self, Route, hidden_route, route};
use salvo::Handler;
use salvo::http::Method;

/// Returns the routes to sign in and out. The OpenAPI document describes those that programs use.
#[rustfmt::skip]
pub fn sign_in_routes() -> Vec<Route> {
    use MinimumRole::Anyone;
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(&get, "/login", Anyone, sign_in::show_sign_in, &[]),
        route(&post, "/login", Anyone, sign_in::sign_in, &[400, 401, 404, 408, 413, 415, 429]),
        route(&post, "/logout", Anyone, sign_in::sign_out, &[400, 408, 413]),
        hidden_route(&get,  "/",                                      Anyone, sign_in::front),
        hidden_route(&get,  "/signed-out",                            Anyone, sign_in::signed_out),
        hidden_route(&get,  "/oauth2/authorization/{registrationId}", Anyone, sign_in::authorize),
        hidden_route(&get,  "/login/oauth2/code/{registrationId}",    Anyone, sign_in::complete),
    ]
}

/// Returns the routes of the administration interface. A POST sends a form.
#[rustfmt::skip]
pub fn page_routes() -> Vec<Route> {
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
    // Only Admins send definitions, which are long.
    let reader = FormReader { accepts_definition: minimum_role == MinimumRole::Admin };
    router::page_route(method, path, minimum_role, handler, reader)
}
