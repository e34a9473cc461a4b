//! Compiles maps: their members become objects that their parent's key identifies.
use super::compiler::{Checked, Compiler, ErrorReported, MAX_LEVELS};
use super::definition::{Definition, FIELD_KEYS};
use super::group::{GROUP_AS_ELEMENT, has_type, is_group};
use super::position::Position;
use crate::mapping::path::Path;
use crate::mapping::value::{STRINGS, find_kind};
use crate::mapping::yaml::{Content, Location, Node};
use crate::mapping::{
    Field, FieldKind, KeyDefinition, KeyFields, KeyScope, MEMBER_KEY, Property, Shape, Value,
};
use oxrdf::NamedNode;
use std::collections::HashMap;

/// The `type` of a map.
pub(super) const MAP: &str = "map";

/// Why arrays and maps have no elements of type `id`.
pub(super) const ID_AS_ELEMENT: &str =
    "an `id` is the object's own URI and cannot be an element; other URIs are of type `resource`";

/// The `type` of objects.
const OBJECT: &str = "object";

impl Compiler {
    /// Compiles a map. Its path names the property that leads to the members, and their namespace.
    pub(super) fn compile_map(&mut self, definition: &Definition<'_>) -> Checked<Property> {
        let own_keys = [&["type", "path", "key", "elements"][..], &FIELD_KEYS];
        self.check_keys(definition, &own_keys.concat());
        let required = self.read_flag(definition, "required");
        let path = self.read_map_path(definition);
        let elements = self.compile_map_elements(definition);
        let Ok(property) = self.build_map(definition, required, path, elements) else {
            drop(self.read_absent(definition));
            return Err(ErrorReported);
        };
        self.add_reading(definition, definition, property)
    }

    /// Returns the property of a map whose members have these fields and types.
    fn build_map(
        &mut self,
        definition: &Definition<'_>,
        required: Checked<bool>,
        path: Checked<(NamedNode, String)>,
        elements: Checked<(Vec<Field>, Vec<NamedNode>)>,
    ) -> Checked<Property> {
        let key = self.read_map_key(definition);
        let ((predicate, namespace), key) = (path?, key?);
        let (mut fields, types) = elements?;
        let (key_index, key_predicate) = (fields.len(), key.predicate.clone());
        fields.push(Field::member_key(key));
        let mut shape = Shape::new(namespace, fields);
        shape.key =
            KeyDefinition::Fields(KeyFields { indexes: vec![key_index], scope: KeyScope::Parent });
        shape.types = types;
        self.check_member_fields(definition, &shape, &key_predicate)?;
        let property = Property::new(predicate, Value::Object(shape));
        Ok(Property { is_array: true, required: required?, ..property })
    }

    fn read_map_path(&mut self, definition: &Definition<'_>) -> Checked<(NamedNode, String)> {
        let (at, predicate, namespace) = match self.read_path(definition)? {
            Some((at, Path { predicate, namespace })) => (at, predicate, namespace),
            None => (definition.at, None, None),
        };
        let (Some(predicate), Some(namespace)) = (predicate, namespace) else {
            let message = "the path of a map names the property that leads to its members, and their namespace; write it as \
                           `<IRI>/Namespace:.`";
            return Err(self.report_error(at, definition.place, message));
        };
        self.check_nested(&namespace, at, definition.place);
        Ok((predicate, namespace))
    }

    /// Reads the property that stores the names of the members.
    fn read_map_key(&mut self, definition: &Definition<'_>) -> Checked<Property> {
        let place = definition.place;
        let Some((_, node)) = definition.get("key") else {
            let message = "`key` is missing; it names the property that stores the names of the members, as \
                           `key: {path: <IRI>}`";
            return Err(self.report_error(definition.at, place, message));
        };
        if !matches!(node.content, Content::Mapping(_)) {
            let message = format!(
                "the `key` of a map has the property of the names, as `key: {{path: <IRI>}}`, and is not {}",
                node.kind()
            );
            return Err(self.report_error(node.at, place, message));
        }
        let key = self.read_definition(node, place)?;
        self.check_keys(&key, &["type", "path"]);
        let value = self.read_map_key_type(&key);
        match self.read_path(&key)? {
            Some((_, Path { predicate: Some(predicate), namespace: None })) => {
                let property = Property::new(predicate, value?.clone());
                Ok(Property { required: true, ..property })
            }
            path => {
                let at = path.map_or(key.at, |(at, _)| at);
                let message =
                    "the `key` of a map needs the property of the names as its `path`: `<IRI>`";
                Err(self.report_error(at, place, message))
            }
        }
    }

