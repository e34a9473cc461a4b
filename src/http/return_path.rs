//! The address to return to after signing in.
use super::origin::{Origin, add_prefix};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The maximum number of bytes of a path to return to.
const MAX_PATH_BYTES: usize = 1024;
/// The characters that are escaped in the query of a link.
const QUERY_VALUE: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A path of this gateway with its query, never the address of another site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnPath(String);

impl ReturnPath {
    /// Returns the path that a request names, or `/` if it names none or one that does not lead to this gateway.
    pub fn parse_or_root(named: Option<&str>) -> Self {
        let named = named.filter(|path| is_local(path)).unwrap_or("/");
        Self(named.to_owned())
    }

    /// Returns the path with its query.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the query of a link to the sign-in, empty for `/`.
    pub fn to_query(&self) -> String {
        match self.0.as_str() {
            "/" => String::new(),
            path => format!("?return={}", utf8_percent_encode(path, QUERY_VALUE)),
        }
    }

    /// Returns the path with this prefix.
    pub fn with_prefix(&self, prefix: &str) -> String {
        add_prefix(prefix, &self.0)
    }
}

/// Returns the address of the sign-in page. After the sign-in, the browser returns to `to`, a path with its query.
pub fn sign_in_location(origin: &Origin, to: &str) -> String {
    let back = ReturnPath::parse_or_root(Some(to));
    format!("{}/login{}", origin.prefix, back.to_query())
}

/// Whether a path leads to this gateway, and not to one of its pages for signing in or out. Browsers treat
/// `//host` and `/\host` as another site, and they drop control characters before.
fn is_local(path: &str) -> bool {
    let mut characters = path.chars();
    characters.next() == Some('/')
        && !matches!(characters.next(), Some('/' | '\\'))
        && path.len() <= MAX_PATH_BYTES
        && path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\')
        && !["/login", "/logout", "/signed-out", "/oauth2/"].iter().any(|own| path.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_addresses_of_this_gateway() {
        for path in ["/", "/swagger-ui/", "/api/v1/exports?limit=5&cursor=a%2Fb", "/id/Plant/1#x"] {
            assert_eq!(ReturnPath::parse_or_root(Some(path)).as_str(), path);
        }
        let long = format!("/{}", "a".repeat(MAX_PATH_BYTES));
        for foreign in [
            "",
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "/a\\b",
            "/\t/evil.example",
            "/\n/evil.example",
            "javascript:alert(1)",
            "/ a",
            "/ü",
            "/login?return=/login",
            "/logout",
            "/oauth2/authorization/x",
            &long,
        ] {
            assert_eq!(ReturnPath::parse_or_root(Some(foreign)).as_str(), "/", "{foreign:?}");
        }
        assert_eq!(ReturnPath::parse_or_root(None).as_str(), "/");
    }

    #[test]
    fn adds_the_prefix_of_a_proxy_once() {
        let back = ReturnPath::parse_or_root(Some("/gw/api?x=1"));
        assert_eq!(back.with_prefix(""), "/gw/api?x=1");
        assert_eq!(back.with_prefix("/gw"), "/gw/api?x=1");
        assert_eq!(back.with_prefix("/g"), "/g/gw/api?x=1");
        assert_eq!(back.to_query(), "?return=/gw/api%3Fx%3D1");
        assert_eq!(ReturnPath::parse_or_root(None).to_query(), "");
    }
}
