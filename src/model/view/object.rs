//! Writes one object and the objects nested in it.
use super::WARNINGS;
use super::budget::{Budget, Form, MOST};
use super::shown::Shown;
use super::values::{Owned, Values};
use crate::mapping::{Field, FieldKind, Literal, Property, Shape, Value};
use oxrdf::{NamedNode, NamedNodeRef, TermRef};
use penstock_base::fault::{Fault, Finding, Kind};
use penstock_base::json::push_pointer;
use penstock_store::{About, Read};
use std::collections::BTreeSet;

/// The maximum number of languages that one warning names.
const LANGUAGES: usize = 10;

pub(super) struct Writer<'w, R> {
    pub(super) read: &'w R,
    pub(super) out: &'w mut Vec<u8>,
    pub(super) warnings: &'w mut Vec<Finding>,
    /// The position in the root object of the value that is being written.
    pub(super) pointer: Vec<Token<'w>>,
    pub(super) budget: Budget,
}

/// A reference token of a JSON Pointer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Token<'w> {
    Field(&'w str),
    Element(usize),
}

/// The objects from the root to the one being shown. An object that is nested in itself is shown only by its URI.
pub struct Path<'p> {
    /// The object.
    pub uri: &'p NamedNode,
    /// The path to the object that contains it.
    pub above: Option<&'p Path<'p>>,
}

impl Path<'_> {
    fn root(&self) -> &NamedNode {
        self.above.map_or(self.uri, Path::root)
    }

    /// Returns whether the object is on this path.
    pub fn holds(&self, uri: &NamedNode) -> bool {
        self.uri == uri || self.above.is_some_and(|above| above.holds(uri))
    }
}

