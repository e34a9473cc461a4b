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

use super::mapping;
use oxrdf::NamedNode;
use penstock_base::fault::{Fault, Finding, Kind};
use penstock_base::json::{self, Json, Sample, SampleLimits};
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

/// The maximum of objects that a sample holds, and of elements in each array of them once it has to be cut.
pub const MAX_OBJECTS: usize = 100;
/// The maximum of JSON values in a sample.
pub const MAX_VALUES: usize = 20_000;
/// The maximum of bytes in the names, strings and numbers of a sample.
const MAX_BYTES: usize = 1 << 20;

/// Reads samples: an object, an array of objects, the body of an ingestion (`{"data": [...]}`), or an object
/// a line. Of a text that holds more than a sample may, objects at even distances are taken.
///
/// # Errors
/// `Kind::Malformed` as [`json::parse`]; `Kind::Invalid` when there is no object, or something else than
/// objects; `Kind::TooLarge` when one object is more than a sample may be.
pub fn samples(text: &str, nesting: usize) -> Result<Sample, Fault> {
    let limits =
        SampleLimits { nesting, elements: MAX_OBJECTS, values: MAX_VALUES, bytes: MAX_BYTES };
    let sample = json::sample(text.as_bytes(), limits)?;
    if sample.total == 0 {
        return Err(Fault::new(Kind::Invalid, "the sample holds no object"));
    }
    if let [other] = sample.objects.as_slice()
        && !matches!(other, Json::Object(_))
    {
        let message =
            format!("the sample is {}; expected is an object, or an array of them", other.kind());
        return Err(Fault::new(Kind::Invalid, message));
    }
    let strangers =
        sample.objects.iter().enumerate().filter(|(_, e)| !matches!(e, Json::Object(_)));
    let found: Vec<Finding> = strangers
        .map(|(index, e)| {
            Finding::at(format!("/{index}"), format!("an object is expected, not {}", e.kind()))
        })
        .take(20)
        .collect();
    match found.first() {
        None => Ok(sample),
        Some(first) => Err(Fault::with(Kind::Invalid, first.to_string(), found)),
    }
}

/// What of a text was taken as the sample, in words; `None` when all of it was.
pub fn sampled(sample: &Sample) -> Option<String> {
    let Sample { objects, total, elements } = sample;
    let objects = (objects.len() < *total).then(|| {
        format!("The sample is {} of the {total} objects, taken at even distances.", objects.len())
    });
    let elements = elements.map(|elements| {
        format!("Of each longer array, at most {elements} elements are in the sample.")
    });
    let sampled: Vec<String> = objects.into_iter().chain(elements).collect();
    (!sampled.is_empty()).then(|| {
        format!("{} Fields that only occur elsewhere are missing: add them.", sampled.join(" "))
    })
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
