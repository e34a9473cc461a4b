//! Finds the position of the first blank node in a text in Turtle, `TriG`, N-Triples or N-Quads. Their parser returns
//! quads without positions.

/// Finds the first blank node in a text that is passed byte by byte.
#[derive(Debug, Default)]
pub(super) struct FirstBlankNode {
    state: TokenState,
    found: Option<TextPosition>,
}

/// Line and column.
type TextPosition = (u64, u64);

/// The token that the next byte belongs to.
#[derive(Debug, Clone, Copy)]
enum TokenState {
    /// None of the others. `in_name` is true inside a name, because a name may contain `_:`.
    Between { in_name: bool },
    /// A character in a name, escaped by a backslash.
    EscapedInName,
    /// The character after an underscore that may begin a label.
    Underscore(TextPosition),
    /// The white space after an opening parenthesis. `()` is not a blank node; a list with elements is one.
    List(TextPosition),
    /// An IRI.
    Iri,
    /// A comment.
    Comment,
    /// The character after one or two quotes, which may begin a string.
    Quotes { quote: u8, count: u8 },
    /// A string that ends with `ends_with` quotes. The last `seen` characters were such quotes.
    String { quote: u8, ends_with: u8, seen: u8 },
    /// A character in a string, escaped by a backslash.
    EscapedInString { quote: u8, ends_with: u8 },
}

impl Default for TokenState {
    fn default() -> Self {
        Self::Between { in_name: false }
    }
}

impl FirstBlankNode {
    /// Returns the position of the first blank node, if there was one.
    pub(super) fn position(&self) -> Option<TextPosition> {
        self.found
    }

    /// Processes the byte at a position.
    pub(super) fn process_byte(&mut self, byte: u8, place: TextPosition) {
        if self.found.is_none() {
            self.state = self.next_state(byte, place);
        }
    }

    fn next_state(&mut self, byte: u8, place: TextPosition) -> TokenState {
        match (self.state, byte) {
            (TokenState::List(_), b')')
            | (TokenState::Iri, b'>')
            | (TokenState::Comment, b'\n' | b'\r') => TokenState::default(),
            (TokenState::List(_), b' ' | b'\t' | b'\r' | b'\n')
            | (TokenState::Iri | TokenState::Comment, _) => self.state,
            (TokenState::List(begin), _) | (TokenState::Underscore(begin), b':') => {
                self.found = Some(begin);
                TokenState::default()
            }
            (TokenState::EscapedInName | TokenState::Underscore(_), _) => {
                TokenState::Between { in_name: true }
            }
            (TokenState::Between { in_name }, _) => self.next_between(byte, place, in_name),
            (TokenState::Quotes { quote, count: 1 }, _) if byte == quote => {
                TokenState::Quotes { quote, count: 2 }
            }
            (TokenState::Quotes { quote, .. }, _) if byte == quote => {
                TokenState::String { quote, ends_with: 3, seen: 0 }
            }
            // Two quotes without a third: an empty string.
            (TokenState::Quotes { count: 2, .. }, _) => self.next_between(byte, place, false),
            (TokenState::Quotes { quote, .. }, _) => next_in_string(byte, quote, 1, 0),
            (TokenState::String { quote, ends_with, seen }, _) => {
                next_in_string(byte, quote, ends_with, seen)
            }
            (TokenState::EscapedInString { quote, ends_with }, _) => {
                TokenState::String { quote, ends_with, seen: 0 }
            }
        }
    }

    fn next_between(&mut self, byte: u8, place: TextPosition, in_name: bool) -> TokenState {
        match byte {
            b'[' => {
                self.found = Some(place);
                TokenState::default()
            }
            b'(' => TokenState::List(place),
            b'_' if !in_name => TokenState::Underscore(place),
            b'<' => TokenState::Iri,
            b'#' => TokenState::Comment,
            b'"' | b'\'' => TokenState::Quotes { quote: byte, count: 1 },
            b'\\' => TokenState::EscapedInName,
            // A name may contain a full stop.
            b'.' => TokenState::Between { in_name },
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b';' | b']' | b')' | b'{' | b'}' => {
                TokenState::default()
            }
            _ => TokenState::Between { in_name: true },
        }
    }
}

fn next_in_string(byte: u8, quote: u8, ends_with: u8, seen: u8) -> TokenState {
    if byte == b'\\' {
        return TokenState::EscapedInString { quote, ends_with };
    }
    let seen = if byte == quote { seen + 1 } else { 0 };
    if seen == ends_with {
        TokenState::default()
    } else {
        TokenState::String { quote, ends_with, seen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_blank_node_and_no_text_that_looks_like_one() {
        for (text, column) in [
            ("_:a <p> <o> .", Some(1)),
            ("<a_:b> <p> _:o .", Some(12)),
            ("<s><p>_:o.", Some(7)),
            ("<s> <p> \"_:no\", '[', \"\", '', [] .", Some(30)),
            ("<s> <p> \"\"\"a \"\" _:b \\\"\"\"\" , (1) .", Some(29)),
            ("ex:s ex:p ( ) , ex:a_:b , ex:a._:b , ex:\\(x , (  1) .", Some(47)),
            ("ex:s ex:p \"a\"@en, \"1\"^^ex:int, 1.5, true ; ex:q _:x .", Some(49)),
            ("# _:a [\n", None),
            ("ex:s ex:p \"it\\\"s [\" , 'it\\'s _:x' .", None),
            ("{ <s> <p> <o> . } <g> { <s> <p> \"x\" . }", None),
        ] {
            let mut first = FirstBlankNode::default();
            for (at, byte) in text.bytes().enumerate() {
                first.process_byte(byte, (1, at as u64 + 1));
            }
            assert_eq!(first.position().map(|(_, column)| column), column, "{text}");
        }
    }
}
