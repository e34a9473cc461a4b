//! Generates other ways to write values, and writes values so.
use crate::codes::first_value;
use crate::data::{self, draw};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZoneDatabase};
use penstock_base::json::{self, Json};
use penstock_model::mapping::{
    AcceptedForm, Codes, ListedValue, Literal, Property, Reading, Shape, UnixUnit, Value,
};

/// A text that no generated value is.
const ABSENT: &str = "no value here";

/// A time zone with summer time, east of Greenwich.
const ZONE: &str = "Europe/Berlin";

/// Returns what senders may write in a field with values of this type, and with these codes; every third field takes nothing
/// else.
pub(crate) fn for_value(
    value: &Value,
    codes: Option<&Codes>,
    is_array: bool,
    number: usize,
) -> Option<Box<Reading>> {
    if number.is_multiple_of(3) {
        return None;
    }
    let (is_even, has_zone) = (number.is_multiple_of(2), number > 3);
    let list = |text: &str| ListedValue::new(string(text)).into_iter().collect();
    let accept = match value {
        Value::Literal(Literal::Number) => vec![AcceptedForm::Text],
        Value::Literal(Literal::Integer) => vec![AcceptedForm::WholeNumber, AcceptedForm::Text],
        Value::Literal(Literal::Boolean) => {
            vec![AcceptedForm::Booleans { yes: list("yes"), no: list("no") }]
        }
        Value::Literal(Literal::Date) if is_even => vec![AcceptedForm::Unix(UnixUnit::Seconds)],
        Value::Literal(Literal::Date) => vec![AcceptedForm::Pattern("%d.%m.%Y".to_owned())],
        Value::Literal(Literal::DateTime) if is_even => {
            vec![AcceptedForm::OData, AcceptedForm::Unix(UnixUnit::Seconds)]
        }
        Value::Literal(Literal::DateTime) => {
            vec![AcceptedForm::Iso, AcceptedForm::Unix(UnixUnit::Nanoseconds)]
        }
        Value::Literal(Literal::String) => vec![AcceptedForm::Scalar],
        _ => Vec::new(),
    };
    let time_zone = match value {
        Value::Literal(Literal::Date | Literal::DateTime) if has_zone => {
            Some(ZONE.parse().unwrap())
        }
        _ => None,
    };
    let absent = std::iter::once(string(ABSENT)).chain(absent_value(value));
    let default = codes.map(first_value).or_else(|| default_value(value));
    let default = default.filter(|_| has_zone && !is_even);
    Some(Box::new(Reading {
        accept,
        time_zone,
        absent: absent.filter_map(ListedValue::new).collect(),
        default: default.map(|one| if is_array { Json::Array(vec![one]) } else { one }),
    }))
}

fn string(text: &str) -> Json {
    Json::String(text.to_owned())
}

/// Returns a value of this type that is not generated. In fields with other forms, it means no value.
fn absent_value(value: &Value) -> Option<Json> {
    Some(match value {
        // serde_json writes the sign of an exponent.
        Value::Literal(Literal::Number) => Json::Number("7e+99999".to_owned()),
        Value::Literal(Literal::Integer) => Json::Number("9".repeat(50)),
        Value::Literal(Literal::Date) => string("0999-12-31"),
        Value::Literal(Literal::DateTime) => string("0999-12-31T00:00:00Z"),
        Value::Literal(Literal::String) => string("987654321"),
        _ => return None,
    })
}

fn default_value(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Literal(Literal::Number) => Json::Number("1.50".to_owned()),
        Value::Literal(Literal::Integer) => Json::Number("-7".to_owned()),
        Value::Literal(Literal::Boolean) => Json::Bool(true),
        Value::Literal(Literal::Date) => string("2026-01-01"),
        Value::Literal(Literal::DateTime) => string("2026-01-01T00:00:00.5Z"),
        Value::Literal(Literal::String) => string("the default"),
        _ => return None,
    })
}

