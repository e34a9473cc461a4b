//! A validation's result as an `sh:ValidationReport` (SHACL, 3.6).
use crate::paths::parse_path;
use crate::shacl::SHACL;
use crate::violation::{Severity, Violation};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, Literal, NamedNode, NamedNodeRef, NamedOrBlankNode, Term, TripleRef};
use penstock_rdf::{Format, QuadWriter, WriteError};
use rudof_rdf::rdf_core::SHACLPath;
use std::fmt;
use std::io::Write;

/// Writes an `sh:ValidationReport`, violation by violation.
pub struct ReportWriter<W: Write> {
    out: QuadWriter<W>,
    report: NamedOrBlankNode,
    results: u64,
    /// The number of blank nodes of paths so far.
    path_nodes: u64,
}

impl<W: Write> ReportWriter<W> {
    /// Begins a report.
    ///
    /// # Errors
    /// If the format cannot express the report, or writing fails.
    pub fn new(out: W, format: Format) -> Result<Self, WriteError> {
        let prefixes = [("sh", SHACL), ("xsd", "http://www.w3.org/2001/XMLSchema#")];
        let report = NamedOrBlankNode::from(BlankNode::new_unchecked("report"));
        let out = QuadWriter::new(out, format, prefixes);
        let mut writer = Self { out, report, results: 0, path_nodes: 0 };
        let report = writer.report.clone();
        writer.write_triple(&report, rdf::TYPE, shacl("ValidationReport"))?;
        Ok(writer)
    }

    /// Writes a violation as an `sh:ValidationResult`.
    ///
    /// # Errors
    /// If the format cannot express the report, or writing fails.
    pub fn write(&mut self, violation: &Violation) -> Result<(), WriteError> {
        self.results += 1;
        let report = self.report.clone();
        let result =
            NamedOrBlankNode::from(BlankNode::new_unchecked(format!("result-{}", self.results)));
        let path = violation.path.as_deref().and_then(parse_path);
        let path = path.map(|path| self.write_path(&path)).transpose()?;
        self.write_triple(&report, shacl("result").as_ref(), result.clone())?;
        self.write_triple(&result, rdf::TYPE, shacl("ValidationResult"))?;
        let mut write = |name: &str, object: Term| {
            self.out.write_triple(TripleRef::new(&result, &shacl(name), &object))
        };
        write("focusNode", rename(&violation.focus_node, "data"))?;
        if let Some(path) = path {
            write("resultPath", path)?;
        }
        if let Some(value) = &violation.value {
            write("value", rename(value, "data"))?;
        }
        write("sourceShape", rename(&violation.source_shape, "shape"))?;
        write("sourceConstraintComponent", violation.constraint.clone().into())?;
        write("resultSeverity", severity_iri(violation.severity).into())?;
        for (language, text) in &violation.messages {
            write("resultMessage", to_literal(language.as_deref(), text).into())?;
        }
        Ok(())
    }

    /// Ends the report. It conforms if it has no result, whatever the severity (SHACL, 3.6.1.1).
    ///
    /// # Errors
    /// If the format cannot express the report, or writing fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        let report = self.report.clone();
        let conforms = Literal::new_typed_literal((self.results == 0).to_string(), xsd::BOOLEAN);
        self.write_triple(&report, shacl("conforms").as_ref(), conforms)?;
        self.out.finish()
    }

    /// Writes the triples of a path (SHACL, 2.3.1), and returns the path.
    fn write_path(&mut self, path: &SHACLPath) -> Result<Term, WriteError> {
        let (name, inner) = match path {
            SHACLPath::Predicate { pred } => {
                return Ok(NamedNode::new_unchecked(pred.as_str()).into());
            }
            SHACLPath::Sequence { paths } => return self.write_path_list(paths),
            SHACLPath::Alternative { paths } => ("alternativePath", self.write_path_list(paths)?),
            SHACLPath::Inverse { path } => ("inversePath", self.write_path(path)?),
            SHACLPath::ZeroOrMore { path } => ("zeroOrMorePath", self.write_path(path)?),
            SHACLPath::OneOrMore { path } => ("oneOrMorePath", self.write_path(path)?),
            SHACLPath::ZeroOrOne { path } => ("zeroOrOnePath", self.write_path(path)?),
        };
        let node = self.new_path_node();
        self.write_triple(&node, shacl(name).as_ref(), inner)?;
        Ok(node.into())
    }

    fn write_path_list(&mut self, paths: &[SHACLPath]) -> Result<Term, WriteError> {
        let mut rest = Term::from(rdf::NIL.into_owned());
        for path in paths.iter().rev() {
            let first = self.write_path(path)?;
            let node = self.new_path_node();
            self.write_triple(&node, rdf::FIRST, first)?;
            self.write_triple(&node, rdf::REST, rest)?;
            rest = node.into();
        }
        Ok(rest)
    }

    fn new_path_node(&mut self) -> NamedOrBlankNode {
        self.path_nodes += 1;
        BlankNode::new_unchecked(format!("path-{}", self.path_nodes)).into()
    }

    fn write_triple(
        &mut self,
        subject: &NamedOrBlankNode,
        predicate: NamedNodeRef<'_>,
        object: impl Into<Term>,
    ) -> Result<(), WriteError> {
        self.out.write_triple(TripleRef::new(subject, predicate, &object.into()))
    }
}

impl<W: Write> fmt::Debug for ReportWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReportWriter").field("results", &self.results).finish_non_exhaustive()
    }
}

fn shacl(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{SHACL}{name}"))
}

fn severity_iri(severity: Severity) -> NamedNode {
    shacl(match severity {
        Severity::Violation => "Violation",
        Severity::Warning => "Warning",
        Severity::Info => "Info",
    })
}

/// Keeps the blank nodes of the data, of the shapes graph and of the report apart.
fn rename(term: &Term, whose: &str) -> Term {
    match term {
        Term::BlankNode(node) => {
            BlankNode::new_unchecked(format!("{whose}-{}", node.as_str())).into()
        }
        other => other.clone(),
    }
}

fn to_literal(language: Option<&str>, text: &str) -> Literal {
    let tagged = language.and_then(|tag| Literal::new_language_tagged_literal(text, tag).ok());
    tagged.unwrap_or_else(|| Literal::new_simple_literal(text))
}
