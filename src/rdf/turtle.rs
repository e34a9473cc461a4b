//! Finds the position of the first blank node in a text in Turtle, `TriG`, N-Triples or N-Quads, because their parser
//! returns quads without positions, and how deep its terms nest.

/// The tokens of a text that is passed byte by byte.
#[derive(Debug, Default)]
pub(super) struct TurtleScanner {
    state: TokenState,
    found: Option<TextPosition>,
    depth: usize,
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
    /// The character after `<`: of an IRI, or `<` again, which begins a triple term or a reifying triple (RDF 1.2).
    Angle,
    /// An IRI.
    Iri,
    /// The character after a `>` that ends no IRI: it is `>`.
    ClosingAngle,
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

impl TurtleScanner {
    /// Returns the position of the first blank node, if there was one.
    pub(super) fn first_blank_node(&self) -> Option<TextPosition> {
        self.found
    }

    /// Returns how many brackets, parentheses and triples are open.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Processes the byte at a position.
    pub(super) fn process_byte(&mut self, byte: u8, place: TextPosition) {
        self.state = self.next_state(byte, place);
    }

    fn next_state(&mut self, byte: u8, place: TextPosition) -> TokenState {
        match (self.state, byte) {
            (TokenState::List(_), b')') | (TokenState::ClosingAngle, b'>') => self.close(),
            (TokenState::Angle, b'<') => self.open(),
            (TokenState::Angle | TokenState::Iri, b'>')
            | (TokenState::Comment, b'\n' | b'\r')
            | (TokenState::ClosingAngle, _) => TokenState::default(),
            (TokenState::Angle, _) => TokenState::Iri,
            (TokenState::List(_), b' ' | b'\t' | b'\r' | b'\n')
            | (TokenState::Iri | TokenState::Comment, _) => self.state,
            (TokenState::List(begin), _) => {
                self.found.get_or_insert(begin);
                self.next_between(byte, place, false)
            }
            (TokenState::Underscore(begin), b':') => {
                self.found.get_or_insert(begin);
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
                self.found.get_or_insert(place);
                self.open()
            }
            b'(' => {
                self.open();
                TokenState::List(place)
            }
            b']' | b')' => self.close(),
            b'>' => TokenState::ClosingAngle,
            b'_' if !in_name => TokenState::Underscore(place),
            b'<' => TokenState::Angle,
            b'#' => TokenState::Comment,
            b'"' | b'\'' => TokenState::Quotes { quote: byte, count: 1 },
            b'\\' => TokenState::EscapedInName,
            // A name may contain a full stop.
            b'.' => TokenState::Between { in_name },
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b';' | b'{' | b'}' => TokenState::default(),
            _ => TokenState::Between { in_name: true },
        }
    }

    fn open(&mut self) -> TokenState {
        self.depth += 1;
        TokenState::default()
    }

    fn close(&mut self) -> TokenState {
        self.depth = self.depth.saturating_sub(1);
        TokenState::default()
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
            let mut first = TurtleScanner::default();
            for (at, byte) in text.bytes().enumerate() {
                first.process_byte(byte, (1, at as u64 + 1));
            }
            assert_eq!(first.depth(), 0, "{text}");
            assert_eq!(first.first_blank_node().map(|(_, column)| column), column, "{text}");
        }
    }

    #[test]
    fn counts_open_brackets_outside_of_strings_iris_and_comments() {
        for (text, depth) in [
            ("<s> <p> <<( <s> <p> <<( <s> <p> <o>", 4),
            ("<s> <p> <<(<s> <p> <<(<s> <p> <o>)>> )>> .", 0),
            ("<<<s><p><o>>> <p> <o> .", 0),
            ("<s> <p> ((( 1 [ <p> [", 5),
            ("<s> <p> \"[[[\", '''((''' , <((> . # [[[", 0),
            ("_:a <p> [ <q> _:b ], (_:c) .", 0),
        ] {
            let mut scanner = TurtleScanner::default();
            text.bytes().for_each(|byte| scanner.process_byte(byte, (1, 1)));
            assert_eq!(scanner.depth(), depth, "{text}");
        }
    }
}
