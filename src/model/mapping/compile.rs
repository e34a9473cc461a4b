//! Compiles YAML nodes into the tree of shapes.
//!
//! `compiler` has what is known meanwhile, and `position` names where a definition is. `definition` reads the entries of one
//! definition, `field` a field by its type, `codes` the codes of its values, `group` a group of them, `language_map` what
//! only language maps have, `map` maps, `key` what identifies an object and its types, `reading` what senders may write,
//! `document` what is around the objects. `share` checks that each value of a shared property belongs to one field, and
//! `label` checks the root's `label`. An error is reported where it is found, and reading continues, so one run reports all
//! errors.

mod codes;
mod compiler;
mod definition;
mod document;
mod field;
mod group;
mod key;
mod label;
mod language_map;
mod map;
mod position;
mod reading;
mod share;

use super::path;
use super::prefixes::Prefixes;
use super::yaml::{self, Content, Location, Node};
use super::{Field, FieldKind, Mapping, Reading, Shape, UnknownFields};
use compiler::{Checked, Compiler, DocumentKeys, MAX_FINDINGS, MAX_NAME_CHARS};
use definition::Definition;
use group::is_group;
use oxrdf::NamedNode;
use penstock_base::error::{Finding, Place};
use penstock_store::Format;
use position::Position;

/// The maximum number of namespaces in one mapping.
const MAX_NAMESPACES: usize = 1000;

/// Compiles the text of a `config` in YAML or JSON.
///
/// The limits are 1 MiB of text, 256 levels of objects, and in JSON 255 levels of brackets.
///
/// # Errors
/// Returns every error in the order of the text, each with line and column. After the first thousand, the list ends
/// with a note that there are more.
pub fn compile(config: &str) -> Result<Mapping, Vec<Finding>> {
    let mut findings = Vec::new();
    let mapping = match yaml::parse_document(config, &mut findings) {
        Ok(node) => {
            let mut compiler = Compiler {
                prefixes: Prefixes::default(),
                findings,
                warnings: Vec::new(),
                label: None,
                root_namespace: None,
                inherited: Reading::default(),
                store_format: Format::default(),
                document: DocumentKeys::default(),
                level: 0,
                object_levels: 0,
            };
            let root = compiler.compile_root(&node).ok();
            let Compiler { prefixes, label, warnings, store_format, document, .. } = compiler;
            findings = compiler.findings;
            root.map(|(root, unknown_fields)| Mapping {
                document: document.into_form(&root),
                root,
                prefixes,
                unknown_fields,
                label,
                warnings,
                store_format,
            })
        }
        Err(finding) => {
            findings.push(finding);
            None
        }
    };
    match mapping {
        Some(mapping) if findings.is_empty() => Ok(mapping),
        _ => {
            findings.sort_by_key(|finding| match finding.place {
                Place::Line { line, column } => (line, column),
                _ => (0, 0),
            });
            if findings.len() > MAX_FINDINGS {
                findings.truncate(MAX_FINDINGS);
                findings.push(Finding::whole("there are more errors".to_owned()));
            }
            Err(findings)
        }
    }
}

