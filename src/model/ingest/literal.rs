//! Converts a JSON value into a literal, with its lexical form unchanged.
use super::findings::quote_excerpt;
use crate::list::is_list_node;
use crate::mapping::{Form, Literal as Kind, Value};
use oxrdf::{Literal, NamedNode, Term};
use penstock_base::json::Json;
use penstock_rdf::MAX_IRI_BYTES;
use penstock_rdf::number::NumberKey;

/// The maximum number of bytes of a value of type `json`, without white space outside its strings.
pub(crate) const MAX_JSON_BYTES: usize = 256 << 10;

/// Returns the term of this type for a JSON value, or an error message.
pub(super) fn to_term(value: &Value, json: Json) -> Result<Term, String> {
    match value {
        Value::Literal(kind) => to_literal(kind, json).map(Term::Literal),
        _ => to_iri(json).map(Term::NamedNode),
    }
}

/// Returns the literal of this kind for a JSON value, or an error message.
pub(super) fn to_literal(kind: &Kind, json: Json) -> Result<Literal, String> {
    let form = kind.kind().form;
    let text = match (form, json) {
        (Form::Text | Form::Token, Json::String(text)) | (Form::Number, Json::Number(text)) => text,
        (Form::Boolean | Form::Scalar, Json::Bool(value)) => return Ok(Literal::from(value)),
        (Form::Scalar, Json::String(text)) => return Ok(Literal::new_simple_literal(text)),
        (Form::Scalar, Json::Number(digits)) => digits,
        (Form::Json, json) => write_json(&json)?,
        (_, other) => return Err(describe_mismatch(form.describe(), &other)),
    };
    match (kind.kind().check_text)(&text) {
        Ok(datatype) => Ok(kind.build(text, datatype)),
        Err(error) if form == Form::Number => Err(format!("{text} {error}")),
        Err(error) => Err(format!("{} {error}", quote_excerpt(&text))),
    }
}

/// Returns the text of a JSON value, without white space outside its strings.
fn write_json(json: &Json) -> Result<String, String> {
    let text = json.to_string();
    if text.len() > MAX_JSON_BYTES {
        let length = text.len();
        return Err(format!(
            "the JSON value has {length} bytes; the maximum is {MAX_JSON_BYTES}, so send less, or map its members as fields"
        ));
    }
    Ok(text)
}

/// Converts a string into an absolute IRI, or returns an error message.
pub(super) fn to_iri(json: Json) -> Result<NamedNode, String> {
    match json {
        Json::String(text) if text.len() > MAX_IRI_BYTES => Err(format!(
            "{} is an IRI of {} bytes; the maximum is {MAX_IRI_BYTES}",
            quote_excerpt(&text),
            text.len()
        )),
        Json::String(text) => match NamedNode::new(&text) {
            Ok(iri) if is_list_node(&iri) => Err(format!(
                "{} is a node of the list of an ordered array, and no object; send the array with its object",
                quote_excerpt(&text)
            )),
            Ok(iri) => Ok(iri),
            Err(error) => Err(format!("{} is not an absolute IRI: {error}", quote_excerpt(&text))),
        },
        other => Err(describe_mismatch("an IRI as a string", &other)),
    }
}

/// Returns the error message for a value of an unexpected kind.
pub(super) fn describe_mismatch(expected: &str, found: &Json) -> String {
    match found {
        Json::String(text) => {
            format!("{expected} is expected, not the string {}", quote_excerpt(text))
        }
        Json::Number(digits) => {
            let shown: String = digits.chars().take(40).collect();
            format!("{expected} is expected, not the number {shown}")
        }
        Json::Bool(value) => format!("{expected} is expected, not {value}"),
        Json::Null => format!("{expected} is expected, but there is no value"),
        other => format!("{expected} is expected, not {}", other.kind_name()),
    }
}

