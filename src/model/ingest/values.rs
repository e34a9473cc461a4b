//! How many JSON values a body holds.
//!
//! A value of two bytes costs hundreds while its request is written, so `service.limits.body` alone does not bound
//! the memory of a request. The text is counted before any of it is read: one object can be the whole body.
use penstock_base::fault::{Fault, Kind};

/// # Errors
/// `Kind::TooLarge` when the text holds more values than `limit`.
pub(super) fn check(text: &[u8], limit: usize) -> Result<(), Fault> {
    if count(text, limit) <= limit {
        return Ok(());
    }
    Err(Fault::new(
        Kind::TooLarge,
        format!(
            "the body, or this chunk of it, holds more than {limit} JSON values (service.limits.values); send less at \
             once: each number, string, array and object counts, and names do not"
        ),
    ))
}

/// The values of well-formed JSON texts, up to one more than `enough`. What is no JSON is refused later.
fn count(text: &[u8], enough: usize) -> usize {
    // Each value but the outermost stands behind a bracket, with its name or without, or behind a comma.
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
        if values > enough {
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
            assert_eq!(count(text.as_bytes(), 100), values, "{text}");
        }
    }

    #[test]
    fn past_the_limit_is_refused() {
        assert_eq!(check(b"[1,2]", 3), Ok(()));
        let fault = check(b"[1,2,3]", 3).unwrap_err();
        assert_eq!(fault.kind, Kind::TooLarge);
        assert!(fault.detail.contains("service.limits.values"), "{fault}");
    }

    fn held(json: &Json) -> usize {
        1 + match json {
            Json::Array(elements) => elements.iter().map(held).sum(),
            Json::Object(members) => members.iter().map(|(_, value)| held(value)).sum(),
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn the_count_is_that_of_the_reader(text in r#"[\[\]{}",:\\ 1a]{1,12}"#) {
            if let Ok(json) = parse(text.as_bytes(), 100) {
                prop_assert_eq!(count(text.as_bytes(), 1000), held(&json));
            }
        }
    }
}
