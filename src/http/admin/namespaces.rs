//! `/admin/namespaces`: names, URI bases, and how identifiers are created.
use super::form::{Faults, Form, form};
use super::frame::{self, Frame, Section};
use super::pager::Pager;
use super::words;
use crate::business_objects::{SEGMENT, path};
use crate::caller::caller;
use crate::namespaces::{base, define, remove};
use crate::problem::Problem;
use crate::query::{Query, cut};
use crate::state::{blocking, gateway};
use askama::Template;
use penstock_base::Role;
use penstock_model::namespace::{self, Namespace};
use penstock_service::gateway::Gateway;
use percent_encoding::utf8_percent_encode;
use salvo::{Depot, Request, Response, handler};
use serde_json::Value;

/// Rows of one page.
const ROWS: usize = 100;
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
    faults: Faults,
    name: String,
    uri_base: String,
    generator: String,
    generators: [(&'static str, &'static str); 4],
    /// The base of a namespace when the field is left empty.
    base: String,
}

#[derive(Template)]
#[template(path = "admin/namespace.html")]
struct One {
    frame: Frame,
    faults: Faults,
    row: Row,
    uri_base: String,
    generator: String,
    generators: [(&'static str, &'static str); 4],
    /// Why it can no longer be changed, and why it cannot be deleted.
    used: Option<String>,
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
            path: address(&namespace.name),
            uri_base: namespace.uri_base.clone(),
            generator: namespace.generator.name(),
            created: words::minute(&namespace.created_at),
        }
    }
}

/// Returns the address of a namespace's page, without the prefix.
fn address(name: &str) -> String {
    format!("/admin/namespaces/{}", utf8_percent_encode(name, SEGMENT))
}

/// Shows the list.
#[handler]
pub(crate) async fn list(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let query = Query::read(req, &["cursor"])?;
    let after = query.cursor()?;
    let (store, from) = (gateway(depot)?.store, after.clone());
    let listed = blocking(move || Ok(namespace::list(&store.read(), from.as_deref(), ROWS + 1)?));
    let mut namespaces = listed.await?;
    let next = cut(&mut namespaces, ROWS, |namespace| &namespace.name);
    let frame = Frame::of(req, depot, res, Section::Namespaces);
    let page = List {
        rows: namespaces.iter().map(Row::from).collect(),
        pager: Pager::new(&frame, "/admin/namespaces", &[], after.is_none(), next.as_deref()),
        frame,
    };
    frame::show(res, depot, &page);
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
    show_creation(req, depot, res, Faults::default(), &Form::default())
}

fn show_creation(
    req: &Request,
    depot: &Depot,
    res: &mut Response,
    faults: Faults,
    form: &Form,
) -> Result<(), Problem> {
    let page = Creation {
        frame: Frame::of(req, depot, res, Section::Namespaces),
        faults,
        name: form.text("name"),
        uri_base: form.text("uriBase"),
        generator: form.word("generator").unwrap_or_else(|| "uuid".to_owned()),
        generators: GENERATORS,
        base: base(&gateway(depot)?, "Name"),
    };
    let status = page.faults.status;
    frame::show_with(res, depot, status, &page);
    Ok(())
}

/// Creates a namespace.
#[handler]
pub(crate) async fn create(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (form(depot), gateway(depot)?);
    let name = form.word("name").unwrap_or_default();
    if let Err(why) = namespace::check_name(&name) {
        return show_creation(req, depot, res, Faults::one("name", &why), &form);
    }
    let sent = sent(&form);
    let (by, wanted) = (caller(depot).clone(), name.clone());
    let made = blocking(move || {
        // An existing namespace would be changed.
        if find(&gateway, &wanted)?.is_some() {
            let why = format!("the namespace {wanted:?} already exists");
            return Ok(Err(Faults::one("name", &why)));
        }
        Ok(define(&gateway, &by, &wanted, &sent).map_err(|problem| Faults::of(&problem, FIELDS)))
    });
    match made.await? {
        Ok(_) => {
            let words = format!("The namespace {name} was created.");
            frame::done(res, depot, "/admin/namespaces", &words);
            Ok(())
        }
        Err(faults) => show_creation(req, depot, res, faults, &form),
    }
}

/// Returns the body that the API expects.
fn sent(form: &Form) -> Vec<u8> {
    Value::Object(form.members(&["uriBase", "generator"])).to_string().into_bytes()
}

fn find(gateway: &Gateway, name: &str) -> Result<Option<Namespace>, Problem> {
    Ok(namespace::get(&gateway.store.read(), name)?)
}

fn must_find(gateway: &Gateway, name: &str) -> Result<Namespace, Problem> {
    find(gateway, name)?
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
    show_one(req, depot, res, Faults::default(), None).await
}

async fn show_one(
    req: &Request,
    depot: &Depot,
    res: &mut Response,
    faults: Faults,
    form: Option<&Form>,
) -> Result<(), Problem> {
    let (gateway, name) = (gateway(depot)?, path(req, "name").to_owned());
    let found = blocking(move || {
        let namespace = must_find(&gateway, &name)?;
        let read = gateway.store.read();
        let used = namespace::use_of(&read, &namespace)?;
        Ok((used, namespace::held_by(&read, &namespace)?, namespace))
    });
    let (used, held, namespace) = found.await?;
    let row = Row::from(&namespace);
    let typed = |field: &str, known: &str| {
        form.and_then(|form| form.word(field)).unwrap_or_else(|| known.to_owned())
    };
    let page = One {
        frame: Frame::of(req, depot, res, Section::Namespaces),
        faults,
        uri_base: typed("uriBase", &row.uri_base),
        generator: typed("generator", row.generator),
        row,
        generators: GENERATORS,
        used,
        held,
    };
    let status = page.faults.status;
    frame::show_with(res, depot, status, &page);
    Ok(())
}

/// Changes a namespace that is not used yet.
#[handler]
pub(crate) async fn change(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (form(depot), gateway(depot)?);
    let (name, sent) = (path(req, "name").to_owned(), sent(&form));
    let by = caller(depot).clone();
    let changed = blocking(move || {
        let name = must_find(&gateway, &name)?.name;
        define(&gateway, &by, &name, &sent)
    });
    match changed.await {
        Ok((namespace, _)) => {
            let words = format!("The namespace {} was changed.", namespace.name);
            frame::done(res, depot, &address(&namespace.name), &words);
            Ok(())
        }
        Err(problem) => show_one(req, depot, res, Faults::of(&problem, FIELDS), Some(&form)).await,
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
    let (gateway, name) = (gateway(depot)?, path(req, "name").to_owned());
    let namespace = blocking(move || must_find(&gateway, &name)).await?;
    let frame = Frame::of(req, depot, res, Section::Namespaces);
    frame::show(res, depot, &Deletion { frame, row: Row::from(&namespace) });
    Ok(())
}

/// Deletes a namespace that is not used.
#[handler]
pub(crate) async fn delete(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (gateway, name) = (gateway(depot)?, path(req, "name").to_owned());
    let (by, removed) = (caller(depot).clone(), name.clone());
    match blocking(move || remove(&gateway, &by, &removed)).await {
        Ok(()) => {
            let words = format!("The namespace {name} was deleted.");
            frame::done(res, depot, "/admin/namespaces", &words);
        }
        Err(problem) => frame::failed(res, depot, &address(&name), problem.detail()),
    }
    Ok(())
}
