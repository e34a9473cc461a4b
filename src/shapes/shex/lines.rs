//! The text of a schema in short lines. For each position that it tries, rudof's parser computes the column and copies the
//! line, so its time grows with the square of the length of a line. 5,000 triple constraints in one line took a minute.
use super::check::{find_position, token_length};
use penstock_base::error::Finding;

/// The maximum number of tokens. The parser cannot be interrupted, and takes up to 0.2 ms for each.
const MAX_TOKENS: usize = 30_000;
/// The maximum sum of the work for lines: the bytes of each by the number of its tokens.
const MAX_LINE_WORK: usize = 8 << 20;

/// A text with more ends of lines than the original, all of them between tokens.
pub(super) struct ShortLines {
    pub(super) text: String,
    /// The bytes of `text` that the original does not have, in order.
    added: Vec<usize>,
}

impl ShortLines {
    /// Divides a text.
    ///
    /// # Errors
    /// The place beyond a limit.
    pub(super) fn divide(original: &str) -> Result<Self, Vec<Finding>> {
        let (mut text, mut added) = (String::with_capacity(original.len()), Vec::new());
        let (mut tokens, mut tokens_of_line, mut line_start, mut work) = (0, 0, 0, 0_usize);
        let (mut rest, mut before) = (original, None);
        while let Some(sign) = rest.chars().next() {
            let refused = |why: String| {
                let at = original.len() - rest.len();
                let (line, column) = find_position(original.get(..at).unwrap_or_default());
                Err(vec![Finding::at_line(line, column, why)])
            };
            let (token, after) = rest.split_at(token_length(rest, sign));
            let is_new_line = matches!(sign, ' ' | '\t' | '\r' | '\n');
            // An IRI may belong to the sign before it, as in `@<S>` and `"1"^^<type>`.
            let may_divide = matches!(before, Some(';' | '|' | '}'))
                || token.starts_with('<')
                    && token.len() > 1
                    && !matches!(before, Some('@' | '^' | '&' | '$' | '~' | '-' | '%') | None);
            let may_divide = may_divide && !before.is_some_and(char::is_whitespace);
            if may_divide && !is_new_line {
                added.push(text.len());
                text.push('\n');
            }
            if is_new_line || may_divide {
                work += (text.len() - line_start).saturating_mul(tokens_of_line);
                (line_start, tokens_of_line) = (text.len(), 0);
            }
            text.push_str(if is_new_line { "\n" } else { token });
            let is_name =
                |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | ':' | '.' | '-');
            let is_in_name = is_name(sign) && before.is_some_and(is_name);
            if !is_new_line && !is_in_name {
                tokens += 1;
                tokens_of_line += 1;
            }
            if tokens > MAX_TOKENS {
                return refused(format!(
                    "the schema has more than {MAX_TOKENS} words, IRIs and signs; divide it into several schemas"
                ));
            }
            if work + (text.len() - line_start).saturating_mul(tokens_of_line) > MAX_LINE_WORK {
                return refused(
                    "the line is too long without white space; write each triple constraint and each value in a line of its own"
                        .to_owned(),
                );
            }
            before = Some(sign);
            rest = after;
        }
        Ok(Self { text, added })
    }

    /// Returns the line and column of the original for those of `text`.
    pub(super) fn find_original(&self, original: &str, line: u64, column: u64) -> (u64, u64) {
        let before = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        let start: usize = self.text.split_inclusive('\n').take(before).map(str::len).sum();
        let in_line = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
        let line = self.text.get(start..).unwrap_or_default();
        let at = start + line.chars().take(in_line).map(char::len_utf8).sum::<usize>();
        let added = self.added.partition_point(|added| *added < at);
        find_position(original.get(..at - added).unwrap_or(original))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_only_between_tokens() {
        for (original, expected) in [
            ("<S> { <p> . }", "<S>\n{\n<p>\n.\n}"),
            (
                "<S>{<p>.;<q>[<a><b>'a b'@en]|<r>@<T>}OR<U>",
                "<S>{\n<p>.;\n<q>[\n<a>\n<b>'a b'@en]|\n<r>@<T>}\nOR\n<U>",
            ),
            (
                "'a ; b' \"\"\"c } d\"\"\"^^<t> # e ; f\n/g h/ {1,2}",
                "'a ; b'\n\"\"\"c } d\"\"\"^^<t>\n# e ; f\n/g h/\n{1,2}",
            ),
            ("a /* b ; c */ d\\;e", "a\n/* b ; c */\nd\\;e"),
        ] {
            assert_eq!(ShortLines::divide(original).unwrap().text, expected);
        }
    }

    #[test]
    fn each_place_is_that_of_the_original() {
        let original = "<Sé>{<p>.;<q> 'ü'\n}OR <U>|x";
        let lines = ShortLines::divide(original).unwrap();
        let (mut line, mut column) = (1, 1);
        let mut characters = original.chars();
        for (at, character) in lines.text.char_indices() {
            if lines.added.binary_search(&at).is_err() {
                let before = original.len() - characters.as_str().len();
                let expected = find_position(&original[..before]);
                assert_eq!(
                    lines.find_original(original, line, column),
                    expected,
                    "{line} {column}"
                );
                characters.next();
            }
            (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        assert_eq!(characters.as_str(), "");
    }
}
