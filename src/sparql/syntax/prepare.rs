//! Prepares the text of a request for the parser.
use super::tokens::{Token, Tokens};

/// Blanks that follow a text when it is parsed.
pub(super) const PADDING: &str = "                ";

/// Returns a text as the parser gets it: it knows `true` and `false` in lower case only, and its search for keywords must
/// not meet the end. All places stay the same.
pub(crate) fn prepare(text: &str) -> String {
    let mut prepared = String::with_capacity(text.len() + PADDING.len());
    for (at, token) in Tokens::new(text) {
        if let Token::Word(word) = token
            && ["true", "false"].iter().any(|boolean| boolean.eq_ignore_ascii_case(word))
        {
            prepared.push_str(text.get(prepared.len()..at).unwrap_or_default());
            prepared.push_str(&word.to_ascii_lowercase());
        }
    }
    prepared.push_str(text.get(prepared.len()..).unwrap_or_default());
    prepared.push_str(PADDING);
    prepared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_read_in_any_case() {
        let text =
            "SELECT (TRUE AS ?true) { ?TRUE TRUE:a 'TRUE' , \"False\" . <TRUE> a False. # TRUE";
        let prepared = prepare(text);
        assert_eq!(
            prepared.trim_end(),
            "SELECT (true AS ?true) { ?TRUE TRUE:a 'TRUE' , \"False\" . <TRUE> a false. # TRUE"
        );
        assert_eq!(prepared.len(), text.len() + PADDING.len());
    }
}
