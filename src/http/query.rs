//! Query parameters, pages and cursors.
use super::problem::Problem;
use super::reply::{Outcome, Reply};
use salvo::Request;
use serde::Serialize;
use std::collections::BTreeMap;

/// Items of one page when the request does not say.
const DEFAULT_LIMIT: usize = 100;
/// Items of one page at most.
const MAX_LIMIT: usize = 1000;

/// The query parameters of one request. One that the route does not know, or that is given twice, is
/// refused: a misspelt `mode` must not become an `ADD`.
#[derive(Debug)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads the parameters, which must be among `known`.
    pub(super) fn read(req: &Request, known: &[&str]) -> Result<Self, Problem> {
        let mut parameters = BTreeMap::new();
        for (name, value) in req.queries().flat_iter() {
            if !known.contains(&name.as_str()) {
                let known = match known {
                    [] => "it takes none".to_owned(),
                    known => format!("it takes {}", known.join(", ")),
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

    /// Those that hold something: a form sends its empty fields, too.
    pub(super) fn filled(self) -> Self {
        Self(self.0.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// One parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A parameter that is `true` or `false` (the default).
    pub(super) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Problem::malformed(format!(
                "the query parameter {name} is {other:?}; it must be true or false"
            ))),
        }
    }

    /// `limit`: how many items a page holds at most.
    pub(super) fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.get("limit") else { return Ok(DEFAULT_LIMIT) };
        match text.parse() {
            Ok(limit @ 1..=MAX_LIMIT) if text.bytes().all(|b| b.is_ascii_digit()) => Ok(limit),
            _ => Err(Problem::malformed(format!(
                "the query parameter limit is {text:?}; it must be a whole number from 1 to {MAX_LIMIT}"
            ))),
        }
    }

    /// `cursor`: the key of the last item of the page before.
    pub(super) fn cursor(&self) -> Result<Option<String>, Problem> {
        let Some(text) = self.get("cursor") else { return Ok(None) };
        decode(text).map(Some).ok_or_else(|| {
            Problem::malformed(
                "the query parameter cursor is none that a page's \"next\" has given; \
                 leave it out to begin again",
            )
        })
    }

    /// `cursor`, where keys are UUIDs.
    pub(super) fn uuid_cursor(&self) -> Result<Option<String>, Problem> {
        let cursor = self.cursor()?;
        match &cursor {
            Some(key) if uuid::Uuid::parse_str(key).is_err() => {
                Err(Problem::malformed("the query parameter cursor is none of this list's"))
            }
            _ => Ok(cursor),
        }
    }
}

/// The cursor that goes on after this key: its UTF-8 bytes in hex.
pub(super) fn cursor(key: &str) -> String {
    use std::fmt::Write;
    key.bytes().fold(String::with_capacity(key.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn decode(text: &str) -> Option<String> {
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

/// A list's answer. `items` holds one item more than `limit` when there are more; `key` says what the
/// next page goes on after.
pub(super) fn page<T: Serialize>(
    mut items: Vec<T>,
    limit: usize,
    key: impl Fn(&T) -> &str,
) -> Outcome {
    let next = cut(&mut items, limit, key);
    Reply::json(&Page { items, next })
}

/// Leaves `limit` items; the cursor of the next page when there were more.
pub(super) fn cut<T>(items: &mut Vec<T>, limit: usize, key: impl Fn(&T) -> &str) -> Option<String> {
    if items.len() <= limit {
        return None;
    }
    items.truncate(limit);
    items.last().map(|item| cursor(key(item)))
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
    fn a_cursor_comes_back_as_the_key() {
        for key in ["http://example.org/ü?a=1", "0"] {
            assert_eq!(decode(&cursor(key)).as_deref(), Some(key));
        }
        for bad in ["", "0", "zz", "ff", "3G"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
