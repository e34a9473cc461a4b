//! Coerces the variables of an operation, once, before its cost is computed (GraphQL, 6.1.2).
use super::coercion::{Coercion, ValueSource};
use super::query::convert_value;
use async_graphql::parser::types::{OperationDefinition, VariableDefinition};
use async_graphql::registry::Registry;
use async_graphql::{Positioned, ServerError, Variables};
use penstock_base::nearest::find_nearest;
use serde_json::{Map, Value as Json};

/// Returns the values of the variables that the operation declares, with defaults. A variable without a value and
/// without a default is absent, which differs from `null`. Ignores values that the operation does not declare, as the
/// specification requires.
///
/// # Errors
/// Describes the first variable that is missing or does not fit its type.
pub(super) fn coerce_variables(
    registry: &Registry,
    operation: &OperationDefinition,
    given: &Map<String, Json>,
) -> Result<Variables, ServerError> {
    let mut variables = Variables::default();
    for definition in &operation.variable_definitions {
        let VariableDefinition { name, var_type, default_value, .. } = &definition.node;
        let (name, type_name) = (&name.node, var_type.node.to_string());
        let Some(value) = given.get(name.as_str()) else {
            // The validation has coerced the default.
            if let Some(default) = default_value {
                variables.insert(name.clone(), default.node.clone());
            } else if !var_type.node.nullable {
                return Err(missing_variable_error(definition, operation, given));
            }
            continue;
        };
        let mut coercion = Coercion::new(registry, ValueSource::Request);
        let value = convert_value(value.clone());
        let coerced = coercion.coerce_constant(&type_name, value).map_err(|error| {
            let message =
                format!("the variable ${name} does not fit its type {type_name}: {error}");
            ServerError::new(message, Some(definition.pos))
        })?;
        variables.insert(name.clone(), coerced);
    }
    Ok(variables)
}

fn missing_variable_error(
    definition: &Positioned<VariableDefinition>,
    operation: &OperationDefinition,
    given: &Map<String, Json>,
) -> ServerError {
    let VariableDefinition { name, var_type, .. } = &definition.node;
    let is_declared = |given: &&String| {
        operation.variable_definitions.iter().any(|other| other.node.name.node == ***given)
    };
    let undeclared = given.keys().filter(|given| !is_declared(given));
    let hint = find_nearest(&name.node, undeclared)
        .map_or_else(String::new, |near| format!("; did you mean it with {near:?}?"));
    ServerError::new(
        format!(
            "the variable ${} is missing in `variables`, and its type {} requires a value{hint}",
            name.node, var_type.node
        ),
        Some(definition.pos),
    )
}
