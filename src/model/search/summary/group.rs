//! The fields by which objects are grouped.
use super::axis::has_offset;
use super::period::Period;
use crate::mapping::Shape;
use crate::search::errors::invalid_search_error;
use crate::search::field_name::{find_field_path, find_search_property};
use crate::search::fields::{FoundValue, Instance, Slots, name_number};
use penstock_base::error::GatewayError;
use penstock_base::json::{self, Json};
use penstock_base::time_zone::Zone;
use penstock_rdf::compare::{SortKey, ValueOrder};

/// Returns the error of a text that is a field of dates or times, and something that is no unit; `None` for another text.
fn unknown_unit_error(shape: &Shape, text: &str) -> Option<GatewayError> {
    let (field, unit) = text.rsplit_once('.')?;
    let order = find_search_property(shape, field)?.order();
    let is_unit =
        |unit: Period| order.is_time() && (order != ValueOrder::Date || !unit.is_within_day());
    let units = Period::NAMES.iter().filter(|(_, unit)| is_unit(*unit));
    let names: Vec<&str> = units.map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        invalid_search_error(format!(
            "the field {field:?} has no unit {unit:?}; the units are {names}"
        ))
    })
}

/// A field by which objects are grouped.
#[derive(Debug)]
pub(super) struct GroupField {
    pub(super) slot: usize,
    order: ValueOrder,
    period: Option<Period>,
}

impl GroupField {
    /// Parses the name of a field, or of a field of dates or times and a unit: `measured.day`.
    pub(super) fn parse(
        shape: &Shape,
        text: &str,
        slots: &mut Slots,
    ) -> Result<Self, GatewayError> {
        let with_period = text
            .rsplit_once('.')
            .and_then(|(field, unit)| Some((field, Period::parse(unit)?)))
            .filter(|_| find_field_path(shape, text).is_err());
        let Some((field, period)) = with_period else {
            let (slot, order) = slots
                .add(shape, text)
                .map_err(|error| unknown_unit_error(shape, text).unwrap_or(error))?;
            return Ok(Self { slot, order, period: None });
        };
        let (slot, order) = slots.add(shape, field)?;
        if !order.is_time() || order == ValueOrder::Date && period.is_within_day() {
            let what = if order.is_time() { "has only dates" } else { "has no dates or times" };
            return Err(invalid_search_error(format!(
                "the field {field:?} {what}, so there is no group {text:?}"
            )));
        }
        Ok(Self { slot, order, period: Some(period) })
    }

    /// Returns the JSON that names the group of a value. Equal numbers are in one group.
    pub(super) fn describe(&self, value: Option<&FoundValue<'_>>, zone: &Zone) -> String {
        let Some(FoundValue { text, is_json }) = value else { return "null".to_owned() };
        if let Some(period) = self.period {
            let name = period.name_of(text, self.order, zone);
            return name.map_or_else(|| "null".to_owned(), |name| format!("\"{name}\""));
        }
        if !is_json {
            return Json::String(text.clone().into_owned()).to_string();
        }
        name_number(text).unwrap_or_else(|| text.clone().into_owned())
    }

    /// Returns whether one of these values is a date with an offset.
    pub(super) fn has_offset(&self, values: &[Instance<'_>]) -> bool {
        self.order == ValueOrder::Date
            && values.iter().filter_map(|one| one.value).any(|value| has_offset(&value.text))
    }

    /// Returns whether the groups are those of dates or times.
    pub(super) fn has_times(&self) -> bool {
        self.order.is_time()
    }

    /// Returns the place of a group by the JSON that names it. `null` comes last.
    pub(super) fn sort_key(&self, json: &str) -> (bool, Option<SortKey>) {
        let key = match (json::parse(json.as_bytes(), 1), self.period) {
            (Ok(Json::String(name)), Some(period)) => Some(period.sort_key(&name)),
            (Ok(Json::String(text)), None) => Some(self.order.sort_key(&text)),
            (Ok(Json::Null) | Err(_), _) => None,
            (Ok(_), _) => Some(self.order.sort_key(json)),
        };
        (key.is_none(), key)
    }
}
