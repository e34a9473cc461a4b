//! Derives a mapping from samples of the JSON or CSV that will be sent: types, nesting, arrays, and the field with the
//! object's URI. A person reviews and edits it before it is saved.
//!
//! The types in the mapping follow from the values in the samples:
//! - `true` and `false` are `boolean`.
//! - Numbers are `integer`, or `number` if one of them has a fraction or an exponent.
//! - Strings are `date`, `dateTime` or `resource` if all of them are, otherwise `string`.
//! - Objects are `object`, in a namespace named after the field.
//! - Arrays are `array` of the type of their elements.
//! - The field `uri`, otherwise `@id`, `id` or `iri`, is `id` if all its values are IRIs.
//! - Without such a field, the first of `id`, `number` and `code` is the key if each of several objects has another value of it.
//! - The field `label`, otherwise `name`, `displayName` or `title`, is the `label` if another string comes first.
//!
//! The property of a field is its name in one vocabulary, the same in every object. Values at the same position in
//! the samples are examined together. If their types differ, the mapping has the most frequent one, and a note says
//! which values do not fit. If there are no such notes, the samples can be ingested, and the view returns them
//! unchanged.

mod seen;
mod write;

use super::csv::{self, CsvFormat, CsvHeader, CsvSample};
use super::ingest::Body;
use super::{mapping, natural_key};
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{self, Json, Sample, SampleLimits};
use seen::{GuessedType, SeenValues};
use std::collections::HashSet;
use write::MappingWriter;

/// A derived mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivedMapping {
    /// The mapping as YAML; it compiles.
    pub config: String,
    /// Notes for the review.
    pub notes: Vec<DerivationNote>,
}

/// A note about a derived mapping for the person who reviews it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivationNote {
    /// The path of the field, such as `parts.label`. Empty for the whole mapping.
    pub field: String,
    /// The text of the note.
    pub message: String,
    /// Whether something in the samples does not fit the mapping.
    pub misfit: bool,
}

/// The names from which the namespaces and properties of a mapping are built.
#[derive(Debug, Clone, Copy)]
pub struct MappingNames<'a> {
    /// The name of the Business Object. The namespace of the root is named after it.
    pub business_object: &'a str,
    /// The prefix of the IRI of every property.
    pub vocabulary: &'a str,
}

/// The maximum number of objects in a sample, and of elements in each of their arrays if arrays must be cut.
pub const MAX_OBJECTS: usize = 100;
/// The maximum number of JSON values in a sample.
pub const MAX_VALUES: usize = 20_000;
/// The maximum number of bytes in the names, strings and numbers of a sample.
const MAX_BYTES: usize = 1 << 20;

/// The names of fields that may be a key, in the order of preference.
const KEY_MEMBERS: &[&str] = &["id", "number", "code"];

/// Returns the format of samples that are CSV.
pub fn find_csv_format(text: &str) -> Option<CsvFormat> {
    csv::guess_format(text)
}

/// A sample in the form in which an ingestion sends it.
#[derive(Debug)]
pub struct SampleBody {
    content: SampleContent,
    /// Which part of the text it is; `None` if it is the whole text.
    pub used_part: Option<String>,
}

#[derive(Debug)]
enum SampleContent {
    Json(Vec<u8>),
    Records { text: Vec<u8>, header: CsvHeader, line_numbers: Vec<u64> },
}

impl SampleBody {
    /// Reads a sample as [`read_samples`] does. The records of CSV stay as they are, so that an ingestion reads them as it
    /// reads a stream, with the same errors.
    ///
    /// # Errors
    /// As [`read_samples`], but not for single records of CSV.
    pub fn read(text: &str, nesting: usize) -> Result<Self, GatewayError> {
        let Some(format) = csv::guess_format(text) else {
            let sample = read_samples(text, nesting)?;
            let used_part = describe_sample(&sample);
            let data = format!("{{\"data\":{}}}", Json::Array(sample.objects));
            return Ok(Self { content: SampleContent::Json(data.into_bytes()), used_part });
        };
        let sample = CsvSample::read(text, format, sample_limits(nesting))?;
        let sample = sample.filter(|sample| sample.counts().1 > 0).ok_or_else(no_object_error)?;
        let (count, total) = sample.counts();
        let used_part = describe_part(count, total, None);
        let (text, line_numbers) = sample.to_chunk();
        let header = sample.header().clone();
        Ok(Self { content: SampleContent::Records { text, header, line_numbers }, used_part })
    }

    /// Returns the body of an ingestion.
    pub fn to_body(&self) -> Body<'_> {
        match &self.content {
            SampleContent::Json(data) => Body::Json(data),
            SampleContent::Records { text, header, line_numbers } => {
                Body::Records { text, header, first: 0, line_numbers }
            }
        }
    }
}

fn sample_limits(nesting: usize) -> SampleLimits {
    SampleLimits { nesting, elements: MAX_OBJECTS, values: MAX_VALUES, bytes: MAX_BYTES }
}

fn no_object_error() -> GatewayError {
    let message = "the sample contains no object; paste at least one";
    GatewayError::new(ErrorClass::Invalid, message)
}

