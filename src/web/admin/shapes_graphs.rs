//! `/admin/shapes`: the shapes graphs that users define.
use super::form::{Form, FormErrors, take_form};
use super::frame::{Frame, PageReply, PageResult, Section};
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};
use penstock_base::{IfMatch, Role};
use penstock_http::caller::caller;
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::query::{Query, TextCursor};
use penstock_http::state::gateway;
use penstock_model::shapes_graphs::{self as model, TextFormat};
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::shapes_graph::ShapesGraph;
use penstock_service::shapes_graphs::{self, SaveConditions};
use salvo::{Depot, Request, handler};

/// Rows of one page.
const ROWS_PER_PAGE: usize = 100;
/// The fields that can have errors.
const FIELDS: &[&str] = &["name", "format", "text"];
/// The choices of the format.
const FORMATS: [(&str, &str); 7] = [
    ("text/turtle", "SHACL in Turtle"),
    ("application/n-triples", "SHACL in N-Triples"),
    ("application/n-quads", "SHACL in N-Quads"),
    ("application/trig", "SHACL in TriG"),
    ("application/rdf+xml", "SHACL in RDF/XML"),
    ("application/ld+json", "SHACL in JSON-LD"),
    ("text/shex", "ShEx (compact syntax)"),
];

#[derive(Template)]
#[template(path = "admin/shapes_graphs.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

/// The form of a new or an existing shapes graph.
#[derive(Template)]
#[template(path = "admin/shapes_graph.html")]
struct One {
    frame: Frame,
    faults: FormErrors,
    /// The stored shapes graph; `None` for a new one.
    row: Option<Row>,
    filled: Form,
    formats: [(&'static str, &'static str); 7],
    /// The errors in the text: line, column and message.
    text_errors: Vec<(u64, u64, String)>,
}

#[derive(Template)]
#[template(path = "admin/shapes_graph_delete.html")]
struct Deletion {
    frame: Frame,
    row: Row,
}

/// A shapes graph in the list.
struct Row {
    name: String,
    /// The address of its page, without the prefix.
    path: String,
    format: String,
    used_by: Vec<String>,
    changed: String,
    /// Why it cannot be used, if so.
    warnings: Vec<String>,
}

impl From<ShapesGraph> for Row {
    fn from(graph: ShapesGraph) -> Self {
        Self {
            path: page_path(&graph.name),
            format: describe_format(&graph.media_type).to_owned(),
            used_by: graph.used_by,
            changed: words::format_minute(&graph.updated_at),
            warnings: graph.warnings.iter().map(ToString::to_string).collect(),
            name: graph.name,
        }
    }
}

fn describe_format(media_type: &str) -> &str {
    FORMATS.iter().find(|(known, _)| *known == media_type).map_or(media_type, |(_, words)| words)
}

/// Returns the address of the page of a shapes graph, without the prefix.
fn page_path(name: &str) -> String {
    format!("/admin/shapes/{}", encode_segment(name))
}

/// Returns the form with the errors of a shapes graph that was refused. Those in the text are beside it, at their lines.
fn split_errors(mut error: GatewayError) -> (FormErrors, Vec<(u64, u64, String)>) {
    if error.class == ErrorClass::PreconditionFailed {
        "Another user has changed this shapes graph in the meantime, or it exists already. Your changes are not saved. \
         Copy them, and open the page again."
            .clone_into(&mut error.detail);
    }
    let mut text_errors = Vec::new();
    error.findings.retain(|Finding { place, message, .. }| match place {
        Place::Line { line, column } => {
            text_errors.push((*line, *column, message.clone()));
            false
        }
        _ => true,
    });
    let mut faults = FormErrors::from_error(error, FIELDS);
    if !text_errors.is_empty() {
        let words = words::format_count(text_errors.len() as u64, "error", "errors");
        faults.add("text", &format!("it has {words}, listed below it"));
    }
    (faults, text_errors)
}

fn read_format(form: &Form) -> Result<TextFormat, GatewayError> {
    let given = form.trimmed("format").unwrap_or_default();
    TextFormat::from_media_type(&given).ok_or_else(|| {
        let finding = Finding::at_pointer("/format", format!("there is no format {given:?}"));
        GatewayError::with_findings(ErrorClass::Invalid, super::form::NOT_SAVED, vec![finding])
    })
}

