//! What a validation finds, and the file that keeps it.
//!
//! A file has two zstd frames with checksums. The first one is the [`Report`] as JSON, the second one a line of JSON for
//! each listed violation.
use oxrdf::{NamedNode, Term};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::validation::{
    ConstraintCount, ListedViolation, SeverityCounts, Validation,
};
use penstock_shapes::{Severity, Violation};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use zstd::{Decoder, Encoder};

/// The maximum number of violations that a report lists.
const MAX_LISTED: u64 = 10_000;
/// The maximum size of the listed violations, before they are compressed.
const MAX_LISTED_BYTES: usize = 8 << 20;
/// The maximum number of shapes and constraints with a count of their own.
const MAX_CONSTRAINTS: usize = 1000;
/// The maximum size of a header: the counts, with the IRIs of shapes, which are at most as large as shapes graphs.
const MAX_HEADER_BYTES: u64 = 128 << 20;
/// The fastest level that compresses well.
const COMPRESSION_LEVEL: i32 = 1;

/// A validation, with its counts by shape and constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The validation.
    #[serde(flatten)]
    pub validation: Validation,
    /// The counts, the highest first.
    pub constraints: Vec<ConstraintCount>,
    /// The number of violations of further shapes and constraints.
    pub other_count: u64,
}

/// Returns a violation as a report shows it.
pub(super) fn show_violation(violation: &Violation) -> ListedViolation {
    ListedViolation { message: violation.message(&[]).to_owned(), violation: violation.into() }
}

/// What a validation has found so far, within the limits of its report.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) counts: SeverityCounts,
    by_constraint: HashMap<(String, NamedNode, Severity), u64>,
    other_count: u64,
    /// The listed violations, a line for each.
    lines: Vec<u8>,
    pub(super) listed: u64,
}

impl Findings {
    /// Counts a violation, and lists it if there is space.
    pub(super) fn add(&mut self, violation: &Violation) -> Result<(), GatewayError> {
        match violation.severity {
            Severity::Violation => self.counts.violation += 1,
            Severity::Warning => self.counts.warning += 1,
            Severity::Info => self.counts.info += 1,
        }
        let Violation { shape, constraint, severity, .. } = violation;
        let key = (shape.clone(), constraint.clone(), *severity);
        if let Some(count) = self.by_constraint.get_mut(&key) {
            *count += 1;
        } else if self.by_constraint.len() < MAX_CONSTRAINTS {
            self.by_constraint.insert(key, 1);
        } else {
            self.other_count += 1;
        }
        // The list is the beginning: it ends before the first violation that does not fit.
        if self.listed == MAX_LISTED || self.listed + 1 < self.counts.total() {
            return Ok(());
        }
        let line = serde_json::to_vec(&StoredViolation::from(violation)).map_err(|error| {
            GatewayError::new(ErrorClass::Internal, format!("listing a violation failed: {error}"))
        })?;
        if self.lines.len() + line.len() < MAX_LISTED_BYTES {
            self.lines.extend_from_slice(&line);
            self.lines.push(b'\n');
            self.listed += 1;
        }
        Ok(())
    }

    /// Returns the content of the file that keeps an ended validation.
    pub(super) fn into_file(self, validation: Validation) -> io::Result<Vec<u8>> {
        let mut counted: Vec<_> = self.by_constraint.into_iter().collect();
        counted.sort_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then_with(|| a.cmp(b)));
        let counted = counted.into_iter();
        let constraints = counted
            .map(|((shape, constraint, severity), count)| ConstraintCount {
                shape,
                constraint: constraint.into_string(),
                severity: severity.name().to_owned(),
                count,
            })
            .collect();
        let report = Report { validation, constraints, other_count: self.other_count };
        let mut file = Vec::new();
        write_frame(&mut file, &serde_json::to_vec(&report)?)?;
        write_frame(&mut file, &self.lines)?;
        Ok(file)
    }
}

fn write_frame(file: &mut Vec<u8>, content: &[u8]) -> io::Result<()> {
    let mut encoder = Encoder::new(file, COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.write_all(content)?;
    encoder.finish().map(|_| ())
}

/// A listed violation. Terms have the syntax of N-Triples.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredViolation {
    focus_node: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    shape: String,
    source_shape: String,
    constraint: String,
    severity: Severity,
    messages: Vec<(Option<String>, String)>,
}

impl From<&Violation> for StoredViolation {
    fn from(violation: &Violation) -> Self {
        Self {
            focus_node: violation.focus_node.to_string(),
            path: violation.path.clone(),
            predicate: violation.predicate.as_ref().map(|node| node.as_str().to_owned()),
            value: violation.value.as_ref().map(ToString::to_string),
            shape: violation.shape.clone(),
            source_shape: violation.source_shape.to_string(),
            constraint: violation.constraint.as_str().to_owned(),
            severity: violation.severity,
            messages: violation.messages.clone(),
        }
    }
}

impl StoredViolation {
    /// Returns the violation; `None` if a term has an invalid form.
    fn into_violation(self) -> Option<Violation> {
        let parse = |text: &str| text.parse::<Term>().ok();
        Some(Violation {
            focus_node: parse(&self.focus_node)?,
            path: self.path,
            predicate: self.predicate.map(NamedNode::new_unchecked),
            value: match self.value {
                Some(value) => Some(parse(&value)?),
                None => None,
            },
            shape: self.shape,
            source_shape: parse(&self.source_shape)?,
            constraint: NamedNode::new_unchecked(self.constraint),
            severity: self.severity,
            messages: self.messages,
        })
    }
}

