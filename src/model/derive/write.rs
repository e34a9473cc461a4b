//! Writes the YAML of a derived mapping, and the notes about it.
use super::document::Documents;
use super::guess::Guess;
use super::name::find_name_problem;
use super::seen::{Members, SeenValues};
use super::value::ValueGuess;
use super::yaml::{quote_yaml, yaml_key};
use oxrdf::NamedNode;
use penstock_base::characters::is_deceptive;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The maximum length in characters of a derived namespace name, before a number.
const MAX_DERIVED_NAMESPACE_CHARACTERS: usize = 60;
/// The maximum number of derived namespaces. All further objects share the last one.
const MAX_DERIVED_NAMESPACES: usize = 900;
/// The names of fields that hold the name of an object, the most obvious one first.
const LABEL_NAMES: [&str; 4] = ["label", "name", "displayName", "title"];
/// The maximum number of notes.
const MAX_NOTES: usize = 100;

/// A note about a derived mapping for the person who reviews it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivationNote {
    /// The path of the field, such as `parts.label`. Empty for the whole mapping.
    pub field: String,
    /// The text of the note.
    pub message: String,
    /// Whether something in the samples does not fit the mapping.
    pub misfit: bool,
}

/// The names from which the namespaces and properties of a mapping are built.
#[derive(Debug, Clone, Copy)]
pub struct MappingNames<'a> {
    /// The name of the Business Object. The namespace of the root is named after it.
    pub business_object: &'a str,
    /// The prefix of the IRI of every property.
    pub vocabulary: &'a str,
}

/// Writes a mapping as YAML.
pub(super) struct MappingWriter<'v> {
    names: MappingNames<'v>,
    out: String,
    notes: Vec<DerivationNote>,
    /// The names of the namespaces so far.
    namespaces: HashSet<String>,
    /// The last namespace.
    shared_namespace: Option<String>,
}

/// Where a definition is.
#[derive(Clone, Copy)]
struct Spot<'s> {
    indent: usize,
    /// The path of the field, such as `parts.label`.
    field: &'s str,
}

impl Spot<'_> {
    fn inside(self) -> Self {
        Self { indent: self.indent + 2, ..self }
    }
}

