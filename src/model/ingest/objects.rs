//! Reads the objects of a body, one at a time.
use super::messages::add_missing_fields;
use super::read_object::{ReadObject, with_line_offset};
use super::{Body, Limits, Request, export_file, lines};
use crate::csv::Columns;
use penstock_base::error::{Finding, GatewayError};
use penstock_base::json::{self, Element, Json};
use penstock_resources::ingestion::BodyForm;
use std::ops::Range;

/// Passes each object of the body to `each`. Returns the warning about an export file.
///
/// # Errors
/// Returns the first error of `each`, those of a JSON body that is malformed as a whole, and those of an export file or a header of CSV.
pub(super) fn read_objects(
    request: &Request<'_>,
    limits: &Limits,
    each: &mut dyn FnMut(ReadObject) -> Result<(), GatewayError>,
) -> Result<Option<Finding>, GatewayError> {
    match request.body {
        Body::Json(text) => {
            let mut has_values = false;
            let around = json::parse_data(text, limits.nesting, limits.objects, &mut |element| {
                let Element { index, range, json } = element;
                has_values |= !export_file::has_only_uri(&json);
                each(ReadObject { index, line: None, range, json: Ok(json) })
            })?;
            let Some(metadata) = &around.metadata else { return Ok(None) };
            return export_file::check_metadata(request, metadata, &around, has_values).map(Some);
        }
        Body::Lines { text, first, line_numbers } => {
            // The objects of documents have other indexes than these.
            let first = (request.form == BodyForm::Data).then_some(first);
            lines::read_lines(text, limits.nesting, first, line_numbers, each)
        }
        Body::Records { text, header, first, line_numbers } => {
            let columns = Columns::find(header, &request.business_object.mapping)?;
            let columns = (&columns, limits.nesting);
            lines::read_records(text, columns, first, line_numbers, each)
        }
        Body::Messages(batch) => batch.read_objects(&request.business_object.mapping, limits, each),
        Body::Object { text, index, first_line, topic_fields } => {
            let mapping = &request.business_object.mapping;
            let json = json::parse(text, limits.nesting)
                .map_err(|error| with_line_offset(error, first_line.saturating_sub(1)))
                .and_then(|json| match topic_fields {
                    Some(fields) => add_missing_fields(mapping, fields, json),
                    None => Ok(json),
                });
            each(ReadObject { index, line: None, range: 0..text.len(), json })
        }
    }?;
    Ok(None)
}

/// Reads single objects of a body again, from their texts.
#[derive(Debug)]
pub(super) struct ObjectReader<'r> {
    /// The columns of a body of CSV.
    columns: Option<Columns<'r>>,
    request: &'r Request<'r>,
    nesting: usize,
}

impl<'r> ObjectReader<'r> {
    /// Creates a reader for the body of the request.
    ///
    /// # Errors
    /// Returns those of a header of CSV.
    pub(super) fn new(request: &'r Request<'r>, limits: &Limits) -> Result<Self, GatewayError> {
        let columns = match request.body {
            Body::Records { header, .. } => {
                Some(Columns::find(header, &request.business_object.mapping)?)
            }
            Body::Json(_) | Body::Lines { .. } | Body::Object { .. } | Body::Messages(_) => None,
        };
        Ok(Self { columns, request, nesting: limits.nesting })
    }

    /// Reads the object whose text is at this place of the body. The lines of errors count from its text.
    ///
    /// # Errors
    /// Returns those of a text that cannot be read.
    pub(super) fn read(&self, range: Range<usize>) -> Result<Json, GatewayError> {
        let start = range.start;
        let text = self.request.body.text().get(range).unwrap_or_default();
        match (&self.columns, self.request.body) {
            (Some(columns), _) => lines::read_record(columns, text, 1, self.nesting),
            (None, Body::Messages(batch)) => {
                let json = json::parse(text, self.nesting)?;
                batch.add_fields_at(&self.request.business_object.mapping, start, json)
            }
            _ => json::parse(text, self.nesting),
        }
    }
}
