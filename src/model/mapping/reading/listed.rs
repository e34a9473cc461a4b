//! Values that a definition lists, such as those in `absent`.
use penstock_base::json::Json;
use penstock_rdf::number::NumberKey;

/// A string, a number or a boolean that a definition lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedValue {
    json: Json,
    /// Numbers are compared by value.
    number: Option<NumberKey>,
}

impl ListedValue {
    /// Creates one; `None` for `null`, arrays and objects.
    pub fn new(json: Json) -> Option<Self> {
        let number = match &json {
            Json::Number(digits) => NumberKey::parse(digits),
            Json::String(_) | Json::Bool(_) => None,
            Json::Null | Json::Array(_) | Json::Object(_) => return None,
        };
        Some(Self { json, number })
    }

    /// Returns the value.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Returns whether both are the same value.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.number == other.number && (self.number.is_some() || self.json == other.json)
    }

    /// Returns its type in JSON Schema.
    pub(crate) fn json_type(&self) -> Option<&'static str> {
        match self.json {
            Json::String(_) => Some("string"),
            Json::Number(_) => Some("number"),
            Json::Bool(_) => Some("boolean"),
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }

    /// Returns whether the value is written as this text.
    pub(super) fn has_text(&self, text: &str) -> bool {
        match &self.json {
            Json::String(own) | Json::Number(own) => own == text,
            Json::Bool(value) => text == if *value { "true" } else { "false" },
            Json::Null | Json::Array(_) | Json::Object(_) => false,
        }
    }

    pub(crate) fn rewrite_iri(&mut self, rewrite: &impl Fn(&str) -> Option<String>) {
        if let Json::String(text) = &mut self.json
            && let Some(iri) = rewrite(text)
        {
            *text = iri;
        }
    }
}

/// Returns whether a list has this value.
pub(crate) fn contains_value(listed: &[ListedValue], json: &Json) -> bool {
    match json {
        Json::Number(digits) => {
            let mut numbers = listed.iter().filter_map(|one| one.number.as_ref()).peekable();
            // Parses the number only if the list has any.
            let key = numbers.peek().and_then(|_| NumberKey::parse(digits));
            key.is_some_and(|key| numbers.any(|number| *number == key))
        }
        other => listed.iter().any(|one| one.json == *other),
    }
}
