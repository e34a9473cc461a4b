//! `/admin/quality`: validations of everything that Business Objects have.
use super::form::take_form;
use super::frame::{Frame, PageReply, PageResult};
use super::labels::{Labelled as _, severity_class};
use super::menu::Section;
use super::object::link::{find_distinct_label, object_link};
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_auth::Caller;
use penstock_base::Role;
use penstock_base::error::ErrorClass;
use penstock_http::caller::caller;
use penstock_http::parameters::page_of;
use penstock_http::path::path_parameter;
use penstock_http::query::{NumberCursor, Query, UuidCursor, cursor_after};
use penstock_http::state::gateway;
use penstock_model::resource::Compiled;
use penstock_resources::problem::ViolatedConstraint;
use penstock_resources::validation::{
    ConstraintCount, ListedViolation, Validation, ValidationState,
};
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{IriNames, find_labels};
use penstock_service::validations::{self, Report};
use salvo::{Depot, Request, handler};
use std::sync::Arc;

/// Rows of one page of validations.
const ROWS_PER_PAGE: usize = 50;
/// Violations of one page.
const VIOLATIONS_PER_PAGE: usize = 100;
/// The maximum number of validations that there can be.
const MAX_VALIDATIONS: usize = 1000;

#[derive(Template)]
#[template(path = "admin/quality.html")]
struct List {
    frame: Frame,
    /// The Business Objects with shapes graphs, each with its last validation.
    business_objects: Vec<(Arc<Compiled>, Option<Validation>)>,
    rows: Vec<Validation>,
    pager: Pager,
}

#[derive(Template)]
#[template(path = "admin/validation.html")]
struct One {
    frame: Frame,
    validation: Validation,
    /// Whether the Business Object still exists.
    is_defined: bool,
    constraints: Vec<CountBar>,
    /// The number of violations of further shapes and constraints.
    other_count: u64,
    violations: Vec<ViolationRow>,
    /// How many violations there are, and how many of them are listed.
    listed: String,
    pager: Pager,
}

/// The count of a constraint of a shape, as a bar.
struct CountBar {
    shape: String,
    /// Its IRI.
    shape_iri: String,
    constraint: String,
    class: &'static str,
    severity: String,
    count: String,
    /// Its length in percent of the longest one.
    length: u64,
}

struct ViolationRow {
    violation: ViolatedConstraint,
    /// The label of its object; none if it is not stored or has none.
    label: Option<String>,
    /// The path in short form.
    path: String,
    /// The address of the page of its object.
    link: String,
    constraint: String,
    class: &'static str,
    message: String,
}

/// Returns the local name of a constraint component: `MinCount`.
fn shorten_constraint(iri: &str) -> String {
    let name = iri.rsplit_once('#').map_or(iri, |(_, name)| name);
    name.strip_suffix("ConstraintComponent").unwrap_or(name).to_owned()
}

fn count_bars(constraints: Vec<ConstraintCount>, names: &IriNames) -> Vec<CountBar> {
    // They are sorted.
    let most = constraints.first().map_or(1, |first| first.count.max(1));
    let bar = |counted: ConstraintCount| CountBar {
        constraint: shorten_constraint(&counted.constraint),
        class: severity_class(&counted.severity),
        severity: counted.severity,
        count: words::format_number(counted.count),
        length: (counted.count.saturating_mul(100) / most).max(1),
        shape: names.shorten(&counted.shape).unwrap_or_else(|| counted.shape.clone()),
        shape_iri: counted.shape,
    };
    constraints.into_iter().map(bar).collect()
}

/// Shows the Business Objects with shapes graphs, and the validations.
#[handler]
pub(crate) async fn list_validations(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["businessObject", "cursor"])?;
    let after = query.read_cursor::<UuidCursor>()?;
    let (gateway, frame) = (gateway(depot)?, Frame::new(req, depot, Section::Quality));
    let (wanted, after) = (query.get("businessObject"), after.as_deref());
    let (by, limit) = (caller(depot), ROWS_PER_PAGE + 1);
    let found = validations::list_validations(&gateway, by, wanted, after, limit);
    let id = |one: &Validation| one.id.clone();
    let page = page_of(found, ROWS_PER_PAGE, id);
    let pager = Pager::for_query(&frame, "/admin/quality", &query, page.next.as_deref());
    let business_objects = list_validated(&gateway, by);
    Ok(PageReply::show(&List { frame, business_objects, rows: page.items, pager }))
}

