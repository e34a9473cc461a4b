//! The position of an object in a listing.
use super::errors::invalid_search_error;
use super::filter::find_property;
use crate::mapping::{FieldKind, Shape};
use crate::view::ShownValues;
use penstock_base::error::GatewayError;
use penstock_base::nearest::find_nearest;
use penstock_rdf::compare::{SortKey, ValueOrder};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The number of characters of a text that are compared. If these are equal, the URI decides the order.
const MAX_KEY_CHARACTERS: usize = 256;

/// The order of a listing; the default is by URI. Objects with equal values are ordered by ascending URI, and objects
/// without a value come last, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// The index in [`Shape::fields`] of a field that is not an array and does not hold objects.
    pub field: Option<usize>,
    /// Whether the listing runs from the last to the first.
    pub descending: bool,
}

impl Order {
    /// Creates the order that a text names: a field or `uri`, with `-` before it for descending.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` as [`Self::by_field`].
    pub fn parse(shape: &Shape, text: &str) -> Result<Self, GatewayError> {
        match text.strip_prefix('-') {
            Some(name) if shape.find_field(text).is_none() => Self::by_field(shape, name, true),
            _ => Self::by_field(shape, text, false),
        }
    }

    /// Creates an order by the field of this name.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if there is no such field, or objects cannot be ordered by it.
    pub fn by_field(shape: &Shape, name: &str, descending: bool) -> Result<Self, GatewayError> {
        if shape.is_id(name) {
            return Ok(Self { field: None, descending });
        }
        let field = shape.fields.iter().position(|field| field.name == name);
        if field.is_none() {
            let known = shape.fields.iter().map(|field| field.name.as_str());
            let hint = match find_nearest(name, known) {
                _ if name.contains(',') => "; name only one field".to_owned(),
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            };
            return Err(invalid_search_error(format!(
                "there is no field `{name}` to order by{hint}"
            )));
        }
        let order = Self { field, descending };
        order.value_kind(shape)?;
        Ok(order)
    }

    /// Returns how the values compare; `None` if the order is by URI.
    pub(super) fn value_kind(self, shape: &Shape) -> Result<Option<ValueOrder>, GatewayError> {
        let Some(field) = self.field else { return Ok(None) };
        let (name, property) = find_property(shape, field)?;
        if !property.is_orderable() {
            return Err(invalid_search_error(format!(
                "objects cannot be ordered by {name}, because it holds arrays or objects"
            )));
        }
        Ok(Some(property.order()))
    }

    /// Returns a name that distinguishes cursors of this order from others.
    pub(super) fn cursor_name(self, shape: &Shape) -> String {
        let field = self.field.and_then(|field| shape.fields.get(field));
        let sign = if self.descending { '-' } else { '+' };
        // A field of type `id` is the object's own URI: such an order is named as the one by URI.
        let name = match field {
            Some(field) if field.kind != FieldKind::Id => field.name.as_str(),
            _ => "",
        };
        format!("{sign}{name}")
    }
}

/// The position of an object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListPosition {
    /// The value that the object is ordered by, as the view shows it, and its sort key.
    pub(super) value: Option<(String, SortKey)>,
    pub(super) uri: String,
    pub(super) order: Order,
}

impl ListPosition {
    /// Returns the position of an object that shows these values in the field that it is ordered by.
    pub(super) fn of_object(
        order: Order,
        kind: ValueOrder,
        values: &ShownValues<'_>,
        uri: &str,
    ) -> Self {
        Self::at_value(order, Some(kind), values.texts().next().map(str::to_owned), uri)
    }

    /// Returns the position of an object with this value.
    pub(super) fn at_value(
        order: Order,
        kind: Option<ValueOrder>,
        text: Option<String>,
        uri: &str,
    ) -> Self {
        let value = kind.zip(text).map(|(kind, mut text)| {
            let key = kind.sort_key(&text);
            if let SortKey::Text(_) = key
                && let Some((end, _)) = text.char_indices().nth(MAX_KEY_CHARACTERS)
            {
                text.truncate(end);
                return (text.clone(), SortKey::Text(text));
            }
            (text, key)
        });
        Self { value, uri: uri.to_owned(), order }
    }

    /// Returns whether only the URI decides the order of this and another position in the order of a field.
    pub(super) fn is_tied_with(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Some((_, a)), Some((_, b))) => a.cmp(b).is_eq(),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Ord for ListPosition {
    fn cmp(&self, other: &Self) -> Ordering {
        let directed = |order: Ordering| {
            if self.order.descending { order.reverse() } else { order }
        };
        if self.order.field.is_none() {
            return directed(self.uri.cmp(&other.uri));
        }
        match (&self.value, &other.value) {
            (Some((_, a)), Some((_, b))) => directed(a.cmp(b)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
        .then_with(|| self.uri.cmp(&other.uri))
    }
}

impl PartialOrd for ListPosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The first positions after another one.
pub(super) struct FirstPositions<'p> {
    after: Option<&'p ListPosition>,
    limit: usize,
    found: BTreeSet<ListPosition>,
}

impl<'p> FirstPositions<'p> {
    pub(super) fn new(after: Option<&'p ListPosition>, limit: usize) -> Self {
        Self { after, limit, found: BTreeSet::new() }
    }

    /// Adds a position, if it is among the first.
    pub(super) fn add(&mut self, position: ListPosition) {
        if self.after.is_some_and(|after| position <= *after) {
            return;
        }
        self.found.insert(position);
        if self.found.len() > self.limit {
            self.found.pop_last();
        }
    }

    /// Returns the last one, if there are as many as wanted.
    pub(super) fn last(&self) -> Option<&ListPosition> {
        self.found.last().filter(|_| self.found.len() >= self.limit)
    }

    /// Returns them in order.
    pub(super) fn into_vec(self) -> Vec<ListPosition> {
        self.found.into_iter().collect()
    }
}
