//! The session of a browser, and the cookies of sessions and of sign-ins in progress.
use super::back::Back;
use super::pages::redirect;
use crate::credential::{self, cookie_name};
use crate::origin::Origin;
use penstock_auth::oidc::Oidc;
use penstock_auth::{Account, Auth, Refusal};
use salvo::http::header::{COOKIE, HeaderValue, SET_COOKIE};
use salvo::{Request, Response};

/// The lifetime in seconds of a sign-in's cookie: as long as the sign-in itself.
const LOGIN_SECONDS: u64 = 600;

/// Starts a session with a new id, whatever the browser sent, and sets its cookie.
pub(super) fn begin(
    auth: &Auth,
    account: &Account,
    id_token: Option<&str>,
    (req, origin, res): (&Request, &Origin, &mut Response),
) -> Result<(), Refusal> {
    let started = auth.sessions.start(account, id_token, origin.client)?;
    if let Some(old) = credential::session(req, &origin.scheme) {
        auth.sessions.end(old);
    }
    // The cookie ends with the browser. The server ends the session earlier.
    set(res, origin, cookie_name(&origin.scheme), &started.id, "");
    Ok(())
}

/// Starts a session and redirects the browser.
pub(super) fn enter(
    auth: &Auth,
    account: &Account,
    id_token: Option<&str>,
    back: &Back,
    (req, origin, res): (&Request, &Origin, &mut Response),
) -> Result<(), Refusal> {
    begin(auth, account, id_token, (req, origin, &mut *res))?;
    redirect(res, &back.under(&origin.prefix));
    Ok(())
}

/// Removes the session's cookie from the browser.
pub(super) fn forget(origin: &Origin, res: &mut Response) {
    set(res, origin, cookie_name(&origin.scheme), "", "; Max-Age=0");
}

/// Stores a sealed login in the browser.
pub(super) fn keep_login(origin: &Origin, slot: u8, sealed: &str, res: &mut Response) {
    set(res, origin, &login_name(origin, slot), sealed, &format!("; Max-Age={LOGIN_SECONDS}"));
}

/// Returns the sealed login that the browser stored for this state.
pub(super) fn kept_login(req: &Request, origin: &Origin, state: &str) -> Option<String> {
    let name = login_name(origin, Oidc::slot(state));
    let lines = req.headers().get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| known.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Removes the sealed login from the browser.
pub(super) fn forget_login(origin: &Origin, state: &str, res: &mut Response) {
    set(res, origin, &login_name(origin, Oidc::slot(state)), "", "; Max-Age=0");
}

fn login_name(origin: &Origin, slot: u8) -> String {
    let prefix = if is_secure(origin) { "__Host-" } else { "" };
    format!("{prefix}penstock_login_{slot}")
}

fn is_secure(origin: &Origin) -> bool {
    origin.scheme == "https"
}

fn set(res: &mut Response, origin: &Origin, name: &str, value: &str, more: &str) {
    let secure = if is_secure(origin) { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{more}");
    let cookie = HeaderValue::from_str(&cookie).expect("names and values are base64url and words");
    res.headers_mut().append(SET_COOKIE, cookie);
}
