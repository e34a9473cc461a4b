//! Cursors as text: opaque, and valid only for the listing that returned them.
use super::order::{Kind, Order, Place};
use crate::mapping::Shape;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use penstock_base::fault::{self, Fault};

/// The version of the cursor's format.
const VERSION: &str = "1";

/// Encodes these texts as a cursor.
pub(super) fn write(parts: &[Option<&str>]) -> String {
    let text = serde_json::to_vec(&(VERSION, parts)).expect("texts are always JSON");
    URL_SAFE_NO_PAD.encode(text)
}

/// Decodes the texts in a cursor.
pub(super) fn read<const N: usize>(cursor: &str) -> Result<[Option<String>; N], Fault> {
    let parts = URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .and_then(|text| serde_json::from_slice::<(String, Vec<Option<String>>)>(&text).ok());
    match parts {
        Some((version, parts)) if version == VERSION => parts.try_into().map_err(|_| foreign()),
        _ => Err(foreign()),
    }
}

impl Place {
    /// Returns the cursor of the object at this position.
    pub(super) fn cursor(&self, shape: &Shape) -> String {
        let order = self.order.name(shape);
        let value = self.value.as_ref().map(|(text, _)| text.as_str());
        write(&[Some(&order), value, Some(&self.uri)])
    }

    /// Reads the position from a cursor of this order.
    ///
    /// # Errors
    /// `Kind::Malformed` if it is not a cursor, or belongs to another order.
    pub(super) fn read(
        cursor: &str,
        shape: &Shape,
        order: Order,
        kind: Option<Kind>,
    ) -> Result<Self, Fault> {
        let [Some(name), value, Some(uri)] = read(cursor)? else { return Err(foreign()) };
        if name != order.name(shape) {
            return Err(Fault::new(
                fault::Kind::Malformed,
                "the cursor belongs to a listing in another order; start again without a cursor",
            ));
        }
        Ok(Self::at(order, kind, value, &uri))
    }
}

pub(super) fn foreign() -> Fault {
    Fault::new(
        fault::Kind::Malformed,
        "the cursor was not returned by this listing; start again without a cursor",
    )
}
