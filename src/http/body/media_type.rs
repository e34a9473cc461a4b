//! The media types of bodies.
use crate::encoding::Encoding;
use crate::problem::Problem;
use salvo::Request;
use salvo::http::StatusCode;
use salvo::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};

/// A media type that a route accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    /// `application/json`
    Json,
    /// `application/x-ndjson`
    NdJson,
    /// `text/csv`, in any charset.
    Csv,
}

/// Returns which of the accepted media types the request declares. There is no default, so that no form in a
/// browser can be sent to a route of the API.
pub fn check_media_type(req: &Request, taken: &[MediaType]) -> Result<MediaType, Problem> {
    let names: Vec<_> = taken.iter().map(|taken| taken.name()).collect();
    let found = find_media_type(req, &names)?;
    let declared = taken.iter().find(|taken| taken.name() == found);
    declared.copied().ok_or_else(|| unsupported_problem(req, &names))
}

/// Returns which of these media types the request declares, as [`check_media_type`].
pub fn find_media_type(req: &Request, taken: &[&'static str]) -> Result<&'static str, Problem> {
    check_encoding(req)?;
    let declared = req.headers().get(CONTENT_TYPE);
    let known = declared.and_then(|value| value.to_str().ok()).and_then(parse_media_type);
    let known = known.filter(|(name, charset)| name == MediaType::Csv.name() || charset.is_none());
    let found = known.and_then(|(known, _)| taken.iter().find(|taken| **taken == known));
    found.copied().ok_or_else(|| unsupported_problem(req, taken))
}

/// Checks that the body is in no coding. `encoding::decode` has taken the header of those that it decodes.
pub(super) fn check_encoding(req: &Request) -> Result<(), Problem> {
    let mut codings = req.headers().get_all(CONTENT_ENCODING).iter();
    match codings.find(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        None => Ok(()),
        Some(coding) => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!(
                "Content-Encoding is {}; with credentials a body may be in one of {}, otherwise send it uncompressed",
                quote_header_value(coding),
                Encoding::NAMES
            ),
        )
        // RFC 9110, 15.5.16.
        .with_header(ACCEPT_ENCODING, HeaderValue::from_static(Encoding::NAMES))),
    }
}

/// Returns the charset that the request declares; `None` for UTF-8, the default.
pub fn find_charset(req: &Request) -> Option<String> {
    let declared = req.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    parse_media_type(declared)?.1
}

fn unsupported_problem(req: &Request, taken: &[&str]) -> Problem {
    let declared = req.headers().get(CONTENT_TYPE);
    let found = declared.map_or_else(|| "missing".to_owned(), quote_header_value);
    Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        format!("Content-Type is {found}; it must be {} (in UTF-8)", taken.join(" or ")),
    )
}

impl MediaType {
    fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::NdJson => "application/x-ndjson",
            Self::Csv => "text/csv",
        }
    }
}

fn quote_header_value(value: &HeaderValue) -> String {
    format!("{:?}", String::from_utf8_lossy(value.as_bytes()))
}

/// Returns the media type in lower case, without its parameters, and the charset unless it is UTF-8. `None` if it is
/// malformed.
fn parse_media_type(text: &str) -> Option<(String, Option<String>)> {
    let mut parts = text.split(';').map(str::trim);
    let media_type = parts.next()?.to_ascii_lowercase();
    let mut charset = None;
    for parameter in parts.filter(|part| !part.is_empty()) {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        if name.trim().eq_ignore_ascii_case("charset") && !value.eq_ignore_ascii_case("utf-8") {
            charset = Some(value.to_owned());
        }
    }
    Some((media_type, charset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_media_types_with_parameters() {
        for json in ["application/json", "Application/JSON; charset=UTF-8", "application/json;"] {
            let expected = ("application/json".to_owned(), None);
            assert_eq!(parse_media_type(json), Some(expected), "{json}");
        }
        let latin = parse_media_type("text/csv; charset=\"latin1\"").unwrap();
        assert_eq!(latin, ("text/csv".to_owned(), Some("latin1".to_owned())));
        assert_eq!(parse_media_type("application/json; x"), None);
    }
}