/// Reads the first frame of a file.
///
/// # Errors
/// `ErrorClass::Damaged`; `ErrorClass::NotFound` if the file was just removed.
pub(super) fn read_header(path: &Path) -> Result<Report, GatewayError> {
    let read = || -> io::Result<Report> {
        let decoder = Decoder::with_buffer(BufReader::new(File::open(path)?))?.single_frame();
        let mut text = Vec::new();
        decoder.take(MAX_HEADER_BYTES).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    };
    read().map_err(|error| damaged_error(path, &error))
}

/// Calls `visit` for each listed violation.
///
/// # Errors
/// As [`read_header`]; those of `visit`.
pub(super) fn for_each_violation(
    path: &Path,
    mut visit: impl FnMut(Violation) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let damaged = |error: io::Error| damaged_error(path, &error);
    let file = BufReader::new(File::open(path).map_err(damaged)?);
    let mut header = Decoder::with_buffer(file).map_err(damaged)?.single_frame();
    io::copy(&mut header, &mut io::sink()).map_err(damaged)?;
    let lines = Decoder::with_buffer(header.finish()).map_err(damaged)?.single_frame();
    for line in BufReader::new(lines).lines() {
        let line = line.map_err(damaged)?;
        let stored: Option<StoredViolation> = serde_json::from_str(&line).ok();
        let violation = stored.and_then(StoredViolation::into_violation);
        visit(violation.ok_or_else(|| damaged(io::ErrorKind::InvalidData.into()))?)?;
    }
    Ok(())
}

fn damaged_error(path: &Path, error: &io::Error) -> GatewayError {
    let name = path.file_stem().unwrap_or_default().display();
    if error.kind() == io::ErrorKind::NotFound {
        let detail = format!(
            "the report of the validation {name} was just removed; only the last ones are kept"
        );
        return GatewayError::new(ErrorClass::NotFound, detail);
    }
    GatewayError::new(
        ErrorClass::Damaged,
        format!("the report of the validation {name} cannot be read: {error}; validate again"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_resources::validation::{Progress, ValidationState};

    fn violation(number: usize, severity: Severity) -> Violation {
        Violation {
            focus_node: NamedNode::new_unchecked(format!("http://x/{number}")).into(),
            path: Some("http://p/name".to_owned()),
            predicate: Some(NamedNode::new_unchecked("http://p/name")),
            value: Some(
                oxrdf::Literal::new_language_tagged_literal_unchecked("a\n\"b\"", "de").into(),
            ),
            shape: format!("http://s/{}", number % 3),
            source_shape: oxrdf::BlankNode::new_unchecked("b1").into(),
            constraint: NamedNode::new_unchecked("http://c"),
            severity,
            messages: vec![(Some("en".to_owned()), "wrong".to_owned()), (None, String::new())],
        }
    }

    fn ended() -> Validation {
        Validation {
            id: "1".to_owned(),
            business_object: "b".to_owned(),
            business_object_name: "Pump".to_owned(),
            state: ValidationState::Finished,
            requested_by: "local".to_owned(),
            queued_at: String::new(),
            started_at: None,
            ended_at: None,
            commit: Some(7),
            shapes: Vec::new(),
            progress: Progress { validated: 1, expected: Some(1) },
            conforms: Some(false),
            counts: SeverityCounts::default(),
            listed: 0,
            error: None,
        }
    }

    #[test]
    fn everything_is_counted_and_the_beginning_is_listed() {
        let mut findings = Findings::default();
        for number in 0..MAX_LISTED + 5 {
            let severity = if number == 0 { Severity::Info } else { Severity::Warning };
            findings.add(&violation(usize::try_from(number).unwrap(), severity)).unwrap();
        }
        assert_eq!(
            findings.counts,
            SeverityCounts { violation: 0, warning: MAX_LISTED + 4, info: 1 }
        );
        assert_eq!(findings.listed, MAX_LISTED);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.report");
        let file = findings.into_file(ended()).unwrap();
        std::fs::write(&path, &file).unwrap();
        let report = read_header(&path).unwrap();
        assert_eq!(report.validation, ended());
        let counts: Vec<_> = report.constraints.iter().map(|one| one.count).collect();
        assert_eq!((counts, report.other_count), (vec![3335, 3335, 3334, 1], 0));
        let mut read = Vec::new();
        for_each_violation(&path, |violation| {
            read.push(violation);
            Ok(())
        })
        .unwrap();
        assert_eq!(read.len() as u64, MAX_LISTED);
        assert_eq!(read[1], violation(1, Severity::Warning));

        // A flipped bit is found in both frames.
        for place in [20, file.len() - 1000] {
            let mut damaged = file.clone();
            damaged[place] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            let header = read_header(&path);
            let lines = for_each_violation(&path, |_| Ok(()));
            assert!(header.is_err() || lines.is_err(), "at {place}");
        }
    }

    #[test]
    fn further_shapes_are_counted_together() {
        let mut findings = Findings::default();
        for number in 0..MAX_CONSTRAINTS + 20 {
            let shape = format!("http://s/{number}");
            let one = Violation { shape, ..violation(number, Severity::Violation) };
            findings.add(&one).unwrap();
        }
        assert_eq!((findings.by_constraint.len(), findings.other_count), (MAX_CONSTRAINTS, 20));
        assert_eq!(findings.counts.total(), MAX_CONSTRAINTS as u64 + 20);
    }
}
