//! The routes of the parts of the page that load on their own, so that the table never waits. Without script, the page has
//! them if its address says so.
use super::address::{find_value, read_pairs};
use super::part_request::{PartRequest, explain};
use super::{bars, facets, lines};
use crate::admin::frame::{PageReply, PageResult};
use crate::sign_in::render_page;
use askama::Template;
use penstock_http::problem::Problem;
use penstock_service::objects::{Suggestion, suggest_field_values};
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};

/// The maximum length of a text for which values are suggested, in bytes.
const MAX_SUGGESTED_BYTES: usize = 200;

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
