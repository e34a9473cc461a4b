//! `/oauth2/authorization/{registrationId}` redirects a browser to the provider, which redirects it back to
//! `/login/oauth2/code/{registrationId}`.
use super::pages::{Message, redirect, set_retry_after, show_static_page};
use super::session;
use penstock_auth::audit::Event;
use penstock_auth::oidc::{AuthorizationResponse, CompletedSignIn, Oidc, SignInError};
use penstock_auth::{Account, Auth, AuthError};
use penstock_http::origin::{Origin, origin};
use penstock_http::problem::Problem;
use penstock_http::return_path::ReturnPath;
use penstock_http::state::{run_blocking, state};
use salvo::http::StatusCode;
use salvo::{Depot, Request, Response, handler};
use std::sync::Arc;

/// The maximum number of bytes of an ID token that is kept for signing out at the provider. Without the token, the
/// provider asks the user which account to sign out.
const MAX_ID_TOKEN_HINT_BYTES: usize = 8 << 10;

/// Begins a sign-in: redirects the browser to the provider.
#[handler]
pub(crate) async fn begin_provider_sign_in(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let state = state(depot);
    let auth = &state.gateway()?.auth;
    let oidc = find_provider(auth, req)?;
    let origin = origin(depot);
    let base_url = origin.base_url(state.settings()).ok_or_else(|| {
        Problem::malformed("the request has no Host, so the provider cannot redirect back")
    })?;
    let back = ReturnPath::parse_or_root(req.query::<&str>("return"));
    match oidc.begin_sign_in(&base_url, back.as_str()).await {
        Ok(begun) => {
            session::store_login(origin, begun.slot, &begun.login, res);
            redirect(res, &begun.location);
        }
        Err(error) => show_failure(auth, oidc, origin, &error, res),
    }
    Ok(())
}

