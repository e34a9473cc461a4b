//! Filters: conditions that an object must fulfil.
use super::order::Kind as Order;
use crate::mapping::{FieldKind, Property, Shape, Value};
use penstock_base::fault::{Fault, Kind};
use penstock_base::nearest::nearest;

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
    Uri(Test),
    /// A value of the field passes the test.
    Field {
        /// The index in [`Shape::fields`].
        field: usize,
        /// The condition on the value.
        test: Test,
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
pub enum Test {
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
    /// `Kind::Invalid` if there is no such field.
    pub fn at(shape: &Shape, path: &[&str], test: Test) -> Result<Self, Fault> {
        let Some((name, rest)) = path.split_first() else {
            return Err(Fault::new(Kind::Invalid, "the filter names no field"));
        };
        if shape.is_id(name) {
            return match rest {
                [] => Ok(Self::Uri(test)),
                [more, ..] => Err(unknown(more, &[])),
            };
        }
        let field = shape.fields.iter().position(|field| field.name == *name);
        let Some((field, FieldKind::Property(property))) =
            field.and_then(|place| Some((place, &shape.fields.get(place)?.kind)))
        else {
            let known: Vec<&str> = shape.fields.iter().map(|field| field.name.as_str()).collect();
            return Err(unknown(name, &known));
        };
        match (&property.value, rest) {
            (Value::Object(_), []) if test == Test::Exists => {
                Ok(Self::Nested { field, filter: Box::new(Self::All(Vec::new())) })
            }
            (Value::Object(_), []) => Ok(Self::Nested { field, filter: Box::new(Self::Uri(test)) }),
            (Value::Object(nested), rest) => {
                Ok(Self::Nested { field, filter: Box::new(Self::at(nested, rest, test)?) })
            }
            (_, []) => Ok(Self::Field { field, test }),
            (_, [more, ..]) => Err(unknown(more, &[])),
        }
    }

    /// Checks that the filter fits the shape: its field indexes, and the types that it compares.
    ///
    /// # Errors
    /// `Kind::Invalid` with the cause.
    pub(super) fn check(&self, shape: &Shape) -> Result<(), Fault> {
        match self {
            Self::All(filters) | Self::Any(filters) => {
                filters.iter().try_for_each(|filter| filter.check(shape))
            }
            Self::Not(filter) => filter.check(shape),
            Self::Uri(test) => test.check("uri", Order::Text),
            Self::Field { field, test } => {
                let (name, property) = property(shape, *field)?;
                test.check(name, Order::of(property))
            }
            Self::Nested { field, filter } => match property(shape, *field)? {
                (_, Property { value: Value::Object(nested), .. }) => filter.check(nested),
                (name, _) => Err(wrong(format!("the field {name} does not hold objects"))),
            },
        }
    }
}

impl Test {
    fn check(&self, name: &str, order: Order) -> Result<(), Fault> {
        let wanted: &[String] = match self {
            Self::In(wanted) => wanted,
            Self::Before(wanted) | Self::After(wanted) if order == Order::Text => {
                return Err(wrong(format!(
                    "the field {name} holds neither numbers nor dates, so it cannot be compared with {wanted:?}"
                )));
            }
            Self::Before(wanted) | Self::After(wanted) => std::slice::from_ref(wanted),
            Self::Contains(_) | Self::ContainsAnyCase(_) | Self::Exists => &[],
        };
        for text in wanted {
            if !order.takes(text) {
                return Err(wrong(format!(
                    "{text:?} is {}, but the field {name} needs one",
                    order.not()
                )));
            }
        }
        Ok(())
    }
}

/// Returns the name and the property of the field at this index.
pub(super) fn property(shape: &Shape, field: usize) -> Result<(&str, &Property), Fault> {
    match shape.fields.get(field) {
        Some(field) => match &field.kind {
            FieldKind::Property(property) => Ok((&field.name, property)),
            FieldKind::Id => Err(wrong(format!("the field {} is the object's URI", field.name))),
        },
        None => Err(wrong("the filter belongs to another Business Object".to_owned())),
    }
}

fn unknown(name: &str, known: &[&str]) -> Fault {
    let mend = match nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    };
    wrong(format!("there is no field `{name}`{mend}"))
}

fn wrong(detail: String) -> Fault {
    Fault::new(Kind::Invalid, detail)
}
