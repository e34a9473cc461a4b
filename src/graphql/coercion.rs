//! Coerces input values to the types of the schema (GraphQL, 3.5 to 3.12): literals of a document, and the values of
//! variables that a request sends.
//!
//! The library's validation checks a literal only if all variables in it have values. It takes strings as values of
//! enums, and any value as an input object. So every value is coerced here, to the types of the library's schema.
use super::system::is_number;
use async_graphql::registry::{MetaInputValue, MetaType, MetaTypeName, Registry};
use async_graphql::{Name, Value as ConstValue};
use async_graphql_value::Value;
use penstock_base::nearest::find_nearest;
use penstock_model::mapping::CODE_SCALAR;
use std::fmt;

/// The maximum number of characters of a value in an error.
const MAX_SHOWN_CHARS: usize = 100;

/// The maximum number of values of an enum that an error lists.
const MAX_LISTED_VALUES: usize = 10;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueSource {
    /// A literal, which may contain variables. A value of an enum is a name.
    Document,
    /// The value of a variable, as JSON. A value of an enum is a string.
    Request,
}

/// A variable at a place where a value of a type is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VariableUse {
    pub(super) name: Name,
    pub(super) expected: String,
    /// Whether the place has a default, so that the variable may be absent.
    pub(super) has_default: bool,
}

/// Why a value does not fit its type.
#[derive(Debug)]
pub(super) struct CoercionError {
    /// The fields and indexes that lead to the value, outermost first.
    path: String,
    cause: String,
}

/// Coerces values from one source.
pub(super) struct Coercion<'r> {
    registry: &'r Registry,
    source: ValueSource,
    /// The variables in all values so far.
    pub(super) uses: Vec<VariableUse>,
}

impl<'r> Coercion<'r> {
    pub(super) fn new(registry: &'r Registry, source: ValueSource) -> Self {
        Self { registry, source, uses: Vec::new() }
    }

    /// Coerces the value of an argument, or of a field of an input object. Variables stay.
    ///
    /// # Errors
    /// Describes the first value that does not fit.
    pub(super) fn coerce_input(
        &mut self,
        input: &MetaInputValue,
        value: Value,
    ) -> Result<Value, CoercionError> {
        if let Value::Variable(name) = &value {
            let has_default = input.default_value.is_some();
            let (name, expected) = (name.clone(), input.ty.clone());
            self.uses.push(VariableUse { name, expected, has_default });
            return Ok(value);
        }
        self.coerce_value(&input.ty, value)
    }

    /// Coerces a constant to a type in GraphQL's notation, such as `[String!]!`.
    ///
    /// # Errors
    /// Describes the first value that does not fit.
    pub(super) fn coerce_constant(
        &mut self,
        type_name: &str,
        value: ConstValue,
    ) -> Result<ConstValue, CoercionError> {
        let coerced = self.coerce_value(type_name, value.into_value())?;
        Ok(coerced.into_const().expect("a constant stays one, because nothing adds variables"))
    }

    fn coerce_value(&mut self, type_name: &str, value: Value) -> Result<Value, CoercionError> {
        if let Value::Variable(name) = &value {
            let (name, expected) = (name.clone(), type_name.to_owned());
            self.uses.push(VariableUse { name, expected, has_default: false });
            return Ok(value);
        }
        match (MetaTypeName::create(type_name), value) {
            (MetaTypeName::NonNull(inner), Value::Null) => {
                Err(CoercionError::new(format!("a value of type {inner} is required, not null")))
            }
            (MetaTypeName::NonNull(inner), value) => self.coerce_value(inner, value),
            (MetaTypeName::List(_) | MetaTypeName::Named(_), Value::Null) => Ok(Value::Null),
            (MetaTypeName::List(inner), Value::List(items)) => {
                let items = items.into_iter().enumerate().map(|(index, item)| {
                    let item = self.coerce_value(inner, item);
                    item.map_err(|error| error.below(&format!("[{index}]")))
                });
                Ok(Value::List(items.collect::<Result<_, _>>()?))
            }
            // A single value counts as a list of one (GraphQL, 3.11).
            (MetaTypeName::List(inner), one) => {
                Ok(Value::List(vec![self.coerce_value(inner, one)?]))
            }
            (MetaTypeName::Named(name), value) => self.coerce_named_type(name, value),
        }
    }

