//! The address of the page: where a view begins, which parameters there are, and how they are read and written.
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, parse_form};
use salvo::Request;

/// The field of a form with the parameters of its page. They are not fields of their own, because browsers replace the line
/// breaks in these.
pub(super) const ADDRESS: &str = "address";
/// The offset of the days that a form narrows the page to.
pub(super) const OFFSET: &str = "offset";
/// What the form that saves a view had, if it was not saved: the name, and whether all see it.
pub(super) const UNSAVED_NAME: &str = "unsavedName";
pub(super) const UNSAVED_SHARED: &str = "unsavedShared";
/// What the name of the parameter of a filter begins with.
const FILTER_PREFIX: &str = "filter.";
/// The parameters of a state besides the filters, and whether each may be repeated.
const PARAMETERS: [(&str, bool); 16] = [
    (FILTER_PREFIX, true),
    ("view", false),
    ("orderBy", false),
    ("columns", true),
    ("time", false),
    ("number", false),
    ("lines", false),
    ("show", false),
    // What forms send.
    (ADDRESS, false),
    ("from", false),
    ("to", false),
    (OFFSET, false),
    (UNSAVED_NAME, false),
    (UNSAVED_SHARED, false),
    // The order in addresses of earlier versions.
    ("sort", false),
    ("cursor", false),
];
/// The parameters of the form that adds a filter. In addresses of earlier versions, there are up to five filters.
pub(super) const FILTER_NAMES: [[&str; 3]; 5] = [
    ["field", "test", "text"],
    ["field2", "test2", "text2"],
    ["field3", "test3", "text3"],
    ["field4", "test4", "text4"],
    ["field5", "test5", "text5"],
];

/// A parameter of an address, and its value.
pub(super) type Pair = (String, String);

/// Returns the path of the list that a view begins, without the prefix.
pub(in crate::admin) fn view_path(business_object: &str, view: &str) -> String {
    format!("/admin/objects/{}?view={}", encode_segment(business_object), encode_segment(view))
}

/// Reads the parameters of a page or of a part of it.
///
/// # Errors
/// 400 for an unknown or repeated parameter.
pub(super) fn read_pairs(req: &Request) -> Result<Vec<Pair>, Problem> {
    let legacy = FILTER_NAMES.into_iter().flatten().map(|name| (name, false));
    let known: Vec<_> = PARAMETERS.into_iter().chain(legacy).collect();
    let query = Query::read_known(req, &known)?;
    let mut pairs = parse_form(query.get(ADDRESS).unwrap_or_default().as_bytes())?;
    let others = query.iter().filter(|(name, _)| *name != ADDRESS);
    pairs.extend(others.map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok(pairs)
}

/// Returns the first value of a parameter, unless it is empty.
pub(super) fn find_value<'p>(pairs: &'p [Pair], name: &str) -> Option<&'p str> {
    find_given(pairs, name).filter(|value| !value.is_empty())
}

/// Returns the first value of a parameter, which may be empty.
pub(super) fn find_given<'p>(pairs: &'p [Pair], name: &str) -> Option<&'p str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Returns parameters as a query, with a `?` before it; empty without one.
pub(super) fn write_query(pairs: &[Pair]) -> String {
    let query = write_parameters(pairs);
    if query.is_empty() { query } else { format!("?{query}") }
}

/// Returns parameters as a text that [`parse_form`] reads.
pub(super) fn write_parameters(pairs: &[Pair]) -> String {
    let texts = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encode_segment(name), encode_segment(value)));
    texts.collect::<Vec<_>>().join("&")
}
