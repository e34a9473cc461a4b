//! Converts arguments to the parameters of a search.
use super::document::Arguments;
use super::model::{Business, Model, ObjectType, Role};
use super::system::FIRST;
use async_graphql::Value;
use penstock_base::fault::{Fault, Kind};
use penstock_model::search::{Filter, Order, Test};

/// Reads `first`, the maximum number of items of a page.
pub(super) fn first(arguments: &Arguments) -> Result<usize, Fault> {
    let Some(value) = arguments.get("first") else { return Ok(FIRST) };
    let count = match value {
        Value::Number(number) => number.as_u64().and_then(|count| usize::try_from(count).ok()),
        _ => None,
    };
    count.ok_or_else(|| wrong(format!("first is {value}; it must be a whole number of at least 0")))
}

/// Reads `where`, the filter.
pub(super) fn filter(
    model: &Model,
    object: &ObjectType,
    arguments: &Arguments,
) -> Result<Option<Filter>, Fault> {
    arguments.get("where").map(|value| object_filter(model, object, value)).transpose()
}

/// Reads `orderBy`.
pub(super) fn order(business: &Business, arguments: &Arguments) -> Result<Order, Fault> {
    let Some(value) = arguments.get("orderBy") else { return Ok(Order::default()) };
    let Value::Object(members) = value else {
        return Err(wrong("orderBy must be an object: {field: name, direction: ASC}"));
    };
    let text = |name: &str| match members.get(name) {
        Some(Value::Enum(item)) => Some(item.as_str()),
        Some(Value::String(item)) => Some(item.as_str()),
        _ => None,
    };
    let named = text("field").unwrap_or_default();
    let Some((_, field)) = business.orders.iter().find(|(name, _)| name == named) else {
        return Err(wrong(format!("objects cannot be ordered by {named:?}")));
    };
    Ok(Order { field: *field, descending: text("direction") == Some("DESC") })
}

fn object_filter(model: &Model, object: &ObjectType, value: &Value) -> Result<Filter, Fault> {
    let Value::Object(members) = value else {
        return Err(wrong(format!("a filter of {} must be an object, not {value}", object.name)));
    };
    let each = |value: &Value| match value {
        Value::List(items) => items.iter().map(|item| object_filter(model, object, item)).collect(),
        // A single value is read as a list of one (GraphQL, 3.11).
        one => Ok(vec![object_filter(model, object, one)?]),
    };
    let mut all = Vec::new();
    for (name, value) in members {
        if *value == Value::Null {
            continue;
        }
        all.push(match (name.as_str(), object.field(name).map(|field| field.role)) {
            ("and", _) => Filter::All(each(value)?),
            ("or", _) => Filter::Any(each(value)?),
            ("not", _) => Filter::Not(Box::new(object_filter(model, object, value)?)),
            (_, Some(Role::Uri)) => tests(name, value, &Filter::Uri)?,
            (_, Some(Role::Leaf(field, ..))) => {
                tests(name, value, &|test| Filter::Field { field, test })?
            }
            (_, Some(Role::Nested(field, to, _))) => {
                let to = model.objects.get(to).ok_or_else(|| unknown(name))?;
                let filter = Box::new(object_filter(model, to, value)?);
                Filter::Nested { field, filter }
            }
            _ => return Err(unknown(name)),
        });
    }
    Ok(if all.len() == 1 { all.swap_remove(0) } else { Filter::All(all) })
}

fn tests(name: &str, value: &Value, of: &dyn Fn(Test) -> Filter) -> Result<Filter, Fault> {
    let Value::Object(members) = value else {
        return Err(wrong(format!("the tests of {name} must be an object, not {value}")));
    };
    let mut all = Vec::new();
    for (test, value) in members {
        if *value == Value::Null {
            continue;
        }
        let text = || text(name, value);
        all.push(match test.as_str() {
            "eq" => of(Test::In(vec![text()?])),
            "in" => of(Test::In(match value {
                Value::List(items) => {
                    items.iter().map(|item| self::text(name, item)).collect::<Result<_, _>>()?
                }
                one => vec![self::text(name, one)?],
            })),
            "contains" => of(Test::Contains(text()?)),
            "containsAnyCase" => of(Test::ContainsAnyCase(text()?)),
            "before" => of(Test::Before(text()?)),
            "after" => of(Test::After(text()?)),
            "exists" if *value == Value::Boolean(false) => Filter::Not(Box::new(of(Test::Exists))),
            "exists" => of(Test::Exists),
            _ => return Err(unknown(test)),
        });
    }
    Ok(if all.len() == 1 { all.swap_remove(0) } else { Filter::All(all) })
}

/// Returns a value in the form that the view shows.
fn text(name: &str, value: &Value) -> Result<String, Fault> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        other => Err(wrong(format!("{name} cannot be compared with {other}"))),
    }
}

fn unknown(name: &str) -> Fault {
    wrong(format!("a filter has no field {name:?}"))
}

fn wrong(detail: impl Into<String>) -> Fault {
    Fault::new(Kind::Invalid, detail)
}
