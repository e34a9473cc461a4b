//! Maps: JSON objects whose member names are data.
//!
//! A map (`type: map`) is an array of objects with a natural key, which is unique in their parent. In the JSON, the value of
//! the key is the name of a member. So natural keys, links, modes and removal are those of arrays. Only what reads or writes
//! JSON needs to know the maps.
//!
//! The fields that are no members of the JSON are the last ones of the shape: the key, and before it the value if each
//! member of the map is a value, and not an object with fields.
use super::{Field, FieldKind, Property, Shape};

/// The name of the field with the name of a member.
pub const MEMBER_KEY: &str = "@key";
/// The name of the field with the value of a member, unless the members are objects with fields.
pub(super) const MEMBER_VALUE: &str = "@value";

/// What the JSON has of the objects of a map.
#[derive(Debug, Clone, Copy)]
pub struct MapMember<'s> {
    /// The index of the field with the name.
    pub key_index: usize,
    /// The field with the name.
    pub key: &'s Property,
    /// The field with the value, and its index; `None` if the members are objects with fields.
    pub value: Option<(usize, &'s Property)>,
}

impl Shape {
    /// Returns what the JSON has of these objects if they are in a map.
    pub fn map_member(&self) -> Option<MapMember<'_>> {
        let (key_index, field) = self.fields.iter().enumerate().next_back()?;
        if !field.is_nameless {
            return None;
        }
        let value = self.fields.first().filter(|value| key_index == 1 && value.is_nameless);
        let value = value.and_then(Field::property).map(|value| (0, value));
        Some(MapMember { key_index, key: field.property()?, value })
    }

    /// Returns the fields that are members of the JSON of an object.
    pub(super) fn named_fields(&self) -> &[Field] {
        let count = self.fields.partition_point(|field| !field.is_nameless);
        self.fields.get(..count).unwrap_or_default()
    }
}

impl Property {
    /// Returns the shape of the objects of a map, and what the JSON has of them; `None` for other fields.
    pub fn map(&self) -> Option<(&Shape, MapMember<'_>)> {
        let shape = self.value.shape()?;
        Some((shape, shape.map_member()?))
    }
}

impl Field {
    /// Returns whether the field is no member of the JSON: the name of a member of a map, or its value.
    pub fn is_nameless(&self) -> bool {
        self.is_nameless
    }

    /// Creates the field with the names of the members of a map.
    pub fn member_key(property: Property) -> Self {
        Self::nameless(MEMBER_KEY, property)
    }

    /// Creates the field with the values of the members of a map.
    pub fn member_value(property: Property) -> Self {
        Self::nameless(MEMBER_VALUE, property)
    }

    fn nameless(name: &str, property: Property) -> Self {
        Self { is_nameless: true, ..Self::new(name, FieldKind::Property(property)) }
    }
}
