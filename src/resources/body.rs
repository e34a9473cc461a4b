//! The bodies of requests. Their types only describe: the layers below read the bodies, and report every error with its
//! place.
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// Adds the members of the answer `T` that a body does not have: they are accepted and ignored, so that a client can send
/// an answer back.
pub(super) fn accept_answer<T: JsonSchema>(body: &mut Schema) {
    let answer = SchemaGenerator::default().into_root_schema_for::<T>();
    let members = body.ensure_object().get_mut("properties").and_then(Value::as_object_mut);
    let known = answer.get("properties").and_then(Value::as_object);
    let (Some(members), Some(known)) = (members, known) else { return };
    for name in known.keys() {
        let description = "Accepted and ignored, so that an answer can be sent back.";
        members.entry(name).or_insert_with(|| json!({ "description": description }));
    }
}

/// Describes that no member of a body may be null.
pub(super) fn refuse_null(body: &mut Schema) {
    let members = body.ensure_object().get_mut("properties").and_then(Value::as_object_mut);
    for member in members.into_iter().flat_map(|members| members.values_mut()) {
        if let Some(Value::Array(types)) = member.get_mut("type")
            && let Some(only) = types.iter().find(|name| *name != "null").cloned()
        {
            member["type"] = only;
        }
    }
}