fn list_validated(gateway: &Gateway, by: &Caller) -> Vec<(Arc<Compiled>, Option<Validation>)> {
    let all = validations::list_validations(gateway, by, None, None, MAX_VALIDATIONS);
    let last = |id: &str| all.iter().find(|one| one.business_object == id).cloned();
    let mut objects = gateway.catalogue.list();
    objects.retain(|one| {
        let validation = one.object.definition.validation.as_ref();
        validation.is_some_and(|validation| !validation.shapes.is_empty())
    });
    let with_last = |one: Arc<Compiled>| {
        let last = last(&one.object.id);
        (one, last)
    };
    objects.into_iter().map(with_last).collect()
}

/// Enqueues a validation.
#[handler]
pub(crate) async fn start_validation(_req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let id = form.trimmed("businessObject").unwrap_or_default();
    let business_object = find_business_object(&gateway, &id)?;
    let by = caller(depot);
    Ok(match validations::start_validation(&gateway, by, business_object).await {
        Ok(queued) => {
            let words = format!("The validation of {} is queued.", queued.business_object_name);
            PageReply::redirect(format!("/admin/quality/{}", queued.id), words)
        }
        Err(error) => PageReply::redirect_with_error("/admin/quality", error.detail),
    })
}

/// Shows one validation.
#[handler]
pub(crate) async fn show_validation(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["cursor"])?;
    let skipped = query.read_cursor::<NumberCursor>()?;
    let (gateway, frame) = (gateway(depot)?, Frame::new(req, depot, Section::Quality));
    let id = path_parameter(req, "id");
    let Report { validation, constraints, other_count } =
        validations::find_validation(&gateway, id).await?;
    let first = usize::try_from(skipped.unwrap_or_default()).unwrap_or(usize::MAX);
    let mut violations =
        validations::list_violations(&gateway, caller(depot), id, first, VIOLATIONS_PER_PAGE + 1)
            .await?;
    let next = (violations.len() > VIOLATIONS_PER_PAGE)
        .then(|| cursor_after(&first.saturating_add(VIOLATIONS_PER_PAGE).to_string()));
    violations.truncate(VIOLATIONS_PER_PAGE);
    let (total, listed) = (validation.counts.total(), validation.listed);
    let objects = violations.iter().map(|one| one.violation.focus_node.clone()).collect();
    // Without labels, for example while too many searches are running, the rows have only URIs.
    let labels = find_labels(&gateway, caller(depot), objects).await.unwrap_or_default();
    let names = IriNames::new(&gateway);
    let show = |ListedViolation { violation, message }: ListedViolation| ViolationRow {
        label: find_distinct_label(&labels, &violation.focus_node),
        path: violation.path.as_deref().map_or_else(String::new, |path| {
            names.shorten(path).unwrap_or_else(|| path.to_owned())
        }),
        link: object_link(&frame, &violation.focus_node),
        constraint: shorten_constraint(&violation.constraint),
        class: severity_class(&violation.severity),
        violation,
        message,
    };
    let page = One {
        is_defined: gateway.catalogue.get(&validation.business_object).is_some(),
        constraints: count_bars(constraints, &names),
        other_count,
        violations: violations.into_iter().map(show).collect(),
        listed: if listed < total {
            format!(
                "The first {} of {}:",
                words::format_number(listed),
                words::format_number(total)
            )
        } else {
            String::new()
        },
        pager: Pager::new(
            &frame,
            &format!("/admin/quality/{}", validation.id),
            &[],
            skipped.is_none(),
            next.as_deref(),
        ),
        validation,
        frame,
    };
    Ok(PageReply::show(&page))
}

/// Cancels a validation.
#[handler]
pub(crate) async fn cancel_validation(req: &mut Request, depot: &mut Depot) -> PageResult {
    let id = path_parameter(req, "id");
    let page = format!("/admin/quality/{id}");
    match validations::cancel_validation(&gateway(depot)?, caller(depot), id).await {
        Ok(_) => Ok(PageReply::redirect(page, "The validation was cancelled.")),
        Err(error) if error.class == ErrorClass::NotFound => Err(error.into()),
        Err(error) => Ok(PageReply::redirect_with_error(page, error.detail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_have_short_names() {
        for (iri, name) in [
            ("http://www.w3.org/ns/shacl#MinCountConstraintComponent", "MinCount"),
            ("http://www.w3.org/ns/shex#closed", "closed"),
            ("urn:x", "urn:x"),
        ] {
            assert_eq!(shorten_constraint(iri), name);
        }
    }
}
