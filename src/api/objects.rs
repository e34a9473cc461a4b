//! `/api/v1/business-objects/{id}/objects`: the stored objects in the view.
use crate::business_objects::find_business_object;
use crate::shapes;
use oxrdf::NamedNode;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, cursor_after};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::{gateway, run_blocking, run_in_place};
use penstock_model::mapping::Field;
use penstock_model::resource::Compiled;
use penstock_model::{members, view};
use penstock_service::gateway::Gateway;
use penstock_store::{Read, Reader, SubjectQuads};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// The bytes after which a page ends early.
const PAGE_BYTES: usize = 4 << 20;

/// Lists the stored objects in the view, ordered by URI: the content of an export.
///
/// With `uri`, the response is only that object, without a list around it.
#[endpoint(
    operation_id = "listObjects",
    tags("Objects"),
    parameters(
        ("id" = String, Path, description = "The Business Object's id or name."),
        ("uri" = Option<String>, Query, description = "One object's URI; not together with `limit` or `cursor`."),
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent. A page of large objects ends earlier.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page, or with `uri` one object.", body = shapes::ObjectsOrObject)),
)]
pub(super) async fn list_objects(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["uri", "limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_cursor()?);
    let gateway = gateway(depot)?;
    let business_object = find_business_object(req, &gateway)?;
    if let Some(uri) = query.get("uri") {
        if query.get("limit").or(query.get("cursor")).is_some() {
            return Err(Problem::malformed("uri names one object: leave out limit and cursor"));
        }
        return object_reply(&gateway, &business_object, uri);
    }
    run_blocking(move || {
        let store = &gateway.store;
        let (listed, listed_at) =
            members::list_members_to_read(store, &business_object, after.as_deref(), limit + 1)?;
        let mut quads = SubjectQuads::default();
        let mut out = br#"{"items":["#.to_vec();
        let mut last = None;
        let mut has_items = false;
        for one in listed.iter().take(limit) {
            if out.len() > PAGE_BYTES {
                break;
            }
            last = Some(one);
            // A new reader for each object, so that commits do not wait for the page.
            let read = store.read();
            read.read_listed(one, &mut quads)?;
            if read.sequence() != listed_at
                && !members::is_member_by_quads(&read, &business_object, &quads)?
            {
                continue;
            }
            if has_items {
                out.push(b',');
            }
            has_items = true;
            let shape = &business_object.mapping.root;
            view::render_subject(&read, shape, &one.iri, &quads, &mut out, &mut Vec::new())?;
        }
        out.extend_from_slice(br#"],"next":"#);
        match last {
            Some(last) if listed.last() != Some(last) => {
                out.extend_from_slice(
                    format!("\"{}\"", cursor_after(last.iri.as_str())).as_bytes(),
                );
            }
            _ => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
        Ok(Reply::bytes("application/json", out))
    })
    .await
}

/// Returns one stored object in the view.
#[endpoint(
    operation_id = "getObject",
    tags("Objects"),
    parameters(
        ("id" = String, Path, description = "The Business Object's id or name."),
        ("uri" = String, Path, description = "The object's URI, percent-encoded."),
    ),
    responses((status_code = 200, description = "The object.", body = shapes::ViewedObject)),
)]
pub(super) async fn get_object(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let business_object = find_business_object(req, &gateway)?;
    object_reply(&gateway, &business_object, path_parameter(req, "uri"))
}

fn object_reply(gateway: &Gateway, business_object: &Compiled, uri: &str) -> ReplyResult {
    let node = NamedNode::new(uri)
        .map_err(|error| Problem::malformed(format!("{uri:?} is not an IRI: {error}")))?;
    let work = |read: &Reader<'_>| render_member(read, business_object, &node);
    // Reading a flat object takes less time than a thread switch: it needs few blocks, most of which are in
    // memory. An object with nested objects may need many.
    let is_flat = !business_object.mapping.root.fields.iter().any(Field::contains_objects);
    match gateway.store.try_read().filter(|_| is_flat) {
        Some(read) => work(&read),
        None => run_in_place(|| work(&gateway.store.read())),
    }
}

fn render_member(read: &Reader<'_>, business_object: &Compiled, uri: &NamedNode) -> ReplyResult {
    let mut quads = SubjectQuads::default();
    read.read_subject(uri.as_ref().into(), &mut quads)?;
    if !members::is_member_by_quads(read, business_object, &quads)? {
        return Err(Problem::not_found(format!(
            "no stored object {} belongs to {:?}",
            uri.as_str(),
            business_object.object.definition.name
        )));
    }
    let mut out = Vec::with_capacity(1 << 10);
    let shape = &business_object.mapping.root;
    view::render_subject(read, shape, uri, &quads, &mut out, &mut Vec::new())?;
    Ok(Reply::bytes("application/json", out))
}
