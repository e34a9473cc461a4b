//! The objects of a request that are left out because they have errors.
use super::places::DocumentPlaces;
use super::{Answer, Body, Limits, Request};
use crate::dead_letters::{
    CsvRecordForm, DeadLetter, MAX_LISTED_ERRORS, NewDeadLetter, Origin, Retention, add_letters,
    count_error_bytes,
};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_resources::dead_letter::RejectedObject;
use penstock_resources::problem;
use penstock_store::Transaction;
use std::collections::BTreeMap;
use std::ops::Range;

/// The bytes of the errors of a request after which only the first error of each object is kept.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// The rejected objects of a request.
#[derive(Debug, Default)]
pub(super) struct Rejections {
    by_index: BTreeMap<usize, Rejection>,
    /// The indexes of those that the current run added.
    newest: Vec<usize>,
    /// The bytes of all errors.
    error_bytes: usize,
}

/// A rejected object.
#[derive(Debug)]
pub(super) struct Rejection {
    /// Its line in the stream, from 1.
    pub(super) line: Option<u64>,
    /// Where its text is in the body, in bytes.
    pub(super) range: Range<usize>,
    /// Why it was rejected.
    pub(super) errors: Vec<problem::Finding>,
}

impl Rejections {
    /// Begins a run of the request, which leaves out the objects that are rejected already.
    pub(super) fn begin_run(&mut self) {
        self.newest.clear();
    }

    /// Adds an object. Past the limit for all errors of the request, only the first error of each object is kept.
    pub(super) fn add(&mut self, index: usize, mut rejection: Rejection) {
        if self.error_bytes > MAX_ERROR_BYTES {
            rejection.errors.truncate(1);
        }
        self.error_bytes += rejection.errors.iter().map(count_error_bytes).sum::<usize>();
        self.by_index.insert(index, rejection);
        self.newest.push(index);
    }

    /// Adds an error of an object, which this run may have rejected already.
    pub(super) fn add_error(
        &mut self,
        index: usize,
        line: Option<u64>,
        range: Range<usize>,
        error: problem::Finding,
    ) {
        match self.by_index.get_mut(&index) {
            None => self.add(index, Rejection { line, range, errors: vec![error] }),
            Some(rejection)
                if rejection.errors.len() < MAX_LISTED_ERRORS
                    && self.error_bytes <= MAX_ERROR_BYTES =>
            {
                self.error_bytes += count_error_bytes(&error);
                rejection.errors.push(error);
            }
            Some(_) => {}
        }
    }

    pub(super) fn contains(&self, index: usize) -> bool {
        self.by_index.contains_key(&index)
    }

    /// Returns whether the current run rejected objects.
    pub(super) fn has_new(&self) -> bool {
        !self.newest.is_empty()
    }

