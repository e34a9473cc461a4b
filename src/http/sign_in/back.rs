//! Where a browser goes after signing in.
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters of a longer address are not worth keeping.
const LONGEST: usize = 1024;
const QUERY_VALUE: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A path of this gateway with its query, never the address of another site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Back(String);

impl Back {
    /// The one that a request names, or the first page.
    pub(super) fn read(named: Option<&str>) -> Self {
        let named = named.filter(|path| is_local(path)).unwrap_or("/");
        Self(named.to_owned())
    }

    /// As it is.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// What a link to a sign-in carries, empty for the first page.
    pub(super) fn query(&self) -> String {
        match self.0.as_str() {
            "/" => String::new(),
            path => format!("?return={}", utf8_percent_encode(path, QUERY_VALUE)),
        }
    }

    /// The address under this prefix, which a proxy may have passed on or taken away.
    pub(super) fn under(&self, prefix: &str) -> String {
        let has_prefix = self
            .0
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        if has_prefix { self.0.clone() } else { format!("{prefix}{}", self.0) }
    }
}

/// Browsers take `//host` and `/\host` for another site, and drop control characters before they look.
fn is_local(path: &str) -> bool {
    let mut characters = path.chars();
    characters.next() == Some('/')
        && !matches!(characters.next(), Some('/' | '\\'))
        && path.len() <= LONGEST
        && path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\')
        && !["/login", "/logout", "/signed-out", "/oauth2/"].iter().any(|own| path.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_gateway_are_gone_back_to() {
        for path in ["/", "/swagger-ui/", "/api/v1/exports?limit=5&cursor=a%2Fb", "/id/Plant/1#x"] {
            assert_eq!(Back::read(Some(path)).as_str(), path);
        }
        let long = format!("/{}", "a".repeat(LONGEST));
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
            assert_eq!(Back::read(Some(foreign)).as_str(), "/", "{foreign:?}");
        }
        assert_eq!(Back::read(None).as_str(), "/");
    }

    #[test]
    fn the_prefix_of_a_proxy_stands_before_it_once() {
        let back = Back::read(Some("/gw/api?x=1"));
        assert_eq!(back.under(""), "/gw/api?x=1");
        assert_eq!(back.under("/gw"), "/gw/api?x=1");
        assert_eq!(back.under("/g"), "/g/gw/api?x=1");
        assert_eq!(back.query(), "?return=/gw/api%3Fx%3D1");
        assert_eq!(Back::read(None).query(), "");
    }
}