impl Compiler {
    fn compile_root(&mut self, node: &Node) -> Checked<(Shape, UnknownFields)> {
        let place = Position::Root;
        let definition = self.read_definition(node, &place)?;
        self.read_prefixes(&definition);
        self.check_keys(
            &definition,
            &[
                "type",
                "path",
                "fields",
                "key",
                "types",
                "label",
                "unknownFields",
                "prefixes",
                "timeZone",
                "absent",
                "items",
            ],
        );
        let is_object = match self.read_text(&definition, "type") {
            Ok(Some((_, "object"))) => Ok(()),
            Ok(Some((at, other))) => {
                let message = format!("the type is `{other}`; the root is always `type: object`");
                Err(self.report_error(at, &place, message))
            }
            Ok(None) => Err(self.report_error(definition.at, &place, "`type: object` is missing")),
            Err(reported) => Err(reported),
        };
        let namespace = match self.read_path(&definition) {
            Ok(Some((at, path))) => match (path.predicate, path.namespace) {
                (None, Some(namespace)) => Ok(namespace),
                _ => Err(self.report_error(
                    at,
                    &place,
                    "the path of the root names only the namespace, as `Namespace:.`",
                )),
            },
            Ok(None) => Err(self.report_error(
                definition.at,
                &place,
                "`path` is missing; it names the namespace of the objects, as `Namespace:.`",
            )),
            Err(reported) => Err(reported),
        };
        self.root_namespace = namespace.as_ref().ok().cloned();
        self.read_root_reading(&definition);
        self.document.items = self.read_items(&definition);
        let unknown_fields = self.read_unknown_fields(&definition);
        let fields = self.compile_fields(&definition);
        let root = self.compile_shape(&definition, namespace, fields);
        if let Ok(root) = &root {
            self.read_label(&definition, &root.fields);
        }
        is_object?;
        let (root, unknown_fields) = (root?, unknown_fields?);
        let mapping = Mapping::new(root);
        let namespaces = mapping.namespaces().len();
        if namespaces > MAX_NAMESPACES {
            let message = format!(
                "the mapping names {namespaces} namespaces; the maximum is {MAX_NAMESPACES}"
            );
            return Err(self.report_error(definition.at, &place, message));
        }
        Ok((mapping.root, unknown_fields))
    }

    /// Reads the key and the types of an object, the root or a nested one.
    fn compile_shape(
        &mut self,
        definition: &Definition<'_>,
        namespace: Checked<String>,
        fields: Checked<Vec<Field>>,
    ) -> Checked<Shape> {
        let types = self.read_types(definition);
        // An invalid namespace hides no error of the key.
        let mut shape = Shape::new(namespace.clone().unwrap_or_default(), fields?);
        shape.key = self.read_key(definition, &shape)?;
        shape.types = types?;
        self.check_types(definition, &shape)?;
        namespace.map(|_| shape)
    }

    fn read_unknown_fields(&mut self, definition: &Definition<'_>) -> Checked<UnknownFields> {
        match self.read_text(definition, "unknownFields")? {
            None | Some((_, "reject")) => Ok(UnknownFields::Reject),
            Some((_, "ignore")) => Ok(UnknownFields::Ignore),
            Some((at, other)) => {
                let message = format!("`unknownFields` is `{other}`; write `reject` or `ignore`");
                Err(self.report_error(at, definition.place, message))
            }
        }
    }

    fn read_prefixes(&mut self, root: &Definition<'_>) {
        let Some((_, node)) = root.get("prefixes") else { return };
        let Content::Mapping(entries) = &node.content else {
            let message = format!(
                "`prefixes` maps each prefix to an IRI, as `ex: http://example.com/`, and is not {}",
                node.kind()
            );
            self.report_error(node.at, &Position::Root, message);
            return;
        };
        for (key, value) in entries {
            let Content::Scalar { text, .. } = &value.content else {
                let message =
                    format!("the prefix `{}` must be an IRI, not {}", key.name, value.kind());
                self.report_error(value.at, &Position::Root, message);
                continue;
            };
            let iri = text.strip_prefix('<').and_then(|iri| iri.strip_suffix('>')).unwrap_or(text);
            if let Err(error) = NamedNode::new(iri) {
                let message = format!(
                    "the prefix `{}` is `{iri}`, which is not an absolute IRI: {error}",
                    key.name
                );
                self.report_error(value.at, &Position::Root, message);
            }
            // An invalid prefix is declared as well, so that its error is reported once and not at each use.
            self.prefixes.declare(key.name.clone(), iri.to_owned());
        }
    }

    /// Compiles the fields of an object, with those in its groups.
    fn compile_fields(&mut self, object: &Definition<'_>) -> Checked<Vec<Field>> {
        let place = object.place;
        let mut fields = Vec::new();
        self.object_levels += 1;
        let result = self.read_fields(object, &mut fields);
        self.object_levels -= 1;
        if result.is_ok() && fields.iter().all(|(_, field)| field.kind == FieldKind::Id) {
            return Err(self.report_error(
                object.get("fields").map_or(object.at, |(_, node)| node.at),
                place,
                match place {
                    Position::Root => {
                        "`fields` contains only the `id`; an object needs a field with a value, such as \
                         `name: {type: string, path: <http://example.com/name>}`"
                    }
                    _ => {
                        "`fields` contains only the `id`; an object needs a field with a value. For a field that \
                         contains only the URI of another object, write `type: resource` with the property as its `path`"
                    }
                },
            ));
        }
        let named = self.check_names(&fields, place);
        let maps = self.check_maps(&fields, place);
        let defaults = self.check_defaults(&fields, place);
        self.check_shared(&fields, place).and(named).and(maps).and(defaults).and(result)?;
        Ok(fields.into_iter().map(|(_, field)| field).collect())
    }

