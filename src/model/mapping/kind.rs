//! The kinds of values, in one table: the type in a mapping, and everything that another part of the gateway must know of
//! it.
//!
//! A new kind is a variant of [`Literal`], its place in [`KINDS`], and its entry in `table`.
mod table;

use super::{FormName, LanguageMap, Shape};
use oxrdf::vocab::xsd;
use oxrdf::{LiteralRef, NamedNode, NamedNodeRef};
use penstock_base::json::{self, Json};
use penstock_rdf::compare::ValueOrder;
use std::borrow::Cow;
use table::{
    BOOLEAN, DATE, DATE_TIME, DETAILED_STRING, INTEGER, JSON, JSON_SCALAR, LANGUAGE_MAP, NUMBER,
    OBJECT, RESOURCE, SCALAR, STRING,
};

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// An IRI, as a JSON string.
    Resource,
    /// A literal.
    Literal(Literal),
    /// A nested object, which is linked to its parent.
    Object(Shape),
}

/// The type of a literal, and its form in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Literal {
    /// `xsd:string`, as a JSON string.
    #[default]
    String,
    /// Any other datatype named with `datatype`, as a JSON string.
    Typed(NamedNode),
    /// `rdf:langString` with the tag named with `language` (lower case), as a JSON string.
    Language(String),
    /// `xsd:decimal`, or with an exponent `xsd:double`, as a JSON number.
    Number,
    /// `xsd:integer`, as a JSON number.
    Integer,
    /// `xsd:boolean`, as `true` or `false`.
    Boolean,
    /// `xsd:date`, as a JSON string.
    Date,
    /// `xsd:dateTime`, as a JSON string.
    DateTime,
    /// A string, a number or a boolean, by its type in JSON.
    Scalar,
    /// `rdf:JSON`, as any JSON value.
    Json,
    /// `rdf:langString`, the texts of a language map: a JSON object whose names are language tags.
    LanguageMap(LanguageMap),
}

/// What the values of a kind have in common.
#[derive(Debug)]
pub struct Kind {
    /// The `type` in a mapping.
    pub name: &'static str,
    /// The keys of a definition that only this type takes.
    pub(super) keys: &'static [&'static str],
    /// The forms that `accept` takes.
    pub(super) accept: &'static [FormName],
    /// Whether the root's `absent` applies.
    pub(super) inherits_absent: bool,
    /// How a value is written as JSON and as text.
    pub form: Form,
    /// The `type`s and the `format` in JSON Schema.
    pub(super) json_schema: (&'static [&'static str], Option<&'static str>),
    /// Why an array cannot have such elements, if it cannot.
    pub(super) element_error: Option<&'static str>,
    /// The datatypes of the literals that an ingestion writes, if the field does not name one.
    pub(crate) datatypes: &'static [NamedNodeRef<'static>],
    /// Other datatypes whose literals belong to a field of this kind if it shares its property.
    pub(super) claimed_datatypes: &'static [NamedNodeRef<'static>],
    /// Checks the text of a literal. Returns its datatype, or what is wrong with it.
    pub(crate) check_text: fn(&str) -> Result<NamedNodeRef<'static>, &'static str>,
    /// Returns how well a stored literal of another datatype fits, from 2 down. At 0, it is shown with a warning.
    pub(crate) rate_datatype: fn(NamedNodeRef<'_>) -> usize,
    /// How values compare.
    pub order: ValueOrder,
    /// Returns the text of a value in a key; `None` if a key cannot have such values.
    pub(crate) key_text: Option<fn(&str) -> Cow<'_, str>>,
    /// Whether the members of a map can have such values as names.
    pub(super) names_members: bool,
    /// The type in GraphQL.
    pub graphql: Scalar,
    /// A value as JSON.
    pub(super) example: &'static str,
    /// What a form adds to the name of the type.
    pub hint: &'static str,
    /// What a form says of a text that is not of the type.
    pub text_error: Option<&'static str>,
}

/// How a value is written as JSON, and as text in a cell of CSV or a field of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A string, with the white space around it.
    Text,
    /// A string without the white space around it, such as a date or an IRI.
    Token,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A string, a number, `true` or `false`.
    Scalar,
    /// Any JSON value.
    Json,
}

/// A type of values in GraphQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scalar {
    /// Its name.
    pub name: &'static str,
    /// Its description and the address of its specification; `None` for a type of GraphQL itself.
    pub about: Option<(&'static str, &'static str)>,
    /// The name of its filter.
    pub filter: &'static str,
    /// The tests of its filter.
    pub tests: &'static [&'static str],
}

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

