//! The types of values: the kind of each, and what distinguishes it from others of the kind.
use super::kind::table::{OBJECT, RESOURCE, STRING};
use super::{Kind, LanguageMap, Literal, Scalar, Shape, Value};
use oxrdf::NamedNode;

/// What the values of one field have in common besides their kind.
#[derive(Debug, Clone, Copy)]
pub enum Detail<'v> {
    /// Nothing.
    None,
    /// The datatype that the field names.
    Datatype(&'v NamedNode),
    /// The language that the field names, in lower case.
    Language(&'v str),
    /// The shape of the nested objects.
    Objects(&'v Shape),
}

/// The values with a type of their own in a mapping, without nested objects.
pub static KINDS: [Value; 10] = [
    Value::Literal(Literal::String),
    Value::Literal(Literal::Number),
    Value::Literal(Literal::Integer),
    Value::Literal(Literal::Boolean),
    Value::Literal(Literal::Date),
    Value::Literal(Literal::DateTime),
    Value::Literal(Literal::Scalar),
    Value::Literal(Literal::Json),
    Value::Literal(Literal::LanguageMap(LanguageMap::new())),
    Value::Resource,
];

/// The values of an array that does not say more.
pub(super) static STRINGS: Value = Value::Literal(Literal::String);

/// Returns the type of values that a mapping calls so.
pub(crate) fn find_kind(name: &str) -> Option<&'static Value> {
    KINDS.iter().find(|value| value.kind().name == name)
}

/// Returns the types of values in GraphQL. Some have the same name, and others the same filter.
pub fn list_scalars() -> impl Iterator<Item = &'static Scalar> {
    KINDS.iter().map(|value| &value.kind().graphql)
}

impl Value {
    /// Returns what all values of the kind have in common.
    pub fn kind(&self) -> &'static Kind {
        match self {
            Self::Resource => &RESOURCE,
            Self::Literal(literal) => literal.kind(),
            Self::Object(_) => &OBJECT,
        }
    }

    /// Returns what distinguishes the values from others of their kind.
    pub fn detail(&self) -> Detail<'_> {
        match self {
            Self::Literal(Literal::Typed(datatype)) => Detail::Datatype(datatype),
            Self::Literal(Literal::Language(tag)) => Detail::Language(tag),
            Self::Object(shape) => Detail::Objects(shape),
            Self::Resource | Self::Literal(_) => Detail::None,
        }
    }

    /// Returns the shape of nested objects; `None` for other values.
    pub fn shape(&self) -> Option<&Shape> {
        if let Self::Object(shape) = self { Some(shape) } else { None }
    }

    /// Returns the language of the texts, if the field names one.
    pub fn language(&self) -> Option<&str> {
        if let Self::Literal(literal) = self { literal.language() } else { None }
    }

    /// Returns the type of the texts of a language map.
    pub(super) fn of_language_map(map: LanguageMap) -> Self {
        Self::Literal(Literal::LanguageMap(map))
    }

    /// Returns the languages of a language map.
    pub fn language_map(&self) -> Option<&LanguageMap> {
        if let Self::Literal(Literal::LanguageMap(map)) = self { Some(map) } else { None }
    }

    /// Returns whether the values are texts in one language or in several.
    pub(crate) fn has_languages(&self) -> bool {
        self.language().is_some() || self.language_map().is_some()
    }

    /// Returns whether the values are strings, of any datatype or language.
    pub(super) fn is_string(&self) -> bool {
        self.kind().name == STRING.name
    }
}
