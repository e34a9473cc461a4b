//! The Business Objects: the list, the page of one, and its actions.
use super::check;
use super::form::take_form;
use super::frame::{self, Frame, Section};
use super::words;
use askama::Template;
use penstock_api::business_objects::{find_business_object, remove_business_object};
use penstock_api::push::push_all;
use penstock_auth::{Caller, Role};
use penstock_base::IfMatch;
use penstock_base::error::{Finding, GatewayError};
use penstock_export::{ExportEntry, PushResult, Status};
use penstock_http::caller::caller;
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::service::origin;
use penstock_http::state::{gateway, run_blocking, state};
use penstock_model::members;
use penstock_model::resource::{BusinessObject, Compiled, Definition};
use penstock_service::gateway::Gateway;
use salvo::{Depot, Request, Response, handler};
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum number of exports that are read to find the last one of each Business Object.
const MAX_READ_EXPORTS: usize = 1000;
/// The maximum number of objects that are counted on the page that confirms a deletion.
const MAX_COUNTED_OBJECTS: usize = 10_000;

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
    state: super::exports::StatusLabel,
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
    let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let rows = run_blocking(move || {
        let all = gateway.catalogue.list();
        let mut last = last_exports(&gateway, &all)?;
        let row = |compiled: &Arc<Compiled>| {
            let BusinessObject { id, definition, .. } = &compiled.object;
            Row {
                last: last.remove(id).map(|entry| Last::from_entry(&entry)),
                id: id.clone(),
                name: definition.name.clone(),
                description: definition.description.clone(),
                enabled: definition.enabled,
                schedule: describe_schedule(definition),
                targets: target_names(definition),
            }
        };
        Ok(all.iter().map(row).collect())
    })
    .await?;
    frame::show_page(res, depot, &List { frame, rows });
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
    let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let compiled = find_business_object(req, &gateway)?;
    let base = origin(depot).base_url(state(depot).settings()).unwrap_or_default();
    let page = run_blocking(move || {
        let object = compiled.object.clone();
        let last = last_exports(&gateway, std::slice::from_ref(&compiled))?;
        let warnings = gateway.catalogue.collect_warnings(std::slice::from_ref(&compiled))?;
        let account = object.updated_by.as_deref().and_then(|id| gateway.auth.accounts.get(id));
        let name = encode_segment(&object.definition.name);
        Ok(One {
            frame,
            schedule: describe_schedule(&object.definition),
            next: next_run(&object.definition),
            by: account.map_or_else(
                || object.updated_by.clone().unwrap_or_default(),
                |account| words::display_name(&account),
            ),
            at: words::format_utc(&object.updated_at),
            namespaces: compiled.mapping.namespaces().into_iter().map(str::to_owned).collect(),
            warnings: warnings.into_iter().flatten().map(describe_warning).collect(),
            address: format!("{base}/api/v1/business-objects/{name}?mode=ADD"),
            last: last.into_values().next().map(|entry| Last::from_entry(&entry)),
            object,
        })
    })
    .await?;
    frame::show_page(res, depot, &page);
    Ok(())
}

