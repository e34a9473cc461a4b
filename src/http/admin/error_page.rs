//! The error page, which a browser gets instead of a problem document.
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

/// Whether a browser asks for a page of the administration interface, as opposed to a program.
pub(crate) fn accepts_page(req: &Request, depot: &Depot) -> bool {
    // If the request failed before its origin was determined, the error is a problem document.
    let Ok(origin) = depot.get_typed::<Origin>() else { return false };
    let path = req.uri().path();
    let path = path.strip_prefix(origin.prefix.as_str()).unwrap_or(path);
    let is_page = path == "/admin" || path.starts_with("/admin/");
    let accept = req.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    is_page && accept.is_some_and(|types| types.contains("text/html"))
}

/// Responds with the error page.
pub(crate) fn show_error_page(problem: Problem, req: &Request, depot: &Depot, res: &mut Response) {
    let status = problem.status();
    let heading = match status {
        StatusCode::UNAUTHORIZED => "Your session has ended",
        StatusCode::FORBIDDEN => "You are not allowed to do this",
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::SERVICE_UNAVAILABLE => "Temporarily unavailable",
        StatusCode::INSUFFICIENT_STORAGE => "The disk is full",
        status if status.is_server_error() => "The gateway failed",
        _ => "The request failed",
    };
    if let Some(frame) = Frame::for_visitor(req, depot, res) {
        let findings = problem.errors().iter().map(ToString::to_string).collect();
        let page = Page { frame, heading, detail: problem.detail(), findings };
        frame::show_page_with_status(res, depot, status, &page);
    } else {
        let lines = [problem.detail()];
        let link = sign_in::sign_in_location(depot, "/admin");
        let page = Message::new(&origin(depot).prefix, heading, &lines);
        sign_in::show_page(res, status, &page.with_link(&link, "Sign in"));
    }
    for (name, value) in problem.into_headers() {
        res.headers_mut().insert(name, value);
    }
}
