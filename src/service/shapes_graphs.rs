//! The use cases of the shapes graphs that users define. Everybody reads them, Admins change them.
use crate::audit::change_event;
use crate::definitions::batch::DefinitionBatch;
use crate::definitions::content::{Content, invalid_error, take_member};
use crate::definitions::kind::{FindVersion, Kind, Result, StoredKind};
use crate::gateway::Gateway;
use penstock_auth::Authorized;
use penstock_base::definition::missing_error;
use penstock_base::error::Finding;
use penstock_base::json::Json;
use penstock_base::{Preconditions, Put};
use penstock_model::catalogue::{Action, DefinedGraph, Requester};
use penstock_model::rdf::Format;
use penstock_model::shapes_graphs::{
    GraphMetadata, NewGraph, SHAPES_GRAPHS, StoredGraph, TextFormat,
};
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::shapes_graph::ShapesGraph;
use penstock_store::{Read, Transaction};
use std::sync::Arc;

/// The shapes graphs.
#[derive(Debug)]
pub struct ShapesGraphs;

/// A shapes graph that a client sends.
#[expect(missing_debug_implementations, reason = "the body of a request is not shown")]
pub struct NewShapesGraph {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: Box<dyn AsRef<[u8]> + Send>,
    /// The format of its text.
    pub format: TextFormat,
}

impl Kind for ShapesGraphs {
    const KIND: DefinitionKind = DefinitionKind::Shapes;
    const STORED_VERSION: Option<FindVersion> = Some(|gateway, name| {
        gateway.catalogue.get_shapes_graph(name).map(|graph| graph.metadata.version)
    });
    type New = NewShapesGraph;
    type Shown = ShapesGraph;

    fn name(shown: &ShapesGraph) -> &str {
        &shown.name
    }

    fn version(shown: &ShapesGraph) -> Option<u64> {
        Some(shown.version)
    }

    fn list(
        gateway: &Gateway,
        _: &Authorized,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ShapesGraph>> {
        let mut users = gateway.catalogue.list_shapes_users()?;
        let page = gateway.catalogue.list_shapes_page(after, limit);
        let show = |one: &Arc<DefinedGraph>| {
            show_graph(one, users.remove(&one.metadata.name).unwrap_or_default())
        };
        Ok(page.iter().map(show).collect())
    }

    fn find(gateway: &Gateway, _: &Authorized, name: &str) -> Result<ShapesGraph> {
        let found = gateway.catalogue.get_shapes_graph(name);
        let found = found.ok_or_else(|| missing_error(Self::KIND, name))?;
        Ok(show_graph(&found, find_users(gateway, name)?))
    }
}

impl StoredKind for ShapesGraphs {
    fn put(
        gateway: &Gateway,
        by: &Authorized,
        NewShapesGraph { name, text, format }: NewShapesGraph,
        conditions: Preconditions,
    ) -> Result<Put<ShapesGraph>> {
        let new = NewGraph::check(&name, (*text).as_ref(), format)?;
        gateway.auth.audit.flush();
        let put = gateway.catalogue.put_shapes_graph(
            Requester::new(by, by.id()),
            &new,
            conditions,
            &|transaction, action, graph| add_audit_event(gateway, by, transaction, action, graph),
        )?;
        let used_by = find_users(gateway, &name)?;
        Ok(put.map(|defined| show_graph(&defined, used_by)))
    }

    fn delete(
        gateway: &Gateway,
        by: &Authorized,
        name: &str,
        conditions: Preconditions,
    ) -> Result<()> {
        gateway.auth.audit.flush();
        gateway.catalogue.delete_shapes_graph(
            Requester::new(by, by.id()),
            name,
            conditions,
            &|transaction, action, graph| add_audit_event(gateway, by, transaction, action, graph),
        )
    }

    fn read_members(_: &Gateway, name: &str, members: Vec<(String, Json)>) -> Result<Content> {
        read_graph(name, members).map(Content::Shapes)
    }

    fn find_fingerprint(gateway: &Gateway, _: &dyn Read, name: &str) -> Result<Option<String>> {
        let found = gateway.catalogue.get_shapes_graph(name);
        Ok(found.map(|graph| graph.metadata.fingerprint()))
    }

    fn describe(_: &DefinitionBatch<'_>, read: &dyn Read, name: &str) -> Result<Vec<String>> {
        let Some(there) = SHAPES_GRAPHS.get_readable(read, name)? else { return Ok(Vec::new()) };
        let head = format!("contentType: {}", there.metadata.format.media_type());
        let lines = there.text.lines().map(str::to_owned);
        Ok(std::iter::once(head).chain(lines).collect())
    }

    fn erase(
        batch: &mut DefinitionBatch<'_>,
        transaction: &mut Transaction<'_>,
        name: &str,
    ) -> Result<()> {
        batch.catalogue.delete_graph(transaction, name, batch.on_graph)
    }
}

/// Returns the shapes graph with this name, with its text.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub async fn read_shapes_graph(gateway: &Gateway, name: &str) -> Result<StoredGraph> {
    let name = name.to_owned();
    let read = move |gateway: &Gateway| -> Result<StoredGraph> {
        let found = SHAPES_GRAPHS.get_readable(&gateway.store.read(), &name)?;
        found.ok_or_else(|| missing_error(ShapesGraphs::KIND, &name))
    };
    gateway.read(read).await
}

/// Returns the names of the Business Objects that name a shapes graph.
fn find_users(gateway: &Gateway, name: &str) -> Result<Vec<String>> {
    Ok(gateway.catalogue.list_shapes_users()?.remove(name).unwrap_or_default())
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

/// Reads a shapes graph: its text, and the media type that a PUT has as `Content-Type`.
fn read_graph(name: &str, mut members: Vec<(String, Json)>) -> Result<NewGraph> {
    let mut take_text = |member: &str| match take_member(&mut members, member) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(other) => {
            let message = format!("`{member}` must be a string, not {}", other.kind_name());
            Err(invalid_error(&format!("/{member}"), message))
        }
    };
    let text = take_text("text")?.ok_or_else(|| {
        invalid_error("", "`text` is missing; expected the shapes graph, in Turtle by default")
    })?;
    let format = match take_text("contentType")? {
        None => TextFormat::Rdf(Format::Turtle),
        Some(given) => TextFormat::from_media_type(&given).ok_or_else(|| {
            let known = TextFormat::ALL.map(TextFormat::media_type).join(", ");
            invalid_error("/contentType", format!("{given:?} is not known; use {known}"))
        })?,
    };
    if let Some((unknown, _)) = members.iter().find(|(member, _)| member != "name") {
        let message = format!(
            "`{unknown}` is not known here; a shapes graph has `kind`, `name`, `text` and `contentType`"
        );
        return Err(invalid_error(&format!("/{unknown}"), message));
    }
    NewGraph::check(name, text.as_bytes(), format)
}

/// Adds the audit event of a change to its commit.
pub(crate) fn add_audit_event(
    gateway: &Gateway,
    by: &Authorized,
    transaction: &mut Transaction<'_>,
    action: Action,
    graph: &GraphMetadata,
) -> Result<()> {
    let what = match action {
        Action::Created => "shapes-graph.created",
        Action::Replaced => "shapes-graph.replaced",
        _ => "shapes-graph.deleted",
    };
    let detail = format!("{:?}, version {}", graph.name, graph.version);
    gateway.auth.audit.add_event(transaction, &change_event(by, what, detail))
}
