//! The Business Objects: the list, the page of one, and its actions.
use super::check;
use super::form::form;
use super::frame::{self, Frame, Section};
use super::words;
use crate::business_objects::{SEGMENT, named, remove};
use crate::caller::caller;
use crate::problem::Problem;
use crate::push::everything;
use crate::query::Query;
use crate::service::origin;
use crate::state::{blocking, gateway, state};
use askama::Template;
use penstock_auth::{Caller, Role};
use penstock_base::IfMatch;
use penstock_base::fault::{Fault, Finding};
use penstock_export::{Entry, Push, Status};
use penstock_model::members;
use penstock_model::resource::{BusinessObject, Compiled, Definition};
use penstock_service::gateway::Gateway;
use percent_encoding::utf8_percent_encode;
use salvo::{Depot, Request, Response, handler};
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum exports that are read to find the last one of each Business Object.
const LOOKED_AT: usize = 1000;
/// The maximum objects that are counted before a Business Object is deleted.
const COUNTED: usize = 10_000;

#[derive(Template)]
#[template(path = "admin/business_objects.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
}

/// One row of the list.
struct Row {
    id: String,
    name: String,
    description: String,
    enabled: bool,
    schedule: String,
    targets: Vec<String>,
    last: Option<Last>,
}

/// The last export of a Business Object.
struct Last {
    id: String,
    age: String,
    state: super::exports::State,
}

#[derive(Template)]
#[template(path = "admin/business_object.html")]
struct One {
    frame: Frame,
    object: BusinessObject,
    schedule: String,
    next: Option<String>,
    by: String,
    at: String,
    namespaces: Vec<String>,
    /// Valid parts of its definition that are probably mistakes.
    warnings: Vec<String>,
    /// The URL for sending data.
    address: String,
    last: Option<Last>,
}

#[derive(Template)]
#[template(path = "admin/delete.html")]
struct Delete {
    frame: Frame,
    id: String,
    name: String,
    version: u64,
    objects: String,
    waiting: String,
    keys: String,
}

