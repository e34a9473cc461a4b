//! `penstock validate --shapes FILE [DATA]`
use super::{data_dir, output};
use clap::{Arg, ArgMatches, Command};
use oxrdf::{NamedNode, Term, Triple};
use penstock_config::Settings;
use penstock_model::rdf::Format;
use penstock_rdf::{QuadReader, ReadOptions};
use penstock_shapes::{
    Cancellation, Data, Document, Limits, ReportWriter, Severity, ShapesFormat, ShapesGraph,
    StoredTriples, Targets, TriplePattern, Triples, Violation, to_subject,
};
use penstock_store::{Pattern, Read as _, Snapshot, SubjectFilter};
use serde_json::json;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufReader, BufWriter, Read, StdoutLock, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The number of objects that are validated together. Their violations are in memory at once.
const BATCH_OBJECTS: usize = 1000;
/// The limits of one batch.
const MAX_BATCH_TIME: Duration = Duration::from_hours(1);
const MAX_BATCH_BYTES: u64 = 512 << 20;
/// Bytes of the buffers for reading and writing.
const BUFFER_BYTES: usize = 64 << 10;

/// There are violations.
const STATUS_VIOLATIONS: u8 = 1;
/// The validation has no result: the command line, the shapes graph or the data are not valid, or reading them failed.
const STATUS_NO_RESULT: u8 = output::STATUS_USAGE;

pub(super) fn build_command() -> Command {
    Command::new("validate")
        .about("Validate data with a shapes graph, in SHACL Core or ShEx")
        .override_usage("penstock validate --shapes FILE [DATA] [--format FORMAT] [--name=value]...")
        .arg(
            output::value_argument("shapes", "FILE", "The shapes graph: SHACL as .ttl, .nt, .nq, .trig, .rdf or .jsonld, or ShEx as .shex")
                .required(true),
        )
        .arg(Arg::new("DATA").help(
            "The RDF document to validate, in the format of its extension; - is Turtle from standard input. Without it, \
             the data of the data directory; stop the service first",
        ))
        .arg(
            output::value_argument("format", "FORMAT", "text, json, or turtle: an sh:ValidationReport")
                .value_parser(["text", "json", "turtle"])
                .default_value("text"),
        )
        .after_help(
            "All targets of the SHACL shapes are validated, or with ShEx all subjects against start. \
             Nothing is ever fetched.\n\n\
             Exit status: 0 no violations (there may be warnings), 1 violations, 2 no result: the command line or the \
             shapes graph is not valid, or reading the data failed.\n\nExamples:\n  \
             penstock validate --shapes pump.ttl pumps.nt\n  \
             penstock validate --shapes pump.ttl --format json --service.data-dir=data\n  \
             penstock validate --shapes pump.shex - < pumps.ttl",
        )
}

pub(super) fn run(given: &ArgMatches, arguments: Vec<String>) -> ExitCode {
    let Ok(settings) = data_dir::load_settings(arguments) else { return STATUS_NO_RESULT.into() };
    let Some(shapes) = given.get_one::<String>("shapes") else { return STATUS_NO_RESULT.into() };
    let data = given.get_one::<String>("DATA").map(String::as_str);
    let format = given.get_one::<String>("format").map_or("text", String::as_str);
    match validate(&settings, shapes, data, format) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => STATUS_VIOLATIONS.into(),
        Err(why) => {
            output::print_error_line(&format!("penstock: {why}"));
            STATUS_NO_RESULT.into()
        }
    }
}