/// Adds the `accept` and the `timeZone` of a definition of values.
pub(crate) fn add_accept_to(values: &mut serde_json::Value, reading: &Reading) {
    let of_form = |form: &AcceptedForm| match form {
        AcceptedForm::Booleans { yes, no } => {
            serde_json::json!({"true": to_list(yes), "false": to_list(no)})
        }
        AcceptedForm::Pattern(pattern) => pattern.as_str().into(),
        form => form.to_string().into(),
    };
    if !reading.accept.is_empty() {
        values["accept"] = reading.accept.iter().map(of_form).collect();
    }
    if let Some(zone) = &reading.time_zone {
        values["timeZone"] = zone.to_string().into();
    }
}

/// Adds the `absent` and the `default` of a field.
pub(crate) fn add_absent_to(field: &mut serde_json::Value, reading: &Reading) {
    if !reading.absent.is_empty() {
        field["absent"] = to_list(&reading.absent);
    }
    if let Some(default) = &reading.default {
        field["default"] = to_serde(default);
    }
}

fn to_list(listed: &[ListedValue]) -> serde_json::Value {
    listed.iter().map(|value| to_serde(value.json())).collect()
}

fn to_serde(json: &Json) -> serde_json::Value {
    serde_json::from_str(&json.to_string()).unwrap()
}

/// Returns the canonical form of a generated value of this field.
pub(crate) fn to_canonical(property: &Property, json: Json) -> Json {
    let has_zone = property.reading.as_ref().is_some_and(|reading| reading.time_zone.is_some());
    match (&property.value, json) {
        (Value::Literal(Literal::DateTime), Json::String(text))
            if has_zone && !text[19..].contains(['Z', '+', '-']) =>
        {
            let offset = find_offset(&text).unwrap_or_else(|| "Z".to_owned());
            Json::String(text + &offset)
        }
        (_, json) => json,
    }
}

/// Returns the offset in the time zone at the local time that a text begins with; `None` if the clocks skip or repeat the
/// time, or if the offset has seconds, as before 1893.
fn find_offset(text: &str) -> Option<String> {
    let local: DateTime = text.get(..19)?.parse().ok()?;
    let zone = TimeZoneDatabase::bundled().get(ZONE).unwrap();
    let AmbiguousOffset::Unambiguous { offset } = zone.to_ambiguous_timestamp(local).offset()
    else {
        return None;
    };
    let seconds = offset.seconds();
    (seconds % 60 == 0).then(|| format!("+{:02}:{:02}", seconds / 3600, seconds / 60 % 60))
}

/// Writes some values of an object in other ways.
pub(crate) fn rewrite(shape: &Shape, object: &mut Json, seed: &mut u64) {
    // A field without a name would be written in place of a missing map.
    if *object == Json::Null {
        return;
    }
    // An object of only a URI would be a reference, which gets no defaults.
    let has_others = shape.iter_properties().any(|(_, field, property)| {
        let value = field.value_in(object).filter(|_| !field.is_nameless());
        property.default_value().is_none()
            && value.is_some_and(|value| data::is_value(property, value))
    });
    for (_, field, property) in shape.iter_properties() {
        let Some(value) = field.value_mut(object) else { continue };
        if has_others && property.default_value() == Some(&*value) && draw(seed, 2) == 0 {
            *value = Json::Null;
        }
        rewrite_field(property, value, seed);
    }
}

fn rewrite_field(property: &Property, value: &mut Json, seed: &mut u64) {
    if let (Json::Object(members), Some((shape, map))) = (&mut *value, property.map()) {
        for (_, value) in members {
            match map.value {
                Some((_, inner)) => rewrite_field(inner, value, seed),
                None => rewrite(shape, value, seed),
            }
        }
        return;
    }
    let has_reading = property.reading.is_some();
    match value {
        // In place of an array, only the canonical form means no value.
        Json::Null if has_reading && draw(seed, 2) == 0 => {
            *value = write_absent(property, !property.is_array, seed);
        }
        Json::Array(elements) if property.is_array => {
            for element in elements.iter_mut() {
                rewrite_value(property, element, seed);
            }
            // Each element of an ordered array is a value.
            if has_reading && !property.is_ordered {
                let place = draw(seed, elements.len() + 1);
                elements.insert(place, write_absent(property, true, seed));
            }
        }
        one => rewrite_value(property, one, seed),
    }
}