/// Reads samples: an object, an array of objects, the body of an ingestion (`{"data": [...]}`), one object in each
/// line, or CSV. From a text that exceeds the limits of a sample, it takes objects at even distances. The types of the
/// values of CSV are guessed.
///
/// # Errors
/// - those of [`CsvHeader`], and of a record that has not as many cells
/// - `ErrorClass::Malformed` as [`json::parse`]
/// - `ErrorClass::Invalid` if there is no object, or something that is not an object
/// - `ErrorClass::TooLarge` if a single object exceeds the limits of a sample
pub fn read_samples(text: &str, nesting: usize) -> Result<Sample, GatewayError> {
    let limits = sample_limits(nesting);
    let sample = match csv::guess_format(text) {
        Some(format) => match CsvSample::read(text, format, limits)? {
            Some(sample) => {
                let (_, total) = sample.counts();
                Sample { objects: sample.to_objects()?, total, cut_length: None }
            }
            None => return Err(no_object_error()),
        },
        None => json::read_sample(text.as_bytes(), limits)?,
    };
    if sample.total == 0 {
        return Err(no_object_error());
    }
    if let [other] = sample.objects.as_slice()
        && !matches!(other, Json::Object(_))
    {
        let message = format!(
            "the sample is {}; expected an object or an array of objects",
            other.kind_name()
        );
        return Err(GatewayError::new(ErrorClass::Invalid, message));
    }
    let others = sample.objects.iter().enumerate().filter(|(_, e)| !matches!(e, Json::Object(_)));
    let found: Vec<Finding> = others
        .map(|(index, e)| {
            Finding::at_pointer(
                format!("/{index}"),
                format!("an object is expected, not {}", e.kind_name()),
            )
        })
        .take(20)
        .collect();
    match found.first() {
        None => Ok(sample),
        Some(first) => {
            Err(GatewayError::with_findings(ErrorClass::Invalid, first.to_string(), found))
        }
    }
}

/// Describes which part of a text was taken as the sample; `None` if it was the whole text.
pub fn describe_sample(sample: &Sample) -> Option<String> {
    describe_part(sample.objects.len(), sample.total, sample.cut_length)
}

fn describe_part(count: usize, total: usize, cut_length: Option<usize>) -> Option<String> {
    let objects = (count < total)
        .then(|| format!("The sample is {count} of the {total} objects, taken at even distances."));
    let elements =
        cut_length.map(|elements| format!("Longer arrays are cut to at most {elements} elements."));
    let sampled: Vec<String> = objects.into_iter().chain(elements).collect();
    (!sampled.is_empty())
        .then(|| format!("{} Add fields that occur only in the rest.", sampled.join(" ")))
}

/// Derives a mapping from these objects.
///
/// # Errors
/// `ErrorClass::Invalid` if the vocabulary is not an IRI, or the samples have more fields than a mapping may have.
pub fn derive_mapping(
    names: MappingNames<'_>,
    samples: &[Json],
) -> Result<DerivedMapping, GatewayError> {
    if let Err(error) = NamedNode::new(names.vocabulary) {
        let message = format!(
            "{:?} is not an absolute IRI ({error}); a vocabulary looks like https://plant.example/vocabulary/",
            names.vocabulary
        );
        let found = vec![Finding::at_pointer("/vocabulary", message.clone())];
        return Err(GatewayError::with_findings(ErrorClass::Invalid, message, found));
    }
    let mut root = SeenValues::default();
    for sample in samples {
        root.count_value(sample);
    }
    let mut writer = MappingWriter::new(names.vocabulary);
    writer.write_root(names.business_object, &root, find_key_member(&root, samples));
    let id = root.id_member();
    for (number, _) in (1..).zip(samples).filter(|(_, sample)| !has_value(sample, id)) {
        writer.add_misfit("", format!("Sample {number} holds no value, so it cannot be stored."));
    }
    let DerivedMapping { config, notes } = writer.finish();
    match mapping::compile(&config) {
        Ok(_) => Ok(DerivedMapping { config, notes }),
        Err(findings) => {
            let cause = findings.first().map_or_else(String::new, ToString::to_string);
            let message = format!("a mapping cannot be derived from these samples: {cause}");
            Err(GatewayError::new(ErrorClass::Invalid, message))
        }
    }
}

/// Returns the name of the field that identifies the objects: it is in each of several samples, with another value.
fn find_key_member<'j>(root: &SeenValues<'j>, samples: &[Json]) -> Option<&'j str> {
    if root.id_member().is_some() || samples.len() < 2 {
        return None;
    }
    let is_key = |name: &str| {
        let mut values = HashSet::new();
        samples.iter().all(|sample| {
            let Json::Object(members) = sample else { return false };
            match members.iter().find(|(other, _)| *other == name) {
                Some((_, Json::String(text))) => {
                    natural_key::unusable_reason(text).is_none() && values.insert(text.as_str())
                }
                Some((_, Json::Number(digits))) => values.insert(digits.as_str()),
                _ => false,
            }
        })
    };
    KEY_MEMBERS.iter().find_map(|wanted| {
        let mut members = root.members.iter();
        let (name, seen) = members.find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        let Some(GuessedType::Single(kind)) = seen.guess_type() else { return None };
        let can_be_key = mapping::find_kind(kind)?.kind().key_text.is_some();
        (can_be_key && seen.describe_others().is_none() && is_key(name)).then_some(*name)
    })
}

/// Returns whether an object has a value other than its URI.
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
