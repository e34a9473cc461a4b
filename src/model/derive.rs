//! Derives a mapping from samples of the JSON or CSV that will be sent: types, nesting, arrays, and the field with the
//! object's URI. A person reviews and edits it before it is saved.
//!
//! The types in the mapping follow from the values in the samples:
//! - `true` and `false` are `boolean`, numbers `integer` or, if one has a fraction or an exponent, `number`.
//! - Strings are `date`, `dateTime` or `resource` if all of them are. Times, numbers and booleans in another form have it
//!   in `accept`. A number is a time only by its name and its range. Words that repeat are codes, other texts are
//!   `string`. Strings, numbers and booleans that are mixed are `scalar`.
//! - Objects are `object`, in a namespace named after the Business Object and the field. If all names are language tags,
//!   they are `languageMap`; if the names look like data, `map`.
//! - Arrays are `array` of the type of their elements, `ordered` if a set would lose something.
//! - What has no other equivalent in RDF is `json`: arrays in arrays, objects without values, objects and arrays beside
//!   other values.
//! - Samples that only hold a list of objects are documents: the mapping has `items`, and `outer` for what the objects take
//!   from around them.
//! - The field `uri`, otherwise `@id`, `id` or `iri`, is `id` if all its values are IRIs.
//! - Without such a field, the first of `id`, `number` and `code` is the key if each of several objects has another value of it.
//! - The field `label`, otherwise `name`, `displayName` or `title`, is the `label` if another string comes first.
//!
//! The property of a field is its name in one vocabulary, the same in every object. Values at the same position in
//! the samples are examined together. A note says why a type is not the obvious one, or what does not fit the mapping. If
//! everything fits, the samples can be ingested, and the view returns their values: those in another form in the form of
//! their type.
//!
//! `seen` groups the values by their position, `name` knows what names say, `value` and `guess` choose the types, `document`
//! finds the objects in documents, and `write` writes the mapping.

mod document;
mod guess;
mod name;
mod seen;
mod value;
mod write;
mod yaml;

pub use write::{DerivationNote, MappingNames};

use super::csv::{self, CsvFormat, CsvHeader, CsvSample};
use super::ingest::{Body, BodyForm};
use super::mapping::Mapping;
use super::{mapping, natural_key};
use guess::Guess;
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{self, Json, Sample, SampleLayout, SampleLimits};
use seen::{Members, SeenValues};
use std::collections::HashSet;
use write::MappingWriter;

/// A derived mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivedMapping {
    /// The mapping as YAML; it compiles.
    pub config: String,
    /// Notes for the review.
    pub notes: Vec<DerivationNote>,
    /// Whether it has `items`, because the samples are documents around the objects.
    pub has_items: bool,
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
    /// Whether it is documents, in which the mapping finds the objects.
    pub form: BodyForm,
    /// Which part of the text it is; `None` if it is the whole text.
    pub used_part: Option<String>,
}

#[derive(Debug)]
enum SampleContent {
    Json(Vec<u8>),
    Lines { text: Vec<u8>, line_numbers: Vec<u64> },
    Records { text: Vec<u8>, header: CsvHeader, line_numbers: Vec<u64> },
}

impl SampleBody {
    /// Reads a sample for this mapping as [`read_samples`] does. If the mapping has `items`, JSON is documents. The records of
    /// CSV stay as they are, so that an ingestion reads them as it reads a stream, with the same errors.
    ///
    /// # Errors
    /// As [`read_samples`], but not for single records of CSV.
    pub fn read(text: &str, mapping: &Mapping, nesting: usize) -> Result<Self, GatewayError> {
        let Some(format) = csv::guess_format(text) else {
            return match mapping.document {
                Some(_) => Self::read_documents(text, nesting),
                None => Self::read_objects(text, nesting),
            };
        };
        let sample = CsvSample::read(text, format, sample_limits(nesting))?;
        let sample = sample.filter(|sample| sample.counts().1 > 0).ok_or_else(no_object_error)?;
        let (count, total) = sample.counts();
        let used_part = describe_part(count, total, None);
        let (text, line_numbers) = sample.to_chunk();
        let header = sample.header().clone();
        let content = SampleContent::Records { text, header, line_numbers };
        Ok(Self { content, form: BodyForm::Data, used_part })
    }

