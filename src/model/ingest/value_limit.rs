//! Limits the number of JSON values in a body.
//!
//! A value of two bytes needs hundreds of bytes of memory while its request is written. So `service.limits.body` does
//! not limit the memory of a request. The values are counted before any of them is read, because one object can be the
//! whole body.
use super::Body;
use crate::csv::CsvFormat;
use memchr::memchr_iter;
use penstock_base::error::{ErrorClass, GatewayError};

/// Checks the number of values in a body.
///
/// # Errors
/// `ErrorClass::TooLarge` if it has more values than `limit`.
pub(super) fn check_body(body: Body<'_>, limit: usize) -> Result<(), GatewayError> {
    if let Body::Messages(_) = body {
        // A message with too many is rejected, and no batch has more than one message may have.
        return Ok(());
    }
    let Body::Records { text, header, .. } = body else {
        return check_value_count(body.text(), limit);
    };
    let CsvFormat { delimiter, array_delimiter, .. } = header.format;
    let count_delimiters = |delimiter: char| {
        let mut buffer = [0; 4];
        let delimiter = delimiter.encode_utf8(&mut buffer).as_bytes();
        let first = delimiter.first().copied().unwrap_or_default();
        // Text that only begins as a delimiter counts too, so this is a maximum.
        memchr_iter(first, text).count()
    };
    let cells = count_delimiters(delimiter) + array_delimiter.map_or(0, count_delimiters);
    let records = memchr_iter(b'\n', text).count() + 1;
    if cells + records <= limit {
        return Ok(());
    }
    Err(GatewayError::new(
        ErrorClass::TooLarge,
        format!(
            "this chunk of the CSV has more than {limit} cells and array elements (service.limits.values); send shorter \
             records"
        ),
    ))
}

/// Checks the number of values.
///
/// # Errors
/// `ErrorClass::TooLarge` if the text has more values than `limit`.
pub fn check_value_count(text: &[u8], limit: usize) -> Result<(), GatewayError> {
    if count_values(text, limit) <= limit {
        return Ok(());
    }
    Err(too_many_values_error(limit))
}

/// Returns the error of a text that has more values than `limit`.
pub(super) fn too_many_values_error(limit: usize) -> GatewayError {
    GatewayError::new(
        ErrorClass::TooLarge,
        format!(
            "the body, or this chunk of it, has more than {limit} JSON values (service.limits.values); send less at \
             once. Each number, string, array and object counts; names do not"
        ),
    )
}

/// Counts the values of well-formed JSON texts, and stops after `limit` + 1. Text that is not JSON is refused later.
pub fn count_values(text: &[u8], limit: usize) -> usize {
    // Each value except the outermost follows a bracket or a comma, with or without a name.
    let (mut values, mut before, mut in_string, mut escaped) = (0, b'\n', false, false);
    for &byte in text {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'"' => in_string = true,
            _ => {}
        }
        let begins = matches!(before, b'[' | b'{' | b',' | b'\n') && !matches!(byte, b']' | b'}');
        values += usize::from(begins);
        if values > limit {
            break;
        }
        before = byte;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_base::json::{Json, parse};
    use proptest::prelude::*;

    #[test]
    fn every_value_counts_once() {
        for (text, values) in [
            ("1", 1),
            ("[]", 1),
            ("[ ]", 1),
            ("{}", 1),
            ("[1, 2,3]", 4),
            (r#"{"a": 1, "b": {"c": []}}"#, 4),
            (r#"["a,b", "\",[{", "\\", {"x,{": null}]"#, 6),
            ("[[], {}, [[]]]", 5),
        ] {
            assert_eq!(count_values(text.as_bytes(), 100), values, "{text}");
        }
    }

    #[test]
    fn a_body_beyond_the_limit_is_refused() {
        assert_eq!(check_value_count(b"[1,2]", 3), Ok(()));
        let error = check_value_count(b"[1,2,3]", 3).unwrap_err();
        assert_eq!(error.class, ErrorClass::TooLarge);
        assert!(error.detail.contains("service.limits.values"), "{error}");
    }

    fn count_parsed(json: &Json) -> usize {
        1 + match json {
            Json::Array(elements) => elements.iter().map(count_parsed).sum(),
            Json::Object(members) => members.iter().map(|(_, value)| count_parsed(value)).sum(),
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn the_count_equals_that_of_the_parser(text in r#"[\[\]{}",:\\ 1a]{1,12}"#) {
            if let Ok(json) = parse(text.as_bytes(), 100) {
                prop_assert_eq!(count_values(text.as_bytes(), 1000), count_parsed(&json));
            }
        }
    }
}
