//! What every page has: navigation for the role of whoever looks at it, a notice of what was just done,
//! and the headers of the answer.
use super::assets;
use crate::caller::{caller, visitor};
use crate::credential;
use crate::service::origin;
use crate::sign_in::{answer, redirect};
use crate::state::state;
use askama::Template;
use penstock_auth::oidc::Oidc;
use penstock_auth::sessions::Sessions;
use penstock_auth::{Caller, Role};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use salvo::http::StatusCode;
use salvo::http::header::{COOKIE, HeaderValue, SET_COOKIE};
use salvo::{Depot, Request, Response};

/// The cookie that carries a notice from a form to the page after it.
const NOTICE: &str = "penstock_notice";
/// Bytes of a notice on its way; browsers keep cookies of 4 KiB.
const LONGEST_NOTICE: usize = 2 << 10;

/// Where in the interface a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    BusinessObjects,
    Exports,
    Targets,
    Query,
    Namespaces,
    Keys,
    Users,
    Audit,
    Settings,
    Profile,
    /// None of them: the page of a fault.
    Nowhere,
}

/// One entry of the navigation.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) section: Section,
    /// Its address, without the prefix.
    pub(super) path: &'static str,
    pub(super) words: &'static str,
    /// Who sees it; the routes ask for the same.
    least: Role,
}

const fn item(section: Section, path: &'static str, words: &'static str, least: Role) -> Item {
    Item { section, path, words, least }
}

/// The navigation, in its order.
static ITEMS: [Item; 10] = [
    item(Section::Overview, "/admin", "Overview", Role::User),
    item(Section::BusinessObjects, "/admin/business-objects", "Business Objects", Role::User),
    item(Section::Exports, "/admin/exports", "Exports", Role::User),
    item(Section::Targets, "/admin/targets", "Targets", Role::User),
    item(Section::Query, "/admin/query", "Query", Role::User),
    item(Section::Namespaces, "/admin/namespaces", "Namespaces", Role::User),
    item(Section::Keys, "/admin/keys", "API keys", Role::User),
    item(Section::Users, "/admin/users", "Users", Role::Admin),
    item(Section::Audit, "/admin/audit", "Audit trail", Role::Admin),
    item(Section::Settings, "/admin/settings", "Settings", Role::Admin),
];

/// Something to say at the top of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) text: String,
    /// Whether it says that something was not done.
    pub(super) is_fault: bool,
}

/// What every page has. Templates hold it as `frame` and extend `admin/layout.html`.
#[derive(Debug)]
pub(super) struct Frame {
    /// What stands before every path.
    pub(super) prefix: String,
    /// The value of the field `_csrf` of every form.
    pub(super) csrf: String,
    /// Who looks at it: the account's id, and what it is called.
    pub(super) account: String,
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) section: Section,
    pub(super) notice: Option<Notice>,
    /// The version that runs.
    pub(super) version: &'static str,
}

impl Frame {
    /// The frame of this request's page; takes the notice that waits for it.
    pub(super) fn of(req: &Request, depot: &Depot, res: &mut Response, section: Section) -> Self {
        Self::seen_by(caller(depot), req, depot, res, section)
    }

    /// The same where the route may have let nobody on; `None` for a stranger.
    pub(super) fn of_visitor(req: &Request, depot: &Depot, res: &mut Response) -> Option<Self> {
        let who = visitor(req, depot)?;
        Some(Self::seen_by(&who, req, depot, res, Section::Nowhere))
    }

    fn seen_by(
        who: &Caller,
        req: &Request,
        depot: &Depot,
        res: &mut Response,
        section: Section,
    ) -> Self {
        let origin = origin(depot);
        let session = credential::session(req, &origin.scheme);
        let notice = take_notice(req, &origin.scheme, res);
        let name = who.account.as_deref().map_or_else(|| who.id().to_owned(), super::words::name);
        Self {
            prefix: origin.prefix.clone(),
            csrf: session.map(Sessions::csrf).unwrap_or_default(),
            account: who.id().to_owned(),
            name,
            role: who.role,
            section,
            notice,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// Whether whoever looks at it may do what this role may.
    pub(super) fn may(&self, least: Role) -> bool {
        self.role >= least
    }

    /// Whether it is the page of one's own account, which is not in the navigation.
    pub(super) fn is_profile(&self) -> bool {
        self.section == Section::Profile
    }

    /// The entries that whoever looks at it may use.
    pub(super) fn navigation(&self) -> impl Iterator<Item = &'static Item> {
        ITEMS.iter().filter(|item| self.may(item.least))
    }

    /// The address of a file beside the pages.
    pub(super) fn asset(&self, name: &str) -> String {
        format!("{}{}", self.prefix, assets::path(name))
    }
}

/// Answers with a page.
pub(super) fn show(res: &mut Response, depot: &Depot, page: &impl Template) {
    show_with(res, depot, StatusCode::OK, page);
}

/// Answers with a page and this status.
pub(super) fn show_with(
    res: &mut Response,
    depot: &Depot,
    status: StatusCode,
    page: &impl Template,
) {
    let state = state(depot);
    let provider = state.gateway().ok().and_then(|gateway| gateway.auth.oidc.as_ref());
    // Signing out leads on to the provider, and browsers hold the redirect of a form to this, too.
    let elsewhere = provider.and_then(Oidc::sign_out_origin).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src 'self' data:; form-action 'self' {elsewhere}; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    answer(res, status, page, &policy);
}

/// After a form that did what it should: on to this page (a path without the prefix), which says so.
pub(super) fn done(res: &mut Response, depot: &Depot, path: &str, words: &str) {
    go_on(res, depot, path, words, false);
}

/// After a form that could not, where there is no page of it to show again.
pub(super) fn failed(res: &mut Response, depot: &Depot, path: &str, words: &str) {
    go_on(res, depot, path, words, true);
}

fn go_on(res: &mut Response, depot: &Depot, path: &str, words: &str, is_fault: bool) {
    let origin = origin(depot);
    let mut text = utf8_percent_encode(words, NON_ALPHANUMERIC).to_string();
    // At a whole escape, lest the rest cannot be read.
    while text.len() > LONGEST_NOTICE {
        text.truncate(text.rfind("%20").unwrap_or(0));
    }
    let kind = if is_fault { 'f' } else { 'd' };
    set_notice(res, &origin.scheme, &format!("{kind}{text}"), 60);
    redirect(res, &format!("{}{path}", origin.prefix));
}

/// The notice that the browser brings; it is taken from it.
fn take_notice(req: &Request, scheme: &str, res: &mut Response) -> Option<Notice> {
    let name = notice_name(scheme);
    let lines = req.headers().get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let value = pairs.find(|(known, _)| known.trim() == name)?.1.trim();
    set_notice(res, scheme, "", 0);
    let is_fault = value.starts_with('f');
    let text = percent_decode_str(value.get(1..)?).decode_utf8().ok()?.into_owned();
    (!text.is_empty()).then_some(Notice { text, is_fault })
}

fn notice_name(scheme: &str) -> String {
    let prefix = if scheme == "https" { "__Host-" } else { "" };
    format!("{prefix}{NOTICE}")
}

fn set_notice(res: &mut Response, scheme: &str, value: &str, seconds: u32) {
    let secure = if scheme == "https" { "; Secure" } else { "" };
    let name = notice_name(scheme);
    let cookie =
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}; Max-Age={seconds}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        res.headers_mut().append(SET_COOKIE, cookie);
    }
}