    fn coerce_named_type(&mut self, name: &str, value: Value) -> Result<Value, CoercionError> {
        let registry = self.registry;
        match registry.types.get(name) {
            Some(MetaType::Scalar { .. }) => coerce_scalar(name, value),
            Some(MetaType::Enum { enum_values, .. }) => {
                let item = match (&value, self.source) {
                    (Value::Enum(item), ValueSource::Document) => item.as_str(),
                    (Value::String(item), ValueSource::Request) => item.as_str(),
                    (Value::String(item), ValueSource::Document) => {
                        return Err(CoercionError::new(format!(
                            "{} is a string; a value of the enum {name} has no quotation marks",
                            shorten(&format!("{item:?}"))
                        )));
                    }
                    _ => {
                        let expected = format!("a value of the enum {name}");
                        return Err(CoercionError::wrong_value(&value, &expected));
                    }
                };
                if enum_values.contains_key(item) {
                    return Ok(Value::Enum(Name::new(item)));
                }
                let hint = if enum_values.len() <= MAX_LISTED_VALUES {
                    let values: Vec<&str> = enum_values.keys().map(String::as_str).collect();
                    format!("; its values are {}", values.join(", "))
                } else {
                    suggest_name(item, enum_values.keys())
                };
                let item = shorten(item);
                Err(CoercionError::new(format!("the enum {name} has no value {item}{hint}")))
            }
            Some(MetaType::InputObject { input_fields, .. }) => match value {
                Value::Object(members) => {
                    let mut coerced = async_graphql::indexmap::IndexMap::new();
                    for (member, value) in members {
                        let Some(field) = input_fields.get(member.as_str()) else {
                            let hint = suggest_name(&member, input_fields.keys());
                            let cause = format!("{name} has no field {}{hint}", shorten(&member));
                            return Err(CoercionError::new(cause));
                        };
                        let value = self.coerce_input(field, value);
                        let value = value.map_err(|error| error.below(&format!(".{member}")))?;
                        coerced.insert(member, value);
                    }
                    let is_missing = |field: &&MetaInputValue| {
                        is_required(field) && !coerced.contains_key(field.name.as_str())
                    };
                    match input_fields.values().find(is_missing) {
                        Some(MetaInputValue { name: field, ty, .. }) => Err(CoercionError::new(
                            format!("the field {field} of {name} is missing; its type is {ty}"),
                        )),
                        None => Ok(Value::Object(coerced)),
                    }
                }
                other => {
                    Err(CoercionError::wrong_value(&other, &format!("an object of type {name}")))
                }
            },
            _ => Err(CoercionError::new(format!("{name} is not an input type"))),
        }
    }
}

/// Returns whether a value must be given: the type allows no null, and there is no default.
pub(super) fn is_required(input: &MetaInputValue) -> bool {
    MetaTypeName::create(&input.ty).is_non_null() && input.default_value.is_none()
}

fn coerce_scalar(name: &str, value: Value) -> Result<Value, CoercionError> {
    let (is_valid, expected) = match (name, &value) {
        ("Int", Value::Number(number)) => (
            number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
            "a whole number of 32 bits",
        ),
        ("Int", _) => (false, "a whole number"),
        ("Float", value) => (matches!(value, Value::Number(_)), "a number"),
        ("Boolean", value) => (matches!(value, Value::Boolean(_)), "true or false"),
        // An identifier is a string, also if it is written as a number (GraphQL, 3.5.5).
        ("ID", Value::Number(number)) if number.is_i64() || number.is_u64() => {
            return Ok(Value::String(number.to_string()));
        }
        (name, value) if name == CODE_SCALAR.name => {
            let is_code = matches!(value, Value::String(_) | Value::Number(_) | Value::Boolean(_));
            (is_code, "a string, a number or a boolean")
        }
        // Strings too, for clients that cannot write all digits.
        (name, value) if is_number(name) => {
            (matches!(value, Value::Number(_) | Value::String(_)), "a number or a string of digits")
        }
        (_, value) => (matches!(value, Value::String(_)), "a string"),
    };
    if is_valid { Ok(value) } else { Err(CoercionError::wrong_value(&value, expected)) }
}

impl CoercionError {
    fn new(cause: impl Into<String>) -> Self {
        Self { path: String::new(), cause: cause.into() }
    }

    fn wrong_value(value: &Value, expected: &str) -> Self {
        Self::new(format!("{} is not {expected}", shorten(&value.to_string())))
    }

    /// Adds the field or index that leads to the value.
    fn below(mut self, segment: &str) -> Self {
        self.path.insert_str(0, segment);
        self
    }
}

impl fmt::Display for CoercionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.trim_start_matches('.') {
            "" => f.write_str(&self.cause),
            path => write!(f, "at {}: {}", shorten(path), self.cause),
        }
    }
}

/// Returns a hint at the known name that is nearest, or nothing.
fn suggest_name<'n>(name: &str, known: impl Iterator<Item = &'n String>) -> String {
    find_nearest(name, known).map_or_else(String::new, |near| format!("; did you mean {near}?"))
}

/// Shortens a text of the client for an error.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