    /// Reads the type of the names of the members.
    fn read_map_key_type(&mut self, key: &Definition<'_>) -> Checked<&'static Value> {
        let Some((at, name)) = self.read_text(key, "type")? else { return Ok(&STRINGS) };
        let kind = find_kind(name).filter(|value| value.kind().names_members);
        kind.ok_or_else(|| {
            let message = format!(
                "the names of a map are of the type `string` or `integer`, and not `{name}`"
            );
            self.report_error(at, key.place, message)
        })
    }

    /// Compiles the fields of the members, and the types that are written with each.
    fn compile_map_elements(
        &mut self,
        definition: &Definition<'_>,
    ) -> Checked<(Vec<Field>, Vec<NamedNode>)> {
        let inside = Position::Elements(definition.place);
        let (node, elements) = self.read_map_elements(definition, &inside)?;
        if has_type(node, OBJECT) {
            self.check_keys(&elements, &["type", "fields", "types"]);
            let types = self.read_types(&elements);
            let fields = self.compile_fields(&elements)?;
            return Ok((fields, types?));
        }
        // The values are one level of the mapping, as the fields of an object are.
        self.check_level(node.at, &inside)?;
        self.level += 1;
        let value = self.compile_field(node, &inside);
        self.level -= 1;
        self.build_member_value(value?, node.at, &inside)
    }

    /// Returns the fields of members that are values.
    fn build_member_value(
        &mut self,
        value: FieldKind,
        at: Location,
        place: &Position<'_>,
    ) -> Checked<(Vec<Field>, Vec<NamedNode>)> {
        match value {
            FieldKind::Property(value) => Ok((vec![Field::member_value(value)], Vec::new())),
            FieldKind::Id => Err(self.report_error(at, place, ID_AS_ELEMENT)),
        }
    }

    /// Returns the definition of the members.
    fn read_map_elements<'a>(
        &mut self,
        definition: &Definition<'a>,
        inside: &'a Position<'a>,
    ) -> Checked<(&'a Node, Definition<'a>)> {
        let Some((_, node)) = definition.get("elements") else {
            let message = "`elements` is missing; it is the definition of the members, such as \
                           `elements: {type: number, path: <IRI>}`";
            return Err(self.report_error(definition.at, definition.place, message));
        };
        if let Content::Scalar { text, .. } = &node.content {
            let message = format!(
                "the values of a map need a property of their own; write `elements: {{type: {text}, path: <IRI>}}`"
            );
            return Err(self.report_error(node.at, inside, message));
        }
        if is_group(node) {
            return Err(self.report_error(node.at, inside, GROUP_AS_ELEMENT));
        }
        let elements = self.read_definition(node, inside)?;
        for name in ["required", "default", "outer"] {
            if let Some((at, _)) = elements.get(name)
                && !has_type(node, OBJECT)
            {
                let message = format!(
                    "`{name}` has no meaning here, because a member without a value is not stored; write it at the map"
                );
                self.report_error(at, inside, message);
            }
        }
        Ok((node, elements))
    }

    /// Checks that the key's property is none of the other fields of the members, nor written with their `types`.
    fn check_member_fields(
        &mut self,
        definition: &Definition<'_>,
        shape: &Shape,
        key: &NamedNode,
    ) -> Checked<()> {
        let place = definition.place;
        let at = definition.get("key").map_or(definition.at, |(at, _)| at);
        let same = |field: &&Field| field.property().is_some_and(|own| own.predicate == *key);
        let mut result = Ok(());
        if let Some(field) = shape.fields.iter().rev().skip(1).find(same) {
            let message = format!(
                "the names of the members have the property {key}, as the field `{}` of the members has; give one of them \
                 another property",
                field.name
            );
            result = Err(self.report_error(at, place, message));
        }
        if shape.find_field(MEMBER_KEY).is_some() {
            let message = format!(
                "the members have a field `{MEMBER_KEY}`, which is the name of their key; choose another one"
            );
            result = Err(self.report_error(at, place, message));
        }
        let elements =
            definition.get("elements").map(|(_, node)| self.read_definition(node, place));
        match elements {
            Some(Ok(elements)) => self.check_types(&elements, shape).and(result),
            _ => result,
        }
    }

    /// Checks that the maps of one object have different namespaces: in one namespace, a key and a parent are one object.
    pub(super) fn check_maps(
        &mut self,
        fields: &[(Location, Field)],
        place: &Position<'_>,
    ) -> Checked<()> {
        let mut owners: HashMap<&str, &str> = HashMap::new();
        let mut result = Ok(());
        for (at, field) in fields {
            let Some((shape, _)) = field.property().and_then(Property::map) else { continue };
            if let Some(first) = owners.insert(&shape.namespace, &field.name) {
                let message = format!(
                    "its members are in the namespace `{}`, as those of the map `{first}` are, and members with one name \
                     would be one object; give it another namespace",
                    shape.namespace
                );
                result = Err(self.report_error(*at, &Position::Field(place, &field.name), message));
            }
        }
        result
    }

