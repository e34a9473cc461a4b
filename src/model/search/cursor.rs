//! Cursors as text: opaque, and valid only for the listing that returned them.
use super::order::{ListPosition, Order, ValueKind};
use crate::mapping::Shape;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use penstock_base::error::{self, GatewayError};

/// The version of the cursor's format.
const CURSOR_VERSION: &str = "1";

/// Encodes these texts as a cursor.
pub(super) fn encode_cursor(parts: &[Option<&str>]) -> String {
    let text = serde_json::to_vec(&(CURSOR_VERSION, parts)).expect("texts are always JSON");
    URL_SAFE_NO_PAD.encode(text)
}

/// Decodes the texts in a cursor.
pub(super) fn decode_cursor<const N: usize>(
    cursor: &str,
) -> Result<[Option<String>; N], GatewayError> {
    let parts = URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .and_then(|text| serde_json::from_slice::<(String, Vec<Option<String>>)>(&text).ok());
    match parts {
        Some((version, parts)) if version == CURSOR_VERSION => {
            parts.try_into().map_err(|_| foreign_cursor_error())
        }
        _ => Err(foreign_cursor_error()),
    }
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
        kind: Option<ValueKind>,
    ) -> Result<Self, GatewayError> {
        let [Some(name), value, Some(uri)] = decode_cursor(cursor)? else {
            return Err(foreign_cursor_error());
        };
        if name != order.cursor_name(shape) {
            return Err(GatewayError::new(
                error::ErrorClass::Malformed,
                "the cursor belongs to a listing in another order; start again without a cursor",
            ));
        }
        Ok(Self::at_value(order, kind, value, &uri))
    }
}

pub(super) fn foreign_cursor_error() -> GatewayError {
    GatewayError::new(
        error::ErrorClass::Malformed,
        "the cursor was not returned by this listing; start again without a cursor",
    )
}
