//! The table of contents of the API: every route, its minimum role, its handler, and the statuses of its problems,
//! besides those that every route can have (see `openapi`). `access` enforces the roles.
use crate::{
    api_keys, audit, backup, business_objects, changes, clock, definitions, docs, events, exports,
    graphql, groups, health, identifiers, ingest, ingestions, limits, mapping_shapes, metrics,
    namespaces, objects, push, rdf, rejected, schema, shapes_graphs, sources, sparql, status,
    targets, users, validations, webhooks,
};
use penstock_http::access::MinimumRole;
use penstock_http::router::{Route, hidden_route, route};
use salvo::Handler;
use salvo::http::Method;
use std::sync::Arc;

/// Returns the routes of the API.
#[rustfmt::skip]
pub fn api_routes() -> Vec<Route> {
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
        route(&post,   "/api/v1/business-objects/{id}",               Contributor, ingest::ingest_objects,                    &[400, 404, 408, 409, 412, 413, 415, 422, 503, 507]),
        route(&get,    "/api/v1/business-objects/{id}/push",          Contributor, push::push_by_get,                         &[400, 404, 409, 413, 422, 507]),
        route(&post,   "/api/v1/business-objects/{id}/push",          Contributor, push::push_by_post,                        &[400, 404, 409, 413, 422, 507]),
        route(&get,    "/api/v1/business-objects/{id}/schema",        User,        schema::get_schema,                        &[400, 404]),
        route(&get,    "/api/v1/business-objects/{id}/shapes",        User,        mapping_shapes::get_shapes,                &[400, 404, 406, 422]),
        route(&post,   "/api/v1/business-objects/{id}/validation",    Contributor, validations::start_validation,             &[400, 404, 409, 507]),
        route(&get,    "/api/v1/validations",                         User,        validations::list_validations,             &[400]),
        route(&get,    "/api/v1/validations/{id}",                    User,        validations::get_validation,               &[400, 404, 406, 409]),
        route(&delete, "/api/v1/validations/{id}",                    Contributor, validations::cancel_validation,            &[400, 404, 409]),
        route(&get,    "/api/v1/ingestions",                          User,        ingestions::list_ingestions,               &[400]),
        route(&get,    "/api/v1/ingestions/{id}",                     User,        ingestions::get_ingestion,                 &[400, 404]),
        route(&get,    "/api/v1/ingestions/{id}/rejected",            Contributor, rejected::list_rejected,                   &[400, 404]),
        route(&post,   "/api/v1/ingestions/{id}/rejected/{letter}/retry", Contributor, rejected::retry_rejected,              &[400, 404, 408, 409, 413, 415, 422, 503, 507]),
        route(&delete, "/api/v1/ingestions/{id}/rejected/{letter}",   Contributor, rejected::delete_rejected,                 &[400, 404, 507]),
        route(&get,    "/api/v1/namespaces",                          User,        namespaces::list_namespaces,               &[400]),
        route(&get,    "/api/v1/namespaces/{name}",                   User,        namespaces::get_namespace,                 &[400, 404]),
        route(&put,    "/api/v1/namespaces/{name}",                   Contributor, namespaces::put_namespace,                 &[400, 408, 409, 412, 413, 415, 422, 507]),
        route(&delete, "/api/v1/namespaces/{name}",                   Contributor, namespaces::delete_namespace,              &[400, 404, 409, 412, 422, 507]),
        route(&get,    "/api/v1/shapes",                              User,        shapes_graphs::list_shapes_graphs,         &[400]),
        route(&get,    "/api/v1/shapes/{name}",                       User,        shapes_graphs::get_shapes_graph,           &[400, 404, 406]),
        route(&put,    "/api/v1/shapes/{name}",                       Admin,       shapes_graphs::put_shapes_graph,           &[400, 408, 409, 412, 413, 415, 422, 507]),
        route(&delete, "/api/v1/shapes/{name}",                       Admin,       shapes_graphs::delete_shapes_graph,        &[400, 404, 409, 412, 507]),
        route(&get,    "/api/v1/changes",                             User,        changes::list_changes,                     &[400]),
        route(&get,    "/api/v1/changes/{id}",                        User,        changes::get_change,                       &[400, 404, 409, 413]),
        route(&post,   "/api/v1/changes/{id}/submit",                 User,        changes::submit_change,                    &[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        route(&post,   "/api/v1/changes/{id}/approve",                Contributor, changes::approve_change,                   &[400, 404, 408, 409, 412, 413, 415, 422, 428, 507]),
        route(&post,   "/api/v1/changes/{id}/reject",                 Contributor, changes::reject_change,                    &[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        route(&post,   "/api/v1/changes/{id}/withdraw",               User,        changes::withdraw_change,                  &[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        route(&post,   "/api/v1/changes/{id}/rebase",                 User,        changes::rebase_change,                    &[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        route(&get,    "/api/v1/groups",                              User,        groups::list_groups,                       &[400]),
        route(&get,    "/api/v1/groups/{name}",                       User,        groups::get_group,                         &[400, 404]),
        route(&put,    "/api/v1/groups/{name}",                       Admin,       groups::put_group,                         &[400, 408, 409, 412, 413, 415, 422, 507]),
        route(&delete, "/api/v1/groups/{name}",                       Admin,       groups::delete_group,                      &[400, 404, 409, 412, 507]),
        route(&get,    "/api/v1/exports",                             User,        exports::list_exports,                     &[400]),
        route(&get,    "/api/v1/exports/{id}",                        User,        exports::get_export,                       &[400, 404]),
        route(&get,    "/api/v1/exports/{id}/content",                User,        exports::get_export_content,               &[400, 404]),
        route(&post,   "/api/v1/exports/{id}/retry",                  Admin,       exports::retry_export,                     &[400, 404, 409, 507]),
        route(&post,   "/api/v1/exports/{id}/park",                   Admin,       exports::park_export,                      &[400, 404, 409, 507]),
        route(&post,   "/api/v1/exports/{id}/replay",                 Admin,       exports::replay_export,                    &[400, 404, 409, 507]),
        route(&get,    "/api/v1/targets",                             User,        targets::list_targets,                     &[400]),
        route(&post,   "/api/v1/targets/{bucketName}/test",           Admin,       targets::test_target,                      &[400, 404]),
        route(&get,    "/api/v1/sources",                             User,        sources::list_sources,                     &[400]),
        route(&get,    "/api/v1/sources/{name}",                      User,        sources::get_source,                       &[400, 404]),
        route(&post,   "/api/v1/sources/{name}/test",                 Admin,       sources::test_source,                      &[400, 404]),
        route(&get,    "/api/v1/sources/{name}/rejected",             Contributor, rejected::list_source_rejected,            &[400, 404]),
        route(&post,   "/api/v1/sources/{name}/rejected/{letter}/retry", Contributor, rejected::retry_source_rejected,        &[400, 404, 408, 409, 413, 415, 422, 503, 507]),
        route(&delete, "/api/v1/sources/{name}/rejected/{letter}",    Contributor, rejected::delete_source_rejected,          &[400, 404, 507]),
        route(&get,    "/api/v1/webhooks",                            Admin,       webhooks::list_webhooks,                   &[400]),
        route(&post,   "/api/v1/webhooks/{name}/test",                Admin,       webhooks::test_webhook,                    &[400, 404]),
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
        route(&get,    "/sparql",                                     User,        sparql::query_by_get,                      &[400, 406, 422]),
        route(&post,   "/sparql",                                     User,        sparql::query_by_post,                     &[400, 406, 408, 413, 415, 422]),
        route(&post,   "/sparql/update",                              Admin,       sparql::update,                            &[400, 404, 408, 409, 413, 415, 422, 507]),
        route(&get,    "/sparql/graphs",                              User,        sparql::graphs::get_graph,                 &[400, 404, 406, 422]),
        route(&put,    "/sparql/graphs",                              Admin,       sparql::graphs::put_graph,                 &[400, 408, 409, 412, 413, 415, 422, 507]),
        route(&post,   "/sparql/graphs",                              Admin,       sparql::graphs::post_graph,                &[400, 408, 409, 412, 413, 415, 422, 507]),
        route(&delete, "/sparql/graphs",                              Admin,       sparql::graphs::delete_graph,              &[400, 404, 409, 412, 413, 422, 507]),
        route(&get,    "/api/v1/events",                              User,        events::listen_to_events,                  &[400]),
        // `object_handler` handles every other address that is a minted URI.
        route(&get,    "/id/{namespace}/{local}",                     User,        identifiers::resolve_identifier,           &[404, 406, 413]),
        route(&get,    "/health/live",                                Anyone,      health::get_liveness,                      &[]),
        route(&get,    "/health/ready",                               Anyone,      health::get_readiness,                     &[]),
        route(&get,    "/metrics",                                    Metrics,     metrics::get_metrics,                      &[]),
    ]
}

/// Returns the routes of the control socket.
#[rustfmt::skip]
pub fn control_routes() -> Vec<Route> {
    use MinimumRole::Local;
    let (get, post) = (Method::GET, Method::POST);
    vec![
        hidden_route(&get,  "/control/clock",                         Local,  clock::get),
        hidden_route(&post, "/control/clock/reset",                   Local,  clock::reset),
        hidden_route(&get,  "/control/backup",                        Local,  backup::stream_backup),
        hidden_route(&get,  "/control/dump",                          Local,  rdf::dump_graph),
        hidden_route(&post, "/control/query",                         Local,  sparql::query_locally),
        hidden_route(&post, "/control/definitions",                   Local,  definitions::apply_definitions),
        hidden_route(&post, "/control/load",                          Local,  rdf::load_document),
    ]
}

/// Returns the routes of the OpenAPI document and of the Swagger UI. The document describes `routes`.
pub fn document_routes(routes: &[Route]) -> Vec<Route> {
    use MinimumRole::Anyone;
    let documented = routes.iter().filter(|route| route.is_documented).cloned().collect();
    let document = docs::Document::new(documented);
    vec![
        hidden_route(&Method::GET, "/api-doc/openapi.json", Anyone, document),
        hidden_route(&Method::GET, "/swagger-ui/{**rest}", Anyone, docs::get_swagger_file),
    ]
}

/// Returns the handler of minted URIs whose path is not in the table.
pub fn object_handler() -> Arc<dyn Handler> {
    Arc::new(identifiers::resolve_identifier)
}