    /// Reads the fields of an object or of a group, which is one level of the mapping.
    fn read_fields(
        &mut self,
        holder: &Definition<'_>,
        fields: &mut Vec<(Location, Field)>,
    ) -> Checked<()> {
        self.check_level(holder.at, holder.place)?;
        self.level += 1;
        let result = self.read_level_fields(holder, fields);
        self.level -= 1;
        result
    }

    fn read_level_fields(
        &mut self,
        holder: &Definition<'_>,
        fields: &mut Vec<(Location, Field)>,
    ) -> Checked<()> {
        let place = holder.place;
        let Some((_, node)) = holder.get("fields") else {
            return Err(self.report_error(
                holder.at,
                place,
                "`fields` is missing; an object maps each of its field names to a definition",
            ));
        };
        let entries = match &node.content {
            Content::Mapping(entries) if !entries.is_empty() => entries,
            Content::Mapping(_) | Content::Null => {
                return Err(self.report_error(
                    node.at,
                    place,
                    "`fields` is empty; an object needs a field",
                ));
            }
            _ => {
                let message =
                    format!("`fields` maps field names to definitions, and is not {}", node.kind());
                return Err(self.report_error(node.at, place, message));
            }
        };
        fields.reserve(entries.len());
        let mut result = Ok(());
        for (key, node) in entries {
            let place = Position::Field(place, &key.name);
            let named = self.check_name(key, &place);
            let read = if is_group(node) {
                self.compile_group(&key.name, node, &place, fields)
            } else {
                self.compile_field(node, &place)
                    .and_then(|kind| self.add_field((key, node), kind, &place, fields))
            };
            result = result.and(read).and(named);
        }
        result
    }

    /// Adds a field to those of its object. An object has one field of type `id`.
    fn add_field(
        &mut self,
        (key, node): (&yaml::Key, &Node),
        kind: FieldKind,
        place: &Position<'_>,
        fields: &mut Vec<(Location, Field)>,
    ) -> Checked<()> {
        let outer = self.read_outer(node, &kind, place);
        let mut result = Ok(());
        if kind == FieldKind::Id
            && let Some((_, first)) = fields.iter().find(|(_, field)| field.kind == FieldKind::Id)
        {
            let message = format!(
                "an object has only one field of type `id`, which is already `{}`",
                first.name
            );
            result = Err(self.report_error(key.at, place, message));
        }
        fields.push((key.at, Field::new(key.name.clone(), kind)));
        result.and(outer)
    }

    fn check_name(&mut self, key: &yaml::Key, place: &Position<'_>) -> Checked<()> {
        if key.name.is_empty() {
            Err(self.report_error(key.at, place, "the name of a field is empty"))
        } else if key.name.chars().any(char::is_control) {
            Err(self.report_error(
                key.at,
                place,
                "the name of a field contains a control character",
            ))
        } else if key.name.chars().count() > MAX_NAME_CHARS {
            let message = format!("the name of a field has up to {MAX_NAME_CHARS} characters");
            Err(self.report_error(key.at, place, message))
        } else {
            Ok(())
        }
    }

    /// Returns the `path` of a definition, if it has one.
    fn read_path(
        &mut self,
        definition: &Definition<'_>,
    ) -> Checked<Option<(Location, path::Path)>> {
        let Some((at, text)) = self.read_text(definition, "path")? else { return Ok(None) };
        match path::parse_path(text, &mut self.prefixes) {
            Ok(path) => Ok(Some((at, path))),
            Err(why) => {
                let message = format!("the path `{text}` is invalid: {why}");
                Err(self.report_error(at, definition.place, message))
            }
        }
    }
}

#[cfg(test)]
mod tests;
