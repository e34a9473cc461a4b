//! The session of a browser, and the cookies of sessions and of sign-ins in progress.
use super::pages::redirect;
use penstock_auth::oidc::Oidc;
use penstock_auth::{Account, Auth, AuthError};
use penstock_http::credential::{self, cookie_name};
use penstock_http::origin::Origin;
use penstock_http::return_path::ReturnPath;
use salvo::http::header::{COOKIE, HeaderValue, SET_COOKIE};
use salvo::{Request, Response};

/// The lifetime in seconds of the cookie of a sign-in in progress: as long as the sign-in may take.
const LOGIN_SECONDS: u64 = 600;

/// Starts a session and sets its cookie. The session always has a new id; the one that the browser sent ends.
pub(super) fn start_session(
    auth: &Auth,
    account: &Account,
    id_token: Option<&str>,
    (req, origin, res): (&Request, &Origin, &mut Response),
) -> Result<(), AuthError> {
    let started = auth.sessions.start_session(account, id_token, origin.client)?;
    if let Some(old) = credential::session_id(req, &origin.scheme) {
        auth.sessions.end_session(old);
    }
    // Browsers drop the cookie when they close. The gateway ends the session earlier.
    set_cookie(res, origin, cookie_name(&origin.scheme), &started.id, "");
    Ok(())
}

/// Starts a session and redirects the browser.
pub(super) fn start_and_redirect(
    auth: &Auth,
    account: &Account,
    id_token: Option<&str>,
    back: &ReturnPath,
    (req, origin, res): (&Request, &Origin, &mut Response),
) -> Result<(), AuthError> {
    start_session(auth, account, id_token, (req, origin, &mut *res))?;
    redirect(res, &back.with_prefix(&origin.prefix));
    Ok(())
}

/// Removes the session's cookie from the browser.
pub(super) fn clear_session_cookie(origin: &Origin, res: &mut Response) {
    set_cookie(res, origin, cookie_name(&origin.scheme), "", "; Max-Age=0");
}

/// Stores a sign-in in progress in the browser, sealed, as a cookie.
pub(super) fn store_login(origin: &Origin, slot: u8, sealed: &str, res: &mut Response) {
    set_cookie(
        res,
        origin,
        &login_cookie_name(origin, slot),
        sealed,
        &format!("; Max-Age={LOGIN_SECONDS}"),
    );
}

/// Returns the sealed sign-in in progress that the browser has for this `state`.
pub(super) fn read_login(req: &Request, origin: &Origin, state: &str) -> Option<String> {
    let name = login_cookie_name(origin, Oidc::cookie_slot(state));
    let lines = req.headers().get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| known.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Removes the sign-in in progress from the browser.
pub(super) fn clear_login(origin: &Origin, state: &str, res: &mut Response) {
    set_cookie(
        res,
        origin,
        &login_cookie_name(origin, Oidc::cookie_slot(state)),
        "",
        "; Max-Age=0",
    );
}

fn login_cookie_name(origin: &Origin, slot: u8) -> String {
    let prefix = if is_secure(origin) { "__Host-" } else { "" };
    format!("{prefix}penstock_login_{slot}")
}

fn is_secure(origin: &Origin) -> bool {
    origin.scheme == "https"
}

fn set_cookie(res: &mut Response, origin: &Origin, name: &str, value: &str, more: &str) {
    let secure = if is_secure(origin) { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{more}");
    let cookie = HeaderValue::from_str(&cookie).expect("names and values are base64url and words");
    res.headers_mut().append(SET_COOKIE, cookie);
}
