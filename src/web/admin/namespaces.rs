//! `/admin/namespaces`: names, URI bases, and how identifiers are created.
use super::form::{Form, FormErrors, take_form};
use super::frame::{Frame, PageReply, PageResult, Section};
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_base::error::GatewayError;
use penstock_base::json::Json;
use penstock_base::{Preconditions, Role};
use penstock_http::caller::caller;
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::query::{Query, TextCursor};
use penstock_http::state::gateway;
use penstock_model::namespace;
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::namespace::{DefinedNamespace, Generator, Namespace};
use penstock_service::gateway::Gateway;
use penstock_service::namespaces::{self, NamespaceUse};
use salvo::{Depot, Request, handler};

/// Rows of one page.
const ROWS_PER_PAGE: usize = 100;
/// The fields that can have errors.
const FIELDS: &[&str] = &["name", "uriBase", "generator"];
/// The choices of the generator.
const GENERATORS: [(&str, &str); 4] = [
    ("uuid", "UUID: globally unique, ordered by time"),
    ("counter", "Counter: 1, 2, 3, ..., never reused"),
    ("alphanumeric", "Alphanumeric: ten characters of 0-9 and a-z"),
    ("manual", "Manual: the sender of the data sets each URI"),
];

#[derive(Template)]
#[template(path = "admin/namespaces.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

#[derive(Template)]
#[template(path = "admin/namespace_new.html")]
struct Creation {
    frame: Frame,
    faults: FormErrors,
    filled: Form,
    generators: [(&'static str, &'static str); 4],
    /// The default base of a namespace called `Name`, as an example for the field's hint.
    base: String,
}

#[derive(Template)]
#[template(path = "admin/namespace.html")]
struct One {
    frame: Frame,
    faults: FormErrors,
    row: Row,
    filled: Form,
    generators: [(&'static str, &'static str); 4],
    /// Why the namespace can no longer be changed, if so.
    used: Option<String>,
    /// Why the namespace cannot be deleted, if so.
    held: Option<String>,
}

#[derive(Template)]
#[template(path = "admin/namespace_delete.html")]
struct Deletion {
    frame: Frame,
    row: Row,
}

/// A namespace in the list.
struct Row {
    name: String,
    /// The address of its page, without the prefix.
    path: String,
    uri_base: String,
    generator: &'static str,
    created: String,
}

impl From<&Namespace> for Row {
    fn from(namespace: &Namespace) -> Self {
        Self {
            name: namespace.name.clone(),
            path: page_path(&namespace.name),
            uri_base: namespace.uri_base.clone(),
            generator: namespace.generator.name(),
            created: words::format_minute(&namespace.created_at),
        }
    }
}

/// Returns the address of a namespace's page, without the prefix.
fn page_path(name: &str) -> String {
    format!("/admin/namespaces/{}", encode_segment(name))
}

/// Reads the definition of the namespace with this name from the form.
fn read_definition(form: &Form, name: &str) -> Result<DefinedNamespace, GatewayError> {
    let members = form.to_members(&["uriBase", "generator"]);
    namespace::read_definition(name, Json::Object(members))
}

/// Shows the list.
#[handler]
pub(crate) async fn list_namespaces(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["cursor"])?;
    let after = query.read_cursor::<TextCursor>()?;
    let mut listed =
        namespaces::list_namespaces(&gateway(depot)?, after, ROWS_PER_PAGE + 1).await?;
    let frame = Frame::new(req, depot, Section::Namespaces);
    let name = |listed: &Namespace| listed.name.clone();
    Ok(PageReply::show(&List {
        pager: Pager::for_rows(
            &frame,
            "/admin/namespaces",
            &query,
            &mut listed,
            ROWS_PER_PAGE,
            name,
        ),
        rows: listed.iter().map(Row::from).collect(),
        frame,
    }))
}

/// Shows the form for a new namespace.
#[handler]
pub(crate) async fn show_new_namespace(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let generator = Generator::default().name().to_owned();
    let filled = Form::with_values([("generator", Some(generator))]);
    Ok(build_new_namespace_page(req, depot, &gateway(depot)?, filled, FormErrors::default()))
}