/// Validates the data and prints the result. Returns the number of violations, without warnings.
fn validate(
    settings: &Settings,
    shapes: &str,
    data: Option<&str>,
    format: &str,
) -> Result<u64, String> {
    let shapes = read_shapes(shapes)?;
    let mut source = match data {
        Some(path) => Source::read_document(path)?,
        None => Source::open_store(settings)?,
    };
    let mut report = Report::new(format).map_err(|error| describe_output_error(&error))?;
    let mut last = None;
    loop {
        let nodes = source.list_subjects(last.as_ref())?;
        let Some(end) = nodes.last() else { break };
        last = Some(end.clone());
        report.objects += nodes.len();
        validate_nodes(&shapes, source.triples(), &nodes, &mut report)?;
    }
    let (mut nodes, mut validated) = (Vec::new(), Ok(()));
    source.for_each_other_target(&shapes.targets(), &mut |node| {
        nodes.push(node);
        if nodes.len() == BATCH_OBJECTS {
            let batch = std::mem::take(&mut nodes);
            validated = validate_nodes(&shapes, source.triples(), &batch, &mut report);
        }
        if validated.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    validated?;
    validate_nodes(&shapes, source.triples(), &nodes, &mut report)?;
    report.finish().map_err(|error| describe_output_error(&error))
}

/// Validates the nodes that are targets, and prints their violations.
fn validate_nodes(
    shapes: &ShapesGraph,
    triples: Arc<dyn Triples>,
    nodes: &[Term],
    report: &mut Report,
) -> Result<(), String> {
    let limits = Limits {
        time: MAX_BATCH_TIME,
        deadline: None,
        memory: MAX_BATCH_BYTES,
        violations: usize::MAX,
        cancellation: Cancellation::default(),
    };
    let data = Data::new(Box::new(triples), limits);
    let found = shapes.validate_nodes(&data, nodes).map_err(|error| error.to_string())?;
    report.add(&found).map_err(|error| describe_output_error(&error))
}

fn describe_output_error(error: &io::Error) -> String {
    format!("standard output: {error}")
}

fn read_shapes(path: &str) -> Result<ShapesGraph, String> {
    let is_shex = Path::new(path).extension().is_some_and(|end| end.eq_ignore_ascii_case("shex"));
    let format = match Format::from_file_name(Path::new(path)) {
        _ if is_shex => ShapesFormat::ShexC,
        Some(format) => ShapesFormat::Rdf(format),
        None => {
            return Err(format!(
                "{path}: its extension is not that of a shapes graph: {}, shex",
                list_formats()
            ));
        }
    };
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    ShapesGraph::read(&text, format).map_err(|error| format!("{path}: {error}"))
}

fn list_formats() -> String {
    Format::ALL.map(Format::name).join(", ")
}

/// What is validated.
enum Source {
    Document { triples: Arc<Document>, subjects: std::vec::IntoIter<Term> },
    Store(Arc<StoredTriples<Box<Snapshot>>>),
}

impl Source {
    fn read_document(path: &str) -> Result<Self, String> {
        let format = match path {
            "-" => Format::Turtle,
            path => Format::from_file_name(Path::new(path)).ok_or_else(|| {
                format!("{path}: its extension is not that of a known format: {}", list_formats())
            })?,
        };
        let failed = |error: &dyn std::fmt::Display| format!("{path}: {error}");
        let text: Box<dyn Read> = match path {
            "-" => Box::new(io::stdin().lock()),
            path => Box::new(File::open(path).map_err(|error| failed(&error))?),
        };
        let text: Box<dyn Read> =
            if Path::new(path).extension().is_some_and(|end| end.eq_ignore_ascii_case("zst")) {
                Box::new(zstd::Decoder::new(text).map_err(|error| failed(&error))?)
            } else {
                Box::new(BufReader::with_capacity(BUFFER_BYTES, text))
            };
        let quads = QuadReader::new(text, format, &ReadOptions::default());
        let mut quads = quads.map_err(|error| failed(&error))?;
        let quads = std::iter::from_fn(|| quads.next_quad().transpose());
        let document: Result<Document, _> = quads.map(|quad| quad.map(Triple::from)).collect();
        let document = document.map_err(|error| failed(&error))?;
        let subjects = document.list_subjects().into_iter();
        Ok(Self::Document { triples: Arc::new(document), subjects })
    }

    fn open_store(settings: &Settings) -> Result<Self, String> {
        data_dir::check_exists(settings)?;
        let store = data_dir::open_stopped_store(settings)?;
        data_dir::check_no_move(&store)?;
        let snapshot = store.snapshot().map_err(|error| error.to_string())?;
        Ok(Self::Store(Arc::new(StoredTriples(Box::new(snapshot)))))
    }

    fn triples(&self) -> Arc<dyn Triples> {
        match self {
            Self::Document { triples, .. } => triples.clone(),
            Self::Store(triples) => triples.clone(),
        }
    }

    /// Returns the next subjects after this one; none at the end.
    fn list_subjects(&mut self, last: Option<&Term>) -> Result<Vec<Term>, String> {
        match self {
            Self::Document { subjects, .. } => Ok(subjects.take(BATCH_OBJECTS).collect()),
            Self::Store(triples) => {
                let last = match last {
                    Some(Term::NamedNode(node)) => Some(node.as_str()),
                    _ => None,
                };
                let listed =
                    triples.0.list_subjects(&SubjectFilter::default(), last, BATCH_OBJECTS);
                let listed = listed.map_err(|error| error.to_string())?;
                Ok(listed.into_iter().map(Term::from).collect())
            }
        }
    }

    /// Passes the targets that are no subjects to `visit`, each once, until it breaks (SHACL, 2.1.3.1 and 2.1.3.5).
    fn for_each_other_target(
        &self,
        targets: &Targets,
        visit: &mut dyn FnMut(Term) -> ControlFlow<()>,
    ) -> Result<(), String> {
        // Hashes suffice to pass each one once, and take little memory.
        let (hasher, mut passed) = (RandomState::new(), HashSet::new());
        let mut pass = |node: &Term| -> Result<ControlFlow<()>, String> {
            if !passed.insert(hasher.hash_one(node)) {
                return Ok(ControlFlow::Continue(()));
            }
            let is_subject = self.is_subject(node)?;
            Ok(if is_subject { ControlFlow::Continue(()) } else { visit(node.clone()) })
        };
        for node in &targets.nodes {
            if pass(node)?.is_break() {
                return Ok(());
            }
        }
        for property in &targets.objects_of {
            let mut passing = Ok(ControlFlow::Continue(()));
            self.for_each_object(property, &mut |object| {
                passing = pass(object);
                if matches!(passing, Ok(ControlFlow::Continue(()))) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
            if passing?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn is_subject(&self, node: &Term) -> Result<bool, String> {
        let Some(subject) = to_subject(node) else { return Ok(false) };
        let of_subject = TriplePattern { subject: Some(&subject), ..TriplePattern::default() };
        self.triples().any(of_subject).map_err(|error| error.to_string())
    }

    /// Passes the values of a property of all subjects to `visit`, until it breaks.
    fn for_each_object(
        &self,
        property: &NamedNode,
        visit: &mut dyn FnMut(&Term) -> ControlFlow<()>,
    ) -> Result<(), String> {
        match self {
            Self::Document { triples, .. } => {
                let of_property =
                    TriplePattern { predicate: Some(property), ..TriplePattern::default() };
                triples
                    .for_each(of_property, &mut |triple| visit(&triple.object))
                    .map_err(|error| error.to_string())
            }
            Self::Store(triples) => {
                let pattern = Pattern { predicate: Some(property.clone()), ..Pattern::default() };
                triples
                    .0
                    .for_each(&pattern, &mut |quad| visit(&quad.object))
                    .map_err(|error| error.to_string())
            }
        }
    }
}

/// Prints the result.
struct Report {
    out: Output,
    objects: usize,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    violations: u64,
    warnings: u64,
    infos: u64,
}

enum Output {
    Text(BufWriter<StdoutLock<'static>>),
    Json { out: BufWriter<StdoutLock<'static>>, is_first: bool },
    Turtle(Box<ReportWriter<BufWriter<StdoutLock<'static>>>>),
}

impl Report {
    fn new(format: &str) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
        let out = match format {
            "json" => {
                out.write_all(b"{\"results\": [")?;
                Output::Json { out, is_first: true }
            }
            "turtle" => Output::Turtle(Box::new(ReportWriter::new(out, Format::Turtle)?)),
            _ => Output::Text(out),
        };
        Ok(Self { out, objects: 0, counts: Counts::default() })
    }

    fn add(&mut self, found: &[Violation]) -> io::Result<()> {
        for violation in found {
            match violation.severity {
                Severity::Violation => self.counts.violations += 1,
                Severity::Warning => self.counts.warnings += 1,
                Severity::Info => self.counts.infos += 1,
            }
            match &mut self.out {
                Output::Text(out) => writeln!(out, "{}", format_line(violation))?,
                Output::Json { out, is_first } => {
                    let separator = if std::mem::take(is_first) { "\n" } else { ",\n" };
                    write!(out, "{separator}{}", to_json(violation))?;
                }
                Output::Turtle(out) => out.write(violation)?,
            }
        }
        Ok(())
    }

    /// Ends the output and returns the number of violations.
    fn finish(self) -> io::Result<u64> {
        let Counts { violations, warnings, infos } = self.counts;
        match self.out {
            Output::Text(mut out) => {
                writeln!(
                    out,
                    "{} objects: violations: {violations}, warnings: {warnings}, infos: {infos}",
                    self.objects
                )?;
                out.flush()?;
            }
            Output::Json { mut out, .. } => {
                let conforms = violations + warnings + infos == 0;
                let counts = json!({"violation": violations, "warning": warnings, "info": infos});
                let objects = self.objects;
                writeln!(
                    out,
                    "\n], \"conforms\": {conforms}, \"objects\": {objects}, \"counts\": {counts}}}"
                )?;
                out.flush()?;
            }
            Output::Turtle(out) => out.finish()?.flush()?,
        }
        Ok(violations)
    }
}

/// Formats a violation as a line: severity, focus node, path, value, message, and in brackets constraint and shape.
fn format_line(violation: &Violation) -> String {
    let severity = violation.severity.name();
    let mut line = format!("{severity}: {}", format_node(&violation.focus_node));
    if let Some(path) = &violation.path {
        let _ = write!(line, " {path}");
    }
    if let Some(value) = &violation.value {
        let _ = write!(line, " {value}");
    }
    let constraint = violation.constraint.as_str();
    let constraint = constraint.rsplit_once('#').map_or(constraint, |(_, name)| name);
    let constraint = constraint.strip_suffix("ConstraintComponent").unwrap_or(constraint);
    let message = violation.message(&[]).replace(['\n', '\r'], " ");
    format!("{line}: {message} [{constraint} of {}]", violation.shape)
}

fn format_node(node: &Term) -> String {
    match node {
        Term::NamedNode(node) => node.as_str().to_owned(),
        other => other.to_string(),
    }
}

/// Returns a violation as the API writes it. The value is in the syntax of N-Triples.
fn to_json(violation: &Violation) -> serde_json::Value {
    json!({
        "focusNode": format_node(&violation.focus_node),
        "path": violation.path,
        "value": violation.value.as_ref().map(ToString::to_string),
        "shape": violation.shape,
        "constraint": violation.constraint.as_str(),
        "severity": violation.severity,
        "message": violation.message(&[]),
    })
}
