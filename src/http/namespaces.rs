//! `/api/v1/namespaces`: names, URI bases, and how identifiers are created.
use super::body;
use super::business_objects::{SEGMENT, path};
use super::caller::{caller, change_event};
use super::problem::{self, Problem};
use super::query::{Query, page};
use super::reply::{Outcome, Reply};
use super::service::origin;
use super::shapes;
use super::state::{blocking, gateway};
use penstock_auth::Authorized;
use penstock_base::fault::{Fault, Finding};
use penstock_model::namespace::{self, Namespace, default_base};
use penstock_model::warnings;
use penstock_service::gateway::Gateway;
use percent_encoding::utf8_percent_encode;
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
fn answer(gateway: &Gateway, namespace: &Namespace, has_default_base: bool) -> Outcome {
    let all = namespace::list(&gateway.store.read(), None, usize::MAX)?;
    Reply::json(&with_warnings(namespace, &all, has_default_base))
}

/// Returns a namespace with its warnings; `all` are the existing namespaces.
fn with_warnings<'a>(
    namespace: &'a Namespace,
    all: &[Namespace],
    has_default_base: bool,
) -> Answer<'a> {
    let others: Vec<&Namespace> = all.iter().filter(|other| other.name != namespace.name).collect();
    let mut found = Vec::new();
    if has_default_base {
        let Namespace { name, uri_base, .. } = namespace;
        found.push(Finding::at(
            "/uriBase",
            format!(
                "the namespace `{name}` was created with the default base <{uri_base}>; until it is used, another \
                 base can be set with `uriBase`"
            ),
        ));
    }
    let overlaps = warnings::overlaps(namespace, &others);
    found.extend(overlaps.map(|message| Finding::at("/uriBase", message)));
    Answer { namespace, warnings: found.iter().map(problem::finding).collect() }
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
pub(super) async fn list(req: &mut Request, depot: &mut Depot) -> Outcome {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.limit()?, query.cursor()?);
    let store = gateway(depot)?.store;
    blocking(move || {
        let all = namespace::list(&store.read(), None, usize::MAX)?;
        let of_page = all.iter().filter(|one| after.as_ref().is_none_or(|after| one.name > *after));
        let items = of_page
            .take(limit + 1)
            .map(|namespace| with_warnings(namespace, &all, false))
            .collect();
        page(items, limit, |answer: &Answer<'_>| &answer.namespace.name)
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
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let name = path(req, "name").to_owned();
    blocking(move || {
        let found = namespace::get(&gateway.store.read(), &name)?;
        let namespace =
            found.ok_or_else(|| Problem::not_found(format!("there is no namespace {name:?}")))?;
        answer(&gateway, &namespace, false)
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
pub(super) async fn put(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::few(req, depot).await?;
    let (by, name) = (caller(depot).clone(), path(req, "name").to_owned());
    let defined = move || {
        let (namespace, created) = define(&gateway, &by, &name, body.bytes())?;
        let has_default_base = created && namespace.uri_base == base(&gateway, &name);
        Ok((answer(&gateway, &namespace, has_default_base)?, namespace, created))
    };
    let (reply, namespace, created) = blocking(defined).await?;
    if !created {
        return Ok(reply);
    }
    let prefix = &origin(depot).prefix;
    let name = utf8_percent_encode(&namespace.name, SEGMENT);
    let location = format!("{prefix}/api/v1/namespaces/{name}");
    Ok(reply.status(StatusCode::CREATED).header(LOCATION, &location))
}

/// Creates or changes a namespace from this body. Returns true if it was created. Blocking.
pub(super) fn define(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
    body: &[u8],
) -> Result<(Namespace, bool), Problem> {
    gateway.disk.take_in()?;
    let namespace = Namespace::read(name, body, &base(gateway, name))?;
    gateway.auth.audit.flush();
    let ((namespace, created, changed), _) =
        gateway.store.commit::<_, Fault>(by, |transaction| {
            let before = namespace::get(transaction, name)?;
            let (namespace, created) = namespace::put(transaction, namespace)?;
            let changed = before.as_ref() != Some(&namespace);
            if changed {
                let what = if created { "namespace.created" } else { "namespace.replaced" };
                let detail = format!("{name:?} <{}>", namespace.uri_base);
                gateway.auth.audit.add(transaction, &change_event(by, what, detail))?;
            }
            Ok((namespace, created, changed))
        })?;
    if changed {
        tracing::info!(namespace = name, by = by.id(), "A namespace was defined.");
    }
    Ok((namespace, created))
}

/// Returns the default URI base of a namespace.
pub(super) fn base(gateway: &Gateway, name: &str) -> String {
    default_base(gateway.settings.base_url.as_deref(), &gateway.gateway_id, name)
}

/// Deletes a namespace that is not used.
#[endpoint(
    operation_id = "deleteNamespace",
    tags("Namespaces"),
    parameters(("name" = String, Path, description = "Its name.")),
    responses((status_code = 204, description = "Deleted.")),
)]
pub(super) async fn delete(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let (by, name) = (caller(depot).clone(), path(req, "name").to_owned());
    blocking(move || remove(&gateway, &by, &name)).await?;
    Ok(Reply::nothing())
}

/// Deletes a namespace that is not used. Blocking.
pub(super) fn remove(gateway: &Gateway, by: &Authorized, name: &str) -> Result<(), Problem> {
    gateway.auth.audit.flush();
    gateway.store.commit::<_, Fault>(by, |transaction| {
        namespace::delete(transaction, name)?;
        let event = change_event(by, "namespace.deleted", format!("{name:?}"));
        gateway.auth.audit.add(transaction, &event)
    })?;
    tracing::info!(namespace = name, by = by.id(), "A namespace was deleted.");
    Ok(())
}
