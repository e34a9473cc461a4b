//! The parts of the page that load on their own, so that the table never waits: what they have in common, and their routes.
//! Without script, the page has them if its address says so.
use super::state::{Pair, State, find_value, read_pairs};
use super::{bars, facets, lines, saved};
use crate::admin::frame::{PageReply, PageResult, read_cookie};
use crate::sign_in::render_page;
use askama::Template;
use penstock_auth::Authorized;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::time_zone::Zone;
use penstock_http::caller::caller;
use penstock_http::origin::origin;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::state::gateway;
use penstock_model::mapping::Shape;
use penstock_model::resource::Compiled;
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{Explored, SharedTime, Suggestion, suggest_field_values};
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};
use std::sync::Arc;

/// The cookie with the time zone of the browser.
const ZONE_COOKIE: &str = "penstock_zone";
/// The maximum length of a text for which values are suggested, in bytes.
const MAX_SUGGESTED_BYTES: usize = 200;

/// What a request for the page or a part of it is about.
pub(super) struct PartRequest {
    pub(super) gateway: Gateway,
    pub(super) by: Authorized,
    pub(super) compiled: Arc<Compiled>,
    pub(super) state: State,
    /// The time zone of the person.
    pub(super) zone: Zone,
    /// The prefix of every path.
    pub(super) prefix: String,
    /// The time for all parts of the page.
    time: SharedTime,
}

impl PartRequest {
    /// Reads a request with these parameters.
    pub(super) fn new(req: &Request, depot: &Depot, pairs: &[Pair]) -> Result<Self, Problem> {
        let gateway = gateway(depot)?;
        let by = caller(depot).clone();
        let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
        let view = saved::find_view_of(&gateway, &by, &compiled, find_value(pairs, "view"))?;
        let zone = find_zone(req, &compiled);
        let state = State::new(&compiled.mapping.root, view, pairs, &zone);
        let prefix = origin(depot).prefix.clone();
        let time = SharedTime::default();
        Ok(Self { gateway, by, compiled, state, zone, prefix, time })
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.compiled.mapping.root
    }

    /// Returns the objects that pass the filter.
    pub(super) fn explore(&self) -> Result<Explored, GatewayError> {
        let filter = self.state.build_filter(self.shape())?;
        let business_object = Arc::clone(&self.compiled);
        Ok(Explored { business_object, filter, time: self.time.clone() })
    }

    /// Returns the address of the page without parameters.
    pub(super) fn path(&self) -> String {
        format!("{}/admin/objects/{}", self.prefix, self.compiled.object.id)
    }

    /// Returns the address of the page with a state.
    pub(super) fn address_of(&self, state: &State) -> String {
        format!("{}{}", self.path(), state.to_query(self.shape()))
    }

    /// Returns the address of a part with the state.
    pub(super) fn part_address(&self, part: &str) -> String {
        format!("{}/{part}{}", self.path(), self.state.to_query(self.shape()))
    }
}

/// Returns the time zone of the browser, otherwise that of the Business Object, otherwise UTC.
fn find_zone(req: &Request, compiled: &Compiled) -> Zone {
    let of_browser = read_cookie(req, ZONE_COOKIE).and_then(|name| name.parse().ok());
    let of_definition = || compiled.object.definition.timezone.as_ref()?.parse().ok();
    of_browser.or_else(of_definition).unwrap_or(Zone::UTC)
}

/// Returns what was found, or why it cannot be shown: the filters or the fields do not fit, or it would take too long.
pub(super) fn explain<T>(found: Result<T, GatewayError>) -> Result<Result<T, String>, Problem> {
    match found {
        Ok(found) => Ok(Ok(found)),
        Err(error)
            if matches!(
                error.class,
                ErrorClass::Invalid | ErrorClass::Malformed | ErrorClass::TooLarge
            ) =>
        {
            Ok(Err(error.detail))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns what the page can do without: nothing while too many searches and queries are running.
pub(super) fn skip_if_busy<T: Default>(found: Result<T, GatewayError>) -> Result<T, GatewayError> {
    match found {
        Err(error) if matches!(error.class, ErrorClass::Unavailable(_)) => Ok(T::default()),
        found => found,
    }
}

/// The parts of a page without script.
#[derive(Default)]
pub(super) struct InlineParts {
    pub(super) histogram: String,
    pub(super) chart: String,
    pub(super) facets: String,
}

impl InlineParts {
    /// Builds the parts, one after the other.
    pub(super) async fn build(request: &PartRequest) -> Result<Self, Problem> {
        Ok(Self {
            histogram: render_part("Distribution", bars::build(request).await)?,
            chart: match lines::build(request).await.transpose() {
                Some(chart) => render_part("Chart", chart)?,
                None => String::new(),
            },
            facets: render_part("Values", facets::build(request).await)?,
        })
    }
}

/// What stands in place of a part that is not available now.
#[derive(Template)]
#[template(path = "admin/objects/missing.html")]
struct MissingPart<'p> {
    heading: &'p str,
    why: &'p str,
}

/// Renders a part. If too many searches and queries are running, it says so, and the rest of the page stays.
fn render_part(heading: &str, part: Result<impl Template, Problem>) -> Result<String, Problem> {
    match part {
        Ok(part) => Ok(render_page(&part)),
        Err(problem) if problem.status() == StatusCode::SERVICE_UNAVAILABLE => {
            Ok(render_page(&MissingPart { heading, why: problem.detail() }))
        }
        Err(problem) => Err(problem),
    }
}

fn read_request(req: &Request, depot: &Depot) -> Result<PartRequest, Problem> {
    PartRequest::new(req, depot, &read_pairs(req)?)
}

/// Shows how the objects are distributed over time, or over numbers.
#[handler]
pub(crate) async fn show_histogram(req: &mut Request, depot: &mut Depot) -> PageResult {
    Ok(PageReply::show_fragment(&bars::build(&read_request(req, depot)?).await?))
}

/// Shows a number over time.
#[handler]
pub(crate) async fn show_chart(req: &mut Request, depot: &mut Depot) -> PageResult {
    match lines::build(&read_request(req, depot)?).await? {
        Some(chart) => Ok(PageReply::show_fragment(&chart)),
        None => Err(Problem::not_found("no number is chosen, or there is no time")),
    }
}

/// Shows the most frequent values of the fields.
#[handler]
pub(crate) async fn show_facets(req: &mut Request, depot: &mut Depot) -> PageResult {
    Ok(PageReply::show_fragment(&facets::build(&read_request(req, depot)?).await?))
}

/// Whether a form sends a text as it is: an input has one line, and white space around its text does not count.
fn is_typable(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(['\n', '\r'])
}

#[derive(Template)]
#[template(path = "admin/objects/suggestions.html")]
struct Suggestions {
    values: Vec<Suggestion>,
}

/// Shows values of the field `field` that begin with `text`, for the list of an input.
#[handler]
pub(crate) async fn suggest_values(req: &mut Request, depot: &mut Depot) -> PageResult {
    let pairs = read_pairs(req)?;
    let PartRequest { gateway, by, compiled, .. } = PartRequest::new(req, depot, &pairs)?;
    let field = find_value(&pairs, "field").unwrap_or("uri").to_owned();
    let text = find_value(&pairs, "text").unwrap_or_default().to_owned();
    let values = if text.len() > MAX_SUGGESTED_BYTES {
        Vec::new()
    } else {
        explain(suggest_field_values(&gateway, &by, compiled, field, text).await)?
            .unwrap_or_default()
    };
    let values = values.into_iter().filter(|value| is_typable(&value.text)).collect();
    Ok(PageReply::show_fragment(&Suggestions { values }))
}
