//! What is checked before the parser reads a request, which calls itself for each level of nesting.
mod error;

pub(crate) use error::{RequestKind, to_error};

use error::syntax_error;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use std::collections::HashSet;

/// The maximum length of a request, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of brackets that are open at the same time.
const MAX_OPEN_BRACKETS: usize = 100;
/// The maximum number of operators and groups. Each can be one more level of the tree that the parser builds.
const MAX_OPERATORS: usize = 2_000;
/// Words that add a level to the tree.
const OPERATOR_WORDS: &[&str] = &[
    "UNION", "OPTIONAL", "MINUS", "FILTER", "BIND", "LATERAL", "GRAPH", "SERVICE", "EXISTS", "IN",
    "AS",
];
/// Functions whose arguments the parser reads twice, so that nested ones take exponential time.
const SLOW_FUNCTIONS: &[&str] = &["SUBSTR", "REGEX", "REPLACE", "GROUP_CONCAT"];
/// The maximum number of these that are open at the same time.
const MAX_OPEN_SLOW_FUNCTIONS: usize = 8;
/// The maximum number of OPTIONALs. The time of the evaluator's planning grows with their third power.
const MAX_OPTIONALS: usize = 50;
/// The maximum number of tokens. The parser takes some 140 bytes for each, which no limit counts before it ends.
const MAX_TOKENS: usize = 250_000;
/// The maximum number of variables. The parser and the evaluator compare each with all others.
const MAX_VARIABLES: usize = 500;
/// The number of signs in an IRI, or of hyphens in a name, from which it is taken for an expression: in `1<2-3>0` the
/// parser reads no IRI.
const MAX_SIGNS_IN_NAME: usize = 32;

/// A token of a request, as far as this module distinguishes them.
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

/// Returns whether a sign belongs to a number in the position of an object, or in a list. It is no operator there: what
/// comes before is no number.
fn is_sign_of_number(text: &str, at: usize, before: Option<Token<'_>>) -> bool {
    let digit = text.as_bytes().get(at + 1);
    let is_first = match before {
        Some(Token::Iri(_) | Token::Symbol(',')) => true,
        Some(Token::Word(word)) => word.contains(':'),
        _ => false,
    };
    is_first && digit.is_some_and(|digit| digit.is_ascii_digit() || *digit == b'.')
}

/// Counts what may be operators in a word.
fn count_operators_in_word(word: &str) -> usize {
    if OPERATOR_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)) {
        return 1;
    }
    let hyphens = word.matches('-').count();
    let is_name = !word.starts_with(|c: char| c == '?' || c == '$' || c.is_ascii_digit());
    let hyphens = if is_name && hyphens <= MAX_SIGNS_IN_NAME { 0 } else { hyphens };
    // A question mark behind a name is a path.
    hyphens + word.matches('?').count() - usize::from(word.len() > 1 && word.starts_with('?'))
}

/// Counts what may be operators and brackets in an IRI.
fn count_operators_in_iri(iri: &str) -> usize {
    let signs = iri.matches(|c: char| "-+*/=!&(".contains(c)).count();
    if signs <= MAX_SIGNS_IN_NAME { 0 } else { signs }
}

/// An open bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    /// That of a slow function.
    SlowFunction,
    /// The rows of VALUES.
    Values,
    Other,
}

