//! What a validation finds.
use oxrdf::{NamedNode, Term};
use penstock_resources::problem::ViolatedConstraint;
use serde::{Deserialize, Serialize};
use std::iter::successors;

/// How severe a violation is (SHACL, 2.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// `sh:Violation`, and any severity of one's own.
    Violation,
    /// `sh:Warning`
    Warning,
    /// `sh:Info`
    Info,
}

impl Severity {
    /// Returns its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Violation => "violation",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// A value, or a whole object, that does not conform to a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The object that was validated.
    pub focus_node: Term,
    /// The path from it to the value, as SPARQL writes it; `None` for a constraint on the object itself.
    pub path: Option<String>,
    /// The path if it is a single property.
    pub predicate: Option<NamedNode>,
    /// The value; `None` if the number of values, or all of them together, are wrong.
    pub value: Option<Term>,
    /// The IRI of the shape, or of the nearest shape that it is part of and that has one.
    pub shape: String,
    /// The shape itself, which may be a blank node of the shapes graph.
    pub source_shape: Term,
    /// The constraint component, for example `sh:MinCountConstraintComponent`.
    pub constraint: NamedNode,
    /// The severity.
    pub severity: Severity,
    /// What is wrong, by language tag. The shapes graph's own text, or else a description of the constraint.
    pub messages: Vec<(Option<String>, String)>,
}

impl Violation {
    /// Returns what the same violation has in another state of the data: focus node, path, shape, constraint and value.
    pub fn identity(&self) -> (&Term, Option<&str>, &Term, &NamedNode, Option<&Term>) {
        let (path, value) = (self.path.as_deref(), self.value.as_ref());
        (&self.focus_node, path, &self.source_shape, &self.constraint, value)
    }

    /// Returns the message in the first of these languages that it has, or else without a language or in English. `de`
    /// finds `de-AT` too, and `de-AT` also `de` (RFC 4647, 3.4).
    pub fn message(&self, languages: &[String]) -> &str {
        let find = |sought: Option<&str>| {
            let known = |tag: &Option<String>| match (tag, sought) {
                (None, None) => true,
                (Some(tag), Some(sought)) => {
                    tag.eq_ignore_ascii_case(sought)
                        || tag.get(..sought.len()).is_some_and(|start| {
                            start.eq_ignore_ascii_case(sought)
                                && tag.as_bytes().get(sought.len()) == Some(&b'-')
                        })
                }
                _ => false,
            };
            self.messages.iter().find(|(tag, _)| known(tag))
        };
        let wanted = languages.iter().find_map(|language| {
            successors(Some(language.as_str()), |tag| Some(tag.rsplit_once('-')?.0))
                .find_map(|tag| find(Some(tag)))
        });
        let found = wanted.or_else(|| find(None)).or_else(|| find(Some("en")));
        found.or(self.messages.first()).map_or("", |(_, text)| text)
    }
}

impl From<&Violation> for ViolatedConstraint {
    /// Returns the constraint in the form of an answer.
    fn from(violation: &Violation) -> Self {
        let text = |term: &Term| match term {
            Term::NamedNode(node) => node.as_str().to_owned(),
            Term::Literal(literal) => cut_text(literal.value()),
            other => other.to_string(),
        };
        Self {
            focus_node: text(&violation.focus_node),
            path: violation.path.clone(),
            value: violation.value.as_ref().map(text),
            shape: violation.shape.clone(),
            constraint: violation.constraint.as_str().to_owned(),
            severity: violation.severity.name().to_owned(),
        }
    }
}

/// Cuts a literal that is too long for an answer.
fn cut_text(text: &str) -> String {
    const MAX_CHARS: usize = 500;
    match text.char_indices().nth(MAX_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}
