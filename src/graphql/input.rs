//! Converts coerced arguments to the parameters of a search. A test or filter that is null is ignored.
use super::document::Arguments;
use super::model::{BusinessObjectTypes, FieldRole, Model, ObjectType};
use super::system::DEFAULT_PAGE_SIZE;
use async_graphql::Value;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::search::{Filter, Order, ValueTest};

/// Reads `first`, the maximum number of items of a page.
pub(super) fn parse_first(arguments: &Arguments) -> Result<usize, GatewayError> {
    let Some(value) = arguments.get("first") else { return Ok(DEFAULT_PAGE_SIZE) };
    let count = match value {
        Value::Number(number) => number.as_u64().and_then(|count| usize::try_from(count).ok()),
        _ => None,
    };
    count.ok_or_else(|| {
        invalid_argument_error(format!("first is {value}; it must be a whole number of at least 0"))
    })
}

/// Reads `where`, the filter.
pub(super) fn parse_filter(
    model: &Model,
    object: &ObjectType,
    arguments: &Arguments,
) -> Result<Option<Filter>, GatewayError> {
    arguments.get("where").map(|value| parse_object_filter(model, object, value)).transpose()
}

/// Reads `orderBy`.
pub(super) fn parse_order(
    business: &BusinessObjectTypes,
    arguments: &Arguments,
) -> Result<Order, GatewayError> {
    let Some(value) = arguments.get("orderBy") else { return Ok(Order::default()) };
    let Value::Object(members) = value else {
        return Err(invalid_argument_error(
            "orderBy must be an object: {field: name, direction: ASC}",
        ));
    };
    let text = |name: &str| match members.get(name) {
        Some(Value::Enum(item)) => Some(item.as_str()),
        _ => None,
    };
    let named = text("field").unwrap_or_default();
    let Some((_, field)) = business.orders.iter().find(|(name, _)| name == named) else {
        return Err(invalid_argument_error(format!("objects cannot be ordered by {named:?}")));
    };
    Ok(Order { field: *field, descending: text("direction") == Some("DESC") })
}

fn parse_object_filter(
    model: &Model,
    object: &ObjectType,
    value: &Value,
) -> Result<Filter, GatewayError> {
    let Value::Object(members) = value else {
        return Err(invalid_argument_error(format!(
            "a filter of {} must be an object, not {value}",
            object.name
        )));
    };
    let each = |value: &Value| -> Result<Vec<Filter>, GatewayError> {
        list_items(value).iter().map(|item| parse_object_filter(model, object, item)).collect()
    };
    let mut all = Vec::new();
    for (name, value) in members {
        if *value == Value::Null {
            continue;
        }
        all.push(match (name.as_str(), object.find_field(name).map(|field| field.role)) {
            ("and", _) => Filter::All(each(value)?),
            ("or", _) => Filter::Any(each(value)?),
            ("not", _) => Filter::Not(Box::new(parse_object_filter(model, object, value)?)),
            (_, Some(FieldRole::Uri)) => parse_tests(name, value, &Filter::Uri)?,
            (_, Some(FieldRole::Leaf(field, ..))) => {
                parse_tests(name, value, &|test| Filter::Field { field, test })?
            }
            (_, Some(FieldRole::Texts(field, _))) => parse_text_filter(name, field, value)?,
            (_, Some(FieldRole::Nested(field, to, _))) => {
                let to = model.object_types.get(to).ok_or_else(|| unknown_field_error(name))?;
                let filter = Box::new(parse_object_filter(model, to, value)?);
                Filter::Nested { field, filter }
            }
            // The fields of a group belong to the object around it, as those of a value to the member of a map.
            (_, Some(FieldRole::Group(to) | FieldRole::Member(to))) => {
                let to = model.object_types.get(to).ok_or_else(|| unknown_field_error(name))?;
                parse_object_filter(model, to, value)?
            }
            _ => return Err(unknown_field_error(name)),
        });
    }
    Ok(if all.len() == 1 { all.swap_remove(0) } else { Filter::All(all) })
}

/// Reads the filter of a language map: the language, and tests of the texts in it. Without a test, there is a text.
fn parse_text_filter(name: &str, field: usize, value: &Value) -> Result<Filter, GatewayError> {
    let language = match value {
        Value::Object(members) => members.get("language"),
        _ => None,
    };
    let language = match language {
        Some(Value::String(tag)) => Some(tag.clone()),
        _ => None,
    };
    let build = |test| Filter::Text { field, language: language.clone(), test };
    let filter = parse_tests(name, value, &build)?;
    let is_untested = language.is_some() && filter == Filter::All(Vec::new());
    Ok(if is_untested { build(ValueTest::Exists) } else { filter })
}

fn parse_tests(
    name: &str,
    value: &Value,
    of: &dyn Fn(ValueTest) -> Filter,
) -> Result<Filter, GatewayError> {
    let Value::Object(members) = value else {
        return Err(invalid_argument_error(format!(
            "the tests of {name} must be an object, not {value}"
        )));
    };
    let mut all = Vec::new();
    for (test, value) in members {
        // The language is no test of its own.
        if *value == Value::Null || test == "language" {
            continue;
        }
        all.push(match test.as_str() {
            "in" => {
                let items = list_items(value).iter().map(|item| to_comparable_text(name, item));
                of(ValueTest::In(items.collect::<Result<_, _>>()?))
            }
            "exists" if *value == Value::Boolean(false) => {
                Filter::Not(Box::new(of(ValueTest::Exists)))
            }
            "exists" => of(ValueTest::Exists),
            _ => {
                let found = ValueTest::with_text(test, to_comparable_text(name, value)?);
                of(found.ok_or_else(|| unknown_field_error(test))?)
            }
        });
    }
    Ok(if all.len() == 1 { all.swap_remove(0) } else { Filter::All(all) })
}

/// Returns the items of a coerced list.
fn list_items(value: &Value) -> &[Value] {
    match value {
        Value::List(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// Returns a value as the text that the view shows for an equal stored value.
fn to_comparable_text(name: &str, value: &Value) -> Result<String, GatewayError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        other => Err(invalid_argument_error(format!("{name} cannot be compared with {other}"))),
    }
}

fn unknown_field_error(name: &str) -> GatewayError {
    invalid_argument_error(format!("a filter has no field {name:?}"))
}

fn invalid_argument_error(detail: impl Into<String>) -> GatewayError {
    GatewayError::new(ErrorClass::Invalid, detail)
}
