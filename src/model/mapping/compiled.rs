//! A compiled mapping: the shape of the objects, and what counts for the whole.
use super::{DocumentForm, Field, KeyDefinition, Prefixes, Shape};
use penstock_base::error::Finding;
use penstock_store::Format;

/// A compiled mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The shape of the Business Object's own objects.
    pub root: Shape,
    /// The prefixes, which also apply to the conditions of the Business Object.
    pub prefixes: Prefixes,
    /// What happens with fields of an object that the mapping does not have.
    pub unknown_fields: UnknownFields,
    /// The name of the field that `label` names: a single string of the root.
    pub label: Option<String>,
    /// Where the objects are in documents, if they are not the documents themselves.
    pub document: Option<Box<DocumentForm>>,
    /// Warnings about what is valid in the text but probably unintended, each with line and column.
    pub warnings: Vec<Finding>,
    /// The format that a store needs for the keys and types of the text.
    pub(super) store_format: Format,
}

/// What happens with fields of an object that the mapping does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownFields {
    /// The object is refused.
    #[default]
    Reject,
    /// They are left out, with a warning.
    Ignore,
}

impl Mapping {
    /// Creates a mapping without a text, and so without prefixes.
    pub fn new(root: Shape) -> Self {
        Self {
            root,
            prefixes: Prefixes::default(),
            unknown_fields: UnknownFields::default(),
            label: None,
            document: None,
            warnings: Vec::new(),
            store_format: Format::default(),
        }
    }

    /// Returns the format that a store needs, because a version that knows only earlier ones would misread the mapping, or
    /// ignore what it protects.
    pub(crate) fn required_format(&self) -> Format {
        fn has_key_or_types(shape: &Shape) -> bool {
            shape.key != KeyDefinition::Omitted
                || !shape.types.is_empty()
                || shape.iter_nested().any(|(_, _, nested)| has_key_or_types(nested))
        }
        let needs_third = self.prefixes.uses_well_known()
            || self.label.is_some()
            || self.unknown_fields != UnknownFields::default()
            || has_key_or_types(&self.root);
        self.store_format.max(if needs_third { Format::V3 } else { Format::default() })
    }

    /// Returns the field whose text people see in lists and titles, and its index: the one that `label` names,
    /// otherwise the first required string, otherwise the first string. Without one, people see the URI.
    pub fn find_label_field(&self) -> Option<(usize, &Field)> {
        match &self.label {
            Some(name) => self.root.strings().find(|(_, field)| field.name == *name),
            None => self.root.find_label_field(),
        }
    }

    /// Returns whether an object of the mapping has a key.
    pub(crate) fn has_key(&self) -> bool {
        self.root.has_key()
    }
}
