//! `/admin/namespaces`: names, URI bases, and how identifiers are created.
use super::form::{Form, FormErrors, take_form};
use super::frame::{self, Frame, Section};
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_api::namespaces::{default_uri_base, define_namespace, remove_namespace};
use penstock_base::Role;
use penstock_http::caller::caller;
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::problem::Problem;
use penstock_http::query::{Query, truncate_page};
use penstock_http::state::{gateway, run_blocking};
use penstock_model::namespace::{self, Namespace};
use penstock_service::gateway::Gateway;
use salvo::{Depot, Request, Response, handler};
use serde_json::Value;

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
    name: String,
    uri_base: String,
    generator: String,
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
    uri_base: String,
    generator: String,
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

/// Shows the list.
#[handler]
pub(crate) async fn list(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let query = Query::read(req, &["cursor"])?;
    let after = query.read_cursor()?;
    let (store, from) = (gateway(depot)?.store, after.clone());
    let listed = run_blocking(move || {
        Ok(namespace::list(&store.read(), from.as_deref(), ROWS_PER_PAGE + 1)?)
    });
    let mut namespaces = listed.await?;
    let next = truncate_page(&mut namespaces, ROWS_PER_PAGE, |namespace| &namespace.name);
    let frame = Frame::for_caller(req, depot, res, Section::Namespaces);
    let page = List {
        rows: namespaces.iter().map(Row::from).collect(),
        pager: Pager::new(&frame, "/admin/namespaces", &[], after.is_none(), next.as_deref()),
        frame,
    };
    frame::show_page(res, depot, &page);
    Ok(())
}

/// Shows the form for a new namespace.
#[handler]
pub(crate) async fn creation(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    render_new_namespace(req, depot, res, FormErrors::default(), &Form::default())
}

fn render_new_namespace(
    req: &Request,
    depot: &Depot,
    res: &mut Response,
    faults: FormErrors,
    form: &Form,
) -> Result<(), Problem> {
    let page = Creation {
        frame: Frame::for_caller(req, depot, res, Section::Namespaces),
        faults,
        name: form.text("name"),
        uri_base: form.text("uriBase"),
        generator: form.trimmed("generator").unwrap_or_else(|| "uuid".to_owned()),
        generators: GENERATORS,
        base: default_uri_base(&gateway(depot)?, "Name"),
    };
    let status = page.faults.status;
    frame::show_page_with_status(res, depot, status, &page);
    Ok(())
}

/// Creates a namespace.
#[handler]
pub(crate) async fn create(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let name = form.trimmed("name").unwrap_or_default();
    if let Err(why) = namespace::check_name(&name) {
        return render_new_namespace(req, depot, res, FormErrors::for_field("name", &why), &form);
    }
    let sent = request_body(&form);
    let (by, wanted) = (caller(depot).clone(), name.clone());
    let made = run_blocking(move || {
        // An existing namespace would be changed.
        if find_namespace(&gateway, &wanted)?.is_some() {
            let why = format!("the namespace {wanted:?} already exists");
            return Ok(Err(FormErrors::for_field("name", &why)));
        }
        Ok(define_namespace(&gateway, &by, &wanted, &sent)
            .map_err(|problem| FormErrors::from_problem(&problem, FIELDS)))
    });
    match made.await? {
        Ok(_) => {
            let words = format!("The namespace {name} was created.");
            frame::redirect_with_notice(res, depot, "/admin/namespaces", &words);
            Ok(())
        }
        Err(faults) => render_new_namespace(req, depot, res, faults, &form),
    }
}

/// Returns the body that the API expects.
fn request_body(form: &Form) -> Vec<u8> {
    Value::Object(form.to_members(&["uriBase", "generator"])).to_string().into_bytes()
}

fn find_namespace(gateway: &Gateway, name: &str) -> Result<Option<Namespace>, Problem> {
    Ok(namespace::get(&gateway.store.read(), name)?)
}

fn require_namespace(gateway: &Gateway, name: &str) -> Result<Namespace, Problem> {
    find_namespace(gateway, name)?
        .ok_or_else(|| Problem::not_found(format!("there is no namespace {name:?}")))
}

/// Shows one namespace.
#[handler]
pub(crate) async fn one(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    render_namespace(req, depot, res, FormErrors::default(), None).await
}

async fn render_namespace(
    req: &Request,
    depot: &Depot,
    res: &mut Response,
    faults: FormErrors,
    form: Option<&Form>,
) -> Result<(), Problem> {
    let (gateway, name) = (gateway(depot)?, path_parameter(req, "name").to_owned());
    let found = run_blocking(move || {
        let namespace = require_namespace(&gateway, &name)?;
        let read = gateway.store.read();
        let used = namespace::unchangeable_reason(&read, &namespace)?;
        Ok((used, namespace::undeletable_reason(&read, &namespace)?, namespace))
    });
    let (used, held, namespace) = found.await?;
    let row = Row::from(&namespace);
    let typed = |field: &str, known: &str| {
        form.and_then(|form| form.trimmed(field)).unwrap_or_else(|| known.to_owned())
    };
    let page = One {
        frame: Frame::for_caller(req, depot, res, Section::Namespaces),
        faults,
        uri_base: typed("uriBase", &row.uri_base),
        generator: typed("generator", row.generator),
        row,
        generators: GENERATORS,
        used,
        held,
    };
    let status = page.faults.status;
    frame::show_page_with_status(res, depot, status, &page);
    Ok(())
}

/// Changes a namespace that is not used yet.
#[handler]
pub(crate) async fn change(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let (name, sent) = (path_parameter(req, "name").to_owned(), request_body(&form));
    let by = caller(depot).clone();
    let changed = run_blocking(move || {
        let name = require_namespace(&gateway, &name)?.name;
        define_namespace(&gateway, &by, &name, &sent)
    });
    match changed.await {
        Ok((namespace, _)) => {
            let words = format!("The namespace {} was changed.", namespace.name);
            frame::redirect_with_notice(res, depot, &page_path(&namespace.name), &words);
            Ok(())
        }
        Err(problem) => {
            render_namespace(
                req,
                depot,
                res,
                FormErrors::from_problem(&problem, FIELDS),
                Some(&form),
            )
            .await
        }
    }
}

/// Asks for confirmation before a namespace is deleted.
#[handler]
pub(crate) async fn deletion(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let (gateway, name) = (gateway(depot)?, path_parameter(req, "name").to_owned());
    let namespace = run_blocking(move || require_namespace(&gateway, &name)).await?;
    let frame = Frame::for_caller(req, depot, res, Section::Namespaces);
    frame::show_page(res, depot, &Deletion { frame, row: Row::from(&namespace) });
    Ok(())
}

/// Deletes a namespace that is not used.
#[handler]
pub(crate) async fn delete(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (gateway, name) = (gateway(depot)?, path_parameter(req, "name").to_owned());
    let (by, removed) = (caller(depot).clone(), name.clone());
    match run_blocking(move || remove_namespace(&gateway, &by, &removed)).await {
        Ok(()) => {
            let words = format!("The namespace {name} was deleted.");
            frame::redirect_with_notice(res, depot, "/admin/namespaces", &words);
        }
        Err(problem) => frame::redirect_with_error(res, depot, &page_path(&name), problem.detail()),
    }
    Ok(())
}
