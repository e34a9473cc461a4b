//! Compiles a field according to its type.
use super::compiler::{Checked, Compiler, ErrorReported, MAX_WARNINGS};
use super::definition::{Definition, FIELD_KEYS, KEYS, format_list};
use super::group::{GROUP, GROUP_AS_ELEMENT};
use super::map::{ID_AS_ELEMENT, MAP};
use super::position::Position;
use crate::mapping::path::{self, Path};
use crate::mapping::value::{STRINGS, find_kind};
use crate::mapping::yaml::{Content, Location, Node};
use crate::mapping::{FieldKind, KINDS, Literal, Property, Value};
use oxrdf::NamedNode;
use oxrdf::vocab::rdf;
use penstock_base::nearest::find_nearest;

/// The types that are no kind of values.
const STRUCTURES: [&str; 5] = ["object", "id", "array", GROUP, MAP];

/// The keys that only the root takes.
const ROOT_KEYS: [&str; 4] = ["label", "unknownFields", "items", "prefixes"];

/// The predicate of a property, if its path names one, and the type of its values.
type PropertyParts = (Checked<Option<NamedNode>>, Checked<Value>);

/// What `type` names.
#[derive(Debug, Clone, Copy)]
enum Type {
    Object,
    Id,
    Array,
    Group,
    Map,
    Value(&'static Value),
}

impl Type {
    fn find(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "id" => Self::Id,
            "array" => Self::Array,
            GROUP => Self::Group,
            MAP => Self::Map,
            _ => Self::Value(find_kind(name)?),
        })
    }

    /// Returns the keys that a definition of this type takes as an element; as a field, it also takes [`FIELD_KEYS`].
    fn element_keys(self) -> Vec<&'static str> {
        let mut keys = self.field_keys();
        keys.retain(|key| !FIELD_KEYS.contains(key));
        keys
    }

    /// Returns the keys for other ways to write a value of this type.
    fn reading_keys(self) -> &'static [&'static str] {
        let Self::Value(value) = self else { return &[] };
        let kind = value.kind();
        match (kind.accept.is_empty(), kind.order.is_time()) {
            (true, _) => &[],
            (false, false) => &["accept"],
            (false, true) => &["accept", "timeZone"],
        }
    }

    fn field_keys(self) -> Vec<&'static str> {
        let own = match self {
            Self::Object => {
                return vec![
                    "type", "path", "fields", "required", "key", "keyScope", "types", "absent",
                    "default", "outer",
                ];
            }
            Self::Value(value) => value.kind().keys,
            Self::Id | Self::Array | Self::Group | Self::Map => &[],
        };
        let parts: [&[&str]; 4] = [&["type", "path"], own, self.reading_keys(), &FIELD_KEYS];
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
        let property = match self.read_field_type(&definition)? {
            Type::Id => {
                self.check_id_keys(&definition);
                return Ok(FieldKind::Id);
            }
            Type::Array => self.compile_array(&definition),
            Type::Map => self.compile_map(&definition),
            kind => self.compile_single(kind, &definition),
        };
        property.map(FieldKind::Property)
    }

    /// Returns the type of a field. Without one, reports the keys that no type takes too, and an invalid path.
    fn read_field_type(&mut self, definition: &Definition<'_>) -> Checked<Type> {
        let kind = self.read_type(definition);
        if kind.is_err() {
            let is_of_fields = |key: &&str| !ROOT_KEYS.contains(key);
            let all: Vec<&str> = KEYS.iter().copied().filter(is_of_fields).collect();
            self.check_keys(definition, &all);
            drop(self.read_path(definition));
        }
        kind
    }

    /// Compiles a field with one value.
    fn compile_single(&mut self, kind: Type, definition: &Definition<'_>) -> Checked<Property> {
        self.check_keys(definition, &kind.field_keys());
        let required = self.read_flag(definition, "required");
        let path = self.read_path(definition);
        let value = self.compile_value(kind, definition, path);
        let Ok(property) = self.build_property(value, required, definition.at, definition) else {
            return Err(self.check_reading(kind, definition, definition));
        };
        self.add_reading(definition, definition, property)
    }

    /// Returns the property of a field with the codes of its values. An error about its path is reported at `at`, also beside
    /// errors of its values.
    fn build_property(
        &mut self,
        (predicate, value): PropertyParts,
        required: Checked<bool>,
        at: Location,
        values: &Definition<'_>,
    ) -> Checked<Property> {
        let codes = value.as_ref().map_or(Ok(None), |value| self.read_codes(values, value));
        let predicate = predicate?.ok_or_else(|| {
            let message = "the path names no property; write it as `<IRI>`, or `<IRI>/Namespace:.` for objects";
            self.report_error(at, values.place, message)
        })?;
        let mut property = Property::new(predicate, value?);
        property.codes = codes?;
        property.required = required?;
        Ok(property)
    }

    /// Reports the errors in what senders may write to a field whose other keys have an error.
    fn check_reading(
        &mut self,
        kind: Type,
        field: &Definition<'_>,
        values: &Definition<'_>,
    ) -> ErrorReported {
        if let Type::Value(value) = kind {
            drop(self.read_reading(field, values, value.kind()));
        } else {
            drop(self.read_absent(field));
        }
        ErrorReported
    }

    /// Compiles an array. Its property and namespace are on the array, on its elements, or on both if they agree.
    fn compile_array(&mut self, definition: &Definition<'_>) -> Checked<Property> {
        let own = self.read_path(definition);
        let required = self.read_flag(definition, "required");
        let is_ordered = self.read_flag(definition, "ordered");
        let inside = Position::Elements(definition.place);
        let (kind, elements) = self.read_elements(definition, &own, &inside)?;
        let path = match definition.get("elements") {
            None => own,
            Some(_) => self.merge_paths(own, &elements),
        };
        let value = self.compile_value(kind, &elements, path);
        let flags = is_ordered.and(required);
        let values = elements.with_place(definition.place);
        let Ok(mut property) = self.build_property(value, flags, definition.at, &elements) else {
            return Err(self.check_reading(kind, definition, &values));
        };
        (property.is_array, property.is_ordered) = (true, is_ordered?);
        self.add_reading(definition, &values, property)
    }

    /// Returns the type and the definition of an array's elements: its own, if it has no `elements`.
    fn read_elements<'a>(
        &mut self,
        definition: &Definition<'a>,
        own: &Checked<Option<(Location, Path)>>,
        inside: &'a Position<'a>,
    ) -> Checked<(Type, Definition<'a>)> {
        let Some((_, node)) = definition.get("elements") else {
            let own_keys = [
                &["type", "path", "elements", "ordered", "datatype", "language", "accept"][..],
                &FIELD_KEYS,
            ];
            self.check_keys(definition, &own_keys.concat());
            if let Ok(Some((at, Path { namespace: Some(_), .. }))) = own {
                return Err(self.report_error(
                    *at,
                    definition.place,
                    "the path leads to objects; define them under `elements`, with `type: object`",
                ));
            }
            return Ok((Type::Value(&STRINGS), *definition));
        };
        let own_keys = [&["type", "path", "elements", "ordered"][..], &FIELD_KEYS];
        self.check_keys(definition, &own_keys.concat());

        if let Content::Scalar { text, .. } = &node.content {
            let kind = self.parse_element_type(text, node.at, inside)?;
            return Ok((kind, Definition::empty(node.at, inside)));
        }
        let elements = self.read_definition(node, inside)?;
        let kind = self.read_field_type(&elements)?;
        self.check_element(kind, elements.at, inside)?;
        self.check_keys(&elements, &kind.element_keys());
        Ok((kind, elements))
    }

    /// Returns the type of elements that are given only by its name (`elements: string`).
    fn parse_element_type(
        &mut self,
        name: &str,
        at: Location,
        place: &Position<'_>,
    ) -> Checked<Type> {
        if let Some(kind @ Type::Value(_)) = Type::find(name) {
            self.note_type(name);
            return self.check_element(kind, at, place);
        }
        let message = format!(
            "`{name}` is not a type of \
             single values; write `elements: string`, or for objects \
             `elements: {{type: object, path: <IRI>/Namespace:., fields: {{...}}}}`"
        );
        Err(self.report_error(at, place, message))
    }

    /// Checks that an array can have elements of this type.
    fn check_element(&mut self, kind: Type, at: Location, place: &Position<'_>) -> Checked<Type> {
        let why = match kind {
            Type::Array => {
                "an array cannot contain arrays: RDF keeps the values of a property as one set, so the inner \
                 arrays would be lost; put an object between them"
            }
            Type::Id => ID_AS_ELEMENT,
            Type::Group => GROUP_AS_ELEMENT,
            Type::Map => "a `map` cannot be an element of an array; put an object between them",
            Type::Value(value) if let Some(why) = value.kind().element_error => why,
            Type::Object | Type::Value(_) => return Ok(kind),
        };
        Err(self.report_error(at, place, why))
    }

    /// Reports the keys that an `id` does not take, and explains where a `path` belongs.
    fn check_id_keys(&mut self, definition: &Definition<'_>) {
        let Some((at, _)) = definition.get("path") else {
            return self.check_keys(definition, &["type", "outer"]);
        };
        self.check_keys(definition, &["type", "path", "outer"]);
        self.report_error(
            at,
            definition.place,
            "`path` has no meaning here; this definition takes only `type`: an `id` is the object's own URI. Remove the \
             `path`, or, to store an identifier as a value, write `type: string` with this path",
        );
    }

    /// Combines the path of an array and that of its elements.
    fn merge_paths(
        &mut self,
        array: Checked<Option<(Location, Path)>>,
        elements: &Definition<'_>,
    ) -> Checked<Option<(Location, Path)>> {
        let place = elements.place;
        let elements = self.read_path(elements);
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

    /// Returns the property that a path names, and the type of values that a definition describes.
    fn compile_value(
        &mut self,
        kind: Type,
        definition: &Definition<'_>,
        path: Checked<Option<(Location, Path)>>,
    ) -> PropertyParts {
        if let Type::Object = kind {
            self.compile_objects(definition, path)
        } else {
            self.compile_plain_value(kind, definition, path)
        }
    }

    fn compile_objects(
        &mut self,
        definition: &Definition<'_>,
        path: Checked<Option<(Location, Path)>>,
    ) -> PropertyParts {
        let place = definition.place;
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
        let fields = self.compile_fields(definition);
        let shape = self.compile_shape(definition, namespace, fields);
        let predicate = match path {
            Ok(Some((_, path))) => Ok(path.predicate),
            // That there is no path was reported with the namespace.
            Ok(None) | Err(ErrorReported) => Err(ErrorReported),
        };
        (predicate, shape.map(Value::Object))
    }

    fn compile_plain_value(
        &mut self,
        kind: Type,
        definition: &Definition<'_>,
        path: Checked<Option<(Location, Path)>>,
    ) -> PropertyParts {
        let value = match kind {
            Type::Value(value) if value.language_map().is_some() => {
                let map = self.read_language_map(definition);
                map.map(Value::of_language_map)
            }
            Type::Value(value) if !value.kind().keys.contains(&"datatype") => Ok(value.clone()),
            Type::Value(_) => self.compile_string(definition).map(Value::Literal),
            Type::Object | Type::Id | Type::Array | Type::Group | Type::Map => Err(ErrorReported),
        };
        let predicate = path.and_then(|path| match path {
            Some((at, Path { namespace: Some(namespace), .. })) => Err(self.report_error(
                at,
                definition.place,
                format!("the path names the namespace `{namespace}`, but only objects have one; write it as `<IRI>`"),
            )),
            path => Ok(path.and_then(|(_, path)| path.predicate)),
        });
        (predicate, value)
    }

    /// Warns about nested objects in the root's namespace.
    pub(super) fn check_nested(&mut self, namespace: &str, at: Location, place: &Position<'_>) {
        if self.root_namespace.as_deref() == Some(namespace) && self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(at.to_finding(format!(
                "{place}: these nested objects are in the namespace `{namespace}`, like the root; without \
                 conditions each of them is exported twice, in its parent and as a separate object. Use \
                 another namespace unless this is intended"
            )));
        }
    }

    /// Returns the type of a string, by its `datatype` or `language`.
    fn compile_string(&mut self, definition: &Definition<'_>) -> Checked<Literal> {
        let place = definition.place;
        let datatype = self.read_text(definition, "datatype");
        let language = self.read_text(definition, "language");
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

    fn read_type(&mut self, definition: &Definition<'_>) -> Checked<Type> {
        let kinds = KINDS.iter().map(|value| value.kind().name);
        let names: Vec<&str> = STRUCTURES.into_iter().chain(kinds).collect();
        let Some((at, text)) = self.read_text(definition, "type")? else {
            let message = format!("`type` is missing; write one of {}", format_list(&names));
            return Err(self.report_error(definition.at, definition.place, message));
        };
        if let Some(kind) = Type::find(text) {
            return Ok(kind);
        }
        let message = match find_nearest(text, names.iter().copied()) {
            Some(near) => format!("there is no type `{text}`; did you mean `{near}`?"),
            None => format!("there is no type `{text}`; write one of {}", format_list(&names)),
        };
        Err(self.report_error(at, definition.place, message))
    }
}
