//! What every page has: the menu for the caller's role, a notice about the last action, and the response headers. Handlers
//! return a [`PageReply`], which removes the cookie of the notice that their page shows.
use super::approval_count::ApprovalCount;
use super::assets;
use super::menu::{Item, MenuViews, Section, ShownGroup, list_groups};
use crate::sign_in::{redirect, render_page, show_text_with_policy};
use askama::Template;
use penstock_auth::oidc::Oidc;
use penstock_auth::sessions::Sessions;
use penstock_auth::{Caller, Role};
use penstock_http::caller::{caller, find_visitor};
use penstock_http::credential;
use penstock_http::origin::{Origin, origin};
use penstock_http::problem::Problem;
use penstock_http::state::{gateway, state};
use penstock_resources::definitions::DefinitionKind;
use penstock_service::definitions::find_source_file;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use salvo::http::StatusCode;
use salvo::http::header::{COOKIE, HeaderValue, SET_COOKIE};
use salvo::{Depot, Request, Response, Writer, async_trait};
use std::borrow::Cow;

/// The cookie that carries a notice from a form to the next page.
const NOTICE_COOKIE: &str = "penstock_notice";
/// The maximum bytes of the encoded value of a cookie; browsers accept cookies of 4 KiB.
const MAX_COOKIE_BYTES: usize = 2 << 10;

/// A message at the top of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) text: String,
    /// Whether it reports a failure.
    pub(super) is_fault: bool,
}

/// What every page has. Templates hold it as `frame` and extend `admin/layout.html`.
#[derive(Debug)]
pub(super) struct Frame {
    /// The prefix of every path.
    pub(super) prefix: String,
    /// The value of the field `_csrf` of every form.
    pub(super) csrf: String,
    /// The id and the display name of the account that views the page.
    pub(super) account: String,
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) section: Section,
    pub(super) notice: Option<Notice>,
    /// How many changes wait for the viewer's approval; `None` if the viewer approves none.
    pub(super) to_approve: Option<ApprovalCount>,
    /// The running version.
    pub(super) version: &'static str,
    /// The file of `service.definitions.dir` that has the definition of this page.
    pub(super) source_file: Option<String>,
    /// The saved views that the viewer sees.
    pub(super) views: MenuViews,
    /// The text in the search field.
    pub(super) searched: String,
}

impl Frame {
    /// Creates the frame of this request's page, with the notice in the browser's cookie. For handlers that return a
    /// [`PageReply`], which removes the cookie.
    pub(super) fn new(req: &Request, depot: &Depot, section: Section) -> Self {
        Self::for_account(caller(depot), req, depot, section)
    }

    /// Returns the frame of the page of a definition, which names its file if it cannot be changed here.
    #[must_use]
    pub(super) fn with_source_of(self, depot: &Depot, kind: DefinitionKind, name: &str) -> Self {
        let gateway = gateway(depot).ok();
        let source_file = gateway.and_then(|gateway| find_source_file(&gateway, kind, name));
        Self { source_file, ..self }
    }

    /// Creates the frame for a route without authentication; `None` for an unauthenticated client. Removes the cookie
    /// of the notice.
    pub(super) fn for_visitor(req: &Request, depot: &Depot, res: &mut Response) -> Option<Self> {
        let who = find_visitor(req, depot)?;
        remove_notice(req, depot, res);
        Some(Self::for_account(&who, req, depot, Section::None))
    }

    fn for_account(who: &Caller, req: &Request, depot: &Depot, section: Section) -> Self {
        let origin = origin(depot);
        let session = credential::session_id(req, &origin.scheme);
        let notice = find_notice(req, &origin.scheme).and_then(Notice::from_cookie);
        let name =
            who.account.as_deref().map_or_else(|| who.id().to_owned(), super::words::display_name);
        Self {
            prefix: origin.prefix.clone(),
            csrf: session.map(Sessions::csrf_token).unwrap_or_default(),
            account: who.id().to_owned(),
            name,
            role: who.role,
            section,
            notice,
            to_approve: ApprovalCount::of_request(depot),
            version: env!("CARGO_PKG_VERSION"),
            source_file: None,
            views: MenuViews::list(who, depot),
            searched: String::new(),
        }
    }

