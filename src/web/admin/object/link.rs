//! How pages name an object: the address of its page, its label, and the values of tables and lists, which may name one.
use crate::admin::frame::Frame;
use crate::admin::words::shorten_text;
use penstock_http::path::encode_segment;
use penstock_service::objects::IriNames;
use std::collections::HashMap;

/// Returns the address of an object's page.
pub(in crate::admin) fn object_link(frame: &Frame, uri: &str) -> String {
    format!("{}{}", frame.prefix, object_path(uri))
}

/// Returns the path of the page of an object, without the prefix.
pub(in crate::admin) fn object_path(uri: &str) -> String {
    format!("/admin/object?uri={}", encode_segment(uri))
}

/// Returns the label of an object for a list; `None` if it has none, or if that is its URI.
pub(in crate::admin) fn find_distinct_label(
    labels: &HashMap<String, String>,
    uri: &str,
) -> Option<String> {
    labels.get(uri).filter(|label| *label != uri).map(|label| shorten_text(label))
}

/// A value in a table or a list.
pub(in crate::admin) struct Cell {
    pub(in crate::admin) text: String,
    /// The address of the object that it names.
    pub(in crate::admin) link: Option<String>,
    /// The whole value, if the text is a short form.
    pub(in crate::admin) title: Option<String>,
    /// The address of the whole value, if the text is only its beginning.
    pub(in crate::admin) whole: Option<String>,
}

impl Cell {
    /// Shows a text.
    pub(in crate::admin) fn for_text(text: String) -> Self {
        Self { text, link: None, title: None, whole: None }
    }

    /// Shows an IRI: the label of a stored object, otherwise a short form.
    pub(in crate::admin) fn for_iri(
        iri: &str,
        labels: &HashMap<String, String>,
        names: &IriNames,
        frame: &Frame,
    ) -> Self {
        let short = || names.shorten(iri).unwrap_or_else(|| iri.to_owned());
        let (text, link) = match labels.get(iri) {
            Some(label) if label == iri => (short(), Some(object_link(frame, iri))),
            Some(label) => (shorten_text(label), Some(object_link(frame, iri))),
            None => (short(), None),
        };
        Self { title: (text != iri).then(|| iri.to_owned()), text, link, whole: None }
    }
}
