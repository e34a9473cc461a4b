//! `POST /logout`, and the page after it.
use super::pages::{Message, redirect, show_static_page};
use super::password::{FORM_MEDIA_TYPE, parse_form_fields};
use super::session;
use penstock_http::accept::accepts_html;
use penstock_http::access::MinimumRole;
use penstock_http::body;
use penstock_http::credential;
use penstock_http::operation::Operation;
use penstock_http::origin::origin;
use penstock_http::problem::Problem;
use penstock_http::sender_page::check_session_sender;
use penstock_http::state::state;
use salvo::http::{Method, StatusCode};
use salvo::{Depot, Request, Response, handler};
use schemars::JsonSchema;

/// The form to sign out.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes the form, whose fields are read by name")]
struct SignOutForm {
    /// The session's token.
    #[schemars(rename = "_csrf")]
    csrf: Option<String>,
}

/// Declares how a client signs out.
pub(crate) fn sign_out_operation() -> Operation {
    Operation::with_handler(Method::POST, "/logout", MinimumRole::Anyone, sign_out)
        .describe(
            "signOut",
            "Sign-in",
            "Ends the session, and redirects a browser to end it at the provider, if the provider supports that.\n\n\
             With a session, the request must come from the gateway's own pages, or carry the session's token in \
             `X-CSRF-Token` or in the form's field `_csrf`.",
        )
        .body_as::<SignOutForm>(FORM_MEDIA_TYPE)
        .describe_body("", false)
        .empty_answer(204, "Signed out, or was not signed in.")
        .empty_answer(303, "Signed out; the redirect of a browser that asks for a page.")
        .problems(&[400, 408, 413])
}

#[handler]
async fn sign_out(req: &mut Request, depot: &mut Depot, res: &mut Response) -> Result<(), Problem> {
    let state = state(depot);
    let auth = &state.gateway()?.auth;
    let sent = body::read_unauthenticated_body(req, &state, origin(depot)).await?;
    let form = parse_form_fields(sent.bytes())?;
    let origin = origin(depot);
    let mut id_token = None;
    if let Some(id) = credential::session_id(req, &origin.scheme) {
        check_session_sender(req, depot, form.get("_csrf").map(String::as_str))?;
        id_token = auth.sessions.end_session(id);
    }
    session::clear_session_cookie(origin, res);
    if !accepts_html(req.headers()) {
        res.status_code(StatusCode::NO_CONTENT);
        return Ok(());
    }
    let here = format!("{}/signed-out", origin.prefix);
    let after = origin.base_url(state.settings()).map(|base| format!("{base}/signed-out"));
    let elsewhere = match (&auth.oidc, after) {
        (Some(oidc), Some(after)) => oidc.sign_out_url(id_token.as_deref(), &after).await,
        _ => None,
    };
    redirect(res, elsewhere.as_deref().unwrap_or(&here));
    Ok(())
}

/// Shows the page after signing out.
#[handler]
pub(crate) async fn show_signed_out(depot: &mut Depot, res: &mut Response) {
    let prefix = &origin(depot).prefix;
    let link = format!("{prefix}/login");
    let page = Message::new(prefix, "You are signed out", &[]).with_link(&link, "Sign in again");
    show_static_page(res, StatusCode::OK, &page);
}
