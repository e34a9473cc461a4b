//! Writes the YAML of a derived mapping.
use super::seen::{GuessedType, SeenValues};
use super::{DerivationNote, DerivedMapping};
use oxrdf::NamedNode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The maximum length of a field's name in characters.
const MAX_FIELD_NAME_CHARACTERS: usize = 256;
/// The maximum length in characters of a derived namespace name.
const MAX_DERIVED_NAMESPACE_CHARACTERS: usize = 48;
/// The maximum number of derived namespaces. All further objects share the namespace `Part`.
const MAX_DERIVED_NAMESPACES: usize = 900;
/// The names of fields that hold the name of an object, the most obvious one first.
const LABEL_NAMES: [&str; 4] = ["label", "name", "displayName", "title"];
/// The maximum number of notes.
const MAX_NOTES: usize = 100;

/// Writes a mapping as YAML.
pub(super) struct MappingWriter<'v> {
    vocabulary: &'v str,
    out: String,
    notes: Vec<DerivationNote>,
    /// The names of the namespaces so far.
    namespaces: HashSet<String>,
}

impl<'v> MappingWriter<'v> {
    pub(super) fn new(vocabulary: &'v str) -> Self {
        Self { vocabulary, out: String::new(), notes: Vec::new(), namespaces: HashSet::new() }
    }

    pub(super) fn finish(self) -> DerivedMapping {
        DerivedMapping { config: self.out, notes: self.notes }
    }

    /// Writes the whole mapping for the objects in `seen`. The field `key` identifies them.
    pub(super) fn write_root(&mut self, name: &str, seen: &SeenValues<'_>, key: Option<&str>) {
        let vocabulary = quote_yaml(self.vocabulary);
        let space = self.reserve_namespace(name, "");
        self.write_line(0, "prefixes:");
        self.write_line(2, &format!("v: {vocabulary}"));
        self.write_line(0, "type: object");
        self.write_line(0, &format!("path: {space}:."));
        if let Some(label) = find_label(seen) {
            self.write_line(0, &format!("label: {}", yaml_key(label)));
        }
        if let Some(key) = key {
            self.write_line(0, &format!("key: {}", yaml_key(key)));
            self.add_note(
                key,
                "The field is the key, because each sample has another value: an object with the same value is the same \
                 object. Remove `key` if objects can share a value.",
            );
        } else if seen.id_member().is_none() {
            self.add_note(
                "",
                "No field holds the objects' URIs, so each object sent without `uri` is stored as a new object with \
                 its own URI. Send `uri` to update a stored object, or add a `key` to the mapping.",
            );
        }
        self.write_fields(0, seen, &space, "", key);
    }

    /// Writes the `fields` of an object in this namespace. The field `key` is required.
    fn write_fields(
        &mut self,
        indent: usize,
        seen: &SeenValues<'_>,
        space: &str,
        place: &str,
        key: Option<&str>,
    ) {
        self.write_line(indent, "fields:");
        let id = seen.id_member();
        let mut has_value = false;
        for (name, member) in &seen.members {
            let place =
                if place.is_empty() { (*name).to_owned() } else { format!("{place}.{name}") };
            if id == Some(name) {
                self.write_line(indent + 2, &format!("{}:", yaml_key(name)));
                self.write_line(indent + 4, "type: id");
            } else if let Some(why) = find_name_problem(name) {
                self.add_misfit(&place, format!("The field is left out: {why}."));
            } else {
                has_value |= self.write_field(indent + 2, name, member, space, &place);
                if key == Some(name) {
                    self.write_line(indent + 4, "required: true");
                }
            }
        }
        if !has_value {
            let name = (1..).map(|n| if n == 1 { "name".to_owned() } else { format!("name{n}") });
            let name = name.into_iter().find(|name| !seen.has_member(name)).unwrap_or_default();
            self.add_note(
                place,
                &format!("The samples have no value here. `{name}` is a placeholder, because an object needs a field."),
            );
            self.write_line(indent + 2, &format!("{name}:"));
            self.write_single(indent + 4, "string", &name);
        }
    }

    /// Writes one field. Returns false if the mapping cannot have it.
    fn write_field(
        &mut self,
        indent: usize,
        name: &str,
        seen: &SeenValues<'_>,
        space: &str,
        place: &str,
    ) -> bool {
        let inside = indent + 2;
        let Some(guess) = seen.guess_type() else {
            self.add_note(place, "The samples have no value here, so the type is string.");
            self.write_line(indent, &format!("{}:", yaml_key(name)));
            self.write_single(inside, "string", name);
            return true;
        };
        let elements = seen.elements().filter(|_| guess == GuessedType::Array);
        if elements.and_then(SeenValues::guess_type) == Some(GuessedType::Array) {
            self.add_misfit(
                place,
                "The field is left out: it holds arrays in arrays, which RDF cannot represent."
                    .to_owned(),
            );
            return false;
        }
        self.note_others(seen, guess, place);
        self.write_line(indent, &format!("{}:", yaml_key(name)));
        match (guess, elements.and_then(|elements| Some((elements.guess_type()?, elements)))) {
            (GuessedType::Single(kind), _) => self.write_single(inside, kind, name),
            (GuessedType::Object, _) => {
                let inner = self.reserve_namespace(name, space);
                self.write_line(inside, "type: object");
                self.write_line(inside, &format!("path: v:{}/{inner}:.", self.local_name(name)));
                self.write_fields(inside, seen, &inner, place, None);
            }
            (GuessedType::Array, None) => {
                self.add_note(
                    place,
                    "The arrays are empty in the samples, so the type of their elements is string.",
                );
                self.write_single(inside, "array", name);
            }
            (GuessedType::Array, Some((guess, elements))) => {
                self.note_others(elements, guess, place);
                self.write_single(inside, "array", name);
                self.write_line(inside, "elements:");
                if let GuessedType::Single(kind) = guess {
                    self.write_line(inside + 2, &format!("type: {kind}"));
                } else {
                    let inner = self.reserve_namespace(name, space);
                    self.write_line(inside + 2, "type: object");
                    self.write_line(inside + 2, &format!("path: {inner}:."));
                    self.write_fields(inside + 2, elements, &inner, place, None);
                }
            }
        }
        true
    }

