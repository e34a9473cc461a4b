//! A page of a list.
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;

/// A page of a list.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    /// The items, in the order of the list.
    pub items: Vec<T>,
    /// The `cursor` of the next page, or null.
    pub next: Option<String>,
}

impl<T: JsonSchema> JsonSchema for Page<T> {
    /// A page of exports is `Exports`, and one of records of ingestions is `Ingestions`.
    fn schema_name() -> Cow<'static, str> {
        format!("{}s", T::schema_name().trim_end_matches("Record")).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A page of a list.",
            "required": ["items", "next"],
            "properties": {
                "items": {
                    "type": "array",
                    "items": generator.subschema_for::<T>(),
                    "description": "The items, in the order of the list.",
                },
                "next": {
                    "type": ["string", "null"],
                    "description": "The `cursor` of the next page, or null.",
                },
            },
        })
    }
}

impl<T> Page<T> {
    /// Converts the items.
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(convert).collect(), next: self.next }
    }
}
