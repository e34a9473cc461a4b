//! Regular expressions of `XPath` (`XPath` and `XQuery` Functions 3.1, 5.6; XML Schema 1.1 Part 2, appendix G), as SPARQL,
//! SHACL and `ShEx` use them. [`translate`] writes them in the syntax of the crate `regex`, which reads some constructs in
//! another way: `-[`, `&&`, `--` and `~~` in a class, `\w`, `\s`, `.`, `\<`, and `#` under the flag `x`.
//!
//! What cannot be translated is refused by name: it never gets another meaning.
mod case;
mod characters;
mod class;
mod escape;

pub use characters::RegexError;

use case::push_case_variants;
use characters::{Characters, push_escaped, shorten};
use class::parse_class;
use escape::{Escape, parse_escape};

/// The maximum length of a regular expression in bytes. A longer one is too large when it is compiled.
const MAX_BYTES: usize = 64 << 10;
/// The maximum number of groups in each other.
const MAX_OPEN_GROUPS: usize = 40;

/// Translates a regular expression with these flags (5.6.2) to the syntax of the crate `regex` without flags.
///
/// # Errors
/// The first construct that is not valid or not supported, with its position.
pub fn translate(pattern: &str, flags: &str) -> Result<String, RegexError> {
    if let Some(unknown) = flags.chars().find(|flag| !"smixq".contains(*flag)) {
        let message = format!("has the flag {unknown:?}; the flags s, m, i, x and q are known");
        return Err(RegexError { message });
    }
    if pattern.len() > MAX_BYTES {
        let message = format!(
            "has {} bytes, and at most {MAX_BYTES} are allowed; use a shorter one",
            pattern.len()
        );
        return Err(RegexError { message });
    }
    let has = |flag| flags.contains(flag);
    let mut translation = Translation {
        characters: Characters::new(pattern, has('x') && !has('q')),
        output: String::with_capacity(pattern.len()),
        is_dot_any: has('s'),
        is_multiline: has('m'),
        is_case_insensitive: has('i'),
        open_groups: Vec::new(),
    };
    if has('q') {
        while let Some((_, character)) = translation.characters.next() {
            translation.push_literal(character);
        }
    } else {
        translation.translate()?;
    }
    Ok(translation.output)
}

struct Translation {
    characters: Characters,
    output: String,
    is_dot_any: bool,
    is_multiline: bool,
    is_case_insensitive: bool,
    /// The positions of the groups that are open.
    open_groups: Vec<usize>,
}

impl Translation {
    fn translate(&mut self) -> Result<(), RegexError> {
        let mut can_repeat = false;
        while let Some((position, character)) = self.characters.next() {
            match character {
                '?' | '*' | '+' | '{' => {
                    self.translate_quantifier(position, character, can_repeat)?;
                    can_repeat = false;
                    continue;
                }
                '|' => {
                    self.output.push('|');
                    can_repeat = false;
                    continue;
                }
                '(' => {
                    self.open_group(position)?;
                    can_repeat = false;
                    continue;
                }
                ')' => {
                    if self.open_groups.pop().is_none() {
                        let why = r"no group is open; write \) for the character";
                        return Err(RegexError::new("the bracket `)`", position, why));
                    }
                    self.output.push(')');
                }
                '[' => {
                    parse_class(&mut self.characters, position, 0)?
                        .write(self.is_case_insensitive, &mut self.output);
                }
                '\\' => match parse_escape(&mut self.characters, position)? {
                    Escape::Character(character) => self.push_literal(character),
                    Escape::Class(class) => self.output.push_str(&class),
                },
                '.' => self.output.push_str(if self.is_dot_any { "(?s:.)" } else { r"[^\n\r]" }),
                '^' => self.output.push_str(if self.is_multiline { "(?m:^)" } else { "^" }),
                '$' => self.output.push_str(if self.is_multiline { "(?m:$)" } else { "$" }),
                other => self.push_literal(other),
            }
            can_repeat = true;
        }
        match self.open_groups.last() {
            None => Ok(()),
            Some(position) => {
                let why = r"it is not closed; write \( for the character";
                Err(RegexError::new("the bracket `(`", *position, why))
            }
        }
    }

    fn push_literal(&mut self, character: char) {
        let start = self.output.len();
        push_escaped(character, &mut self.output);
        if self.is_case_insensitive && push_case_variants(character, &mut self.output) {
            self.output.insert(start, '[');
            self.output.push(']');
        }
    }

    fn open_group(&mut self, position: usize) -> Result<(), RegexError> {
        if self.open_groups.len() == MAX_OPEN_GROUPS {
            let why = format!(
                "more than {MAX_OPEN_GROUPS} groups are in each other; write the inner ones without brackets"
            );
            return Err(RegexError::new("the bracket `(`", position, &why));
        }
        self.open_groups.push(position);
        self.output.push('(');
        if !self.characters.take('?') {
            return Ok(());
        }
        if self.characters.take(':') {
            self.output.push_str("?:");
            return Ok(());
        }
        let next = self.characters.next().map(|(_, character)| character);
        let after = self.characters.peek();
        let (construct, why) = match (next, after) {
            (Some('='), _) => ("the look-ahead `(?=`", NO_LOOK_AROUND),
            (Some('!'), _) => ("the negative look-ahead `(?!`", NO_LOOK_AROUND),
            (Some('<'), Some('=')) => ("the look-behind `(?<=`", NO_LOOK_AROUND),
            (Some('<'), Some('!')) => ("the negative look-behind `(?<!`", NO_LOOK_AROUND),
            (Some('<' | 'P'), _) => {
                ("a named group `(?<`", "XPath does not have it; write the group without a name")
            }
            (Some('>'), _) => {
                ("the atomic group `(?>`", "XPath does not have it; write a group with (?:")
            }
            (Some('#'), _) => ("the comment `(?#`", "XPath does not have it; leave it out"),
            _ => (
                "flags in a group `(?`",
                "XPath does not have them; give the flags s, m, i, x and q beside the expression",
            ),
        };
        Err(RegexError::new(construct, position, why))
    }

    /// Translates a quantifier (appendix G, production 4) that begins with this character.
    fn translate_quantifier(
        &mut self,
        position: usize,
        character: char,
        can_repeat: bool,
    ) -> Result<(), RegexError> {
        if !can_repeat {
            let construct = format!("the quantifier `{character}`");
            let why = format!(
                "there is nothing before it to repeat; write \\{character} for the character"
            );
            return Err(RegexError::new(&construct, position, &why));
        }
        self.output.push(character);
        if character == '{' {
            let quantity = self.characters.take_while(|character| character != '}');
            if !self.characters.take('}') || !is_quantity(&quantity) {
                let construct = format!("the quantifier `{{{}`", shorten(&quantity));
                let why =
                    r"it is none of {n}, {n,} and {n,m} with n up to m; write \{ for the character";
                return Err(RegexError::new(&construct, position, why));
            }
            self.output.push_str(&quantity);
            self.output.push('}');
        }
        if self.characters.take('?') {
            self.output.push('?');
        }
        Ok(())
    }
}

const NO_LOOK_AROUND: &str =
    "XPath does not have it; use two expressions, or a class subtraction such as [a-z-[x]]";

/// Returns whether a text is `n`, `n,` or `n,m`.
fn is_quantity(text: &str) -> bool {
    let read = |digits: &str| {
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|_| is_number)
    };
    match text.split_once(',') {
        None => read(text).is_some(),
        Some((min, "")) => read(min).is_some(),
        Some((min, max)) => read(min).zip(read(max)).is_some_and(|(least, most)| least <= most),
    }
}

#[cfg(test)]
mod tests;
