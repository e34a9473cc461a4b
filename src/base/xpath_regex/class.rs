//! Character class expressions: `[a-z-[aeiou]]` (XML Schema 1.1 Part 2, appendix G.4.1).
use super::case::add_case_variants;
use super::characters::{Characters, RegexError, push_escaped};
use super::escape::{Escape, parse_escape};

/// The maximum number of class subtractions in each other.
const MAX_SUBTRACTIONS: usize = 10;

/// A character class expression.
pub(super) struct Class {
    is_negated: bool,
    /// Characters and ranges of them.
    ranges: Vec<(char, char)>,
    /// Escapes such as `\p{L}`, in the syntax of `regex`.
    escapes: Vec<String>,
    subtracted: Option<Box<Class>>,
}

impl Class {
    /// Appends the class. A class of `regex` has the same syntax, but `--` for subtraction, and other characters to escape.
    pub(super) fn write(mut self, is_case_insensitive: bool, output: &mut String) {
        if is_case_insensitive {
            add_case_variants(&mut self.ranges);
        }
        if self.subtracted.is_some() {
            output.push('[');
        }
        output.push_str(if self.is_negated { "[^" } else { "[" });
        for (first, last) in self.ranges {
            push_escaped(first, output);
            if first != last {
                output.push('-');
                push_escaped(last, output);
            }
        }
        for escape in self.escapes {
            output.push_str(&escape);
        }
        output.push(']');
        if let Some(subtracted) = self.subtracted {
            output.push_str("--");
            subtracted.write(is_case_insensitive, output);
            output.push(']');
        }
    }
}

/// Parses what follows the bracket at this position, with the closing bracket.
///
/// # Errors
/// The first construct that is not valid.
pub(super) fn parse_class(
    characters: &mut Characters,
    start: usize,
    depth: usize,
) -> Result<Class, RegexError> {
    let is_negated = characters.take('^');
    let mut class = Class { is_negated, ranges: Vec::new(), escapes: Vec::new(), subtracted: None };
    loop {
        let is_empty = class.ranges.is_empty() && class.escapes.is_empty();
        let Some((position, character)) = characters.next() else {
            let why = r"it is not closed; write \[ for the character";
            return Err(RegexError::new("the bracket `[`", start, why));
        };
        match character {
            ']' if is_empty => {
                let why = r"it has no character; write \] for a bracket in a class";
                return Err(RegexError::new("an empty class", start, why));
            }
            ']' => return Ok(class),
            '-' if !is_empty && characters.take('[') => {
                if depth == MAX_SUBTRACTIONS {
                    let why = format!(
                        "more than {MAX_SUBTRACTIONS} are in each other; subtract one class with all of their characters"
                    );
                    return Err(RegexError::new("a class subtraction `-[`", position, &why));
                }
                let subtracted = parse_class(characters, position + 1, depth + 1)?;
                class.subtracted = Some(Box::new(subtracted));
                if characters.take(']') {
                    return Ok(class);
                }
                let why = "a class ends after it; write what follows before it";
                return Err(RegexError::new("a class subtraction `-[`", position, why));
            }
            '[' => {
                let why = r"a class has neither classes such as [:alpha:] nor intersections; write \[ for the character, and -[…] at the end of a class to subtract";
                return Err(RegexError::new("the bracket `[` in a class", position, why));
            }
            '\\' => match parse_escape(characters, position)? {
                Escape::Character(first) => {
                    class.ranges.push(parse_range(characters, position, first)?);
                }
                Escape::Class(escape) => class.escapes.push(escape),
            },
            first => class.ranges.push(parse_range(characters, position, first)?),
        }
    }
}

/// Returns the range that begins with a character, or only the character. A hyphen before `]` or `[` makes no range.
fn parse_range(
    characters: &mut Characters,
    position: usize,
    first: char,
) -> Result<(char, char), RegexError> {
    let is_range = characters.peek() == Some('-')
        && match characters.peek_after(1) {
            None | Some('[' | ']') => false,
            Some('-') => characters.peek_after(2) != Some('['),
            Some(_) => true,
        };
    if !is_range {
        return Ok((first, first));
    }
    characters.next();
    let last = match characters.next() {
        Some((position, '\\')) => match parse_escape(characters, position)? {
            Escape::Character(last) => Some(last),
            Escape::Class(_) => None,
        },
        next => next.map(|(_, last)| last),
    };
    match last {
        Some(last) if first <= last => Ok((first, last)),
        Some(last) => {
            let construct = format!("the range `{first}-{last}`");
            let why = r"its last character comes before its first one; write \- for a hyphen";
            Err(RegexError::new(&construct, position, why))
        }
        None => {
            let construct = format!("the range from `{first}`");
            let why = r"it ends with a class, not with a character; write \- for a hyphen";
            Err(RegexError::new(&construct, position, why))
        }
    }
}
