//! The Business Objects: the list, the page of one, and its actions.
use super::check;
use super::form::take_form;
use super::frame::{Frame, PageReply, PageResult};
use super::labels::Labelled as _;
use super::menu::Section;
use super::objects::address::view_path;
use super::schedule::{ShownSchedule, describe_cron};
use super::words;
use askama::Template;
use penstock_auth::{Caller, Role};
use penstock_export::EmptyRun;
use penstock_http::caller::caller;
use penstock_http::origin::origin;
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_http::trace::trace;
use penstock_model::ingest::Mode;
use penstock_model::mapping::{Mapping, build_example};
use penstock_model::resource::{BusinessObject, Compiled, Definition};
use penstock_resources::business_object::Review;
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::export::{Export, Push};
use penstock_resources::warning::Warning;
use penstock_service::business_objects::{
    self, BusinessObjects, DeletionEffects, MAX_COUNTED_OBJECTS, find_business_object,
};
use penstock_service::definitions;
use penstock_service::deletions;
use penstock_service::exports;
use penstock_service::gateway::Gateway;
use penstock_service::views::list_views;
use salvo::{Depot, Request, handler};
use std::sync::Arc;

/// The maximum number of saved views that the page of one shows.
const MAX_VIEWS: usize = 50;

#[derive(Template)]
#[template(path = "admin/business_objects.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    /// Whether a Business Object is being deleted with its objects.
    is_deleting: bool,
}

/// One row of the list.
struct Row {
    compiled: Arc<Compiled>,
    schedule: String,
    /// Its last export.
    last: Option<Export>,
    may_edit: bool,
}

#[derive(Template)]
#[template(path = "admin/business_object.html")]
struct One {
    frame: Frame,
    object: BusinessObject,
    schedule: String,
    /// The schedule as it is written, if `schedule` has words for it.
    cron: Option<String>,
    /// The next scheduled exports, in the time zone of the schedule.
    runs: Vec<String>,
    /// The approvers of its changes; none means Admins.
    approvers: Vec<String>,
    by: String,
    namespaces: Vec<String>,
    /// Valid parts of its definition that are probably mistakes.
    warnings: Vec<String>,
    /// The URL for sending data.
    address: String,
    /// Whether the mapping finds objects in documents.
    has_items: bool,
    /// The command that sends an example, with a placeholder for the key.
    command: String,
    /// Its last export.
    last: Option<Export>,
    /// The last run, if it exported nothing.
    empty_run: Option<EmptyRun>,
    /// The paths of its saved views, without the prefix, and their names.
    views: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "admin/delete.html")]
struct Delete {
    frame: Frame,
    object: BusinessObject,
    effects: DeletionEffects,
}

impl Delete {
    /// Formats a number of objects that may be incomplete.
    fn format_objects(&self, count: u64) -> String {
        let counted = self.effects.objects.as_ref().map_or(0, |found| found.objects + found.kept);
        let more = if counted > MAX_COUNTED_OBJECTS { "at least " } else { "" };
        format!("{more}{}", words::format_count(count, "object", "objects"))
    }

    fn format_waiting(&self) -> String {
        words::format_count(self.effects.waiting_export_count as u64, "export", "exports")
    }

    fn format_keys(&self) -> String {
        words::format_count(self.effects.key_count as u64, "API key", "API keys")
    }
}

/// Shows the list.
#[handler]
pub(crate) async fn list_business_objects(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let mut last = business_objects::list_last_exports(&gateway).await?;
    let is_admin = frame.may(Role::Admin);
    let row = |compiled: Arc<Compiled>| {
        let BusinessObject { id, definition, deleting, .. } = &compiled.object;
        let is_in_file = || {
            let (kind, name) = (DefinitionKind::BusinessObject, &definition.name);
            definitions::find_source_file(&gateway, kind, name).is_some()
        };
        Row {
            schedule: describe_schedule(definition),
            last: last.remove(id),
            may_edit: is_admin && deleting.is_none() && !is_in_file(),
            compiled,
        }
    };
    let rows: Vec<Row> = gateway.catalogue.list().into_iter().map(row).collect();
    let is_deleting = rows.iter().any(|row| row.compiled.object.deleting.is_some());
    Ok(PageReply::show(&List { frame, rows, is_deleting }))
}

/// Shows one Business Object.
#[handler]
pub(crate) async fn show_business_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
    let base = origin(depot).base_url(state(depot).settings()).unwrap_or_default();
    let mut last = business_objects::list_last_exports(&gateway).await?;
    // The page after a form has its notice.
    let shown = if frame.notice.is_some() {
        business_objects::show_saved_business_object(&gateway, Arc::clone(&compiled)).await?
    } else {
        business_objects::show_business_object(&gateway, Arc::clone(&compiled)).await?
    };
    let object = compiled.object.clone();
    let address = build_ingestion_address(&base, &compiled);
    let page = One {
        schedule: describe_schedule(&object.definition),
        cron: object.definition.schedule.clone().filter(|cron| describe_cron(cron).is_some()),
        runs: ShownSchedule::new(
            object.definition.schedule.as_deref(),
            object.definition.timezone.as_deref(),
            chrono::Utc::now(),
        )
        .runs,
        by: describe_updater(&gateway, caller(depot), &object).unwrap_or_default(),
        approvers: object
            .definition
            .approvers()
            .iter()
            .map(|one| {
                let is_admin = frame.may(Role::Admin);
                words::name_principal(&gateway, caller(depot), one, is_admin)
            })
            .collect(),
        namespaces: compiled.mapping.namespaces().into_iter().map(str::to_owned).collect(),
        warnings: shown.warnings.into_iter().map(describe_warning).collect(),
        command: build_command(&address, "KEY", &compiled.mapping),
        address,
        has_items: compiled.mapping.document.is_some(),
        frame: frame.with_source_of(depot, DefinitionKind::BusinessObject, &object.definition.name),
        last: last.remove(&object.id),
        empty_run: exports::find_empty_run(&gateway, &object.id),
        views: list_views(&gateway, caller(depot), Some(&object.id), None, MAX_VIEWS)
            .into_iter()
            .map(|view| (view_path(&object.id, &view.id), view.name))
            .collect(),
        object,
    };
    Ok(PageReply::show(&page))
}

