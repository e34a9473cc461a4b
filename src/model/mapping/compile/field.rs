//! Compiles a field according to its type.
use super::definition::{Definition, Position, format_list};
use super::{Checked, Compiler, ErrorReported};
use crate::mapping::kind::{STRINGS, find_kind};
use crate::mapping::path::{self, Path};
use crate::mapping::yaml::{Content, Location, Node};
use crate::mapping::{FieldKind, KINDS, Literal, Property, Value};
use oxrdf::NamedNode;
use oxrdf::vocab::rdf;
use penstock_base::nearest::find_nearest;

/// The maximum number of warnings about one mapping.
pub(super) const MAX_WARNINGS: usize = 20;

/// The types that are no kind of values.
const STRUCTURES: [&str; 3] = ["object", "id", "array"];

/// What `type` names.
#[derive(Debug, Clone, Copy)]
enum Type {
    Object,
    Id,
    Array,
    Value(&'static Value),
}

impl Type {
    fn find(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "id" => Self::Id,
            "array" => Self::Array,
            _ => Self::Value(find_kind(name)?),
        })
    }

    /// Returns the keys that a definition of this type takes as an element; as a field, it also takes `required`.
    fn element_keys(self) -> Vec<&'static str> {
        let mut keys = self.field_keys();
        keys.retain(|key| *key != "required");
        keys
    }

    fn field_keys(self) -> Vec<&'static str> {
        let own = match self {
            Self::Object => {
                return vec!["type", "path", "fields", "required", "key", "keyScope", "types"];
            }
            Self::Value(value) => value.kind().keys,
            Self::Id | Self::Array => &[],
        };
        let parts: [&[&str]; 3] = [&["type", "path"], own, &["required"]];
        parts.concat()
    }
}

impl Compiler {
    /// Compiles the definition of a field.
    pub(super) fn compile_field(
        &mut self,
        node: &Node,
        place: &Position<'_>,
    ) -> Checked<FieldKind> {
        let definition = self.read_definition(node, place)?;
        let kind = match self.read_type(&definition, place) {
            Ok(kind) => kind,
            Err(reported) => {
                let all =
                    ["type", "path", "fields", "elements", "required", "datatype", "language"];
                self.check_keys(&definition, &all, place);
                return Err(reported);
            }
        };
        match kind {
            Type::Id => {
                self.check_id_keys(&definition, place);
                Ok(FieldKind::Id)
            }
            Type::Array => self.compile_array(&definition, place).map(FieldKind::Property),
            _ => {
                self.check_keys(&definition, &kind.field_keys(), place);
                let required = self.read_required(&definition, place);
                let path = self.read_path(&definition, place);
                let value = self.compile_value(kind, &definition, path, place);
                let (predicate, value) = value?;
                let predicate = self.require_predicate(predicate, definition.at, place)?;
                Ok(FieldKind::Property(Property {
                    predicate,
                    is_array: false,
                    required: required?,
                    value,
                }))
            }
        }
    }

    /// Compiles an array. Its property and namespace are on the array, on its elements, or on both if they agree.
    fn compile_array(
        &mut self,
        definition: &Definition<'_>,
        place: &Position<'_>,
    ) -> Checked<Property> {
        let own = self.read_path(definition, place);
        let required = self.read_required(definition, place);
        let Some((_, node)) = definition.get("elements") else {
            self.check_keys(
                definition,
                &["type", "path", "elements", "required", "datatype", "language"],
                place,
            );
            if let Ok(Some((at, Path { namespace: Some(_), .. }))) = &own {
                return Err(self.report_error(
                    *at,
                    place,
                    "the path leads to objects; define them under `elements`, with `type: object`",
                ));
            }
            let (predicate, value) =
                self.compile_value(Type::Value(&STRINGS), definition, own, place)?;
            let predicate = self.require_predicate(predicate, definition.at, place)?;
            return Ok(Property { predicate, is_array: true, required: required?, value });
        };
        self.check_keys(definition, &["type", "path", "elements", "required"], place);

        let place = Position::Elements(place);
        if let Content::Scalar { text, .. } = &node.content {
            let kind = self.parse_element_type(text, node.at, &place)?;
            let (predicate, value) =
                self.compile_value(kind, &Definition::empty(node.at), own, &place)?;
            let predicate = self.require_predicate(predicate, definition.at, &place)?;
            return Ok(Property { predicate, is_array: true, required: required?, value });
        }
        let elements = self.read_definition(node, &place)?;
        let kind = self.read_type(&elements, &place)?;
        match kind {
            Type::Array => {
                return Err(self.report_error(
                    elements.at,
                    &place,
                    "an array cannot contain arrays: RDF keeps the values of a property as one set, so the inner \
                     arrays would be lost; put an object between them",
                ));
            }
            Type::Id => {
                return Err(self.report_error(
                    elements.at,
                    &place,
                    "an `id` is the object's own URI and cannot be an element; other URIs are of type `resource`",
                ));
            }
            _ => self.check_keys(&elements, &kind.element_keys(), &place),
        }
        let path = self.read_path(&elements, &place);
        let path = self.merge_paths(own, path, &place);
        let (predicate, value) = self.compile_value(kind, &elements, path, &place)?;
        let predicate = self.require_predicate(predicate, definition.at, &place)?;
        Ok(Property { predicate, is_array: true, required: required?, value })
    }

