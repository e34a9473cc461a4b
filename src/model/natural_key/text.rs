//! The texts of values in keys.
use crate::mapping::Value;
use oxrdf::{Term, TermRef};
use std::borrow::Cow;
use std::ops::ControlFlow;

/// The text of a property in a key: that of its only value.
#[derive(Debug, Default)]
pub(crate) struct OnlyText {
    found: Option<String>,
    has_several: bool,
}

impl OnlyText {
    /// Adds a stored value. Breaks once there are several.
    pub(crate) fn add(&mut self, value: &Value, term: TermRef<'_>) -> ControlFlow<()> {
        if let Some(text) = key_text(value, term)
            && self.found.as_deref() != Some(&*text)
        {
            self.has_several = self.found.is_some();
            self.found = Some(text.into_owned());
        }
        if self.has_several { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns the text; `None` if there is none, if there are several, or if it cannot be in a key.
    pub(crate) fn into_usable(self) -> Option<String> {
        self.found.filter(|text| !self.has_several && unusable_reason(text).is_none())
    }
}

/// Returns the text of a value in a key; `None` if the value is not of the type of the field. Integers count by value.
pub(crate) fn key_text<'t>(value: &Value, term: TermRef<'t>) -> Option<Cow<'t, str>> {
    match (value, term) {
        (Value::Resource, TermRef::NamedNode(iri)) => Some(iri.as_str().into()),
        (Value::Literal(kind), TermRef::Literal(literal))
            if kind.has_type_of(literal) && kind.language() == literal.language() =>
        {
            Some((kind.kind().key_text?)(literal.value()))
        }
        _ => None,
    }
}

/// Returns why a text cannot be in a key; `None` if it can.
pub(crate) fn unusable_reason(text: &str) -> Option<&'static str> {
    match text {
        "" => Some("it is empty"),
        "." | ".." => Some("URIs do not keep it as a path segment"),
        _ => None,
    }
}

/// Returns whether two values are equal in a key.
pub(crate) fn is_same_key_value(value: &Value, one: &Term, other: &Term) -> bool {
    let texts = (key_text(value, one.as_ref()), key_text(value, other.as_ref()));
    texts.0.is_some() && texts.0 == texts.1
}
