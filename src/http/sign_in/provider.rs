//! `/oauth2/authorization/{registrationId}` redirects a browser to the provider, which redirects it back to
//! `/login/oauth2/code/{registrationId}`.
use super::back::Back;
use super::pages::{Message, redirect, retry_after, show};
use super::session;
use crate::origin::Origin;
use crate::problem::Problem;
use crate::service::origin;
use crate::state::{blocking, state};
use penstock_auth::audit::Event;
use penstock_auth::oidc::{Answer, Failed, Oidc, SignedIn};
use penstock_auth::{Account, Auth, Refusal};
use salvo::http::StatusCode;
use salvo::{Depot, Request, Response, handler};
use std::sync::Arc;

/// The maximum bytes of an ID token that is kept for signing out at the provider. Without one the provider
/// asks which account to sign out.
const LONGEST_HINT: usize = 8 << 10;

/// Begins a sign-in.
#[handler]
pub(crate) async fn authorize(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let state = state(depot);
    let auth = &state.gateway()?.auth;
    let oidc = registered(auth, req)?;
    let origin = origin(depot);
    let base_url = origin.base_url(&state.settings).ok_or_else(|| {
        Problem::malformed("the request has no Host, so the provider cannot redirect back")
    })?;
    let back = Back::read(req.query::<&str>("return"));
    match oidc.begin(&base_url, back.as_str()).await {
        Ok(begun) => {
            session::keep_login(origin, begun.slot, &begun.login, res);
            redirect(res, &begun.location);
        }
        Err(failed) => fail(auth, oidc, origin, &failed, res),
    }
    Ok(())
}

/// Completes a sign-in.
#[handler]
pub(crate) async fn complete(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let state = state(depot);
    let auth = &state.gateway()?.auth;
    let oidc = registered(auth, req)?;
    let origin = origin(depot);
    let answer = answer(req)?;
    let sent_state = answer.state.clone().unwrap_or_default();
    let login = session::kept_login(req, origin, &sent_state);
    if login.is_some() {
        session::forget_login(origin, &sent_state, res);
    }
    let signed_in = match oidc.complete(answer, login.as_deref()).await {
        Ok(signed_in) => signed_in,
        Err(failed) => {
            fail(auth, oidc, origin, &failed, res);
            return Ok(());
        }
    };
    let back = Back::read(Some(&signed_in.back));
    let id_token = Some(signed_in.id_token.clone()).filter(|token| token.len() <= LONGEST_HINT);
    let entered = match account(auth, signed_in).await? {
        Ok(account) => {
            session::enter(auth, &account, id_token.as_deref(), &back, (req, origin, &mut *res))
        }
        Err(refusal) => Err(refusal),
    };
    match entered {
        Ok(()) => {}
        Err(Refusal::Forbidden(reason)) => {
            refused(auth, origin, reason);
            let lines = ["An administrator of this gateway can enable it."];
            let page = Message::new(&origin.prefix, "Your account is disabled", &lines);
            show(res, StatusCode::FORBIDDEN, &page);
        }
        Err(refusal) => return Err(refusal.into()),
    }
    Ok(())
}

/// Returns the provider of the registration in the address.
fn registered<'a>(auth: &'a Auth, req: &Request) -> Result<&'a Oidc, Problem> {
    let named = req.params().get("registrationId").map(String::as_str).unwrap_or_default();
    let oidc = auth.oidc.as_ref().filter(|oidc| oidc.registration() == named);
    oidc.ok_or_else(|| Problem::not_found(format!("there is no registration {named:?}")))
}

/// Reads the parameters that the provider sent.
fn answer(req: &Request) -> Result<Answer, Problem> {
    let once = |name: &str| match req.queries().get_vec(name).map(Vec::as_slice) {
        None => Ok(None),
        Some([value]) => Ok(Some(value.clone())),
        Some(_) => Err(Problem::malformed(format!(
            "the redirect from the provider has more than one {name}"
        ))),
    };
    Ok(Answer {
        code: once("code")?,
        state: once("state")?,
        issuer: once("iss")?,
        error: once("error")?,
        description: once("error_description")?,
    })
}

/// Creates or updates the account that has signed in.
async fn account(
    auth: &Auth,
    signed_in: SignedIn,
) -> Result<Result<Arc<Account>, Refusal>, Problem> {
    let accounts = auth.accounts.clone();
    blocking(move || {
        Ok(accounts.signed_in(&signed_in.identity, &signed_in.profile, signed_in.role))
    })
    .await
}

fn refused(auth: &Auth, origin: &Origin, detail: String) {
    auth.audit.record(Event {
        what: "sign-in.refused",
        account: None,
        by: None,
        from: origin.client,
        detail,
    });
}

/// Reports why the sign-in failed: in the audit trail, in the log, and on a page for the user.
fn fail(auth: &Auth, oidc: &Oidc, origin: &Origin, failed: &Failed, res: &mut Response) {
    tracing::warn!(reason = %failed, "A sign-in at the provider failed.");
    refused(auth, origin, failed.to_string());
    let id = oidc.registration();
    let again = format!("{}/oauth2/authorization/{id}", origin.prefix);
    let unreachable = format!("{id}, where you sign in, does not respond.");
    let nobody;
    let (status, heading, lines): (_, _, &[&str]) = match failed {
        Failed::OutOfReach(_) => {
            retry_after(res, 10);
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "Signing in is not possible right now",
                &[&unreachable, "The gateway itself is running. Try again later."],
            )
        }
        Failed::Stale(_) => (
            StatusCode::BAD_REQUEST,
            "This sign-in is no longer valid",
            &["It took too long, was already completed, or was started in another browser."],
        ),
        Failed::Denied(_) => (
            StatusCode::FORBIDDEN,
            "You are not signed in",
            &["The sign-in was cancelled, or was not allowed."],
        ),
        Failed::MissingClaim { claim } => {
            nobody = format!("{id}, where you sign in, sent no claim {claim}.");
            (
                StatusCode::FORBIDDEN,
                "The sign-in lacks a claim",
                &[
                    &nobody,
                    "Ask the administrator of the identity provider to release it to this gateway.",
                ],
            )
        }
        Failed::NoRole { name, missing: None } => {
            nobody = format!(
                "You are known as {name}, but none of your roles there gives access to this gateway."
            );
            (
                StatusCode::FORBIDDEN,
                "You have no role here",
                &[&nobody, "Ask the administrator of your account to assign you one."],
            )
        }
        Failed::NoRole { name, missing: Some(claims) } => {
            nobody = format!(
                "You are known as {name}, but {id}, where you sign in, sent no claim {claims}."
            );
            (
                StatusCode::FORBIDDEN,
                "You have no role here",
                &[
                    &nobody,
                    "Ask the administrator of your account to assign you a role and to release this claim to the gateway.",
                ],
            )
        }
        Failed::Untrusted(_) => (
            StatusCode::BAD_GATEWAY,
            "The sign-in could not be completed",
            &["The response of the provider is not valid. The gateway’s log has the reason."],
        ),
    };
    let page = Message::new(&origin.prefix, heading, lines);
    show(res, status, &page.link(&again, "Try again"));
}
