//! A validated document: the requested operation, its selections, and the values of its arguments.
use async_graphql::parser::types::{
    Directive, DocumentOperations, ExecutableDocument, Field, FragmentDefinition,
    OperationDefinition, Selection, SelectionSet,
};
use async_graphql::{Name, Positioned, Value, Variables};
use std::convert::Infallible;

/// The requested operation of a document.
pub(super) struct Document<'d> {
    all: &'d ExecutableDocument,
    pub(super) operation: &'d OperationDefinition,
    variables: &'d Variables,
}

/// A field of the answer, with all selections under this response key merged.
pub(super) struct Selected<'d> {
    pub(super) key: &'d Name,
    pub(super) field: &'d Positioned<Field>,
    pub(super) sets: Vec<&'d SelectionSet>,
}

/// The values of a field's arguments. `null` counts as absent.
pub(super) struct Arguments(Vec<(Name, Value)>);

impl<'d> Document<'d> {
    /// Selects the operation of this name, or the only one. Returns `None` if there is no such operation, or if the
    /// name is missing and there are several.
    pub(super) fn new(
        document: &'d ExecutableDocument,
        name: Option<&str>,
        variables: &'d Variables,
    ) -> Option<Self> {
        let operation = match (&document.operations, name) {
            (DocumentOperations::Single(only), None) => only,
            (DocumentOperations::Multiple(all), Some(name)) => all.get(name)?,
            (DocumentOperations::Multiple(all), None) if all.len() == 1 => all.values().next()?,
            (DocumentOperations::Single(_), Some(_)) | (DocumentOperations::Multiple(_), None) => {
                return None;
            }
        };
        Some(Self { all: document, operation: &operation.node, variables })
    }

    /// Collects the fields selected for an object, in the order of their first occurrence (GraphQL, 6.3.2). `is`
    /// decides whether a fragment on the type of this name applies to the object.
    pub(super) fn collect_fields(
        &self,
        sets: &[&'d SelectionSet],
        is: &dyn Fn(&str) -> bool,
    ) -> Vec<Selected<'d>> {
        let mut selected = Vec::new();
        for set in sets {
            self.collect_fields_of_set(set, is, &mut selected);
        }
        selected
    }

    fn collect_fields_of_set(
        &self,
        set: &'d SelectionSet,
        is: &dyn Fn(&str) -> bool,
        selected: &mut Vec<Selected<'d>>,
    ) {
        for item in &set.items {
            if !self.is_included(item.node.directives()) {
                continue;
            }
            match &item.node {
                Selection::Field(field) => {
                    let key = &field.node.response_key().node;
                    let set = &field.node.selection_set.node;
                    match selected.iter_mut().find(|selected| selected.key == key) {
                        Some(selected) => selected.sets.push(set),
                        None => selected.push(Selected { key, field, sets: vec![set] }),
                    }
                }
                Selection::InlineFragment(fragment) => {
                    let condition = fragment.node.type_condition.as_ref();
                    if condition.is_none_or(|condition| is(&condition.node.on.node)) {
                        self.collect_fields_of_set(&fragment.node.selection_set.node, is, selected);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    let Some(fragment) = self.all.fragments.get(name) else { continue };
                    if is(&fragment.node.type_condition.node.on.node) {
                        self.collect_fields_of_set(&fragment.node.selection_set.node, is, selected);
                    }
                }
            }
        }
    }

    /// Evaluates `@skip` and `@include` (GraphQL, 3.13).
    pub(super) fn is_included(&self, directives: &[Positioned<Directive>]) -> bool {
        directives.iter().all(|directive| {
            let condition = directive.node.get_argument("if").map(|value| {
                let value = value.node.clone();
                value.into_const_with(|name| Ok::<_, Infallible>(self.resolve_variable(&name)))
            });
            match (directive.node.name.node.as_str(), condition) {
                ("skip", Some(Ok(Value::Boolean(skip)))) => !skip,
                ("include", Some(Ok(Value::Boolean(include)))) => include,
                _ => true,
            }
        })
    }

    /// Returns the values of a field's arguments, with variables replaced.
    pub(super) fn resolve_arguments(&self, field: &Field) -> Arguments {
        let given = field.arguments.iter().map(|(name, value)| {
            let value = value.node.clone();
            let constant =
                value.into_const_with(|name| Ok::<_, Infallible>(self.resolve_variable(&name)));
            (name.node.clone(), constant.unwrap_or_else(|never| match never {}))
        });
        Arguments(given.collect())
    }

    /// Finds the fragment of this name.
    pub(super) fn find_fragment(&self, name: &Name) -> Option<&'d FragmentDefinition> {
        self.all.fragments.get(name).map(|fragment| &fragment.node)
    }

    fn resolve_variable(&self, name: &Name) -> Value {
        if let Some(value) = self.variables.get(name) {
            return value.clone();
        }
        let definitions = self.operation.variable_definitions.iter();
        let definition = definitions.map(|d| &d.node).find(|d| d.name.node == *name);
        let default = definition.and_then(|definition| definition.default_value.as_ref());
        default.map_or(Value::Null, |value| value.node.clone())
    }
}

impl Arguments {
    /// Returns the value of an argument, if it was given.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let value = self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value);
        value.filter(|value| **value != Value::Null)
    }

    /// Returns a text: a string, an identifier, or a value of an enum.
    pub(super) fn get_text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::String(text) => Some(text),
            Value::Enum(item) => Some(item),
            _ => None,
        }
    }
}