/// Checks that a request is not too long, and not nested too deeply for the parser.
///
/// # Errors
/// [`ErrorClass::TooLarge`] or [`ErrorClass::Malformed`], with the place.
pub(crate) fn check_nesting(text: &str) -> Result<(), GatewayError> {
    if text.len() > MAX_BYTES {
        return Err(GatewayError::new(
            ErrorClass::TooLarge,
            format!("the request has {} bytes; at most {MAX_BYTES} are read", text.len()),
        ));
    }
    let mut open: Vec<Bracket> = Vec::new();
    let mut variables = HashSet::new();
    let (mut operators, mut optionals, mut is_slow, mut is_values) = (0, 0, false, false);
    let mut before = None;
    for (number, (at, token)) in Tokens::new(text).enumerate() {
        let was_slow = std::mem::take(&mut is_slow);
        let before = before.replace(token);
        match token {
            Token::Symbol('+' | '-') if is_sign_of_number(text, at, before) => {}
            Token::Symbol('(') => {
                operators += usize::from(open.last() != Some(&Bracket::Values));
                open.push(if was_slow { Bracket::SlowFunction } else { Bracket::Other });
            }
            Token::Symbol('[') => open.push(Bracket::Other),
            Token::Symbol('{') => {
                let is_rows = std::mem::take(&mut is_values);
                open.push(if is_rows { Bracket::Values } else { Bracket::Other });
                operators += 1;
            }
            Token::Symbol(')' | ']' | '}') => {
                open.pop();
            }
            Token::Symbol('!' | '+' | '-' | '*' | '/' | '^' | '|' | '&' | '=' | '<' | '>')
                if open.last() != Some(&Bracket::Values) =>
            {
                operators += 1;
            }
            Token::Word(word) => {
                operators += count_operators_in_word(word);
                is_slow = SLOW_FUNCTIONS.iter().any(|known| known.eq_ignore_ascii_case(word));
                is_values |= word.eq_ignore_ascii_case("VALUES");
                optionals += usize::from(word.eq_ignore_ascii_case("OPTIONAL"));
                if word.starts_with(['?', '$']) {
                    variables.insert(word);
                }
            }
            Token::Iri(iri) => operators += count_operators_in_iri(iri),
            Token::Symbol(_) | Token::Quoted => {}
        }
        let slow = open.iter().filter(|bracket| **bracket == Bracket::SlowFunction).count();
        let why = if open.len() > MAX_OPEN_BRACKETS {
            format!("more than {MAX_OPEN_BRACKETS} brackets are open here")
        } else if slow > MAX_OPEN_SLOW_FUNCTIONS {
            format!(
                "more than {MAX_OPEN_SLOW_FUNCTIONS} calls of SUBSTR, REGEX, REPLACE and GROUP_CONCAT are nested here"
            )
        } else if operators > MAX_OPERATORS {
            format!("there are more than {MAX_OPERATORS} operators, calls and groups up to here")
        } else if optionals > MAX_OPTIONALS {
            format!("there are more than {MAX_OPTIONALS} OPTIONALs up to here")
        } else if variables.len() > MAX_VARIABLES {
            format!("there are more than {MAX_VARIABLES} variables up to here")
        } else if number >= MAX_TOKENS {
            format!("there are more than {MAX_TOKENS} words and signs up to here")
        } else {
            continue;
        };
        return Err(too_deep(text, at, &why));
    }
    Ok(())
}

/// Checks that no `<` of an expression begins an IRI: `?a<?b&&?c>?d` has the IRI `<?b&&?c>`, because the longest token counts
/// (SPARQL 1.1, section 19.8).
///
/// # Errors
/// [`ErrorClass::Malformed`] with the place of the first one.
pub(crate) fn check_comparisons(text: &str) -> Result<(), GatewayError> {
    let mut are_expressions = Vec::new();
    let mut before = None;
    for (at, token) in Tokens::new(text) {
        let is_in_expression = are_expressions.last() == Some(&true);
        match (before.replace(token), token) {
            (Some(Token::Word(word)), Token::Symbol('(')) => {
                let begins = |keyword: &&str| keyword.eq_ignore_ascii_case(word);
                let is_first = ["FILTER", "BIND", "HAVING"].iter().any(begins);
                are_expressions.push(is_in_expression || is_first);
            }
            (_, Token::Symbol('(')) => are_expressions.push(is_in_expression),
            (_, Token::Symbol('{' | '[')) => are_expressions.push(false),
            (_, Token::Symbol(')' | '}' | ']')) => {
                are_expressions.pop();
            }
            (Some(Token::Word(word)), Token::Iri(iri))
                if is_in_expression && word.starts_with(['?', '$']) =>
            {
                let finding = format!(
                    "`{iri}` is an IRI here; write a space behind `<` if it compares `{word}`"
                );
                return Err(syntax_error(text, at, finding));
            }
            _ => {}
        }
    }
    Ok(())
}

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

fn too_deep(text: &str, at: usize, why: &str) -> GatewayError {
    let (line, column) = find_place(text, at);
    let finding = Finding::at_line(line, column, format!("{why}; split the request"));
    GatewayError::with_findings(
        ErrorClass::Malformed,
        "the SPARQL request is too large or nested too deeply",
        vec![finding],
    )
}

/// Returns line and column of a byte, both from 1.
pub(crate) fn find_place(text: &str, at: usize) -> (u64, u64) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line as u64, column as u64)
}

/// Blanks that follow a text when it is parsed.
const PADDING: &str = "                ";

#[cfg(test)]
mod tests {
    use super::Token::{Iri, Quoted, Symbol, Word};
    use super::*;

    #[test]
    fn a_comparison_that_reads_as_an_iri_is_refused() {
        for (text, column) in [
            ("SELECT * { FILTER (?x<?a&&?b>?y) }", 22),
            ("SELECT * { FILTER(IF((?x<5&&?b>3), 1, 2)) }", 25),
        ] {
            let error = check_comparisons(text).unwrap_err().to_string();
            assert!(error.contains(&format!("column {column}: ")), "{error}");
        }
        for text in [
            "SELECT * { ?x <a:b> ?y FILTER(?x<5 && ?y>3) }",
            "SELECT * { ?s ?p (?x <a:b>) FILTER EXISTS { ?x <a:b> ?y } }",
            "SELECT * { FILTER(?x = <a:b> || ?x<?y||?z>?y || EXISTS { ?x <a:b> ?y }) } ORDER BY ?x <a:f>(?y)",
        ] {
            check_comparisons(text).unwrap();
        }
    }

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
