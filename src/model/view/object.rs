//! Writes one object and the objects nested in it.
mod list;
mod map;
mod texts;

use super::budget::{MAX_OBJECT_SIZE, NestedForm, ViewBudget};
use super::codes::ShownCode;
use super::shown::ShownLiteral;
use super::values::{FieldValues, ShownValues};
use crate::list::{Lists, is_list_node};
use crate::mapping::{Entry, Field, FieldKind, Level, Property, Shape, Value};
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, NamedNodeRef, TermRef};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{Json, push_pointer};
use penstock_store::{Read, SubjectQuads};
use std::collections::{BTreeSet, HashSet};

/// The maximum number of warnings in one list. If there are more, one last warning says so.
pub(super) const MAX_WARNINGS: usize = 1000;

/// The maximum number of languages that one warning names.
const MAX_LANGUAGES: usize = 10;

pub(super) struct ObjectWriter<'w> {
    pub(super) read: &'w dyn Read,
    pub(super) out: &'w mut Vec<u8>,
    pub(super) warnings: &'w mut Vec<Finding>,
    /// The position in the root object of the value that is being written.
    pub(super) pointer: Vec<PointerToken<'w>>,
    pub(super) budget: ViewBudget,
    /// Receives what is shown as RDF, if somebody wants it.
    pub(super) shown: Option<ShownReporter<'w>>,
}

/// Something that a view shows, as RDF.
#[derive(Debug, Clone, Copy)]
pub enum ShownFact<'s> {
    /// An object that is shown with its fields, the root or one that is nested in it, or a node of a list.
    Subject(NamedNodeRef<'s>),
    /// A stored value of this object that a field shows, or one of the types that the mapping writes.
    Triple(NamedNodeRef<'s>, NamedNodeRef<'s>, TermRef<'s>),
}

/// A function that receives each [`ShownFact`].
pub type ReportShown<'w> = &'w mut dyn FnMut(ShownFact<'_>) -> Result<(), GatewayError>;

/// Reports what is shown, once for each object and its place in the mapping.
pub(super) struct ShownReporter<'w> {
    report: ReportShown<'w>,
    /// The objects that were reported, by URI and place in the mapping.
    reported: HashSet<(NamedNode, usize)>,
    /// Whether the object that is being written is reported now.
    is_active: bool,
}

impl<'w> ShownReporter<'w> {
    pub(super) fn new(report: ReportShown<'w>) -> Self {
        Self { report, reported: HashSet::new(), is_active: false }
    }

    /// Begins an object. Returns whether the one that contains it is reported, for [`Self::end_object`].
    fn begin_object(
        &mut self,
        shape: &Shape,
        uri: &NamedNode,
        about: &SubjectQuads,
    ) -> Result<bool, GatewayError> {
        let was_active = self.is_active;
        self.is_active = self.reported.insert((uri.clone(), std::ptr::from_ref(shape).addr()));
        if self.is_active {
            (self.report)(ShownFact::Subject(uri.as_ref()))?;
            if let Some(map) = shape.map_member() {
                let key = map.key.predicate.as_ref();
                for (_, name) in about.iter().filter(|(predicate, _)| *predicate == key) {
                    self.report_value(uri, key, name)?;
                }
            }
            for class in &shape.types {
                if about.has_value(rdf::TYPE, class.as_ref().into()) {
                    self.report_value(uri, rdf::TYPE, class.as_ref().into())?;
                }
            }
        }
        Ok(was_active)
    }

    fn report_value(
        &mut self,
        uri: &NamedNode,
        predicate: NamedNodeRef<'_>,
        value: TermRef<'_>,
    ) -> Result<(), GatewayError> {
        if self.is_active {
            (self.report)(ShownFact::Triple(uri.as_ref(), predicate, value))?;
        }
        Ok(())
    }

    fn end_object(&mut self, was_active: bool) {
        self.is_active = was_active;
    }
}

/// A reference token of a JSON Pointer.
#[derive(Debug, Clone)]
pub(super) enum PointerToken<'w> {
    Field(&'w str),
    /// A member of a map.
    Member(Box<str>),
    Element(usize),
}

/// The objects from the root to the one being shown. An object that is nested in itself is shown only by its URI.
pub struct NestingPath<'p> {
    /// The object.
    pub uri: &'p NamedNode,
    /// The path to the object that contains it.
    pub above: Option<&'p NestingPath<'p>>,
}

impl NestingPath<'_> {
    fn root_uri(&self) -> &NamedNode {
        self.above.map_or(self.uri, NestingPath::root_uri)
    }

    /// Returns whether the object is on this path.
    pub fn contains_uri(&self, uri: &NamedNode) -> bool {
        std::iter::successors(Some(self), |path| path.above).any(|path| path.uri == uri)
    }

    /// Returns whether the last object of this path is nested in itself.
    pub fn is_within_itself(&self) -> bool {
        self.above.is_some_and(|above| above.contains_uri(self.uri))
    }
}

