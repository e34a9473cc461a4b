//! Reads the text of a document where the library's parser falls short: it knows no escapes of code points beyond the
//! Basic Multilingual Plane, and keeps only the last of two equal fields of an input object.
use async_graphql::{Pos, ServerError};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

/// A token of a document. White space, commas and comments are between tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'t> {
    kind: TokenKind,
    text: &'t str,
    /// Its offset in the document, in bytes.
    start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    /// A string in quotation marks, up to its end or to that of the line.
    String,
    /// A block string, a name, or one character.
    Other,
}

/// Returns the document with the escapes of surrogate pairs (`\uD83D\uDE00`) and of code points (`\u{1F600}`) replaced
/// (GraphQL, September 2025, 2.9.4). Spaces after the string keep the positions of what follows on the line.
///
/// # Errors
/// Describes an escape that is no Unicode scalar value.
pub(super) fn decode_escapes(document: &str) -> Result<Cow<'_, str>, ServerError> {
    if !document.contains("\\u") {
        return Ok(Cow::Borrowed(document));
    }
    let (mut decoded, mut copied) = (String::new(), 0);
    for token in Tokens::new(document) {
        if token.kind != TokenKind::String || !token.text.contains("\\u") {
            continue;
        }
        let string = decode_string(token.text).map_err(|(offset, why)| {
            ServerError::new(why, Some(find_position(document, token.start + offset)))
        })?;
        let removed = token.text.chars().count().saturating_sub(string.chars().count());
        decoded.push_str(document.get(copied..token.start).unwrap_or_default());
        decoded.push_str(&string);
        decoded.extend(std::iter::repeat_n(' ', removed));
        copied = token.start + token.text.len();
    }
    decoded.push_str(document.get(copied..).unwrap_or_default());
    Ok(Cow::Owned(decoded))
}

/// An open bracket of a document.
enum Bracket<'t> {
    /// A brace around selections.
    Selection,
    /// A brace around an input object, with its fields so far.
    InputObject(HashSet<&'t str>),
    /// A parenthesis around arguments or variables, or a square bracket.
    Values,
}

/// Checks that the fields of every input object differ (GraphQL, 5.6.3), in a document without syntax errors.
///
/// # Errors
/// Names the first field that occurs again.
pub(super) fn check_unique_input_fields(document: &str) -> Result<(), ServerError> {
    let mut open = Vec::new();
    let mut previous = None;
    for token in Tokens::new(document) {
        match (token.text, open.last_mut()) {
            ("{", None | Some(Bracket::Selection)) => open.push(Bracket::Selection),
            ("{", Some(_)) => open.push(Bracket::InputObject(HashSet::new())),
            ("(" | "[", _) => open.push(Bracket::Values),
            ("}" | ")" | "]", _) => drop(open.pop()),
            (":", Some(Bracket::InputObject(fields))) => {
                let name: Token<'_> = previous.unwrap_or(token);
                if !fields.insert(name.text) {
                    return Err(ServerError::new(
                        format!(
                            "the field {} occurs more than once in an input object; keep one, or combine both with `and`",
                            name.text
                        ),
                        Some(find_position(document, name.start)),
                    ));
                }
            }
            _ => {}
        }
        previous = Some(token);
    }
    Ok(())
}

/// Replaces the escapes in a string. An error has the offset of the escape.
fn decode_string(string: &str) -> Result<String, (usize, String)> {
    let (mut decoded, mut rest) = (String::new(), string);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        decoded.push_str(before);
        let read = read_escape(escape).map_err(|why| (string.len() - escape.len(), why))?;
        let length = if let Some((scalar, length)) = read {
            if scalar > '\u{ffff}' {
                decoded.push(scalar);
            } else {
                // A quotation mark or a line break must stay an escape.
                let _ = write!(decoded, "\\u{:04X}", u32::from(scalar));
            }
            length
        } else {
            let length = escape.chars().take(2).map(char::len_utf8).sum();
            decoded.push_str(escape.get(..length).unwrap_or_default());
            length
        };
        rest = escape.get(length..).unwrap_or_default();
    }
    decoded.push_str(rest);
    Ok(decoded)
}

