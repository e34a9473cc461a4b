//! `/admin/object/delete`: shows what deleting an object removes, and deletes it.
use super::change::{
    Difference, Obstacle, Target, new_form_key, new_request, preview, read_target,
    report_submitted, save,
};
use crate::admin::form::{Form, take_form};
use crate::admin::frame::{Frame, PageReply, PageResult};
use crate::admin::menu::Section;
use crate::admin::words::{self, shorten_text};
use askama::Template;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::Json;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::state::gateway;
use penstock_model::ingest::Mode;
use penstock_service::objects::{
    DeletableObject, ObjectPart, PartContent, ReferringObject, describe_object,
    read_deletable_object, view_nesting,
};
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};
use std::sync::Arc;

/// The maximum number of named objects that refer to the object.
const MAX_NAMED: usize = 5;

#[derive(Template)]
#[template(path = "admin/object/delete.html")]
struct Page {
    frame: Frame,
    target: Target,
    difference: Difference,
    /// How many nested objects are removed with it, in words; empty for none.
    nested: String,
    /// The first objects that refer to it.
    referrers: Vec<String>,
    /// Whether more objects refer to it than are named.
    has_more_referrers: bool,
    /// Why it is unknown what refers to it.
    unsearched: Option<String>,
    etag: String,
    /// The key under which the form is sent only once.
    key: String,
    /// Whether the object has changed since the page was loaded before.
    is_outdated: bool,
}

/// Shows what would be removed.
#[handler]
pub(crate) async fn confirm_deletion(req: &mut Request, depot: &mut Depot) -> PageResult {
    build_page(req, depot, false).await
}

/// Deletes the object, if it is as the page has shown it.
#[handler]
pub(crate) async fn delete_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let (compiled, uri) = read_target(req, depot)?;
    let request = new_request(req, depot, &compiled, Mode::Delete, &form);
    match save(depot, request, form.text("etag"), deletion_of(&uri)).await {
        Ok(answer) if answer.change.is_some() => Ok(report_submitted(&answer)),
        Ok(_) => {
            let path = format!("/admin/objects/{}", compiled.object.id);
            Ok(PageReply::redirect(path, "The object was deleted."))
        }
        Err(Obstacle::Outdated) => build_page(req, depot, true).await,
        Err(obstacle) => Err(obstacle.into_problem()),
    }
}

async fn build_page(req: &Request, depot: &Depot, is_outdated: bool) -> PageResult {
    let (compiled, uri) = read_target(req, depot)?;
    let gateway = gateway(depot)?;
    let read = read_deletable_object(&gateway, caller(depot), Arc::clone(&compiled), &uri).await?;
    let DeletableObject { view, etag } = read;
    let request = new_request(req, depot, &compiled, Mode::Delete, &Form::default());
    let preview = preview(depot, request, etag.clone(), deletion_of(&uri)).await;
    let preview = preview.map_err(Obstacle::into_problem)?;
    let removed = preview.answer.deleted.saturating_sub(1);
    let Referrers { names: referrers, has_more: has_more_referrers, unsearched } =
        find_referrers(depot, &uri).await?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let status = if is_outdated { StatusCode::PRECONDITION_FAILED } else { StatusCode::OK };
    let page = Page {
        target: Target::new(&frame, &compiled, &uri, &view),
        difference: Difference::new(preview, &compiled, view_nesting(&gateway), &frame),
        nested: if removed > 0 {
            words::format_count(removed, "nested object", "nested objects")
        } else {
            String::new()
        },
        referrers,
        has_more_referrers,
        unsearched,
        etag,
        key: new_form_key(),
        is_outdated,
        frame,
    };
    Ok(PageReply::show_with_status(status, &page))
}

/// What refers to an object.
struct Referrers {
    /// The names of the first ones.
    names: Vec<String>,
    has_more: bool,
    /// Why the search failed.
    unsearched: Option<String>,
}

async fn find_referrers(depot: &Depot, uri: &str) -> Result<Referrers, Problem> {
    let gateway = gateway(depot)?;
    let details =
        describe_object(&gateway, caller(depot), uri, None, ObjectPart::References(None)).await?;
    let page = match details.content {
        PartContent::References(Ok(page)) => page,
        PartContent::References(Err(error)) => {
            let unsearched = Some(error.detail);
            return Ok(Referrers { names: Vec::new(), has_more: false, unsearched });
        }
        _ => return Err(Problem::from(wrong_part_error())),
    };
    let has_more = page.found.len() > MAX_NAMED || page.next.is_some();
    let named = page.found.into_iter().take(MAX_NAMED).map(|one| {
        let ReferringObject { referrer, label } = one;
        let name = label.as_deref().map_or_else(|| referrer.uri.as_str().to_owned(), shorten_text);
        format!("{name} ({}, {})", referrer.business_object.object.definition.name, referrer.path)
    });
    Ok(Referrers { names: named.collect(), has_more, unsearched: None })
}

fn wrong_part_error() -> GatewayError {
    GatewayError::new(ErrorClass::Internal, "the references of the object were not read")
}

/// Returns the body of the ingestion that deletes an object.
fn deletion_of(uri: &str) -> String {
    let object = Json::Object(vec![("uri".to_owned(), Json::String(uri.to_owned()))]);
    Json::Object(vec![("data".to_owned(), Json::Array(vec![object]))]).to_string()
}
