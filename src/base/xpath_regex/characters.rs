//! The characters of an expression, and the errors about them.
use std::fmt;

/// The characters that have a meaning in the syntax of `regex`.
const META_CHARACTERS: &str = r"\.+*?()|[]{}^$#&-~";

/// Why a regular expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegexError {
    /// The construct, the reason and the remedy.
    pub(super) message: String,
}

impl RegexError {
    /// `position` is that of the construct in the expression, from 0. `reason` ends with the remedy.
    pub(super) fn new(construct: &str, position: usize, reason: &str) -> Self {
        Self { message: format!("has {construct} at character {}: {reason}", position + 1) }
    }
}

/// The end of a sentence about the expression.
impl fmt::Display for RegexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RegexError {}

/// The characters of an expression, each with its position from 0.
pub(super) struct Characters {
    characters: Vec<(usize, char)>,
    next: usize,
}

impl Characters {
    /// `is_extended` omits white space outside of classes, before anything else is read (the flag `x`).
    pub(super) fn new(pattern: &str, is_extended: bool) -> Self {
        let (mut characters, mut open_classes, mut is_escaped) = (Vec::new(), 0_usize, false);
        for (position, character) in pattern.chars().enumerate() {
            if is_extended && open_classes == 0 && is_white_space(character) {
                continue;
            }
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '[' => open_classes += 1,
                ']' => open_classes = open_classes.saturating_sub(1),
                _ => {}
            }
            characters.push((position, character));
        }
        Self { characters, next: 0 }
    }

    pub(super) fn next(&mut self) -> Option<(usize, char)> {
        let next = self.characters.get(self.next).copied();
        self.next += usize::from(next.is_some());
        next
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.peek_after(0)
    }

    /// Returns the character after this number of characters.
    pub(super) fn peek_after(&self, count: usize) -> Option<char> {
        self.characters.get(self.next + count).map(|(_, character)| *character)
    }

    /// Takes the next character if it is this one.
    pub(super) fn take(&mut self, sought: char) -> bool {
        let is_next = self.peek() == Some(sought);
        self.next += usize::from(is_next);
        is_next
    }

    /// Takes the next characters for which `is_wanted` holds.
    pub(super) fn take_while(&mut self, is_wanted: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(character) = self.peek().filter(|character| is_wanted(*character)) {
            taken.push(character);
            self.next += 1;
        }
        taken
    }
}

fn is_white_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// Returns the beginning of a text that an error names.
pub(super) fn shorten(text: &str) -> String {
    text.chars().take(20).collect()
}

/// Appends a character as itself, within classes and outside of them.
pub(super) fn push_escaped(character: char, output: &mut String) {
    if META_CHARACTERS.contains(character) {
        output.push('\\');
    }
    output.push(character);
}
