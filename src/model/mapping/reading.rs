//! Other ways to write a value: what the keys `accept`, `timeZone`, `absent` and `default` of a definition say.
//!
//! They concern only what senders write. The view shows the canonical form.
pub(super) mod form;
mod listed;
mod number;
mod time;

pub(crate) use form::ReadValue;
pub use form::{AcceptedForm, FormName, UnixUnit};
pub use listed::ListedValue;
pub(super) use listed::contains_value;
pub(super) use time::{PatternError, check_pattern};

use super::Kind;
use number::MAX_WHOLE_DIGITS;
use penstock_base::json::Json;
use penstock_base::time_zone::Zone;
use penstock_rdf::number::NumberKey;
use time::{MAX_ODATA_OFFSET_MINUTES, MAX_SECOND_DIGITS, is_outside_odata, read_moment};

/// The maximum number of digits that an error shows.
const MAX_SHOWN_DIGITS: usize = 40;

/// What senders may write in a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The forms of a value besides the canonical one, in the order in which they are tried.
    pub accept: Vec<AcceptedForm>,
    /// The time zone of times without an offset, and of the dates of moments.
    pub time_zone: Option<Zone>,
    /// The values that mean no value.
    pub absent: Vec<ListedValue>,
    /// The value of an object that is created without one.
    pub default: Option<Json>,
}

impl Reading {
    /// Returns whether a value means no value.
    pub(crate) fn is_absent(&self, json: &Json) -> bool {
        !self.absent.is_empty() && contains_value(&self.absent, json)
    }

    /// Returns the listed value with this text, such as a cell of CSV. Texts have no types, so a number or a boolean matches
    /// its text.
    pub(crate) fn find_listed(&self, text: &str) -> Option<&Json> {
        self.find_absent(text).or_else(|| {
            let mut accepted = self.accept.iter().flat_map(AcceptedForm::listed);
            accepted.find(|listed| listed.has_text(text)).map(ListedValue::json)
        })
    }

    /// Returns the value with this text among those that mean no value.
    pub(crate) fn find_absent(&self, text: &str) -> Option<&Json> {
        self.absent.iter().find(|listed| listed.has_text(text)).map(ListedValue::json)
    }

    /// Returns whether a form decides about numbers that are texts.
    pub(crate) fn reads_number_texts(&self) -> bool {
        self.accept.iter().any(|form| matches!(form.name(), FormName::Text | FormName::Decimal))
    }

    /// Returns the canonical form of a value of this kind, or the value itself if no form fits.
    ///
    /// # Errors
    /// Returns the reason if the local time does not exist in the time zone, or if a form has such values and cannot read this
    /// one.
    pub(crate) fn read(&self, kind: &Kind, json: Json) -> Result<ReadValue, String> {
        if self.accept.is_empty() && self.time_zone.is_none() {
            return Ok(ReadValue::new(json));
        }
        let zone = self.time_zone.as_ref();
        if kind.accepts(&json) {
            return time::add_missing_offset(kind.order, zone, json);
        }
        // A number that a form reads, and the type does not have.
        let mut unfit = None;
        for form in &self.accept {
            let read = match form.read(&json) {
                Some(json) => ReadValue::new(self.round_whole(kind, json)),
                None => match time::read(form, kind.order, zone, &json) {
                    Some(read) => read?,
                    None => continue,
                },
            };
            if kind.accepts(&read.json) {
                return Ok(read);
            }
            unfit = unfit.or(Some(read.json));
        }
        let refused = unfit.as_ref().unwrap_or(&json);
        match self.accept.iter().find_map(|form| form.explain_refusal(refused)) {
            Some(why) => Err(why),
            None => Ok(ReadValue::new(json)),
        }
    }

    /// Writes a whole number from a text as an integer, if `accept` has `number` too.
    fn round_whole(&self, kind: &Kind, json: Json) -> Json {
        if kind.accepts(&json) || !self.accept.contains(&AcceptedForm::WholeNumber) {
            return json;
        }
        AcceptedForm::WholeNumber.read(&json).unwrap_or(json)
    }

    /// Returns the text for a number of this kind that was written with a decimal point; `None` if it is no such number, or if
    /// no form has another separator.
    pub(crate) fn suggest_number_text(&self, kind: &Kind, text: &str) -> Option<String> {
        let number = number::read_number(text, '.', None)?;
        let mut separators = self.accept.iter().filter_map(|form| match form {
            AcceptedForm::Decimal { decimal, .. } => Some(decimal.to_string()),
            _ => None,
        });
        let written = number.replace('.', &separators.next()?);
        kind.accepts(&Json::Number(number)).then_some(written)
    }

    /// Lists the forms for an error; empty without any.
    pub(crate) fn describe_forms(&self) -> String {
        let forms: Vec<String> = self.accept.iter().map(|form| format!("`{form}`")).collect();
        if forms.is_empty() {
            return String::new();
        }
        format!("; the field also accepts {}", forms.join(", "))
    }

    /// Replaces the texts that are IRIs for which `rewrite` returns another one.
    pub(super) fn rewrite_iris(&mut self, rewrite: &impl Fn(&str) -> Option<String>) {
        // Names every member, so that a new one with IRIs is not forgotten.
        let Self { accept: _, time_zone: _, absent, default } = self;
        for listed in absent {
            listed.rewrite_iri(rewrite);
        }
        if let Some(default) = default {
            rewrite_texts(default, rewrite);
        }
    }
}

impl AcceptedForm {
    /// Returns why a value cannot be read although it is in this form; `None` for a value that is not.
    fn explain_refusal(&self, json: &Json) -> Option<String> {
        let (Json::Number(digits) | Json::String(digits)) = json else { return None };
        let shown: String = digits.chars().take(MAX_SHOWN_DIGITS).collect();
        match (self, json) {
            (Self::WholeNumber, Json::Number(_)) => number::is_too_long(digits).then(|| {
                format!(
                    "{shown} has more than {MAX_WHOLE_DIGITS} digits before or after its point without exponent; a whole number \
                     has at most {MAX_WHOLE_DIGITS} digits"
                )
            }),
            (Self::Unix(unit), _) => {
                let is_outside = NumberKey::parse(digits).is_some()
                    && read_moment(digits, unit.power()).is_none();
                is_outside.then(|| {
                    format!(
                        "{shown} is no time in `{}`: the years are from -9999 to 9999, and the seconds have at most \
                         {MAX_SECOND_DIGITS} digits after the point; check the unit",
                        unit.name()
                    )
                })
            }
            (Self::OData, Json::String(text)) => is_outside_odata(text).then(|| {
                format!(
                    "{shown} is no time in `odata`: the years are from -9999 to 9999, and the offset is at most \
                     {MAX_ODATA_OFFSET_MINUTES} minutes; correct it, or list the value in `absent`"
                )
            }),
            _ => None,
        }
    }
}

fn rewrite_texts(json: &mut Json, rewrite: &impl Fn(&str) -> Option<String>) {
    match json {
        Json::String(text) => {
            if let Some(iri) = rewrite(text) {
                *text = iri;
            }
        }
        Json::Array(elements) => {
            for element in elements {
                rewrite_texts(element, rewrite);
            }
        }
        Json::Object(members) => {
            for (_, value) in members {
                rewrite_texts(value, rewrite);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
