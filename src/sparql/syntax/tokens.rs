//! Splits a request into tokens, and finds their lines and columns.

/// A token of a request, as far as its checks distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    /// A keyword, name, variable or number.
    Word(&'t str),
    /// An IRI with its brackets.
    Iri(&'t str),
    Quoted,
    Symbol(char),
}

/// Splits a text into tokens, each with its first byte.
pub(crate) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find(['\n', '\r']).unwrap_or(trimmed.len());
        }
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = (usize, Token<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks();
        let (start, rest) = (self.at, self.rest());
        let first = rest.chars().next()?;
        let length = match first {
            '<' => find_iri_end(rest),
            '"' | '\'' => find_string_end(rest),
            _ => find_word_end(rest),
        };
        if let Some(text) = length.and_then(|length| rest.get(..length)) {
            self.at += text.len();
            let token = match first {
                '<' => Token::Iri(text),
                '"' | '\'' => Token::Quoted,
                _ => Token::Word(text),
            };
            return Some((start, token));
        }
        self.at += first.len_utf8();
        Some((start, Token::Symbol(first)))
    }
}

/// Returns the length of an IRI in angle brackets; `None` if the bracket is an operator.
fn find_iri_end(rest: &str) -> Option<usize> {
    let end = rest.find(|c: char| c == '>' || c <= ' ' || "\"{}|^`".contains(c))?;
    rest.get(end..)?.starts_with('>').then_some(end + 1)
}

/// Returns the length of a string with its quotes; `None` if it does not end.
pub(crate) fn find_string_end(rest: &str) -> Option<usize> {
    let quote = rest.get(..1)?;
    let long = quote.repeat(3);
    if rest.starts_with(&long) {
        // Without an end, the parser reads an empty string and then another one.
        return Some(find_delimiter(rest, &long).unwrap_or(2));
    }
    find_delimiter(rest, quote)
}

/// Returns the length of a string with this delimiter at both ends.
fn find_delimiter(rest: &str, delimiter: &str) -> Option<usize> {
    let mut at = delimiter.len();
    loop {
        let rest = rest.get(at..)?;
        let next = rest.chars().next()?;
        if rest.starts_with(delimiter) {
            return Some(at + delimiter.len());
        }
        if delimiter.len() == 1 && matches!(next, '\n' | '\r') {
            return None;
        }
        at += next.len_utf8();
        if next == '\\' {
            at += rest.chars().nth(1).map_or(0, char::len_utf8);
        }
    }
}

/// Returns the length of a keyword, name, variable or number; `None` if there is none.
fn find_word_end(rest: &str) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || "_:?$@%.".contains(c);
    let mut length = 0;
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        length += match character {
            // An escaped character of a name (PN_LOCAL_ESC).
            '\\' if length > 0 => 1 + characters.next().map_or(0, char::len_utf8),
            '-' if length > 0 => 1,
            '.' if length == 0 => break,
            other if is_word(other) => other.len_utf8(),
            _ => break,
        };
    }
    let word = rest.get(..length)?.trim_end_matches('.');
    (!word.is_empty()).then_some(word.len())
}

/// Returns line and column of a byte, both from 1.
pub(crate) fn find_place(text: &str, at: usize) -> (u64, u64) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line as u64, column as u64)
}

#[cfg(test)]
mod tests {
    use super::Token::{Iri, Quoted, Symbol, Word};
    use super::*;

    #[test]
    fn tokens_are_split_as_in_sparql() {
        let text = "# no (\nSELECT ?a<?b {<a:b> 'it\\'s {' \"\"\"x\"{\"\"\" ex:a-b. }";
        let tokens: Vec<_> = Tokens::new(text).map(|(_, token)| token).collect();
        assert_eq!(
            tokens,
            [
                Word("SELECT"),
                Word("?a"),
                Symbol('<'),
                Word("?b"),
                Symbol('{'),
                Iri("<a:b>"),
                Quoted,
                Quoted,
                Word("ex:a-b"),
                Symbol('.'),
                Symbol('}'),
            ]
        );
    }
}
