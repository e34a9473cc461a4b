//! Writes the YAML of a derived mapping.
use super::seen::{Guess, Seen};
use super::{Derived, Note};
use oxrdf::NamedNode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The maximum length of a field's name in characters.
const LONGEST_NAME: usize = 256;
/// The maximum length in characters of a derived namespace name.
const LONGEST_SPACE: usize = 48;
/// The number of namespaces after which further objects share one.
const MOST_SPACES: usize = 900;
/// The maximum number of notes.
const MOST_NOTES: usize = 100;

/// Writes a mapping as YAML.
pub(super) struct Writer<'v> {
    vocabulary: &'v str,
    out: String,
    notes: Vec<Note>,
    /// The names of the namespaces so far.
    spaces: HashSet<String>,
}

impl<'v> Writer<'v> {
    pub(super) fn new(vocabulary: &'v str) -> Self {
        Self { vocabulary, out: String::new(), notes: Vec::new(), spaces: HashSet::new() }
    }

    pub(super) fn done(self) -> Derived {
        Derived { config: self.out, notes: self.notes }
    }

    /// Writes the whole mapping for the objects in `seen`.
    pub(super) fn root(&mut self, name: &str, seen: &Seen<'_>) {
        let vocabulary = quoted(self.vocabulary);
        let space = self.space(name, "");
        self.line(0, "prefixes:");
        self.line(2, &format!("v: {vocabulary}"));
        self.line(0, "type: object");
        self.line(0, &format!("path: {space}:."));
        if seen.id().is_none() {
            self.note(
                "",
                "No field holds the objects' URIs, so each object sent without `uri` is stored as a new object with \
                 its own URI. Send `uri` to update a stored object.",
            );
        }
        self.fields(0, seen, &space, "");
    }

    /// Writes the `fields` of an object in this namespace.
    fn fields(&mut self, indent: usize, seen: &Seen<'_>, space: &str, place: &str) {
        self.line(indent, "fields:");
        let id = seen.id();
        let mut has_value = false;
        for (name, member) in &seen.members {
            let place =
                if place.is_empty() { (*name).to_owned() } else { format!("{place}.{name}") };
            if id == Some(name) {
                self.line(indent + 2, &format!("{}:", key(name)));
                self.line(indent + 4, "type: id");
            } else if let Some(why) = unfit(name) {
                self.misfit(&place, format!("The field is left out: {why}."));
            } else {
                has_value |= self.field(indent + 2, name, member, space, &place);
            }
        }
        if !has_value {
            let name = (1..).map(|n| if n == 1 { "name".to_owned() } else { format!("name{n}") });
            let name = name.into_iter().find(|name| !seen.has(name)).unwrap_or_default();
            self.note(
                place,
                &format!("The samples have no value here. `{name}` is a placeholder, because an object needs a field."),
            );
            self.line(indent + 2, &format!("{name}:"));
            self.single(indent + 4, "string", &name);
        }
    }

    /// Writes one field. Returns false if the mapping cannot have it.
    fn field(
        &mut self,
        indent: usize,
        name: &str,
        seen: &Seen<'_>,
        space: &str,
        place: &str,
    ) -> bool {
        let inside = indent + 2;
        let Some(guess) = seen.guess() else {
            self.note(place, "The samples have no value here, so the type is string.");
            self.line(indent, &format!("{}:", key(name)));
            self.single(inside, "string", name);
            return true;
        };
        let elements = seen.elements().filter(|_| guess == Guess::Array);
        if elements.and_then(Seen::guess) == Some(Guess::Array) {
            self.misfit(
                place,
                "The field is left out: it holds arrays in arrays, which RDF cannot represent."
                    .to_owned(),
            );
            return false;
        }
        self.say_others(seen, guess, place);
        self.line(indent, &format!("{}:", key(name)));
        match (guess, elements.and_then(|elements| Some((elements.guess()?, elements)))) {
            (Guess::Single(kind), _) => self.single(inside, kind, name),
            (Guess::Object, _) => {
                let inner = self.space(name, space);
                self.line(inside, "type: object");
                self.line(inside, &format!("path: v:{}/{inner}:.", self.local(name)));
                self.fields(inside, seen, &inner, place);
            }
            (Guess::Array, None) => {
                self.note(
                    place,
                    "The arrays are empty in the samples, so the type of their elements is string.",
                );
                self.single(inside, "array", name);
            }
            (Guess::Array, Some((guess, elements))) => {
                self.say_others(elements, guess, place);
                self.single(inside, "array", name);
                self.line(inside, "elements:");
                if let Guess::Single(kind) = guess {
                    self.line(inside + 2, &format!("type: {kind}"));
                } else {
                    let inner = self.space(name, space);
                    self.line(inside + 2, "type: object");
                    self.line(inside + 2, &format!("path: {inner}:."));
                    self.fields(inside + 2, elements, &inner, place);
                }
            }
        }
        true
    }