/// Shows the list.
#[handler]
pub(crate) async fn list_shapes_graphs(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["cursor"])?;
    let after = query.read_cursor::<TextCursor>()?;
    let mut listed =
        shapes_graphs::list_shapes_graphs(&gateway(depot)?, after, ROWS_PER_PAGE + 1).await?;
    let frame = Frame::new(req, depot, Section::Shapes);
    let name = |listed: &ShapesGraph| listed.name.clone();
    Ok(PageReply::show(&List {
        pager: Pager::for_rows(&frame, "/admin/shapes", &query, &mut listed, ROWS_PER_PAGE, name),
        rows: listed.into_iter().map(Row::from).collect(),
        frame,
    }))
}

/// Shows the form for a new shapes graph.
#[handler]
pub(crate) async fn show_new_shapes_graph(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let filled = Form::with_values([("format", Some(FORMATS[0].0.to_owned()))]);
    Ok(build_page(req, depot, None, filled, None))
}

fn build_page(
    req: &Request,
    depot: &Depot,
    row: Option<Row>,
    filled: Form,
    refused: Option<GatewayError>,
) -> PageReply {
    let mut frame = Frame::new(req, depot, Section::Shapes);
    if let Some(row) = &row {
        frame = frame.with_source_of(depot, DefinitionKind::Shapes, &row.name);
    }
    let (faults, text_errors) = refused.map(split_errors).unwrap_or_default();
    let status = faults.status;
    let page = One { frame, faults, row, filled, formats: FORMATS, text_errors };
    PageReply::show_with_status(status, &page)
}

/// Creates a shapes graph.
#[handler]
pub(crate) async fn create_shapes_graph(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let name = form.trimmed("name").unwrap_or_default();
    let created = async {
        model::check_name(&name).map_err(|why| {
            let finding = Finding::at_pointer("/name", why);
            GatewayError::with_findings(ErrorClass::Invalid, super::form::NOT_SAVED, vec![finding])
        })?;
        let (format, text) = (read_format(&form)?, form.text("text"));
        let conditions = SaveConditions { only_if_new: true, ..SaveConditions::default() };
        let by = caller(depot);
        shapes_graphs::define_shapes_graph(&gateway, by, &name, text, format, conditions).await
    };
    Ok(match created.await {
        Ok(_) => {
            PageReply::redirect("/admin/shapes", format!("The shapes graph {name} was created."))
        }
        Err(error) => build_page(req, depot, None, form, Some(error)),
    })
}

/// Shows one shapes graph.
#[handler]
pub(crate) async fn show_shapes_graph(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let (gateway, name) = (gateway(depot)?, path_parameter(req, "name"));
    let found = shapes_graphs::find_shapes_graph(&gateway, name).await?;
    let stored = shapes_graphs::read_shapes_graph(&gateway, name).await?;
    let filled = Form::with_values([
        ("format", Some(stored.metadata.format.media_type().to_owned())),
        ("text", Some(stored.text)),
        ("version", Some(stored.metadata.version.to_string())),
    ]);
    Ok(build_page(req, depot, Some(found.into()), filled, None))
}

/// Saves a shapes graph.
#[handler]
pub(crate) async fn save_shapes_graph(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let name = path_parameter(req, "name");
    let found = shapes_graphs::find_shapes_graph(&gateway, name).await?;
    let saved = async {
        let (format, text) = (read_format(&form)?, form.text("text"));
        let conditions = SaveConditions { if_match: form.if_match(), only_if_new: false };
        let by = caller(depot);
        shapes_graphs::define_shapes_graph(&gateway, by, name, text, format, conditions).await
    };
    Ok(match saved.await {
        Ok(_) => {
            PageReply::redirect(page_path(name), format!("The shapes graph {name} was saved."))
        }
        Err(error) => build_page(req, depot, Some(found.into()), form, Some(error)),
    })
}

/// Asks for confirmation before a shapes graph is deleted.
#[handler]
pub(crate) async fn confirm_deletion(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let found = shapes_graphs::find_shapes_graph(&gateway(depot)?, name).await?;
    let frame = Frame::new(req, depot, Section::Shapes);
    let frame = frame.with_source_of(depot, DefinitionKind::Shapes, name);
    Ok(PageReply::show(&Deletion { frame, row: found.into() }))
}

/// Deletes a shapes graph that no Business Object names.
#[handler]
pub(crate) async fn delete_shapes_graph(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (gateway, name) = (gateway(depot)?, path_parameter(req, "name"));
    let by = caller(depot);
    Ok(match shapes_graphs::delete_shapes_graph(&gateway, by, name, IfMatch::Any).await {
        Ok(()) => {
            PageReply::redirect("/admin/shapes", format!("The shapes graph {name} was deleted."))
        }
        Err(error) => PageReply::redirect_with_error(page_path(name), error.detail),
    })
}