    fn read_objects(text: &str, nesting: usize) -> Result<Self, GatewayError> {
        let sample = read_samples(text, nesting)?;
        let used_part = describe_sample(&sample);
        let data = format!("{{\"data\":{}}}", Json::Array(sample.objects));
        let content = SampleContent::Json(data.into_bytes());
        Ok(Self { content, form: BodyForm::Data, used_part })
    }

    /// Reads documents, which are where the text has them.
    fn read_documents(text: &str, nesting: usize) -> Result<Self, GatewayError> {
        let sample = json::read_sample(text.as_bytes(), sample_limits(nesting))?;
        if sample.total == 0 {
            return Err(no_object_error());
        }
        let used_part = describe_sample(&sample);
        let Sample { mut objects, layout, .. } = sample;
        let content = match layout {
            SampleLayout::One => {
                SampleContent::Json(objects.swap_remove(0).to_string().into_bytes())
            }
            SampleLayout::Array => {
                SampleContent::Json(Json::Array(objects).to_string().into_bytes())
            }
            SampleLayout::Data => {
                let data = format!("{{\"data\":{}}}", Json::Array(objects));
                SampleContent::Json(data.into_bytes())
            }
            SampleLayout::Lines => {
                let lines: String =
                    objects.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect();
                let line_numbers = (1..).zip(&objects).map(|(number, _)| number).collect();
                SampleContent::Lines { text: lines.into_bytes(), line_numbers }
            }
        };
        Ok(Self { content, form: BodyForm::Document, used_part })
    }

    /// Returns the body of an ingestion.
    pub fn to_body(&self) -> Body<'_> {
        match &self.content {
            SampleContent::Json(data) => Body::Json(data),
            SampleContent::Lines { text, line_numbers } => {
                Body::Lines { text, first: 0, line_numbers }
            }
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
                let objects = sample.to_objects()?;
                Sample { objects, total, layout: SampleLayout::Lines, cut_length: None }
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
    let documents = document::find_documents(samples);
    let objects: Vec<&Json> = match &documents {
        Some(documents) => documents.objects.clone(),
        None => samples.iter().collect(),
    };
    let members = SeenValues::new(objects.iter().copied()).members();
    let mut writer = MappingWriter::new(names);
    writer.write_root(&members, find_key_member(&members, &objects), documents.as_ref());
    let id = members.id_member();
    let takes_values = documents.is_some_and(|documents| !documents.outer.is_empty());
    let is_empty = |object: &Json| !takes_values && !has_value(object, id);
    for (number, _) in (1..).zip(&objects).filter(|(_, object)| is_empty(object)) {
        writer.add_misfit("", format!("Sample {number} holds no value, so it cannot be stored."));
    }
    let (config, notes) = writer.finish();
    match mapping::compile(&config) {
        Ok(mapping) => Ok(DerivedMapping { config, notes, has_items: mapping.document.is_some() }),
        Err(findings) => {
            let cause = findings.first().map_or_else(String::new, ToString::to_string);
            let message = format!("a mapping cannot be derived from these samples: {cause}");
            Err(GatewayError::new(ErrorClass::Invalid, message))
        }
    }
}

/// Returns the name of the field that identifies the objects: it is in each of several samples, with another value.
fn find_key_member<'j>(members: &Members<'j>, objects: &[&Json]) -> Option<&'j str> {
    if members.id_member().is_some() || objects.len() < 2 {
        return None;
    }
    let is_key = |name: &str| {
        let mut values = HashSet::new();
        objects.iter().all(|object| match object.member(name) {
            Some(Json::String(text)) => {
                natural_key::unusable_reason(text).is_none() && values.insert(text.as_str())
            }
            Some(Json::Number(digits)) => values.insert(digits.as_str()),
            _ => false,
        })
    };
    KEY_MEMBERS.iter().find_map(|wanted| {
        let (name, seen) = members.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        let Some(Guess::Value(value)) = Guess::new(name, seen) else { return None };
        (value.can_be_key() && is_key(name)).then_some(name)
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
