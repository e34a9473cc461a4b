//! Reads the entries of one definition.
use super::{Checked, Compiler};
use crate::mapping::yaml::{Content, Key, Location, Node};
use penstock_base::nearest::find_nearest;
use penstock_store::Format;
use std::fmt;

/// The number of characters of a field's name that an error shows.
const MAX_STEP_CHARS: usize = 64;

/// The position of a definition in the mapping.
#[derive(Debug)]
pub(super) enum Position<'a> {
    Root,
    Field(&'a Position<'a>, &'a str),
    Elements(&'a Position<'a>),
}

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut place = self;
        loop {
            place = match place {
                Self::Root => break,
                Self::Field(parent, name) => {
                    steps.push(*name);
                    parent
                }
                Self::Elements(parent) => {
                    steps.push("[]");
                    parent
                }
            };
        }
        if steps.is_empty() {
            return f.write_str("root");
        }
        f.write_str("field `")?;
        for (i, step) in steps.iter().rev().enumerate() {
            if i > 0 && *step != "[]" {
                f.write_str(".")?;
            }
            // Each error below a field repeats its name, so the errors could be larger than the text itself.
            match step.char_indices().nth(MAX_STEP_CHARS) {
                Some((end, _)) => write!(f, "{}...", step.get(..end).unwrap_or_default())?,
                None => f.write_str(step)?,
            }
        }
        f.write_str("`")
    }
}

impl Position<'_> {
    /// Returns the name of a field of the root, after those of its groups.
    pub(super) fn field_name(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(Self::Root, name) => (*name).to_owned(),
            Self::Field(group, name) => format!("{}.{name}", group.field_name()),
            Self::Elements(array) => array.field_name(),
        }
    }
}

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
