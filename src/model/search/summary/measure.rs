//! Measures: the smallest, the greatest, the average or the sum of the values of a field.
use super::total::{MAX_DIGITS, Total};
use crate::mapping::Shape;
use crate::search::errors::invalid_search_error;
use crate::search::extreme::Extreme;
use crate::search::fields::{FoundValue, Slots};
use penstock_base::error::GatewayError;
use penstock_base::json::Json;
use penstock_rdf::compare::ValueOrder;
use penstock_rdf::number::ExactDecimal;
use std::cmp::Ordering;

/// The maximum number of characters of a number.
const MAX_NUMBER_CHARS: usize = 2 * MAX_DIGITS;
/// The digits behind the point of an average that has no end.
const AVERAGE_DIGITS: usize = 18;

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Min,
    Max,
    Avg,
    Sum,
}

/// A measure of a field.
#[derive(Debug)]
pub(super) struct Measure {
    /// Its name as in the request: `min(flow)`.
    pub(super) name: String,
    function: Function,
    pub(super) slot: usize,
    order: ValueOrder,
}

/// What is known of a measure of a group so far.
#[derive(Debug, Default)]
pub(super) struct Cell {
    /// The smallest or the greatest value.
    extreme: Option<Extreme>,
    /// The sum, and of how many values.
    total: Option<Box<(Total, u64)>>,
}

/// Splits measures at the commas between them. The name of a field may have commas.
pub(super) fn split_names(text: &str) -> Vec<&str> {
    let (mut names, mut rest) = (Vec::new(), text);
    loop {
        let has_field =
            rest.find(['(', ',']).is_some_and(|at| rest.split_at(at).1.starts_with('('));
        let mut closed = rest.match_indices(')').map(|(at, _)| at + 1).filter(|end| {
            let behind = rest.get(*end..).unwrap_or_default().trim_start();
            behind.is_empty() || behind.starts_with(',')
        });
        let from = closed.next().filter(|_| has_field).unwrap_or(0);
        let end = rest.get(from..).and_then(|rest| rest.find(',')).map(|at| from + at);
        let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
        names.push(name.trim());
        match behind.strip_prefix(',') {
            Some(more) => rest = more,
            None => return names,
        }
    }
}

impl Measure {
    /// Parses a measure: `min(flow)`.
    pub(super) fn parse(
        shape: &Shape,
        name: &str,
        slots: &mut Slots,
    ) -> Result<Self, GatewayError> {
        let parts = name.strip_suffix(')').and_then(|name| name.split_once('('));
        let function = parts.and_then(|(function, field)| {
            let function = match function {
                "min" => Function::Min,
                "max" => Function::Max,
                "avg" => Function::Avg,
                "sum" => Function::Sum,
                _ => return None,
            };
            Some((function, field))
        });
        let Some((function, field)) = function else {
            return Err(invalid_search_error(format!(
                "there is no measure {name:?}; measures are count, and min, max, avg or sum with a field, such as \
                 max(flow)"
            )));
        };
        let (slot, order) = slots.add(shape, field)?;
        let is_number = matches!(order, ValueOrder::Number | ValueOrder::Scalar);
        let needed = match function {
            Function::Avg | Function::Sum if !is_number => "numbers",
            Function::Min | Function::Max if !is_number && !order.is_time() => {
                "numbers, dates or times"
            }
            _ => return Ok(Self { name: name.to_owned(), function, slot, order }),
        };
        Err(invalid_search_error(format!(
            "the measure {name:?} needs {needed}, and the field {field:?} has none"
        )))
    }

    /// Adds a value. What is no number, date or time does not count.
    pub(super) fn add(&self, cell: &mut Cell, value: &FoundValue<'_>) -> Result<(), GatewayError> {
        let FoundValue { text, is_json } = value;
        let is_number = *is_json && !matches!(&**text, "true" | "false");
        if !is_number && !self.order.is_time() {
            return Ok(());
        }
        let too_long = || {
            let begin: String = text.chars().take(40).collect();
            invalid_search_error(format!(
                "{} has a value with more than {MAX_DIGITS} digits, which begins with {begin}; filter it out",
                self.name
            ))
        };
        if text.len() > MAX_NUMBER_CHARS && !self.order.is_time() {
            return Err(too_long());
        }
        match self.function {
            Function::Min => {
                Extreme::update(&mut cell.extreme, self.order, text, Ordering::Less);
            }
            Function::Max => {
                Extreme::update(&mut cell.extreme, self.order, text, Ordering::Greater);
            }
            Function::Avg | Function::Sum => {
                let (sum, count) = &mut **cell.total.get_or_insert_default();
                sum.add(text).ok_or_else(too_long)?;
                *count += 1;
            }
        }
        Ok(())
    }

    /// Returns the result as JSON; `None` if there was no value.
    pub(super) fn finish(&self, cell: &Cell) -> Option<String> {
        if let Some(extreme) = &cell.extreme {
            let text = extreme.text().to_owned();
            return Some(if extreme.is_number() { text } else { Json::String(text).to_string() });
        }
        let (sum, count) = &**cell.total.as_ref()?;
        let sum = sum.to_decimal();
        if self.function == Function::Sum {
            return Some(sum.to_string());
        }
        let (average, _) = sum.divide(&ExactDecimal::new(*count, 0), AVERAGE_DIGITS + 1)?;
        Some(average.round(AVERAGE_DIGITS).to_string())
    }
}

impl Cell {
    /// Returns about how many bytes it has besides its own.
    pub(super) fn count_bytes(&self) -> usize {
        let extreme = self.extreme.as_ref().map_or(0, |extreme| 2 * extreme.text().len());
        let total =
            self.total.as_ref().map_or(0, |total| size_of_val(&**total) + total.0.count_bytes());
        extreme + total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_measures_but_not_names() {
        for (text, names) in [
            ("count", &["count"][..]),
            ("count,min(flow), max(flow)", &["count", "min(flow)", "max(flow)"]),
            ("sum(a,b),count", &["sum(a,b)", "count"]),
            ("sum(a (b)),avg(c)", &["sum(a (b))", "avg(c)"]),
            ("sum(open,count", &["sum(open", "count"]),
            ("", &[""]),
        ] {
            assert_eq!(split_names(text), names, "{text}");
        }
    }
}
