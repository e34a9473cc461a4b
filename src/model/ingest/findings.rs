//! Collects the errors of a request, so that one answer reports all of them.
use penstock_base::fault::{Fault, Finding, Kind};

/// The maximum number of findings in one answer. A request that reaches it is not read further.
const MOST: usize = 100;

/// The findings so far: values that do not fit the mapping, and values that contradict the stored data.
#[derive(Debug, Default)]
pub(super) struct Findings {
    invalid: Vec<Finding>,
    conflicts: Vec<Finding>,
}

impl Findings {
    pub(super) fn invalid(&mut self, pointer: &str, message: impl Into<String>) {
        if self.invalid.len() < MOST {
            self.invalid.push(Finding::at(pointer, message));
        }
    }

    pub(super) fn conflict(&mut self, pointer: &str, message: impl Into<String>) {
        if self.conflicts.len() < MOST {
            self.conflicts.push(Finding::at(pointer, message));
        }
    }

    pub(super) fn extend(&mut self, findings: Vec<Finding>) {
        let room = MOST.saturating_sub(self.invalid.len());
        self.invalid.extend(findings.into_iter().take(room));
    }

    /// Returns the number of findings. Compare it before and after a part to see whether the part has errors.
    pub(super) fn count(&self) -> usize {
        self.invalid.len() + self.conflicts.len()
    }

    /// Returns whether the list of invalid values is full.
    pub(super) fn full(&self) -> bool {
        self.invalid.len() >= MOST
    }

    /// Takes the findings as one error. Invalid values have priority over conflicts.
    pub(super) fn fault(&mut self) -> Option<Fault> {
        let (kind, findings, what) = if self.invalid.is_empty() {
            (Kind::Conflict, &mut self.conflicts, "contradict the stored data")
        } else {
            (Kind::Invalid, &mut self.invalid, "are invalid")
        };
        let first = findings.first()?;
        let detail = match findings.len() {
            1 => first.to_string(),
            MOST => format!("{MOST} or more values {what}; the first is {first}"),
            n => format!("{n} values {what}; the first is {first}"),
        };
        Some(Fault::with(kind, detail, std::mem::take(findings)))
    }
}

/// Formats a value for a message: in quotes, and cut if it is long.
pub(super) fn excerpt(text: &str) -> String {
    const MOST_CHARS: usize = 80;
    match text.char_indices().nth(MOST_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
    }
}
