//! Removes the white space from a JSON text. Its digits, its escapes and its order stay.
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Returns a JSON text without the white space outside its strings; `None` if the text is not JSON.
pub fn compact(text: &str) -> Option<Cow<'_, str>> {
    let text = serde_json::from_str::<&RawValue>(text).ok()?.get();
    let is_space = |byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    if !text.bytes().any(is_space) {
        return Some(Cow::Borrowed(text));
    }
    let (mut in_string, mut is_escaped) = (false, false);
    let is_kept = |character: &char| {
        let is_kept = in_string || !character.is_ascii_whitespace();
        if *character == '"' && !is_escaped {
            in_string = !in_string;
        }
        is_escaped = in_string && *character == '\\' && !is_escaped;
        is_kept
    };
    Some(text.chars().filter(is_kept).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_white_space_outside_strings_goes() {
        for (text, compacted) in [
            (" [1.50, -0 ,\n1E400]\t", "[1.50,-0,1E400]"),
            (
                r#"{ "b c" : "x\" y", "a": "\\" , "n": null }"#,
                r#"{"b c":"x\" y","a":"\\","n":null}"#,
            ),
            (r#""\u0041 \u00e4""#, r#""\u0041 \u00e4""#),
            ("[[1],[]]", "[[1],[]]"),
        ] {
            assert_eq!(compact(text).as_deref(), Some(compacted));
        }
        for wrong in ["", "{", "[1,]", "a", "1 2", "\"a\nb\""] {
            assert_eq!(compact(wrong), None, "{wrong:?}");
        }
    }
}
