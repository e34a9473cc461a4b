//! Reads where the objects are in documents (`items`), and what fields take from around them (`outer`).
use super::compiler::{Checked, Compiler, DocumentKeys};
use super::definition::Definition;
use super::position::Position;
use crate::mapping::document::{parse_items, parse_outer};
use crate::mapping::yaml::Node;
use crate::mapping::{DocumentForm, FieldKind, Outer, Shape, Step};

impl DocumentKeys {
    /// Returns the form of documents, if the mapping has `items`.
    pub(super) fn into_form(self, root: &Shape) -> Option<Box<DocumentForm>> {
        let items = self.items.ok()??;
        let find = |(name, outer): (String, Outer)| {
            Some((root.fields.iter().position(|field| field.name == name)?, outer))
        };
        let outer = self.outer.into_iter().filter_map(find).collect();
        Some(Box::new(DocumentForm { items, outer }))
    }
}

impl Compiler {
    /// Reads `items` of the root, which `outer` of the fields needs.
    pub(super) fn read_items(&mut self, root: &Definition<'_>) -> Checked<Option<Vec<Step>>> {
        let Some((at, text)) = self.read_text(root, "items")? else {
            return Ok(None);
        };
        parse_items(text).map(Some).ok_or_else(|| {
            let message = format!(
                "`items` is `{text}`, which is no JSON Pointer to the objects in a document; write it as `/metrics/*`, in \
                 which `*` matches each element or member"
            );
            self.report_error(at, root.place, message)
        })
    }

    /// Reads `outer` of a field.
    pub(super) fn read_outer(
        &mut self,
        node: &Node,
        kind: &FieldKind,
        place: &Position<'_>,
    ) -> Checked<()> {
        let definition = self.read_definition(node, place)?;
        let Some((at, text)) = self.read_text(&definition, "outer")? else {
            return Ok(());
        };
        // Its error has been reported.
        let Ok(items) = &self.document.items else { return Ok(()) };
        let outer = match items {
            _ if self.object_levels > 1 => Err(
                "only fields of the root, and of groups in it, take a value from around the object; move it there".to_owned(),
            ),
            None => Err(
                "it takes a value from around the object; say where the objects are in a document with `items` at the root, \
                 such as `items: /metrics/*`"
                    .to_owned(),
            ),
            Some(items) => parse_outer(text, items),
        };
        let outer = outer.and_then(|outer| match (&outer, kind) {
            (Outer::Star(_), FieldKind::Property(property))
                if property.value.shape().is_some() || property.value.language_map().is_some() =>
            {
                Err("a star is the name of a member, which is a text; this field has objects"
                    .to_owned())
            }
            _ => Ok(outer),
        });
        match outer {
            Ok(outer) => {
                self.document.outer.push((place.field_name(), outer));
                Ok(())
            }
            Err(why) => Err(self.report_error(at, place, format!("`outer` is `{text}`: {why}"))),
        }
    }
}
