//! Checks which page sent a request, as browsers report it. This prevents two attacks: a page of another site
//! makes a browser send a request to this gateway (CSRF), or makes its own name resolve to it (DNS rebinding).
use super::credential;
use super::origin::{self, Origin, origin};
use super::problem::Problem;
use super::state::state;
use penstock_auth::sessions::Sessions;
use salvo::http::header::{HeaderName, ORIGIN};
use salvo::http::{Method, StatusCode};
use salvo::{Depot, Request};

/// The header that carries a session's CSRF token. In a form it is the field `_csrf`.
const CSRF_HEADER: &str = "x-csrf-token";

/// The page that sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SenderPage {
    /// A page of this gateway.
    Own,
    /// No page: the user typed the address, or opened a bookmark or a link in another program.
    Typed,
    /// A page of another site.
    Foreign,
    /// Unknown: the client does not report it. Browsers do, other programs do not.
    Unreported,
}

impl SenderPage {
    fn of_request(req: &Request, origin: &Origin) -> Self {
        let text = |name: &HeaderName| {
            req.headers().get(name).map(|value| value.to_str().unwrap_or_default())
        };
        match (text(&HeaderName::from_static("sec-fetch-site")), text(&ORIGIN)) {
            (Some("same-origin"), _) => Self::Own,
            (Some("none"), _) => Self::Typed,
            (None, Some(page))
                if origin.url().is_some_and(|own| own.eq_ignore_ascii_case(page)) =>
            {
                Self::Own
            }
            (Some(_), _) | (None, Some(_)) => Self::Foreign,
            (None, None) => Self::Unreported,
        }
    }
}

/// Refuses a `Host` that is not this gateway's. Browsers keep state for each name, and a page of another site
/// can make its own name resolve to this gateway.
pub(super) fn check_host(depot: &Depot) -> Result<(), Problem> {
    let origin = origin(depot);
    if origin::is_own_host(origin, &state(depot).settings) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        format!(
            "the request names the host {:?}, which is not this gateway's; use its IP address or localhost, \
             or set service.base-url to the URL that clients use; behind a proxy, set \
             server.forward-headers-strategy=native and service.trusted-proxies to the proxy's address",
            origin.host.as_deref().unwrap_or_default()
        ),
    ))
}

/// Refuses a request with side effects on a public route, if a page of another site sent it.
pub(super) fn check_unauthenticated(req: &Request, depot: &Depot) -> Result<(), Problem> {
    if SenderPage::of_request(req, origin(depot)) == SenderPage::Foreign {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "a page of another site sent this request, which would change something",
        ));
    }
    Ok(())
}

/// Refuses a request with a session and side effects, unless a page of this gateway sent it or it carries the
/// session's CSRF token, in the header or as `field` of a form. A browser sends the session's cookie with
/// requests that any page causes, so the cookie is not enough.
pub fn check_session_sender(
    req: &Request,
    depot: &Depot,
    field: Option<&str>,
) -> Result<(), Problem> {
    let is_get = *req.method() == Method::GET;
    let mode = req.headers().get("sec-fetch-mode").and_then(|mode| mode.to_str().ok());
    match SenderPage::of_request(req, origin(depot)) {
        // A GET with side effects must come from a script, not from a navigation: a link can lead through the
        // sign-in, and the redirect after it counts as from a page of this gateway.
        SenderPage::Own if !(is_get && mode == Some("navigate")) => return Ok(()),
        // A link in an e-mail counts as typed, so it must not have side effects.
        SenderPage::Typed if !is_get => return Ok(()),
        _ => {}
    }
    if has_session_token(req, depot, field) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "a request with a session that changes something must come from a page of this gateway \
         (Sec-Fetch-Site: same-origin, or its Origin), or carry the session's token in X-CSRF-Token, which \
         every form of the gateway's pages has as its hidden field _csrf; programs use an API key (the page \
         /admin/keys, or `penstock api-key create`)",
    ))
}

/// Refuses a request with a session that does not carry the session's CSRF token in its header, even from a page of this
/// gateway.
pub(super) fn check_session_token(req: &Request, depot: &Depot) -> Result<(), Problem> {
    if has_session_token(req, depot, None) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "a change with a session and SPARQL must carry the session's token in X-CSRF-Token, which every form of \
         the gateway's pages has as its hidden field _csrf; programs use an API key (the page /admin/keys, or \
         `penstock api-key create`)",
    ))
}

/// Whether a request carries the CSRF token of its session, in the header or as `field` of a form.
fn has_session_token(req: &Request, depot: &Depot, field: Option<&str>) -> bool {
    let header = req.headers().get(CSRF_HEADER).and_then(|value| value.to_str().ok());
    let session = credential::session_id(req, &origin(depot).scheme);
    session.is_some_and(|session| {
        header.or(field).is_some_and(|token| Sessions::is_csrf_token(session, token))
    })
}
