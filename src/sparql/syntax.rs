//! What is checked before the parser reads a request, which calls itself for each level of nesting.
mod error;
mod prepare;
mod tokens;

pub(crate) use error::{RequestKind, to_error};
pub(crate) use prepare::prepare;
pub(crate) use tokens::{Token, Tokens, find_place, find_string_end};

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

fn too_deep(text: &str, at: usize, why: &str) -> GatewayError {
    let (line, column) = find_place(text, at);
    let finding = Finding::at_line(line, column, format!("{why}; split the request"));
    GatewayError::with_findings(
        ErrorClass::Malformed,
        "the SPARQL request is too large or nested too deeply",
        vec![finding],
    )
}

#[cfg(test)]
mod tests {
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
}
