//! The error page, which a browser gets instead of a problem document.
use super::frame::{self, Frame};
use crate::sign_in::{self, Message};
use askama::Template;
use penstock_http::origin::origin;
use penstock_http::problem::{ErrorPage, Problem};
use penstock_http::return_path::sign_in_location;
use salvo::http::{Method, StatusCode};
use salvo::{Depot, Request, Response};

/// How a form of an ended session is kept: a browser sends it again when the page that answered it is reloaded.
const SEND_AGAIN: &str =
    "Nothing was saved. To send the form again, sign in in another tab, and reload this page.";

#[derive(Template)]
#[template(path = "admin/fault.html")]
struct Page<'a> {
    frame: Frame,
    heading: &'a str,
    detail: &'a str,
    findings: Vec<String>,
}

/// Shows a problem to a browser that asks for a page of the administration interface.
pub const ERROR_PAGE: ErrorPage = ErrorPage(show_error_page);

/// Responds with the error page.
fn show_error_page(problem: Problem, req: &Request, depot: &Depot, res: &mut Response) {
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
        let is_form = status == StatusCode::UNAUTHORIZED && *req.method() == Method::POST;
        let lines: Vec<_> =
            is_form.then_some(SEND_AGAIN).into_iter().chain([problem.detail()]).collect();
        let link = sign_in_location(origin(depot), "/admin");
        let page = Message::new(&origin(depot).prefix, heading, &lines);
        sign_in::show_page(res, status, &page.with_link(&link, "Sign in"));
    }
    for (name, value) in problem.into_headers() {
        res.headers_mut().insert(name, value);
    }
}