    /// Writes the `type` and `path` of a field.
    fn single(&mut self, indent: usize, kind: &str, name: &str) {
        self.line(indent, &format!("type: {kind}"));
        self.line(indent, &format!("path: v:{}", self.local(name)));
    }

    fn say_others(&mut self, seen: &Seen<'_>, guess: Guess, place: &str) {
        let kind = match guess {
            Guess::Single(kind) => kind,
            Guess::Object => "object",
            Guess::Array => "array",
        };
        if let Some(others) = seen.others() {
            self.misfit(
                place,
                format!(
                    "The type in the mapping is `{kind}`, but the samples also contain {others}."
                ),
            );
        }
    }

    /// Returns the name of a new namespace, named after a field.
    fn space(&mut self, name: &str, parent: &str) -> String {
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let pascal: String = words.flat_map(capitalized).take(LONGEST_SPACE).collect();
        let pascal = if pascal.is_empty() { "Object".to_owned() } else { pascal };
        if self.spaces.len() >= MOST_SPACES {
            return "Part".to_owned();
        }
        let longer: String = parent.chars().chain(pascal.chars()).take(LONGEST_SPACE).collect();
        let numbered = (2..).map(|n| format!("{pascal}{n}"));
        let mut all = [pascal.clone(), longer].into_iter().chain(numbered);
        let free = all.find(|name| !self.spaces.contains(name)).unwrap_or_default();
        self.spaces.insert(free.clone());
        free
    }

    /// Returns the local name of a field's property, as written in a path. Different fields have different names.
    fn local(&self, name: &str) -> String {
        let mut local = String::with_capacity(name.len());
        for c in name.chars() {
            if c.is_alphanumeric() || matches!(c, '-' | '_' | '~') || (c == '.' && name != ".") {
                local.push(c);
            } else {
                local.extend(utf8_percent_encode(c.encode_utf8(&mut [0; 4]), NON_ALPHANUMERIC));
            }
        }
        if name == "." {
            "%2E".clone_into(&mut local);
        }
        // An IRI may not contain every letter (RFC 3987, 2.2).
        match NamedNode::new(format!("{}{local}", self.vocabulary)) {
            Ok(_) => local,
            Err(_) => utf8_percent_encode(name, NON_ALPHANUMERIC).to_string(),
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.out, "{:indent$}{text}", "");
    }

    fn note(&mut self, field: &str, message: &str) {
        self.say(field, message.to_owned(), false);
    }

    /// Adds a note that something in the samples does not fit the mapping.
    pub(super) fn misfit(&mut self, field: &str, message: String) {
        self.say(field, message, true);
    }

    fn say(&mut self, field: &str, message: String, misfit: bool) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(Note { field: field.to_owned(), message, misfit });
        }
    }
}

/// Returns why a mapping cannot have a field of this name.
fn unfit(name: &str) -> Option<&'static str> {
    if name == "uri" {
        Some(
            "`uri` is reserved for the object's own URI, which must be an absolute IRI; give the field another name",
        )
    } else if name.is_empty() {
        Some("its name is empty")
    } else if name.chars().any(char::is_control) {
        Some("its name contains a control character")
    } else if name.chars().count() > LONGEST_NAME {
        Some("its name is longer than 256 characters")
    } else {
        None
    }
}

fn capitalized(word: &str) -> impl Iterator<Item = char> {
    let mut chars = word.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars.collect::<Vec<_>>())
}

/// Writes a name as the key of a YAML mapping, quoted if necessary.
fn key(name: &str) -> String {
    const WORDS: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !WORDS.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { name.to_owned() } else { quoted(name) }
}

/// Writes a text in double quotes, with YAML's escapes (YAML 1.2, 7.3.1).
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // Printable characters that are not a line break in any version of YAML.
            ' '..='~'
            | '\u{a0}'..='\u{2027}'
            | '\u{202a}'..='\u{d7ff}'
            | '\u{e000}'..='\u{fefe}'
            | '\u{ff00}'..='\u{fffd}'
            | '\u{10000}'.. => out.push(c),
            c => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}
