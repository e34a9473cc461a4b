//! `/api/v1/business-objects/{id}/objects`: the stored objects through the view.
use super::business_objects::{named, path};
use super::problem::Problem;
use super::query::{Query, cursor};
use super::reply::{Outcome, Reply};
use super::shapes;
use super::state::{blocking, brief, gateway};
use crate::business_object::resource::Compiled;
use crate::business_object::{members, view};
use crate::gateway::Gateway;
use oxrdf::NamedNode;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// A page ends early when its objects together are as long as this.
const PAGE_BYTES: usize = 4 << 20;

/// Lists the stored objects through the view, ordered by URI: what an export would hold.
///
/// With `uri`, that object alone, bare.
#[endpoint(
    operation_id = "listObjects",
    tags("Objects"),
    parameters(
        ("id" = String, Path, description = "The Business Object's id or name."),
        ("uri" = Option<String>, Query, description = "One object's URI; not together with `limit` or `cursor`."),
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent. A page of large objects ends earlier.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the page before."),
    ),
    responses((status_code = 200, description = "A page, or with `uri` one object.", body = shapes::ObjectsOrObject)),
)]
pub(super) async fn list(req: &mut Request, depot: &mut Depot) -> Outcome {
    let query = Query::read(req, &["uri", "limit", "cursor"])?;
    let (limit, after) = (query.limit()?, query.cursor()?);
    let gateway = gateway(depot)?;
    let business_object = named(req, &gateway)?;
    if let Some(uri) = query.get("uri") {
        if query.get("limit").or(query.get("cursor")).is_some() {
            return Err(Problem::malformed("uri names one object: leave out limit and cursor"));
        }
        return one(&gateway, &business_object, uri);
    }
    blocking(move || {
        let store = &gateway.store;
        let (uris, seen) = members::page_of(store, &business_object, after.as_deref(), limit + 1)?;
        let mut out = br#"{"items":["#.to_vec();
        let mut last = None;
        let mut some = false;
        for uri in uris.iter().take(limit) {
            if out.len() > PAGE_BYTES {
                break;
            }
            last = Some(uri);
            // Anew for each, so that commits do not wait for the page.
            let read = store.read();
            if read.sequence() != seen && !members::contains(&read, &business_object, uri)? {
                continue;
            }
            if some {
                out.push(b',');
            }
            some = true;
            let shape = &business_object.mapping.root;
            view::render(&read, shape, uri, &mut out, &mut Vec::new())?;
        }
        out.extend_from_slice(br#"],"next":"#);
        match last {
            Some(last) if uris.last() != Some(last) => {
                out.extend_from_slice(format!("\"{}\"", cursor(last.as_str())).as_bytes());
            }
            _ => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
        Ok(Reply::bytes("application/json", out))
    })
    .await
}

/// One stored object through the view.
#[endpoint(
    operation_id = "getObject",
    tags("Objects"),
    parameters(
        ("id" = String, Path, description = "The Business Object's id or name."),
        ("uri" = String, Path, description = "The object's URI, percent-encoded."),
    ),
    responses((status_code = 200, description = "It.", body = shapes::ViewedObject)),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let business_object = named(req, &gateway)?;
    one(&gateway, &business_object, path(req, "uri"))
}

fn one(gateway: &Gateway, business_object: &Compiled, uri: &str) -> Outcome {
    let node = NamedNode::new(uri)
        .map_err(|error| Problem::malformed(format!("{uri:?} is no IRI: {error}")))?;
    brief(|| {
        let read = gateway.store.read();
        if !members::contains(&read, business_object, &node)? {
            return Err(Problem::not_found(format!(
                "no stored object {} belongs to {:?}",
                node.as_str(),
                business_object.object.definition.name
            )));
        }
        let mut out = Vec::new();
        view::render(&read, &business_object.mapping.root, &node, &mut out, &mut Vec::new())?;
        Ok(Reply::bytes("application/json", out))
    })
}
