//! The links to further pages of a list.
use super::frame::Frame;
use penstock_http::path::encode_segment;
use penstock_http::query::Query;
use std::fmt::Write as _;

/// The addresses of the first and the next page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pager {
    pub(super) first: Option<String>,
    pub(super) next: Option<String>,
}

impl Pager {
    /// Creates the links for the list at `path` with the parameters of this query. `next` is the cursor of the page after the
    /// current one.
    pub(super) fn for_query(frame: &Frame, path: &str, query: &Query, next: Option<&str>) -> Self {
        let filter = query.iter().filter(|(name, _)| *name != "cursor");
        let parameters: Vec<_> = filter.map(|(name, value)| (name, Some(value))).collect();
        Self::new(frame, path, &parameters, query.get("cursor").is_none(), next)
    }

    /// Creates the links for the list at `path` (without the prefix) with these query parameters. `next` is
    /// the cursor of the page after the current one.
    pub(super) fn new(
        frame: &Frame,
        path: &str,
        parameters: &[(&str, Option<&str>)],
        is_first: bool,
        next: Option<&str>,
    ) -> Self {
        let address = |cursor: Option<&str>| {
            let mut address = format!("{}{path}", frame.prefix);
            let given = parameters.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
            let all = given.chain(cursor.map(|cursor| ("cursor", cursor)));
            for (at, (name, value)) in all.enumerate() {
                let before = if at == 0 { '?' } else { '&' };
                // Writing into a string cannot fail.
                let _ =
                    write!(address, "{before}{}={}", encode_segment(name), encode_segment(value));
            }
            address
        };
        Self {
            first: (!is_first).then(|| address(None)),
            next: next.map(|cursor| address(Some(cursor))),
        }
    }
}
