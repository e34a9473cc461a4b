//! The objects that were found in documents so far, within the limits of the request.
use crate::csv::TextField;
use crate::ingest::places::DocumentPlaces;
use crate::ingest::{Limits, Mode};
use crate::mapping::{DocumentForm, Field, FieldKind, Mapping, Outer, Step};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use std::rc::Rc;

/// The form of documents of a mapping without `items`: each is an object.
static OBJECT: DocumentForm = DocumentForm { items: Vec::new(), outer: Vec::new() };

/// A field that can take a value from around its object.
pub(super) struct OuterField<'m> {
    pub(super) field: &'m Field,
    pub(super) outer: &'m Outer,
    /// The field as one that takes a text, if it takes the name of a member.
    pub(super) text: Option<TextField<'m>>,
}

impl<'m> OuterField<'m> {
    /// Returns the fields that take values in this mode. DELETE takes only what identifies an object.
    fn list(mapping: &'m Mapping, form: &'m DocumentForm, mode: Mode) -> Rc<[Self]> {
        let key = mapping.root.key_fields().map_or(&[][..], |key| &key.indexes);
        let fields = form.outer.iter().filter_map(|(index, outer)| {
            let field = mapping.root.fields.get(*index)?;
            let is_taken =
                mode != Mode::Delete || field.kind == FieldKind::Id || key.contains(index);
            let text = match outer {
                Outer::Star(_) => TextField::find(mapping, &field.name).ok(),
                Outer::Nearest(_) | Outer::At(_) => None,
            };
            is_taken.then_some(Self { field, outer, text })
        });
        fields.collect()
    }
}

/// Writes the objects of documents.
pub(super) struct ObjectFinder<'m> {
    pub(super) mapping: &'m Mapping,
    pub(super) items: &'m [Step],
    pub(super) fields: Rc<[OuterField<'m>]>,
    pub(super) limits: &'m Limits,
    pub(super) max_objects: usize,
    /// What follows each object.
    pub(super) separator: u8,
    pub(super) text: Vec<u8>,
    pub(super) line_numbers: Vec<u64>,
    pub(super) places: DocumentPlaces,
    /// The line of the document in a stream.
    pub(super) line: Option<u64>,
    /// The bytes of the document, or of all in a chunk, and of what objects took from around them.
    pub(super) taken_bytes: u64,
}

impl<'m> ObjectFinder<'m> {
    pub(super) fn new(mapping: &'m Mapping, mode: Mode, limits: &'m Limits) -> Self {
        let form = mapping.document.as_deref().unwrap_or(&OBJECT);
        let fields = OuterField::list(mapping, form, mode);
        let pointers = fields.iter().map(|one| one.field.pointer_in("")).collect();
        Self {
            mapping,
            items: &form.items,
            fields,
            limits,
            max_objects: limits.objects,
            separator: b',',
            text: Vec::new(),
            line_numbers: Vec::new(),
            places: DocumentPlaces::new(pointers),
            line: None,
            taken_bytes: 0,
        }
    }

    /// Returns the levels that the objects can have more than their documents: those of `{"data": […]}`, and those of the
    /// groups of a field that takes a value.
    pub(super) fn count_added_levels(&self) -> usize {
        let groups = self.fields.iter().map(|one| one.field.path().count()).max();
        2 + groups.unwrap_or_default()
    }

    /// Ends a list of objects.
    pub(super) fn close(&mut self, end: &[u8]) {
        if self.text.last() == Some(&self.separator) {
            self.text.pop();
        }
        self.text.extend_from_slice(end);
    }

    pub(super) fn warn_of_no_objects(&mut self, pointer: &str) {
        let message = format!(
            "{}the document has no objects where `items` of the mapping says; nothing of it is stored",
            self.describe_line()
        );
        self.places.empty.push(pointer, message);
    }

    /// Returns the line of the document before a message about it; empty outside a stream.
    fn describe_line(&self) -> String {
        self.line.map_or_else(String::new, |line| format!("line {line}: "))
    }

    pub(super) fn name_line(&self, mut error: GatewayError) -> GatewayError {
        error.detail.insert_str(0, &self.describe_line());
        error
    }

    pub(super) fn count_taken(&mut self, field: &Field, bytes: usize) -> Result<(), GatewayError> {
        self.taken_bytes += (field.name.len() + bytes) as u64;
        if self.taken_bytes <= self.limits.body_bytes {
            return Ok(());
        }
        Err(self.name_line(GatewayError::new(
            ErrorClass::TooLarge,
            format!(
                "the documents and what their objects take from around them have more than {} bytes together \
                 (service.limits.body); each object takes its own copy, so send fewer objects at once",
                self.limits.body_bytes
            ),
        )))
    }

    pub(super) fn check_count(&self, pointer: &str) -> Result<(), GatewayError> {
        if self.places.len() < self.max_objects {
            return Ok(());
        }
        Err(GatewayError::with_findings(
            ErrorClass::TooLarge,
            format!(
                "the document holds more than {} objects (service.limits.objects); split it",
                self.limits.objects
            ),
            vec![Finding::at_pointer(pointer, "the first object over the limit")],
        ))
    }
}
