//! One value of a field with codes, as the view shows it.
use super::shown::ShownLiteral;
use crate::list::is_list_node;
use crate::mapping::{Codes, Value, code_text};
use oxrdf::TermRef;
use penstock_base::json::Json;
use penstock_rdf::number::NumberKey;

/// A value of a field with codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCode<'q> {
    /// Its code. A value without one is its IRI or text.
    pub json: Json,
    /// The reason why an ingestion of this field would refuse the value, if it would.
    pub(crate) misfit: Option<String>,
    /// The value as it is stored.
    pub(crate) term: TermRef<'q>,
}

impl<'q> ShownCode<'q> {
    /// Creates what a field with values of this type shows of a stored one.
    ///
    /// # Errors
    /// Returns what the value is, if the field cannot show it.
    pub(crate) fn new(
        codes: &Codes,
        value: &Value,
        term: TermRef<'q>,
    ) -> Result<Self, &'static str> {
        if let Some(code) = codes.find_code(value, term) {
            return Ok(Self { json: code.into_owned(), misfit: None, term });
        }
        let (json, misfit) = match (value, term) {
            (Value::Literal(kind), TermRef::Literal(literal)) => {
                let shown = ShownLiteral::without_sort_key(kind, literal);
                (shown.to_json(), shown.misfit)
            }
            (Value::Literal(_), _) => return Err("not a literal"),
            (_, TermRef::NamedNode(iri)) if is_list_node(iri) => {
                return Err("the list of an ordered array");
            }
            (_, TermRef::NamedNode(iri)) => (Json::String(iri.as_str().to_owned()), None),
            _ => return Err("not an IRI"),
        };
        // An ingestion would take it for the other value.
        if codes.lists(&json) {
            return Err("the code of another value");
        }
        Ok(Self { json, misfit, term })
    }

    /// Returns the text of the code: of a string what it contains, of a number or boolean its JSON.
    pub fn text(&self) -> &str {
        code_text(&self.json)
    }

    /// Orders values as those of other fields: numbers by number before everything else, which is ordered by code point.
    /// Of those that look the same, only the first stays.
    pub(super) fn sort(all: &mut Vec<Self>) {
        all.sort_by_cached_key(|shown| {
            let number = match &shown.json {
                Json::Number(digits) => NumberKey::parse(digits),
                _ => None,
            };
            (number.is_none(), number, shown.text().to_owned(), shown.term.to_string())
        });
        all.dedup_by(|a, b| a.json == b.json);
    }
}