impl<'w> ObjectWriter<'w> {
    /// Writes the last object of `path`, whose stored quads are in `about`.
    pub(super) fn write_object(
        &mut self,
        shape: &'w Shape,
        path: &NestingPath<'_>,
        about: &SubjectQuads,
    ) -> Result<(), GatewayError> {
        let containing = self.begin_reported(shape, path.uri, about)?;
        self.out.push(b'{');
        let mut first = true;
        let placed =
            shape.fields.iter().any(|field| field.kind == FieldKind::Id && field.name == "uri");
        if !placed {
            self.write_name("uri", &mut first)?;
            self.write_string(path.uri.as_str())?;
        }
        let lists = Lists::of_object(self.read, shape, about.iter())?;
        let owned = FieldValues::new(shape, about.iter()).with_lists(&lists);
        self.write_members(shape, shape.level(), &owned, path, &mut first)?;
        self.out.push(b'}');
        self.end_reported(containing);
        Ok(())
    }

    /// Begins an object that is reported. Returns whether the one that contains it is, for [`Self::end_reported`].
    fn begin_reported(
        &mut self,
        shape: &Shape,
        uri: &NamedNode,
        about: &SubjectQuads,
    ) -> Result<bool, GatewayError> {
        match &mut self.shown {
            Some(shown) => shown.begin_object(shape, uri, about),
            None => Ok(false),
        }
    }

    fn end_reported(&mut self, was_active: bool) {
        if let Some(shown) = &mut self.shown {
            shown.end_object(was_active);
        }
    }

    /// Writes the members of an object, or of a group in it. Returns whether one has a value; an empty array is none.
    fn write_members(
        &mut self,
        shape: &'w Shape,
        level: Level<'w>,
        owned: &FieldValues<'_>,
        path: &NestingPath<'_>,
        first: &mut bool,
    ) -> Result<bool, GatewayError> {
        let mut has_value = false;
        for (name, entry) in level.entries() {
            match entry {
                Entry::Field(_, Field { kind: FieldKind::Id, .. }) => {
                    self.write_name(name, first)?;
                    self.write_string(path.uri.as_str())?;
                }
                Entry::Field(place, Field { kind: FieldKind::Property(property), .. }) => {
                    self.pointer.push(PointerToken::Field(name));
                    let length = self.out.len();
                    self.write_field((place, name), property, owned, path, first)?;
                    let is_empty = property.is_array && self.out.ends_with(b":[]");
                    has_value |= self.out.len() > length && !is_empty;
                    self.warn_of_unowned(shape, place, property, owned, path);
                    self.pointer.pop();
                }
                Entry::Group(inner) => {
                    has_value |= self.write_group(shape, (name, inner), owned, path, first)?;
                }
            }
        }
        Ok(has_value)
    }

    /// Writes a group, if one of its members has a value. Returns whether one has.
    fn write_group(
        &mut self,
        shape: &'w Shape,
        (name, level): (&'w str, Level<'w>),
        owned: &FieldValues<'_>,
        path: &NestingPath<'_>,
        first: &mut bool,
    ) -> Result<bool, GatewayError> {
        self.pointer.push(PointerToken::Field(name));
        let (length, was_first) = (self.out.len(), *first);
        self.write_name(name, first)?;
        self.out.push(b'{');
        let has_value = self.write_members(shape, level, owned, path, &mut true)?;
        if has_value {
            self.out.push(b'}');
        } else {
            self.out.truncate(length);
            *first = was_first;
        }
        self.pointer.pop();
        Ok(has_value)
    }

    /// Warns of stored values of a field's property that belong to no field, if a reader would miss them. These are
    /// objects in other namespaces, and texts in other languages if there is none in the field's language.
    fn warn_of_unowned(
        &mut self,
        shape: &Shape,
        place: usize,
        property: &Property,
        owned: &FieldValues<'_>,
        path: &NestingPath<'_>,
    ) {
        let mut unowned = owned.unowned_values(property.predicate.as_ref()).peekable();
        if unowned.peek().is_none() {
            return;
        }
        match &property.value {
            Value::Object(_) if is_first_with_property(shape, place, property) => {
                let mut objects: Vec<_> = unowned.collect();
                objects.sort_by_cached_key(TermRef::to_string);
                objects.dedup();
                for object in objects {
                    let what = "in no namespace of the fields that share its property";
                    self.warn_left_out(what, object, path);
                }
            }
            value
                if let Some(tag) = value.language()
                    && owned.values_at(place).is_empty() =>
            {
                let languages: BTreeSet<_> = unowned
                    .filter_map(|value| match value {
                        TermRef::Literal(literal) => literal.language(),
                        _ => None,
                    })
                    .collect();
                let languages: Vec<_> = languages.into_iter().take(MAX_LANGUAGES).collect();
                let message = format!(
                    "there is no text in the language {tag}, but texts in {}; a field of type string without \
                     `language` shows them",
                    languages.join(", ")
                );
                self.add_warning(path, &message);
            }
            _ => {}
        }
    }

