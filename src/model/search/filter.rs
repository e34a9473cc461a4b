//! Filters: conditions that an object must fulfil.
use super::errors::{invalid_search_error, unknown_field_error};
use crate::mapping::{Form, MEMBER_KEY, MapMember, Property, Shape, Value};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_rdf::compare::ValueOrder;

/// The name in the path of a filter that matches any member of a map.
pub const ANY_MEMBER: &str = "*";

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
    /// A text of a language map passes the test.
    Text {
        /// The index in [`Shape::fields`].
        field: usize,
        /// The language of the text; `None` for any.
        language: Option<String>,
        /// The condition on the text.
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
    /// The value begins with this text.
    StartsWith(String),
    /// The value is a smaller number, or an earlier date or time.
    Before(String),
    /// The value is a greater number, or a later date or time.
    After(String),
    /// The value is this number, date or time, or a greater or later one.
    AtLeast(String),
    /// The value is this number, date or time, or a smaller or earlier one.
    AtMost(String),
    /// There is a value.
    Exists,
}

impl Filter {
    /// Creates a filter that tests the field at a path of names. `uri`, or the name of a field of type `id`, means
    /// the URI of the object there. After a language map, the path may name a language. After a map, it names a member, or
    /// [`ANY_MEMBER`], or with [`MEMBER_KEY`] the names themselves.
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
        Self::for_property((field, property), rest, test)
    }

    /// Returns the filter that all of these hold; `None` without one. Those below one array must hold for the same element, and
    /// so must those below the member of a map with one name.
    pub fn all_of(shape: &Shape, filters: Vec<Self>) -> Option<Self> {
        let mut all: Vec<Self> = Vec::new();
        for filter in filters {
            let Self::Nested { field, filter } = filter else {
                all.push(filter);
                continue;
            };
            let property = shape.property_at(field);
            let key = property.and_then(Property::map).map(|(_, map)| map.key_index);
            let same = all.iter_mut().find_map(|known| match known {
                Self::Nested { field: of, filter: known }
                    if *of == field
                        && key.is_none_or(|key| {
                            known.member_name(key) == filter.member_name(key)
                        }) =>
                {
                    Some(known)
                }
                _ => None,
            });
            let Some(same) = same else {
                all.push(Self::Nested { field, filter });
                continue;
            };
            let mut parts = std::mem::replace(&mut **same, Self::All(Vec::new())).into_parts();
            for part in filter.into_parts() {
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            if let Some(nested) = property.and_then(|property| property.value.shape())
                && let Some(merged) = Self::all_of(nested, parts)
            {
                **same = merged;
            }
        }
        if all.len() > 1 { Some(Self::All(all)) } else { all.pop() }
    }

    fn into_parts(self) -> Vec<Self> {
        if let Self::All(parts) = self { parts } else { vec![self] }
    }

    /// Returns which member of a map a filter of its members is about, by the index of the field with their names.
    fn member_name(&self, key_index: usize) -> Option<&ValueTest> {
        match self {
            Self::All(parts) => parts.iter().find_map(|part| part.member_name(key_index)),
            Self::Field { field, test: test @ ValueTest::In(_) } if *field == key_index => {
                Some(test)
            }
            _ => None,
        }
    }

    fn for_property(
        (field, property): (usize, &Property),
        path: &[&str],
        test: ValueTest,
    ) -> Result<Self, GatewayError> {
        if let (Some((shape, map)), Some((name, rest))) = (property.map(), path.split_first()) {
            let filter = Self::for_member(shape, (*name, rest), map, test)?;
            return Ok(Self::Nested { field, filter: Box::new(filter) });
        }
        match (&property.value, path) {
            (Value::Object(_), []) if test == ValueTest::Exists => {
                Ok(Self::Nested { field, filter: Box::new(Self::All(Vec::new())) })
            }
            (Value::Object(_), []) => Ok(Self::Nested { field, filter: Box::new(Self::Uri(test)) }),
            (Value::Object(nested), rest) => {
                Ok(Self::Nested { field, filter: Box::new(Self::for_field(nested, rest, test)?) })
            }
            (_, []) => Ok(Self::Field { field, test }),
            (_, [language]) if property.value.language_map().is_some() => {
                Ok(Self::Text { field, language: Some((*language).to_owned()), test })
            }
            (_, [more, ..]) => Err(unknown_field_error(more, &[])),
        }
    }

    /// Creates a filter that tests the members of a map with this name.
    fn for_member(
        shape: &Shape,
        (name, path): (&str, &[&str]),
        map: MapMember<'_>,
        test: ValueTest,
    ) -> Result<Self, GatewayError> {
        if name == MEMBER_KEY {
            return Ok(Self::Field { field: map.key_index, test });
        }
        let filter = match (map.value, path) {
            (Some(value), path) => Self::for_property(value, path, test)?,
            (None, []) if test == ValueTest::Exists => Self::All(Vec::new()),
            (None, []) => Self::Uri(test),
            (None, path) => Self::for_field(shape, path, test)?,
        };
        if name == ANY_MEMBER {
            return Ok(filter);
        }
        let named = ValueTest::In(vec![name.to_owned()]);
        Ok(Self::All(vec![Self::Field { field: map.key_index, test: named }, filter]))
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
                let kind = property.value.kind();
                if !kind.is_searchable() {
                    let kind = kind.name;
                    return Err(invalid_search_error(format!(
                        "the field {name} is of the type {kind}, whose values cannot be searched"
                    )));
                }
                if let (Form::Boolean, ValueTest::In(wanted)) = (kind.form, test)
                    && let Some(other) =
                        wanted.iter().find(|text| !matches!(text.as_str(), "true" | "false"))
                {
                    return Err(invalid_search_error(format!(
                        "{other:?} is neither true nor false, but the field {name} needs one"
                    )));
                }
                test.check_values(name, property.order())
            }
            Self::Text { field, language: _, test } => {
                let (name, property) = find_property(shape, *field)?;
                if property.value.language_map().is_none() {
                    let error = format!("the field {name} is not a language map");
                    return Err(invalid_search_error(error));
                }
                test.check_values(name, property.order())
            }
            Self::Nested { field, filter } => match find_property(shape, *field)? {
                (_, Property { value: Value::Object(nested), .. }) => filter.check_shape(nested),
                (name, _) => {
                    Err(invalid_search_error(format!("the field {name} does not hold objects")))
                }
            },
        }
    }
}