/// Exports all objects of a Business Object now.
#[handler]
pub(crate) async fn push(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let gateway = gateway(depot)?;
    let compiled = find_business_object(req, &gateway)?;
    let page = format!("/admin/business-objects/{}", compiled.object.id);
    match push_all(depot, gateway, compiled).await? {
        Ok(PushResult { exports, reason }) => match (exports.as_slice(), reason) {
            ([], reason) => {
                let reason = reason.unwrap_or_default();
                frame::redirect_with_error(
                    res,
                    depot,
                    &page,
                    &format!("Nothing was exported: {reason}"),
                );
            }
            ([one], _) => {
                let objects = words::format_count(one.object_count, "object", "objects");
                let words = format!("An export of {objects} is queued for {}.", one.target);
                frame::redirect_with_notice(
                    res,
                    depot,
                    &format!("/admin/exports/{}", one.id),
                    &words,
                );
            }
            (all, _) => {
                let words = format!(
                    "{} are queued, one for each target.",
                    words::format_count(all.len() as u64, "export", "exports")
                );
                frame::redirect_with_notice(res, depot, "/admin/exports", &words);
            }
        },
        Err(error) => frame::redirect_with_error(res, depot, &page, &error.detail),
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
    let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let compiled = find_business_object(req, &gateway)?;
    let by = caller(depot).clone();
    let page =
        run_blocking(move || Ok(describe_deletion(frame, &gateway, &compiled, &by)?)).await?;
    frame::show_page(res, depot, &page);
    Ok(())
}

/// Deletes a Business Object.
#[handler]
pub(crate) async fn delete(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let form = take_form(depot);
    let gateway = gateway(depot)?;
    let compiled = find_business_object(req, &gateway)?;
    let BusinessObject { id, definition, .. } = compiled.object.clone();
    let version = form.trimmed("version").and_then(|version| version.parse().ok());
    let if_match = version.map_or(IfMatch::Exists, IfMatch::Version);
    let (by, key) = (caller(depot).clone(), id.clone());
    let deleted =
        run_blocking(move || Ok(remove_business_object(&gateway, &by, &key, if_match))).await?;
    match deleted {
        Ok(()) => {
            let words = format!("{} was deleted; its objects are still stored.", definition.name);
            frame::redirect_with_notice(res, depot, "/admin/business-objects", &words);
        }
        Err(error) => {
            let page = format!("/admin/business-objects/{id}/delete");
            frame::redirect_with_error(
                res,
                depot,
                &page,
                &format!("It was not deleted: {}", error.detail),
            );
        }
    }
    Ok(())
}

/// Returns the page that says what a deletion removes and what stays.
fn describe_deletion(
    frame: Frame,
    gateway: &Gateway,
    compiled: &Compiled,
    by: &Caller,
) -> Result<Delete, GatewayError> {
    let BusinessObject { id, definition, version, .. } = &compiled.object;
    let objects = count_objects(gateway, compiled)?;
    let waiting = find_exports(gateway, MAX_READ_EXPORTS, |entry| {
        entry.business_object == *id && entry.status != Status::Delivered
    })?;
    let keys = gateway.auth.keys.list(by, None, usize::MAX);
    let keys = keys.iter().filter(|key| key.business_object.as_ref() == Some(id)).count();
    let more = if objects > MAX_COUNTED_OBJECTS { "more than " } else { "" };
    let objects = words::format_count(objects.min(MAX_COUNTED_OBJECTS) as u64, "object", "objects");
    Ok(Delete {
        frame,
        id: id.clone(),
        name: definition.name.clone(),
        version: *version,
        objects: format!("{more}{objects}"),
        waiting: words::format_count(waiting.len() as u64, "export", "exports"),
        keys: words::format_count(keys as u64, "API key", "API keys"),
    })
}

/// Counts the objects that belong to a Business Object. Returns [`MAX_COUNTED_OBJECTS`] + 1 if there are more.
fn count_objects(gateway: &Gateway, compiled: &Compiled) -> Result<usize, GatewayError> {
    let mut count = 0;
    let mut after: Option<String> = None;
    while count <= MAX_COUNTED_OBJECTS {
        let (page, _) =
            members::list_members_with_sequence(&gateway.store, compiled, after.as_deref(), 1000)?;
        count += page.len();
        match page.last() {
            Some(last) => after = Some(last.as_str().to_owned()),
            None => return Ok(count),
        }
    }
    Ok(MAX_COUNTED_OBJECTS + 1)
}

/// Returns the newest export of each Business Object.
fn last_exports(
    gateway: &Gateway,
    of: &[Arc<Compiled>],
) -> Result<HashMap<String, ExportEntry>, GatewayError> {
    let mut last = HashMap::new();
    find_exports(gateway, MAX_READ_EXPORTS, |entry| {
        let is_one = of.iter().any(|compiled| compiled.object.id == entry.business_object);
        if is_one && !last.contains_key(&entry.business_object) {
            last.insert(entry.business_object.clone(), entry.clone());
        }
        false
    })?;
    Ok(last)
}

/// Returns the exports for which `wanted` holds, among the newest `most`.
fn find_exports(
    gateway: &Gateway,
    most: usize,
    mut wanted: impl FnMut(&ExportEntry) -> bool,
) -> Result<Vec<ExportEntry>, GatewayError> {
    const PAGE: usize = 200;
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    let mut read_count = 0;
    while read_count < most {
        let page = gateway.exporter.list(after.as_deref(), PAGE)?;
        read_count += PAGE;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        found.extend(page.into_iter().filter(|entry| wanted(entry)));
    }
    Ok(found)
}

impl Last {
    fn from_entry(entry: &ExportEntry) -> Self {
        Self {
            id: entry.id.clone(),
            age: words::format_age(&entry.created_at),
            state: super::exports::StatusLabel::from_status(entry.status),
        }
    }
}

fn describe_warning(finding: Finding) -> String {
    match check::split_warning(finding) {
        (Some((line, column)), message) => {
            format!("Line {line}, column {column} of the mapping: {message}")
        }
        (None, message) => message,
    }
}

fn target_names(definition: &Definition) -> Vec<String> {
    definition.push_targets.iter().map(|target| target.bucket_name.clone()).collect()
}

/// Describes when a Business Object is exported automatically.
fn describe_schedule(definition: &Definition) -> String {
    let zone = definition.timezone.as_deref().map(|zone| format!(" ({zone})")).unwrap_or_default();
    let mut parts: Vec<String> =
        definition.schedule.iter().map(|schedule| format!("{schedule}{zone}")).collect();
    if definition.export_on_change {
        parts.push("on change".to_owned());
    }
    parts.join(", ")
}

/// Returns the time of the next scheduled export.
fn next_run(definition: &Definition) -> Option<String> {
    let schedule = definition.parse_automatic().ok()?.schedule?;
    let next = schedule.next(chrono::Utc::now())?;
    Some(next.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}
