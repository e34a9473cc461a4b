//! What is checked before the parser reads a request, which calls itself for each level of nesting.
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use spargebra::SparqlSyntaxError;

/// The maximum length of a request, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of brackets that are open at the same time.
const MAX_OPEN_BRACKETS: usize = 100;
/// The maximum number of operators and groups. Each can be one more level of the tree that the parser builds.
const MAX_OPERATORS: usize = 5_000;
/// Words that add a level to the tree.
const OPERATOR_WORDS: &[&str] = &[
    "UNION", "OPTIONAL", "MINUS", "FILTER", "BIND", "LATERAL", "GRAPH", "SERVICE", "EXISTS", "IN",
];

/// A token of a request, as far as this module distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    /// A keyword, name, variable or number.
    Word(&'t str),
    /// An IRI or a string.
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
        let (length, is_quoted) = match first {
            '<' => (find_iri_end(rest), true),
            '"' | '\'' => (find_string_end(rest), true),
            _ => (None, false),
        };
        if let Some(length) = length.filter(|_| is_quoted) {
            self.at += length;
            return Some((start, Token::Quoted));
        }
        let is_word = |c: char| c.is_alphanumeric() || "_:?$@%.\\".contains(c);
        let is_name = |c: char| is_word(c) || c == '-';
        let length = match first {
            first if is_word(first) && first != '.' => {
                let word = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                rest.get(..word).map_or(word, |word| word.trim_end_matches('.').len().max(1))
            }
            _ => 0,
        };
        if length > 0 {
            self.at += length;
            return Some((start, Token::Word(rest.get(..length).unwrap_or_default())));
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

/// Returns the length of a string with its quotes; that of the whole rest if it does not end.
fn find_string_end(rest: &str) -> Option<usize> {
    let quote = rest.get(..1)?;
    let long = quote.repeat(3);
    let delimiter = if rest.starts_with(&long) { long.as_str() } else { quote };
    let mut at = delimiter.len();
    loop {
        let Some(rest) = rest.get(at..).filter(|rest| !rest.is_empty()) else { return Some(at) };
        if rest.starts_with('\\') {
            at += 1 + rest.chars().nth(1).map_or(0, char::len_utf8);
        } else if rest.starts_with(delimiter) {
            return Some(at + delimiter.len());
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
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
    let (mut open, mut operators) = (0_usize, 0_usize);
    for (at, token) in Tokens::new(text) {
        match token {
            Token::Symbol('(' | '[') => open += 1,
            Token::Symbol('{') => {
                open += 1;
                operators += 1;
            }
            Token::Symbol(')' | ']' | '}') => open = open.saturating_sub(1),
            Token::Symbol('!' | '+' | '-' | '*' | '/' | '^' | '|' | '&' | '=' | '<' | '>') => {
                operators += 1;
            }
            Token::Word(word)
                if OPERATOR_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)) =>
            {
                operators += 1;
            }
            Token::Symbol(_) | Token::Word(_) | Token::Quoted => {}
        }
        if open > MAX_OPEN_BRACKETS {
            return Err(too_deep(
                text,
                at,
                &format!("more than {MAX_OPEN_BRACKETS} brackets are open here"),
            ));
        }
        if operators > MAX_OPERATORS {
            return Err(too_deep(
                text,
                at,
                &format!("there are more than {MAX_OPERATORS} operators and groups up to here"),
            ));
        }
    }
    Ok(())
}

fn too_deep(text: &str, at: usize, why: &str) -> GatewayError {
    let (line, column) = find_place(text, at);
    let finding = Finding::at_line(line, column, format!("{why}; split the request"));
    GatewayError::with_findings(
        ErrorClass::Malformed,
        "the SPARQL request is nested too deeply",
        vec![finding],
    )
}

/// Returns line and column of a byte, both from 1.
fn find_place(text: &str, at: usize) -> (u64, u64) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line as u64, column as u64)
}

/// Converts an error of the parser, whose message is `error at LINE:COLUMN: expected …`.
pub(crate) fn to_error(error: &SparqlSyntaxError) -> GatewayError {
    let message = error.to_string();
    let place = message.strip_prefix("error at ").and_then(|rest| {
        let (place, expected) = rest.split_once(": ")?;
        let (line, column) = place.split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?, expected))
    });
    let detail = "the SPARQL request has a syntax error";
    match place {
        Some((line, column, expected)) => GatewayError::with_findings(
            ErrorClass::Malformed,
            detail,
            vec![Finding::at_line(line, column, expected)],
        ),
        None => GatewayError::new(ErrorClass::Malformed, format!("{detail}: {message}")),
    }
}