/// Reads an escape that the parser does not know, and its length in bytes. Returns `None` for all others.
fn read_escape(escape: &str) -> Result<Option<(char, usize)>, String> {
    let Some(digits) = escape.strip_prefix("\\u") else { return Ok(None) };
    if let Some(braced) = digits.strip_prefix('{') {
        let (hex, _) = braced
            .split_once('}')
            .ok_or("the escape \\u{ has no closing brace in its string; write \\u{1F600}")?;
        let is_hex = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        let scalar = u32::from_str_radix(hex, 16).ok().filter(|_| is_hex).and_then(char::from_u32);
        let scalar = scalar.ok_or_else(|| {
            let shown: String = hex.chars().take(12).collect();
            format!(
                "the escape \\u{{{shown}}} is not a Unicode scalar value: a hexadecimal number up to 10FFFF, without D800 to DFFF"
            )
        })?;
        return Ok(Some((scalar, "\\u{}".len() + hex.len())));
    }
    let Some(first) = read_code_unit(digits) else { return Ok(None) };
    if !(0xd800..0xe000).contains(&first) {
        return Ok(None);
    }
    let second = digits.get(4..).and_then(|rest| read_code_unit(rest.strip_prefix("\\u")?));
    match char::decode_utf16([first].into_iter().chain(second)).next() {
        Some(Ok(scalar)) => Ok(Some((scalar, "\\uD83D\\uDE00".len()))),
        _ => Err(format!(
            "the escape \\u{first:04X} is half of a surrogate pair without the other half; write both halves, or the code point as \\u{{1F600}}"
        )),
    }
}

/// Reads four hexadecimal digits.
fn read_code_unit(digits: &str) -> Option<u16> {
    let hex = digits.get(..4)?;
    let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { u16::from_str_radix(hex, 16).ok() } else { None }
}

/// Returns the line and column of an offset, as the library counts them.
fn find_position(document: &str, offset: usize) -> Pos {
    let before = document.get(..offset).unwrap_or(document);
    let line = 1 + before.matches('\n').count();
    let column = 1 + before.rsplit(['\n', '\r']).next().map_or(0, |line| line.chars().count());
    Pos { line, column }
}

