//! The session of a browser, and the cookies of it and of sign-ins that are under way.
use super::back::Back;
use super::pages::redirect;
use crate::credential::{self, cookie_name};
use crate::origin::Origin;
use penstock_auth::oidc::Oidc;
use penstock_auth::{Account, Auth, Refusal};
use salvo::http::header::{COOKIE, HeaderValue, SET_COOKIE};
use salvo::{Request, Response};

/// Seconds that the cookie of a sign-in lasts: as long as the sign-in itself.
const LOGIN_SECONDS: u64 = 600;

/// Begins a session with a new id, whatever the browser brought along, and gives it to the browser.
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
    // It ends with the browser; the server ends it earlier.
    set(res, origin, cookie_name(&origin.scheme), &started.id, "");
    Ok(())
}

/// Begins a session and sends the browser on.
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

/// Takes the session from the browser.
pub(super) fn forget(origin: &Origin, res: &mut Response) {
    set(res, origin, cookie_name(&origin.scheme), "", "; Max-Age=0");
}

/// Gives the browser a sealed login to keep.
pub(super) fn keep_login(origin: &Origin, slot: u8, sealed: &str, res: &mut Response) {
    set(res, origin, &login_name(origin, slot), sealed, &format!("; Max-Age={LOGIN_SECONDS}"));
}

/// The sealed login that the browser kept for this state.
pub(super) fn kept_login(req: &Request, origin: &Origin, state: &str) -> Option<String> {
    let name = login_name(origin, Oidc::slot(state));
    let lines = req.headers().get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| known.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Takes it from the browser.
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
