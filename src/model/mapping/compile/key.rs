//! Reads what identifies an object (`key`, `keyScope`) and the types that are written with it (`types`).
use super::compiler::{Checked, Compiler, MAX_WARNINGS};
use super::definition::{Definition, format_list};
use super::position::Position;
use crate::mapping::path;
use crate::mapping::yaml::{Content, Location, Node, list_nodes};
use crate::mapping::{FieldKind, KINDS, KeyDefinition, KeyFields, KeyScope, Shape, Value};
use oxrdf::NamedNode;
use oxrdf::vocab::rdf;

impl Compiler {
    /// Reads `key` and `keyScope` of an object with the fields of `shape`.
    pub(super) fn read_key(
        &mut self,
        definition: &Definition<'_>,
        shape: &Shape,
    ) -> Checked<KeyDefinition> {
        let place = definition.place;
        let scope = self.read_key_scope(definition);
        let Some((at, node)) = definition.get("key") else {
            if let Some((at, _)) = definition.get("keyScope") {
                return Err(self.report_error(at, place, "`keyScope` needs a `key`"));
            }
            return Ok(KeyDefinition::Omitted);
        };
        let names = self.read_texts(node, "key", "the name of a field", place)?;
        let mut indexes = Vec::with_capacity(names.len());
        let mut result = Ok(());
        for (at, name) in names {
            match find_key_field(shape, name) {
                Ok(index) if indexes.contains(&index) => {
                    let message = format!("the key names the field `{name}` twice");
                    result = Err(self.report_error(at, place, message));
                }
                Ok(index) => indexes.push(index),
                Err(why) => {
                    let message = format!("the key cannot have the field `{name}`: {why}");
                    result = Err(self.report_error(at, place, message));
                }
            }
        }
        result?;
        let scope = scope?;
        if indexes.is_empty() {
            return Ok(KeyDefinition::Empty);
        }
        let is_stated = definition.get("keyScope").is_some();
        if scope == KeyScope::Namespace && !is_stated && !matches!(place, Position::Root) {
            self.warn(at, place, format_args!(
                "the key identifies these objects in the whole namespace `{}`, not only in their parent; write \
                 `keyScope: parent` if the values are unique only there, or `keyScope: namespace` to confirm it",
                shape.namespace
            ));
        }
        Ok(KeyDefinition::Fields(KeyFields { indexes, scope }))
    }

    fn read_key_scope(&mut self, definition: &Definition<'_>) -> Checked<KeyScope> {
        match self.read_text(definition, "keyScope")? {
            None | Some((_, "namespace")) => Ok(KeyScope::Namespace),
            Some((_, "parent")) => Ok(KeyScope::Parent),
            Some((at, other)) => {
                let message = format!("`keyScope` is `{other}`; write `parent` or `namespace`");
                Err(self.report_error(at, definition.place, message))
            }
        }
    }

    fn warn(&mut self, at: Location, place: &Position<'_>, message: impl std::fmt::Display) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(at.to_finding(format!("{place}: {message}")));
        }
    }

    /// Reads the IRIs under `types`.
    pub(super) fn read_types(&mut self, definition: &Definition<'_>) -> Checked<Vec<NamedNode>> {
        let Some((_, node)) = definition.get("types") else { return Ok(Vec::new()) };
        let place = definition.place;
        let mut types = Vec::new();
        let mut result = Ok(());
        for (at, text) in self.read_texts(node, "types", "an IRI", place)? {
            match path::parse_iri(text, &mut self.prefixes) {
                Ok(iri) if types.contains(&iri) => {}
                Ok(iri) => types.push(iri),
                Err(why) => {
                    let message = format!("the type `{text}` is invalid: {why}");
                    result = Err(self.report_error(at, place, message));
                }
            }
        }
        result.map(|()| types)
    }

    /// Checks that no field has the property that `types` writes, because its values could not be told apart from them.
    pub(super) fn check_types(
        &mut self,
        definition: &Definition<'_>,
        shape: &Shape,
    ) -> Checked<()> {
        let Some((at, _)) = definition.get("types").filter(|_| !shape.types.is_empty()) else {
            return Ok(());
        };
        let is_type = |kind: &FieldKind| matches!(kind, FieldKind::Property(property) if property.predicate == rdf::TYPE);
        match shape.fields.iter().find(|field| is_type(&field.kind)) {
            None => Ok(()),
            Some(field) => {
                let message = format!(
                    "the field `{}` has the property rdf:type, which `types` writes; remove one of them",
                    field.name
                );
                Err(self.report_error(at, definition.place, message))
            }
        }
    }

    /// Reads a text, or a list of texts.
    pub(super) fn read_texts<'a>(
        &mut self,
        node: &'a Node,
        name: &str,
        what: &str,
        place: &Position<'_>,
    ) -> Checked<Vec<(Location, &'a str)>> {
        let nodes = list_nodes(node);
        let mut texts = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Content::Scalar { text, .. } = &node.content else {
                let message =
                    format!("`{name}` is {what} or a list of them, and is not {}", node.kind());
                return Err(self.report_error(node.at, place, message));
            };
            texts.push((node.at, text.as_str()));
        }
        Ok(texts)
    }
}

/// Returns the index of a field that a key may have.
fn find_key_field(shape: &Shape, name: &str) -> Result<usize, String> {
    let Some((index, field)) =
        shape.fields.iter().enumerate().find(|(_, field)| field.name == name)
    else {
        return Err("the object has no field of this name".to_owned());
    };
    let FieldKind::Property(property) = &field.kind else {
        return Err("it is the object's own URI, which identifies it already".to_owned());
    };
    if property.map().is_some() {
        return Err("it is a map, and a key has single values".to_owned());
    }
    if property.is_array {
        return Err("it is an array, and a key has single values".to_owned());
    }
    if property.value.kind().key_text.is_none() {
        let kinds = KINDS.iter().map(Value::kind).filter(|kind| kind.key_text.is_some());
        let names: Vec<&str> = kinds.map(|kind| kind.name).collect();
        return Err(format!("a key has fields of the types {}", format_list(&names)));
    }
    if property.default_value().is_some() {
        return Err(
            "it has a `default`, but its value says which object is meant; remove the `default`"
                .to_owned(),
        );
    }
    if !property.required {
        return Err("it is not required; add `required: true`".to_owned());
    }
    Ok(index)
}
