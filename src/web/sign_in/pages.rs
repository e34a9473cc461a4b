//! The pages: their templates (in `templates/`), and the headers of their responses.
use crate::admin::assets;
use askama::Template;
use salvo::Response;
use salvo::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY,
    RETRY_AFTER,
};
use salvo::http::{ResBody, StatusCode};

/// The form of the built-in accounts.
#[derive(Template)]
#[template(path = "password.html")]
pub(super) struct PasswordPage<'a> {
    pub(super) prefix: &'a str,
    pub(super) back: &'a str,
    pub(super) email: &'a str,
    pub(super) fault: Option<&'a str>,
    /// Whether the first account still has its initial password, so that the page says where that is.
    pub(super) has_first_password: bool,
}

/// The link to the provider.
#[derive(Template)]
#[template(path = "provider.html")]
pub(super) struct ProviderPage<'a> {
    pub(super) prefix: &'a str,
    pub(super) registration: &'a str,
    pub(super) link: &'a str,
}

/// A page with a message.
#[derive(Template)]
#[template(path = "message.html")]
pub(crate) struct Message<'a> {
    prefix: &'a str,
    heading: &'a str,
    lines: &'a [&'a str],
    /// An address and its label.
    link: Option<(&'a str, &'a str)>,
}

impl<'a> PasswordPage<'a> {
    pub(super) fn new(prefix: &'a str, back: &'a str) -> Self {
        Self { prefix, back, email: "", fault: None, has_first_password: false }
    }

    fn asset(&self, name: &str) -> String {
        format!("{}{}", self.prefix, assets::asset_path(name))
    }
}

impl ProviderPage<'_> {
    fn asset(&self, name: &str) -> String {
        format!("{}{}", self.prefix, assets::asset_path(name))
    }
}

impl<'a> Message<'a> {
    pub(crate) fn new(prefix: &'a str, heading: &'a str, lines: &'a [&'a str]) -> Self {
        Self { prefix, heading, lines, link: None }
    }

    pub(crate) fn with_link(self, href: &'a str, label: &'a str) -> Self {
        Self { link: Some((href, label)), ..self }
    }

    fn asset(&self, name: &str) -> String {
        format!("{}{}", self.prefix, assets::asset_path(name))
    }
}

/// Responds with a page that may run no script, and whose form may be sent only to this gateway.
pub(crate) fn show_static_page(res: &mut Response, status: StatusCode, page: &impl Template) {
    show_text_with_policy(
        res,
        status,
        render_page(page),
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    );
}

/// Renders a page.
pub(crate) fn render_page(page: &impl Template) -> String {
    // Rendering writes into memory, and the templates call nothing that can fail.
    page.render().unwrap_or_default()
}

/// Responds with a rendered page under this Content-Security-Policy.
pub(crate) fn show_text_with_policy(
    res: &mut Response,
    status: StatusCode,
    text: String,
    policy: &str,
) {
    res.status_code(status);
    let headers = res.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    // With `no-referrer` a browser would also hide the origin of a form from this gateway.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    res.replace_body(ResBody::Once(text.into()));
}

/// Sets `Retry-After`.
pub(super) fn set_retry_after(res: &mut Response, seconds: u64) {
    res.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
}

/// Redirects the browser (303), which then sends a `GET`.
pub(crate) fn redirect(res: &mut Response, location: &str) {
    match HeaderValue::from_str(location) {
        Ok(location) => {
            res.status_code(StatusCode::SEE_OTHER);
            res.headers_mut().insert(LOCATION, location);
        }
        // This does not happen: addresses are checked when they are received.
        Err(_) => {
            res.status_code(StatusCode::INTERNAL_SERVER_ERROR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_outside_text() {
        let evil = "\"><script>alert(1)</script>";
        let password =
            PasswordPage { email: evil, fault: Some(evil), ..PasswordPage::new(evil, evil) };
        let lines = [evil];
        for page in [
            password.render().unwrap(),
            Message::new(evil, evil, &lines).with_link(evil, evil).render().unwrap(),
            ProviderPage { prefix: evil, registration: evil, link: evil }.render().unwrap(),
        ] {
            assert!(!page.contains("<script"), "{page}");
            assert!(!page.contains(evil), "{page}");
        }
    }

    #[test]
    fn pages_are_plain_and_accessible() {
        let mut res = Response::new();
        show_static_page(&mut res, StatusCode::OK, &PasswordPage::new("/gw", "/x"));
        let policy = res.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(!policy.contains("unsafe") && policy.contains("default-src 'none'"), "{policy}");
        let page = PasswordPage::new("/gw", "/x").render().unwrap();
        for part in [
            "<html lang=\"en\">",
            "name=\"viewport\"",
            "<label for=\"email\">",
            "<label for=\"password\">",
            "action=\"/gw/login\"",
            "name=\"return\" value=\"/x\"",
            "autocomplete=\"current-password\"",
            "href=\"/gw/admin/assets/",
        ] {
            assert!(page.contains(part), "{part}\nis not in\n{page}");
        }
        assert!(!page.contains("http"), "nothing is fetched from elsewhere");
    }
}
