//! Checks of a document that the library's validation omits: every value fits its place, and so does every variable.
use super::coercion::{Coercion, CoercionError, ValueSource, VariableUse};
use super::document::operations_mut;
use async_graphql::indexmap::IndexMap;
use async_graphql::parser::types::{
    Directive, ExecutableDocument, OperationDefinition, OperationType, Selection, SelectionSet,
    VariableDefinition,
};
use async_graphql::registry::{MetaInputValue, MetaType, MetaTypeName, Registry};
use async_graphql::{Name, Pos, Positioned, ServerError};
use async_graphql_value::Value;
use std::collections::{HashMap, HashSet};

/// Coerces all literals of a document in place, and checks that they and the variables fit their places (GraphQL,
/// 5.6.1, 5.6.2, 5.6.4 and 5.8.5). Marks a nullable variable with a default as non-null if it is used where null is not
/// allowed. What is unknown is left to the library.
///
/// # Errors
/// Describes what does not fit.
pub(super) fn check_values(
    registry: &Registry,
    document: &mut ExecutableDocument,
) -> Result<(), Vec<ServerError>> {
    let mut validator = Validator { registry, scope: Scope::default(), errors: Vec::new() };
    let mut fragments = HashMap::new();
    for (name, fragment) in &mut document.fragments {
        let fragment = &mut fragment.node;
        let on = registry.types.get(fragment.type_condition.node.on.node.as_str());
        validator.visit_directives(&mut fragment.directives);
        validator.visit_selection(on, &mut fragment.selection_set.node);
        fragments.insert(name.clone(), std::mem::take(&mut validator.scope));
    }
    for operation in operations_mut(&mut document.operations) {
        let operation = &mut operation.node;
        let root = match operation.ty {
            OperationType::Query => registry.types.get(registry.query_type.as_str()),
            OperationType::Mutation | OperationType::Subscription => None,
        };
        validator.visit_variable_definitions(&mut operation.variable_definitions);
        validator.visit_directives(&mut operation.directives);
        validator.visit_selection(root, &mut operation.selection_set.node);
        let scope = std::mem::take(&mut validator.scope);
        validator.check_variables(&scope, &fragments, operation);
    }
    if validator.errors.is_empty() { Ok(()) } else { Err(validator.errors) }
}

/// What an operation or a fragment contains.
#[derive(Default)]
struct Scope {
    variables: Vec<(VariableUse, Pos)>,
    /// The fragments that it spreads.
    spreads: Vec<Name>,
}

struct Validator<'r> {
    registry: &'r Registry,
    scope: Scope,
    errors: Vec<ServerError>,
}

impl<'r> Validator<'r> {
    fn visit_selection(&mut self, parent: Option<&'r MetaType>, set: &mut SelectionSet) {
        for item in &mut set.items {
            let pos = item.pos;
            match &mut item.node {
                Selection::Field(field) => {
                    let field = &mut field.node;
                    let name = field.name.node.as_str();
                    let known = parent.and_then(|parent| parent.field_by_name(name));
                    let below = &mut field.selection_set.node;
                    // The library does not visit this field.
                    if name == "__typename"
                        && !(field.arguments.is_empty() && below.items.is_empty())
                    {
                        let why = "the field __typename takes no arguments and has no fields";
                        self.errors.push(ServerError::new(why, Some(pos)));
                    }
                    let of = || format!("the field {name}");
                    self.visit_arguments(known.map(|known| &known.args), &mut field.arguments, &of);
                    self.visit_directives(&mut field.directives);
                    let known = known.and_then(|it| self.registry.concrete_type_by_name(&it.ty));
                    self.visit_selection(known, below);
                }
                Selection::InlineFragment(fragment) => {
                    let fragment = &mut fragment.node;
                    let on = match &fragment.type_condition {
                        Some(on) => self.registry.types.get(on.node.on.node.as_str()),
                        None => parent,
                    };
                    self.visit_directives(&mut fragment.directives);
                    self.visit_selection(on, &mut fragment.selection_set.node);
                }
                Selection::FragmentSpread(spread) => {
                    self.scope.spreads.push(spread.node.fragment_name.node.clone());
                    self.visit_directives(&mut spread.node.directives);
                }
            }
        }
    }

    fn visit_directives(&mut self, directives: &mut [Positioned<Directive>]) {
        for directive in directives {
            let directive = &mut directive.node;
            let name = directive.name.node.as_str();
            let known = self.registry.directives.get(name).map(|known| &known.args);
            let of = || format!("the directive @{name}");
            self.visit_arguments(known, &mut directive.arguments, &of);
        }
    }

