//! The use cases of the shapes graphs that users define. Everybody reads them, Admins change them.
use crate::audit::change_event;
use crate::blocking::run_blocking;
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_model::catalogue::{Action, DefinedGraph, Requester};
use penstock_model::shapes_graphs::{self, GraphMetadata, NewGraph, StoredGraph, TextFormat};
use penstock_resources::shapes_graph::ShapesGraph;
use penstock_store::Transaction;

/// Under which conditions a shapes graph is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SaveConditions {
    /// The version that it may replace.
    pub if_match: IfMatch,
    /// Whether it may replace none.
    pub only_if_new: bool,
}

/// Lists at most `limit` shapes graphs after the name `after`, ordered by name.
///
/// # Errors
/// The errors of the store.
pub async fn list_shapes_graphs(
    gateway: &Gateway,
    after: Option<String>,
    limit: usize,
) -> Result<Vec<ShapesGraph>, GatewayError> {
    let catalogue = gateway.catalogue.clone();
    run_blocking(move || {
        let mut users = catalogue.list_shapes_users()?;
        let page = catalogue.list_shapes_page(after.as_deref(), limit);
        let show = |one: &std::sync::Arc<DefinedGraph>| {
            show_graph(one, users.remove(&one.metadata.name).unwrap_or_default())
        };
        Ok(page.iter().map(show).collect())
    })
    .await
}

/// Returns what is known about the shapes graph with this name.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub async fn find_shapes_graph(gateway: &Gateway, name: &str) -> Result<ShapesGraph, GatewayError> {
    let (catalogue, name) = (gateway.catalogue.clone(), name.to_owned());
    run_blocking(move || {
        let found = catalogue.get_shapes_graph(&name).ok_or_else(|| unknown_graph_error(&name))?;
        let used_by = catalogue.list_shapes_users()?.remove(&name).unwrap_or_default();
        Ok(show_graph(&found, used_by))
    })
    .await
}

/// Returns the shapes graph with this name, with its text.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub async fn read_shapes_graph(gateway: &Gateway, name: &str) -> Result<StoredGraph, GatewayError> {
    let (store, name) = (gateway.store.clone(), name.to_owned());
    run_blocking(move || {
        shapes_graphs::SHAPES_GRAPHS
            .get_readable(&store.read(), &name)?
            .ok_or_else(|| unknown_graph_error(&name))
    })
    .await
}

/// Creates the shapes graph, or replaces the one of the same name. Returns true if it was created.
///
/// # Errors
/// - The errors of [`NewGraph::check`] and [`penstock_model::catalogue::Catalogue::put_shapes_graph`]
/// - `ErrorClass::Forbidden` without the role Admin
/// - `ErrorClass::InsufficientStorage` when less than the reserve is free on the disk
pub async fn define_shapes_graph(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
    text: impl AsRef<[u8]> + Send + 'static,
    format: TextFormat,
    conditions: SaveConditions,
) -> Result<(ShapesGraph, bool), GatewayError> {
    by.require_role(Role::Admin)?;
    gateway.disk.check_reserve()?;
    let (gateway, by, name) = (gateway.clone(), by.clone(), name.to_owned());
    run_blocking(move || {
        let new = NewGraph::check(&name, text.as_ref(), format)?;
        let SaveConditions { if_match, only_if_new } = conditions;
        gateway.auth.audit.flush();
        let (defined, created) = gateway.catalogue.put_shapes_graph(
            Requester::new(&by, by.id()),
            &new,
            if_match,
            only_if_new,
            &|transaction, action, graph| {
                add_audit_event(&gateway, &by, transaction, action, graph)
            },
        )?;
        let used_by = gateway.catalogue.list_shapes_users()?.remove(&name).unwrap_or_default();
        Ok((show_graph(&defined, used_by), created))
    })
    .await
}

/// Deletes a shapes graph that no Business Object names.
///
/// # Errors
/// The errors of [`penstock_model::catalogue::Catalogue::delete_shapes_graph`]; `ErrorClass::Forbidden` without the role
/// Admin.
pub async fn delete_shapes_graph(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
    if_match: IfMatch,
) -> Result<(), GatewayError> {
    by.require_role(Role::Admin)?;
    let (gateway, by, name) = (gateway.clone(), by.clone(), name.to_owned());
    run_blocking(move || {
        gateway.auth.audit.flush();
        gateway.catalogue.delete_shapes_graph(
            Requester::new(&by, by.id()),
            &name,
            if_match,
            &|transaction, action, graph| {
                add_audit_event(&gateway, &by, transaction, action, graph)
            },
        )
    })
    .await
}

fn show_graph(defined: &DefinedGraph, used_by: Vec<String>) -> ShapesGraph {
    let mut warnings = Vec::new();
    if let Some(error) = &defined.fault {
        let whole = Finding::whole(error.detail.clone());
        let found = if error.findings.is_empty() { vec![whole] } else { error.findings.clone() };
        warnings.extend(found.into_iter().map(|finding| Finding {
            message: format!("it does not compile in this version: {}", finding.message),
            ..finding
        }));
    }
    let GraphMetadata { name, format, version, created_at, updated_at, updated_by } =
        defined.metadata.clone();
    ShapesGraph {
        name,
        media_type: format.media_type().to_owned(),
        version,
        created_at,
        updated_at,
        updated_by,
        used_by,
        warnings: warnings.into_iter().map(Into::into).collect(),
    }
}

fn unknown_graph_error(name: &str) -> GatewayError {
    GatewayError::new(ErrorClass::NotFound, format!("there is no shapes graph {name:?}"))
}

/// Adds the audit event of a change to its commit.
pub(crate) fn add_audit_event(
    gateway: &Gateway,
    by: &Authorized,
    transaction: &mut Transaction<'_>,
    action: Action,
    graph: &GraphMetadata,
) -> Result<(), GatewayError> {
    let what = match action {
        Action::Created => "shapes-graph.created",
        Action::Replaced => "shapes-graph.replaced",
        _ => "shapes-graph.deleted",
    };
    let detail = format!("{:?}, version {}", graph.name, graph.version);
    gateway.auth.audit.add_event(transaction, &change_event(by, what, detail))
}
