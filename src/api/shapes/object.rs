//! The stored objects. The view of the model writes their JSON, so these shapes only describe it.
#![expect(dead_code, reason = "the view of the model writes the objects")]
use salvo_oapi::ToSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A page of objects in the view.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Objects"))]
pub(crate) struct Objects {
    /// Ordered by URI.
    pub(crate) items: Vec<BTreeMap<String, Value>>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// A page of objects, or one of them.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[salvo(schema(name = "ObjectsOrObject"))]
pub(crate) enum ObjectsOrObject {
    Page(Objects),
    One(ViewedObject),
}

/// One object in the configured structure, its `uri` included.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Object"))]
pub(crate) struct ViewedObject {
    /// Its URI.
    pub(crate) uri: String,
}