fn build_new_namespace_page(
    req: &Request,
    depot: &Depot,
    gateway: &Gateway,
    filled: Form,
    faults: FormErrors,
) -> PageReply {
    let frame = Frame::new(req, depot, Section::Namespaces);
    let base = gateway.catalogue.default_base("Name");
    let status = faults.status;
    let page = Creation { frame, faults, filled, generators: GENERATORS, base };
    PageReply::show_with_status(status, &page)
}

/// Creates a namespace.
#[handler]
pub(crate) async fn create_namespace(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let name = form.trimmed("name").unwrap_or_default();
    if let Err(why) = namespace::check_name(&name) {
        let faults = FormErrors::for_field("name", &why);
        return Ok(build_new_namespace_page(req, depot, &gateway, form, faults));
    }
    let created = async {
        let definition = read_definition(&form, &name)?;
        namespaces::create_namespace(&gateway, caller(depot), definition).await
    };
    Ok(match created.await {
        Ok(_) => {
            let words = format!("The namespace {name} was created.");
            PageReply::redirect("/admin/namespaces", words)
        }
        Err(error) => build_new_namespace_page(
            req,
            depot,
            &gateway,
            form,
            FormErrors::from_error(error, FIELDS),
        ),
    })
}

/// Shows one namespace.
#[handler]
pub(crate) async fn show_namespace(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    build_namespace_page(req, depot, None, FormErrors::default()).await
}

async fn build_namespace_page(
    req: &Request,
    depot: &Depot,
    form: Option<Form>,
    faults: FormErrors,
) -> PageResult {
    let name = path_parameter(req, "name");
    let NamespaceUse { namespace, unchangeable_reason, undeletable_reason } =
        namespaces::find_namespace_use(&gateway(depot)?, name).await?;
    let filled = form.unwrap_or_else(|| {
        Form::with_values([
            ("uriBase", Some(namespace.uri_base.clone())),
            ("generator", Some(namespace.generator.name().to_owned())),
        ])
    });
    let status = faults.status;
    let page = One {
        frame: Frame::new(req, depot, Section::Namespaces).with_source_of(
            depot,
            DefinitionKind::Namespace,
            &namespace.name,
        ),
        faults,
        row: Row::from(&namespace),
        filled,
        generators: GENERATORS,
        used: unchangeable_reason,
        held: undeletable_reason,
    };
    Ok(PageReply::show_with_status(status, &page))
}

/// Changes a namespace that is not used yet.
#[handler]
pub(crate) async fn change_namespace(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let name = path_parameter(req, "name");
    namespaces::find_namespace(&gateway, name).await?;
    let changed = async {
        let definition = read_definition(&form, name)?;
        namespaces::define_namespace(&gateway, caller(depot), definition, Preconditions::default())
            .await
    };
    Ok(match changed.await {
        Ok(_) => {
            let words = format!("The namespace {name} was changed.");
            PageReply::redirect(page_path(name), words)
        }
        Err(error) => {
            build_namespace_page(req, depot, Some(form), FormErrors::from_error(error, FIELDS))
                .await?
        }
    })
}

/// Asks for confirmation before a namespace is deleted.
#[handler]
pub(crate) async fn confirm_deletion(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let found = namespaces::find_namespace(&gateway(depot)?, name).await?;
    let frame = Frame::new(req, depot, Section::Namespaces);
    let frame = frame.with_source_of(depot, DefinitionKind::Namespace, name);
    Ok(PageReply::show(&Deletion { frame, row: Row::from(&found) }))
}

/// Deletes a namespace that is not used.
#[handler]
pub(crate) async fn delete_namespace(req: &mut Request, depot: &mut Depot) -> PageResult {
    let name = path_parameter(req, "name");
    Ok(
        match namespaces::delete_namespace(
            &gateway(depot)?,
            caller(depot),
            name,
            Preconditions::default(),
        )
        .await
        {
            Ok(()) => {
                let words = format!("The namespace {name} was deleted.");
                PageReply::redirect("/admin/namespaces", words)
            }
            Err(error) => PageReply::redirect_with_error(page_path(name), error.detail),
        },
    )
}
