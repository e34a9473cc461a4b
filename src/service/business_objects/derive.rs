//! Derives the mapping of a new Business Object from a sample.
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::error::GatewayError;
use penstock_base::json::{Json, SampleLayout};
use penstock_model::csv::CsvFormat;
use penstock_model::derive::{self, DerivationNote, DerivedMapping, MappingNames};
use std::sync::Arc;

/// A mapping that was derived from a sample.
#[derive(Debug)]
pub struct Derivation {
    /// The mapping.
    pub mapping: DerivedMapping,
    /// The part of the sample that was used, if not all.
    pub used_part: Option<String>,
}

/// Derives the mapping of a new Business Object with this name from a sample. `vocabulary` is the prefix of the IRI of
/// every property.
///
/// # Errors
/// The errors of [`derive::read_samples`] and [`derive::derive_mapping`]; `ErrorClass::Forbidden` without the role
/// Admin.
pub async fn derive_mapping(
    gateway: &Gateway,
    by: &Authorized,
    name: String,
    vocabulary: String,
    sample: Arc<str>,
) -> Result<Derivation, GatewayError> {
    let derive = move |gateway: &Gateway, _: &Authorized| {
        let names = MappingNames { business_object: &name, vocabulary: &vocabulary };
        derive_from_samples(names, &[sample], gateway.settings.limits.nesting)
    };
    gateway.run(by, Role::Admin, derive).await
}

/// Derives a mapping from the objects of all these samples, without a gateway. JSON nests up to `nesting` levels.
///
/// # Errors
/// The errors of [`derive::read_samples`] and [`derive::derive_mapping`].
pub fn derive_from_samples(
    names: MappingNames<'_>,
    samples: &[impl AsRef<str>],
    nesting: usize,
) -> Result<Derivation, GatewayError> {
    let (mut objects, mut parts, mut forms) = (Vec::new(), Vec::new(), Vec::new());
    for sample in samples {
        let text = sample.as_ref();
        let read = derive::read_samples(text, nesting)?;
        parts.extend(derive::describe_sample(&read));
        forms.push((read.layout, derive::find_csv_format(text)));
        objects.extend(read.objects);
    }
    let mut mapping = derive::derive_mapping(names, &objects)?;
    let mut how_to_send: Vec<String> = Vec::new();
    for (layout, csv) in forms {
        let note = csv.map(describe_csv).or_else(|| describe_layout(layout, mapping.has_items));
        if let Some(note) = note
            && !how_to_send.contains(&note)
        {
            how_to_send.push(note);
        }
    }
    let used_part = (!parts.is_empty()).then(|| format!("{:#}", Json::Array(objects)));
    let messages = parts.into_iter().chain(how_to_send);
    let notes =
        messages.map(|message| DerivationNote { field: String::new(), message, misfit: false });
    mapping.notes.splice(0..0, notes);
    Ok(Derivation { mapping, used_part })
}

/// Says how to send JSON of this layout; `None` if it can be sent as it is, or the notes of the mapping say how.
fn describe_layout(layout: SampleLayout, has_items: bool) -> Option<String> {
    let what = match layout {
        SampleLayout::Lines => {
            let note = "The sample has an object in each line. Send it with Content-Type: application/x-ndjson.";
            return Some(note.to_owned());
        }
        SampleLayout::Array if !has_items => "an array of objects",
        SampleLayout::One if !has_items => "one object",
        SampleLayout::Array | SampleLayout::One | SampleLayout::Data => return None,
    };
    Some(format!(
        "The sample is {what}. Send it with the query parameter form=document, or the objects as {{\"data\": [ … ]}}."
    ))
}

/// Says how to send what the sample is.
fn describe_csv(CsvFormat { delimiter, decimal_comma, .. }: CsvFormat) -> String {
    let delimiter = match delimiter {
        ',' => None,
        '\t' => Some("delimiter=tab".to_owned()),
        other => Some(format!("delimiter=%{:02X}", u32::from(other))),
    };
    let decimal_comma = decimal_comma.then(|| "decimalComma=true".to_owned());
    let parameters: Vec<String> = delimiter.into_iter().chain(decimal_comma).collect();
    let query = match parameters.as_slice() {
        [] => String::new(),
        parameters => format!(" and the query parameters {}", parameters.join("&")),
    };
    format!("The sample is CSV. Send it with Content-Type: text/csv{query}.")
}

/// Returns the default prefix of the IRIs of properties.
pub fn default_vocabulary(gateway: &Gateway) -> String {
    match &gateway.settings.base_url {
        Some(base_url) => format!("{}/vocabulary/", base_url.trim_end_matches('/')),
        None => gateway.catalogue.default_base("vocabulary"),
    }
}
