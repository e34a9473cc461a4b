//! The kinds of values, in one table: the type in a mapping, and everything that another part of the gateway must know of
//! it.
//!
//! A new kind is a variant of [`Literal`](super::Literal), its place in [`KINDS`](super::KINDS), and its entry in `table`.
pub(super) mod table;

use super::reading::form::FormName;
use oxrdf::NamedNodeRef;
use penstock_base::json::{self, Json};
use penstock_rdf::compare::ValueOrder;
use std::borrow::Cow;

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
