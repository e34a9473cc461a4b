//! Reads the entries of one definition.
use super::compiler::{Checked, Compiler};
use super::position::Position;
use crate::mapping::yaml::{Content, Key, Location, Node};
use penstock_base::nearest::find_nearest;
use penstock_store::Format;

/// A definition: `type`, `path` and other keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Definition<'a> {
    pub(super) at: Location,
    pub(super) place: &'a Position<'a>,
    entries: &'a [(Key, Node)],
}

impl<'a> Definition<'a> {
    /// Creates a definition without entries.
    pub(super) fn empty(at: Location, place: &'a Position<'a>) -> Self {
        Self { at, place, entries: &[] }
    }

    /// Returns the definition with another place for its errors.
    pub(super) fn with_place(self, place: &'a Position<'a>) -> Self {
        Self { place, ..self }
    }

    pub(super) fn get(&self, name: &str) -> Option<(Location, &'a Node)> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(key, node)| (key.at, node))
    }
}

/// The keys of all definitions.
pub(super) const KEYS: &[&str] = &[
    "type",
    "path",
    "fields",
    "elements",
    "required",
    "datatype",
    "language",
    "languages",
    "base",
    "values",
    "ordered",
    "key",
    "keyScope",
    "types",
    "label",
    "unknownFields",
    "accept",
    "timeZone",
    "absent",
    "default",
    "items",
    "outer",
    "prefixes",
];

/// The keys of a field whatever its type; its elements do not take them.
pub(super) const FIELD_KEYS: [&str; 4] = ["required", "absent", "default", "outer"];

/// The keys and types that need format 4 of a store, because earlier versions refuse them.
const NEWER_KEYS: &[&str] = &[
    "accept",
    "timeZone",
    "absent",
    "default",
    "base",
    "values",
    "languages",
    "ordered",
    "items",
    "outer",
];
const NEWER_TYPES: &[&str] = &["group", "languageMap", "map", "json", "scalar"];

impl Compiler {
    /// Raises the format that a store needs if the type is newer.
    pub(super) fn note_type(&mut self, name: &str) {
        if NEWER_TYPES.contains(&name) {
            self.store_format = Format::V4;
        }
    }

    pub(super) fn read_definition<'a>(
        &mut self,
        node: &'a Node,
        place: &'a Position<'a>,
    ) -> Checked<Definition<'a>> {
        match &node.content {
            Content::Mapping(entries) => {
                let definition = Definition { at: node.at, place, entries };
                if entries.iter().any(|(key, _)| NEWER_KEYS.contains(&&*key.name)) {
                    self.store_format = Format::V4;
                }
                if let Some((_, Node { content: Content::Scalar { text, .. }, .. })) =
                    definition.get("type")
                {
                    self.note_type(text);
                }
                Ok(definition)
            }
            _ => Err(self.report_error(
                node.at,
                place,
                format!(
                    "a definition must be a mapping with keys such as `type`, not {}",
                    node.kind()
                ),
            )),
        }
    }

    /// Reports every key that has no meaning in this definition.
    pub(super) fn check_keys(&mut self, definition: &Definition<'_>, allowed: &[&str]) {
        for (key, _) in definition.entries {
            let name = key.name.as_str();
            if allowed.contains(&name) {
                continue;
            }
            let message = if KEYS.contains(&name) {
                format!(
                    "`{name}` has no meaning here; this definition takes {}",
                    format_list(allowed)
                )
            } else if let Some(near) = find_nearest(name, allowed.iter().copied()) {
                format!("the key `{name}` is unknown; did you mean `{near}`?")
            } else {
                format!(
                    "the key `{name}` is unknown; this definition takes {}",
                    format_list(allowed)
                )
            };
            self.report_error(key.at, definition.place, message);
        }
    }

    /// Returns the text under a key, and its position.
    pub(super) fn read_text<'a>(
        &mut self,
        definition: &Definition<'a>,
        name: &str,
    ) -> Checked<Option<(Location, &'a str)>> {
        let Some((_, node)) = definition.get(name) else { return Ok(None) };
        match &node.content {
            Content::Scalar { text, .. } => Ok(Some((node.at, text))),
            _ => Err(self.report_error(
                node.at,
                definition.place,
                format!("`{name}` must be a text, not {}", node.kind()),
            )),
        }
    }

    /// Returns the value of a key that is true or false, by default false.
    pub(super) fn read_flag(&mut self, definition: &Definition<'_>, name: &str) -> Checked<bool> {
        let Some((_, node)) = definition.get(name) else { return Ok(false) };
        match &node.content {
            Content::Scalar { text, plain: true } if text == "true" => Ok(true),
            Content::Scalar { text, plain: true } if text == "false" => Ok(false),
            _ => Err(self.report_error(
                node.at,
                definition.place,
                format!("`{name}` must be true or false, without quotes"),
            )),
        }
    }
}

/// Formats names as a list.
pub(super) fn format_list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