/// Shows the list.
#[handler]
pub(crate) async fn list(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let frame = Frame::of(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let rows = blocking(move || {
        let all = gateway.catalogue.list();
        let mut last = last_exports(&gateway, &all)?;
        let row = |compiled: &Arc<Compiled>| {
            let BusinessObject { id, definition, .. } = &compiled.object;
            Row {
                last: last.remove(id).map(|entry| Last::of(&entry)),
                id: id.clone(),
                name: definition.name.clone(),
                description: definition.description.clone(),
                enabled: definition.enabled,
                schedule: schedule(definition),
                targets: targets(definition),
            }
        };
        Ok(all.iter().map(row).collect())
    })
    .await?;
    frame::show(res, depot, &List { frame, rows });
    Ok(())
}

/// Shows one Business Object.
#[handler]
pub(crate) async fn get(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let frame = Frame::of(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let compiled = named(req, &gateway)?;
    let base = origin(depot).base_url(state(depot).settings()).unwrap_or_default();
    let page = blocking(move || {
        let object = compiled.object.clone();
        let last = last_exports(&gateway, std::slice::from_ref(&compiled))?;
        let warnings = gateway.catalogue.warnings(std::slice::from_ref(&compiled))?;
        let account = object.updated_by.as_deref().and_then(|id| gateway.auth.accounts.get(id));
        let name = utf8_percent_encode(&object.definition.name, SEGMENT);
        Ok(One {
            frame,
            schedule: schedule(&object.definition),
            next: next(&object.definition),
            by: account.map_or_else(
                || object.updated_by.clone().unwrap_or_default(),
                |account| words::name(&account),
            ),
            at: words::moment(&object.updated_at),
            namespaces: compiled.mapping.namespaces().into_iter().map(str::to_owned).collect(),
            warnings: warnings.into_iter().flatten().map(warning).collect(),
            address: format!("{base}/api/v1/business-objects/{name}?mode=ADD"),
            last: last.into_values().next().map(|entry| Last::of(&entry)),
            object,
        })
    })
    .await?;
    frame::show(res, depot, &page);
    Ok(())
}

/// Exports everything now.
#[handler]
pub(crate) async fn push(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let gateway = gateway(depot)?;
    let compiled = named(req, &gateway)?;
    let page = format!("/admin/business-objects/{}", compiled.object.id);
    match everything(depot, gateway, compiled).await? {
        Ok(Push { exports, reason }) => match (exports.as_slice(), reason) {
            ([], reason) => {
                let reason = reason.unwrap_or_default();
                frame::failed(res, depot, &page, &format!("Nothing was exported: {reason}"));
            }
            ([one], _) => {
                let objects = words::many(one.object_count, "object", "objects");
                let words = format!("An export of {objects} is queued for {}.", one.target);
                frame::done(res, depot, &format!("/admin/exports/{}", one.id), &words);
            }
            (all, _) => {
                let words = format!(
                    "{} are queued, one for each target.",
                    words::many(all.len() as u64, "export", "exports")
                );
                frame::done(res, depot, "/admin/exports", &words);
            }
        },
        Err(fault) => frame::failed(res, depot, &page, &fault.detail),
    }
    Ok(())
}

/// Asks for confirmation before a Business Object is deleted.
#[handler]
pub(crate) async fn ask_delete(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let frame = Frame::of(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let compiled = named(req, &gateway)?;
    let by = caller(depot).clone();
    let page = blocking(move || Ok(concerned(frame, &gateway, &compiled, &by)?)).await?;
    frame::show(res, depot, &page);
    Ok(())
}

/// Deletes a Business Object.
#[handler]
pub(crate) async fn delete(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let form = form(depot);
    let gateway = gateway(depot)?;
    let compiled = named(req, &gateway)?;
    let BusinessObject { id, definition, .. } = compiled.object.clone();
    let version = form.word("version").and_then(|version| version.parse().ok());
    let asked = version.map_or(IfMatch::Exists, IfMatch::Version);
    let (by, key) = (caller(depot).clone(), id.clone());
    let deleted = blocking(move || Ok(remove(&gateway, &by, &key, asked))).await?;
    match deleted {
        Ok(()) => {
            let words = format!("{} was deleted; its objects are still stored.", definition.name);
            frame::done(res, depot, "/admin/business-objects", &words);
        }
        Err(fault) => {
            let page = format!("/admin/business-objects/{id}/delete");
            frame::failed(res, depot, &page, &format!("It was not deleted: {}", fault.detail));
        }
    }
    Ok(())
}

/// Collects what the deletion of a Business Object affects.
fn concerned(
    frame: Frame,
    gateway: &Gateway,
    compiled: &Compiled,
    by: &Caller,
) -> Result<Delete, Fault> {
    let BusinessObject { id, definition, version, .. } = &compiled.object;
    let objects = count(gateway, compiled)?;
    let waiting = entries(gateway, LOOKED_AT, |entry| {
        entry.business_object == *id && entry.status != Status::Delivered
    })?;
    let keys = gateway.auth.keys.list(by, None, usize::MAX);
    let keys = keys.iter().filter(|key| key.business_object.as_ref() == Some(id)).count();
    let more = if objects > COUNTED { "more than " } else { "" };
    let objects = words::many(objects.min(COUNTED) as u64, "object", "objects");
    Ok(Delete {
        frame,
        id: id.clone(),
        name: definition.name.clone(),
        version: *version,
        objects: format!("{more}{objects}"),
        waiting: words::many(waiting.len() as u64, "export", "exports"),
        keys: words::many(keys as u64, "API key", "API keys"),
    })
}

/// Counts the objects that belong to a Business Object. Returns [`COUNTED`] + 1 if there are more.
fn count(gateway: &Gateway, compiled: &Compiled) -> Result<usize, Fault> {
    let mut count = 0;
    let mut after: Option<String> = None;
    while count <= COUNTED {
        let (page, _) = members::page_of(&gateway.store, compiled, after.as_deref(), 1000)?;
        count += page.len();
        match page.last() {
            Some(last) => after = Some(last.as_str().to_owned()),
            None => return Ok(count),
        }
    }
    Ok(COUNTED + 1)
}

/// Returns the newest export of each Business Object.
fn last_exports(gateway: &Gateway, of: &[Arc<Compiled>]) -> Result<HashMap<String, Entry>, Fault> {
    let mut last = HashMap::new();
    entries(gateway, LOOKED_AT, |entry| {
        let is_one = of.iter().any(|compiled| compiled.object.id == entry.business_object);
        if is_one && !last.contains_key(&entry.business_object) {
            last.insert(entry.business_object.clone(), entry.clone());
        }
        false
    })?;
    Ok(last)
}

/// Returns the wanted exports among the newest `most`.
fn entries(
    gateway: &Gateway,
    most: usize,
    mut wanted: impl FnMut(&Entry) -> bool,
) -> Result<Vec<Entry>, Fault> {
    const PAGE: usize = 200;
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    let mut looked_at = 0;
    while looked_at < most {
        let page = gateway.exporter.list(after.as_deref(), PAGE)?;
        looked_at += PAGE;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        found.extend(page.into_iter().filter(|entry| wanted(entry)));
    }
    Ok(found)
}

impl Last {
    fn of(entry: &Entry) -> Self {
        Self {
            id: entry.id.clone(),
            age: words::age(&entry.created_at),
            state: super::exports::State::of(entry.status),
        }
    }
}

fn warning(finding: Finding) -> String {
    match check::warning(finding) {
        (Some((line, column)), message) => {
            format!("Line {line}, column {column} of the mapping: {message}")
        }
        (None, message) => message,
    }
}

fn targets(definition: &Definition) -> Vec<String> {
    definition.push_targets.iter().map(|target| target.bucket_name.clone()).collect()
}

/// Describes when it is exported automatically.
fn schedule(definition: &Definition) -> String {
    let zone = definition.timezone.as_deref().map(|zone| format!(" ({zone})")).unwrap_or_default();
    let mut parts: Vec<String> =
        definition.schedule.iter().map(|schedule| format!("{schedule}{zone}")).collect();
    if definition.export_on_change {
        parts.push("on change".to_owned());
    }
    parts.join(", ")
}

/// Returns when the schedule runs next.
fn next(definition: &Definition) -> Option<String> {
    let schedule = definition.automatic().ok()?.schedule?;
    let next = schedule.next(chrono::Utc::now())?;
    Some(next.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}