    fn write_field(
        &mut self,
        (place, name): (usize, &str),
        property: &'w Property,
        owned: &FieldValues<'_>,
        path: &NestingPath<'_>,
        first: &mut bool,
    ) -> Result<(), GatewayError> {
        // Most fields have one value, which needs no sorting.
        match (owned.values_at(place), &property.value) {
            _ if property.is_ordered => self.report_list(place, property, owned, path)?,
            _ if property.codes.is_some() || owned.has_absent(place) => {}
            _ if property.value.language_map().is_some() => {}
            ([(_, TermRef::Literal(literal))], Value::Literal(kind)) => {
                let shown = [ShownLiteral::without_sort_key(kind, *literal)];
                return self.write_literals(name, property, &shown, path, first);
            }
            ([(_, TermRef::NamedNode(iri))], Value::Resource | Value::Object(_))
                if !is_list_node(*iri) =>
            {
                return self.write_iris(name, property, &[*iri], path, first);
            }
            _ => {}
        }
        let values = owned.collect_values(place, property, &mut |what, term| {
            self.warn_left_out(what, term, path);
        });
        match values {
            ShownValues::Literals(texts) if property.value.language_map().is_some() => {
                self.write_texts(name, property, &texts, path, first)
            }
            ShownValues::Literals(shown) => {
                self.write_literals(name, property, &shown, path, first)
            }
            ShownValues::Iris(iris) => self.write_iris(name, property, &iris, path, first),
            ShownValues::Codes(codes) => self.write_codes(name, property, &codes, path, first),
        }
    }

