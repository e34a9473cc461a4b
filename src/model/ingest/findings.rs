//! What is wrong with a request, collected, so that one answer names it all.
use penstock_base::fault::{Fault, Finding, Kind};

/// Findings named in one answer; a request with more of them is given up at this one.
const MOST: usize = 100;

/// What was found so far: what does not fit the mapping, and what contradicts the data there.
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

    /// How many were found; compare before and after to see whether one part is sound.
    pub(super) fn count(&self) -> usize {
        self.invalid.len() + self.conflicts.len()
    }

    /// Whether there is no room for more.
    pub(super) fn full(&self) -> bool {
        self.invalid.len() >= MOST
    }

    /// The fault they make; what cannot be understood goes before what contradicts.
    pub(super) fn fault(&mut self) -> Option<Fault> {
        let (kind, findings, what) = if self.invalid.is_empty() {
            (Kind::Conflict, &mut self.conflicts, "contradict the data there")
        } else {
            (Kind::Invalid, &mut self.invalid, "are wrong")
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

/// A value as a message shows it: in quotes, cut when it is long.
pub(super) fn excerpt(text: &str) -> String {
    const MOST_CHARS: usize = 80;
    match text.char_indices().nth(MOST_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
    }
}
