//! Cursors as text: opaque, and valid only for the listing that returned them.
use super::order::{ListPosition, Order};
use crate::mapping::Shape;
use penstock_base::cursor::{decode_cursor, encode_cursor};
use penstock_base::error::{self, GatewayError};
use penstock_rdf::compare::ValueOrder;

/// Decodes the texts in a cursor of this list.
pub(super) fn decode_own_cursor<const N: usize>(
    cursor: &str,
) -> Result<[Option<String>; N], GatewayError> {
    decode_cursor(cursor).ok_or_else(foreign_cursor_error)
}

impl ListPosition {
    /// Returns the cursor of the object at this position.
    pub(super) fn to_cursor(&self, shape: &Shape) -> String {
        let order = self.order.cursor_name(shape);
        let value = self.value.as_ref().map(|(text, _)| text.as_str());
        encode_cursor(&[Some(&order), value, Some(&self.uri)])
    }

    /// Reads the position from a cursor of this order.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` if it is not a cursor, or belongs to another order.
    pub(super) fn from_cursor(
        cursor: &str,
        shape: &Shape,
        order: Order,
        kind: Option<ValueOrder>,
    ) -> Result<Self, GatewayError> {
        let [Some(name), value, Some(uri)] = decode_own_cursor(cursor)? else {
            return Err(foreign_cursor_error());
        };
        if name != order.cursor_name(shape) {
            return Err(other_order_error());
        }
        Ok(Self::at_value(order, kind, value, &uri))
    }
}

/// Refuses the cursor of a search, in a listing of all objects by URI: it has cursors of its own.
///
/// # Errors
/// `ErrorClass::Malformed` if a search returned the cursor.
pub fn refuse_search_cursor(cursor: &str) -> Result<(), GatewayError> {
    match decode_cursor::<3>(cursor) {
        Some([Some(order), _, Some(_)]) if order == "+" => Err(foreign_cursor_error()),
        Some(_) => Err(other_order_error()),
        None => Ok(()),
    }
}

fn other_order_error() -> GatewayError {
    GatewayError::new(
        error::ErrorClass::Malformed,
        "the cursor belongs to a listing in another order; start again without a cursor",
    )
}

pub(super) fn foreign_cursor_error() -> GatewayError {
    GatewayError::new(
        error::ErrorClass::Malformed,
        "the cursor was not returned by this listing; start again without a cursor",
    )
}
