//! Collects the errors of a request, so that one answer reports all of them.
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::nearest::find_nearest;

/// The maximum number of findings in one answer. A request that reaches it is not read further.
pub(super) const MAX_FINDINGS: usize = 100;

/// What is wrong with a required field without a value.
pub(super) const MISSING_VALUE: &str = "the field is required and has no value";

/// The maximum number of unknown names of a request for which a similar one is looked for, which takes a while. A request
/// that skips objects with errors can have any number of unknown names.
const MAX_SUGGESTIONS: usize = 1000;

/// The findings so far: values that do not fit the mapping, and values that contradict the stored data.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The first line of the record that is applied, in CSV.
    pub(super) record_line: Option<u64>,
    invalid: Vec<Finding>,
    conflicts: Vec<Finding>,
    /// The number of suggestions so far.
    suggestions: usize,
}

impl Findings {
    pub(super) fn add_invalid(&mut self, pointer: &str, message: impl Into<String>) {
        if self.invalid.len() < MAX_FINDINGS {
            self.invalid.push(Finding {
                record_line: self.record_line,
                ..Finding::at_pointer(pointer, message)
            });
        }
    }

    pub(super) fn add_finding(&mut self, finding: Finding) {
        self.extend(vec![finding]);
    }

    pub(super) fn add_conflict(&mut self, pointer: &str, message: impl Into<String>) {
        let record_line = self.record_line;
        self.add_conflicting(Finding { record_line, ..Finding::at_pointer(pointer, message) });
    }

    pub(super) fn add_conflicting(&mut self, finding: Finding) {
        if self.conflicts.len() < MAX_FINDINGS {
            self.conflicts.push(finding);
        }
    }

    pub(super) fn extend(&mut self, findings: Vec<Finding>) {
        let remaining = MAX_FINDINGS.saturating_sub(self.invalid.len());
        self.invalid.extend(findings.into_iter().take(remaining));
    }

    /// Takes all findings, the invalid values first.
    pub(super) fn take_all(&mut self) -> Vec<Finding> {
        let mut all = std::mem::take(&mut self.invalid);
        all.append(&mut self.conflicts);
        all
    }

    /// Returns the number of findings. If it grew while an object was read, the object has errors.
    pub(super) fn count(&self) -> usize {
        self.invalid.len() + self.conflicts.len()
    }

    /// Returns whether the next error may suggest a name, and counts it.
    pub(super) fn may_suggest(&mut self) -> bool {
        if self.is_full() || self.suggestions == MAX_SUGGESTIONS {
            return false;
        }
        self.suggestions += 1;
        true
    }

    /// Returns whether the list of invalid values, or that of conflicts, is full.
    pub(super) fn is_full(&self) -> bool {
        self.invalid.len() >= MAX_FINDINGS || self.conflicts.len() >= MAX_FINDINGS
    }

    /// Takes the findings as one error. Invalid values have priority over conflicts.
    pub(super) fn take_error(&mut self) -> Option<GatewayError> {
        let (kind, findings, what) = if self.invalid.is_empty() {
            (ErrorClass::Conflict, &mut self.conflicts, "contradict the stored data")
        } else {
            (ErrorClass::Invalid, &mut self.invalid, "are invalid")
        };
        let first = findings.first()?;
        let detail = match findings.len() {
            1 => first.to_string(),
            MAX_FINDINGS => format!("{MAX_FINDINGS} or more values {what}; the first is {first}"),
            n => format!("{n} values {what}; the first is {first}"),
        };
        Some(GatewayError::with_findings(kind, detail, std::mem::take(findings)))
    }
}

/// Describes a field that the mapping does not have at `place`: with the name that was probably meant if it `suggests` one,
/// or else with the known names.
pub(crate) fn describe_unknown_field(
    name: &str,
    place: &str,
    known: &[&str],
    suggests: bool,
) -> String {
    const MAX_SHOWN: usize = 20;
    let near = suggests.then(|| find_nearest(name, known.iter().copied())).flatten();
    let hint = if let Some(near) = near {
        format!("did you mean {near:?}?")
    } else {
        let (shown, others) = known.split_at(known.len().min(MAX_SHOWN));
        let more = match others.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        format!("it has {}{more}", shown.join(", "))
    };
    format!("the mapping has no field {}{place}; {hint}", quote_excerpt(name))
}

/// Formats a value for a message: in quotes, and cut if it is long.
pub(crate) fn quote_excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    match text.char_indices().nth(MAX_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
    }
}
