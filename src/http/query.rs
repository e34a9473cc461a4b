//! Query parameters, pages and cursors.
use super::problem::Problem;
use penstock_base::cursor::{decode_cursor, encode_cursor};
use percent_encoding::percent_decode_str;
use salvo::Request;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The default number of items of a page.
const DEFAULT_LIMIT: usize = 100;
/// The maximum number of items of a page.
const MAX_LIMIT: usize = 1000;

/// The query parameters of one request. An unknown or repeated parameter is an error, so that a request with a
/// misspelt `mode` does not become an `ADD`.
#[derive(Debug)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads the parameters, which must be among `known`.
    pub fn read(req: &Request, known: &[&str]) -> Result<Self, Problem> {
        let mut parameters = BTreeMap::new();
        for (name, value) in req.queries().flat_iter() {
            insert_parameter(&mut parameters, known, name, value)?;
        }
        Ok(Self(parameters))
    }

    /// Reads the parameters as [`Self::read`]. The parameter `list` may be repeated; its values are returned separately.
    pub fn read_with_list(
        req: &Request,
        known: &[&str],
        list: &str,
    ) -> Result<(Self, Vec<String>), Problem> {
        let mut values = Vec::new();
        let mut others = BTreeMap::new();
        for (name, value) in req.queries().flat_iter() {
            if name == list {
                values.push(value.clone());
            } else {
                insert_parameter(&mut others, known, name, value)?;
            }
        }
        Ok((Self(others), values))
    }

    /// Removes empty parameters, which a form sends for its empty fields.
    #[must_use]
    pub fn without_empty(self) -> Self {
        Self(self.0.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// Returns all parameters, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns one parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns a parameter that is `true` or `false` (the default).
    pub fn read_flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Problem::malformed(format!(
                "the query parameter {name} is {other:?}; it must be true or false"
            ))),
        }
    }

    /// Returns `limit`: the maximum number of items of the page.
    pub fn read_limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.get("limit") else { return Ok(DEFAULT_LIMIT) };
        match text.parse() {
            Ok(limit @ 1..=MAX_LIMIT) if text.bytes().all(|b| b.is_ascii_digit()) => Ok(limit),
            _ => Err(Problem::malformed(format!(
                "the query parameter limit is {text:?}; it must be a whole number from 1 to {MAX_LIMIT}"
            ))),
        }
    }

    /// Returns `cursor`: the key of the last item of the previous page.
    pub fn read_cursor(&self) -> Result<Option<String>, Problem> {
        let Some(text) = self.get("cursor") else { return Ok(None) };
        let key = decode_cursor(text).and_then(|[key]| key).filter(|key| !key.is_empty());
        key.map(Some).ok_or_else(|| {
            Problem::malformed(
                "the query parameter cursor is not the \"next\" of a page; \
                 leave it out to start with the first page",
            )
        })
    }

    /// Returns `cursor` of a list whose keys are UUIDs.
    pub fn read_uuid_cursor(&self) -> Result<Option<String>, Problem> {
        let cursor = self.read_cursor()?;
        match &cursor {
            Some(key) if uuid::Uuid::parse_str(key).is_err() => Err(foreign_cursor_problem()),
            _ => Ok(cursor),
        }
    }

    /// Returns `cursor` of a list whose keys are two numbers, as in `3-1`.
    pub fn read_numbers_cursor(&self) -> Result<Option<(u64, u32)>, Problem> {
        let Some(key) = self.read_cursor()? else { return Ok(None) };
        let numbers = key
            .split_once('-')
            .and_then(|(one, other)| Some((one.parse().ok()?, other.parse().ok()?)));
        numbers.map(Some).ok_or_else(foreign_cursor_problem)
    }

    /// Returns `cursor` of a list whose keys are numbers.
    pub fn read_number_cursor(&self) -> Result<Option<u64>, Problem> {
        let cursor = self.read_cursor()?.map(|key| key.parse());
        cursor.transpose().map_err(|_| foreign_cursor_problem())
    }
}

/// Adds a parameter, which must be among `known` and not be there yet.
fn insert_parameter(
    parameters: &mut BTreeMap<String, String>,
    known: &[&str],
    name: &str,
    value: &str,
) -> Result<(), Problem> {
    if !known.contains(&name) {
        let known = match known {
            [] => "it has none".to_owned(),
            known => format!("it has {}", known.join(", ")),
        };
        return Err(Problem::malformed(format!(
            "this route has no query parameter {name:?}; {known}"
        )));
    }
    if parameters.insert(name.to_owned(), value.to_owned()).is_some() {
        return Err(Problem::malformed(format!(
            "the query parameter {name:?} is given more than once"
        )));
    }
    Ok(())
}

/// Parses `application/x-www-form-urlencoded`, in the order of the text. A name may occur several times.
///
/// # Errors
/// 400 if it is not UTF-8.
pub fn parse_form(text: &[u8]) -> Result<Vec<(String, String)>, Problem> {
    let malformed = || Problem::malformed("the form is not percent-encoded UTF-8");
    let text = std::str::from_utf8(text).map_err(|_| malformed())?;
    let decode = |part: &str| {
        let part = part.replace('+', " ");
        let decoded = percent_decode_str(&part).decode_utf8();
        decoded.map(Cow::into_owned).map_err(|_| malformed())
    };
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

fn foreign_cursor_problem() -> Problem {
    Problem::malformed(
        "the query parameter cursor is not from this list; leave it out to start with the first page",
    )
}

/// Returns the cursor that continues after this key.
pub fn cursor_after(key: &str) -> String {
    encode_cursor(&[Some(key)])
}

/// Truncates to `limit` items. Returns the cursor of the next page if there were more.
pub fn truncate_page<T>(
    items: &mut Vec<T>,
    limit: usize,
    key: impl Fn(&T) -> &str,
) -> Option<String> {
    if items.len() <= limit {
        return None;
    }
    items.truncate(limit);
    items.last().map(|item| cursor_after(key(item)))
}
