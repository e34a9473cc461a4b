//! Who sent a request: found once, by `access`, before the route's handler runs.
use super::access;
use super::credential::{self, Shown};
use super::problem::{BearerError, Problem};
use super::service::origin;
use super::state::{State, state};
use penstock_auth::audit::Event;
use penstock_auth::sessions::Sessions;
use penstock_auth::{Authorized, Caller, Refusal};
use salvo::{Depot, Request};

/// The header of requests that a page sends by itself.
const LIVE: &str = "x-penstock-live";

/// Who sent this request, with the check that goes into each commit on its behalf. For handlers of routes that
/// not everybody may use.
pub(super) fn caller(depot: &Depot) -> &Authorized {
    depot
        .get_typed::<Authorized>()
        .expect("no handler of a route that asks for a role runs without it")
}

/// Who sent this request; `None` where nobody had to say so.
pub(super) fn caller_if_known(depot: &Depot) -> Option<&Authorized> {
    depot.get_typed::<Authorized>().ok()
}

/// Who has the session of this request, for pages that anyone may see. None while the gateway opens.
pub(super) fn visitor(req: &Request, depot: &Depot) -> Option<Caller> {
    let state = state(depot);
    let id = credential::session(req, &origin(depot).scheme)?;
    session(&state.gateway().ok()?.auth.sessions, id, req).ok()
}

/// Who has a session; what a page asks by itself, to show what is new, does not keep it going.
fn session(sessions: &Sessions, id: &str, req: &Request) -> Result<Caller, Refusal> {
    if req.headers().contains_key(LIVE) { sessions.onlooker(id) } else { sessions.caller(id) }
}

/// Finds who sent the request: whoever is at the control socket, or else has the credential in its
/// header, or else the session in its cookie. `None` when it shows nothing, or a session that is over.
///
/// # Errors
/// 503 while the gateway opens, and whatever is wrong with the credential.
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
                "access tokens of machines are not taken here, since \
                 framework.security.oauth2.resourceserver.jwt.issuer-uri is not set; use an API key"
                    .into(),
            )),
        },
        Ok(None) => match credential::session(req, &origin.scheme) {
            None => Ok(None),
            Some(id) => match session(&auth.sessions, id, req) {
                // It is over, which is nothing against whoever comes back later.
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

/// The answer to a credential that is refused, noted in the audit trail.
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

/// The audit event of a change that this caller makes.
pub(super) fn change_event(caller: &Caller, what: &'static str, detail: String) -> Event {
    let by = Some(caller.actor().to_owned());
    Event { what, account: None, by, from: caller.from, detail }
}

/// Notes in the audit trail that a request was refused.
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
