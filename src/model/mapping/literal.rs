//! The types of literals.
use super::kind::table::{
    BOOLEAN, DATE, DATE_TIME, DETAILED_STRING, INTEGER, JSON, LANGUAGE_MAP, NUMBER, SCALAR, STRING,
};
use super::{Kind, LanguageMap};
use oxrdf::vocab::xsd;
use oxrdf::{LiteralRef, NamedNode, NamedNodeRef};

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
