//! A validated document: the requested operation, its selections, and the values of its arguments.
use async_graphql::parser::types::{
    Directive, DocumentOperations, ExecutableDocument, Field, FragmentDefinition,
    OperationDefinition, Selection, SelectionSet,
};
use async_graphql::{Name, Positioned, Value, Variables};
use async_graphql_value::Value as Literal;
use penstock_base::error::{ErrorClass, GatewayError};

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

/// The coerced values of a field's arguments (GraphQL, 6.4.1).
pub(super) struct Arguments(Vec<(Name, Value)>);

/// Finds the operation of this name, or the only one. Returns `None` if there is no such operation, or if the name is
/// missing and there are several.
pub(super) fn find_operation<'d>(
    document: &'d ExecutableDocument,
    name: Option<&str>,
) -> Option<&'d OperationDefinition> {
    let operation = match (&document.operations, name) {
        (DocumentOperations::Single(only), None) => only,
        (DocumentOperations::Multiple(all), Some(name)) => all.get(name)?,
        (DocumentOperations::Multiple(all), None) if all.len() == 1 => all.values().next()?,
        (DocumentOperations::Single(_), Some(_)) | (DocumentOperations::Multiple(_), None) => {
            return None;
        }
    };
    Some(&operation.node)
}

/// Returns all operations of a document, to change them.
pub(super) fn operations_mut(
    operations: &mut DocumentOperations,
) -> Vec<&mut Positioned<OperationDefinition>> {
    match operations {
        DocumentOperations::Single(only) => vec![only],
        DocumentOperations::Multiple(all) => all.values_mut().collect(),
    }
}

impl<'d> Document<'d> {
    /// Selects an operation, as [`find_operation`] does. `variables` has the coerced values of its variables.
    pub(super) fn new(
        document: &'d ExecutableDocument,
        name: Option<&str>,
        variables: &'d Variables,
    ) -> Option<Self> {
        let operation = find_operation(document, name)?;
        Some(Self { all: document, operation, variables })
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

    /// Evaluates `@skip` and `@include` (GraphQL, 3.13). The validation makes sure that the condition is a Boolean.
    pub(super) fn is_included(&self, directives: &[Positioned<Directive>]) -> bool {
        directives.iter().all(|directive| {
            let skips = match directive.node.name.node.as_str() {
                "skip" => true,
                "include" => false,
                _ => return true,
            };
            let condition = directive.node.get_argument("if");
            match condition.and_then(|condition| self.resolve_value(&condition.node)) {
                Some(Value::Boolean(condition)) => condition != skips,
                _ => false,
            }
        })
    }

    /// Returns the values of a field's arguments, with variables replaced.
    pub(super) fn resolve_arguments(&self, field: &Field) -> Arguments {
        let given = field.arguments.iter().filter_map(|(name, value)| {
            Some((name.node.clone(), self.resolve_value(&value.node)?))
        });
        Arguments(given.collect())
    }

    /// Finds the fragment of this name.
    pub(super) fn find_fragment(&self, name: &Name) -> Option<&'d FragmentDefinition> {
        self.all.fragments.get(name).map(|fragment| &fragment.node)
    }

    /// Replaces the variables in a value. Returns `None` for an absent variable: its argument, or its field of an input
    /// object, is absent too. In a list it is null.
    fn resolve_value(&self, value: &Literal) -> Option<Value> {
        match value {
            Literal::Variable(name) => self.variables.get(name).cloned(),
            Literal::List(items) => {
                let items = items.iter().map(|item| self.resolve_value(item).unwrap_or_default());
                Some(Value::List(items.collect()))
            }
            Literal::Object(members) => {
                let given = members
                    .iter()
                    .filter_map(|(name, value)| Some((name.clone(), self.resolve_value(value)?)));
                Some(Value::Object(given.collect()))
            }
            constant => constant.clone().into_const(),
        }
    }
}

impl Arguments {
    /// Returns the value of an argument. An argument that may be null means the same when it is absent: the default
    /// page, no filter, the default order, no limitation.
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

    /// Returns the text of an argument whose type is non-null.
    ///
    /// # Errors
    /// `ErrorClass::Internal` without it, because the validation refuses such documents.
    pub(super) fn require_text(&self, name: &str) -> Result<&str, GatewayError> {
        self.get_text(name).ok_or_else(|| {
            let detail =
                format!("the required argument {name} passed the validation without a value");
            GatewayError::new(ErrorClass::Internal, detail)
        })
    }
}
