//! The pages: their templates (in `templates/`), and what the answer with each of them has.
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use salvo::Response;
use salvo::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY,
    RETRY_AFTER,
};
use salvo::http::{ResBody, StatusCode};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const STYLE: &str = include_str!("../../../templates/style.css");

/// The only style that a page may have (Content Security Policy Level 3, 8.4).
static STYLE_HASH: LazyLock<String> =
    LazyLock::new(|| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(STYLE))));

/// The form of the built-in accounts.
#[derive(Template)]
#[template(path = "password.html")]
pub(super) struct Password<'a> {
    pub(super) style: &'static str,
    pub(super) prefix: &'a str,
    pub(super) back: &'a str,
    pub(super) email: &'a str,
    pub(super) fault: Option<&'a str>,
}

/// The way to the provider.
#[derive(Template)]
#[template(path = "provider.html")]
pub(super) struct Provider<'a> {
    pub(super) style: &'static str,
    pub(super) registration: &'a str,
    pub(super) link: &'a str,
}

/// Something to say.
#[derive(Template)]
#[template(path = "message.html")]
pub(super) struct Message<'a> {
    pub(super) style: &'static str,
    pub(super) heading: &'a str,
    pub(super) lines: &'a [&'a str],
    /// An address and its words.
    pub(super) link: Option<(&'a str, &'a str)>,
}

/// Who is signed in.
#[derive(Template)]
#[template(path = "home.html")]
pub(super) struct Home<'a> {
    pub(super) style: &'static str,
    pub(super) prefix: &'a str,
    pub(super) name: &'a str,
    pub(super) email: &'a str,
    pub(super) organization: Option<&'a str>,
    pub(super) role: &'a str,
    pub(super) csrf: &'a str,
}

impl<'a> Password<'a> {
    pub(super) fn new(prefix: &'a str, back: &'a str) -> Self {
        Self { style: STYLE, prefix, back, email: "", fault: None }
    }
}

impl<'a> Provider<'a> {
    pub(super) fn new(registration: &'a str, link: &'a str) -> Self {
        Self { style: STYLE, registration, link }
    }
}

impl<'a> Message<'a> {
    pub(super) fn new(heading: &'a str, lines: &'a [&'a str]) -> Self {
        Self { style: STYLE, heading, lines, link: None }
    }

    pub(super) fn link(self, href: &'a str, label: &'a str) -> Self {
        Self { link: Some((href, label)), ..self }
    }
}

impl<'a> Home<'a> {
    pub(super) fn new(prefix: &'a str, csrf: &'a str) -> Self {
        Self { style: STYLE, prefix, csrf, name: "", email: "", organization: None, role: "" }
    }
}

/// Answers with a page.
pub(super) fn show(res: &mut Response, status: StatusCode, page: &impl Template) {
    show_with(res, status, page, "");
}

/// Answers with a page whose forms lead to this origin, too: browsers apply the policy of a page to
/// where the answer to its form redirects them.
pub(super) fn show_with(
    res: &mut Response,
    status: StatusCode,
    page: &impl Template,
    form_action: &str,
) {
    // Rendering writes into memory, and the templates call nothing that can fail.
    let text = page.render().unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src {}; img-src data:; form-action 'self' {form_action}; \
         base-uri 'none'; frame-ancestors 'none'",
        *STYLE_HASH
    );
    res.status_code(status);
    let headers = res.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    // With `no-referrer` a browser would hide from this gateway, too, where a form comes from.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    res.replace_body(ResBody::Once(text.into()));
}

/// Tells when to try again.
pub(super) fn retry_after(res: &mut Response, seconds: u64) {
    res.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
}

/// Sends the browser on, with a `GET`.
pub(super) fn redirect(res: &mut Response, location: &str) {
    match HeaderValue::from_str(location) {
        Ok(location) => {
            res.status_code(StatusCode::SEE_OTHER);
            res.headers_mut().insert(LOCATION, location);
        }
        // Addresses are checked where they come in.
        Err(_) => {
            res.status_code(StatusCode::INTERNAL_SERVER_ERROR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_is_escaped() {
        let evil = "\"><script>alert(1)</script>";
        let mut home = Home::new("", "token");
        (home.name, home.email) = (evil, evil);
        let password = Password { email: evil, fault: Some(evil), ..Password::new("", evil) };
        let lines = [evil];
        for page in [
            home.render().unwrap(),
            password.render().unwrap(),
            Message::new(evil, &lines).link(evil, evil).render().unwrap(),
            Provider::new(evil, evil).render().unwrap(),
        ] {
            assert!(!page.contains("<script"), "{page}");
            assert!(!page.contains(evil), "{page}");
        }
    }

    #[test]
    fn every_page_is_plain_and_accessible() {
        let mut res = Response::new();
        show(&mut res, StatusCode::OK, &Password::new("/gw", "/x"));
        let policy = res.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(!policy.contains("unsafe") && policy.contains("default-src 'none'"), "{policy}");
        let page = Password::new("/gw", "/x").render().unwrap();
        for part in [
            "<html lang=\"en\">",
            "name=\"viewport\"",
            "<label for=\"email\">",
            "<label for=\"password\">",
            "action=\"/gw/login\"",
            "name=\"return\" value=\"/x\"",
            "autocomplete=\"current-password\"",
        ] {
            assert!(page.contains(part), "{part}\nis not in\n{page}");
        }
        assert!(page.contains(&format!("<style>{STYLE}</style>")), "the hash is that of the style");
        assert!(!page.contains("http"), "nothing is fetched from elsewhere");
    }
}
