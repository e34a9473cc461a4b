//! Query parameters, pages and cursors.
use super::problem::Problem;
use super::reply::{Reply, ReplyResult};
use salvo::Request;
use serde::Serialize;
use std::collections::BTreeMap;

/// The items of a page by default.
const DEFAULT_LIMIT: usize = 100;
/// The maximum items of a page.
const MAX_LIMIT: usize = 1000;

/// The query parameters of one request. An unknown or repeated parameter is refused: a misspelt `mode` must
/// not become an `ADD`.
#[derive(Debug)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads the parameters, which must be among `known`.
    pub(super) fn read(req: &Request, known: &[&str]) -> Result<Self, Problem> {
        let mut parameters = BTreeMap::new();
        for (name, value) in req.queries().flat_iter() {
            if !known.contains(&name.as_str()) {
                let known = match known {
                    [] => "it has none".to_owned(),
                    known => format!("it has {}", known.join(", ")),
                };
                return Err(Problem::malformed(format!(
                    "this route has no query parameter {name:?}; {known}"
                )));
            }
            if parameters.insert(name.clone(), value.clone()).is_some() {
                return Err(Problem::malformed(format!(
                    "the query parameter {name:?} is given more than once"
                )));
            }
        }
        Ok(Self(parameters))
    }

    /// Removes empty parameters, which a form sends for its empty fields.
    pub(super) fn without_empty(self) -> Self {
        Self(self.0.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// Returns one parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns a parameter that is `true` or `false` (the default).
    pub(super) fn read_flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Problem::malformed(format!(
                "the query parameter {name} is {other:?}; it must be true or false"
            ))),
        }
    }

    /// Returns `limit`: the maximum items of a page.
    pub(super) fn read_limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.get("limit") else { return Ok(DEFAULT_LIMIT) };
        match text.parse() {
            Ok(limit @ 1..=MAX_LIMIT) if text.bytes().all(|b| b.is_ascii_digit()) => Ok(limit),
            _ => Err(Problem::malformed(format!(
                "the query parameter limit is {text:?}; it must be a whole number from 1 to {MAX_LIMIT}"
            ))),
        }
    }

    /// Returns `cursor`: the key of the last item of the previous page.
    pub(super) fn read_cursor(&self) -> Result<Option<String>, Problem> {
        let Some(text) = self.get("cursor") else { return Ok(None) };
        decode_cursor(text).map(Some).ok_or_else(|| {
            Problem::malformed(
                "the query parameter cursor is not the \"next\" of a page; \
                 leave it out to start with the first page",
            )
        })
    }

    /// Returns `cursor` where keys are UUIDs.
    pub(super) fn read_uuid_cursor(&self) -> Result<Option<String>, Problem> {
        let cursor = self.read_cursor()?;
        match &cursor {
            Some(key) if uuid::Uuid::parse_str(key).is_err() => Err(Problem::malformed(
                "the query parameter cursor is not from this list; leave it out to start with the first page",
            )),
            _ => Ok(cursor),
        }
    }
}

/// Returns the cursor that continues after this key: its UTF-8 bytes in hex.
pub(super) fn encode_cursor(key: &str) -> String {
    use std::fmt::Write;
    key.bytes().fold(String::with_capacity(key.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn decode_cursor(text: &str) -> Option<String> {
    let digits: Vec<u8> = text
        .bytes()
        .map(|b| match b {
            b'0'..=b'9' => Some(b - b'0'),
            b'a'..=b'f' => Some(b - b'a' + 10),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let bytes = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    String::from_utf8(bytes).ok().filter(|key| !key.is_empty())
}

/// Returns one page of a list. `items` has one item more than `limit` if there are more pages; `key` returns
/// the key after which the next page starts.
pub(super) fn page_reply<T: Serialize>(
    mut items: Vec<T>,
    limit: usize,
    key: impl Fn(&T) -> &str,
) -> ReplyResult {
    let next = truncate_page(&mut items, limit, key);
    Reply::json(&Page { items, next })
}

/// Truncates to `limit` items. Returns the cursor of the next page if there were more.
pub(super) fn truncate_page<T>(
    items: &mut Vec<T>,
    limit: usize,
    key: impl Fn(&T) -> &str,
) -> Option<String> {
    if items.len() <= limit {
        return None;
    }
    items.truncate(limit);
    items.last().map(|item| encode_cursor(key(item)))
}

#[derive(Serialize)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_decode_to_their_key() {
        for key in ["http://example.org/ü?a=1", "0"] {
            assert_eq!(decode_cursor(&encode_cursor(key)).as_deref(), Some(key));
        }
        for bad in ["", "0", "zz", "ff", "3G"] {
            assert_eq!(decode_cursor(bad), None, "{bad}");
        }
    }
}
