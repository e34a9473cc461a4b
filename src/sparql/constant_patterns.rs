//! Checks the regular expressions of REGEX and REPLACE that are constants: they are wrong for every row, so they are errors
//! of the request, with their place. Others are errors of their expression.
use crate::syntax::{Token, Tokens, find_place, find_string_end};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::xpath_regex::translate;

/// The functions with a pattern as their second argument, with the number of the argument that has the flags, from 0.
const FUNCTIONS: &[(&str, usize)] = &[("REGEX", 2), ("REPLACE", 3)];

/// Checks the constant patterns of a request that was parsed.
///
/// # Errors
/// [`ErrorClass::Malformed`] with the place of the first one that is not supported.
pub(crate) fn check_constant_patterns(text: &str) -> Result<(), GatewayError> {
    let tokens: Vec<(usize, Token<'_>)> = Tokens::new(text).collect();
    for (place, (_, token)) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let Some((name, place_of_flags)) =
            FUNCTIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word))
        else {
            continue;
        };
        let Some([(_, Token::Symbol('(')), arguments @ ..]) = tokens.get(place + 1..) else {
            continue;
        };
        let arguments = split_arguments(arguments);
        let constant = |argument: &[(usize, Token<'_>)]| match argument {
            [(at, Token::Quoted)] => read_string(text, *at).map(|value| (*at, value)),
            _ => None,
        };
        let Some((at, pattern)) = arguments.get(1).copied().and_then(constant) else { continue };
        let flags = match arguments.get(*place_of_flags) {
            None => String::new(),
            Some(flags) => match constant(flags) {
                Some((_, flags)) => flags,
                None => continue,
            },
        };
        if let Err(why) = translate(&pattern, &flags) {
            let (line, column) = find_place(text, at);
            let finding = Finding::at_line(line, column, format!("the pattern of {name} {why}"));
            return Err(GatewayError::with_findings(
                ErrorClass::Malformed,
                "the request has a regular expression that XPath does not have, or that is not supported",
                vec![finding],
            ));
        }
    }
    Ok(())
}

/// Splits what follows the opening bracket of a call into its arguments.
fn split_arguments<'a, 't>(tokens: &'a [(usize, Token<'t>)]) -> Vec<&'a [(usize, Token<'t>)]> {
    let (mut arguments, mut start, mut open) = (Vec::new(), 0, 0_usize);
    for (place, (_, token)) in tokens.iter().enumerate() {
        let is_end = match token {
            Token::Symbol('(' | '[' | '{') => {
                open += 1;
                false
            }
            Token::Symbol(')' | ']' | '}') if open > 0 => {
                open -= 1;
                false
            }
            Token::Symbol(')') => true,
            Token::Symbol(',') => open == 0,
            _ => false,
        };
        if is_end {
            arguments.extend(tokens.get(start..place));
            start = place + 1;
            if *token == Token::Symbol(')') {
                break;
            }
        }
    }
    arguments
}

/// Returns the value of the string that begins at a byte of the text (SPARQL 1.1, 19.2 and 19.7).
fn read_string(text: &str, at: usize) -> Option<String> {
    let rest = text.get(at..)?;
    let quoted = rest.get(..find_string_end(rest)?)?;
    let quote = quoted.get(..1)?;
    let long = quote.repeat(3);
    let delimiter =
        if quoted.len() >= 2 * long.len() && quoted.starts_with(&long) { &long } else { quote };
    let mut characters = quoted.strip_prefix(delimiter)?.strip_suffix(delimiter)?.chars();
    let mut value = String::new();
    while let Some(character) = characters.next() {
        if character != '\\' {
            value.push(character);
            continue;
        }
        let read = match characters.next()? {
            't' => Ok('\t'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'u' => Err(4),
            'U' => Err(8),
            other => Ok(other),
        };
        value.push(match read {
            Ok(character) => character,
            Err(digits) => {
                let digits: String = characters.by_ref().take(digits).collect();
                char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
            }
        });
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_pattern_that_is_not_supported_is_refused_where_it_is() {
        for (text, line, column) in [
            (r#"SELECT * { FILTER regex(?a, "(?=b)") }"#, 1, 29),
            ("SELECT * { FILTER(\n  REGEX (STR(?a), 'a' , \"z\")) }", 2, 19),
            (r#"ASK { FILTER(REPLACE(CONCAT("a", "b"), """\\bx""", "y") = "") }"#, 1, 40),
            (r#"ASK { FILTER(REGEX(REPLACE("a", "a**", "b"), "b")) }"#, 1, 33),
            (r#"ASK { FILTER(REGEX(?a, "[\u005ba]")) }"#, 1, 24),
        ] {
            let error = check_constant_patterns(text).expect_err(text);
            assert_eq!(error.class, ErrorClass::Malformed);
            let place = format!("line {line}, column {column}:");
            assert!(error.to_string().contains(&place), "{text}: {error}");
        }
    }

    #[test]
    fn other_patterns_are_left_to_the_evaluation() {
        for text in [
            r#"SELECT * { FILTER(REGEX(?a, "^[a-z-[b]]\\.\u0061$", 'i')) }"#,
            r#"SELECT * { FILTER(REGEX(?a, ?b, "z")) FILTER(REGEX(?a, CONCAT("(", "("))) }"#,
            r#"SELECT * { FILTER(REGEX("(", "b", ?c)) FILTER(REPLACE("(", "b", "(") = "(((") }"#,
            r#"SELECT * { FILTER(REGEX("(", "(?=b)"@en)) # REGEX(?a, "(")
                ?regex ex:regex "(" . FILTER(?a IN (REGEX(?a, '''a'b'''), "(", "(")) }"#,
        ] {
            check_constant_patterns(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }
}
