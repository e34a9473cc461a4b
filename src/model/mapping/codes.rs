//! The codes of a field: what the JSON has in place of the values in the graph (`base` and `values` in a mapping).
//!
//! `values` finds the codes of values, which depend on their type, and adds codes to a list.
mod values;

pub(crate) use values::expand_code;

use super::kind::table::{CODE_SCALAR, TEXT_SCALAR};
use super::{Form, Kind, Scalar};
use oxrdf::{NamedNode, Term};
use penstock_base::json::Json;
use penstock_base::nearest::find_nearest;
use penstock_rdf::compare::ValueOrder;
use penstock_rdf::number::NumberKey;
use std::collections::HashMap;

/// The maximum number of codes that are compared to find the nearest one.
const MAX_COMPARED_CODES: usize = 1_000;

/// The maximum number of codes that a form offers.
const MAX_CHOICES: usize = 200;

/// The codes of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Codes {
    /// The code of an IRI is what follows this beginning, without percent-encoding (`base`).
    Base(NamedNode),
    /// The field has these codes, and no other values (`values`).
    Listed(CodeList),
}

/// The codes that a mapping lists, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeList {
    codes: Vec<(Json, Term)>,
    /// The indexes of the codes that are strings.
    strings: HashMap<String, usize>,
    /// The indexes of the codes that are numbers.
    numbers: HashMap<NumberKey, usize>,
    /// The index of the first code of each value, by its text in a key.
    by_value: HashMap<String, usize>,
}

impl Codes {
    /// Returns the list, if there is one.
    pub fn list(&self) -> Option<&CodeList> {
        if let Self::Listed(list) = self { Some(list) } else { None }
    }

    /// Returns whether a JSON value is one of the listed codes.
    pub(crate) fn lists(&self, json: &Json) -> bool {
        self.list().is_some_and(|list| list.find(json).is_some())
    }

    /// Returns the listed code with this text, of whatever type; `None` for another text.
    pub(super) fn find_listed(&self, text: &str) -> Option<&Json> {
        self.list()?.find_by_text(text)
    }

    /// Returns what a form adds to the name of the type.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Base(_) => ": a code, or an IRI",
            Self::Listed(_) => ": one of its codes",
        }
    }

    /// Returns the texts of the codes that a form offers; none if there are too many.
    pub fn list_choices(&self) -> Vec<String> {
        let shown = self.list().into_iter().flat_map(CodeList::shown);
        let texts: Vec<String> = shown.map(|(code, _)| code_text(code).to_owned()).collect();
        if texts.len() > MAX_CHOICES || texts.iter().any(|text| text.trim().is_empty()) {
            return Vec::new();
        }
        texts
    }

    /// Returns how the values compare, as the view shows them.
    pub(super) fn order(&self) -> ValueOrder {
        let are_numbers = self.list().is_some_and(CodeList::has_only_numbers);
        if are_numbers { ValueOrder::Number } else { ValueOrder::Text }
    }

    /// Returns the type of the codes in GraphQL, of a field with values of this kind.
    pub(super) fn graphql(&self, kind: &'static Kind) -> &'static Scalar {
        match self {
            Self::Listed(list) if kind.form == Form::Number && list.is_restriction() => {
                &kind.graphql
            }
            // A stored value without a code is shown as it is, so among strings it can be a number.
            Self::Listed(list) if kind.form == Form::Number || !list.has_only_strings() => {
                CODE_SCALAR
            }
            _ => TEXT_SCALAR,
        }
    }
}

impl CodeList {
    /// Returns the codes, each with its value.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &(Json, Term)> {
        self.codes.iter()
    }

    /// Returns the codes that the view shows, each with its value. Of several codes of a value, it shows the first.
    pub fn shown(&self) -> impl Iterator<Item = &(Json, Term)> {
        let mut first: Vec<usize> = self.by_value.values().copied().collect();
        first.sort_unstable();
        first.into_iter().filter_map(|index| self.codes.get(index))
    }

    /// Returns the value of a code. Numbers are equal by value.
    pub(crate) fn find_term(&self, code: &Json) -> Option<&Term> {
        self.find(code).map(|(_, term)| term)
    }

    /// Returns the code that is most similar to a text.
    pub(crate) fn find_nearest(&self, text: &str) -> Option<&Json> {
        let codes = || self.codes.iter().take(MAX_COMPARED_CODES).map(|(code, _)| code);
        let near = find_nearest(text, codes().map(code_text))?;
        codes().find(|code| code_text(code) == near)
    }

    fn find(&self, code: &Json) -> Option<&(Json, Term)> {
        let index = match code {
            Json::String(text) => self.strings.get(text).copied(),
            Json::Number(digits) => self.numbers.get(&NumberKey::parse(digits)?).copied(),
            Json::Bool(_) => self.codes.iter().position(|(known, _)| known == code),
            _ => None,
        };
        self.codes.get(index?)
    }

    /// Returns the code with this text: a string, also without the white space around the text, or a number or boolean.
    fn find_by_text(&self, text: &str) -> Option<&Json> {
        let trimmed = text.trim();
        let string = [text, trimmed].into_iter().find_map(|text| self.strings.get(text));
        let index = string.or_else(|| self.numbers.get(&NumberKey::parse(trimmed)?)).copied();
        let is_boolean =
            |(code, _): &(Json, Term)| matches!(code, Json::Bool(_)) && code_text(code) == trimmed;
        let index = index.or_else(|| self.codes.iter().position(is_boolean))?;
        self.codes.get(index).map(|(code, _)| code)
    }

    fn has_only_strings(&self) -> bool {
        self.codes.iter().all(|(code, _)| matches!(code, Json::String(_)))
    }

    fn has_only_numbers(&self) -> bool {
        self.codes.iter().all(|(code, _)| matches!(code, Json::Number(_)))
    }

    /// Returns whether each code is a number and its value, so that the list only restricts the values.
    fn is_restriction(&self) -> bool {
        let is_itself = |(code, term): &(Json, Term)| matches!(term, Term::Literal(literal) if literal.value() == code_text(code));
        self.has_only_numbers() && self.codes.iter().all(is_itself)
    }
}

/// Returns the text of a code: of a string what it contains, of a number or boolean its JSON.
pub(crate) fn code_text(code: &Json) -> &str {
    match code {
        Json::String(text) | Json::Number(text) => text,
        Json::Bool(true) => "true",
        Json::Bool(false) => "false",
        Json::Null | Json::Array(_) | Json::Object(_) => "",
    }
}
