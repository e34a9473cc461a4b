//! Writing one object and the objects nested in it.
use super::WARNINGS;
use super::shown::Shown;
use super::values::{Owned, Values};
use crate::business_object::json::push_pointer;
use crate::business_object::mapping::{FieldKind, Property, Shape, Value};
use crate::fault::{Fault, Finding, Kind};
use oxrdf::{NamedNode, Term};
use penstock_store::Read;

pub(super) struct Writer<'w, R> {
    pub(super) read: &'w R,
    pub(super) out: &'w mut Vec<u8>,
    pub(super) warnings: &'w mut Vec<Finding>,
    pub(super) pointer: String,
}

/// The objects from the root to the one being shown. One that stands within itself is shown by its URI
/// alone.
pub(crate) struct Path<'p> {
    pub(crate) uri: &'p NamedNode,
    pub(crate) above: Option<&'p Path<'p>>,
}

impl Path<'_> {
    /// Whether the object is among them.
    pub(crate) fn holds(&self, uri: &NamedNode) -> bool {
        self.uri == uri || self.above.is_some_and(|above| above.holds(uri))
    }
}

impl<R: Read> Writer<'_, R> {
    pub(super) fn object(&mut self, shape: &Shape, path: &Path<'_>) -> Result<(), Fault> {
        let quads = self.read.quads_about(&path.uri.clone().into())?;
        self.out.push(b'{');
        let mut first = true;
        let placed =
            shape.fields.iter().any(|field| field.kind == FieldKind::Id && field.name == "uri");
        if !placed {
            self.name("uri", &mut first)?;
            self.string(path.uri.as_str())?;
        }
        let owned = Owned::new(shape, &quads);
        for (place, field) in shape.fields.iter().enumerate() {
            match &field.kind {
                FieldKind::Id => {
                    self.name(&field.name, &mut first)?;
                    self.string(path.uri.as_str())?;
                }
                FieldKind::Property(property) => {
                    let length = self.pointer.len();
                    push_pointer(&mut self.pointer, &field.name);
                    let values = owned.values(place, property, &mut |what, term| {
                        self.left_out(what, term, path);
                    });
                    self.field(&field.name, property, &values, path, &mut first)?;
                    self.pointer.truncate(length);
                }
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn field(
        &mut self,
        name: &str,
        property: &Property,
        values: &Values<'_>,
        path: &Path<'_>,
        first: &mut bool,
    ) -> Result<(), Fault> {
        match (values, &property.value) {
            (Values::Literals(shown), _) => {
                self.values(name, property, shown, path, first, |writer, value, _| {
                    writer.literal(value, path)
                })
            }
            (Values::Iris(iris), Value::Object(shape)) => {
                self.values(name, property, iris, path, first, |writer, iri, path| {
                    writer.nested(shape, iri, path)
                })
            }
            (Values::Iris(iris), _) => {
                self.values(name, property, iris, path, first, |writer, iri, _| {
                    writer.string(iri.as_str())
                })
            }
        }
    }

    /// Writes what a field holds: an array of all, or the first alone.
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
                let length = self.pointer.len();
                push_pointer(&mut self.pointer, &index.to_string());
                write(self, value, path)?;
                self.pointer.truncate(length);
            }
            self.out.push(b']');
        } else if let Some(value) = values.first() {
            if values.len() > 1 {
                let count = values.len();
                self.warn(
                    path,
                    &format!(
                        "{count} values stand under a field that is no array; the first is shown"
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

    fn nested(&mut self, shape: &Shape, uri: &NamedNode, path: &Path<'_>) -> Result<(), Fault> {
        if path.holds(uri) {
            self.out.push(b'{');
            self.name("uri", &mut true)?;
            self.string(uri.as_str())?;
            self.out.push(b'}');
            return Ok(());
        }
        self.object(shape, &Path { uri, above: Some(path) })
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
        serde_json::to_writer(&mut *self.out, text)
            .map_err(|error| Fault::new(Kind::Internal, format!("writing JSON failed: {error}")))
    }

    fn left_out(&mut self, what: &str, term: &Term, path: &Path<'_>) {
        let shown: String = term.to_string().chars().take(80).collect();
        self.warn(path, &format!("the value {shown} is {what}, and is left out"));
    }

    fn warn(&mut self, path: &Path<'_>, message: &str) {
        let message = match self.warnings.len() {
            0..WARNINGS => format!("{}: {message}", path.uri.as_str()),
            WARNINGS => "there are more warnings, which are not named".to_owned(),
            _ => return,
        };
        self.warnings.push(Finding::at(self.pointer.clone(), message));
    }
}
