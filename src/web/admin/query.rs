//! A page for GraphQL queries. With script the response appears without a reload.
use super::check::format_json;
use super::form::take_form;
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use askama::Template;
use penstock_graphql::{Answer, Query, check_request_size};
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query as Parameters;
use penstock_http::state::state;
use salvo::{Depot, Request, handler};
use serde_json::Value;

/// The initial query.
const INITIAL_QUERY: &str = "{\n  authenticatedUser {\n    id\n    email\n    roles\n  }\n}\n";

#[derive(Template)]
#[template(path = "admin/query.html")]
struct Page {
    frame: Frame,
    query: String,
    variables: String,
    result: Option<String>,
}

/// Shows the page.
#[handler]
pub(crate) async fn show_query(req: &mut Request, depot: &mut Depot) -> PageResult {
    let parameters = Parameters::read(req, &["query"])?;
    let query = parameters.get("query").unwrap_or(INITIAL_QUERY).to_owned();
    let frame = Frame::new(req, depot, Section::Query);
    Ok(PageReply::show(&Page { frame, query, variables: String::new(), result: None }))
}

/// Shows the page with the response.
#[handler]
pub(crate) async fn show_answer(req: &mut Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let (query, variables) = (form.text("query"), form.text("variables"));
    check_request_size(query.len() + variables.len())?;
    let result = run_query(depot, &query, &variables).await?;
    let frame = Frame::new(req, depot, Section::Query);
    Ok(PageReply::show(&Page { frame, query, variables, result: Some(result) }))
}

async fn run_query(depot: &Depot, document: &str, variables: &str) -> Result<String, Problem> {
    let variables = match variables.trim() {
        "" => Value::Null,
        text => match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return Ok(format!("The variables are not JSON: {error}")),
        },
    };
    let answer = match Query::new(document.to_owned(), variables) {
        Ok(query) => state(depot).graphql()?.execute(query, caller(depot)).await,
        Err(why) => Answer::refused(why),
    };
    let nesting = state(depot).settings().limits.nesting;
    Ok(format_json(&serde_json::to_vec(&answer).unwrap_or_default(), nesting))
}