    /// Returns the type of elements that are given only by its name (`elements: string`).
    fn parse_element_type(
        &mut self,
        name: &str,
        at: Location,
        place: &Position<'_>,
    ) -> Checked<Type> {
        match Type::find(name) {
            Some(kind @ Type::Value(_)) => Ok(kind),
            _ => {
                let message = format!(
                    "`{name}` is not a type of \
                     single values; write `elements: string`, or for objects \
                     `elements: {{type: object, path: <IRI>/Namespace:., fields: {{...}}}}`"
                );
                Err(self.report_error(at, place, message))
            }
        }
    }

    /// Reports the keys that an `id` does not take, and explains where a `path` belongs.
    fn check_id_keys(&mut self, definition: &Definition<'_>, place: &Position<'_>) {
        let Some((at, _)) = definition.get("path") else {
            return self.check_keys(definition, &["type"], place);
        };
        self.check_keys(definition, &["type", "path"], place);
        self.report_error(
            at,
            place,
            "`path` has no meaning here; this definition takes only `type`: an `id` is the object's own URI. Remove the \
             `path`, or, to store an identifier as a value, write `type: string` with this path",
        );
    }

    /// Combines the path of an array and that of its elements.
    fn merge_paths(
        &mut self,
        array: Checked<Option<(Location, Path)>>,
        elements: Checked<Option<(Location, Path)>>,
        place: &Position<'_>,
    ) -> Checked<Option<(Location, Path)>> {
        let (array, elements) = (array?, elements?);
        let (Some((_, array)), Some((at, elements))) = (&array, &elements) else {
            return Ok(elements.or(array));
        };
        if let (Some(outer), Some(inner)) = (&array.predicate, &elements.predicate)
            && outer != inner
        {
            let message = format!(
                "the array has the property {outer}, and its elements have {inner}; leave one of them out"
            );
            return Err(self.report_error(*at, place, message));
        }
        if let (Some(outer), Some(inner)) = (&array.namespace, &elements.namespace)
            && outer != inner
        {
            let message = format!(
                "the array has the namespace `{outer}`, and its elements have `{inner}`; leave one of them out"
            );
            return Err(self.report_error(*at, place, message));
        }
        let path = Path {
            predicate: elements.predicate.clone().or_else(|| array.predicate.clone()),
            namespace: elements.namespace.clone().or_else(|| array.namespace.clone()),
        };
        Ok(Some((*at, path)))
    }

