//! Loads an RDF document into the store in commits of bounded size.
use super::skolem::Skolemizer;
use super::source::{DocumentSource, ReadPosition};
use super::{Format, dump};
use crate::change_feed::{self, Watch};
use oxrdf::{GraphName, NamedNode, Quad};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser};
use penstock_base::commit::{CommitCheck, GuardedStore};
use penstock_base::disk::Disk;
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};
use std::io::{Cursor, Read};

/// The maximum number of quads in one commit.
const MAX_COMMIT_QUADS: usize = 10_000;
/// The maximum size in bytes of the terms in one commit, which a single quad may exceed.
const MAX_COMMIT_BYTES: usize = 4 << 20;
/// The maximum size in bytes of JSON-LD that is parsed as a whole. A longer document must have its members in the
/// order of the streaming form (<https://www.w3.org/TR/json-ld11-streaming/>).
const MAX_WHOLE_BYTES: u64 = 4 << 20;
/// The maximum number of bytes that a parser may read before it returns a quad, for example of one long literal.
const MAX_AHEAD_BYTES: u64 = 16 << 20;

/// The destination of a load.
#[derive(Debug)]
pub struct LoadTarget<'a> {
    /// The store.
    pub store: &'a GuardedStore,
    /// The check of the client that loads the document, which runs in each commit.
    pub check: &'a dyn CommitCheck,
    /// The disk of the store, whose reserve is kept free.
    pub disk: &'a Disk,
    /// Records the changed objects for exports on change.
    pub watch: &'a Watch,
}

/// The parameters of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// The format of the document.
    pub format: Format,
    /// The graph for triples that the document assigns to no graph.
    pub graph: GraphName,
    /// The base of relative IRIs.
    pub base: Option<NamedNode>,
    /// The prefix of the IRIs that replace blank nodes. Without it, blank nodes are refused.
    pub skolemize: Option<NamedNode>,
}

/// The progress of a load. It counts only quads that survive a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadProgress {
    /// The number of quads loaded.
    pub quads: u64,
    /// The number of these quads that were not stored before.
    pub added: u64,
    /// The number of commits.
    pub commits: u64,
}

/// The reason why a load failed, and its progress until then.
#[derive(Debug)]
pub struct LoadError {
    /// The cause; an error in the document has its line and column.
    pub error: GatewayError,
    /// The progress until then.
    pub loaded: LoadProgress,
}

/// Loads a document into the store, in addition to the stored quads. It is committed in parts, in the order of the
/// document. `on_progress` is called after each commit, and an error from it stops the load. Blocking.
///
/// # Errors
/// - `ErrorClass::Malformed` for an error in the document
/// - `ErrorClass::InsufficientStorage` if the disk is full up to its reserve
pub fn load_document(
    target: &LoadTarget<'_>,
    options: &LoadOptions,
    text: impl Read,
    on_progress: &mut dyn FnMut(LoadProgress) -> Result<(), GatewayError>,
) -> Result<LoadProgress, LoadError> {
    let mut loaded = LoadProgress::default();
    match load_parts(target, options, text, on_progress, &mut loaded) {
        Ok(()) => Ok(loaded),
        Err(fault) => Err(LoadError { error: fault, loaded }),
    }
}

fn load_parts(
    target: &LoadTarget<'_>,
    options: &LoadOptions,
    mut text: impl Read,
    on_progress: &mut dyn FnMut(LoadProgress) -> Result<(), GatewayError>,
    loaded: &mut LoadProgress,
) -> Result<(), GatewayError> {
    let mut start = Vec::new();
    let mut format = options.format.to_rdf_format();
    let mut max_ahead = MAX_AHEAD_BYTES;
    if options.format == Format::JsonLd {
        max_ahead = MAX_WHOLE_BYTES;
        text.by_ref()
            .take(MAX_WHOLE_BYTES + 1)
            .read_to_end(&mut start)
            .map_err(|error| unreadable_error(&error))?;
        if start.len() as u64 > MAX_WHOLE_BYTES {
            format = Format::streaming_json_ld();
        }
    }
    let position = ReadPosition::default();
    let by_byte = options.format == Format::RdfXml;
    let text = Cursor::new(start).chain(text);
    let text = DocumentSource::new(text, position.clone(), by_byte, max_ahead);
    let all_have_labels = matches!(options.format, Format::NTriples | Format::NQuads);
    let base = options.skolemize.as_ref().map(|base| base.as_str().to_owned());
    let mut skolem = Skolemizer::new(base, all_have_labels);
    let mut gathered = Vec::new();
    let mut bytes = 0;
    for quad in build_parser(options, format)?.for_reader(text) {
        let quad = quad.map_err(|error| convert_error(error, &position, by_byte))?;
        position.reset_ahead();
        let number = loaded.quads + gathered.len() as u64 + 1;
        let quad = skolem.replace_blank_nodes(quad).map_err(|why| {
            blank_node_error(options, &position, by_byte, format!("in quad {number}, {why}"))
        })?;
        bytes += dump::estimate_bytes(&quad);
        gathered.push(quad);
        if gathered.len() >= MAX_COMMIT_QUADS || bytes >= MAX_COMMIT_BYTES {
            commit_quads(target, &gathered, loaded)?;
            on_progress(*loaded)?;
            gathered.clear();
            bytes = 0;
        }
    }
    commit_quads(target, &gathered, loaded)?;
    on_progress(*loaded)
}