    fn visit_arguments(
        &mut self,
        known: Option<&'r IndexMap<String, MetaInputValue>>,
        arguments: &mut [(Positioned<Name>, Positioned<Value>)],
        of: &dyn Fn() -> String,
    ) {
        for (name, value) in arguments {
            let Some(input) = known.and_then(|known| known.get(name.node.as_str())) else {
                continue;
            };
            let mut coercion = Coercion::new(self.registry, ValueSource::Document);
            match coercion.coerce_input(input, std::mem::take(&mut value.node)) {
                Ok(coerced) => value.node = coerced,
                Err(error) => self.report_value(
                    &format!("the argument {} of {}", name.node, of()),
                    &input.ty,
                    &error,
                    value.pos,
                ),
            }
            self.scope.variables.extend(coercion.uses.into_iter().map(|used| (used, value.pos)));
        }
    }

    fn visit_variable_definitions(&mut self, definitions: &mut [Positioned<VariableDefinition>]) {
        for definition in definitions {
            let definition = &mut definition.node;
            let (name, type_name) = (&definition.name.node, definition.var_type.node.to_string());
            // The library does not visit these directives. No directive of the schema is allowed here.
            if let Some(directive) = definition.directives.first() {
                let message = format!(
                    "the directive @{} is not allowed at the definition of the variable ${name}",
                    directive.node.name.node
                );
                self.errors.push(ServerError::new(message, Some(directive.pos)));
            }
            let Some(default) = &mut definition.default_value else { continue };
            let mut coercion = Coercion::new(self.registry, ValueSource::Document);
            match coercion.coerce_constant(&type_name, std::mem::take(&mut default.node)) {
                Ok(coerced) => default.node = coerced,
                Err(error) => {
                    let what = format!("the default of the variable ${name}");
                    self.report_value(&what, &type_name, &error, default.pos);
                }
            }
        }
    }

    fn report_value(&mut self, what: &str, type_name: &str, error: &CoercionError, pos: Pos) {
        let message = format!("{what} does not fit its type {type_name}: {error}");
        self.errors.push(ServerError::new(message, Some(pos)));
    }

    /// Checks the variables of an operation, also those in the fragments that it spreads.
    fn check_variables(
        &mut self,
        scope: &Scope,
        fragments: &HashMap<Name, Scope>,
        operation: &mut OperationDefinition,
    ) {
        let (mut visited, mut open) = (HashSet::new(), vec![scope]);
        while let Some(scope) = open.pop() {
            for (used, pos) in &scope.variables {
                let definitions = operation.variable_definitions.iter_mut();
                // The library reports a variable without a definition.
                if let Some(definition) = { definitions }.find(|d| d.node.name.node == used.name)
                    && let Err(why) = check_place(&mut definition.node, used)
                {
                    let mut error = ServerError::new(why, Some(definition.pos));
                    error.locations.push(*pos);
                    self.errors.push(error);
                }
            }
            let spreads = scope.spreads.iter().filter(|name| visited.insert((*name).clone()));
            open.extend(spreads.filter_map(|name| fragments.get(name)));
        }
    }
}

/// Checks that a variable may be used at a place (GraphQL, 5.8.5).
fn check_place(definition: &mut VariableDefinition, used: &VariableUse) -> Result<(), String> {
    let declared = definition.var_type.node.to_string();
    let VariableUse { name, expected, has_default } = used;
    let fits = match MetaTypeName::create(expected) {
        MetaTypeName::NonNull(inner) if definition.var_type.node.nullable => {
            let default = definition.default_value.as_ref();
            let has_value = default.is_some_and(|value| value.node != async_graphql::Value::Null);
            let fits = (has_value || *has_default) && is_compatible(&declared, inner);
            // Only an explicit null can be wrong then, which is known when the variables have values.
            if fits && !has_default {
                definition.var_type.node.nullable = false;
            }
            fits
        }
        _ => is_compatible(&declared, expected),
    };
    if fits {
        return Ok(());
    }
    Err(format!(
        "the variable ${name} of type {declared} is used where the type {expected} is expected; declare it as ${name}: {expected}"
    ))
}

/// Returns whether every value of one type is a value of the other one.
fn is_compatible(variable: &str, place: &str) -> bool {
    match (MetaTypeName::create(place), MetaTypeName::create(variable)) {
        (MetaTypeName::NonNull(place), MetaTypeName::NonNull(variable))
        | (MetaTypeName::List(place), MetaTypeName::List(variable)) => {
            is_compatible(variable, place)
        }
        (MetaTypeName::List(_) | MetaTypeName::Named(_), MetaTypeName::NonNull(variable)) => {
            is_compatible(variable, place)
        }
        (MetaTypeName::Named(place), MetaTypeName::Named(variable)) => place == variable,
        _ => false,
    }
}