    /// Whether the viewer has at least this role.
    pub(super) fn may(&self, minimum_role: Role) -> bool {
        self.role >= minimum_role
    }

    /// Whether the viewer may change the definition of this page: with this role, and if no file has it.
    pub(super) fn may_edit(&self, minimum_role: Role) -> bool {
        self.may(minimum_role) && self.source_file.is_none()
    }

    /// Whether it is the page of the viewer's own account, which is not in the navigation.
    pub(super) fn is_profile(&self) -> bool {
        self.section == Section::Profile
    }

    /// Returns the groups of the menu, with the entries that the viewer may use.
    pub(super) fn menu(&self) -> impl Iterator<Item = ShownGroup> {
        list_groups(self.role)
    }

    /// Whether this is the entry with the number of changes to approve.
    pub(super) fn has_count(&self, item: &Item) -> bool {
        item.section == Section::Changes && self.to_approve.is_some()
    }

    /// Whether this is the entry with the saved views.
    pub(super) fn has_views(&self, item: &Item) -> bool {
        item.section == Section::BusinessObjects && !self.views.is_empty()
    }

    /// Returns the address of a script or style.
    pub(super) fn asset(&self, name: &str) -> String {
        format!("{}{}", self.prefix, assets::asset_path(name))
    }
}

/// The result of a page's handler.
pub(super) type PageResult = Result<PageReply, Problem>;

/// The response of a page's handler: what to show, or where to redirect.
#[derive(Debug)]
pub(super) enum PageReply {
    /// A rendered page.
    Page { status: StatusCode, text: String },
    /// A part of a page, which a script inserts. It keeps the cookie of the notice for the next page.
    Fragment(String),
    /// After a form: a redirect to the page at this path, without the prefix. That page shows the notice.
    Redirect { path: String, notice: Notice },
    /// After a form that changes only what the browser sees: a redirect to the page at this path, without the prefix, and
    /// what the browser keeps.
    Moved { path: String, cookie: Option<Cookie> },
}

/// A cookie that is no secret.
#[derive(Debug)]
pub(super) struct Cookie {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// The path of the pages that it is for, without the prefix.
    pub(super) path: String,
    /// How long the browser keeps it.
    pub(super) seconds: u32,
}

impl Cookie {
    /// Returns the value of `Set-Cookie`; `None` if it is too long for a cookie.
    fn to_header(&self, origin: &Origin) -> Option<HeaderValue> {
        let Self { name, value, path, seconds } = self;
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
        if value.len() > MAX_COOKIE_BYTES {
            return None;
        }
        let secure = if origin.scheme == "https" { "; Secure" } else { "" };
        let path = format!("{}{path}", origin.prefix);
        let cookie = format!(
            "{name}={value}; Path={path}; HttpOnly; SameSite=Lax{secure}; Max-Age={seconds}"
        );
        HeaderValue::from_str(&cookie).ok()
    }
}

impl PageReply {
    /// Shows a page.
    pub(super) fn show(page: &impl Template) -> Self {
        Self::show_with_status(StatusCode::OK, page)
    }

    /// Shows a page with this status.
    pub(super) fn show_with_status(status: StatusCode, page: &impl Template) -> Self {
        Self::Page { status, text: render_page(page) }
    }

    /// Shows a part of a page.
    pub(super) fn show_fragment(fragment: &impl Template) -> Self {
        Self::Fragment(render_page(fragment))
    }

    /// Redirects after a form was processed, with a notice.
    pub(super) fn redirect(path: impl Into<String>, words: impl Into<String>) -> Self {
        Self::Redirect { path: path.into(), notice: Notice { text: words.into(), is_fault: false } }
    }

