//! A mapping guessed from samples of the JSON that will be sent: types, nesting, arrays, and which field
//! names the object. Somebody looks at it and edits it before it counts.
//!
//! | in the samples | in the mapping |
//! |---|---|
//! | `true`, `false` | `boolean` |
//! | numbers | `integer`, and `number` once one of them has a fraction or an exponent |
//! | strings | `date`, `dateTime` or `resource` when all of them are such, else `string` |
//! | objects | `object`, in a namespace named after the field |
//! | arrays | `array` of what their elements are |
//! | `uri`; else `@id`, `id` or `iri` when all are IRIs | `id` |
//!
//! A property is the field's name in one vocabulary, whatever object it stands in. What stands in one place
//! of several samples is looked at together. Where it differs in kind the mapping has what is there most
//! often, and a note says which values do not fit; without such notes the samples can be ingested, and the
//! view gives them back.

mod seen;
mod write;

use super::json::{self, Json};
use super::mapping;
use crate::fault::{Fault, Finding, Kind};
use oxrdf::NamedNode;
use seen::Seen;
use write::Writer;

/// What is guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// The mapping as YAML; it compiles.
    pub config: String,
    /// What to look at.
    pub notes: Vec<Note>,
}

/// Something about a guess that whoever edits it should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The field, with those it stands in: `parts.label`. Empty for the whole.
    pub field: String,
    /// What, in words.
    pub message: String,
    /// Whether something in the samples does not fit the mapping.
    pub misfit: bool,
}

/// What the names in a mapping are made of.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The name of the Business Object, after which the root's namespace is named.
    pub business_object: &'a str,
    /// What the IRI of every property begins with.
    pub vocabulary: &'a str,
}

/// Reads samples: an object, an array of objects, the body of an ingestion (`{"data": [...]}`), or an object
/// a line.
///
/// # Errors
/// `Kind::Malformed` as [`json::parse`]; `Kind::Invalid` when there is no object, or something else than
/// objects.
pub fn samples(text: &str, nesting: usize) -> Result<Vec<Json>, Fault> {
    let read = match json::parse(text.as_bytes(), nesting) {
        Ok(read) => read,
        Err(fault) => {
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            let objects = lines.iter().map(|line| json::parse(line.as_bytes(), nesting));
            match objects.collect() {
                Ok(objects) if lines.len() > 1 => Json::Array(objects),
                _ => return Err(fault),
            }
        }
    };
    let elements = match read {
        Json::Array(elements) => elements,
        Json::Object(mut members) => match members.as_mut_slice() {
            [(name, Json::Array(elements))]
                if name == "data" && elements.iter().all(|e| matches!(e, Json::Object(_))) =>
            {
                std::mem::take(elements)
            }
            _ => vec![Json::Object(members)],
        },
        other => {
            let message = format!(
                "the sample is {}; expected is an object, or an array of them",
                other.kind()
            );
            return Err(Fault::new(Kind::Invalid, message));
        }
    };
    if elements.is_empty() {
        return Err(Fault::new(Kind::Invalid, "the sample holds no object"));
    }
    let strangers = elements.iter().enumerate().filter(|(_, e)| !matches!(e, Json::Object(_)));
    let found: Vec<Finding> = strangers
        .map(|(index, e)| {
            Finding::at(format!("/{index}"), format!("an object is expected, not {}", e.kind()))
        })
        .take(20)
        .collect();
    match found.first() {
        None => Ok(elements),
        Some(first) => Err(Fault::with(Kind::Invalid, first.to_string(), found)),
    }
}

/// Guesses the mapping of these objects.
///
/// # Errors
/// `Kind::Invalid` when the vocabulary is no IRI, or the samples have more fields than a mapping may have.
pub fn derive(names: Names<'_>, samples: &[Json]) -> Result<Derived, Fault> {
    if let Err(error) = NamedNode::new(names.vocabulary) {
        let message = format!(
            "{:?} is no absolute IRI ({error}); a vocabulary looks like https://plant.example/vocabulary/",
            names.vocabulary
        );
        let found = vec![Finding::at("/vocabulary", message.clone())];
        return Err(Fault::with(Kind::Invalid, message, found));
    }
    let mut root = Seen::default();
    for sample in samples {
        root.see(sample);
    }
    let mut writer = Writer::new(names.vocabulary);
    writer.root(names.business_object, &root);
    let id = root.id();
    for (number, _) in (1..).zip(samples).filter(|(_, sample)| !has_value(sample, id)) {
        writer.misfit(
            "",
            format!("Sample {number} holds no value, and nothing of it can be stored."),
        );
    }
    let Derived { config, notes } = writer.done();
    match mapping::compile(&config) {
        Ok(_) => Ok(Derived { config, notes }),
        Err(findings) => {
            let cause = findings.first().map_or_else(String::new, ToString::to_string);
            let message = format!("no mapping can be made of these samples: {cause}");
            Err(Fault::new(Kind::Invalid, message))
        }
    }
}

/// Whether there is more to an object than its URI.
fn has_value(object: &Json, id: Option<&str>) -> bool {
    let Json::Object(members) = object else { return false };
    members.iter().any(|(name, value)| {
        let is_there = match value {
            Json::Null => false,
            Json::Array(elements) => elements.iter().any(|element| *element != Json::Null),
            _ => true,
        };
        is_there && id != Some(name)
    })
}

#[cfg(test)]
mod tests;