    /// Returns the rejected objects in the order of the request.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Rejection)> {
        self.by_index.iter().map(|(index, rejection)| (*index, rejection))
    }

    /// Converts the places of the errors, if the objects come from documents.
    pub(super) fn convert_places(&mut self, places: &DocumentPlaces) {
        for rejection in self.by_index.values_mut() {
            places.convert_rejected(&mut rejection.errors);
        }
    }

    /// Returns the objects as an answer lists them, without the ids of dead letters.
    pub(super) fn list(&self) -> Vec<RejectedObject> {
        let all = self.iter().map(|(index, Rejection { line, errors, .. })| RejectedObject {
            id: None,
            index,
            line: *line,
            errors: errors.clone(),
        });
        all.collect()
    }

    /// Stores each object as a dead letter of the ingestion in `answer`, and adds their ids to the answer. `at` is the
    /// time of the ingestion (RFC 3339). Returns the number of dead letters that this evicted.
    ///
    /// # Errors
    /// `ErrorClass::Internal` if there is no space for a message that must be kept; the errors of the store.
    pub(super) fn store_dead_letters(
        &self,
        transaction: &mut Transaction<'_>,
        request: &Request<'_>,
        answer: &mut Answer,
        limits: &Limits,
        at: &str,
    ) -> Result<u64, GatewayError> {
        if self.by_index.is_empty() {
            return Ok(0);
        }
        let object = &request.business_object.object;
        let origin = match request.body {
            Body::Messages(batch) => Origin::Source(batch.source.to_owned()),
            _ => Origin::of_request(request.caller, request.api_key),
        };
        let text = request.body.text();
        let csv = match request.body {
            Body::Records { header, .. } => Some(CsvRecordForm::of_header(header)),
            Body::Json(_) | Body::Lines { .. } | Body::Object { .. } | Body::Messages(_) => None,
        };
        let letters = self.iter().map(|(index, rejection)| {
            let text = text.get(rejection.range.clone()).unwrap_or_default();
            let letter = DeadLetter {
                id: String::new(),
                ingestion_id: answer.ingestion_id.clone(),
                business_object: object.id.clone(),
                business_object_name: object.definition.name.clone(),
                mode: request.mode,
                origin: origin.clone(),
                caller: request.caller.to_owned(),
                at: at.to_owned(),
                index,
                line: rejection.line,
                csv: csv.clone(),
                message: match request.body {
                    Body::Messages(batch) => batch.describe_message(rejection.range.start),
                    _ => None,
                },
                errors: rejection.errors.clone(),
                text_bytes: text.len() as u64,
                sequence: 0,
                number: 0,
            };
            NewDeadLetter { letter, text }
        });
        let retention =
            Retention { now: request.watch.elapsed(), max_bytes: limits.rejected_bytes };
        let (ids, evicted) = add_letters(transaction, letters, retention)?;
        if let Body::Messages(batch) = request.body {
            let starts = self.iter().map(|(_, rejection)| rejection.range.start);
            if starts.zip(&ids).any(|(start, id)| id.is_none() && batch.must_keep(start)) {
                return Err(GatewayError::new(
                    ErrorClass::Internal,
                    "a message that failed with an internal error does not fit among the dead letters; raise \
                     service.limits.rejected.bytes",
                ));
            }
        }
        for (rejected, id) in answer.rejected.iter_mut().zip(ids) {
            rejected.id = id;
        }
        Ok(evicted)
    }

    /// Returns the error of a request that rejected objects in each of this many runs. It has the findings of the last
    /// run.
    pub(super) fn to_error(&self, runs: usize) -> GatewayError {
        let newest = self.newest.iter().filter_map(|index| self.by_index.get(index));
        let findings: Vec<Finding> = newest
            .flat_map(|rejection| rejection.errors.iter().cloned())
            .map(Finding::from)
            .take(super::findings::MAX_FINDINGS)
            .collect();
        let first = findings.first().map(Finding::to_string).unwrap_or_default();
        let detail = format!(
            "the gateway left out the rejected objects {} times, and each time others became invalid; after {runs} runs \
             {} objects are rejected, and nothing is stored. Send fewer objects at once, or correct them; the last error \
             is {first}",
            runs - 1,
            self.by_index.len()
        );
        GatewayError::with_findings(ErrorClass::Invalid, detail, findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letters::keep_error;
    use penstock_resources::problem::ViolatedConstraint;

    /// An error about a shape whose value is as long as a chunk.
    fn long_error() -> problem::Finding {
        let text = |length| "x".repeat(length);
        let violation = ViolatedConstraint {
            focus_node: "urn:pump".to_owned(),
            path: None,
            value: Some(text(1 << 20)),
            shape: "urn:shape".to_owned(),
            constraint: "urn:constraint".to_owned(),
            severity: "violation".to_owned(),
        };
        let finding = Finding::at_pointer(text(9000), text(9000));
        keep_error(Finding { violation: Some(Box::new(violation)), ..finding })
    }

    #[test]
    fn the_errors_of_a_request_are_bounded() {
        let mut rejections = Rejections::default();
        for index in 0..1000 {
            let errors = vec![long_error(); MAX_LISTED_ERRORS / 2];
            rejections.add(index, Rejection { line: None, range: 0..1, errors });
            for _ in 0..MAX_LISTED_ERRORS {
                rejections.add_error(index, None, 0..1, long_error());
            }
        }
        let listed = rejections.list();
        let bytes =
            |object: &RejectedObject| object.errors.iter().map(count_error_bytes).sum::<usize>();
        let total: usize = listed.iter().map(bytes).sum();
        assert_eq!(total, rejections.error_bytes);
        // Beyond the limit, each object has one error of less than 2,000 bytes.
        assert!(total < MAX_ERROR_BYTES + 1000 * 2000, "{total}");
        assert!(listed.iter().all(|object| !object.errors.is_empty()));
        assert_eq!(listed[0].errors.len(), MAX_LISTED_ERRORS);
    }
}
