//! Who sent a request: authenticated once, by `access`, before the route's handler runs.
use super::access;
use super::credential::{self, Shown};
use super::problem::{BearerError, Problem};
use super::service::origin;
use super::state::{State, state};
use penstock_auth::audit::Event;
use penstock_auth::sessions::Sessions;
use penstock_auth::{Authorized, Caller, Refusal};
use salvo::{Depot, Request};

/// The header of requests that a page sends automatically.
const LIVE: &str = "x-penstock-live";

/// Returns who sent this request, with the check that goes into each commit on its behalf. Only for handlers
/// of routes that require a role.
pub(super) fn caller(depot: &Depot) -> &Authorized {
    depot
        .get_typed::<Authorized>()
        .expect("no handler of a route that asks for a role runs without it")
}

/// Returns who sent this request, or `None` where no credential is required.
pub(super) fn caller_if_known(depot: &Depot) -> Option<&Authorized> {
    depot.get_typed::<Authorized>().ok()
}

/// Returns the owner of this request's session, for pages that anyone may see. `None` while the gateway
/// opens.
pub(super) fn visitor(req: &Request, depot: &Depot) -> Option<Caller> {
    let state = state(depot);
    let id = credential::session(req, &origin(depot).scheme)?;
    session(&state.gateway().ok()?.auth.sessions, id, req).ok()
}

/// Returns the owner of a session. Requests that a page sends automatically do not keep the session alive.
fn session(sessions: &Sessions, id: &str, req: &Request) -> Result<Caller, Refusal> {
    if req.headers().contains_key(LIVE) { sessions.onlooker(id) } else { sessions.caller(id) }
}

/// Authenticates a request by the control socket, otherwise by the credential in its header, otherwise by the
/// session in its cookie. `None` when it has no credential, or a session that is over.
///
/// # Errors
/// 503 while the gateway opens, or the error of the credential.
pub(super) async fn find(req: &Request, depot: &Depot) -> Result<Option<Caller>, Problem> {
    let origin = origin(depot);
    if origin.control {
        return Ok(Some(Caller::local()));
    }
    let state = state(depot);
    let auth = &state.gateway()?.auth;
    let found = match credential::shown(req) {
        Ok(Some(Shown::ApiKey(key))) => auth.keys.caller(key).map(Some),
        Ok(Some(Shown::Bearer(token))) => match &auth.tokens {
            Some(tokens) => tokens.caller(token, origin.client).await.map(Some),
            None => Err(Refusal::Invalid(
                "access tokens are not accepted here, because \
                 framework.security.oauth2.resourceserver.jwt.issuer-uri is not set; use an API key"
                    .into(),
            )),
        },
        Ok(None) => match credential::session(req, &origin.scheme) {
            None => Ok(None),
            Some(id) => match session(&auth.sessions, id, req) {
                // The session is over, which does not count as a failure.
                Err(Refusal::Invalid(_) | Refusal::Malformed(_)) => Ok(None),
                found => found.map(Some),
            },
        },
        Err(refusal) => Err(refusal),
    };
    found
        .map(|found| found.map(|caller| Caller { from: origin.client, ..caller }))
        .map_err(|refusal| refused(refusal, &state, depot))
}

/// Returns the response to a refused credential, after recording it in the audit trail.
fn refused(mut refusal: Refusal, state: &State, depot: &Depot) -> Problem {
    let error = match &refusal {
        Refusal::Invalid(_) => Some(BearerError::InvalidToken),
        Refusal::Malformed(_) => Some(BearerError::InvalidRequest),
        Refusal::Forbidden(_) => Some(BearerError::InsufficientScope),
        _ => None,
    };
    let Some(error) = error else { return refusal.into() };
    note(state, depot, None, refusal.to_string());
    if error == BearerError::InvalidToken {
        let help = access::how_to_get_credentials(depot);
        refusal = Refusal::Invalid(format!("{refusal}; {help}"));
    }
    if error != BearerError::InsufficientScope
        && let Some(wait) = state.failures.note(origin(depot).client)
    {
        refusal = Refusal::TooMany(wait);
        return refusal.into();
    }
    Problem::from(refusal).challenged(Some(error))
}

/// Builds the audit event of a change by this caller.
pub(super) fn change_event(caller: &Caller, what: &'static str, detail: String) -> Event {
    let by = Some(caller.actor().to_owned());
    Event { what, account: None, by, from: caller.from, detail }
}

/// Records in the audit trail that a request was refused.
pub(super) fn note(state: &State, depot: &Depot, caller: Option<&Caller>, detail: String) {
    let Ok(gateway) = state.gateway() else { return };
    gateway.auth.audit.record(Event {
        what: "request.refused",
        account: caller.map(|caller| caller.id().to_owned()),
        by: caller.and_then(Caller::api_key_id).map(str::to_owned),
        from: origin(depot).client,
        detail,
    });
}
