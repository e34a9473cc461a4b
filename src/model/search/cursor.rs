//! Cursors as text: opaque, and of one listing alone.
use super::order::{Kind, Order, Place};
use crate::mapping::Shape;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use penstock_base::fault::{self, Fault};

/// Says which version of the form it is.
const VERSION: &str = "1";

/// A cursor that holds these texts.
pub(super) fn write(parts: &[Option<&str>]) -> String {
    let text = serde_json::to_vec(&(VERSION, parts)).expect("texts are always JSON");
    URL_SAFE_NO_PAD.encode(text)
}

/// The texts that a cursor holds.
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
    /// The cursor of the object that stands here.
    pub(super) fn cursor(&self, shape: &Shape) -> String {
        let order = self.order.name(shape);
        let value = self.value.as_ref().map(|(text, _)| text.as_str());
        write(&[Some(&order), value, Some(&self.uri)])
    }

    /// The place that a cursor of this order stands for.
    ///
    /// # Errors
    /// `Kind::Malformed` when it is none, or one of another order.
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
                "the cursor is one of another order; begin again without it",
            ));
        }
        Ok(Self::at(order, kind, value, &uri))
    }
}

pub(super) fn foreign() -> Fault {
    Fault::new(
        fault::Kind::Malformed,
        "the cursor is none that this listing has given; begin again without it",
    )
}