/// Returns what to do with a value of another type that a field of this kind would take with another mapping; empty for any
/// other value.
pub(super) fn suggest_mapping(value: &Value, json: &Json) -> &'static str {
    let kind = value.kind();
    let is_number =
        |text: &str| NumberKey::parse(text).is_some() && (kind.check_text)(text).is_ok();
    match (value, kind.form, json) {
        (_, Form::Number, Json::String(text)) if is_number(text.trim()) => {
            "; send it as a number, or write `accept: text` in the mapping"
        }
        (_, Form::Number, Json::String(text))
            if !text.contains('.') && is_number(&text.trim().replacen(',', ".", 1)) =>
        {
            "; send it as a number, or write `accept: {decimal: \",\"}` in the mapping"
        }
        (_, Form::Text, Json::Number(_) | Json::Bool(_)) => {
            "; send it in quotes, or write `accept: scalar` in the mapping"
        }
        (Value::Resource, _, Json::String(text)) if !text.contains(':') => {
            "; if it is a code, write `base` or `values` in the mapping"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{insert_quad, open_store};
    use oxrdf::vocab::xsd;

    #[test]
    fn numbers_keep_their_digits() {
        for (digits, datatype) in [
            ("1.50", xsd::DECIMAL),
            ("-0", xsd::DECIMAL),
            ("123456789012345678901234567890.000000000000000000001", xsd::DECIMAL),
            ("1E400", xsd::DOUBLE),
            ("1.0e-7", xsd::DOUBLE),
        ] {
            let made = to_literal(&Kind::Number, Json::Number(digits.to_owned())).unwrap();
            assert_eq!((made.value(), made.datatype()), (digits, datatype));
        }
    }

    #[test]
    fn an_integer_has_no_fraction_and_no_exponent() {
        for wrong in ["1.0", "1e3", "1E3"] {
            assert!(to_literal(&Kind::Integer, Json::Number(wrong.to_owned())).is_err(), "{wrong}");
        }
        let digits = "99999999999999999999999999";
        let made = to_literal(&Kind::Integer, Json::Number(digits.to_owned())).unwrap();
        assert_eq!((made.value(), made.datatype()), (digits, xsd::INTEGER));
    }

    #[test]
    fn dates_are_checked_and_stored_unchanged() {
        let kept = "2026-03-01T12:00:00.120+01:00";
        let made = to_literal(&Kind::DateTime, Json::String(kept.to_owned())).unwrap();
        assert_eq!((made.value(), made.datatype()), (kept, xsd::DATE_TIME));
        for wrong in ["2026-02-30", "yesterday", "2026-3-1", ""] {
            assert!(to_literal(&Kind::Date, Json::String(wrong.to_owned())).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_error_names_the_wrong_kind() {
        let message = to_literal(&Kind::Number, Json::String("5".to_owned())).unwrap_err();
        assert_eq!(message, "a number is expected, not the string \"5\"");
        assert!(to_literal(&Kind::Boolean, Json::String("true".to_owned())).is_err());
        assert!(to_literal(&Kind::String, Json::Bool(true)).is_err());
    }

    #[test]
    fn a_scalar_is_kept_by_its_type() {
        let number = |digits: &str| Json::Number(digits.to_owned());
        for (json, text, datatype) in [
            (Json::String("7".to_owned()), "7", xsd::STRING),
            (number("7"), "7", xsd::INTEGER),
            (number("7.0"), "7.0", xsd::DECIMAL),
            (number("7e1"), "7e1", xsd::DOUBLE),
            (Json::Bool(true), "true", xsd::BOOLEAN),
        ] {
            let made = to_literal(&Kind::Scalar, json).unwrap();
            assert_eq!((made.value(), made.datatype()), (text, datatype));
        }
        let message = to_literal(&Kind::Scalar, Json::Array(Vec::new())).unwrap_err();
        assert_eq!(message, "a string, a number, true or false is expected, not an array");
    }

    #[test]
    fn json_is_kept_with_its_digits_and_order() {
        let json =
            penstock_base::json::parse(br#" {"b": [1.50, [null]], "a": "x y"} "#, 5).unwrap();
        let made = to_literal(&Kind::Json, json).unwrap();
        assert_eq!(made.value(), r#"{"b":[1.50,[null]],"a":"x y"}"#);
        assert_eq!(made.datatype(), oxrdf::vocab::rdf::JSON);
        let of_length = |length: usize| Json::String("x".repeat(length - 2));
        assert!(to_literal(&Kind::Json, of_length(MAX_JSON_BYTES)).is_ok());
        let message = to_literal(&Kind::Json, of_length(MAX_JSON_BYTES + 1)).unwrap_err();
        assert!(message.contains("262145 bytes; the maximum is 262144"), "{message}");
    }

    #[test]
    fn an_iri_is_absolute() {
        for wrong in ["", "a b", "/relative", "http://x/ y", "http://x/<y>"] {
            assert!(to_iri(Json::String(wrong.to_owned())).is_err(), "{wrong}");
        }
        assert!(to_iri(Json::String("urn:x:1".to_owned())).is_ok());
    }

    #[test]
    fn the_iri_limit_is_that_of_the_store() {
        let of_length = |length: usize| Json::String(format!("urn:{}", "x".repeat(length - 4)));
        let longest = to_iri(of_length(MAX_IRI_BYTES)).unwrap();
        let (_dir, store) = open_store();
        let iri = longest.as_str();
        insert_quad(&store, iri, iri, longest.clone(), iri);
        assert!(to_iri(of_length(MAX_IRI_BYTES + 1)).unwrap_err().contains("65537 bytes"));
    }
}
