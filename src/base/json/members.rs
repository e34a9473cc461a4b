//! Reads the members of an object strictly into typed fields.
use super::pointer::push_pointer;
use super::value::Json;
use crate::error::Finding;
use crate::nearest::find_nearest;

/// The maximum number of findings for one body, so that the answer does not become larger than the request.
pub const MAX_FINDINGS: usize = 1000;

/// The members of one object, taken by name. [`report_unknown`](Self::report_unknown) reports members that were not
/// taken, so no member is dropped silently. A member that is `null` counts as absent.
#[derive(Debug)]
pub struct Members<'a> {
    pointer: String,
    entries: Vec<(String, Json)>,
    known: Vec<&'static str>,
    wrongly_typed: Vec<&'static str>,
    findings: &'a mut Vec<Finding>,
}

impl<'a> Members<'a> {
    /// Returns the members of `value`, which is located at `pointer`. If it is not an object, returns `None` and adds
    /// a finding.
    pub fn of_object(value: Json, pointer: &str, findings: &'a mut Vec<Finding>) -> Option<Self> {
        match value {
            Json::Object(entries) => Some(Self {
                pointer: pointer.to_owned(),
                entries,
                known: Vec::new(),
                wrongly_typed: Vec::new(),
                findings,
            }),
            other => {
                let message = format!("an object is expected, not {}", other.kind_name());
                push_finding(findings, pointer.to_owned(), message);
                None
            }
        }
    }

    /// Returns the JSON Pointer of a member.
    pub fn pointer_to(&self, name: &str) -> String {
        let mut pointer = self.pointer.clone();
        push_pointer(&mut pointer, name);
        pointer
    }

    /// Returns the list to which findings are added.
    pub fn findings(&mut self) -> &mut Vec<Finding> {
        self.findings
    }

    /// Adds a finding at a member.
    pub fn add_finding(&mut self, name: &str, message: impl Into<String>) {
        let pointer = self.pointer_to(name);
        push_finding(self.findings, pointer, message);
    }

    /// Takes any value.
    pub fn take(&mut self, name: &'static str) -> Option<Json> {
        self.known.push(name);
        let place = self.entries.iter().position(|(n, _)| n == name)?;
        Some(self.entries.remove(place).1).filter(|value| *value != Json::Null)
    }

    /// Takes a string.
    pub fn take_string(&mut self, name: &'static str) -> Option<String> {
        match self.take(name)? {
            Json::String(text) => Some(text),
            other => self.report_wrong_type(name, "a string", &other),
        }
    }

    /// Takes a boolean.
    pub fn take_boolean(&mut self, name: &'static str) -> Option<bool> {
        match self.take(name)? {
            Json::Bool(value) => Some(value),
            other => self.report_wrong_type(name, "true or false", &other),
        }
    }

    /// Takes an array.
    pub fn take_array(&mut self, name: &'static str) -> Option<Vec<Json>> {
        match self.take(name)? {
            Json::Array(elements) => Some(elements),
            other => self.report_wrong_type(name, "an array", &other),
        }
    }

    /// Adds a finding for a missing required member, unless it was present with another type. Call it if taking the
    /// member returned `None`.
    pub fn report_missing(&mut self, name: &'static str, expected: &str) {
        if !self.wrongly_typed.contains(&name) {
            self.add_finding(name, format!("`{name}` is missing; {expected}"));
        }
    }

    /// Adds a finding for each member that was not taken.
    pub fn report_unknown(self) {
        for (name, _) in self.entries.iter().take(MAX_FINDINGS) {
            let pointer = self.pointer_to(name);
            let hint = match find_nearest(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the known members are {}", self.known.join(", ")),
            };
            push_finding(self.findings, pointer, format!("`{name}` is not known here; {hint}"));
        }
    }

    fn report_wrong_type<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        found: &Json,
    ) -> Option<T> {
        self.wrongly_typed.push(name);
        self.add_finding(name, format!("`{name}` must be {expected}, not {}", found.kind_name()));
        None
    }
}

fn push_finding(findings: &mut Vec<Finding>, pointer: String, message: impl Into<String>) {
    if findings.len() < MAX_FINDINGS {
        findings.push(Finding::at_pointer(pointer, message));
    }
}
