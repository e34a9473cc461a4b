//! `/admin/shapes`: the shapes graphs that users define.
use super::definitions::{DefinitionPages, TextPart, View, refuse_name};
use super::form::{Form, FormErrors, NOT_SAVED};
use super::frame::Frame;
use super::menu::Section;
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_http::path;
use penstock_model::shapes_graphs::{StoredGraph, TextFormat, check_name};
use penstock_resources::shapes_graph::ShapesGraph;
use penstock_service::definitions;
use penstock_service::shapes_graphs::{NewShapesGraph, ShapesGraphs, read_shapes_graph};

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
    rows: Vec<ShapesGraph>,
    pager: Pager,
}

/// The form of a new or an existing shapes graph.
#[derive(Template)]
#[template(path = "admin/shapes_graph.html")]
struct One {
    frame: Frame,
    faults: FormErrors,
    /// The stored shapes graph; `None` for a new one.
    row: Option<ShapesGraph>,
    filled: Form,
}

/// Returns a format in words.
fn describe_format(media_type: &str) -> &str {
    FORMATS.iter().find(|(known, _)| *known == media_type).map_or(media_type, |(_, words)| words)
}

impl DefinitionPages for ShapesGraphs {
    const SECTION: Section = Section::Shapes;
    const PATH: &'static str = "/admin/shapes";
    const FIELDS: &'static [&'static str] = &["name", "format", "text"];
    const TEXT_FIELD: Option<&'static str> = Some("text");
    type Details = (ShapesGraph, StoredGraph);

    async fn read_details(view: &View, name: &str) -> Result<Self::Details, GatewayError> {
        let shown = definitions::find::<Self>(&view.gateway, &view.by, name).await?;
        Ok((shown, read_shapes_graph(&view.gateway, name).await?))
    }

    fn new_form() -> Form {
        Form::with_values([("format", Some(FORMATS[0].0.to_owned()))])
    }

    fn fill_form(_: &View, (_, stored): &Self::Details) -> Form {
        Form::with_values([
            ("format", Some(stored.metadata.format.media_type().to_owned())),
            ("text", Some(stored.text.clone())),
            ("version", Some(stored.metadata.version.to_string())),
        ])
    }

    fn read_form(name: &str, form: &Form) -> Result<NewShapesGraph, GatewayError> {
        check_name(name).map_err(refuse_name)?;
        let given = form.trimmed("format").unwrap_or_default();
        let format = TextFormat::from_media_type(&given).ok_or_else(|| {
            let finding = Finding::at_pointer("/format", format!("there is no format {given:?}"));
            GatewayError::with_findings(ErrorClass::Invalid, NOT_SAVED, vec![finding])
        })?;
        Ok(NewShapesGraph { name: name.to_owned(), text: Box::new(form.text("text")), format })
    }

    fn build_list(view: View, rows: Vec<ShapesGraph>, pager: Pager) -> impl Template {
        List { frame: view.frame, rows, pager }
    }

    fn build_form(
        view: View,
        details: Option<Self::Details>,
        filled: Form,
        faults: FormErrors,
    ) -> impl Template {
        One { frame: view.frame, faults, row: details.map(|(shown, _)| shown), filled }
    }

    fn describe_deletion(_: &View, shown: &ShapesGraph) -> Result<Vec<TextPart>, String> {
        if shown.used_by.is_empty() {
            let words =
                "No Business Object uses it. Its text is removed, and this cannot be undone.";
            return Ok(vec![TextPart::Plain(words.to_owned())]);
        }
        Err(format!(
            "It is used by {}, so it cannot be deleted. Remove it from their validation first.",
            shown.used_by.join(", ")
        ))
    }
}