    /// Checks that another level of objects is allowed.
    pub(super) fn check_level(&mut self, at: Location, place: &Position<'_>) -> Checked<()> {
        if self.level < MAX_LEVELS {
            return Ok(());
        }
        let message = format!("objects nest deeper than {MAX_LEVELS} levels here");
        Err(self.report_error(at, place, message))
    }
}

#[cfg(test)]
mod tests {
    use crate::mapping::compile;

    fn config(map: &str) -> String {
        format!("type: object\npath: A:.\nfields:\n  sensors: {{type: map, {map}}}\n")
    }

    #[test]
    fn members_are_objects_or_values() {
        let mapping = compile(&config(
            "path: <urn:sensor>/Sensor:., key: {path: <urn:code>}, elements: {type: object, fields: {value: {type: number, path: <urn:value>}}}",
        ))
        .unwrap();
        let property = mapping.root.property_at(0).unwrap();
        let (shape, member) = property.map().unwrap();
        assert!(property.is_array && member.value.is_none() && member.key_index == 1);
        assert_eq!(shape.level().entries().map(|(name, _)| name).collect::<Vec<_>>(), ["value"]);
        assert_eq!(shape.key_fields().unwrap().indexes, [1]);
        let mapping = compile(&config(
            "path: <urn:sensor>/Sensor:., key: {path: <urn:code>, type: integer}, elements: {type: number, path: <urn:value>}",
        ))
        .unwrap();
        let (shape, member) = mapping.root.property_at(0).unwrap().map().unwrap();
        assert_eq!(member.value.unwrap().1.predicate.as_str(), "urn:value");
        assert_eq!(shape.level().entries().count(), 0);
        assert_eq!(shape.fields[0].pointer_in("/data/0/sensors/T1"), "/data/0/sensors/T1");
    }

    #[test]
    fn maps_of_maps_are_maps() {
        let inner = "{type: map, path: <urn:inner>/Inner:., key: {path: <urn:code>}, elements: {type: string, path: <urn:v>}}";
        let text =
            format!("path: <urn:outer>/Outer:., key: {{path: <urn:code>}}, elements: {inner}");
        let mapping = compile(&config(&text)).unwrap();
        let (_, member) = mapping.root.property_at(0).unwrap().map().unwrap();
        assert!(member.value.unwrap().1.map().is_some());
    }

    #[test]
    fn an_error_names_the_key_and_the_remedy() {
        let path = "path: <urn:sensor>/Sensor:.";
        let key = "key: {path: <urn:code>}";
        let number = "elements: {type: number, path: <urn:value>}";
        for (map, part) in [
            (format!("path: <urn:sensor>, {key}, {number}"), "write it as `<IRI>/Namespace:.`"),
            (format!("{path}, {number}"), "`key` is missing"),
            (format!("{path}, key: code, {number}"), "as `key: {path: <IRI>}`"),
            (
                format!("{path}, key: {{path: <urn:code>, type: number}}, {number}"),
                "`string` or `integer`",
            ),
            (format!("{path}, {key}"), "`elements` is missing"),
            (format!("{path}, {key}, elements: number"), "elements: {type: number, path: <IRI>}"),
            (format!("{path}, {key}, elements: {{type: id}}"), "cannot be an element"),
            (
                format!("{path}, {key}, elements: {{type: group, fields: {{}}}}"),
                "write `type: object`",
            ),
            (
                format!("{path}, {key}, elements: {{type: number, path: <urn:code>}}"),
                "give one of them another property",
            ),
            (
                format!("{path}, {key}, elements: {{type: number, path: <urn:v>, required: true}}"),
                "a member without a value is not stored",
            ),
        ] {
            let errors = compile(&config(&map)).unwrap_err();
            assert!(errors.iter().any(|one| one.message.contains(part)), "{map}: {errors:?}");
        }
    }

    #[test]
    fn two_maps_of_one_object_have_different_namespaces() {
        let map = |property: &str| {
            format!(
                "{{type: map, path: <urn:{property}>/Sensor:., key: {{path: <urn:code>}}, elements: {{type: number, path: <urn:v>}}}}"
            )
        };
        let (one, other) = (map("one"), map("other"));
        let text = format!(
            "type: object\npath: A:.\nfields:\n  one: {one}\n  more: {{type: group, fields: {{other: {other}}}}}\n"
        );
        let errors = compile(&text).unwrap_err();
        assert!(errors[0].message.contains("as those of the map `one` are"), "{errors:?}");
    }

    #[test]
    fn a_map_is_no_element_of_an_array() {
        let text = "type: object\npath: A:.\nfields:\n  all: {type: array, path: <urn:p>, elements: {type: map}}\n";
        let errors = compile(text).unwrap_err();
        assert!(errors[0].message.contains("a `map` cannot be an element"), "{errors:?}");
    }
}
