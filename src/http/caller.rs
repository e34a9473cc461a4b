//! Authenticates the sender of a request. `access` does so once, before the route's handler runs.
use super::credential::{self, HeaderCredential};
use super::origin::origin;
use super::problem::{BearerError, Problem};
use super::state::{State, state};
use penstock_auth::audit::Event;
use penstock_auth::sessions::Sessions;
use penstock_auth::{AuthError, Authorized, Caller};
use salvo::{Depot, Request};

/// The header that marks requests which a page sends automatically.
const LIVE_HEADER: &str = "x-penstock-live";

/// Returns the caller, with the check that each commit on its behalf passes. Only for handlers of routes that
/// require a role.
///
/// # Panics
/// On routes that require no role.
pub fn caller(depot: &Depot) -> &Authorized {
    depot
        .get_typed::<Authorized>()
        .expect("`access` inserts it before the handler of a route that requires a role")
}

/// Returns the caller, or `None` on routes that require no credential.
pub(super) fn caller_if_known(depot: &Depot) -> Option<&Authorized> {
    depot.get_typed::<Authorized>().ok()
}

/// Returns the owner of this request's session, for pages that anyone may see. `None` without a valid session,
/// and while the gateway opens.
pub fn find_visitor(req: &Request, depot: &Depot) -> Option<Caller> {
    let state = state(depot);
    let id = credential::session_id(req, &origin(depot).scheme)?;
    authenticate_session(&state.gateway().ok()?.auth.sessions, id, req).ok()
}

/// Returns the owner of a session. Requests that a page sends automatically do not keep the session alive.
fn authenticate_session(sessions: &Sessions, id: &str, req: &Request) -> Result<Caller, AuthError> {
    if req.headers().contains_key(LIVE_HEADER) {
        sessions.authenticate_passive(id)
    } else {
        sessions.authenticate_session(id)
    }
}

/// Authenticates a request by the control socket, otherwise by the credential in its header, otherwise by the
/// session in its cookie. `None` when it has no credential, or a session that is over.
///
/// # Errors
/// 503 while the gateway opens, or the error of the credential.
pub(super) async fn authenticate(req: &Request, depot: &Depot) -> Result<Option<Caller>, Problem> {
    let origin = origin(depot);
    if origin.control {
        return Ok(Some(Caller::local()));
    }
    let state = state(depot);
    let auth = &state.gateway()?.auth;
    let mut is_token = false;
    let found = match credential::find_header_credential(req) {
        Ok(Some(HeaderCredential::ApiKey(key))) => auth.keys.authenticate_key(key).map(Some),
        Ok(Some(HeaderCredential::Bearer(token))) => match &auth.tokens {
            Some(tokens) => {
                is_token = true;
                tokens.authenticate_token(token, origin.client).await.map(Some)
            }
            None => Err(AuthError::Invalid(
                "access tokens are not accepted here, because \
                 framework.security.oauth2.resourceserver.jwt.issuer-uri is not set; use an API key"
                    .into(),
            )),
        },
        Ok(None) => match credential::session_id(req, &origin.scheme) {
            None => Ok(None),
            Some(id) => match authenticate_session(&auth.sessions, id, req) {
                // The session is over, which does not count as a failure.
                Err(AuthError::Invalid(_) | AuthError::Malformed(_)) => Ok(None),
                found => found.map(Some),
            },
        },
        Err(error) => Err(error),
    };
    found
        .map(|found| found.map(|caller| Caller { from: origin.client, ..caller }))
        .map_err(|error| refuse_credential(error, is_token, &state, depot))
}

/// Returns the response to a refused credential, and records the refusal in the audit trail. What refuses an access token
/// says itself what to do.
fn refuse_credential(
    mut error: AuthError,
    is_token: bool,
    state: &State,
    depot: &Depot,
) -> Problem {
    let bearer_error = match &error {
        AuthError::Invalid(_) => Some(BearerError::InvalidToken),
        AuthError::Malformed(_) => Some(BearerError::InvalidRequest),
        AuthError::Forbidden(_) => Some(BearerError::InsufficientScope),
        _ => None,
    };
    let Some(bearer_error) = bearer_error else { return error.into() };
    record_refusal(state, depot, None, error.to_string());
    if bearer_error == BearerError::InvalidToken && !is_token {
        let help = how_to_get_credentials(depot);
        error = AuthError::Invalid(format!("{error}; {help}"));
    }
    if bearer_error != BearerError::InsufficientScope
        && let Some(wait) = state.failed_authentications.record_failure(origin(depot).client)
    {
        error = AuthError::TooMany(wait);
        return error.into();
    }
    Problem::from(error).with_challenge(Some(bearer_error))
}

/// Describes where API keys come from.
pub(super) fn how_to_get_credentials(depot: &Depot) -> String {
    format!(
        "create an API key on the page {}/admin/keys, or with `penstock api-key create` on the gateway's machine",
        origin(depot).prefix
    )
}

/// Records in the audit trail that a request was refused.
pub fn record_refusal(state: &State, depot: &Depot, caller: Option<&Caller>, detail: String) {
    let Ok(gateway) = state.gateway() else { return };
    gateway.auth.audit.record_event(Event {
        what: "request.refused",
        account: caller.map(|caller| caller.id().to_owned()),
        by: caller.and_then(Caller::api_key_id).map(str::to_owned),
        from: origin(depot).client,
        detail,
    });
}
