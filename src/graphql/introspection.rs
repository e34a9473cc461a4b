//! Adds what the library's introspection lacks: a description of this schema, and whether a directive is deprecated.
//! Newer clients ask for the latter (`includeDeprecated`, `isDeprecated` and `deprecationReason` of the working
//! draft). Also adapts documents where the library would answer or validate them wrongly.
use super::document::{Document, Selected, operations_mut};
use super::system::QUERY_TYPE;
use async_graphql::parser::types::{
    ExecutableDocument, InlineFragment, OperationDefinition, Selection, SelectionSet,
    TypeCondition, VariableDefinition,
};
use async_graphql::{Name, Positioned, Value, Variables};

/// The description of this schema. The library's own text only explains what a schema is.
const SCHEMA_DESCRIPTION: &str =
    "The data of this gateway: the objects of its Business Objects, and its own state.";

const SCHEMA_TYPE: &str = "__Schema";
const DIRECTIVE_TYPE: &str = "__Directive";

/// Replaces the fields of directives that the library does not know and would reject, by the field `name` under the
/// same key. [`complete_answer`] then replaces the values.
pub(super) fn adapt_document(mut document: ExecutableDocument) -> ExecutableDocument {
    for operation in operations_mut(&mut document.operations) {
        adapt_selection(&mut operation.node.selection_set.node, QUERY_TYPE);
        wrap_type_names(&mut operation.node.selection_set.node, None);
    }
    for fragment in document.fragments.values_mut() {
        let on = fragment.node.type_condition.node.on.node.clone();
        adapt_selection(&mut fragment.node.selection_set.node, &on);
        let fragment = &mut fragment.node;
        wrap_type_names(&mut fragment.selection_set.node, Some(&fragment.type_condition));
    }
    document
}

/// Returns the values of variables for the library. It takes an absent Boolean for null, where `includeDeprecated` has
/// the default `false`.
pub(super) fn adapt_variables(operation: &OperationDefinition, variables: &Variables) -> Variables {
    let mut adapted = variables.clone();
    for definition in &operation.variable_definitions {
        let VariableDefinition { name, var_type, .. } = &definition.node;
        if var_type.node.to_string() == "Boolean"
            && variables.get(&name.node).is_none_or(|value| *value == Value::Null)
        {
            adapted.insert(name.node.clone(), Value::Boolean(false));
        }
    }
    adapted
}

/// Moves the directives of `__typename` to an inline fragment around it. The library validates no directives of
/// `__typename`. `on` is the type condition of the enclosing fragment, which the library needs to compare fields with
/// the same key.
fn wrap_type_names(set: &mut SelectionSet, on: Option<&Positioned<TypeCondition>>) {
    for item in &mut set.items {
        let pos = item.pos;
        match &mut item.node {
            Selection::Field(field) if field.node.name.node == "__typename" => {
                let directives = std::mem::take(&mut field.node.directives);
                if !directives.is_empty() {
                    let items = vec![item.clone()];
                    item.node = Selection::InlineFragment(Positioned::new(
                        InlineFragment {
                            type_condition: on.cloned(),
                            directives,
                            selection_set: Positioned::new(SelectionSet { items }, pos),
                        },
                        pos,
                    ));
                }
            }
            Selection::Field(field) => wrap_type_names(&mut field.node.selection_set.node, None),
            Selection::InlineFragment(fragment) => {
                let fragment = &mut fragment.node;
                let on = fragment.type_condition.as_ref();
                wrap_type_names(&mut fragment.selection_set.node, on);
            }
            Selection::FragmentSpread(_) => {}
        }
    }
}

fn adapt_selection(set: &mut SelectionSet, type_name: &str) {
    for item in &mut set.items {
        match &mut item.node {
            Selection::Field(field) => {
                let field = &mut field.node;
                let below = &mut field.selection_set.node;
                match (type_name, field.name.node.as_str()) {
                    (QUERY_TYPE, "__schema") => adapt_selection(below, SCHEMA_TYPE),
                    (SCHEMA_TYPE, "directives") => {
                        field.arguments.retain(|(name, value)| {
                            let value = value.node.clone().into_const();
                            name.node.as_str() != "includeDeprecated"
                                || !matches!(value, Some(Value::Boolean(_)))
                        });
                        adapt_selection(below, DIRECTIVE_TYPE);
                    }
                    (DIRECTIVE_TYPE, "isDeprecated" | "deprecationReason") => {
                        let key = field.response_key().clone();
                        field.name = Positioned::new(Name::new("name"), field.name.pos);
                        field.alias = Some(key);
                    }
                    _ => {}
                }
            }
            Selection::InlineFragment(fragment) => {
                let fragment = &mut fragment.node;
                let on = fragment.type_condition.as_ref().map(|on| on.node.on.node.clone());
                let on = on.as_deref().unwrap_or(type_name);
                adapt_selection(&mut fragment.selection_set.node, on);
            }
            Selection::FragmentSpread(_) => {}
        }
    }
}

/// Completes the library's answer: the description of the schema, and the fields of directives that it does not know.
pub(super) fn complete_answer(document: &Document<'_>, data: &mut Value) {
    let Value::Object(data) = data else { return };
    let sets = [&document.operation.selection_set.node];
    for asked in document.collect_fields(&sets, &|name| name == QUERY_TYPE) {
        let Some(Value::Object(schema)) = data.get_mut(asked.key) else { continue };
        if asked.field.node.name.node != "__schema" {
            continue;
        }
        for Selected { key, field, sets } in
            document.collect_fields(&asked.sets, &|name| name == SCHEMA_TYPE)
        {
            match (field.node.name.node.as_str(), schema.get_mut(key)) {
                ("description", Some(description)) => {
                    *description = Value::from(SCHEMA_DESCRIPTION);
                }
                ("directives", Some(Value::List(directives))) => {
                    complete_directives(document, &sets, directives);
                }
                _ => {}
            }
        }
    }
}

/// Answers that no directive of this schema is deprecated.
fn complete_directives(document: &Document<'_>, sets: &[&SelectionSet], directives: &mut [Value]) {
    for Selected { key, field, .. } in document.collect_fields(sets, &|name| name == DIRECTIVE_TYPE)
    {
        let value = match field.node.name.node.as_str() {
            "isDeprecated" => Value::Boolean(false),
            "deprecationReason" => Value::Null,
            _ => continue,
        };
        for directive in &mut *directives {
            if let Value::Object(members) = directive {
                members.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Adds the description of the schema to its SDL. The definition of the schema comes last in the SDL.
pub(super) fn add_description(sdl: &str) -> String {
    match sdl.rsplit_once("\nschema {") {
        Some((types, schema)) => {
            format!("{types}\n\"\"\"\n{SCHEMA_DESCRIPTION}\n\"\"\"\nschema {{{schema}")
        }
        None => sdl.to_owned(),
    }
}
