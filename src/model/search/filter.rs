//! Filters: conditions that an object must fulfil.
use crate::mapping::{Property, Shape, Value};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::nearest::find_nearest;
use penstock_rdf::compare::ValueOrder;

/// A condition on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// All of these conditions hold; every object passes an empty list.
    All(Vec<Filter>),
    /// At least one of these conditions holds; no object passes an empty list.
    Any(Vec<Filter>),
    /// This condition does not hold.
    Not(Box<Filter>),
    /// The object's URI passes the test.
    Uri(ValueTest),
    /// A value of the field passes the test.
    Field {
        /// The index in [`Shape::fields`].
        field: usize,
        /// The condition on the value.
        test: ValueTest,
    },
    /// An object nested in the field passes the filter.
    Nested {
        /// The index in [`Shape::fields`].
        field: usize,
        /// The condition on the nested object.
        filter: Box<Filter>,
    },
}

/// A condition on a value. Values are texts as the view shows them. Numbers are compared by number, dates and times
/// by their moment (in UTC if they have no time zone), everything else by code point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueTest {
    /// The value is one of these.
    In(Vec<String>),
    /// The value contains this text.
    Contains(String),
    /// The value contains this text, ignoring case.
    ContainsAnyCase(String),
    /// The value is a smaller number, or an earlier date or time.
    Before(String),
    /// The value is a greater number, or a later date or time.
    After(String),
    /// There is a value.
    Exists,
}

impl Filter {
    /// Creates a filter that tests the field at a path of names. `uri`, or the name of a field of type `id`, means
    /// the URI of the object there.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if there is no such field.
    pub fn for_field(shape: &Shape, path: &[&str], test: ValueTest) -> Result<Self, GatewayError> {
        let Some((name, rest)) = path.split_first() else {
            return Err(GatewayError::new(ErrorClass::Invalid, "the filter names no field"));
        };
        if shape.is_id(name) {
            return match rest {
                [] => Ok(Self::Uri(test)),
                [more, ..] => Err(unknown_field_error(more, &[])),
            };
        }
        let mut fields = shape.iter_properties();
        let Some((field, _, property)) = fields.find(|(_, field, _)| field.name == *name) else {
            let known: Vec<&str> = shape.fields.iter().map(|field| field.name.as_str()).collect();
            return Err(unknown_field_error(name, &known));
        };
        match (&property.value, rest) {
            (Value::Object(_), []) if test == ValueTest::Exists => {
                Ok(Self::Nested { field, filter: Box::new(Self::All(Vec::new())) })
            }
            (Value::Object(_), []) => Ok(Self::Nested { field, filter: Box::new(Self::Uri(test)) }),
            (Value::Object(nested), rest) => {
                Ok(Self::Nested { field, filter: Box::new(Self::for_field(nested, rest, test)?) })
            }
            (_, []) => Ok(Self::Field { field, test }),
            (_, [more, ..]) => Err(unknown_field_error(more, &[])),
        }
    }

    /// Checks that the filter fits the shape: its field indexes, and the types that it compares.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` with the cause.
    pub(super) fn check_shape(&self, shape: &Shape) -> Result<(), GatewayError> {
        match self {
            Self::All(filters) | Self::Any(filters) => {
                filters.iter().try_for_each(|filter| filter.check_shape(shape))
            }
            Self::Not(filter) => filter.check_shape(shape),
            Self::Uri(test) => test.check_values("uri", ValueOrder::Text),
            Self::Field { field, test } => {
                let (name, property) = find_property(shape, *field)?;
                test.check_values(name, property.value.kind().order)
            }
            Self::Nested { field, filter } => match find_property(shape, *field)? {
                (_, Property { value: Value::Object(nested), .. }) => filter.check_shape(nested),
                (name, _) => {
                    Err(invalid_filter_error(format!("the field {name} does not hold objects")))
                }
            },
        }
    }
}

impl ValueTest {
    fn check_values(&self, name: &str, order: ValueOrder) -> Result<(), GatewayError> {
        let wanted: &[String] = match self {
            Self::In(wanted) => wanted,
            Self::Before(wanted) | Self::After(wanted) if order == ValueOrder::Text => {
                return Err(invalid_filter_error(format!(
                    "the field {name} holds neither numbers nor dates, so it cannot be compared with {wanted:?}"
                )));
            }
            Self::Before(wanted) | Self::After(wanted) => std::slice::from_ref(wanted),
            Self::Contains(_) | Self::ContainsAnyCase(_) | Self::Exists => &[],
        };
        for text in wanted {
            if !order.can_parse(text) {
                return Err(invalid_filter_error(format!(
                    "{text:?} is {}, but the field {name} needs one",
                    order.describe_mismatch()
                )));
            }
        }
        Ok(())
    }
}

/// Returns the name and the property of the field at this index.
pub(super) fn find_property(
    shape: &Shape,
    field: usize,
) -> Result<(&str, &Property), GatewayError> {
    let Some(field) = shape.fields.get(field) else {
        let error = "the filter belongs to another Business Object";
        return Err(invalid_filter_error(error.to_owned()));
    };
    let is_uri = || invalid_filter_error(format!("the field {} is the object's URI", field.name));
    Ok((&field.name, field.property().ok_or_else(is_uri)?))
}

fn unknown_field_error(name: &str, known: &[&str]) -> GatewayError {
    let hint = match find_nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    };
    invalid_filter_error(format!("there is no field `{name}`{hint}"))
}

fn invalid_filter_error(detail: String) -> GatewayError {
    GatewayError::new(ErrorClass::Invalid, detail)
}