    /// Writes the `type` and `path` of a field.
    fn write_single(&mut self, indent: usize, kind: &str, name: &str) {
        self.write_line(indent, &format!("type: {kind}"));
        self.write_line(indent, &format!("path: v:{}", self.local_name(name)));
    }

    fn note_others(&mut self, seen: &SeenValues<'_>, guess: GuessedType, place: &str) {
        let kind = match guess {
            GuessedType::Single(kind) => kind,
            GuessedType::Object => "object",
            GuessedType::Array => "array",
        };
        if let Some(others) = seen.describe_others() {
            self.add_misfit(
                place,
                format!(
                    "The type in the mapping is `{kind}`, but the samples also contain {others}."
                ),
            );
        }
    }

    /// Returns the name of a new namespace, named after a field.
    fn reserve_namespace(&mut self, name: &str, parent: &str) -> String {
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let pascal: String =
            words.flat_map(capitalize).take(MAX_DERIVED_NAMESPACE_CHARACTERS).collect();
        let pascal = if pascal.is_empty() { "Object".to_owned() } else { pascal };
        if self.namespaces.len() >= MAX_DERIVED_NAMESPACES {
            return "Part".to_owned();
        }
        let longer: String =
            parent.chars().chain(pascal.chars()).take(MAX_DERIVED_NAMESPACE_CHARACTERS).collect();
        let numbered = (2..).map(|n| format!("{pascal}{n}"));
        let mut all = [pascal.clone(), longer].into_iter().chain(numbered);
        let free = all.find(|name| !self.namespaces.contains(name)).unwrap_or_default();
        self.namespaces.insert(free.clone());
        free
    }

    /// Returns the local name of a field's property, as written in a path. Different fields have different names.
    fn local_name(&self, name: &str) -> String {
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
        // Some letters are not allowed in an IRI (RFC 3987, 2.2).
        match NamedNode::new(format!("{}{local}", self.vocabulary)) {
            Ok(_) => local,
            Err(_) => utf8_percent_encode(name, NON_ALPHANUMERIC).to_string(),
        }
    }

    fn write_line(&mut self, indent: usize, text: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.out, "{:indent$}{text}", "");
    }

    fn add_note(&mut self, field: &str, message: &str) {
        self.push_note(field, message.to_owned(), false);
    }

    /// Adds a note that something in the samples does not fit the mapping.
    pub(super) fn add_misfit(&mut self, field: &str, message: String) {
        self.push_note(field, message, true);
    }

    fn push_note(&mut self, field: &str, message: String, misfit: bool) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(DerivationNote { field: field.to_owned(), message, misfit });
        }
    }
}

/// Returns the field that is obviously the name of the objects, unless it is their label without being named.
fn find_label<'j>(seen: &SeenValues<'j>) -> Option<&'j str> {
    let id = seen.id_member();
    let is_string = |seen: &SeenValues<'_>| {
        matches!(seen.guess_type(), None | Some(GuessedType::Single("string")))
    };
    let strings = seen.members.iter().filter(|(name, seen)| {
        id != Some(name) && find_name_problem(name).is_none() && is_string(seen)
    });
    let (first, _) = strings.clone().next()?;
    let is_named = |wanted: &str| {
        strings.clone().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(name, _)| *name)
    };
    let label = LABEL_NAMES.into_iter().find_map(is_named)?;
    (label != *first).then_some(label)
}

/// Returns why a mapping cannot have a field of this name.
fn find_name_problem(name: &str) -> Option<&'static str> {
    if name == "uri" {
        Some(
            "`uri` is reserved for the object's own URI, which must be an absolute IRI; give the field another name",
        )
    } else if name.is_empty() {
        Some("its name is empty")
    } else if name.chars().any(char::is_control) {
        Some("its name contains a control character")
    } else if name.chars().count() > MAX_FIELD_NAME_CHARACTERS {
        Some("its name is longer than 256 characters")
    } else {
        None
    }
}

fn capitalize(word: &str) -> impl Iterator<Item = char> {
    let mut chars = word.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars.collect::<Vec<_>>())
}

/// Writes a name as the key of a YAML mapping, quoted if necessary.
fn yaml_key(name: &str) -> String {
    const WORDS: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !WORDS.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { name.to_owned() } else { quote_yaml(name) }
}

/// Writes a text in double quotes, with YAML's escapes (YAML 1.2, 7.3.1).
fn quote_yaml(text: &str) -> String {
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