fn build_parser(options: &LoadOptions, format: RdfFormat) -> Result<RdfParser, GatewayError> {
    let parser = RdfParser::from_format(format).with_default_graph(options.graph.clone());
    match &options.base {
        None => Ok(parser),
        Some(base) => parser.with_base_iri(base.as_str()).map_err(|error| {
            GatewayError::new(
                ErrorClass::Malformed,
                format!("the base {base} is not an absolute IRI: {error}"),
            )
        }),
    }
}

fn commit_quads(
    target: &LoadTarget<'_>,
    quads: &[Quad],
    loaded: &mut LoadProgress,
) -> Result<(), GatewayError> {
    if quads.is_empty() {
        return Ok(());
    }
    target.disk.check_reserve()?;
    let (added, _) = target.store.commit(target.check, |transaction| {
        let mut added = 0;
        for quad in quads {
            added += u64::from(transaction.insert(quad.as_ref())?);
        }
        change_feed::record_changes(transaction, target.watch)?;
        Ok::<_, GatewayError>(added)
    })?;
    loaded.quads += quads.len() as u64;
    loaded.added += added;
    loaded.commits += 1;
    Ok(())
}

/// Creates the error for a quad that is refused because of a blank node.
fn blank_node_error(
    options: &LoadOptions,
    position: &ReadPosition,
    is_exact: bool,
    why: String,
) -> GatewayError {
    let has_places = !matches!(options.format, Format::RdfXml | Format::JsonLd);
    // Without --skolemize the first blank node is refused, so its position is that of the quad.
    match position.first_blank_node().filter(|_| has_places && options.skolemize.is_none()) {
        Some((line, column)) => {
            let errors = vec![Finding::at_line(line, column, why)];
            GatewayError::with_findings(
                ErrorClass::Malformed,
                "the document cannot be loaded",
                errors,
            )
        }
        None => error_at_position(position, is_exact, why),
    }
}

/// Creates an error in the document at the position of the parser.
fn error_at_position(
    position: &ReadPosition,
    is_exact: bool,
    why: impl Into<String>,
) -> GatewayError {
    let (line, column) = position.line_and_column();
    let place = if is_exact {
        Place::Line { line, column }
    } else {
        // The parser may have read ahead by up to a buffer.
        Place::Whole
    };
    let errors = vec![Finding { place, message: why.into() }];
    GatewayError::with_findings(ErrorClass::Malformed, "the document cannot be loaded", errors)
}

fn convert_error(error: RdfParseError, position: &ReadPosition, by_byte: bool) -> GatewayError {
    let error = match error {
        RdfParseError::Io(error) => return unreadable_error(&error),
        RdfParseError::Syntax(error) => error,
    };
    match error.location() {
        Some(location) => {
            let (line, column) = (location.start.line + 1, location.start.column + 1);
            let errors = vec![Finding::at_line(line, column, strip_position(&error.to_string()))];
            GatewayError::with_findings(
                ErrorClass::Malformed,
                "the document cannot be loaded",
                errors,
            )
        }
        None => error_at_position(position, by_byte, strip_position(&error.to_string())),
    }
}

/// Returns the message of an error without the leading position, which is reported separately.
fn strip_position(text: &str) -> String {
    let rest = text.strip_prefix("Parser error at line ").and_then(|text| text.split_once(": "));
    rest.map_or(text, |(_, rest)| rest).to_owned()
}

fn unreadable_error(error: &std::io::Error) -> GatewayError {
    GatewayError::new(ErrorClass::Malformed, format!("the document cannot be read: {error}"))
}