/// The tokens of a document.
struct Tokens<'t> {
    document: &'t str,
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    fn new(document: &'t str) -> Self {
        Self { document, rest: document }
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        self.rest = self.rest.trim_start_matches([' ', ',', '\t', '\r', '\n', '\u{feff}']);
        while self.rest.starts_with('#') {
            self.rest = self.rest.trim_start_matches(|c| !matches!(c, '\r' | '\n'));
            self.rest = self.rest.trim_start_matches([' ', ',', '\t', '\r', '\n', '\u{feff}']);
        }
        let first = self.rest.chars().next()?;
        let (kind, length) = if let Some(block) = self.rest.strip_prefix("\"\"\"") {
            (TokenKind::Other, 3 + measure_block_string(block))
        } else if first == '"' {
            (TokenKind::String, measure_string(self.rest))
        } else if is_name_character(first) {
            let end = self.rest.find(|c| !is_name_character(c));
            (TokenKind::Other, end.unwrap_or(self.rest.len()))
        } else {
            (TokenKind::Other, first.len_utf8())
        };
        let start = self.document.len() - self.rest.len();
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(Token { kind, text, start })
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the number of bytes up to the end of a block string, without its first quotation marks.
fn measure_block_string(block: &str) -> usize {
    let mut end = 0;
    for part in block.split_inclusive("\"\"\"") {
        end += part.len();
        if !part.ends_with("\\\"\"\"") {
            break;
        }
    }
    end
}

/// Returns the number of bytes of a string with its quotation marks. One without an end goes to the end of its line.
fn measure_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (offset, c) in text.char_indices().skip(1) {
        match c {
            '\r' | '\n' => return offset,
            '"' if !is_escaped => return offset + 1,
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_graphql::parser::parse_query;
    use async_graphql_value::Value;
    use proptest::prelude::*;

    /// Returns the value of the argument of a document with this literal.
    fn parse_literal(literal: &str) -> Result<Value, String> {
        let document = format!("{{ a(b: {literal}) }}");
        let decoded = decode_escapes(&document).map_err(|error| error.message)?;
        let parsed = parse_query(&*decoded).map_err(|error| error.to_string())?;
        let (_, operation) = parsed.operations.iter().next().unwrap();
        match &operation.node.selection_set.node.items[0].node {
            async_graphql::parser::types::Selection::Field(field) => {
                Ok(field.node.arguments[0].1.node.clone())
            }
            _ => unreachable!(),
        }
    }

    #[test]
    fn escapes_of_all_scalar_values_are_read() {
        for (literal, expected) in [
            (r#""\uD83D\uDE00""#, "😀"),
            (r#""\ud83d\ude00!""#, "😀!"),
            (r#""\u{1F600}\u{1f600}""#, "😀😀"),
            (r#""\u{0000000041}\u0042""#, "AB"),
            (r#""\u{22}\u{5C}\u{a}""#, "\"\\\n"),
            (r#""\u{10FFFF}\u{D7FF}\u{E000}""#, "\u{10ffff}\u{d7ff}\u{e000}"),
            // Neither is an escape.
            (r#""\\uD83D""#, "\\uD83D"),
            (r#""\\\uD83D\uDE00\"\\""#, "\\😀\"\\"),
            (r#""""\uD83D \u{1F600}""""#, "\\uD83D \\u{1F600}"),
            (r#""""a \""" \uD83D" """"#, "a \\\"\"\" \\uD83D\" "),
            ("\"\" # \"\\uD83D\"\n", ""),
        ] {
            assert_eq!(parse_literal(literal), Ok(Value::String(expected.to_owned())), "{literal}");
        }
    }

    #[test]
    fn escapes_of_other_code_points_are_refused() {
        for (literal, words) in [
            (r#""\uD83D""#, "the escape \\uD83D is half of a surrogate pair"),
            (r#""\uDE00\uD83D""#, "the escape \\uDE00 is half"),
            (r#""\uD83D\u0041""#, "the escape \\uD83D is half"),
            (r#""\uD83D\\uDE00""#, "the escape \\uD83D is half"),
            (r#""\u{D83D}\u{DE00}""#, "the escape \\u{D83D} is not a Unicode scalar value"),
            (r#""\u{110000}""#, "the escape \\u{110000} is not"),
            (r#""\u{100000041}""#, "the escape \\u{100000041} is not"),
            (r#""\u{}""#, "the escape \\u{} is not"),
            (r#""\u{+41}""#, "the escape \\u{+41} is not"),
            (r#""\u{41""#, "no closing brace"),
        ] {
            let error = parse_literal(literal).unwrap_err();
            assert!(error.contains(words), "{literal}: {error}");
        }
        let error = decode_escapes("{\n  a(b: \"é\\u{1F600} \\uD83D\") }").unwrap_err();
        assert_eq!(error.locations, [Pos { line: 2, column: 20 }]);
        // The parser reports the rest.
        for literal in [r#""\u12""#, r#""\u12G4""#, r#""\x""#, "\"\\u0041\n\""] {
            assert!(parse_literal(literal).is_err(), "{literal}");
        }
    }

    #[test]
    fn positions_after_a_decoded_string_stay() {
        for document in [
            "{ a(b: \"\\uD83D\\uDE00 \\u{1F600}\") { nothing } }",
            "{ a(b: \"\\u{41}\")\r\n b(c: \"\\u{1F600}\") { nothing } }",
        ] {
            let decoded = decode_escapes(document).unwrap();
            let find = |text: &str| find_position(text, text.find("nothing").unwrap());
            assert_eq!(find(&decoded), find(document));
            assert!(parse_query(&*decoded).is_ok(), "{decoded}");
        }
    }

    #[test]
    fn equal_fields_of_an_input_object_are_found() {
        let find = |document: &str| {
            parse_query(document).unwrap();
            check_unique_input_fields(document).err().map(|error| error.locations[0])
        };
        for (document, column) in [
            ("{ a(b: {c: 1, c: 2}) }", 15),
            ("{ a(b: {c: {d: 1}, e: [{c: 1 d: E d: 2}]}) }", 35),
            ("{ a(b: [{}, {c: 1}, {c: \"c: :\" # c:\r c: 1}]) }", 2),
            ("query($a: T = {c: 1 c: 1}) { b }", 21),
            ("{ a @d(b: {c: 1, d: {c: 1}, c: 1}) }", 29),
        ] {
            assert_eq!(find(document), Some(Pos { line: 1, column }), "{document}");
        }
        for document in [
            "{ a: b a: b { c: d, c: d } ... { c: d c: d } }",
            "{ a(b: {c: {c: 1}, d: [{c: 1}, {c: 1}]}, e: {c: 1}) { c: a(b: {c: c}) c: d } }",
            "query($a: T = {c: 1}, $b: T = {c: 1}) @d(c: {c: 1}) { c: b }",
        ] {
            assert_eq!(find(document), None, "{document}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_split_without_a_loss(document in "[\"\\\\u{}D8E0#\\n a😀]{0,60}") {
            let mut covered = 0;
            for token in Tokens::new(&document) {
                prop_assert!(token.start >= covered && !token.text.is_empty());
                covered = token.start + token.text.len();
            }
            prop_assert!(covered <= document.len());
            if let Ok(decoded) = decode_escapes(&document) {
                prop_assert_eq!(document.lines().count(), decoded.lines().count());
            }
        }
    }
}