    /// Returns the type of values that a definition describes, and the property that its path names.
    fn compile_value(
        &mut self,
        kind: Type,
        definition: &Definition<'_>,
        path: Checked<Option<(Location, Path)>>,
        place: &Position<'_>,
    ) -> Checked<(Option<NamedNode>, Value)> {
        let value = match kind {
            Type::Object => {
                let namespace = match &path {
                    Ok(Some((at, Path { namespace: Some(namespace), .. }))) => {
                        self.check_nested(namespace, *at, place);
                        Ok(namespace.clone())
                    }
                    Ok(path) => Err(self.report_error(
                        path.as_ref().map_or(definition.at, |(at, _)| *at),
                        place,
                        "the path names no namespace for these objects; write it as `<IRI>/Namespace:.`",
                    )),
                    Err(ErrorReported) => Err(ErrorReported),
                };
                let fields = self.compile_fields(definition, place);
                let shape = self.compile_shape(definition, namespace, fields, place);
                return Ok((path?.and_then(|(_, path)| path.predicate), Value::Object(shape?)));
            }
            Type::Value(value) if value.kind().keys.is_empty() => Ok(value.clone()),
            Type::Value(_) => self.compile_string(definition, place).map(Value::Literal),
            Type::Id | Type::Array => Err(ErrorReported),
        };
        let predicate = match path? {
            Some((at, Path { namespace: Some(namespace), .. })) => {
                return Err(self.report_error(
                    at,
                    place,
                    format!("the path names the namespace `{namespace}`, but only objects have one; write it as `<IRI>`"),
                ));
            }
            Some((_, path)) => path.predicate,
            None => None,
        };
        Ok((predicate, value?))
    }

    /// Warns about nested objects in the root's namespace.
    fn check_nested(&mut self, namespace: &str, at: Location, place: &Position<'_>) {
        if self.root_namespace.as_deref() == Some(namespace) && self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(at.to_finding(format!(
                "{place}: these nested objects are in the namespace `{namespace}`, like the root; without \
                 conditions each of them is exported twice, in its parent and as a separate object. Use \
                 another namespace unless this is intended"
            )));
        }
    }

    fn require_predicate(
        &mut self,
        predicate: Option<NamedNode>,
        at: Location,
        place: &Position<'_>,
    ) -> Checked<NamedNode> {
        predicate.ok_or_else(|| {
            self.report_error(at, place, "the path names no property; write it as `<IRI>`, or `<IRI>/Namespace:.` for objects")
        })
    }

    /// Returns the type of a string, by its `datatype` or `language`.
    fn compile_string(
        &mut self,
        definition: &Definition<'_>,
        place: &Position<'_>,
    ) -> Checked<Literal> {
        let datatype = self.read_text(definition, "datatype", place);
        let language = self.read_text(definition, "language", place);
        match (datatype?, language?) {
            (None, None) => Ok(Literal::default()),
            (Some((at, text)), None) => match path::parse_iri(text, &mut self.prefixes) {
                Ok(datatype) if datatype == rdf::LANG_STRING => Err(self.report_error(
                    at,
                    place,
                    "a string of this datatype needs its language; write `language: en` instead of `datatype`",
                )),
                Ok(datatype) => Ok(Literal::of_datatype(datatype)),
                Err(why) => {
                    Err(self.report_error(at, place, format!("the datatype `{text}` is invalid: {why}")))
                }
            },
            (None, Some((at, tag))) => match oxrdf::Literal::new_language_tagged_literal("", tag) {
                Ok(_) => Ok(Literal::of_language(tag)),
                Err(error) => Err(self.report_error(
                    at,
                    place,
                    format!("`{tag}` is not a language tag ({error}); write one such as `en` or `de-AT`"),
                )),
            },
            (Some(_), Some((at, _))) => Err(self.report_error(
                at,
                place,
                "a string has a `datatype` or a `language`, not both; leave one of them out",
            )),
        }
    }

    fn read_type(&mut self, definition: &Definition<'_>, place: &Position<'_>) -> Checked<Type> {
        let kinds = KINDS.iter().map(|value| value.kind().name);
        let names: Vec<&str> = STRUCTURES.into_iter().chain(kinds).collect();
        let Some((at, text)) = self.read_text(definition, "type", place)? else {
            let message = format!("`type` is missing; write one of {}", format_list(&names));
            return Err(self.report_error(definition.at, place, message));
        };
        if let Some(kind) = Type::find(text) {
            return Ok(kind);
        }
        let message = match find_nearest(text, names.iter().copied()) {
            Some(near) => format!("there is no type `{text}`; did you mean `{near}`?"),
            None => format!("there is no type `{text}`; write one of {}", format_list(&names)),
        };
        Err(self.report_error(at, place, message))
    }
}