/// How the values of a definition are linked to the object around them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link<'n> {
    /// By the property of the field of this name.
    Field(&'n str),
    /// As elements of the array of this name, which has the property.
    Element(&'n str),
    /// As members of the map of this name.
    Member(&'n str),
}

impl<'n> Link<'n> {
    /// Returns the name of the field.
    fn name(self) -> &'n str {
        let (Self::Field(name) | Self::Element(name) | Self::Member(name)) = self;
        name
    }
}

impl<'v> MappingWriter<'v> {
    pub(super) fn new(names: MappingNames<'v>) -> Self {
        Self {
            names,
            out: String::new(),
            notes: Vec::new(),
            namespaces: HashSet::new(),
            shared_namespace: None,
        }
    }

    /// Returns the mapping as YAML, and the notes.
    pub(super) fn finish(self) -> (String, Vec<DerivationNote>) {
        (self.out, self.notes)
    }

    /// Writes the whole mapping for objects with these members. The field `key` identifies them.
    pub(super) fn write_root(
        &mut self,
        members: &Members<'_>,
        key: Option<&str>,
        documents: Option<&Documents<'_>>,
    ) {
        let namespace = self.reserve_namespace("");
        self.write_line(0, "prefixes:");
        self.write_line(2, &format!("v: {}", quote_yaml(self.names.vocabulary)));
        self.write_line(0, "type: object");
        self.write_line(0, &format!("path: {namespace}:."));
        if let Some(documents) = documents {
            self.write_line(0, &format!("items: {}", quote_yaml(&documents.items)));
            self.note_documents(documents);
        }
        if let Some(label) = find_label(members) {
            self.write_line(0, &format!("label: {}", yaml_key(label)));
        }
        if let Some(key) = key {
            self.write_line(0, &format!("key: {}", yaml_key(key)));
            self.add_note(
                key,
                "The field is the key, because each sample has another value: an object with the same value is the same \
                 object. Remove `key` if objects can share a value.",
            );
        } else if members.id_member().is_none() {
            self.add_note(
                "",
                "No field holds the objects' URIs, so each object sent without `uri` is stored as a new object with \
                 its own URI. Send `uri` to update a stored object, or add a `key` to the mapping, whose fields need \
                 `required: true`.",
            );
        }
        let spot = Spot { indent: 0, field: "" };
        let outer = documents.map(|documents| documents.outer.as_slice()).unwrap_or_default();
        self.write_fields(spot, members, key, outer);
    }

    fn note_documents(&mut self, documents: &Documents<'_>) {
        let (items, taken) = (&documents.items, documents.outer.iter().map(|(name, _)| *name));
        let taken: Vec<&str> = taken.collect();
        let outer = match taken.as_slice() {
            [] => String::new(),
            taken => format!(" They take {} from around them (`outer`).", taken.join(", ")),
        };
        self.add_note(
            "",
            &format!(
                "The samples are documents with the objects in {items}. Send them with `form=document`.{outer}"
            ),
        );
        if !documents.left_out.is_empty() {
            let names = documents.left_out.join(", ");
            let message = format!("Members around the objects are left out: {names}.");
            self.add_note("", &message);
        }
    }

    /// Writes the `fields` of an object: its members, and those that it takes from around it. The field `key` is required.
    fn write_fields(
        &mut self,
        spot: Spot<'_>,
        members: &Members<'_>,
        key: Option<&str>,
        outer: &[(&str, SeenValues<'_>)],
    ) {
        self.write_line(spot.indent, "fields:");
        let id = members.id_member();
        let mut has_value = !outer.is_empty();
        for (name, seen) in members.iter() {
            let field = match spot.field {
                "" => name.to_owned(),
                outer => format!("{outer}.{name}"),
            };
            let spot = Spot { field: &field, ..spot.inside() };
            if id == Some(name) {
                self.write_line(spot.indent, &format!("{}:", yaml_key(name)));
                self.write_line(spot.indent + 2, "type: id");
            } else if let Some(why) = find_name_problem(name) {
                self.add_misfit(&field, format!("The field is left out: {why}."));
            } else {
                has_value = true;
                self.write_field(spot, name, seen);
                if key == Some(name) {
                    self.write_line(spot.indent + 2, "required: true");
                }
            }
        }
        for (name, seen) in outer {
            let spot = Spot { field: name, ..spot.inside() };
            self.write_field(spot, name, seen);
            self.write_line(spot.indent + 2, &format!("outer: {}", yaml_key(name)));
        }
        if !has_value {
            let name = (1..).map(|n| if n == 1 { "name".to_owned() } else { format!("name{n}") });
            let name =
                name.into_iter().find(|name| members.find(name).is_none()).unwrap_or_default();
            self.add_note(
                spot.field,
                &format!("The samples have no value here. `{name}` is a placeholder, because an object needs a field."),
            );
            self.write_line(spot.indent + 2, &format!("{name}:"));
            let placeholder = Guess::Value(ValueGuess::new("string"));
            let spot = spot.inside().inside();
            self.write_definition(spot, Link::Field(&name), &placeholder);
        }
    }

    /// Writes one field.
    fn write_field(&mut self, spot: Spot<'_>, name: &str, seen: &SeenValues<'_>) {
        let guess = Guess::new(name, seen).unwrap_or_else(|| {
            self.add_note(spot.field, "The samples have no value here, so the type is string.");
            Guess::Value(ValueGuess::new("string"))
        });
        self.write_line(spot.indent, &format!("{}:", yaml_key(name)));
        self.write_definition(spot.inside(), Link::Field(name), &guess);
    }

    fn write_definition(&mut self, spot: Spot<'_>, link: Link<'_>, guess: &Guess<'_>) {
        let indent = spot.indent;
        match guess {
            Guess::Value(value) => {
                self.write_typed(indent, value.kind, link);
                if let Some(form) = &value.accept {
                    self.write_line(indent, &format!("accept: {form}"));
                }
                if value.is_code {
                    let local = self.local_name(link.name());
                    let base = format!("{}{local}/", self.names.vocabulary);
                    self.write_line(indent, &format!("base: {}", quote_yaml(&base)));
                }
                if let Some(note) = &value.note {
                    self.add_note(spot.field, note);
                }
            }
            Guess::Json(why) => {
                self.write_typed(indent, "json", link);
                let message = format!(
                    "The samples have {why} here, so the value is kept whole, with the type `json`."
                );
                self.add_note(spot.field, &message);
            }
            Guess::LanguageMap { has_arrays } => {
                self.write_typed(indent, "languageMap", link);
                if *has_arrays {
                    self.write_line(indent, "elements: array");
                }
                self.add_note(
                    spot.field,
                    "All names are language tags, so the members are texts in these languages (`languageMap`).",
                );
            }
            Guess::Object(members) => self.write_object(spot, link, members),
            Guess::Map { has_integers, member } => {
                self.write_map(spot, link, *has_integers, member);
            }
            Guess::Array { is_ordered, element } => {
                self.write_typed(indent, "array", link);
                if *is_ordered {
                    self.write_line(indent, "ordered: true");
                    self.add_note(
                        spot.field,
                        "The array is `ordered`, because a set would lose the order of its elements, or what it has twice.",
                    );
                }
                let Some(element) = element else {
                    return self.add_note(
                        spot.field,
                        "The arrays are empty in the samples, so the type of their elements is string.",
                    );
                };
                self.write_line(indent, "elements:");
                self.write_definition(spot.inside(), Link::Element(link.name()), element);
            }
        }
    }

    fn write_object(&mut self, spot: Spot<'_>, link: Link<'_>, members: &Members<'_>) {
        self.write_line(spot.indent, "type: object");
        let namespace = match link {
            // The map has the path.
            Link::Member(_) => return self.write_fields(spot, members, None, &[]),
            Link::Field(_) | Link::Element(_) => self.reserve_namespace(spot.field),
        };
        let path = match self.find_property(link) {
            Some(property) => format!("path: v:{property}/{namespace}:."),
            None => format!("path: {namespace}:."),
        };
        self.write_line(spot.indent, &path);
        if members.id_member().is_none() && members.have_repeats() {
            self.add_note(
                spot.field,
                "Objects repeat here, and no field holds their URIs, so each is stored as a new object with its own URI. Send \
                 `uri`, or add a `key`, whose fields need `required: true`.",
            );
        }
        self.write_fields(spot, members, None, &[]);
    }

    fn write_map(
        &mut self,
        spot: Spot<'_>,
        link: Link<'_>,
        has_integers: bool,
        member: &Guess<'_>,
    ) {
        let indent = spot.indent;
        let namespace = self.reserve_namespace(spot.field);
        self.write_line(indent, "type: map");
        let property = self.find_property(link).unwrap_or_default();
        self.write_line(indent, &format!("path: v:{property}/{namespace}:."));
        let own = if let Guess::Object(members) = member { Some(members) } else { None };
        let names = (1..).map(|n| if n == 1 { "key".to_owned() } else { format!("key{n}") });
        let is_free = |name: &String| own.is_none_or(|members| members.find(name).is_none());
        let key = names.into_iter().find(is_free).unwrap_or_default();
        let key_type = if has_integers { ", type: integer" } else { "" };
        self.write_line(indent, &format!("key: {{path: 'v:{key}'{key_type}}}"));
        self.add_note(
            spot.field,
            "The names of the members look like data, so the object is a `map`: a new name needs no new field. An object \
             without members, or a member without a value, is no value.",
        );
        self.write_line(indent, "elements:");
        self.write_definition(spot.inside(), Link::Member(link.name()), member);
    }

    /// Writes the `type` and `path` of values.
    fn write_typed(&mut self, indent: usize, kind: &str, link: Link<'_>) {
        self.write_line(indent, &format!("type: {kind}"));
        if let Some(property) = self.find_property(link) {
            self.write_line(indent, &format!("path: v:{property}"));
        }
    }

    /// Returns the property in the path of a definition, if it has one.
    fn find_property(&self, link: Link<'_>) -> Option<String> {
        match link {
            Link::Field(name) => Some(self.local_name(name)),
            Link::Element(_) => None,
            Link::Member(_) => Some("value".to_owned()),
        }
    }

    /// Returns the name of a new namespace, named after the Business Object and the path of a field. With only the name of the
    /// field, it could be the namespace of another Business Object, which would have these objects too.
    fn reserve_namespace(&mut self, field: &str) -> String {
        if let Some(shared) = &self.shared_namespace {
            return shared.clone();
        }
        let is_last = self.namespaces.len() + 1 >= MAX_DERIVED_NAMESPACES;
        let is_other = |c: char| !c.is_alphanumeric() || is_deceptive(c);
        let field = match field {
            _ if is_last => "part",
            // With only a number, it could be the namespace of a Business Object too.
            field if !field.is_empty() && field.chars().all(is_other) => "object",
            field => field,
        };
        let path = format!("{} {field}", self.names.business_object);
        let words = path.split(is_other).filter(|word| !word.is_empty());
        let pascal: String =
            words.flat_map(capitalize).take(MAX_DERIVED_NAMESPACE_CHARACTERS).collect();
        let pascal = if pascal.is_empty() { "Object".to_owned() } else { pascal };
        let numbered = (2..).map(|n| format!("{pascal}{n}"));
        let mut all = std::iter::once(pascal.clone()).chain(numbered);
        let free = all.find(|name| !self.namespaces.contains(name)).unwrap_or_default();
        self.namespaces.insert(free.clone());
        self.shared_namespace = is_last.then(|| free.clone());
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
        match NamedNode::new(format!("{}{local}", self.names.vocabulary)) {
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
        // A misfit is not left out because of other notes.
        let max = if misfit { 2 * MAX_NOTES } else { MAX_NOTES };
        if self.notes.len() < max {
            self.notes.push(DerivationNote { field: field.to_owned(), message, misfit });
        }
    }
}

/// Returns the field that is obviously the name of the objects, unless it is their label without being named.
fn find_label<'j>(members: &Members<'j>) -> Option<&'j str> {
    let id = members.id_member();
    let is_string = |name: &str, seen: &SeenValues<'_>| match Guess::new(name, seen) {
        Some(Guess::Value(value)) => value.kind == "string",
        guess => guess.is_none(),
    };
    let strings = members.iter().filter(|(name, seen)| {
        id != Some(name) && find_name_problem(name).is_none() && is_string(name, seen)
    });
    let strings: Vec<&str> = strings.map(|(name, _)| name).collect();
    let is_named =
        |wanted: &str| strings.iter().find(|name| name.eq_ignore_ascii_case(wanted)).copied();
    let label = LABEL_NAMES.into_iter().find_map(is_named)?;
    (strings.first() != Some(&label)).then_some(label)
}

fn capitalize(word: &str) -> impl Iterator<Item = char> {
    let mut chars = word.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars.collect::<Vec<_>>())
}
