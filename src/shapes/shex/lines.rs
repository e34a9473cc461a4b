//! The text of a schema in short lines. For each position that it tries, rudof's parser computes the column and copies the
//! line, so its time grows with the square of the length of a line. 5,000 triple constraints in one line took a minute.
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

/// Returns the bytes of the token at the start: of a string, an IRI, a comment or a regular expression, otherwise of one
/// character.
pub(super) fn token_length(text: &str, sign: char) -> usize {
    let after = text.get(sign.len_utf8()..).unwrap_or_default();
    let until = |text: &str, end: &str| text.find(end).map(|at| at + end.len());
    let one = sign.len_utf8();
    match sign {
        '#' => until(text, "\n").unwrap_or(text.len()),
        '/' if after.starts_with('*') => until(text, "*/").unwrap_or(text.len()),
        // An annotation begins with it.
        '/' if after.starts_with('/') => 2,
        '/' => one + quoted_length(after, "/").unwrap_or(0),
        // An IRI has none of these characters; otherwise it is a comparison or not valid.
        '<' => match after.find(|c: char| c <= ' ' || "<>\"{}|^`".contains(c)) {
            Some(end) if after.get(end..).is_some_and(|rest| rest.starts_with('>')) => {
                one + end + 1
            }
            _ => one,
        },
        '"' | '\'' => {
            let triple = sign.to_string().repeat(3);
            if let Some(inner) = text.strip_prefix(triple.as_str()) {
                3 + quoted_length(inner, &triple).unwrap_or(inner.len())
            } else {
                one + quoted_length(after, &sign.to_string()).unwrap_or(0)
            }
        }
        '\\' => one + after.chars().next().map_or(0, char::len_utf8),
        _ => one,
    }
}

/// Returns the bytes up to and with the closing quote; `None` if there is none.
fn quoted_length(text: &str, quote: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with(quote) {
            return Some(at + quote.len());
        }
        let sign = rest.chars().next()?;
        at += sign.len_utf8();
        if sign == '\\' {
            at += text.get(at..)?.chars().next()?.len_utf8();
        }
    }
}

/// Returns the line and the column after this text, both from 1.
pub(super) fn find_position(before: &str) -> (u64, u64) {
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    (line as u64, last.chars().count() as u64 + 1)
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