    fn write_literals(
        &mut self,
        name: &str,
        property: &'w Property,
        shown: &[ShownLiteral<'_>],
        path: &NestingPath<'_>,
        first: &mut bool,
    ) -> Result<(), GatewayError> {
        self.write_values((name, property), shown, path, first, |writer, value, _| {
            writer.report_value(path, property, value.term.into())?;
            writer.write_literal(value, path)
        })
    }

    fn write_iris(
        &mut self,
        name: &str,
        property: &'w Property,
        iris: &[NamedNodeRef<'_>],
        path: &NestingPath<'_>,
        first: &mut bool,
    ) -> Result<(), GatewayError> {
        if property.map().is_some() {
            return self.write_map(name, property, iris, path, first);
        }
        if let Value::Object(shape) = &property.value {
            return self.write_values((name, property), iris, path, first, |writer, iri, path| {
                writer.report_value(path, property, (*iri).into())?;
                writer.write_nested(shape, &iri.into_owned(), path)
            });
        }
        self.write_values((name, property), iris, path, first, |writer, iri, _| {
            writer.report_value(path, property, (*iri).into())?;
            writer.write_string(iri.as_str())
        })
    }

    fn write_codes(
        &mut self,
        name: &str,
        property: &'w Property,
        codes: &[ShownCode<'_>],
        path: &NestingPath<'_>,
        first: &mut bool,
    ) -> Result<(), GatewayError> {
        self.write_values((name, property), codes, path, first, |writer, code, _| {
            writer.report_value(path, property, code.term)?;
            if let Some(doubt) = &code.misfit {
                writer.add_warning(path, doubt);
            }
            match &code.json {
                Json::String(text) => writer.write_string(text)?,
                _ => writer.out.extend_from_slice(code.text().as_bytes()),
            }
            Ok(())
        })
    }

    /// Reports a value of the last object of `path`.
    fn report_value(
        &mut self,
        path: &NestingPath<'_>,
        property: &Property,
        value: TermRef<'_>,
    ) -> Result<(), GatewayError> {
        match &mut self.shown {
            // The nodes of a list have its values.
            Some(shown) if !property.is_ordered => {
                shown.report_value(path.uri, property.predicate.as_ref(), value)
            }
            _ => Ok(()),
        }
    }

    /// Writes the values of a field: all of them as an array, or only the first.
    fn write_values<V>(
        &mut self,
        (name, property): (&str, &Property),
        values: &[V],
        path: &NestingPath<'_>,
        first: &mut bool,
        mut write: impl FnMut(&mut Self, &V, &NestingPath<'_>) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        if property.is_array {
            self.write_name(name, first)?;
            self.out.push(b'[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    self.out.push(b',');
                }
                self.pointer.push(PointerToken::Element(index));
                write(self, value, path)?;
                self.pointer.pop();
            }
            self.out.push(b']');
        } else if let Some(value) = values.first() {
            if values.len() > 1 {
                let count = values.len();
                self.add_warning(
                    path,
                    &format!(
                        "there are {count} values, but the field is not an array; only the first is shown"
                    ),
                );
            }
            self.write_name(name, first)?;
            write(self, value, path)?;
        }
        Ok(())
    }

    fn write_literal(
        &mut self,
        value: &ShownLiteral<'_>,
        path: &NestingPath<'_>,
    ) -> Result<(), GatewayError> {
        if let Some(doubt) = &value.misfit {
            self.add_warning(path, doubt);
        }
        if value.raw {
            self.out.extend_from_slice(value.text.as_bytes());
            Ok(())
        } else {
            self.write_string(&value.text)
        }
    }

    fn write_nested(
        &mut self,
        shape: &'w Shape,
        uri: &NamedNode,
        path: &NestingPath<'_>,
    ) -> Result<(), GatewayError> {
        if path.contains_uri(uri) {
            return self.write_reference(uri);
        }
        match self.budget.choose_form(shape, uri, self.out.len()) {
            NestedForm::Whole => {}
            NestedForm::Uri { first } => {
                if first {
                    self.add_warning(
                        path,
                        "the object is large; from here on, objects that are nested in it several times are \
                         shown only by their URI",
                    );
                }
                return self.write_reference(uri);
            }
            NestedForm::None => return Err(self.too_large_error(path)),
        }
        let mut about = SubjectQuads::default();
        self.read.read_subject(uri.as_ref().into(), &mut about)?;
        self.write_object(shape, &NestingPath { uri, above: Some(path) }, &about)
    }

    fn write_reference(&mut self, uri: &NamedNode) -> Result<(), GatewayError> {
        self.out.push(b'{');
        self.write_name("uri", &mut true)?;
        self.write_string(uri.as_str())?;
        self.out.push(b'}');
        Ok(())
    }

    fn too_large_error(&self, path: &NestingPath<'_>) -> GatewayError {
        let message = format!(
            "the object {} is too large to be shown: including nested objects, it exceeds {} MiB or {} objects at {}; \
             map such a field as a resource, and the objects that it refers to in a Business Object of their own",
            path.root_uri().as_str(),
            MAX_OBJECT_SIZE.bytes >> 20,
            MAX_OBJECT_SIZE.nested,
            self.current_pointer()
        );
        GatewayError::new(ErrorClass::TooLarge, message)
    }

    /// Returns the position of the value being written as a JSON Pointer into the root object.
    fn current_pointer(&self) -> String {
        let mut pointer = String::new();
        for token in &self.pointer {
            match token {
                PointerToken::Field(name) => push_pointer(&mut pointer, name),
                PointerToken::Member(name) => push_pointer(&mut pointer, name),
                PointerToken::Element(index) => push_pointer(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }

    fn write_name(&mut self, name: &str, first: &mut bool) -> Result<(), GatewayError> {
        if !std::mem::take(first) {
            self.out.push(b',');
        }
        self.write_string(name)?;
        self.out.push(b':');
        Ok(())
    }

    fn write_string(&mut self, text: &str) -> Result<(), GatewayError> {
        if needs_no_escape(text) {
            self.out.push(b'"');
            self.out.extend_from_slice(text.as_bytes());
            self.out.push(b'"');
            return Ok(());
        }
        serde_json::to_writer(&mut *self.out, text).map_err(|error| {
            GatewayError::new(ErrorClass::Internal, format!("writing JSON failed: {error}"))
        })
    }

    fn warn_left_out(&mut self, what: &str, term: TermRef<'_>, path: &NestingPath<'_>) {
        let shown: String = term.to_string().chars().take(80).collect();
        self.add_warning(path, &format!("the value {shown} is {what}, and is left out"));
    }

    fn add_warning(&mut self, path: &NestingPath<'_>, message: &str) {
        let message = match self.warnings.len() {
            0..MAX_WARNINGS => format!("{}: {message}", path.uri.as_str()),
            MAX_WARNINGS => "there are more warnings, which are not listed".to_owned(),
            _ => return,
        };
        self.warnings.push(Finding::at_pointer(self.current_pointer(), message));
    }
}

/// Returns whether this is the first field with its property.
fn is_first_with_property(shape: &Shape, place: usize, property: &Property) -> bool {
    let mut before = shape.fields.iter().take(place).filter_map(Field::property);
    before.all(|before| before.predicate != property.predicate)
}

/// Returns whether a JSON string can hold the text without escapes (RFC 8259, section 7).
fn needs_no_escape(text: &str) -> bool {
    // Without a branch for each byte, the compiler checks many bytes at once.
    let is_special = |byte| u8::from(matches!(byte, 0..b' ' | b'"' | b'\\'));
    text.bytes().fold(0, |found, byte| found | is_special(byte)) == 0
}
