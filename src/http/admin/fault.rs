//! The page that a person gets in place of a problem.
use super::frame::{self, Frame};
use crate::origin::Origin;
use crate::problem::Problem;
use crate::service::origin;
use crate::sign_in::{self, Message};
use askama::Template;
use salvo::http::StatusCode;
use salvo::http::header::ACCEPT;
use salvo::{Depot, Request, Response};

#[derive(Template)]
#[template(path = "admin/fault.html")]
struct Page<'a> {
    frame: Frame,
    heading: &'a str,
    detail: &'a str,
    findings: Vec<String>,
}

/// Whether a person asked for a page of the administration interface, and not a program for data.
pub(crate) fn is_for(req: &Request, depot: &Depot) -> bool {
    // What fails before anything of the request is known is no page.
    let Ok(origin) = depot.get_typed::<Origin>() else { return false };
    let path = req.uri().path();
    let path = path.strip_prefix(origin.prefix.as_str()).unwrap_or(path);
    let is_page = path == "/admin" || path.starts_with("/admin/");
    let accept = req.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    is_page && accept.is_some_and(|types| types.contains("text/html"))
}

/// Answers with it.
pub(crate) fn show(problem: Problem, req: &Request, depot: &Depot, res: &mut Response) {
    let status = problem.status();
    let heading = match status {
        StatusCode::UNAUTHORIZED => "Your session has ended",
        StatusCode::FORBIDDEN => "You may not do this",
        StatusCode::NOT_FOUND => "There is nothing here",
        StatusCode::SERVICE_UNAVAILABLE => "Not right now",
        StatusCode::INSUFFICIENT_STORAGE => "There is no room on the disk",
        status if status.is_server_error() => "The gateway failed",
        _ => "This could not be done",
    };
    if let Some(frame) = Frame::of_visitor(req, depot, res) {
        let findings = problem.errors().iter().map(ToString::to_string).collect();
        let page = Page { frame, heading, detail: problem.detail(), findings };
        frame::show_with(res, depot, status, &page);
    } else {
        let lines = [problem.detail()];
        let link = sign_in::location(depot, "/admin");
        let page = Message::new(&origin(depot).prefix, heading, &lines);
        sign_in::show_page(res, status, &page.link(&link, "Sign in"));
    }
    for (name, value) in problem.into_headers() {
        res.headers_mut().insert(name, value);
    }
}
