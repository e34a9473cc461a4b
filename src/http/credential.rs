//! What a request shows to say who it is.
use penstock_auth::Refusal;
use penstock_auth::keys::Keys;
use salvo::Request;
use salvo::http::header::{AUTHORIZATION, COOKIE};

/// A credential in a header, as plant systems and programs send it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown<'a> {
    /// An API key.
    ApiKey(&'a str),
    /// Anything else after `Bearer`: an access token.
    Bearer(&'a str),
}

/// The name of a session's cookie. With HTTPS the prefix makes browsers refuse one that another name or
/// path of the domain set (RFC 6265bis, 4.1.3.2).
pub(super) fn cookie_name(scheme: &str) -> &'static str {
    if scheme == "https" { "__Host-penstock_session" } else { "penstock_session" }
}

/// The credential in `Authorization` or `Apikey`. Other schemes of `Authorization` are somebody else's,
/// such as a proxy's.
///
/// # Errors
/// `Refusal::Malformed` for more than one, or an empty one; `Refusal::Invalid` for a key that is none.
pub(super) fn shown(req: &Request) -> Result<Option<Shown<'_>>, Refusal> {
    let (mut found, mut is_foreign) = (None, false);
    let authorization = req.headers().get_all(AUTHORIZATION).iter().map(|value| (true, value));
    let api_key = req.headers().get_all("apikey").iter().map(|value| (false, value));
    for (is_authorization, value) in authorization.chain(api_key) {
        let Ok(text) = value.to_str() else {
            return Err(Refusal::Malformed("a credential holds more than visible ASCII".into()));
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
            return Err(Refusal::Malformed("the credential is empty".into()));
        }
        let credential = match (is_key, value.starts_with(Keys::PREFIX)) {
            (_, true) => Shown::ApiKey(value),
            (false, false) => Shown::Bearer(value),
            (true, false) => {
                is_foreign = true;
                Shown::ApiKey(value)
            }
        };
        if found.replace(credential).is_some() {
            return Err(Refusal::Malformed("the request has more than one credential".into()));
        }
    }
    if is_foreign {
        return Err(Refusal::Invalid(format!(
            "it is no API key of this gateway: those begin with {}",
            Keys::PREFIX
        )));
    }
    Ok(found)
}

/// The id of a session, from its cookie.
pub(super) fn session<'a>(req: &'a Request, scheme: &str) -> Option<&'a str> {
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
    fn a_key_or_a_token_is_found_wherever_it_may_stand() {
        let key = "penstock_abc";
        for headers in [
            [("authorization", "Bearer penstock_abc")],
            [("authorization", "bearer  penstock_abc ")],
            [("authorization", "ApiKey penstock_abc")],
            [("apikey", "penstock_abc")],
        ] {
            assert!(shown(&with(&headers)) == Ok(Some(Shown::ApiKey(key))), "{headers:?}");
        }
        let token = with(&[("authorization", "Bearer a.b.c")]);
        assert!(shown(&token) == Ok(Some(Shown::Bearer("a.b.c"))));
        for headers in [&[][..], &[("authorization", "Basic YTpi")], &[("cookie", "a=b")]] {
            assert!(shown(&with(headers)) == Ok(None), "{headers:?}");
        }
    }

    #[test]
    fn two_credentials_and_empty_ones_are_malformed() {
        for headers in [
            &[("authorization", "Bearer a"), ("authorization", "Bearer a")][..],
            &[("authorization", "Bearer a"), ("apikey", "penstock_a")],
            &[("authorization", "Bearer a"), ("apikey", "a")],
            &[("authorization", "Bearer")],
            &[("authorization", "Bearer ")],
            &[("apikey", "")],
        ] {
            assert!(matches!(shown(&with(headers)), Err(Refusal::Malformed(_))), "{headers:?}");
        }
        assert!(matches!(shown(&with(&[("apikey", "abc")])), Err(Refusal::Invalid(_))));
    }

    #[test]
    fn a_session_is_found_among_other_cookies() {
        let req = with(&[("cookie", "a=1; penstock_session=x=y"), ("cookie", "b=2")]);
        assert_eq!(session(&req, "http"), Some("x=y"));
        assert_eq!(session(&req, "https"), None);
        let req = with(&[("cookie", "__Host-penstock_session=z")]);
        assert_eq!(session(&req, "https"), Some("z"));
    }
}
