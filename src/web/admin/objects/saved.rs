//! A saved view above the page that it begins, and the form that saves what the page shows as a view.
use super::address::{
    ADDRESS, Pair, UNSAVED_NAME, UNSAVED_SHARED, find_value, view_path, write_query,
};
use super::state::State;
use crate::admin::form::{Form, take_form};
use crate::admin::frame::{PageReply, PageResult};
use penstock_auth::{Authorized, Caller};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::{self, MAX_NESTING};
use penstock_base::time_zone::Zone;
use penstock_http::caller::caller;
use penstock_http::path::encode_segment;
use penstock_http::query::parse_form;
use penstock_http::state::gateway;
use penstock_model::resource::Compiled;
use penstock_model::views::ViewContent;
use penstock_resources::view::{SavedView, ViewChart};
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::views::{create_view, find_view, may_change_view};
use salvo::{Depot, handler};
use serde_json::json;

/// The maximum number of characters of an unsaved name in an address, which has a limited length. A saved one has fewer.
const MAX_UNSAVED_NAME_CHARS: usize = 200;

/// What the page says of a saved view.
pub(super) struct ShownView {
    pub(super) name: String,
    pub(super) warnings: Vec<String>,
    /// The path of the page that deletes it, without the prefix, if the viewer may delete it.
    pub(super) deletion: Option<String>,
}

impl ShownView {
    pub(super) fn new(view: &SavedView, by: &Caller) -> Self {
        Self {
            name: view.name.clone(),
            warnings: view.warnings.iter().map(ToString::to_string).collect(),
            deletion: may_change_view(by, view).then(|| format!("/admin/views/{}/delete", view.id)),
        }
    }
}

/// What the form that saves a view had, if the view was not saved. It is in the address of the page to which the form leads
/// back.
pub(super) struct UnsavedView {
    pub(super) name: String,
    pub(super) shared: bool,
}

impl UnsavedView {
    /// Reads it from the parameters of a page; `None` if no form failed.
    pub(super) fn read(pairs: &[Pair]) -> Option<Self> {
        let name = find_value(pairs, UNSAVED_NAME)?.to_owned();
        Some(Self { name, shared: find_value(pairs, UNSAVED_SHARED).is_some() })
    }

    /// Adds what a form had to the parameters of its page.
    fn add_to(form: &Form, pairs: &mut Vec<Pair>) {
        pairs.retain(|(name, _)| name != UNSAVED_NAME && name != UNSAVED_SHARED);
        let name = form.text("name").chars().take(MAX_UNSAVED_NAME_CHARS).collect();
        pairs.push((UNSAVED_NAME.to_owned(), name));
        if form.is_ticked("shared") {
            pairs.push((UNSAVED_SHARED.to_owned(), "true".to_owned()));
        }
    }
}

/// Returns the view with this id of a Business Object; `None` without an id.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub(super) fn find_view_of(
    gateway: &Gateway,
    by: &Caller,
    compiled: &Compiled,
    id: Option<&str>,
) -> Result<Option<SavedView>, GatewayError> {
    let Some(id) = id.filter(|id| !id.is_empty()) else { return Ok(None) };
    let view = find_view(gateway, by, id)?;
    if view.business_object != compiled.object.id {
        let detail = "this view is of another Business Object";
        return Err(GatewayError::new(ErrorClass::NotFound, detail));
    }
    Ok(Some(view))
}

/// Saves what a page shows as a view. The field `address` has the parameters of its address.
#[handler]
pub(crate) async fn save_view(depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let mut pairs = parse_form(form.text(ADDRESS).as_bytes())?;
    let id = form.text("businessObject");
    let saved = save(&gateway, caller(depot), &form, &pairs).await;
    Ok(match saved {
        Ok(view) => {
            let words = format!("The view {} was saved.", view.name);
            PageReply::redirect(view_path(&view.business_object, &view.id), words)
        }
        Err(error) => {
            let findings: Vec<_> = error.findings.iter().map(ToString::to_string).collect();
            let words = format!("{}: {}", error.detail, findings.join("; "));
            let words = words.trim_end_matches(": ");
            UnsavedView::add_to(&form, &mut pairs);
            let back = format!("/admin/objects/{}{}", encode_segment(&id), write_query(&pairs));
            PageReply::redirect_with_error(back, format!("The view was not saved: {words}"))
        }
    })
}

async fn save(
    gateway: &Gateway,
    by: &Authorized,
    form: &Form,
    pairs: &[Pair],
) -> Result<SavedView, GatewayError> {
    let id = form.text("businessObject");
    let compiled = find_business_object(gateway, &id)?;
    let view = find_view_of(gateway, by, &compiled, find_value(pairs, "view"))?;
    let state = State::new(&compiled.mapping.root, view, pairs, &Zone::UTC);
    let body = json!({
        "name": form.text("name"),
        "businessObject": id,
        "filters": state.conditions,
        "orderBy": Some(state.order).filter(|order| !order.is_empty()),
        "columns": state.columns,
        "chart": Some(state.chart).filter(|chart| *chart != ViewChart::default()),
        "shared": form.is_ticked("shared"),
    });
    let body = json::parse(body.to_string().as_bytes(), MAX_NESTING)?;
    create_view(gateway, by, ViewContent::from_value(body)?).await
}
