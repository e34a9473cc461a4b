//! Where the objects of documents are in what was sent. The ingestion knows them by their index, as if they were in `data`;
//! what leaves it points into the documents.
use super::answer::{Answer, Warnings};
use crate::changes::Change;
use penstock_base::error::{Finding, GatewayError, Place};
use penstock_resources::problem;
use std::sync::Arc;

/// Where the objects of a request are, by their indexes.
#[derive(Debug, Default)]
pub(super) struct DocumentPlaces {
    /// `None` in place of a text that cannot be read.
    objects: Vec<Option<ObjectPlace>>,
    /// The JSON Pointers, in their object, of the fields that can take a value from around it.
    outer_fields: Vec<String>,
    /// The documents without objects.
    pub(super) empty: Warnings,
}

/// Where an object is.
#[derive(Debug)]
pub(super) struct ObjectPlace {
    /// Its JSON Pointer in the body, in its line or in its message.
    pub(super) pointer: String,
    /// Its line in a stream.
    pub(super) line: Option<u64>,
    /// The values that it took from around it: the index in [`DocumentPlaces::outer_fields`], and the JSON Pointer.
    pub(super) taken: Vec<(usize, Arc<str>)>,
}

impl DocumentPlaces {
    /// Creates the places of no objects, in which these fields can have a value from around.
    pub(super) fn new(outer_fields: Vec<String>) -> Self {
        Self { outer_fields, ..Self::default() }
    }

    /// Returns the number of objects.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Adds the next object; `None` is a text that cannot be read.
    pub(super) fn push(&mut self, place: Option<ObjectPlace>) {
        self.objects.push(place);
    }

    /// Removes the last objects, so that this many remain.
    pub(super) fn truncate(&mut self, count: usize) {
        self.objects.truncate(count);
    }

    /// Returns where something of an object is that has this JSON Pointer below `/data`, and the line of the object.
    fn find(&self, pointer: &str) -> Option<(String, Option<u64>)> {
        let rest = pointer.strip_prefix("/data/")?;
        let (index, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let ObjectPlace { pointer, line, taken } =
            self.objects.get(index.parse::<usize>().ok()?)?.as_ref()?;
        let outer = taken.iter().find_map(|(field, outer)| {
            let rest = rest.strip_prefix(self.outer_fields.get(*field)?.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{outer}{rest}"))
        });
        Some((outer.unwrap_or_else(|| format!("{pointer}{rest}")), *line))
    }

    fn convert_finding(&self, finding: &mut Finding) {
        if let Place::Pointer(pointer) = &finding.place
            && let Some((pointer, line)) = self.find(pointer)
        {
            finding.place = Place::Pointer(pointer);
            finding.record_line = line;
        }
    }

    /// Converts the places of an error.
    pub(super) fn convert_error(&self, mut error: GatewayError) -> GatewayError {
        let before = error.findings.first().map(Finding::to_string);
        for finding in &mut error.findings {
            self.convert_finding(finding);
        }
        if let (Some(before), Some(first)) = (before, error.findings.first()) {
            // The detail of several findings quotes the first one.
            error.detail = error.detail.replacen(&before, &first.to_string(), 1);
        }
        error
    }

    /// Converts the places of the errors of a rejected object.
    pub(super) fn convert_rejected(&self, errors: &mut [problem::Finding]) {
        for error in errors {
            if let Some((pointer, line)) = error.pointer.as_deref().and_then(|at| self.find(at)) {
                error.pointer = Some(pointer);
                error.line = line;
            }
        }
    }

    /// Converts the places in what the sender of a change gets. The stored change has its objects in `data`.
    pub(super) fn convert_submitted(
        &self,
        submitted: Result<(Answer, Change), GatewayError>,
    ) -> Result<(Answer, Change), GatewayError> {
        let (mut answer, change) = submitted.map_err(|error| self.convert_error(error))?;
        self.convert_answer(&mut answer);
        Ok((answer, change))
    }

    /// Converts the places in an answer, and adds the warnings about documents.
    pub(super) fn convert_answer(&self, answer: &mut Answer) {
        for nested in answer.objects.iter_mut().flat_map(|object| &mut object.nested) {
            if let Some((pointer, _)) = self.find(&nested.pointer) {
                nested.pointer = pointer;
            }
        }
        for warning in &mut answer.warnings {
            if let Some((pointer, line)) = self.find(&warning.pointer) {
                warning.pointer = pointer;
                if let Some(line) = line {
                    warning.message = format!("line {line}: {}", warning.message);
                }
            }
        }
        answer.warnings.extend(self.empty.clone().into_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_base::error::ErrorClass;

    #[test]
    fn a_pointer_leads_to_the_object_or_to_what_it_took() {
        let mut places = DocumentPlaces::new(vec!["/at".to_owned(), "/limits/low".to_owned()]);
        places.push(None);
        let taken = vec![(1, Arc::from("/device/low"))];
        places.push(Some(ObjectPlace { pointer: "/metrics/7".to_owned(), line: Some(3), taken }));
        for (before, after) in [
            ("/data/1", Some("/metrics/7")),
            ("/data/1/at", Some("/metrics/7/at")),
            ("/data/1/limits/low/x", Some("/device/low/x")),
            ("/data/1/limits/lower", Some("/metrics/7/limits/lower")),
            ("/data/0/at", None),
            ("/data/2", None),
            ("/data", None),
            ("", None),
        ] {
            let found = places.find(before);
            assert_eq!(found.as_ref().map(|(pointer, _)| pointer.as_str()), after, "{before}");
        }
        let finding = Finding::at_pointer("/data/1/at", "a number is expected");
        let detail = format!("2 values are invalid; the first is {finding}");
        let error = GatewayError::with_findings(ErrorClass::Invalid, detail, vec![finding]);
        assert_eq!(
            places.convert_error(error).detail,
            "2 values are invalid; the first is line 3, /metrics/7/at: a number is expected"
        );
    }
}