/// Completes a sign-in, when the provider has redirected the browser back.
#[handler]
pub(crate) async fn complete_provider_sign_in(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let state = state(depot);
    let auth = &state.gateway()?.auth;
    let oidc = find_provider(auth, req)?;
    let origin = origin(depot);
    let answer = read_answer(req)?;
    let sent_state = answer.state.clone().unwrap_or_default();
    let login = session::read_login(req, origin, &sent_state);
    if login.is_some() {
        session::clear_login(origin, &sent_state, res);
    }
    let completed = oidc.complete_sign_in(answer, login.as_deref(), origin.client).await;
    let signed_in = match completed {
        Ok(signed_in) => signed_in,
        Err(error) => {
            show_failure(auth, oidc, origin, &error, res);
            return Ok(());
        }
    };
    let back = ReturnPath::parse_or_root(Some(&signed_in.return_to));
    let id_token =
        Some(signed_in.id_token.clone()).filter(|token| token.len() <= MAX_ID_TOKEN_HINT_BYTES);
    let entered = match update_account(auth, signed_in).await? {
        Ok(account) => session::start_and_redirect(
            auth,
            &account,
            id_token.as_deref(),
            &back,
            (req, origin, &mut *res),
        ),
        Err(error) => Err(error),
    };
    match entered {
        Ok(()) => {}
        Err(AuthError::Forbidden(reason)) => {
            record_refusal(auth, origin, reason);
            let lines = ["An administrator of this gateway can enable it."];
            let page = Message::new(&origin.prefix, "Your account is disabled", &lines);
            show_static_page(res, StatusCode::FORBIDDEN, &page);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns the provider of the registration that the path names.
fn find_provider<'a>(auth: &'a Auth, req: &Request) -> Result<&'a Oidc, Problem> {
    let named = req.params().get("registrationId").map(String::as_str).unwrap_or_default();
    let oidc = auth.oidc.as_ref().filter(|oidc| oidc.registration() == named);
    oidc.ok_or_else(|| Problem::not_found(format!("there is no registration {named:?}")))
}

/// Reads the parameters that the provider sent.
fn read_answer(req: &Request) -> Result<AuthorizationResponse, Problem> {
    let once = |name: &str| match req.queries().get_vec(name).map(Vec::as_slice) {
        None => Ok(None),
        Some([value]) => Ok(Some(value.clone())),
        Some(_) => Err(Problem::malformed(format!(
            "the redirect from the provider has more than one {name}"
        ))),
    };
    Ok(AuthorizationResponse {
        code: once("code")?,
        state: once("state")?,
        issuer: once("iss")?,
        error: once("error")?,
        description: once("error_description")?,
    })
}

/// Creates or updates the account that has signed in.
async fn update_account(
    auth: &Auth,
    signed_in: CompletedSignIn,
) -> Result<Result<Arc<Account>, AuthError>, Problem> {
    let accounts = auth.accounts.clone();
    run_blocking(move || {
        Ok(accounts.sign_in_identity(&signed_in.identity, &signed_in.profile, signed_in.role))
    })
    .await
}

fn record_refusal(auth: &Auth, origin: &Origin, detail: String) {
    auth.audit.record_event(Event {
        what: "sign-in.refused",
        account: None,
        by: None,
        from: origin.client,
        detail,
    });
}

/// Reports why the sign-in failed: in the audit trail, in the log, and on a page for the user.
fn show_failure(
    auth: &Auth,
    oidc: &Oidc,
    origin: &Origin,
    error: &SignInError,
    res: &mut Response,
) {
    oidc.log_failure(error);
    record_refusal(auth, origin, error.to_string());
    let id = oidc.registration();
    let again = format!("{}/oauth2/authorization/{id}", origin.prefix);
    let unreachable = format!("{id}, where you sign in, does not respond.");
    let cause;
    let (status, heading, lines): (_, _, &[&str]) = match error {
        SignInError::Unreachable(_) => {
            set_retry_after(res, 10);
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "Signing in is not possible right now",
                &[&unreachable, "The gateway itself is running. Try again later."],
            )
        }
        SignInError::Busy { .. } => {
            set_retry_after(res, 10);
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many sign-ins at once",
                &["This gateway completes many other sign-ins. Try again in some seconds."],
            )
        }
        SignInError::Stale(_) => (
            StatusCode::BAD_REQUEST,
            "This sign-in is no longer valid",
            &["It took too long, was already completed, or was started in another browser."],
        ),
        SignInError::Denied(_) => (
            StatusCode::FORBIDDEN,
            "You are not signed in",
            &["The sign-in was cancelled, or was not allowed."],
        ),
        SignInError::MissingClaim { claim } => {
            cause = format!("{id}, where you sign in, sent no claim {claim}.");
            (
                StatusCode::FORBIDDEN,
                "The sign-in lacks a claim",
                &[
                    &cause,
                    "Ask the administrator of the identity provider to release it to this gateway.",
                ],
            )
        }
        SignInError::NoRole { name, missing: None } => {
            cause = format!(
                "You are known as {name}, but none of your roles there gives access to this gateway."
            );
            (
                StatusCode::FORBIDDEN,
                "You have no role here",
                &[&cause, "Ask the administrator of your account to assign you one."],
            )
        }
        SignInError::NoRole { name, missing: Some(claims) } => {
            cause = format!(
                "You are known as {name}, but {id}, where you sign in, sent no claim {claims}."
            );
            (
                StatusCode::FORBIDDEN,
                "You have no role here",
                &[
                    &cause,
                    "Ask the administrator of your account to assign you a role and to release this claim to the gateway.",
                ],
            )
        }
        SignInError::Untrusted(_) => (
            StatusCode::BAD_GATEWAY,
            "The sign-in could not be completed",
            &["The response of the provider is not valid. The gateway’s log has the reason."],
        ),
    };
    let page = Message::new(&origin.prefix, heading, lines);
    show_static_page(res, status, &page.with_link(&again, "Try again"));
}
