//! Finds the credential of a request: in a header, or a session in a cookie.
use penstock_auth::AuthError;
use penstock_auth::keys::ApiKeys;
use salvo::Request;
use salvo::http::header::{AUTHORIZATION, COOKIE};

/// A credential in a header, as plant systems and programs send it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderCredential<'a> {
    /// An API key.
    ApiKey(&'a str),
    /// An access token: a value after `Bearer` that is no API key.
    Bearer(&'a str),
}

/// Returns the name of the session cookie. With HTTPS it has a prefix, so that browsers refuse such a cookie
/// from another host of the domain or for another path (RFC 6265bis, 4.1.3.2).
pub fn cookie_name(scheme: &str) -> &'static str {
    if scheme == "https" { "__Host-penstock_session" } else { "penstock_session" }
}

/// Returns the credential in `Authorization` or `Apikey`. Ignores other schemes of `Authorization`, which may be
/// for a proxy.
///
/// # Errors
/// `AuthError::Malformed` if a credential is empty or there is more than one; `AuthError::Invalid` if a key has
/// not the form of this gateway's keys.
pub(super) fn find_header_credential(
    req: &Request,
) -> Result<Option<HeaderCredential<'_>>, AuthError> {
    let (mut found, mut is_foreign) = (None, false);
    let authorization = req.headers().get_all(AUTHORIZATION).iter().map(|value| (true, value));
    let api_key = req.headers().get_all("apikey").iter().map(|value| (false, value));
    for (is_authorization, value) in authorization.chain(api_key) {
        let Ok(text) = value.to_str() else {
            return Err(AuthError::Malformed(
                "a credential may contain only visible ASCII characters".into(),
            ));
        };
        let (scheme, value) = if is_authorization {
            text.trim().split_once(' ').unwrap_or((text.trim(), ""))
        } else {
            ("apikey", text)
        };
        let is_key = scheme.eq_ignore_ascii_case("apikey");
        if !is_key && !scheme.eq_ignore_ascii_case("bearer") {
            continue;
        }
        let value = value.trim();
        if value.is_empty() {
            return Err(AuthError::Malformed("the credential is empty".into()));
        }
        let credential = match (is_key, value.starts_with(ApiKeys::PREFIX)) {
            (_, true) => HeaderCredential::ApiKey(value),
            (false, false) => HeaderCredential::Bearer(value),
            (true, false) => {
                is_foreign = true;
                HeaderCredential::ApiKey(value)
            }
        };
        if found.replace(credential).is_some() {
            return Err(AuthError::Malformed("the request has more than one credential".into()));
        }
    }
    if is_foreign {
        return Err(AuthError::Invalid(format!(
            "this is not an API key of this gateway, which begin with {}",
            ApiKeys::PREFIX
        )));
    }
    Ok(found)
}

/// Returns the id of a session from its cookie.
pub fn session_id<'a>(req: &'a Request, scheme: &str) -> Option<&'a str> {
    let name = cookie_name(scheme);
    let lines = req.headers().get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| known.trim() == name).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(headers: &[(&'static str, &str)]) -> Request {
        let mut req = Request::new();
        for (name, value) in headers {
            req.headers_mut().append(*name, value.parse().unwrap());
        }
        req
    }

    #[test]
    fn finds_keys_and_tokens_in_every_header() {
        let key = "penstock_abc";
        for headers in [
            [("authorization", "Bearer penstock_abc")],
            [("authorization", "bearer  penstock_abc ")],
            [("authorization", "ApiKey penstock_abc")],
            [("apikey", "penstock_abc")],
        ] {
            assert!(
                find_header_credential(&with(&headers)) == Ok(Some(HeaderCredential::ApiKey(key))),
                "{headers:?}"
            );
        }
        let token = with(&[("authorization", "Bearer a.b.c")]);
        assert!(find_header_credential(&token) == Ok(Some(HeaderCredential::Bearer("a.b.c"))));
        for headers in [&[][..], &[("authorization", "Basic YTpi")], &[("cookie", "a=b")]] {
            assert!(find_header_credential(&with(headers)) == Ok(None), "{headers:?}");
        }
    }

    #[test]
    fn rejects_several_and_empty_credentials() {
        for headers in [
            &[("authorization", "Bearer a"), ("authorization", "Bearer a")][..],
            &[("authorization", "Bearer a"), ("apikey", "penstock_a")],
            &[("authorization", "Bearer a"), ("apikey", "a")],
            &[("authorization", "Bearer")],
            &[("authorization", "Bearer ")],
            &[("apikey", "")],
        ] {
            assert!(
                matches!(find_header_credential(&with(headers)), Err(AuthError::Malformed(_))),
                "{headers:?}"
            );
        }
        assert!(matches!(
            find_header_credential(&with(&[("apikey", "abc")])),
            Err(AuthError::Invalid(_))
        ));
    }

    #[test]
    fn finds_a_session_among_other_cookies() {
        let req = with(&[("cookie", "a=1; penstock_session=x=y"), ("cookie", "b=2")]);
        assert_eq!(session_id(&req, "http"), Some("x=y"));
        assert_eq!(session_id(&req, "https"), None);
        let req = with(&[("cookie", "__Host-penstock_session=z")]);
        assert_eq!(session_id(&req, "https"), Some("z"));
    }
}
