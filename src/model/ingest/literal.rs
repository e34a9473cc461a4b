//! Converts a JSON value into a literal, with its lexical form unchanged.
use super::findings::quote_excerpt;
use crate::mapping::{Form, Literal as Kind};
use oxrdf::{Literal, NamedNode};
use penstock_base::json::Json;
use penstock_rdf::MAX_IRI_BYTES;

/// Returns the literal of this kind for a JSON value, or an error message.
pub(super) fn to_literal(kind: &Kind, json: Json) -> Result<Literal, String> {
    let form = kind.kind().form;
    let text = match (form, json) {
        (Form::Text | Form::Token, Json::String(text)) | (Form::Number, Json::Number(text)) => text,
        (Form::Boolean, Json::Bool(value)) => return Ok(Literal::from(value)),
        (_, other) => return Err(describe_mismatch(form.describe(), &other)),
    };
    match (kind.kind().check_text)(&text) {
        Ok(datatype) => Ok(kind.build(text, datatype)),
        Err(error) if form == Form::Number => Err(format!("{text} {error}")),
        Err(error) => Err(format!("{} {error}", quote_excerpt(&text))),
    }
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