/// The type in GraphQL of codes that are strings.
pub(super) static TEXT_SCALAR: &Scalar = &STRING.graphql;
/// The type in GraphQL of other codes, which is that of [`Literal::Scalar`].
pub static CODE_SCALAR: &Scalar = &JSON_SCALAR;

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

impl Kind {
    /// Returns whether filters find the values, and objects can be ordered by them.
    pub fn is_searchable(&self) -> bool {
        !self.graphql.tests.is_empty()
    }

    /// Returns whether a JSON value is the canonical form of one of this kind.
    pub(crate) fn accepts(&self, json: &Json) -> bool {
        match (self.form, json) {
            (Form::Text | Form::Token, Json::String(text)) | (Form::Number, Json::Number(text)) => {
                (self.check_text)(text).is_ok()
            }
            (Form::Boolean | Form::Scalar, Json::Bool(_))
            | (Form::Scalar, Json::String(_) | Json::Number(_))
            | (Form::Json, _) => true,
            _ => false,
        }
    }
}

/// Reads a `scalar` from a text: what JSON writes in the same way, otherwise the text as a string. So a string that looks
/// like a number is written in quotes.
pub fn parse_scalar(text: &str) -> Json {
    match json::parse(text.as_bytes(), 0) {
        Ok(scalar @ (Json::String(_) | Json::Number(_) | Json::Bool(_))) => scalar,
        _ => Json::String(text.to_owned()),
    }
}

impl Form {
    /// Describes the JSON of a value.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Text | Self::Token => "a string",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Scalar => "a string, a number, true or false",
            Self::Json => "a JSON value",
        }
    }
}

impl Literal {
    /// Returns the type of strings of a datatype.
    pub(super) fn of_datatype(datatype: NamedNode) -> Self {
        if datatype == xsd::STRING { Self::String } else { Self::Typed(datatype) }
    }

    /// Returns the type of texts in a language.
    pub(super) fn of_language(tag: &str) -> Self {
        Self::Language(tag.to_ascii_lowercase())
    }

    /// Returns what all values of the kind have in common.
    pub(crate) fn kind(&self) -> &'static Kind {
        match self {
            Self::String => &STRING,
            Self::Typed(_) | Self::Language(_) => &DETAILED_STRING,
            Self::Number => &NUMBER,
            Self::Integer => &INTEGER,
            Self::Boolean => &BOOLEAN,
            Self::Date => &DATE,
            Self::DateTime => &DATE_TIME,
            Self::Scalar => &SCALAR,
            Self::Json => &JSON,
            Self::LanguageMap(_) => &LANGUAGE_MAP,
        }
    }

    /// Returns the literal of a text that was checked, which is of this datatype unless the field names another one.
    pub(crate) fn build(&self, text: String, datatype: NamedNodeRef<'_>) -> oxrdf::Literal {
        match self {
            Self::String => oxrdf::Literal::new_simple_literal(text),
            Self::Typed(datatype) => oxrdf::Literal::new_typed_literal(text, datatype.clone()),
            Self::Language(tag) => {
                oxrdf::Literal::new_language_tagged_literal_unchecked(text, tag.clone())
            }
            _ => oxrdf::Literal::new_typed_literal(text, datatype),
        }
    }

    /// Returns the language that the field names, in lower case.
    pub(crate) fn language(&self) -> Option<&str> {
        if let Self::Language(tag) = self { Some(tag) } else { None }
    }

    /// Returns whether a field shows a literal: a language map shows texts in its languages only.
    pub(crate) fn can_show(&self, literal: LiteralRef<'_>) -> bool {
        !matches!(self, Self::LanguageMap(_)) || self.has_type_of(literal)
    }

    /// Returns whether an ingestion writes literals of the same datatype or language.
    pub(crate) fn has_type_of(&self, literal: LiteralRef<'_>) -> bool {
        match self {
            Self::Typed(datatype) => literal.datatype() == datatype.as_ref(),
            Self::Language(tag) => {
                literal.language().is_some_and(|language| language.eq_ignore_ascii_case(tag))
            }
            Self::LanguageMap(map) => literal.language().is_some_and(|tag| map.accepts(tag)),
            _ => self.kind().datatypes.contains(&literal.datatype()),
        }
    }
}