impl ValueTest {
    /// Creates the test that has this name in GraphQL and in addresses, and compares with one text; `None` if there is no such
    /// test.
    pub fn with_text(name: &str, text: String) -> Option<Self> {
        Some(match name {
            "eq" => Self::In(vec![text]),
            "contains" => Self::Contains(text),
            "containsAnyCase" => Self::ContainsAnyCase(text),
            "startsWith" => Self::StartsWith(text),
            "before" => Self::Before(text),
            "after" => Self::After(text),
            "atLeast" => Self::AtLeast(text),
            "atMost" => Self::AtMost(text),
            _ => return None,
        })
    }

    /// Returns the number, date or time that values are compared with; `None` for a test of another kind.
    fn limit(&self) -> Option<&String> {
        match self {
            Self::Before(limit)
            | Self::After(limit)
            | Self::AtLeast(limit)
            | Self::AtMost(limit) => Some(limit),
            Self::In(_)
            | Self::Contains(_)
            | Self::ContainsAnyCase(_)
            | Self::StartsWith(_)
            | Self::Exists => None,
        }
    }

    fn check_values(&self, name: &str, order: ValueOrder) -> Result<(), GatewayError> {
        let limit = self.limit();
        let order = match (limit, order) {
            // Only numbers come before or after another value.
            (Some(_), ValueOrder::Scalar) => ValueOrder::Number,
            _ => order,
        };
        if let Some(wanted) = limit.filter(|_| order == ValueOrder::Text) {
            return Err(invalid_search_error(format!(
                "the field {name} holds neither numbers nor dates, so it cannot be compared with {wanted:?}"
            )));
        }
        let wanted = match (self, limit) {
            (Self::In(wanted), _) => wanted.as_slice(),
            (_, Some(limit)) => std::slice::from_ref(limit),
            (_, None) => &[],
        };
        for text in wanted {
            if !order.can_parse(text) {
                let hint = if order.is_number() {
                    "; write digits with a point, such as 12.5"
                } else {
                    ""
                };
                return Err(invalid_search_error(format!(
                    "{text:?} is {}, but the field {name} needs one{hint}",
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
        return Err(invalid_search_error(error.to_owned()));
    };
    let is_uri = || invalid_search_error(format!("the field {} is the object's URI", field.name));
    Ok((&field.name, field.property().ok_or_else(is_uri)?))
}
