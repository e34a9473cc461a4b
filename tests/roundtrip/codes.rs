//! Generates the codes of fields.
use penstock_base::json::Json;
use penstock_model::mapping::{Codes, Literal, Value, compile};
use proptest::prelude::*;
use proptest::sample::select;

/// Returns the codes that a field with values of this type can have, by number; `None` for no codes.
pub(crate) fn for_value(value: &Value, number: usize) -> Option<Box<Codes>> {
    let definitions: &[&str] = match value {
        Value::Resource => &[
            "type: resource, base: 'http://base.example/id/'",
            "type: resource, values: {a: <urn:b>, 1: <urn:c>, c: <http://p/c>, d: <urn:b>}",
        ],
        Value::Literal(Literal::Integer) => &[
            "type: integer, values: [0, -7, 300]",
            "type: integer, values: {low: 1, 2: 10, true: 3}",
        ],
        Value::Literal(Literal::String) => &[
            "type: string, values: [{code: 0, is: off}, {code: '0', is: zero}, {code: true, is: on}, {code: b, is: c}, \
             {code: '', is: b}]",
            "type: string, values: {1: one, 2.5: two, -3: one}",
            "type: string, values: [A, 'ß 1', '']",
        ],
        Value::Literal(Literal::Language(_)) => {
            &["type: string, language: de-at, values: {0: aus, an: ein}"]
        }
        Value::Literal(Literal::Typed(_)) => {
            &["type: string, datatype: <urn:type>, values: {0: a, b: c}"]
        }
        _ => return None,
    };
    let definition = definitions.get(number)?;
    let config =
        format!("type: object\npath: A:.\nfields:\n  a: {{path: <urn:a>, {definition}}}\n");
    compile(&config).unwrap().root.property_at(0).unwrap().codes.clone()
}

/// Generates the JSON that the view shows of values with these codes.
pub(crate) fn value(codes: &Codes) -> BoxedStrategy<Json> {
    match codes {
        Codes::Base(_) => {
            let code = "[A-Z]{1,3}[ /.%ß0-9]{0,3}";
            let iri = "[a-z]{1,3}:[a-z0-9]{0,3}";
            prop_oneof![3 => code, 1 => iri].prop_map(Json::String).boxed()
        }
        Codes::Listed(list) => {
            let codes: Vec<Json> = list.shown().map(|(code, _)| code.clone()).collect();
            select(codes).boxed()
        }
    }
}

/// Returns one such value.
pub(crate) fn first_value(codes: &Codes) -> Json {
    let shown = codes.list().and_then(|list| list.shown().next());
    shown.map_or_else(|| Json::String("K".to_owned()), |(code, _)| code.clone())
}

/// Adds the codes to a definition in JSON.
pub(crate) fn add_to(definition: &mut serde_json::Value, codes: &Codes) {
    let (key, value) = match codes {
        Codes::Base(base) => ("base", serde_json::json!(base.as_str())),
        Codes::Listed(list) => {
            let entry = |(code, term): &(Json, oxrdf::Term)| {
                let code: serde_json::Value = serde_json::from_str(&code.to_string()).unwrap();
                let is = match term {
                    oxrdf::Term::Literal(literal) => literal.value().to_owned(),
                    iri => iri.to_string(),
                };
                serde_json::json!({"code": code, "is": is})
            };
            ("values", list.iter().map(entry).collect())
        }
    };
    definition.as_object_mut().unwrap().insert(key.to_owned(), value);
}
