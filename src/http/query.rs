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
pub(super) const MAX_LIMIT: usize = 1000;

/// The query parameters of one request. An unknown or repeated parameter is an error, so that a request with a
/// misspelt `mode` does not become an `ADD`.
#[derive(Debug)]
pub struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    /// Reads the parameters, which must be among `known`.
    ///
    /// # Errors
    /// 400 for an unknown or repeated parameter.
    pub fn read(req: &Request, known: &[&str]) -> Result<Self, Problem> {
        let known: Vec<_> = known.iter().map(|name| (*name, false)).collect();
        Self::read_known(req, &known)
    }

    /// Reads the parameters as [`Self::read`]. Beside its name, `known` has whether a parameter may be repeated. A name that
    /// ends with a dot stands for all that begin with it.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_known(req: &Request, known: &[(&str, bool)]) -> Result<Self, Problem> {
        let mut parameters = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in req.queries().flat_iter() {
            let is_meant =
                |known: &str| known == name || known.ends_with('.') && name.starts_with(known);
            let Some((_, is_list)) = known.iter().find(|(known, _)| is_meant(known)) else {
                return Err(unknown_parameter(name, known));
            };
            let values = parameters.entry(name.clone()).or_default();
            if !is_list && !values.is_empty() {
                return Err(Problem::malformed(format!(
                    "the query parameter {name:?} is given more than once"
                )));
            }
            values.push(value.clone());
        }
        Ok(Self(parameters))
    }

    /// Removes empty parameters, which a form sends for its empty fields.
    #[must_use]
    pub fn without_empty(self) -> Self {
        let is_given = |values: &Vec<String>| values.iter().any(|value| !value.is_empty());
        Self(self.0.into_iter().filter(|(_, values)| is_given(values)).collect())
    }

    /// Returns all parameters, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter().flat_map(|(name, values)| values.iter().map(move |v| (name, v)));
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns one parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_all(name).first().map(String::as_str)
    }

    /// Returns all values of a parameter that may be repeated.
    pub(super) fn get_all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the parameters whose names begin with `prefix`, each with its values, ordered by name.
    pub(super) fn iter_below(&self, prefix: &str) -> impl Iterator<Item = (&str, &[String])> {
        let all = self.0.iter().map(|(name, values)| (name.as_str(), values.as_slice()));
        all.filter(move |(name, _)| name.starts_with(prefix))
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
    ///
    /// # Errors
    /// 400 if it is not the cursor of such a list.
    pub fn read_cursor<C: CursorKey>(&self) -> Result<Option<C::Key>, Problem> {
        self.get("cursor").map(parse_cursor::<C>).transpose()
    }
}

/// Returns the key in a cursor: that of the last item of the previous page.
///
/// # Errors
/// 400 if it is not the cursor of such a list.
pub fn parse_cursor<C: CursorKey>(text: &str) -> Result<C::Key, Problem> {
    let key = decode_cursor(text).and_then(|[key]| key).filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| {
        Problem::malformed(
            "the query parameter cursor is not the \"next\" of a page; \
             leave it out to start with the first page",
        )
    })?;
    C::parse(key).ok_or_else(|| {
        Problem::malformed(
            "the query parameter cursor is not from this list; leave it out to start with the first page",
        )
    })
}

/// The problem of a parameter that the route does not have.
fn unknown_parameter(name: &str, known: &[(&str, bool)]) -> Problem {
    let describe =
        |name: &&str| if name.ends_with('.') { format!("{name}…") } else { (*name).to_owned() };
    let known: Vec<_> = known.iter().map(|(name, _)| describe(name)).collect();
    let known = match known.as_slice() {
        [] => "it has none".to_owned(),
        known => format!("it has {}", known.join(", ")),
    };
    Problem::malformed(format!("this route has no query parameter {name:?}; {known}"))
}

/// What the `cursor` of a list contains: the key of the last item of a page.
pub trait CursorKey: Send + Sync + 'static {
    /// The type of the key.
    type Key: Send + std::fmt::Debug;

    /// Reads a key. `None` if it is not one of such a list.
    fn parse(key: String) -> Option<Self::Key>;
}

/// The cursor of a list whose keys are any text.
#[derive(Debug)]
pub struct TextCursor;

impl CursorKey for TextCursor {
    type Key = String;

    fn parse(key: String) -> Option<String> {
        Some(key)
    }
}

/// The cursor of a list whose keys are UUIDs.
#[derive(Debug)]
pub struct UuidCursor;

impl CursorKey for UuidCursor {
    type Key = String;

    fn parse(key: String) -> Option<String> {
        uuid::Uuid::parse_str(&key).is_ok().then_some(key)
    }
}

/// The cursor of a list whose keys are numbers.
#[derive(Debug)]
pub struct NumberCursor;

impl CursorKey for NumberCursor {
    type Key = u64;

    fn parse(key: String) -> Option<u64> {
        key.parse().ok()
    }
}

/// The cursor of a list whose keys are two numbers, as in `3-1`.
#[derive(Debug)]
pub struct NumbersCursor;

impl CursorKey for NumbersCursor {
    type Key = (u64, u32);

    fn parse(key: String) -> Option<(u64, u32)> {
        let (one, other) = key.split_once('-')?;
        Some((one.parse().ok()?, other.parse().ok()?))
    }
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

/// Returns the cursor that continues after this key.
pub fn cursor_after(key: &str) -> String {
    encode_cursor(&[Some(key)])
}
