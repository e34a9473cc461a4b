//! `/api/v1/namespaces`: names, URI bases, and how identifiers are created.
use crate::shapes;
use penstock_auth::Authorized;
use penstock_base::error::{Finding, GatewayError};
use penstock_http::body;
use penstock_http::caller::{caller, change_event};
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::problem::{self, Problem};
use penstock_http::query::{Query, page_reply};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::{gateway, run_blocking};
use penstock_model::namespace::{self, Namespace, default_base};
use penstock_model::warnings;
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::http::header::LOCATION;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    namespace: &'a Namespace,
    warnings: Vec<Value>,
}

/// Responds with one namespace and its warnings. Blocking.
fn namespace_reply(
    gateway: &Gateway,
    namespace: &Namespace,
    has_default_base: bool,
) -> ReplyResult {
    let all = namespace::list(&gateway.store.read(), None, usize::MAX)?;
    Reply::json(&with_warnings(namespace, &all, has_default_base))
}

/// Returns a namespace with its warnings. `all` are the existing namespaces.
fn with_warnings<'a>(
    namespace: &'a Namespace,
    all: &[Namespace],
    has_default_base: bool,
) -> Answer<'a> {
    let others: Vec<&Namespace> = all.iter().filter(|other| other.name != namespace.name).collect();
    let mut found = Vec::new();
    if has_default_base {
        let Namespace { name, uri_base, .. } = namespace;
        found.push(Finding::at_pointer(
            "/uriBase",
            format!(
                "the namespace `{name}` was created with the default base <{uri_base}>; until it is used, another \
                 base can be set with `uriBase`"
            ),
        ));
    }
    let overlaps = warnings::overlap_warning(namespace, &others);
    found.extend(overlaps.map(|message| Finding::at_pointer("/uriBase", message)));
    Answer { namespace, warnings: found.iter().map(problem::finding_to_json).collect() }
}

/// Lists the namespaces, ordered by name.
#[endpoint(
    operation_id = "listNamespaces",
    tags("Namespaces"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::Namespaces)),
)]
pub(super) async fn list_namespaces(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_cursor()?);
    let store = gateway(depot)?.store;
    run_blocking(move || {
        let all = namespace::list(&store.read(), None, usize::MAX)?;
        let of_page = all.iter().filter(|one| after.as_ref().is_none_or(|after| one.name > *after));
        let items = of_page
            .take(limit + 1)
            .map(|namespace| with_warnings(namespace, &all, false))
            .collect();
        page_reply(items, limit, |answer: &Answer<'_>| &answer.namespace.name)
    })
    .await
}

/// Returns one namespace.
#[endpoint(
    operation_id = "getNamespace",
    tags("Namespaces"),
    parameters(("name" = String, Path, description = "Its name.")),
    responses((status_code = 200, description = "The namespace.", body = shapes::Namespace)),
)]
pub(super) async fn get_namespace(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let name = path_parameter(req, "name").to_owned();
    run_blocking(move || {
        let found = namespace::get(&gateway.store.read(), &name)?;
        let namespace =
            found.ok_or_else(|| Problem::not_found(format!("there is no namespace {name:?}")))?;
        namespace_reply(&gateway, &namespace, false)
    })
    .await
}

/// Creates a namespace, or changes one that is not used yet.
#[endpoint(
    operation_id = "putNamespace",
    tags("Namespaces"),
    parameters(("name" = String, Path, description = "Its name.")),
    request_body(content = shapes::NamespaceDefinition, content_type = "application/json"),
    responses(
        (status_code = 200, description = "Changed, or unchanged.", body = shapes::Namespace),
        (status_code = 201, description = "Created.", body = shapes::Namespace,
            headers(("Location" = String, description = "Its path."))),
    ),
)]
pub(super) async fn put_namespace(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::read_small_json(req, depot).await?;
    let (by, name) = (caller(depot).clone(), path_parameter(req, "name").to_owned());
    let defined = move || {
        let (namespace, created) = define_namespace(&gateway, &by, &name, body.bytes())?;
        let has_default_base = created && namespace.uri_base == default_uri_base(&gateway, &name);
        Ok((namespace_reply(&gateway, &namespace, has_default_base)?, namespace, created))
    };
    let (reply, namespace, created) = run_blocking(defined).await?;
    if !created {
        return Ok(reply);
    }
    let prefix = &origin(depot).prefix;
    let name = encode_segment(&namespace.name);
    let location = format!("{prefix}/api/v1/namespaces/{name}");
    Ok(reply.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

/// Creates or changes a namespace from this body. Returns whether it was created. Blocking.
pub fn define_namespace(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
    body: &[u8],
) -> Result<(Namespace, bool), Problem> {
    gateway.disk.check_reserve()?;
    let namespace = Namespace::read_body(name, body, &default_uri_base(gateway, name))?;
    gateway.auth.audit.flush();
    let ((namespace, created, changed), _) =
        gateway.store.commit::<_, GatewayError>(by, |transaction| {
            let before = namespace::get(transaction, name)?;
            let (namespace, created) = namespace::put(transaction, namespace)?;
            let changed = before.as_ref() != Some(&namespace);
            if changed {
                let what = if created { "namespace.created" } else { "namespace.replaced" };
                let detail = format!("{name:?} <{}>", namespace.uri_base);
                gateway.auth.audit.add_event(transaction, &change_event(by, what, detail))?;
            }
            Ok((namespace, created, changed))
        })?;
    if changed {
        tracing::info!(namespace = name, by = by.id(), "A namespace was defined.");
    }
    Ok((namespace, created))
}

/// Returns the default URI base of a namespace.
pub fn default_uri_base(gateway: &Gateway, name: &str) -> String {
    default_base(gateway.settings.base_url.as_deref(), &gateway.gateway_id, name)
}

/// Deletes a namespace that is not used.
#[endpoint(
    operation_id = "deleteNamespace",
    tags("Namespaces"),
    parameters(("name" = String, Path, description = "Its name.")),
    responses((status_code = 204, description = "Deleted.")),
)]
pub(super) async fn delete_namespace(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let (by, name) = (caller(depot).clone(), path_parameter(req, "name").to_owned());
    run_blocking(move || remove_namespace(&gateway, &by, &name)).await?;
    Ok(Reply::no_content())
}

/// Deletes a namespace that is not used. Blocking.
pub fn remove_namespace(gateway: &Gateway, by: &Authorized, name: &str) -> Result<(), Problem> {
    gateway.auth.audit.flush();
    gateway.store.commit::<_, GatewayError>(by, |transaction| {
        namespace::delete(transaction, name)?;
        let event = change_event(by, "namespace.deleted", format!("{name:?}"));
        gateway.auth.audit.add_event(transaction, &event)
    })?;
    tracing::info!(namespace = name, by = by.id(), "A namespace was deleted.");
    Ok(())
}
