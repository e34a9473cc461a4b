//! The table of contents of the API: the operations of each file. `access` enforces their roles.
use crate::{
    api_keys, audit, backup, business_objects, changes, clock, definitions, docs, events, exports,
    graphql, groups, health, identifiers, ingest, ingestions, limits, mapping_shapes, metrics,
    namespaces, objects, push, rdf, rejected, schema, shapes_graphs, sources, sparql, status,
    targets, users, validations, views, webhooks,
};
use penstock_http::access::MinimumRole::Anyone;
use penstock_http::operation::Operation;
use penstock_http::router::{Route, plain_route};
use salvo::Handler;
use salvo::http::Method;
use std::sync::Arc;

/// Returns the operations of the API. The router takes the first match, so those that are requested most often come
/// first.
pub fn api_operations() -> Vec<Operation> {
    [
        objects::operations(),
        business_objects::operations(),
        ingest::operations(),
        push::operations(),
        schema::operations(),
        mapping_shapes::operations(),
        validations::operations(),
        ingestions::operations(),
        rejected::operations(),
        namespaces::operations(),
        shapes_graphs::operations(),
        views::operations(),
        changes::operations(),
        groups::operations(),
        exports::operations(),
        targets::operations(),
        sources::operations(),
        webhooks::operations(),
        limits::operations(),
        status::operations(),
        users::operations(),
        api_keys::operations(),
        audit::operations(),
        graphql::operations(),
        sparql::operations(),
        sparql::graphs::operations(),
        events::operations(),
        identifiers::operations(),
        health::operations(),
        metrics::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the operations of the control socket.
pub fn control_operations() -> Vec<Operation> {
    [
        clock::operations(),
        backup::operations(),
        rdf::operations(),
        sparql::control_operations(),
        definitions::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the routes of the OpenAPI document and of the Swagger UI. The document describes `operations`.
pub fn document_routes(operations: Vec<Operation>) -> Vec<Route> {
    let document = docs::Document::new(operations);
    vec![
        plain_route(Method::GET, "/api-doc/openapi.json", Anyone, document),
        plain_route(Method::GET, "/swagger-ui/{**rest}", Anyone, docs::get_swagger_file),
    ]
}

/// Returns the handler of minted URIs whose path is not that of an operation.
pub fn object_handler() -> Arc<dyn Handler> {
    identifiers::object_handler()
}
