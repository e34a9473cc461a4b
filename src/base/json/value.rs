//! The values of JSON.

/// A JSON value. A number keeps its digits as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as written in the text.
    Number(String),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object: its members in the order of the text, with unique names.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Describes the type: "a string", "an array", ...
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// Returns the value of the member with this name; `None` if there is none, or if this is not an object.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}