    /// Redirects after a form that failed and cannot be shown again, with an error notice.
    pub(super) fn redirect_with_error(path: impl Into<String>, words: impl Into<String>) -> Self {
        Self::Redirect { path: path.into(), notice: Notice { text: words.into(), is_fault: true } }
    }
}

#[async_trait]
impl Writer for PageReply {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        match self {
            Self::Page { status, text } => {
                remove_notice(req, depot, res);
                show_text(res, depot, status, text);
            }
            Self::Fragment(text) => show_text(res, depot, StatusCode::OK, text),
            Self::Redirect { path, notice } => redirect_to(res, depot, &path, &notice),
            Self::Moved { path, cookie } => {
                let origin = origin(depot);
                if let Some(cookie) = cookie.and_then(|cookie| cookie.to_header(origin)) {
                    res.headers_mut().append(SET_COOKIE, cookie);
                }
                redirect(res, &format!("{}{path}", origin.prefix));
            }
        }
    }
}

/// Responds with a page and this status.
pub(super) fn show_page_with_status(
    res: &mut Response,
    depot: &Depot,
    status: StatusCode,
    page: &impl Template,
) {
    show_text(res, depot, status, render_page(page));
}

fn show_text(res: &mut Response, depot: &Depot, status: StatusCode, text: String) {
    let state = state(depot);
    let provider = state.gateway().ok().and_then(|gateway| gateway.auth.oidc.as_ref());
    // Signing out redirects to the provider, and browsers apply this policy to the redirect of a form, too.
    let elsewhere = provider.and_then(Oidc::sign_out_origin).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src 'self' data:; form-action 'self' {elsewhere}; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    show_text_with_policy(res, status, text, &policy);
}

fn redirect_to(res: &mut Response, depot: &Depot, path: &str, notice: &Notice) {
    let origin = origin(depot);
    set_notice(res, &origin.scheme, &notice.to_cookie(), 60);
    redirect(res, &format!("{}{path}", origin.prefix));
}

impl Notice {
    /// Returns the notice as the value of a cookie.
    fn to_cookie(&self) -> String {
        let mut text = utf8_percent_encode(&self.text, NON_ALPHANUMERIC).to_string();
        // Cuts at an encoded space, so that no escape is cut in two.
        while text.len() > MAX_COOKIE_BYTES {
            text.truncate(text.rfind("%20").unwrap_or(0));
        }
        let kind = if self.is_fault { 'f' } else { 'd' };
        format!("{kind}{text}")
    }

    fn from_cookie(value: &str) -> Option<Self> {
        let text = percent_decode_str(value.get(1..)?).decode_utf8().ok()?.into_owned();
        (!text.is_empty()).then_some(Self { text, is_fault: value.starts_with('f') })
    }
}

/// Returns the value of the browser's cookie with the notice.
fn find_notice<'a>(req: &'a Request, scheme: &str) -> Option<&'a str> {
    find_cookie(req, &notice_name(scheme))
}

/// Returns the value of a cookie of the browser that is no secret.
pub(super) fn read_cookie(req: &Request, name: &str) -> Option<String> {
    let value = find_cookie(req, name)?;
    percent_decode_str(value).decode_utf8().ok().map(Cow::into_owned)
}

fn find_cookie<'a>(req: &'a Request, name: &str) -> Option<&'a str> {
    let lines = req.headers().get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    Some(pairs.find(|(known, _)| known.trim() == name)?.1.trim())
}

/// Removes the browser's cookie with the notice, which this response shows.
fn remove_notice(req: &Request, depot: &Depot, res: &mut Response) {
    let scheme = &origin(depot).scheme;
    if find_notice(req, scheme).is_some() {
        set_notice(res, scheme, "", 0);
    }
}

fn notice_name(scheme: &str) -> String {
    let prefix = if scheme == "https" { "__Host-" } else { "" };
    format!("{prefix}{NOTICE_COOKIE}")
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
