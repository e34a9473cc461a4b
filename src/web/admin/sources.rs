//! `/admin/sources`: the sources, the state of their connections, and a test of a connection.
use super::configured::SettingGroup;
use super::frame::{Frame, PageReply, PageResult};
use super::labels::{self, Labelled as _};
use super::menu::Section;
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_resources::source::{Source, SourceConnection, SourceTest};
use penstock_resources::warning::Warning;
use penstock_service::sources;
use salvo::{Depot, Request, handler};

#[derive(Template)]
#[template(path = "admin/sources.html")]
struct List {
    frame: Frame,
    /// The connections, with the names of their sources.
    rows: Vec<(String, SourceConnection)>,
}

#[derive(Template)]
#[template(path = "admin/source.html")]
struct One {
    frame: Frame,
    source: Source,
    /// `None` if the viewer may not see settings.
    settings: Option<SettingGroup>,
}

/// Shows the connections of all sources.
#[handler]
pub(crate) async fn list_sources(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::Sources);
    let all = sources::list_sources(&gateway(depot)?, caller(depot))?;
    let rows = all.into_iter().flat_map(|Source { name, connections, .. }| {
        connections.into_iter().map(move |connection| (name.clone(), connection))
    });
    Ok(PageReply::show(&List { rows: rows.collect(), frame }))
}

/// Shows one source.
#[handler]
pub(crate) async fn show_source(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let mut source = sources::read_source(&gateway(depot)?, caller(depot), name)?;
    // The sections of the connections have their errors.
    let errors: Vec<_> = source.connections.iter().filter_map(|one| one.error.as_ref()).collect();
    let is_shown = |one: &Warning| errors.iter().any(|error| one.message.ends_with(error.as_str()));
    source.warnings.retain(|warning| !is_shown(warning));
    let frame = Frame::new(req, depot, Section::Sources);
    let is_admin = frame.may(Role::Admin);
    Ok(PageReply::show(&One {
        settings: is_admin.then(|| SettingGroup::of_source(state(depot).settings(), &source.name)),
        frame,
        source,
    }))
}

/// Tests the connection of one source.
#[handler]
pub(crate) async fn test_source(req: &mut Request, depot: &mut Depot) -> PageResult {
    let name = path_parameter(req, "name").to_owned();
    let result = sources::test_source(&gateway(depot)?, caller(depot), &name).await?;
    let page = format!("/admin/sources/{name}");
    let SourceTest { ok, protocol, cause, milliseconds, .. } = result;
    Ok(if ok {
        let words = format!(
            "The broker accepted a connection with MQTT {} in {milliseconds} ms.",
            protocol.unwrap_or("5")
        );
        PageReply::redirect(&page, words)
    } else {
        let cause = cause.unwrap_or_default();
        PageReply::redirect_with_error(&page, format!("The connection failed: {cause}"))
    })
}