impl<'w, R: Read> Writer<'w, R> {
    /// Writes the last object of `path`, whose stored quads are in `about`.
    pub(super) fn write(
        &mut self,
        shape: &'w Shape,
        path: &Path<'_>,
        about: &About,
    ) -> Result<(), Fault> {
        self.out.push(b'{');
        let mut first = true;
        let placed =
            shape.fields.iter().any(|field| field.kind == FieldKind::Id && field.name == "uri");
        if !placed {
            self.name("uri", &mut first)?;
            self.string(path.uri.as_str())?;
        }
        let owned = Owned::new(shape, about.iter());
        for (place, field) in shape.fields.iter().enumerate() {
            match &field.kind {
                FieldKind::Id => {
                    self.name(&field.name, &mut first)?;
                    self.string(path.uri.as_str())?;
                }
                FieldKind::Property(property) => {
                    self.pointer.push(Token::Field(&field.name));
                    self.field((place, field), property, &owned, path, &mut first)?;
                    self.warn_of_unowned(shape, place, property, &owned, path);
                    self.pointer.pop();
                }
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Warns of stored values of a field's property that belong to no field, if a reader would miss them. These are
    /// objects in other namespaces, and texts in other languages if there is none in the field's language.
    fn warn_of_unowned(
        &mut self,
        shape: &Shape,
        place: usize,
        property: &Property,
        owned: &Owned<'_>,
        path: &Path<'_>,
    ) {
        let mut unowned = owned.unowned(property.predicate.as_ref()).peekable();
        if unowned.peek().is_none() {
            return;
        }
        match &property.value {
            Value::Object(_) if is_first(shape, place, property) => {
                let mut objects: Vec<_> = unowned.collect();
                objects.sort_by_cached_key(TermRef::to_string);
                objects.dedup();
                for object in objects {
                    let what = "in no namespace of the fields that share its property";
                    self.left_out(what, object, path);
                }
            }
            Value::Literal(Literal::Language(tag)) if owned.at(place).is_empty() => {
                let languages: BTreeSet<_> = unowned
                    .filter_map(|value| match value {
                        TermRef::Literal(literal) => literal.language(),
                        _ => None,
                    })
                    .collect();
                let languages: Vec<_> = languages.into_iter().take(LANGUAGES).collect();
                let message = format!(
                    "there is no text in the language {tag}, but texts in {}; a field of type string without \
                     `language` shows them",
                    languages.join(", ")
                );
                self.warn(path, &message);
            }
            _ => {}
        }
    }

    fn field(
        &mut self,
        (place, field): (usize, &'w Field),
        property: &'w Property,
        owned: &Owned<'_>,
        path: &Path<'_>,
        first: &mut bool,
    ) -> Result<(), Fault> {
        // Most fields have one value, which needs no sorting.
        match (owned.at(place), &property.value) {
            ([(_, TermRef::Literal(literal))], Value::Literal(kind)) => {
                let shown = [Shown::alone(kind, *literal)];
                return self.literals(&field.name, property, &shown, path, first);
            }
            ([(_, TermRef::NamedNode(iri))], Value::Resource | Value::Object(_)) => {
                return self.iris(&field.name, property, &[*iri], path, first);
            }
            _ => {}
        }
        let values = owned.values(place, property, &mut |what, term| {
            self.left_out(what, term, path);
        });
        match values {
            Values::Literals(shown) => self.literals(&field.name, property, &shown, path, first),
            Values::Iris(iris) => self.iris(&field.name, property, &iris, path, first),
        }
    }

    fn literals(
        &mut self,
        name: &str,
        property: &'w Property,
        shown: &[Shown<'_>],
        path: &Path<'_>,
        first: &mut bool,
    ) -> Result<(), Fault> {
        self.values(name, property, shown, path, first, |writer, value, _| {
            writer.literal(value, path)
        })
    }

    fn iris(
        &mut self,
        name: &str,
        property: &'w Property,
        iris: &[NamedNodeRef<'_>],
        path: &Path<'_>,
        first: &mut bool,
    ) -> Result<(), Fault> {
        if let Value::Object(shape) = &property.value {
            return self.values(name, property, iris, path, first, |writer, iri, path| {
                writer.nested(shape, &iri.into_owned(), path)
            });
        }
        self.values(name, property, iris, path, first, |writer, iri, _| writer.string(iri.as_str()))
    }

    /// Writes the values of a field: all of them as an array, or only the first.
    fn values<V>(
        &mut self,
        name: &str,
        property: &Property,
        values: &[V],
        path: &Path<'_>,
        first: &mut bool,
        mut write: impl FnMut(&mut Self, &V, &Path<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if property.many {
            self.name(name, first)?;
            self.out.push(b'[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    self.out.push(b',');
                }
                self.pointer.push(Token::Element(index));
                write(self, value, path)?;
                self.pointer.pop();
            }
            self.out.push(b']');
        } else if let Some(value) = values.first() {
            if values.len() > 1 {
                let count = values.len();
                self.warn(
                    path,
                    &format!(
                        "there are {count} values, but the field is not an array; only the first is shown"
                    ),
                );
            }
            self.name(name, first)?;
            write(self, value, path)?;
        }
        Ok(())
    }

    fn literal(&mut self, value: &Shown<'_>, path: &Path<'_>) -> Result<(), Fault> {
        if let Some(doubt) = &value.doubt {
            self.warn(path, doubt);
        }
        if value.raw {
            self.out.extend_from_slice(value.text.as_bytes());
            Ok(())
        } else {
            self.string(&value.text)
        }
    }

    fn nested(&mut self, shape: &'w Shape, uri: &NamedNode, path: &Path<'_>) -> Result<(), Fault> {
        if path.holds(uri) {
            return self.reference(uri);
        }
        match self.budget.form(shape, uri, self.out.len()) {
            Form::Whole => {}
            Form::Uri { first } => {
                if first {
                    self.warn(
                        path,
                        "the object is large; from here on, objects that are nested in it several times are \
                         shown only by their URI",
                    );
                }
                return self.reference(uri);
            }
            Form::None => return Err(self.too_large(path)),
        }
        let mut about = About::default();
        self.read.about(uri.as_ref().into(), &mut about)?;
        self.write(shape, &Path { uri, above: Some(path) }, &about)
    }

    fn reference(&mut self, uri: &NamedNode) -> Result<(), Fault> {
        self.out.push(b'{');
        self.name("uri", &mut true)?;
        self.string(uri.as_str())?;
        self.out.push(b'}');
        Ok(())
    }

    fn too_large(&self, path: &Path<'_>) -> Fault {
        let message = format!(
            "the object {} is too large to be shown: including nested objects, it exceeds {} MiB or {} objects at {}; \
             map such a field as a resource, and the objects that it refers to in a Business Object of their own",
            path.root().as_str(),
            MOST.bytes >> 20,
            MOST.nested,
            self.place()
        );
        Fault::new(Kind::TooLarge, message)
    }

    /// Returns the position of the value being written as a JSON Pointer into the root object.
    fn place(&self) -> String {
        let mut pointer = String::new();
        for token in &self.pointer {
            match token {
                Token::Field(name) => push_pointer(&mut pointer, name),
                Token::Element(index) => push_pointer(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }

    fn name(&mut self, name: &str, first: &mut bool) -> Result<(), Fault> {
        if !std::mem::take(first) {
            self.out.push(b',');
        }
        self.string(name)?;
        self.out.push(b':');
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<(), Fault> {
        if stands_for_itself(text) {
            self.out.push(b'"');
            self.out.extend_from_slice(text.as_bytes());
            self.out.push(b'"');
            return Ok(());
        }
        serde_json::to_writer(&mut *self.out, text)
            .map_err(|error| Fault::new(Kind::Internal, format!("writing JSON failed: {error}")))
    }

    fn left_out(&mut self, what: &str, term: TermRef<'_>, path: &Path<'_>) {
        let shown: String = term.to_string().chars().take(80).collect();
        self.warn(path, &format!("the value {shown} is {what}, and is left out"));
    }

    fn warn(&mut self, path: &Path<'_>, message: &str) {
        let message = match self.warnings.len() {
            0..WARNINGS => format!("{}: {message}", path.uri.as_str()),
            WARNINGS => "there are more warnings, which are not listed".to_owned(),
            _ => return,
        };
        self.warnings.push(Finding::at(self.place(), message));
    }
}

/// Returns whether this is the first field with its property.
fn is_first(shape: &Shape, place: usize, property: &Property) -> bool {
    shape.fields.iter().take(place).all(|field| match &field.kind {
        FieldKind::Property(before) => before.predicate != property.predicate,
        FieldKind::Id => true,
    })
}

/// Returns whether a JSON string can hold the text without escapes (RFC 8259, section 7).
fn stands_for_itself(text: &str) -> bool {
    // Without a branch for each byte, the compiler checks many bytes at once.
    let is_special = |byte| u8::from(matches!(byte, 0..b' ' | b'"' | b'\\'));
    text.bytes().fold(0, |found, byte| found | is_special(byte)) == 0
}