/// Writes a value that means no value, perhaps in another form.
fn write_absent(property: &Property, has_forms: bool, seed: &mut u64) -> Json {
    match absent_value(&property.value).filter(|_| draw(seed, 3) > 0) {
        Some(mut value) => {
            if has_forms {
                rewrite_value(property, &mut value, seed);
            }
            value
        }
        None => string(ABSENT),
    }
}

fn rewrite_value(property: &Property, value: &mut Json, seed: &mut u64) {
    if let Some(shape) = property.value.shape() {
        return rewrite(shape, value, seed);
    }
    let Some(reading) = &property.reading else { return };
    if draw(seed, 4) == 0 {
        return;
    }
    let written = match (&property.value, &*value) {
        (Value::Literal(Literal::Integer), Json::Number(digits))
            if digits != "-0" && draw(seed, 2) == 0 =>
        {
            Json::Number(format!("{digits}.0"))
        }
        (Value::Literal(Literal::Number | Literal::Integer), Json::Number(digits)) => {
            let sign = if digits.starts_with('-') { "" } else { "+" };
            Json::String(format!(" {sign}{digits} "))
        }
        (Value::Literal(Literal::Boolean), Json::Bool(flag)) => {
            string(if *flag { "yes" } else { "no" })
        }
        (Value::Literal(Literal::Date), Json::String(text)) if text.len() == 10 => {
            match reading.accept.first().unwrap() {
                AcceptedForm::Unix(_) => {
                    let midnight: jiff::Timestamp = format!("{text}T00:00:00Z").parse().unwrap();
                    Json::Number(midnight.as_second().to_string())
                }
                _ => string(&text.rsplit('-').collect::<Vec<_>>().join(".")),
            }
        }
        (Value::Literal(Literal::DateTime), Json::String(text)) => {
            let mut forms = list_time_forms(reading, text);
            if forms.is_empty() {
                return;
            }
            forms.swap_remove(draw(seed, forms.len()))
        }
        (Value::Literal(Literal::String), Json::String(text)) => {
            match json::parse(text.as_bytes(), 1) {
                Ok(scalar @ (Json::Number(_) | Json::Bool(_))) if scalar.to_string() == *text => {
                    scalar
                }
                _ => return,
            }
        }
        _ => return,
    };
    let codes = property.codes.as_deref().and_then(Codes::list);
    // A form that is a code itself means the value of that code.
    if codes.is_none_or(|codes| codes.iter().all(|(code, _)| *code != written)) {
        *value = written;
    }
}

/// Returns the other ways to write a time whose canonical form is this text.
fn list_time_forms(reading: &Reading, text: &str) -> Vec<Json> {
    let mut forms = Vec::new();
    if reading.time_zone.is_some() {
        let offset = find_offset(text);
        forms.extend(offset.and_then(|offset| text.strip_suffix(&offset)).map(string));
    }
    // The canonical form keeps zeros at the end of a fraction, and the sign of an offset of zero.
    let has_zeros = text.contains('.') && text.trim_end_matches('Z').ends_with('0');
    let nanoseconds = match text.parse::<jiff::Timestamp>() {
        Ok(moment) if text.ends_with('Z') && !has_zeros => Some(moment.as_nanosecond()),
        _ => None,
    };
    for form in &reading.accept {
        match (form, nanoseconds) {
            (AcceptedForm::Iso, _) if !text.contains('.') && !text.ends_with("-00:00") => {
                forms.push(Json::String(text.replacen('T', " ", 1)));
            }
            (AcceptedForm::Unix(UnixUnit::Nanoseconds), Some(nanoseconds)) => {
                forms.push(Json::Number(nanoseconds.to_string()));
            }
            (AcceptedForm::Unix(UnixUnit::Seconds), Some(nanoseconds)) => {
                let sign = if nanoseconds < 0 { "-" } else { "" };
                let (size, unit) = (nanoseconds.unsigned_abs(), 1_000_000_000);
                forms.push(Json::String(format!("{sign}{}.{:09}", size / unit, size % unit)));
            }
            (AcceptedForm::OData, Some(nanoseconds)) if nanoseconds % 1_000_000 == 0 => {
                forms.push(Json::String(format!("/Date({})/", nanoseconds / 1_000_000)));
            }
            _ => {}
        }
    }
    forms
}
