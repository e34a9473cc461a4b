//! `GET /login` and `POST /login`. If users sign in at a provider, the page links there, and `POST` is refused.
use super::pages::{
    Message, PasswordPage, ProviderPage, redirect, set_retry_after, show_static_page as show_page,
};
use super::session;
use penstock_auth::{Auth, AuthError};
use penstock_http::access::MinimumRole;
use penstock_http::body;
use penstock_http::caller::find_visitor;
use penstock_http::operation::Operation;
use penstock_http::origin::origin;
use penstock_http::problem::Problem;
use penstock_http::query::parse_form;
use penstock_http::reply::Reply;
use penstock_http::return_path::ReturnPath;
use penstock_http::state::state;
use salvo::http::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use salvo::http::{Method, StatusCode};
use salvo::{Depot, Request, Response, Scribe, handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The credentials of a sign-in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Credentials {
    /// The email of a built-in account; that of the first one is `admin`.
    email: String,
    /// Its password.
    password: String,
}

/// The account that has signed in.
#[derive(Serialize, JsonSchema)]
struct SignedIn {
    /// The account's identifier.
    id: String,
    /// Its email.
    email: String,
    /// Its role.
    roles: [&'static str; 1],
}

/// The media type of a form.
pub(super) const FORM_MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// Declares how a client signs in. The answer to a form is a page.
pub(crate) fn sign_in_operations() -> Vec<Operation> {
    vec![
        Operation::with_handler(Method::GET, "/login", MinimumRole::Anyone, show_sign_in)
            .describe(
                "signInPage",
                "Sign-in",
                "Shows the page to sign in; redirects if already signed in.",
            )
            .query::<String>(
                "return",
                "The path of this gateway to redirect to after signing in.",
            )
            .empty_answer(200, "The page.")
            .answer_as::<String>("text/html")
            .empty_answer(303, "The browser is already signed in.")
            .problem_as::<String>(&[503], "text/html"),
        Operation::with_handler(Method::POST, "/login", MinimumRole::Anyone, sign_in)
            .describe(
                "signIn",
                "Sign-in",
                "Signs in with a password, sent by the page's form or as JSON. Starts a session, in a cookie.\n\n\
                 The response to a form is a page, or a redirect to the path in its field `return`. With sign-in at a \
                 provider there are no passwords (404).",
            )
            .body::<Credentials>()
            .body_as::<Credentials>(FORM_MEDIA_TYPE)
            .answer::<SignedIn>(200, "Signed in.")
            .answer_header("Set-Cookie", "The session.")
            .empty_answer(303, "Signed in, by the form.")
            .problems(&[400, 401, 404, 408, 413, 415, 429])
            .problem_as::<String>(&[401, 403, 429, 503], "text/html"),
    ]
}

#[handler]
async fn show_sign_in(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let state = state(depot);
    let prefix = &origin(depot).prefix;
    let Ok(gateway) = state.gateway() else {
        set_retry_after(res, 2);
        let lines = ["The store is opening. Reload this page in a moment."];
        let page = Message::new(prefix, "The gateway is starting", &lines);
        show_page(res, StatusCode::SERVICE_UNAVAILABLE, &page);
        return Ok(());
    };
    let auth = &gateway.auth;
    let back = ReturnPath::parse_or_root(req.query::<&str>("return"));
    if find_visitor(req, depot).is_some() {
        redirect(res, &back.with_prefix(prefix));
        return Ok(());
    }
    if let Some(oidc) = &auth.oidc {
        let id = oidc.registration();
        let link = format!("{prefix}/oauth2/authorization/{id}{}", back.to_query());
        show_page(res, StatusCode::OK, &ProviderPage { prefix, registration: id, link: &link });
    } else {
        let has_first_password = auth.accounts.find_with_initial_password().is_some();
        let page = PasswordPage { has_first_password, ..PasswordPage::new(prefix, back.as_str()) };
        show_page(res, StatusCode::OK, &page);
    }
    Ok(())
}

#[handler]
async fn sign_in(req: &mut Request, depot: &mut Depot, res: &mut Response) -> Result<(), Problem> {
    let state = state(depot);
    let auth = &state.gateway()?.auth;
    if auth.oidc.is_some() {
        return Err(Problem::not_found(
            "accounts of this gateway have no passwords; sign in at the provider",
        ));
    }
    let is_form = is_form(req);
    if !is_form {
        body::check_media_type(req, &[body::MediaType::Json])?;
    }
    let sent = body::read_unauthenticated_body(req, &state, origin(depot)).await?;
    if is_form {
        let fields = parse_form_fields(sent.bytes())?;
        // Checking the password takes long. Dropping the body frees its quota for others meanwhile.
        drop(sent);
        sign_in_with_form(auth, &fields, (req, depot, res)).await
    } else {
        let credentials = parse_credentials(sent.bytes())?;
        drop(sent);
        sign_in_with_json(auth, &credentials, (req, depot, res)).await
    }
}

fn parse_credentials(sent: &[u8]) -> Result<Credentials, Problem> {
    // The messages of serde could contain the password.
    serde_json::from_slice(sent).map_err(|error| {
        Problem::malformed(format!(
            "line {}, column {}: expected {{\"email\": \"...\", \"password\": \"...\"}}",
            error.line(),
            error.column()
        ))
    })
}

async fn sign_in_with_json(
    auth: &Auth,
    sent: &Credentials,
    (req, depot, res): (&Request, &Depot, &mut Response),
) -> Result<(), Problem> {
    let origin = origin(depot);
    let verified = auth.accounts.verify_password(&sent.email, &sent.password, origin.client).await;
    let account = verified.map_err(Problem::from)?;
    session::start_session(auth, &account, None, (req, origin, res)).map_err(Problem::from)?;
    let answer = SignedIn {
        id: account.id.clone(),
        email: account.email.clone(),
        roles: [account.role.name()],
    };
    Reply::json(&answer)?.render(res);
    Ok(())
}

async fn sign_in_with_form(
    auth: &Auth,
    sent: &BTreeMap<String, String>,
    (req, depot, res): (&Request, &Depot, &mut Response),
) -> Result<(), Problem> {
    let field = |name: &str| sent.get(name).map(String::as_str).unwrap_or_default();
    let origin = origin(depot);
    let back = ReturnPath::parse_or_root(Some(field("return")));
    let email = field("email").trim();
    let verified = auth.accounts.verify_password(email, field("password"), origin.client).await;
    let entered = verified.and_then(|account| {
        session::start_and_redirect(auth, &account, None, &back, (req, origin, &mut *res))
    });
    let Err(error) = entered else { return Ok(()) };
    let wait;
    let (status, message) = match &error {
        AuthError::Invalid(_) | AuthError::Malformed(_) => {
            (StatusCode::UNAUTHORIZED, "The user name or the password is wrong.")
        }
        AuthError::Forbidden(_) => {
            (StatusCode::FORBIDDEN, "This account is disabled. An administrator can enable it.")
        }
        AuthError::TooMany(after) => {
            let seconds = after.as_secs().max(1);
            set_retry_after(res, seconds);
            wait = format!("Too many failed attempts. Try again in {seconds} s.");
            (StatusCode::TOO_MANY_REQUESTS, wait.as_str())
        }
        _ => {
            set_retry_after(res, 5);
            let words = "Signing in is not possible right now. Try again in a moment.";
            (StatusCode::SERVICE_UNAVAILABLE, words)
        }
    };
    if status == StatusCode::UNAUTHORIZED {
        // RFC 9110, 15.5.2; browsers ignore a scheme that they do not know.
        let challenge = HeaderValue::from_static("Bearer realm=\"penstock\"");
        res.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    let page = PasswordPage {
        email,
        fault: Some(message),
        has_first_password: auth.accounts.find_with_initial_password().is_some(),
        ..PasswordPage::new(&origin.prefix, back.as_str())
    };
    show_page(res, status, &page);
    Ok(())
}

fn is_form(req: &Request) -> bool {
    let declared = req.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let name = declared.and_then(|text| text.split(';').next()).unwrap_or_default();
    name.trim().eq_ignore_ascii_case(FORM_MEDIA_TYPE)
}

/// Parses the fields of a form (URL Standard, 5.1).
pub(crate) fn parse_form_fields(sent: &[u8]) -> Result<BTreeMap<String, String>, Problem> {
    let malformed =
        || Problem::malformed("the body must be a form in UTF-8 with each field at most once");
    let mut fields = BTreeMap::new();
    for (name, value) in parse_form(sent).map_err(|_| malformed())? {
        if fields.insert(name, value).is_some() {
            return Err(malformed());
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_forms_as_browsers_write_them() {
        let form =
            parse_form_fields(b"email=a%40b.example&password=p+%2B%26%3D%C3%BC&return=").unwrap();
        assert_eq!(form["email"], "a@b.example");
        assert_eq!(form["password"], "p +&=ü");
        assert_eq!(form["return"], "");
        assert!(parse_form_fields(b"").unwrap().is_empty());
        for bad in [&b"a=1&a=2"[..], b"a=%FF", b"\xff=1"] {
            assert!(parse_form_fields(bad).is_err());
        }
    }
}
