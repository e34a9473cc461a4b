//! What is asked of an object.
use super::order::Kind as Order;
use crate::mapping::{FieldKind, Property, Shape, Value};
use penstock_base::fault::{Fault, Kind};
use penstock_base::nearest::nearest;

/// What is asked of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// All of these; of none: any object.
    All(Vec<Filter>),
    /// At least one of these; of none: no object.
    Any(Vec<Filter>),
    /// Not this.
    Not(Box<Filter>),
    /// Its URI passes.
    Uri(Test),
    /// A value of the field at this place of the shape passes.
    Field {
        /// The place among [`Shape::fields`].
        field: usize,
        /// What is asked of the value.
        test: Test,
    },
    /// An object nested in the field at this place passes.
    Nested {
        /// The place among [`Shape::fields`].
        field: usize,
        /// What is asked of the nested object.
        filter: Box<Filter>,
    },
}

/// What is asked of a value. Values are texts as the view shows them; numbers are compared by number, dates
/// and times by the moment (without a time zone: in UTC), all else by code point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// It is one of these.
    In(Vec<String>),
    /// It contains this.
    Contains(String),
    /// It contains this, small and capital letters being the same.
    ContainsAnyCase(String),
    /// It is a smaller number, or an earlier date or time.
    Before(String),
    /// It is a greater number, or a later date or time.
    After(String),
    /// There is one.
    Exists,
}

impl Filter {
    /// A test of the field that a path of names leads to; `uri`, or the name of a field of type `id`, is the URI
    /// of the object there.
    ///
    /// # Errors
    /// `Kind::Invalid` when there is no such field.
    pub fn at(shape: &Shape, path: &[&str], test: Test) -> Result<Self, Fault> {
        let Some((name, rest)) = path.split_first() else {
            return Err(Fault::new(Kind::Invalid, "no field is named"));
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

    /// Checks that the filter fits the shape: its places, and what is compared with what.
    ///
    /// # Errors
    /// `Kind::Invalid` with the cause in words.
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
                (name, _) => Err(wrong(format!("the field {name} holds no objects"))),
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
                    "the field {name} holds neither numbers nor dates, so that nothing is before or after {wanted:?}"
                )));
            }
            Self::Before(wanted) | Self::After(wanted) => std::slice::from_ref(wanted),
            Self::Contains(_) | Self::ContainsAnyCase(_) | Self::Exists => &[],
        };
        for text in wanted {
            if !order.takes(text) {
                return Err(wrong(format!(
                    "{text:?} is {}, as the field {name} needs it",
                    order.not()
                )));
            }
        }
        Ok(())
    }
}

/// The name and the property of the field at this place.
pub(super) fn property(shape: &Shape, field: usize) -> Result<(&str, &Property), Fault> {
    match shape.fields.get(field) {
        Some(field) => match &field.kind {
            FieldKind::Property(property) => Ok((&field.name, property)),
            FieldKind::Id => Err(wrong(format!("the field {} is the object's URI", field.name))),
        },
        None => Err(wrong("the filter is one of another Business Object".to_owned())),
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
