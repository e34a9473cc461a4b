//! A page for GraphQL queries. With script the response appears without a reload.
use super::check::format_json;
use super::form::take_form;
use super::frame::{self, Frame, Section};
use askama::Template;
use penstock_api::graphql;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use salvo::{Depot, Request, Response, handler};
use serde_json::{Map, Value};

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
pub(crate) async fn get(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let asked = Query::read(req, &["query"])?;
    let query = asked.get("query").unwrap_or(INITIAL_QUERY).to_owned();
    let frame = Frame::for_caller(req, depot, res, Section::Query);
    frame::show_page(res, depot, &Page { frame, query, variables: String::new(), result: None });
    Ok(())
}

/// Shows the page with the response.
#[handler]
pub(crate) async fn post(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let form = take_form(depot);
    let (query, variables) = (form.text("query"), form.text("variables"));
    let result = execute_query(depot, &query, &variables).await?;
    let frame = Frame::for_caller(req, depot, res, Section::Query);
    frame::show_page(res, depot, &Page { frame, query, variables, result: Some(result) });
    Ok(())
}

async fn execute_query(depot: &Depot, query: &str, variables: &str) -> Result<String, Problem> {
    let mut members = Map::new();
    members.insert("query".to_owned(), query.into());
    if !variables.trim().is_empty() {
        match serde_json::from_str::<Value>(variables) {
            Ok(value) => members.insert("variables".to_owned(), value),
            Err(error) => return Ok(format!("The variables are not JSON: {error}")),
        };
    }
    let nesting = gateway(depot)?.settings.limits.nesting;
    let answer = graphql::execute_form(depot, caller(depot), members).await?;
    Ok(format_json(&serde_json::to_vec(&answer).unwrap_or_default(), nesting))
}