/// Returns the address that objects of a Business Object are sent to. Sent again, an object with a key is the same one.
pub(super) fn build_ingestion_address(base: &str, compiled: &Compiled) -> String {
    let has_key = compiled.mapping.root.key_fields().is_some();
    let mode = if has_key { Mode::Merge } else { Mode::Add };
    let name = encode_segment(&compiled.object.definition.name);
    format!("{base}/api/v1/business-objects/{name}?mode={}", mode.name())
}

/// Returns the command that sends an example to the address, with this API key.
pub(super) fn build_command(address: &str, key: &str, mapping: &Mapping) -> String {
    let body = format!("{{\"data\": [{}]}}", build_example(mapping));
    format!(
        "curl -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\\n  '{address}' \\\n  -d '{}'",
        body.replace('\'', r"'\''")
    )
}

/// Exports all objects of a Business Object now.
#[handler]
pub(crate) async fn push_business_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    let gateway = gateway(depot)?;
    let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
    let page = format!("/admin/business-objects/{}", compiled.object.id);
    let (by, trace) = (caller(depot), trace(depot).to_string());
    let Push { exports, reason } =
        match exports::push_business_object(&gateway, by, compiled, trace).await {
            Ok(pushed) => pushed,
            Err(error) => return Ok(PageReply::redirect_with_error(page, error.detail)),
        };
    Ok(match exports.as_slice() {
        [] => {
            let words = format!("Nothing was exported: {}", reason.unwrap_or_default());
            PageReply::redirect_with_error(page, words)
        }
        [one] => {
            let objects = words::format_count(one.object_count, "object", "objects");
            let words = format!("An export of {objects} is queued for {}.", one.target);
            PageReply::redirect(format!("/admin/exports/{}", one.id), words)
        }
        all => {
            let exports = words::format_count(all.len() as u64, "export", "exports");
            let words = format!("{exports} are queued, one for each target.");
            PageReply::redirect("/admin/exports", words)
        }
    })
}

/// Asks for confirmation before a Business Object is deleted.
#[handler]
pub(crate) async fn confirm_deletion(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
    let object = compiled.object.clone();
    let effects =
        business_objects::collect_deletion_effects(&gateway, caller(depot), compiled).await?;
    let frame =
        frame.with_source_of(depot, DefinitionKind::BusinessObject, &object.definition.name);
    Ok(PageReply::show(&Delete { frame, object, effects }))
}

/// Deletes a Business Object.
#[handler]
pub(crate) async fn delete_business_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let gateway = gateway(depot)?;
    let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
    let BusinessObject { id, definition, .. } = &compiled.object;
    let (by, if_match, name) = (caller(depot), form.if_match(), &definition.name);
    let deleted = if form.text("data") == "true" {
        let bypass = form.is_ticked("bypass");
        let begun = deletions::begin_deletion(&gateway, by, id, if_match, bypass).await;
        begun.map(|_| format!("{name} is being deleted with its objects."))
    } else {
        let conditions = if_match.into();
        let deleted = definitions::delete::<BusinessObjects>(&gateway, by, id, conditions).await;
        deleted.map(|()| format!("{name} was deleted; its objects are still stored."))
    };
    Ok(match deleted {
        Ok(words) => PageReply::redirect("/admin/business-objects", words),
        Err(error) => PageReply::redirect_with_error(
            format!("/admin/business-objects/{id}/delete"),
            format!("It was not deleted: {}", error.detail),
        ),
    })
}

/// Returns who has changed a Business Object last; `None` if that is not known.
pub(super) fn describe_updater(
    gateway: &Gateway,
    by: &Caller,
    object: &BusinessObject,
) -> Option<String> {
    let id = object.updated_by.as_deref()?;
    Some(words::name_requester(gateway, by, id))
}

fn describe_warning(warning: Warning) -> String {
    match check::split_warning(warning) {
        (Some((line, column)), message) => {
            format!("Line {line}, column {column} of the mapping: {message}")
        }
        (None, message) => message,
    }
}

/// Describes when a Business Object is exported automatically.
fn describe_schedule(definition: &Definition) -> String {
    let zone = definition.timezone.as_deref().unwrap_or("UTC");
    let mut parts: Vec<String> = definition
        .schedule
        .iter()
        .map(|text| format!("{} ({zone})", name_schedule(text)))
        .collect();
    if definition.export_on_change {
        parts.push("on change".to_owned());
    }
    parts.join(", ")
}

/// Returns a schedule in words, otherwise as it is written.
fn name_schedule(text: &str) -> String {
    describe_cron(text).unwrap_or_else(|| text.to_owned())
}
