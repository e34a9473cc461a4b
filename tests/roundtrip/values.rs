//! Compares what was sent with what the view shows, value for value.
use penstock_base::json::Json;
use penstock_model::mapping::{
    AcceptedForm, Entry, FieldKind, Level, Mapping, Property, Shape, Step,
};

/// Returns the objects in documents, or the documents if the mapping has no `items`.
pub(crate) fn find_items<'j>(mapping: &Mapping, documents: &'j [Json]) -> Vec<&'j Json> {
    let steps = mapping.document.iter().flat_map(|document| &document.items);
    steps.fold(documents.iter().collect(), |here: Vec<&Json>, step| {
        here.into_iter().flat_map(|json| list_inner(json, step)).collect()
    })
}

fn list_inner<'j>(json: &'j Json, step: &Step) -> Vec<&'j Json> {
    match (step, json) {
        (Step::Name(name), json) => json.member(name).into_iter().collect(),
        (Step::Each, Json::Array(elements)) => elements.iter().collect(),
        (Step::Each, Json::Object(members)) => members.iter().map(|(_, value)| value).collect(),
        (Step::Each, _) => Vec::new(),
    }
}

/// Returns the first difference between an object that was sent and its view, with both values. `null`, the URIs that the
/// gateway added and what an object took from around it are none; neither is the canonical form of a value.
pub(crate) fn find_difference(shape: &Shape, given: &Json, shown: &Json) -> Option<String> {
    compare_level(shape.level(), given, shown)
}

fn compare_level(level: Level<'_>, given: &Json, shown: &Json) -> Option<String> {
    let Json::Object(members) = given else { return Some(describe(given, Some(shown))) };
    members.iter().filter(|(_, value)| *value != Json::Null).find_map(|(name, value)| {
        let shown = shown.member(name);
        let found = match (level.find(name), shown) {
            (Some(Entry::Field(_, field)), Some(shown)) => match &field.kind {
                FieldKind::Property(property) => compare_values(property, value, shown),
                FieldKind::Id => check(value == shown, value, shown),
            },
            (Some(Entry::Group(inner)), Some(shown)) => compare_level(inner, value, shown),
            _ => Some(describe(value, shown)),
        };
        found.map(|found| format!("{name}: {found}"))
    })
}

fn describe(given: &Json, shown: Option<&Json>) -> String {
    format!("{given} is {}", shown.map_or_else(|| "missing".to_owned(), Json::to_string))
}

/// Returns no difference if both values are the same.
fn check(is_same: bool, given: &Json, shown: &Json) -> Option<String> {
    (!is_same).then(|| describe(given, Some(shown)))
}

fn compare_values(property: &Property, given: &Json, shown: &Json) -> Option<String> {
    if let (Json::Object(members), Some((shape, member))) = (given, property.map()) {
        return members.iter().filter(|(_, value)| *value != Json::Null).find_map(
            |(name, value)| {
                let Some(shown) = shown.member(name) else { return Some(describe(value, None)) };
                match member.value {
                    Some((_, property)) => compare_values(property, value, shown),
                    None => compare_level(shape.level(), value, shown),
                }
            },
        );
    }
    match (given, shown) {
        (Json::Array(elements), Json::Array(shown)) if property.is_array => {
            let elements: Vec<&Json> = elements.iter().filter(|one| **one != Json::Null).collect();
            if elements.len() != shown.len() {
                return Some(describe(given, Some(&Json::Array(shown.clone()))));
            }
            let mut pairs = elements.into_iter().zip(shown);
            pairs.find_map(|(one, shown)| compare_value(property, one, shown))
        }
        _ => compare_value(property, given, shown),
    }
}

fn compare_value(property: &Property, given: &Json, shown: &Json) -> Option<String> {
    if let Some(shape) = property.value.shape() {
        return compare_level(shape.level(), given, shown);
    }
    if property.value.language_map().is_some() {
        return check(sorted(given) == sorted(shown), given, shown);
    }
    let forms = property.reading.as_ref().map_or(&[][..], |reading| &reading.accept);
    let is_same = given == shown || forms.iter().any(|form| is_canonical(form, given, shown));
    check(is_same, given, shown)
}

fn sorted(json: &Json) -> Json {
    match json {
        Json::Object(members) => {
            let mut members = members.clone();
            members.retain(|(_, value)| *value != Json::Null);
            members.sort_by(|one, other| one.0.cmp(&other.0));
            Json::Object(members)
        }
        other => other.clone(),
    }
}

/// Returns whether a value is shown in its canonical form. This does not use the code of the gateway.
fn is_canonical(form: &AcceptedForm, given: &Json, shown: &Json) -> bool {
    let text = |json: &Json| match json {
        Json::String(text) | Json::Number(text) => text.clone(),
        other => other.to_string(),
    };
    let (given_text, shown_text) = (text(given), text(shown));
    match form {
        AcceptedForm::Text | AcceptedForm::Scalar => given_text.trim() == shown_text,
        AcceptedForm::Decimal { decimal, group } => {
            let plain: String = given_text.chars().filter(|c| Some(*c) != *group).collect();
            plain.replace(*decimal, ".") == shown_text
        }
        AcceptedForm::WholeNumber => number(&given_text) == number(&shown_text),
        AcceptedForm::Booleans { yes, no } => match shown {
            Json::Bool(true) => yes.iter().any(|one| one.json() == given),
            Json::Bool(false) => no.iter().any(|one| one.json() == given),
            _ => false,
        },
        AcceptedForm::Unix(unit) => {
            let scale = match unit.name() {
                "unix" => 1.0,
                "unix-ms" => 1e3,
                "unix-us" => 1e6,
                _ => 1e9,
            };
            seconds(&shown_text)
                .zip(number(&given_text))
                .is_some_and(|(shown, given)| (shown - given / scale).abs() < 1e-3)
        }
        AcceptedForm::OData => {
            let digits: String =
                given_text.chars().skip(6).take_while(char::is_ascii_digit).collect();
            seconds(&shown_text)
                .zip(number(&digits))
                .is_some_and(|(shown, given)| (shown - given / 1e3).abs() < 1e-3)
        }
        // The order of the numbers depends on the form, and seconds can be missing.
        AcceptedForm::Iso | AcceptedForm::Pattern(_) => {
            let numbers = |text: &str| -> Vec<String> {
                let mut numbers: Vec<String> = text
                    .split(|c: char| !c.is_ascii_digit())
                    .filter(|digits| !digits.is_empty())
                    .flat_map(split_date)
                    .collect();
                numbers.sort();
                numbers
            };
            let shown = numbers(&shown_text);
            numbers(&given_text).iter().all(|number| shown.contains(number))
        }
    }
}

/// Splits a date that is only digits.
fn split_date(digits: &str) -> Vec<String> {
    match digits.len() {
        8 => vec![digits[..4].to_owned(), digits[4..6].to_owned(), digits[6..].to_owned()],
        _ => vec![digits.to_owned()],
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Returns the seconds since 1970 of a time.
fn seconds(text: &str) -> Option<f64> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_duration().as_secs_f64());
    }
    // A timestamp ends before the last day of the year 9999.
    let time: jiff::civil::DateTime = text.strip_suffix('Z')?.parse().ok()?;
    Some(time.duration_since(jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0)).as_secs_f64())
}
